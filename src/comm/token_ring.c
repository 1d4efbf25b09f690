/*
 * token_ring.c: groups of workers, one replica each, in a ring; the group that holds the token puts its
 * change into it, takes the token's value and passes it on (HOGWILD++: Zhang, Hsieh, Akella 2016;
 * theory.md 1.2h). Rows: token 0; group g: copy 1 + 2g, base (the copy at its last turn) 2 + 2g. The virtual
 * average is the token plus all that is pending.
 */
#include <inttypes.h>

#include "comm/protocol_make.h"

struct options {
	int64_t groups, hop_every;
};

static const struct mw_option table[] = {
	{ "groups", MW_OPT_INT, offsetof(struct options, groups), "0", 0, 1e9, NULL, "G",
		"Groups of workers that share a replica; 0: one a worker (token-ring), one a NUMA node "
		"(numa)." },
	{ "hop-every", MW_OPT_INT, offsetof(struct options, hop_every), "64", 1, 1e12, NULL, "H",
		"Own steps of the worker that holds the token before it passes it on." },
	{ 0 },
};

/* The workers of a group share its plan; whichever comes first when the token is there carries it out. */
static int make_group(struct mw_protocol *p, uint32_t g, struct mw_err *err)
{
	uint32_t copy = 1 + 2 * g, base = 2 + 2 * g;
	struct mw_plan *plan;
	MW_TRY(mw_make_triple(p, 0, copy, base, &plan, err));
	p->row_worker[copy] = p->row_worker[base] = g;
	p->pi[copy] = 1;
	p->pi[base] = -1;
	for (uint32_t w = g; w < p->workers; w += p->groups) {
		p->view_row[w] = p->push_row[w] = copy;
		MW_TRY(mw_make_only(p, w, plan, err));
	}
	return MW_OK;
}

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	const struct options *o = options;
	if (o->groups > c->workers)
		MW_FAIL(err, USAGE,
			"token-ring: %" PRId64 " groups need as many workers, but there are %" PRIu32,
			o->groups, c->workers);
	p->groups = o->groups ? (uint32_t)o->groups : c->workers;
	MW_TRY(mw_make_rows(p, 1 + 2 * p->groups, err));
	MW_TRY(mw_make_slots(p, c->workers, err));
	p->pi[0] = 1;
	for (uint32_t g = 0; g < p->groups; g++)
		MW_TRY(make_group(p, g, err));
	p->mix_every = o->hop_every;
	p->due = MW_DUE_TOKEN;
	p->signed_plan = p->merge = true;
	return MW_OK;
}

const struct mw_protocol_ops mw_protocol_token_ring = {
	.name = "token-ring",
	.summary = "group replicas whose changes travel with a token (HOGWILD++ family)",
	.default_access = "racy",
	.options = table,
	.option_size = sizeof(struct options),
	.setup = setup,
};
