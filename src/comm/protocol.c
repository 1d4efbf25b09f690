/* protocol.c: protocols from their setup functions, and the parts that these are built from; see protocol.h.
 */
#include "comm/protocol.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "comm/protocol_make.h"

int mw_make_rows(struct mw_protocol *p, uint32_t rows, struct mw_err *err)
{
	p->rows = rows;
	p->view_row = mw_alloc_array(p->workers, sizeof(*p->view_row), "view rows", err);
	p->push_row = mw_alloc_array(p->workers, sizeof(*p->push_row), "push rows", err);
	p->row_worker = mw_alloc_array(rows, sizeof(*p->row_worker), "row places", err);
	p->row_owner = mw_alloc_array(rows, sizeof(*p->row_owner), "row owners", err);
	p->pi = mw_alloc_array(rows, sizeof(*p->pi), "fixed vector", err);
	if (!p->view_row || !p->push_row || !p->row_worker || !p->row_owner || !p->pi)
		return MW_ERESOURCE;
	for (uint32_t r = 0; r < rows; r++)
		p->row_worker[r] = MW_NO_ROW;
	return MW_OK;
}

void mw_make_own_rows(struct mw_protocol *p, uint32_t first, uint32_t step)
{
	for (uint32_t w = 0; w < p->workers; w++) {
		p->view_row[w] = p->push_row[w] = first + w * step;
		p->row_worker[first + w * step] = w;
	}
}

void mw_make_uniform_pi(struct mw_protocol *p)
{
	for (uint32_t r = 0; r < p->rows; r++)
		p->pi[r] = 1. / p->rows;
}

int mw_make_slots(struct mw_protocol *p, uint32_t n_slots, struct mw_err *err)
{
	p->slot = mw_alloc_array(n_slots, sizeof(*p->slot), "plan slots", err);
	if (!p->slot)
		return MW_ERESOURCE;
	p->n_slots = n_slots;
	return MW_OK;
}

int mw_make_list(struct mw_protocol *p, uint32_t slot, uint32_t capacity, struct mw_err *err)
{
	p->slot[slot].plan = mw_alloc_array(capacity, sizeof(*p->slot[slot].plan), "plan list", err);
	return p->slot[slot].plan ? MW_OK : MW_ERESOURCE;
}

int mw_make_plan(
	struct mw_protocol *p, uint32_t n_rows, uint32_t n_src, struct mw_plan **out, struct mw_err *err)
{
	if (p->n_all == p->all_capacity) {
		uint32_t capacity = p->all_capacity ? 2 * p->all_capacity : 16;
		struct mw_plan **all = realloc(p->all, capacity * sizeof(*all));
		if (!all)
			MW_FAIL(err, RESOURCE, "out of memory: more than %" PRIu32 " mixing plans", p->n_all);
		p->all = all;
		p->all_capacity = capacity;
	}
	MW_TRY(mw_plan_new(n_rows, n_src, out, err));
	p->all[p->n_all++] = *out;
	return MW_OK;
}

void mw_make_append(struct mw_protocol *p, uint32_t slot, struct mw_plan *plan)
{
	p->slot[slot].plan[p->slot[slot].n++] = plan;
}

int mw_make_only(struct mw_protocol *p, uint32_t slot, struct mw_plan *plan, struct mw_err *err)
{
	MW_TRY(mw_make_list(p, slot, 1, err));
	mw_make_append(p, slot, plan);
	return MW_OK;
}

int mw_make_copies(struct mw_protocol *p, uint32_t from, uint32_t to, uint32_t n, struct mw_plan **out,
	struct mw_err *err)
{
	const double one = 1;
	MW_TRY(mw_make_plan(p, n, n, out, err));
	for (uint32_t i = 0; i < n; i++)
		mw_plan_add_row(*out, to + i, 1, &from, &one);
	return MW_OK;
}

int mw_make_mean(struct mw_protocol *p, struct mw_plan **out, struct mw_err *err)
{
	uint32_t n = p->rows;
	if ((uint64_t)n * n > UINT32_MAX)
		MW_FAIL(err, USAGE, "the mean of %" PRIu32 " replicas is too large a plan: use at most 65535",
			n);
	MW_TRY(mw_make_plan(p, n, n * n, out, err));
	uint32_t *src = mw_alloc_array(n, sizeof(*src), "mean plan", err);
	double *weight = mw_alloc_array(n, sizeof(*weight), "mean plan", err);
	for (uint32_t i = 0; src && weight && i < n; i++) {
		src[i] = i;
		weight[i] = 1. / n;
	}
	for (uint32_t i = 0; src && weight && i < n; i++)
		mw_plan_add_row(*out, i, n, src, weight);
	int rc = src && weight ? MW_OK : MW_ERESOURCE;
	mw_free(src);
	mw_free(weight);
	return rc;
}

