/*
 * burst_state.h: CSR rows and an optimizer with a state of the worker's own; part of burst_body.h.
 *
 * Where nobody else writes the parameters, a row is read whole before its step: its parameters by the dot, its records while
 * the coefficient is computed. What waits for the coefficient is arithmetic and stores alone.
 */
#include "optim/rule_inline.h"

static void add_delta(const struct mw_burst *b, const uint32_t *group, size_t n)
{
	for (size_t i = 0; b->weight != 1 && i < n; i++)
		b->delta[i] = (float)(b->delta[i] * b->weight);
	if (!b->atomic)
		mwk_scatter_groups(b->delta, group, n, 1, b->x);
	for (size_t i = 0; b->atomic && i < n; i++)
		mw_add_atomic(&b->x[group[i]], b->delta[i]);
}

MWK_INLINE float margin_and_coef(const struct mw_burst *b, uint32_t i, float *keep, struct mw_coef *c)
{
	const struct mw_dataset *d = b->data;
	uint64_t row = b->row[i], o = d->row_ptr[row];
	float z = margin(b, o, d->row_ptr[row + 1] - o, b->linear->bias, keep);
	struct mw_step s = { .rate = b->rate, .t = b->t + i };
	*c = b->optim->ops->coef(b->optim, &s);
	c->scale = mw_link_dloss(b->linear->link, z, d->y[row]);
	return z;
}

static inline void count_step(const struct mw_burst *b, uint64_t done)
{
	if (b->tally)
		count_push(b);
	__atomic_store_n(b->pushes, done, __ATOMIC_RELAXED);
}

/* The row's columns are the groups of its delta: nothing is gathered, and copied only to put the bias behind them. */
static __attribute__((noinline)) float step_apart(const struct mw_burst *b, uint32_t i)
{
	const struct mw_dataset *d = b->data;
	uint64_t o = d->row_ptr[b->row[i]];
	size_t n = d->row_ptr[b->row[i] + 1] - o;
	const uint32_t *group = d->col + o;
	const float *val = d->val + o;
	struct mw_coef c;
	float z = margin_and_coef(b, i, NULL, &c);
	if (b->linear->bias) {
		memcpy(b->group, group, n * sizeof(*group));
		memcpy(b->delta, val, n * sizeof(*val));
		b->group[n] = d->features;
		b->delta[n++] = 1;
		group = b->group;
		val = b->delta;
	}
	mw_rules()->sparse[b->optim->rule](&c, b->state, group, n, 1, NULL, val, b->delta);
	add_delta(b, group, n);
	return z;
}

#if defined(MW_KERNEL_PORTABLE)

static void run_state(const struct mw_burst *b)
{
	uint64_t done = *b->pushes;
	float z = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		fetch_ahead(b, i);
		z = step_apart(b, i);
		count_step(b, done + i + 1);
	}
	count_burst(b, z);
}

#else

#include "optim/rule_records.h"

struct kept_row {
	float keep[KEPT], val[MWK_DOT_LANES];
	mwk_d state[KEPT / MWK_DOT_LANES][RULE_FIELDS];
	uint32_t
		at[MWK_DOT_LANES]; /* val and at: of the row's last vector, filled up with its last element */
} __attribute__((aligned(64)));

MWK_INLINE void take_state(const struct mw_burst *b, uint32_t fields, const uint32_t *col, const float *val,
	size_t n, struct kept_row *r)
{
	size_t i = 0;
	mwk_d(*s)[RULE_FIELDS] = r->state;
	for (; i + MWK_DOT_LANES < n; i += MWK_DOT_LANES)
		mwr_take(fields, b->state, col + i, *s++);
	_mm256_store_si256((__m256i *)(void *)r->at, mwk_rest_index(col + i, n - i, true));
	mwk_store_d(r->val, mwk_rest(val + i, n - i, true));
	mwr_take(fields, b->state, r->at, *s);
}

/* The rest of a step for one vector; weight: of the push. */
MWK_INLINE void put_vector(const struct mw_burst *b, struct rule rule, const struct mw_coef *c, float weight,
	const uint32_t *col, const float *val, const float *keep, mwk_d *state)
{
	const mwk_d none = { 0 };
	mwk_d delta = rule.d(c, state, false, none, mwk_load_d(val));
	mwr_put(rule.fields, state, b->state, col);
	mwk_put_vector(b->x, col, mwk_load_d(keep) + weight * delta);
}

MWK_INLINE void step_bias(const struct mw_burst *b, struct rule rule, const struct mw_coef *c, float weight)
{
	float s[RULE_FIELDS], *x = &b->x[b->data->features],
			      *state = b->state + b->data->features * MW_OPTIM_RECORD(rule.fields);
	for (uint32_t f = 0; f < rule.fields; f++)
		s[f] = state[f];
	mwk_add(x, weight * rule.f(c, s, false, 0, 1));
	for (uint32_t f = 0; f < rule.fields; f++)
		state[f] = s[f];
}

/* One step on a row that is not empty and not longer than KEPT; nobody else writes the parameters. */
MWK_INLINE float step_kept(const struct mw_burst *b, uint32_t i, struct rule rule, struct kept_row *r)
{
	const struct mw_dataset *d = b->data;
	uint64_t o = d->row_ptr[b->row[i]];
	size_t n = d->row_ptr[b->row[i] + 1] - o, k = 0;
	const uint32_t *col = d->col + o;
	const float *val = d->val + o;
	float weight = (float)b->weight;
	mwk_d(*s)[RULE_FIELDS] = r->state;
	struct mw_coef c;
	float z = margin_and_coef(b, i, r->keep, &c);
	take_state(b, rule.fields, col, val, n, r);
	for (; k + MWK_DOT_LANES < n; k += MWK_DOT_LANES)
		put_vector(b, rule, &c, weight, col + k, val + k, r->keep + k, *s++);
	put_vector(b, rule, &c, weight, r->at, r->val, r->keep + k, *s);
	if (b->linear->bias)
		step_bias(b, rule, &c, weight);
	return z;
}

MWK_INLINE void run_rule(const struct mw_burst *b, struct rule rule)
{
	struct kept_row r;
	const struct mw_dataset *d = b->data;
	uint64_t done = *b->pushes;
	float z = 0;
	/* the product with a weight that is a float has the bits of the product in double */
	bool keeps = b->own && !b->atomic && (float)b->weight == b->weight;
	for (uint32_t i = 0; i < b->n; i++) {
		size_t n = d->row_ptr[b->row[i] + 1] - d->row_ptr[b->row[i]];
		fetch_ahead(b, i);
		z = keeps && n && n <= KEPT ? step_kept(b, i, rule, &r) : step_apart(b, i);
		count_step(b, done + i + 1);
	}
	count_burst(b, z);
}

#define MW_RULE(name, fields)                                                      \
	static __attribute__((noinline)) void run_##name(const struct mw_burst *b) \
	{                                                                          \
		run_rule(b, RULE(name, fields));                                   \
	}
MW_RULES(MW_RULE)
#undef MW_RULE

static void run_state(const struct mw_burst *b)
{
	switch ((enum mw_rule)b->optim->rule) {
#define MW_RULE(name, fields)  \
	case MW_RULE_##name:   \
		run_##name(b); \
		break;
		MW_RULES(MW_RULE)
#undef MW_RULE
	case MW_RULE_COUNT: break;
	}
}

#endif
