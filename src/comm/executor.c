/* executor.c: see executor.h. */
#include "comm/executor.h"

#include <assert.h>
#include <string.h>

#include "base/kernel.h"
#include "base/mem.h"
#include "comm/access.h"
#include "comm/merge.h"

#define BLOCK             256 /* floats: a row's block stays in L1 with its sources */
#define STRIPES           32
#define STRIPE_FLOATS_MIN 1024 /* a lock costs as much as merging about a hundred floats */

enum kind {
	KIND_COPY,   /* every row is one source with weight 1 that no row of the plan writes */
	KIND_MERGE,  /* (server, copy, base): server += copy - base; copy, base := server */
	KIND_SHARED, /* every row is the same weighted sum (mean of all) */
	KIND_GENERAL,
};

struct mw_compiled {
	const struct mw_plan *plan;
	enum kind kind;
	uint32_t n_touch, *touch; /* rows read or written, increasing: the locking order */
	uint32_t *at;             /* where in touch: the destination of each row, then each source */
};

static bool writes_row(const struct mw_plan *plan, uint32_t row)
{
	for (uint32_t i = 0; i < plan->n_rows; i++)
		if (plan->row[i].dst == row)
			return true;
	return false;
}

static bool is_copy(const struct mw_plan *plan)
{
	for (uint32_t i = 0; i < plan->n_rows; i++) {
		const struct mw_plan_row *row = &plan->row[i];
		if (row->n != 1 || plan->weight[row->first] != 1 || writes_row(plan, plan->src[row->first]))
			return false;
	}
	return true;
}

static bool is_shared(const struct mw_plan *plan)
{
	const struct mw_plan_row *a = &plan->row[0];
	for (uint32_t i = 1; i < plan->n_rows; i++) {
		const struct mw_plan_row *b = &plan->row[i];
		if (b->n != a->n ||
			memcmp(&plan->src[a->first], &plan->src[b->first], a->n * sizeof(*plan->src)) ||
			memcmp(&plan->weight[a->first], &plan->weight[b->first],
				a->n * sizeof(*plan->weight)))
			return false;
	}
	return plan->n_rows > 1;
}

static uint32_t position(const struct mw_compiled *c, uint32_t row)
{
	uint32_t lo = 0, hi = c->n_touch - 1;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->touch[mid] < row)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int compile(
	struct mw_compiled *c, const struct mw_plan *plan, bool merge, uint32_t rows, struct mw_err *err)
{
	c->plan = plan;
	c->kind = merge && plan->n_rows == 3 ? KIND_MERGE
		  : is_copy(plan)            ? KIND_COPY
		  : is_shared(plan)          ? KIND_SHARED
					     : KIND_GENERAL;
	uint8_t *seen = mw_alloc(rows, "a plan's rows", err);
	if (!seen)
		return err->code;
	for (uint32_t i = 0; i < plan->n_rows; i++)
		seen[plan->row[i].dst] = 1;
	for (uint32_t i = 0; i < plan->n_src; i++)
		seen[plan->src[i]] = 1;
	for (uint32_t i = 0; i < rows; i++)
		c->n_touch += seen[i];
	c->touch = mw_alloc_array(c->n_touch, sizeof(*c->touch), "a plan's rows", err);
	c->at = mw_alloc_array((size_t)plan->n_rows + plan->n_src, sizeof(*c->at), "a plan's rows", err);
	if (c->touch && c->at) {
		for (uint32_t i = 0, k = 0; i < rows; i++)
			if (seen[i])
				c->touch[k++] = i;
		for (uint32_t i = 0; i < plan->n_rows; i++)
			c->at[i] = position(c, plan->row[i].dst);
		for (uint32_t i = 0; i < plan->n_src; i++)
			c->at[plan->n_rows + i] = position(c, plan->src[i]);
	}
	mw_free(seen);
	return c->touch && c->at ? 0 : err->code;
}

