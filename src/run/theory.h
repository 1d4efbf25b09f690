/*
 * theory.h: the theorems of theory.md section 5 for the run at hand: which of them its protocol, order of exchanges and
 * optimizer fall under, with constants estimated from the data, and bound beside measured gradient.
 *
 * L is that of the objective: the largest second derivative of the loss in the margin times the largest eigenvalue of
 * (1/n) sum a a^T, by power iteration (softmax: 1/2 of it; quad: its largest curvature), plus the penalty. Other models
 * have none. sigma^2 and zeta^2 are the largest seen at the points at which the run was evaluated. Delta: losses are at
 * least 0; quad: exact.
 */
#ifndef MW_RUN_THEORY_H
#define MW_RUN_THEORY_H

#include <jansson.h>

#include "mixing/bound.h"
#include "run/run.h"

struct mw_theory;

/*
 * L of the run's objective on its training rows, at the cost of about `work` operations: beyond that, from every so many
 * rows. With --data-place shard: the largest over the workers' own parts. NAN: not known for this model. Err: RESOURCE.
 */
int mw_smoothness(struct mw_run *run, double work, double *l, struct mw_err *err);
/*
 * The same where training begins: all classes of softmax equally likely (1/classes instead of 1/2); and 1 for a hinge, whose
 * second derivative is 0 or infinite.
 */
int mw_typical_curvature(struct mw_run *run, double work, double *l, struct mw_err *err);
/* G: no coordinate of any example's gradient is larger; NAN: there is no such limit. */
double mw_gradient_limit(struct mw_run *run);

/* --bound: USAGE where it can't be had. run->theory stays NULL without --bound. Before workers exist. */
int mw_theory_new(struct mw_run *run, struct mw_err *err);
void mw_theory_free(struct mw_theory *t);
/* After every evaluation, while workers rest: constants and the mean of |grad f|^2. */
int mw_theory_evaluated(struct mw_run *run, const struct mw_evaluation *e, struct mw_err *err);
/*
 * The mean of |grad f|^2 is by trapezoids between evaluations: let there be many while it falls fast.
 * {theorem, bound, measured, ratio, step, step_max, admissible, steps, L, sigma2, zeta2, delta, t_mix or tau_avg and
 * tau_max, reason}: numbers are null where the reason says why.
 */
json_t *mw_theory_json(struct mw_run *run);

/*
 * For every run, after it: the step that the theory admits, and whether the run's is larger; nothing where no theorem
 * covers the run or L is not known.
 */
void mw_theory_print(struct mw_run *run);

#endif
