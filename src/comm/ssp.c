/*
 * ssp.c: stale synchronous parallel parameter server (Ho et al. 2013; theory.md 1.2i). A worker goes on with
 * its cached copy, which holds all its own updates, while that copy is sure to have everybody's updates up to
 * its own clock minus the bound; then it fetches, and waits at the gate if the slowest worker is further
 * behind than that.
 */
#include "base/mem.h"
#include "comm/protocol_make.h"

struct options {
	int64_t bound;
};

static const struct mw_option table[] = {
	{ "ssp-bound", MW_OPT_INT, offsetof(struct options, bound), "4", 0, 1e9, NULL, "S",
		"How many steps a worker may lead the slowest one by." },
	{ 0 },
};

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	const struct options *o = options;
	MW_TRY(mw_make_server_refresh(p, err));
	p->push2_row = mw_alloc_array(c->workers, sizeof(*p->push2_row), "push rows", err);
	if (!p->push2_row)
		return MW_ERESOURCE;
	for (uint32_t w = 0; w < c->workers; w++)
		p->push2_row[w] = p->view_row[w];
	p->due = MW_DUE_SSP;
	p->ssp_bound = o->bound;
	return MW_OK;
}

const struct mw_protocol_ops mw_protocol_ssp = {
	.name = "ssp",
	.summary = "parameter server with bounded staleness",
	.default_access = "atomic",
	.options = table,
	.option_size = sizeof(struct options),
	.setup = setup,
};