int mw_executor_init(struct mw_executor *e, struct mw_replicas *r, const struct mw_protocol *p,
	enum mw_mix_form form, enum mw_precision precision, struct mw_err *err)
{
	*e = (struct mw_executor){ .r = r, .p = p, .form = form, .precision = precision };
	e->stripe_floats = (r->dim / STRIPES + STRIPE_FLOATS_MIN) / STRIPE_FLOATS_MIN * STRIPE_FLOATS_MIN;
	e->n_stripes = (uint32_t)((r->stride + e->stripe_floats - 1) / e->stripe_floats);
	e->stripe = mw_alloc_array(e->n_stripes, sizeof(*e->stripe), "stripe locks", err);
	if (!e->stripe)
		return err->code;
	e->slot = mw_alloc_array(p->n_slots, sizeof(*e->slot), "compiled plans", err);
	if (!e->slot)
		return err->code;
	for (uint32_t s = 0; s < p->n_slots; s++) {
		const struct mw_plan_list *list = &p->slot[s];
		e->slot[s] = mw_alloc_array(list->n, sizeof(**e->slot), "compiled plans", err);
		if (!e->slot[s])
			return err->code;
		for (uint32_t c = 0; c < list->n; c++) {
			MW_TRY(compile(&e->slot[s][c], list->plan[c], p->merge, p->rows, err));
			if (list->plan[c]->n_rows > e->max_rows)
				e->max_rows = list->plan[c]->n_rows;
			if (e->slot[s][c].n_touch > e->max_touch)
				e->max_touch = e->slot[s][c].n_touch;
		}
	}
	return 0;
}

void mw_executor_fini(struct mw_executor *e)
{
	for (uint32_t s = 0; e->slot && s < e->p->n_slots; s++) {
		for (uint32_t c = 0; e->slot[s] && c < e->p->slot[s].n; c++) {
			mw_free(e->slot[s][c].touch);
			mw_free(e->slot[s][c].at);
		}
		mw_free(e->slot[s]);
	}
	mw_free(e->slot);
	mw_free(e->stripe);
	*e = (struct mw_executor){ 0 };
}

int mw_exec_scratch_init(struct mw_exec_scratch *s, const struct mw_executor *e, struct mw_err *err)
{
	*s = (struct mw_exec_scratch){ 0 };
	if (!e->max_rows)
		return 0;
	s->u = mw_alloc_array((size_t)e->max_rows * BLOCK, sizeof(float), "the executor's scratch", err);
	s->y = mw_alloc_array((size_t)e->max_touch * BLOCK, sizeof(float), "the executor's scratch", err);
	if (!s->u || !s->y)
		return err->code;
	if (e->precision == MW_PRECISION_DOUBLE) {
		s->wide = mw_alloc_array(
			(size_t)e->max_rows * BLOCK, sizeof(double), "the executor's scratch", err);
		if (!s->wide)
			return err->code;
	}
	return 0;
}

void mw_exec_scratch_fini(struct mw_exec_scratch *s)
{
	mw_free(s->u);
	mw_free(s->y);
	mw_free(s->version);
	mw_free(s->wide);
	*s = (struct mw_exec_scratch){ 0 };
}

void mw_exec_touched(const struct mw_executor *e, uint32_t slot, uint32_t choice, const uint32_t **row,
	uint32_t *n, bool *written)
{
	const struct mw_compiled *c = &e->slot[slot][choice];
	*written = c->kind != KIND_COPY;
	*row = *written ? c->touch : &c->plan->src[c->plan->row[0].first];
	*n = *written ? c->n_touch : 1;
}

bool mw_exec_takes_push(const struct mw_executor *e, uint32_t slot, uint32_t row)
{
	if (e->form != MW_MIX_FUSED || slot >= e->p->n_slots || !e->p->slot[slot].n || e->p->merge)
		return false;
	for (uint32_t c = 0; c < e->p->slot[slot].n; c++)
		if (!writes_row(e->p->slot[slot].plan[c], row))
			return false;
	return true;
}

/* One block of one plan. */
struct block {
	const struct mw_executor *e;
	struct mw_exec_scratch *s;
	const struct mw_compiled *c;
	const struct mw_plan *plan; /* of c */
	size_t from, n;
	const struct mw_push *push;
	uint32_t n_push;
	double gamma;
	bool atomic; /* add by compare-and-swap */
};

static float *row_x(const struct block *b, uint32_t row)
{
	return b->e->r->row[row].x + b->from;
}

/* y := row + the pushes that go into it: the value that the exchange sees. */
static void load(const struct block *b, uint32_t row, float *y)
{
	mw_kernels()->view(row_x(b, row), y, b->n);
	for (uint32_t k = 0; k < b->n_push; k++)
		if (b->push[k].row == row)
			for (size_t j = 0; j < b->n; j++)
				y[j] += b->push[k].weight * b->push[k].delta[b->from + j];
}

