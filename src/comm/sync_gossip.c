/* sync_gossip.c: own replicas; every round each becomes the weighted mean of its neighbours' (D-PSGD, any
 * graph). */
#include "comm/protocol_make.h"

#include <inttypes.h>

#include "base/mem.h"

/* Row i of the matrix as row i of the plan; src and weight: scratch for a row. */
static int add_matrix(struct mw_protocol *p, const struct mw_graph_matrix *w, uint32_t *src, double *weight,
	struct mw_err *err)
{
	struct mw_plan *plan;
	uint64_t links = w->first[p->rows];
	if (links > UINT32_MAX)
		MW_FAIL(err, USAGE,
			"graph %s with %" PRIu32 " workers has %" PRIu64
			" links: at most 4294967295 are possible",
			p->graph->spec, p->rows, links);
	MW_TRY(mw_make_plan(p, p->rows, (uint32_t)links, &plan, err));
	for (uint32_t i = 0; i < p->rows; i++) {
		uint32_t n = 0;
		for (uint64_t k = w->first[i]; k < w->first[i + 1]; k++, n++) {
			src[n] = w->entry[k].to;
			weight[n] = w->entry[k].weight;
		}
		mw_plan_add_row(plan, i, n, src, weight);
	}
	mw_make_append(p, 0, plan);
	return MW_OK;
}

int mw_make_sync_gossip(struct mw_protocol *p, struct mw_err *err)
{
	const struct mw_graph *g = p->graph;
	MW_TRY(mw_make_rows(p, p->workers, err));
	mw_make_own_rows(p, 0, 1);
	MW_TRY(mw_graph_stationary(g, p->pi, err));
	p->clock = MW_CLOCK_ROUND;
	MW_TRY(mw_make_slots(p, 1, err));
	MW_TRY(mw_make_list(p, 0, g->period, err));
	uint32_t *src = mw_alloc_array(g->n, sizeof(*src), "gossip plan", err);
	double *weight = mw_alloc_array(g->n, sizeof(*weight), "gossip plan", err);
	int rc = src && weight ? MW_OK : MW_ERESOURCE;
	for (uint32_t t = 0; t < g->period && rc == MW_OK; t++)
		rc = add_matrix(p, &g->w[t], src, weight, err);
	mw_free(src);
	mw_free(weight);
	return rc;
}

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	(void)options;
	(void)c;
	return mw_make_sync_gossip(p, err);
}

const struct mw_protocol_ops mw_protocol_sync_gossip = {
	.name = "sync-gossip",
	.summary = "own replicas, averaged with the neighbours on a graph every round (D-PSGD)",
	.default_graph = "ring",
	.default_access = "racy",
	.setup = setup,
};
