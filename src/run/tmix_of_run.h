/* tmix_of_run.h: the exact mixing time of the protocol that a run executed, beside what was observed. */
#ifndef MW_RUN_TMIX_OF_RUN_H
#define MW_RUN_TMIX_OF_RUN_H

#include "mixing/exact.h"
#include "run/run.h"

/*
 * Fill run->t_mix: {exact: {value, target, unit, error, reason}, ...} for the run's protocol and knobs. A value that does
 * not exist, or costs more than about a second, is null with the reason.
 */
void mw_tmix_of_run(struct mw_run *run);
/* The exact value alone, at the cost of about `work` operations. An injected staleness that is no constant counts as 0. */
int mw_tmix_exact(const struct mw_run *run, double work, struct mw_mixing_result *r, struct mw_err *err);
/* The same in a norm of choice, with S1 and S2. */
int mw_tmix_exact_norm(const struct mw_run *run, enum mw_norm norm, double work, struct mw_mixing_result *r,
	struct mw_err *err);
/* With the views that workers hold: see exact.h. r: of mw_tmix_exact. */
int mw_tmix_view(const struct mw_run *run, double work, const struct mw_mixing_result *r,
	struct mw_mixing_view *v, struct mw_err *err);
/* One line of it for people. */
void mw_tmix_print(struct mw_run *run);

#endif