/*
 * Every row that the plan touches is read once, and all changes are computed from these values: read twice, a row could
 * have changed in between, and what the exchange adds would not sum to zero.
 */
static void load_all(const struct block *b)
{
	for (uint32_t i = 0; i < b->c->n_touch; i++)
		load(b, b->c->touch[i], b->s->y + (size_t)i * BLOCK);
}

static const float *dst_y(const struct block *b, uint32_t i)
{
	return b->s->y + (size_t)b->c->at[i] * BLOCK;
}

static const float *src_y(const struct block *b, uint32_t k)
{
	return b->s->y + (size_t)b->c->at[b->plan->n_rows + k] * BLOCK;
}

/* u := gamma sum_j W_ij (y_j - y_i) for row i of the plan */
static void exchange_row(const struct block *b, uint32_t i, float *u)
{
	const struct mw_plan_row *row = &b->plan->row[i];
	const float *yi = dst_y(b, i);
	memset(u, 0, b->n * sizeof(*u));
	for (uint32_t k = row->first; k < row->first + row->n; k++) {
		const float *yj = src_y(b, k);
		if (yj == yi && b->plan->weight[k] >= 0)
			continue; /* y_i - y_i */
		float w = (float)(b->gamma * b->plan->weight[k]);
		for (size_t j = 0; j < b->n; j++)
			u[j] += w * (yj[j] - yi[j]);
	}
}

/* The same for plans whose rows are all one weighted sum: it is formed once, relative to the first source. */
static void exchange_shared(const struct block *b, float *u)
{
	const struct mw_plan_row *row = &b->plan->row[0];
	const float *y0 = src_y(b, row->first);
	float sum[BLOCK];
	memset(sum, 0, sizeof(sum));
	for (uint32_t k = row->first + 1; k < row->first + row->n; k++) {
		const float *y = src_y(b, k);
		float w = (float)b->plan->weight[k];
		for (size_t j = 0; j < b->n; j++)
			sum[j] += w * (y[j] - y0[j]);
	}
	for (uint32_t i = 0; i < b->plan->n_rows; i++, u += BLOCK) {
		const float *y = dst_y(b, i);
		for (size_t j = 0; j < b->n; j++)
			u[j] = (float)b->gamma * ((y0[j] - y[j]) + sum[j]);
	}
}

/* Add the row's pushes to u, so that one rounding adds both. */
static void fuse_pushes(const struct block *b, uint32_t row, float *u)
{
	for (uint32_t k = 0; k < b->n_push; k++)
		if (b->push[k].row == row)
			for (size_t j = 0; j < b->n; j++)
				u[j] += b->push[k].weight * b->push[k].delta[b->from + j];
}

static void add_kahan(const struct block *b, uint32_t row, const float *u)
{
	float *x = row_x(b, row), *comp = b->e->r->row[row].comp + b->from;
	for (size_t j = 0; j < b->n; j++) {
		float old = mw_ld(&x[j]), t = u[j] + comp[j], new = old + t;
		comp[j] = t - (new - old);
		mw_st(&x[j], new);
	}
}

static void add(const struct block *b, uint32_t row, const float *u)
{
	float *x = row_x(b, row);
	if (b->e->precision == MW_PRECISION_KAHAN) {
		add_kahan(b, row, u);
	} else if (b->atomic) {
		for (size_t j = 0; j < b->n; j++)
			if (u[j] != 0)
				mw_add_atomic(&x[j], u[j]);
	} else {
		mw_kernels()->axpy(1, u, x, b->n);
	}
}

/* Add the pushes that the plan's exchange does not take: to rows that it does not write, or all of them. */
static void push_first(const struct block *b, bool all)
{
	for (uint32_t k = 0; k < b->n_push; k++) {
		const struct mw_push *p = &b->push[k];
		float *x = row_x(b, p->row);
		if (!all && writes_row(b->plan, p->row))
			continue;
		if (b->atomic)
			for (size_t j = 0; j < b->n; j++)
				mw_add_atomic(&x[j], p->weight * p->delta[b->from + j]);
		else
			mw_kernels()->axpy(p->weight, p->delta + b->from, x, b->n);
	}
}

