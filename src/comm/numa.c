/*
 * numa.c: one replica a NUMA node, shared by its workers; all are averaged every k own steps of a node's
 * first worker (DimmWitted's PerNode replication: Zhang, Re 2014; theory.md 1.2d). The average is one plan
 * over all nodes, since each node averaging its own row in turn would not keep the mean.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/mem.h"
#include "comm/protocol_make.h"

struct options {
	int64_t groups, every;
};

static const struct mw_option table[] = {
	{ "groups", MW_OPT_INT, offsetof(struct options, groups), "0", 0, 1e9, NULL, "G",
		"Groups of workers that share a replica; 0: one a worker (token-ring), one a NUMA node "
		"(numa)." },
	{ "average-every", MW_OPT_INT, offsetof(struct options, every), "1024", 1, 1e12, NULL, "K",
		"Own steps of a node's first worker from one averaging of all nodes to the next." },
	{ 0 },
};

/* Wire every worker to its node's row; rows are numbered as nodes first appear, so that none is empty. */
static uint32_t wire(struct mw_protocol *p, uint32_t nodes, bool blocks, uint32_t *row_of,
	const struct mw_protocol_config *c)
{
	uint32_t rows = 0;
	for (uint32_t g = 0; g < nodes; g++)
		row_of[g] = MW_NO_ROW;
	for (uint32_t w = 0; w < c->workers; w++) {
		uint32_t node = c->worker_node ? c->worker_node[w] : 0;
		if (blocks)
			node = (uint32_t)((uint64_t)w * nodes / c->workers);
		assert(node < nodes);
		if (row_of[node] == MW_NO_ROW) {
			p->row_worker[rows] = w;
			row_of[node] = rows++;
		}
		p->view_row[w] = p->push_row[w] = row_of[node];
	}
	return rows;
}

static int make_plans(struct mw_protocol *p, struct mw_err *err)
{
	struct mw_plan *plan;
	MW_TRY(mw_make_slots(p, p->workers, err));
	if (p->rows == 1) /* nothing to average: all lists stay empty */
		return MW_OK;
	MW_TRY(mw_make_mean(p, &plan, err));
	for (uint32_t r = 0; r < p->rows; r++)
		MW_TRY(mw_make_only(p, p->row_worker[r], plan, err));
	return MW_OK;
}

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	const struct options *o = options;
	uint32_t nodes = o->groups ? (uint32_t)o->groups : c->nodes ? c->nodes : 1;
	if (o->groups > c->workers)
		MW_FAIL(err, USAGE, "numa: %" PRId64 " groups need as many workers, but there are %" PRIu32,
			o->groups, c->workers);
	uint32_t *row_of = mw_alloc_array(nodes, sizeof(*row_of), "node rows", err);
	int rc = row_of ? mw_make_rows(p, nodes, err) : MW_ERESOURCE;
	if (rc == MW_OK)
		p->rows = wire(p, nodes, o->groups > 0, row_of, c);
	mw_free(row_of);
	MW_TRY(rc);
	mw_make_uniform_pi(p);
	p->mix_every = o->every;
	return make_plans(p, err);
}

const struct mw_protocol_ops mw_protocol_numa = {
	.name = "numa",
	.summary = "a replica per NUMA node, averaged every K steps",
	.default_access = "racy",
	.options = table,
	.option_size = sizeof(struct options),
	.setup = setup,
};
