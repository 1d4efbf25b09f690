/* parallel.h: a set-up job done by several threads that are joined at once. */
#ifndef MW_DATA_PARALLEL_H
#define MW_DATA_PARALLEL_H

#include <stdint.h>

#define MW_PARALLEL_MAX 256

/*
 * Threads for a job: `asked` if positive, else one for each CPU this process may use but at most one per
 * `grain` units of work. At least 1, at most MW_PARALLEL_MAX and `work`.
 */
int mw_parallel_threads(int asked, uint64_t work, uint64_t grain);

/*
 * Call task(ctx, i) once for each i in 0..n-1, each on a thread of its own (0 on the caller's), and wait for
 * all. A thread that can't be created costs speed only: the caller does its part.
 */
void mw_parallel_run(int n, void (*task)(void *ctx, int i), void *ctx);

#endif