/* Fused and separate exchange in float (with or without Kahan): all reads, then all writes. */
static void exchange_float(struct block *b, bool shared)
{
	load_all(b);
	if (shared)
		exchange_shared(b, b->s->u);
	else
		for (uint32_t i = 0; i < b->plan->n_rows; i++)
			exchange_row(b, i, b->s->u + (size_t)i * BLOCK);
	for (uint32_t i = 0; i < b->plan->n_rows; i++) {
		float *u = b->s->u + (size_t)i * BLOCK;
		fuse_pushes(b, b->plan->row[i].dst, u);
		add(b, b->plan->row[i].dst, u);
	}
}

/* (1-gamma) x + gamma W x, each product and sum rounded: what not to do, kept to be measured. */
static void exchange_convex(struct block *b)
{
	float g = (float)b->gamma;
	load_all(b);
	for (uint32_t i = 0; i < b->plan->n_rows; i++) {
		const struct mw_plan_row *row = &b->plan->row[i];
		float *u = b->s->u + (size_t)i * BLOCK;
		memset(u, 0, b->n * sizeof(*u));
		for (uint32_t k = row->first; k < row->first + row->n; k++) {
			const float *yj = src_y(b, k);
			for (size_t j = 0; j < b->n; j++)
				u[j] += (float)b->plan->weight[k] * yj[j];
		}
		const float *yi = dst_y(b, i);
		for (size_t j = 0; j < b->n; j++)
			u[j] = (1 - g) * yi[j] + g * u[j];
	}
	for (uint32_t i = 0; i < b->plan->n_rows; i++)
		mw_kernels()->store(b->s->u + (size_t)i * BLOCK, row_x(b, b->plan->row[i].dst), b->n);
}

/* The value in double: what pushes added to x since the last exchange is taken over exactly. */
static double wide_value(const struct block *b, uint32_t row, size_t j)
{
	double wide = b->e->r->row[row].wide[b->from + j];
	double y = wide + ((double)mw_ld(&row_x(b, row)[j]) - (double)(float)wide);
	for (uint32_t k = 0; k < b->n_push; k++)
		if (b->push[k].row == row)
			y += (double)b->push[k].weight * (double)b->push[k].delta[b->from + j];
	return y;
}

static void exchange_double(struct block *b)
{
	for (uint32_t i = 0; i < b->plan->n_rows; i++) {
		const struct mw_plan_row *row = &b->plan->row[i];
		double *y = b->s->wide + (size_t)i * BLOCK;
		for (size_t j = 0; j < b->n; j++) {
			double yi = wide_value(b, row->dst, j), u = 0;
			for (uint32_t k = row->first; k < row->first + row->n; k++)
				u += b->plan->weight[k] * (wide_value(b, b->plan->src[k], j) - yi);
			y[j] = yi + b->gamma * u;
		}
	}
	for (uint32_t i = 0; i < b->plan->n_rows; i++) {
		uint32_t dst = b->plan->row[i].dst;
		double *y = b->s->wide + (size_t)i * BLOCK;
		for (size_t j = 0; j < b->n; j++) {
			b->e->r->row[dst].wide[b->from + j] = y[j];
			mw_st(&row_x(b, dst)[j], (float)y[j]);
		}
	}
}

/* Copies read each source as one range (a seqlock reader gets one whole version), not block by block. */
static void copy_rows(const struct mw_executor *e, const struct mw_plan *plan, size_t from, size_t n)
{
	for (uint32_t i = 0; i < plan->n_rows; i++)
		mw_access_copy(e->r, plan->src[plan->row[i].first], plan->row[i].dst, from, n);
}

static void merge_rows(
	const struct mw_executor *e, const struct mw_plan *plan, size_t from, size_t n, bool atomic)
{
	struct mw_replica *row = e->r->row;
	mw_merge(row[plan->row[0].dst].x + from, row[plan->row[1].dst].x + from,
		row[plan->row[2].dst].x + from, n, atomic);
}

static void run_blocks(const struct mw_executor *e, struct block *b, enum kind kind, size_t from, size_t n)
{
	for (size_t done = 0; done < n; done += b->n) {
		b->from = from + done;
		b->n = n - done < BLOCK ? n - done : BLOCK;
		push_first(b, e->form != MW_MIX_FUSED || kind == KIND_COPY);
		if (kind == KIND_COPY && b->gamma == 1 && e->precision != MW_PRECISION_DOUBLE)
			continue; /* only the pushes: copy_rows follows */
		uint32_t n_push = b->n_push;
		if (e->form != MW_MIX_FUSED || kind == KIND_COPY)
			b->n_push = 0; /* they are in x now */
		if (e->precision == MW_PRECISION_DOUBLE)
			exchange_double(b);
		else if (e->form == MW_MIX_CONVEX)
			exchange_convex(b);
		else
			exchange_float(b, kind == KIND_SHARED);
		b->n_push = n_push;
	}
}

