/* local_sgd.c: every worker on its own replica, all averaged every H rounds (theory.md 1.2g). */
#include "comm/protocol_make.h"

struct options {
	int64_t period;
};

static const struct mw_option table[] = {
	{ "period", MW_OPT_INT, offsetof(struct options, period), "16", 1, 1e12, NULL, "H",
		"Rounds from one averaging to the next." },
	{ 0 },
};

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	const struct options *o = options;
	struct mw_plan *plan;
	MW_TRY(mw_make_rows(p, c->workers, err));
	mw_make_own_rows(p, 0, 1);
	mw_make_uniform_pi(p);
	p->clock = MW_CLOCK_ROUND;
	p->mix_every = o->period;
	MW_TRY(mw_make_slots(p, 1, err));
	MW_TRY(mw_make_mean(p, &plan, err));
	return mw_make_only(p, 0, plan, err);
}

const struct mw_protocol_ops mw_protocol_local_sgd = {
	.name = "local-sgd",
	.summary = "own replicas, averaged every H rounds",
	.default_access = "racy",
	.options = table,
	.option_size = sizeof(struct options),
	.setup = setup,
};
