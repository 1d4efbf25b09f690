/*
 * snapshot.h: looking at replicas while workers may go on, and the thread that does so in the threads engine. A snapshot
 * is not of one moment: the caller reads the counters before and after it and so knows how far it may be off.
 */
#ifndef MW_RUN_SNAPSHOT_H
#define MW_RUN_SNAPSHOT_H

#include "run/control.h"

/* Of all rows, `cols` floats from `from` on, which are probe columns: rows x cols. */
void mw_snapshot_columns(const struct mw_run *run, size_t from, size_t cols, float *out);
/* Of all rows, `n` coordinates spread over the parameters: rows x n. */
void mw_snapshot_parameters(const struct mw_run *run, uint32_t n, float *out);
/* Native steps so far (threads): pushes, or rounds. */
uint64_t mw_native_steps(const struct mw_run *run);

/* Sampler: a thread for one segment of the threads engine. */
int mw_sampler_start(struct mw_control *c, struct mw_err *err);
void mw_sampler_stop(struct mw_control *c);

#endif
