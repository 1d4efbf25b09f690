/* merge.h: the executor's kernel for (server, copy, base) triples, compiled for each instruction set. */
#ifndef MW_COMM_MERGE_H
#define MW_COMM_MERGE_H

#include <stddef.h>
#include <stdbool.h>

/*
 * server += copy - base; copy, base := the new server. Where server equals base to the bit, server := copy, so that a
 * lone worker equals the sequential run. Lines of the server that get no change are not written, since a write costs a
 * line transfer from another core. atomic: the add is a compare-and-swap, no concurrent update is lost.
 */
void mw_merge(float *server, float *copy, float *base, size_t n, bool atomic);

/* The racy kernels behind it, one an instruction set. */
typedef void mw_merge_fn(float *server, float *copy, float *base, size_t n);
extern mw_merge_fn mw_merge_portable, mw_merge_avx2, mw_merge_avx512;

#endif
