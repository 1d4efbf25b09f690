/*
 * async_gossip.c: own replicas; after a step a worker and one of its neighbours both become their average
 * (AD-PSGD: Lian, Zhang, Zhang, Liu 2018; theory.md 1.2f). Only the graph's edges matter, not its weights.
 */
#include "comm/protocol_make.h"

#include <stdlib.h>

#include "base/mem.h"

const struct mw_option mw_pair_option_table[] = {
	{ "pair-order", MW_OPT_CHOICE, offsetof(struct mw_pair_options, order), "auto", 0, 0,
		"auto|random|cyclic", NULL,
		"How a worker picks the neighbour to average with: at random, or in turn, nearest higher "
		"number first. "
		"auto: in turn when workers are activated in turn, at random otherwise." },
	{ 0 },
};

/* An edge as its two ends see it. */
struct end {
	uint32_t worker, hop; /* hop: (neighbour - worker) mod n */
	struct mw_plan *plan;
};

static int compare_ends(const void *pa, const void *pb)
{
	const struct end *a = pa, *b = pb;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return a->hop == b->hop ? 0 : a->hop < b->hop ? -1 : 1;
}

static int make_pair(struct mw_protocol *p, uint32_t i, uint32_t j, struct mw_plan **out, struct mw_err *err)
{
	const uint32_t both[2] = { i, j };
	const double half[2] = { .5, .5 };
	MW_TRY(mw_make_plan(p, 2, 4, out, err));
	mw_plan_add_row(*out, i, 2, both, half);
	mw_plan_add_row(*out, j, 2, both, half);
	return MW_OK;
}

static int make_ends(struct mw_protocol *p, struct end *end, struct mw_err *err)
{
	uint32_t n = p->workers;
	for (uint64_t e = 0; e < p->graph->n_edges; e++) {
		uint32_t i = p->graph->edge[e][0], j = p->graph->edge[e][1];
		struct mw_plan *plan;
		MW_TRY(make_pair(p, i, j, &plan, err));
		end[2 * e] = (struct end){ i, j - i, plan };
		end[2 * e + 1] = (struct end){ j, i + n - j, plan };
	}
	return MW_OK;
}

static int make_lists(struct mw_protocol *p, struct end *end, struct mw_err *err)
{
	uint64_t at = 0, n_ends = 2 * p->graph->n_edges;
	qsort(end, n_ends, sizeof(*end), compare_ends);
	for (uint32_t w = 0; w < p->workers; w++) {
		uint64_t first = at;
		while (at < n_ends && end[at].worker == w)
			at++;
		MW_TRY(mw_make_list(p, w, (uint32_t)(at - first), err));
		for (uint64_t k = first; k < at; k++)
			mw_make_append(p, w, end[k].plan);
	}
	return MW_OK;
}

int mw_make_async_gossip(
	struct mw_protocol *p, const struct mw_pair_options *o, bool random_edges, struct mw_err *err)
{
	MW_TRY(mw_make_rows(p, p->workers, err));
	mw_make_own_rows(p, 0, 1);
	mw_make_uniform_pi(p);
	p->pick = o->order == 1 || (o->order == 0 && random_edges) ? MW_PICK_RANDOM : MW_PICK_CYCLIC;
	MW_TRY(mw_make_slots(p, p->workers, err));
	struct end *end = mw_alloc_array(2 * p->graph->n_edges, sizeof(*end), "gossip pairs", err);
	int rc = end ? make_ends(p, end, err) : MW_ERESOURCE;
	if (rc == MW_OK)
		rc = make_lists(p, end, err);
	mw_free(end);
	return rc;
}

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	return mw_make_async_gossip(p, options, c->random_edges, err);
}

const struct mw_protocol_ops mw_protocol_async_gossip = {
	.name = "async-gossip",
	.summary = "own replicas, averaged pairwise along a graph's edges (AD-PSGD)",
	.default_graph = "ring",
	.default_access = "locked",
	.options = mw_pair_option_table,
	.option_size = sizeof(struct mw_pair_options),
	.setup = setup,
};