/* A triple on [from, from + n) of the run's coordinates, by the merge kernel or (slack, Kahan...) like any plan. */
static void merge_range(const struct mw_executor *e, struct block *b, size_t from, size_t n)
{
	if (b->gamma == 1 && e->precision == MW_PRECISION_FLOAT)
		merge_rows(e, b->plan, from, n, b->atomic);
	else
		run_blocks(e, b, KIND_GENERAL, from, n);
}

/* Where only the hot columns are merged, access is that of pushes to the others: racy ones don't lock, merges do. */
static bool locks(const struct mw_executor *e)
{
	return e->r->access >= MW_ACCESS_LOCKED || (e->p->hot > 0 && e->r->access == MW_ACCESS_RACY);
}

static void merge_striped(const struct mw_executor *e, struct block *b, uint32_t slot, size_t from, size_t n)
{
	uint32_t first = (uint32_t)((uint64_t)e->n_stripes * slot / e->p->n_slots);
	for (uint32_t i = 0; i < e->n_stripes; i++) {
		uint32_t k = (first + i) % e->n_stripes;
		size_t lo = k * e->stripe_floats, hi = lo + e->stripe_floats;
		lo = lo > from ? lo : from;
		hi = hi < from + n ? hi : from + n;
		if (lo >= hi)
			continue;
		mw_lock(&e->stripe[k].lock);
		merge_range(e, b, lo, hi - lo);
		mw_unlock(&e->stripe[k].lock);
	}
}

/* The same on coordinates none of which is one memory in all rows. */
static void exec_private(const struct mw_executor *e, struct mw_exec_scratch *s, uint32_t slot,
	uint32_t choice, double gamma, size_t from, size_t n, const struct mw_push *push, uint32_t n_push,
	bool exclusive)
{
	const struct mw_compiled *c = &e->slot[slot][choice];
	bool copy = c->kind == KIND_COPY && gamma == 1 && e->precision != MW_PRECISION_DOUBLE;
	bool locked = !exclusive && locks(e);
	struct block b = { .e = e,
		.s = s,
		.c = c,
		.plan = c->plan,
		.push = push,
		.n_push = n_push,
		.gamma = gamma,
		.atomic = !exclusive && e->r->access == MW_ACCESS_ATOMIC };

	assert(!(n_push && (c->kind == KIND_MERGE || (copy && !exclusive))));
	if (c->kind == KIND_MERGE && !(locked && e->whole_rows)) {
		locked ? merge_striped(e, &b, slot, from, n) : merge_range(e, &b, from, n);
		return;
	}
	for (uint32_t i = 0; locked && !copy && i < c->n_touch; i++)
		mw_access_write_begin(e->r, c->touch[i]);
	if (c->kind == KIND_MERGE)
		merge_range(e, &b, from, n);
	else if (n_push || !copy)
		run_blocks(e, &b, c->kind, from, n);
	if (copy) {
		copy_rows(e, c->plan, from, n);
		if (s->version)
			s->version[0] = mw_access_version;
	}
	for (uint32_t i = c->n_touch; locked && !copy && i-- > 0;) {
		mw_access_write_end(e->r, c->touch[i]);
		if (s->version)
			s->version[i] = mw_access_version;
	}
}

void mw_exec_plan(const struct mw_executor *e, struct mw_exec_scratch *s, uint32_t slot, uint32_t choice,
	double gamma, size_t from, size_t n, const struct mw_push *push, uint32_t n_push, bool exclusive)
{
	const struct mw_replicas *r = e->r;
	size_t end = from + n, before = r->cold_from < end ? r->cold_from : end,
	       behind = r->cold_to > from ? r->cold_to : from;
	if (!r->n_mapped) {
		exec_private(e, s, slot, choice, gamma, from, n, push, n_push, exclusive);
		return;
	}
	if (from < before)
		exec_private(e, s, slot, choice, gamma, from, before - from, push, n_push, exclusive);
	if (behind < end)
		exec_private(e, s, slot, choice, gamma, behind, end - behind, push, n_push, exclusive);
}
