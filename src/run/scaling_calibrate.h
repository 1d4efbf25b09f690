/* scaling_calibrate.h: measures what scaling.h needs, on the run's own data, with the kernels that runs use. */
#ifndef MW_RUN_SCALING_CALIBRATE_H
#define MW_RUN_SCALING_CALIBRATE_H

#include "run/run.h"
#include "run/scaling.h"

/* Fill what is known from the data: lines, q, dim_lines, bytes; period_lines of `every` rows; for hot_columns cold_lines and cold_q. */
int mw_scaling_look(const struct mw_run *run, double every, struct mw_scaling *s, struct mw_err *err);
/*
 * Measure t1, t2, s2, merge, mean and latency, each for about `seconds`, by two threads where the workers of cached's layout
 * are. cached and numa: prepared runs of two workers on the same data with these protocols (numa with two groups).
 */
int mw_scaling_calibrate(
	struct mw_run *cached, struct mw_run *numa, double seconds, struct mw_scaling *s, struct mw_err *err);

#endif
