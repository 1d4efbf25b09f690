/* rule_body.h: the rules of rules.h for one instruction set; the file that includes it defines RULES, the table's name. */
#include "optim/rule_inline.h"

/* --- dense: fields lie apart already -------------------------------------------------------------------------------- */

MWK_INLINE void run_one(struct rule rule, const struct mw_coef *c, float *state, size_t stride,
	const float *x, const float *g, float *delta)
{
	float s[RULE_FIELDS];
	for (uint32_t f = 0; f < rule.fields; f++)
		s[f] = mw_ld(state + f * stride);
	*delta = rule.f(c, s, x, x ? *x : 0, *g);
	for (uint32_t f = 0; f < rule.fields; f++)
		mw_st(state + f * stride, s[f]);
}

#ifndef MW_STRICT_ATOMICS
MWK_INLINE void run_wide(struct rule rule, const struct mw_coef *c, float *state, size_t stride,
	const float *x, const float *g, float *delta)
{
	mwk_v s[RULE_FIELDS];
	for (uint32_t f = 0; f < rule.fields; f++)
		s[f] = mwk_load(state + f * stride);
	mwk_store(delta, rule.v(c, s, x, x ? mwk_load(x) : mwk_set1(0), mwk_load(g)));
	for (uint32_t f = 0; f < rule.fields; f++)
		mwk_store(state + f * stride, s[f]);
}
#endif

/* x NULL is a constant at each call, so that no loop asks. */
MWK_INLINE void run_run(struct rule rule, const struct mw_coef *coef, float *state, size_t stride,
	const float *x, const float *g, float *delta, size_t n)
{
	const struct mw_coef c =
		*coef; /* stores to the state might change *coef, for all that the compiler knows */
	size_t i = 0;
#ifndef MW_STRICT_ATOMICS
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		run_wide(rule, &c, state + i, stride, x ? x + i : NULL, g + i, delta + i);
#endif
	for (; i < n; i++)
		run_one(rule, &c, state + i, stride, x ? x + i : NULL, g + i, delta + i);
}

MWK_INLINE void run_dense(struct rule rule, const struct mw_coef *coef, float *state, size_t stride,
	const float *x, const float *g, float *delta, size_t n)
{
	if (x)
		run_run(rule, coef, state, stride, x, g, delta, n);
	else
		run_run(rule, coef, state, stride, NULL, g, delta, n);
}

/* --- sparse: a record a parameter ------------------------------------------------------------------------------------ */

enum { BLOCK = 64 };

/* Groups in blocks, so that the arithmetic runs on vectors although the state is scattered. */
MWK_INLINE void run_groups(struct rule rule, const struct mw_coef *coef, float *state, const uint32_t *group,
	size_t n, uint32_t width, const float *x, const float *g, float *delta)
{
	float s[RULE_FIELDS][BLOCK];
	float *at[BLOCK];
	size_t total = n * width, i = 0;
	uint32_t j = 0; /* the next parameter is group[i] * width + j */
	for (size_t done = 0; done < total;) {
		size_t m = total - done < BLOCK ? total - done : BLOCK;
		for (size_t k = 0; k < m; k++) {
			at[k] = state + ((size_t)group[i] * width + j) * MW_OPTIM_RECORD(rule.fields);
			for (uint32_t f = 0; f < rule.fields; f++)
				s[f][k] = mw_ld(at[k] + f);
			if (++j == width) {
				j = 0;
				i++;
			}
		}
		run_dense(rule, coef, s[0], BLOCK, x ? x + done : NULL, g + done, delta + done, m);
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < rule.fields; f++)
				mw_st(at[k] + f, s[f][k]);
		done += m;
	}
}

/* The same where groups are single parameters, which is what linear models have. */
#if defined(MW_KERNEL_PORTABLE)
#define run_single(rule, coef, state, group, n, x, g, delta) \
	run_groups(rule, coef, state, group, n, 1, x, g, delta)
#else
#include "optim/rule_records.h"

MWK_INLINE void run_vector(struct rule rule, const struct mw_coef *c, float *state, const uint32_t *group,
	bool decays, mwk_d x, mwk_d g, mwk_d *delta)
{
	mwk_d s[RULE_FIELDS];
	mwr_take(rule.fields, state, group, s);
	*delta = rule.d(c, s, decays, x, g);
	mwr_put(rule.fields, s, state, group);
}

/* The last parameter of the last vector fills it up, so that nothing branches on how many they are. */
MWK_INLINE void run_single(struct rule rule, const struct mw_coef *coef, float *state, const uint32_t *group,
	size_t n, const float *x, const float *g, float *delta)
{
	const struct mw_coef c = *coef;
	uint32_t at[MWK_DOT_LANES] __attribute__((aligned(32)));
	mwk_d d, none = { 0 };
	size_t i = 0;
	if (!n)
		return;
	for (; i + MWK_DOT_LANES < n; i += MWK_DOT_LANES) {
		run_vector(
			rule, &c, state, group + i, x, x ? mwk_load_d(x + i) : none, mwk_load_d(g + i), &d);
		mwk_store_d(delta + i, d);
	}
	_mm256_store_si256((__m256i *)(void *)at, mwk_rest_index(group + i, n - i, false));
	run_vector(rule, &c, state, at, x, x ? mwk_rest(x + i, n - i, false) : none,
		mwk_rest(g + i, n - i, false), &d);
	_mm256_maskstore_ps(delta + i, mwk_first_lanes(n - i), d);
}
#endif

MWK_INLINE void run_sparse(struct rule rule, const struct mw_coef *coef, float *state, const uint32_t *group,
	size_t n, uint32_t width, const float *x, const float *g, float *delta)
{
	if (!rule.fields) /* nothing to carry */
		run_dense(rule, coef, NULL, 0, x, g, delta, n * width);
	else if (width > 1)
		run_groups(rule, coef, state, group, n, width, x, g, delta);
	else if (x)
		run_single(rule, coef, state, group, n, x, g, delta);
	else
		run_single(rule, coef, state, group, n, NULL, g, delta);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define MW_RULE(name, fields)                                                                                \
	static void name##_dense(const struct mw_coef *coef, float *state, size_t stride, const float *x,    \
		const float *g, float *delta, size_t n)                                                      \
	{                                                                                                    \
		run_dense(RULE(name, fields), coef, state, stride, x, g, delta, n);                          \
	}                                                                                                    \
	static void name##_sparse(const struct mw_coef *coef, float *state, const uint32_t *group, size_t n, \
		uint32_t width, const float *x, const float *g, float *delta)                                \
	{                                                                                                    \
		run_sparse(RULE(name, fields), coef, state, group, n, width, x, g, delta);                   \
	}
MW_RULES(MW_RULE)
#undef MW_RULE

const struct mw_rule_table RULES = {
	.dense = {
#define MW_RULE(name, fields) name##_dense,
		MW_RULES(MW_RULE)
#undef MW_RULE
	},
	.sparse = {
#define MW_RULE(name, fields) name##_sparse,
		MW_RULES(MW_RULE)
#undef MW_RULE
	},
};
