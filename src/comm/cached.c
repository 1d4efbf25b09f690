/*
 * cached.c: every worker on a private copy; every k own steps what it added since the last time (copy - base)
 * goes into the server, and copy and base become the server. Rows: server 0; worker w: copy 1 + 2w, base 2 +
 * 2w. The virtual average is the server plus all that is pending.
 */
#include "comm/protocol_make.h"

struct options {
	int64_t every;
	double hot;
};

static const struct mw_option table[] = {
	{ "merge-every", MW_OPT_INT, offsetof(struct options, every), "2048", 1, 1e12, NULL, "K",
		"Own steps of a worker from one merge to the next." },
	{ "hot", MW_OPT_FLOAT, offsetof(struct options, hot), "0", 0, 4e9, NULL, "N",
		"Sparse rows: copy and merge the N most popular columns only (a share below 1: those that "
		"hold it of "
		"all non-zeros), and share the others at once; 0: copy all." },
	{ 0 },
};

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	const struct options *o = options;
	MW_TRY(mw_make_rows(p, 1 + 2 * c->workers, err));
	mw_make_own_rows(p, 1, 2);
	MW_TRY(mw_make_slots(p, c->workers, err));
	p->pi[0] = 1;
	for (uint32_t w = 0; w < c->workers; w++) {
		uint32_t copy = 1 + 2 * w, base = 2 + 2 * w;
		struct mw_plan *plan;
		p->row_worker[base] = w;
		p->pi[copy] = 1;
		p->pi[base] = -1;
		MW_TRY(mw_make_triple(p, 0, copy, base, &plan, err));
		MW_TRY(mw_make_only(p, w, plan, err));
	}
	p->mix_every = o->every;
	p->hot = o->hot;
	p->signed_plan = p->merge = true;
	return MW_OK;
}

const struct mw_protocol_ops mw_protocol_cached = {
	.name = "cached",
	.summary = "private copies whose changes are merged into a shared one every K steps",
	.default_access = "locked",
	.options = table,
	.option_size = sizeof(struct options),
	.setup = setup,
};
