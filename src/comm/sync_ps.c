/* sync_ps.c: parameter server under a barrier: all gradients of a round are averaged, then all copies are
 * renewed. */
#include "comm/protocol_make.h"

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	struct mw_plan *plan;
	(void)options;
	MW_TRY(mw_make_server(p, err));
	p->clock = MW_CLOCK_ROUND;
	p->push_weight = 1. / c->workers;
	MW_TRY(mw_make_slots(p, 1, err));
	MW_TRY(mw_make_copies(p, 0, 1, c->workers, &plan, err));
	return mw_make_only(p, 0, plan, err);
}

const struct mw_protocol_ops mw_protocol_sync_ps = {
	.name = "sync-ps",
	.summary = "parameter server, one averaged step a round",
	.default_access = "atomic",
	.setup = setup,
};