int mw_make_triple(struct mw_protocol *p, uint32_t server, uint32_t copy, uint32_t base, struct mw_plan **out,
	struct mw_err *err)
{
	const uint32_t src[3] = { server, copy, base };
	const double weight[3] = { 1, 1, -1 };
	MW_TRY(mw_make_plan(p, 3, 9, out, err));
	for (int r = 0; r < 3; r++)
		mw_plan_add_row(*out, src[r], 3, src, weight);
	return MW_OK;
}

int mw_make_server(struct mw_protocol *p, struct mw_err *err)
{
	MW_TRY(mw_make_rows(p, p->workers + 1, err));
	mw_make_own_rows(p, 1, 1);
	for (uint32_t w = 0; w < p->workers; w++)
		p->push_row[w] = 0;
	p->pi[0] = 1;
	return MW_OK;
}

int mw_make_server_refresh(struct mw_protocol *p, struct mw_err *err)
{
	MW_TRY(mw_make_server(p, err));
	MW_TRY(mw_make_slots(p, p->workers, err));
	for (uint32_t w = 0; w < p->workers; w++) {
		struct mw_plan *plan;
		MW_TRY(mw_make_copies(p, 0, 1 + w, 1, &plan, err));
		MW_TRY(mw_make_only(p, w, plan, err));
	}
	return MW_OK;
}

#define NOBODY (MW_NO_ROW - 1) /* not touched yet */

static void touch(struct mw_protocol *p, uint32_t row, uint32_t worker)
{
	uint32_t *owner = &p->row_owner[row];
	assert(row < p->rows);
	*owner = *owner == NOBODY || *owner == worker ? worker : MW_NO_ROW;
}

static void touch_plan(struct mw_protocol *p, const struct mw_plan *plan, uint32_t worker)
{
	for (uint32_t r = 0; r < plan->n_rows; r++)
		touch(p, plan->row[r].dst, worker);
	for (uint32_t k = 0; k < plan->n_src; k++)
		touch(p, plan->src[k], worker);
}

static void find_owners(struct mw_protocol *p)
{
	for (uint32_t r = 0; r < p->rows; r++)
		p->row_owner[r] = NOBODY;
	for (uint32_t w = 0; w < p->workers; w++) {
		touch(p, p->view_row[w], w);
		touch(p, p->push_row[w], w);
		if (p->push2_row)
			touch(p, p->push2_row[w], w);
		for (uint32_t k = 0; p->clock == MW_CLOCK_EVENT && p->n_slots && k < p->slot[w].n; k++)
			touch_plan(p, p->slot[w].plan[k], w);
	}
	for (uint32_t r = 0; r < p->rows; r++)
		if (p->row_owner[r] == NOBODY)
			p->row_owner[r] = MW_NO_ROW;
}

/* Run setup with the given options, or with the defaults of the table. */
static int set_up(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	const struct mw_protocol_ops *ops = p->ops;
	struct mw_options set;
	if (options || !ops->options)
		return ops->setup(p, options, c, err);
	void *defaults = mw_alloc(ops->option_size, "protocol options", err);
	if (!defaults)
		return MW_ERESOURCE;
	struct mw_option_group group = { "Protocol", NULL, ops->options, defaults };
	int rc = mw_options_init(&set, &group, 1, err);
	if (rc == MW_OK) {
		rc = ops->setup(p, defaults, c, err);
		mw_options_fini(&set);
	}
	mw_free(defaults);
	return rc;
}

int mw_protocol_new(const struct mw_protocol_ops *ops, const void *options,
	const struct mw_protocol_config *c, struct mw_protocol **out, struct mw_err *err)
{
	*out = NULL;
	if (!c->workers || c->workers >= MW_NO_ROW / 4)
		MW_FAIL(err, USAGE, "protocol %s: %" PRIu32 " workers are out of range", ops->name,
			c->workers);
	if (ops->default_graph && (!c->graph || c->graph->n != c->workers))
		MW_FAIL(err, INTERNAL, "protocol %s: a graph with one node a worker is needed", ops->name);
	struct mw_protocol *p = mw_alloc(sizeof(*p), "protocol", err);
	if (!p)
		return MW_ERESOURCE;
	p->ops = ops;
	p->workers = c->workers;
	p->push_weight = 1;
	p->mix_every = 1;
	p->ssp_bound = -1;
	p->graph = ops->default_graph ? c->graph : NULL;
	int rc = set_up(p, options, c, err);
	if (rc != MW_OK) {
		mw_protocol_free(p);
		return rc;
	}
	find_owners(p);
	*out = p;
	return MW_OK;
}

void mw_protocol_free(struct mw_protocol *p)
{
	if (!p)
		return;
	for (uint32_t k = 0; k < p->n_all; k++)
		mw_plan_free(p->all[k]);
	for (uint32_t s = 0; s < p->n_slots; s++)
		mw_free(p->slot[s].plan);
	free(p->all);
	mw_free(p->slot);
	mw_free(p->view_row);
	mw_free(p->push_row);
	mw_free(p->push2_row);
	mw_free(p->row_worker);
	mw_free(p->row_owner);
	mw_free(p->pi);
	mw_free(p);
}
