/* optimize.h: the optimizer on a dense model's parameters: what it must leave alone is the model's say. */
#ifndef MW_RUN_OPTIMIZE_H
#define MW_RUN_OPTIMIZE_H

#include "run/run.h"

/* Fill run->span from the model's slices. */
int mw_spans_init(struct mw_run *run, struct mw_err *err);
/*
 * Turn the gradient d into a delta, in place, on coordinates [from, to): spans without weight decay are given no x, and
 * beyond model->trained the delta is -d. state, x, d: whole arrays; state and x may be NULL as the optimizer allows.
 */
void mw_optimize_dense(const struct mw_run *run, const struct mw_step *s, float *state, const float *x,
	float *d, size_t from, size_t to);
/* Floats of a state; a sparse model's are records (optim.h). */
size_t mw_state_floats(const struct mw_run *run);

#endif
