/*
 * access.h: reading and adding to one replica under the access mode of the run. These functions and the executor are
 * the only ones that touch a replica's floats while workers run.
 *
 * A read fills a private buffer, an add takes a private delta. Nothing here can fail or allocate.
 */
#ifndef MW_COMM_ACCESS_H
#define MW_COMM_ACCESS_H

#include "comm/replica.h"

/* out := x[from .. from+n). seqlock: one whole version (of the asked range). */
void mw_access_view(struct mw_replicas *r, uint32_t row, size_t from, size_t n, float *out);
/* out := the given groups of width floats. */
void mw_access_gather(
	struct mw_replicas *r, uint32_t row, const uint32_t *group, size_t n, uint32_t width, float *out);
/* x[from .. from+n) += weight * d */
void mw_access_add(struct mw_replicas *r, uint32_t row, size_t from, size_t n, float weight, const float *d);
/* the given groups += d (compact) */
void mw_access_scatter(
	struct mw_replicas *r, uint32_t row, const uint32_t *group, size_t n, uint32_t width, const float *d);
/* One example row of a linear model: sum_i x[idx[i]] val[i] (+ x[bias] if bias >= 0), and x[idx] += a val, x[bias] += a. */
float mw_access_dot_row(
	struct mw_replicas *r, uint32_t row, const uint32_t *idx, const float *val, size_t n, int64_t bias);
void mw_access_add_row(struct mw_replicas *r, uint32_t row, const uint32_t *idx, const float *val, size_t n,
	int64_t bias, float a);

/* dst := src on [from, from+n), src read under the access mode; dst is written by the caller's thread alone. */
void mw_access_copy(struct mw_replicas *r, uint32_t src, uint32_t dst, size_t from, size_t n);

/*
 * The version that this thread's last access under locked or seqlock access saw (reads) or made (writes): the number of
 * writes to that row. Not touched by the other modes, nor for rows that one worker owns.
 */
extern __thread uint64_t mw_access_version;

/* Count a push under the access mode, as one coordinate that every push touches would. */
void mw_access_tally(struct mw_replicas *r, uint32_t row);

/* Begin and end a write section of locked and seqlock access (nothing for the others). */
void mw_access_write_begin(struct mw_replicas *r, uint32_t row);
void mw_access_write_end(struct mw_replicas *r, uint32_t row);

#endif
