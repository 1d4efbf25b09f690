/* rule_body.h: the rules of rules.h for one instruction set; the file that includes it defines RULES, the table's name. */
#include "base/kernel_inline.h"
#include "optim/optim.h"
#include "optim/rules.h"

/* Before a loop over parameters: delta may be g, but never overlaps it otherwise, so that the loop may be
 * vectorised. */
#if defined(__clang__)
#define EACH_PARAMETER _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_PARAMETER _Pragma("GCC ivdep")
#endif

#define INLINE static inline __attribute__((always_inline))

/* The gradient with coupled decay; x NULL: these parameters don't decay. */
INLINE float decayed(const struct mw_coef *c, const float *x, const float *g, size_t i)
{
	float d = c->scale * g[i];
	return x ? d + c->couple * x[i] : d;
}

/* What decoupled decay takes off. */
INLINE float shrunk(float shrink, const float *x, size_t i)
{
	return x ? shrink * x[i] : 0.0f;
}

/* --- the rules: s0..s2 are state fields, those beyond the rule's number are not touched ------------------------------ */

#define STEP(name)                                                                                     \
	INLINE void name(struct mw_coef c, float *restrict s0, float *restrict s1, float *restrict s2, \
		const float *x, const float *g, float *delta, size_t n)

STEP(sgd_plain)
{
	(void)s0, (void)s1, (void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++)
		delta[i] = -c.rate * decayed(&c, x, g, i) - shrunk(c.shrink, x, i);
}

STEP(sgd_heavy_ball)
{
	(void)s1, (void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		s0[i] = c.momentum * s0[i] + decayed(&c, x, g, i);
		delta[i] = -c.rate * s0[i] - shrunk(c.shrink, x, i);
	}
}

STEP(sgd_nesterov)
{
	(void)s1, (void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = decayed(&c, x, g, i);
		s0[i] = c.momentum * s0[i] + d;
		delta[i] = -c.rate * (d + c.momentum * s0[i]) - shrunk(c.shrink, x, i);
	}
}

STEP(adam)
{
	(void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = decayed(&c, x, g, i);
		s0[i] = c.keep1 * s0[i] + c.take1 * d;
		s1[i] = c.keep2 * s1[i] + c.take2 * (d * d);
		delta[i] = -shrunk(c.shrink, x, i) - c.size * s0[i] / (sqrtf(s1[i]) * c.root_scale + c.eps);
	}
}

STEP(amsgrad)
{
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = decayed(&c, x, g, i);
		s0[i] = c.keep1 * s0[i] + c.take1 * d;
		s1[i] = c.keep2 * s1[i] + c.take2 * (d * d);
		s2[i] = s1[i] > s2[i] ? s1[i] : s2[i];
		delta[i] = -shrunk(c.shrink, x, i) - c.size * s0[i] / (sqrtf(s2[i]) * c.root_scale + c.eps);
	}
}

STEP(rmsprop)
{
	(void)s1, (void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = decayed(&c, x, g, i);
		s0[i] = c.keep2 * s0[i] + c.take2 * (d * d);
		delta[i] = -shrunk(c.shrink, x, i) - c.rate * d / (sqrtf(s0[i]) + c.eps);
	}
}

STEP(rmsprop_momentum)
{
	(void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = decayed(&c, x, g, i);
		s0[i] = c.keep2 * s0[i] + c.take2 * (d * d);
		s1[i] = c.momentum * s1[i] + d / (sqrtf(s0[i]) + c.eps);
		delta[i] = -shrunk(c.shrink, x, i) - c.rate * s1[i];
	}
}

STEP(adagrad)
{
	(void)s1, (void)s2;
	EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = decayed(&c, x, g, i);
		s0[i] = s0[i] + d * d;
		delta[i] = -shrunk(c.shrink, x, i) - c.rate * d / (sqrtf(s0[i]) + c.eps);
	}
}

/* Whether parameters decay is known at each call, so that no loop asks. */
#define CALL(step, c, s0, s1, s2, x, g, delta, n)                              \
	do {                                                                   \
		if (x)                                                         \
			step(c, s0, s1, s2, x, g, delta, n);                   \
		else                                                           \
			step(c, s0, s1, s2, (const float *)NULL, g, delta, n); \
	} while (0)

typedef void rule_step(struct mw_coef c, float *restrict s0, float *restrict s1, float *restrict s2,
	const float *x, const float *g, float *delta, size_t n);

/* --- dense: fields lie apart already -------------------------------------------------------------------------------- */

enum { BLOCK = 64, FIELDS = 3 };

INLINE void run_dense(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	size_t stride, const float *x, const float *g, float *delta, size_t n)
{
#ifdef MW_STRICT_ATOMICS
	float s[FIELDS][BLOCK];
	for (size_t i = 0; i < n; i += BLOCK) {
		size_t m = n - i < BLOCK ? n - i : BLOCK;
		for (uint32_t f = 0; f < fields; f++)
			for (size_t j = 0; j < m; j++)
				s[f][j] = mw_ld(&state[f * stride + i + j]);
		CALL(step, *coef, s[0], s[1], s[2], x ? x + i : NULL, g + i, delta + i, m);
		for (uint32_t f = 0; f < fields; f++)
			for (size_t j = 0; j < m; j++)
				mw_st(&state[f * stride + i + j], s[f][j]);
	}
#else
	float *s1 = fields > 1 ? state + stride : NULL, *s2 = fields > 2 ? state + 2 * stride : NULL;
	CALL(step, *coef, state, s1, s2, x, g, delta, n);
#endif
}

/* --- sparse: a record a parameter ------------------------------------------------------------------------------------ */

/* Groups of several parameters, in blocks, so that the arithmetic runs on vectors although the state is scattered. */
INLINE void run_groups(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	const uint32_t *group, size_t n, uint32_t width, const float *x, const float *g, float *delta)
{
	float s[FIELDS][BLOCK];
	float *at[BLOCK];
	size_t total = n * width, i = 0;
	uint32_t j = 0; /* the next parameter is group[i] * width + j */
	for (size_t done = 0; done < total;) {
		size_t m = total - done < BLOCK ? total - done : BLOCK;
		for (size_t k = 0; k < m; k++) {
			at[k] = state + ((size_t)group[i] * width + j) * MW_OPTIM_RECORD(fields);
			for (uint32_t f = 0; f < fields; f++)
				s[f][k] = mw_ld(at[k] + f);
			if (++j == width) {
				j = 0;
				i++;
			}
		}
		CALL(step, *coef, s[0], s[1], s[2], x ? x + done : NULL, g + done, delta + done, m);
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < fields; f++)
				mw_st(at[k] + f, s[f][k]);
		done += m;
	}
}

/* The same where groups are single parameters, which is what linear models have. */
INLINE void run_blocks(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	const uint32_t *group, size_t n, const float *x, const float *g, float *delta)
{
	float s[FIELDS][BLOCK];
	for (size_t done = 0; done < n; done += BLOCK) {
		size_t m = n - done < BLOCK ? n - done : BLOCK;
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < fields; f++)
				s[f][k] =
					mw_ld(state + (size_t)group[done + k] * MW_OPTIM_RECORD(fields) + f);
		CALL(step, *coef, s[0], s[1], s[2], x ? x + done : NULL, g + done, delta + done, m);
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < fields; f++)
				mw_st(state + (size_t)group[done + k] * MW_OPTIM_RECORD(fields) + f, s[f][k]);
	}
}

#if defined(MW_KERNEL_PORTABLE)

#define run_single run_blocks

#else

#include "optim/rule_records.h"

/* One vector of parameters. at NULL: those of `group`, else where their records are. */
INLINE void run_vector(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	const uint32_t *group, float *const *at, const float *x, const float *g, float *delta)
{
	float s[FIELDS][MWK_LANES] __attribute__((aligned(64)));
	take_records(fields, state, group, at, s);
	CALL(step, *coef, s[0], s[1], s[2], x, g, delta, MWK_LANES);
	put_records(fields, s, state, group, at);
}

/* The last of a row: the vector is filled up with a record of its own, so that nothing branches on how many they are. */
INLINE void run_rest(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	const uint32_t *group, size_t n, const float *x, const float *g, float *delta)
{
	float none[4] = { 0 }, gx[2][MWK_LANES] __attribute__((aligned(64)));
	float *at[MWK_LANES] __attribute__((aligned(64)));
	for (size_t k = 0; k < MWK_LANES; k++)
		at[k] = k < n ? state + (size_t)group[k] * MW_OPTIM_RECORD(fields) : none;
	mwk_store(gx[0], mwk_load_part(g, n));
	if (x)
		mwk_store(gx[1], mwk_load_part(x, n));
	run_vector(step, coef, fields, state, NULL, at, x ? gx[1] : NULL, gx[0], gx[0]);
	put_part(delta, mwk_load(gx[0]), n);
}

INLINE void run_single(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	const uint32_t *group, size_t n, const float *x, const float *g, float *delta)
{
	size_t i = 0;
	if (fields == 1) { /* nothing to transpose */
		run_blocks(step, coef, fields, state, group, n, x, g, delta);
		return;
	}
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		run_vector(step, coef, fields, state, group + i, NULL, x ? x + i : NULL, g + i, delta + i);
	if (i < n)
		run_rest(step, coef, fields, state, group + i, n - i, x ? x + i : NULL, g + i, delta + i);
}

#endif

INLINE void run_sparse(rule_step *step, const struct mw_coef *coef, uint32_t fields, float *state,
	const uint32_t *group, size_t n, uint32_t width, const float *x, const float *g, float *delta)
{
	if (!fields) /* nothing to carry */
		CALL(step, *coef, NULL, NULL, NULL, x, g, delta, n * width);
	else if (width > 1)
		run_groups(step, coef, fields, state, group, n, width, x, g, delta);
	else
		run_single(step, coef, fields, state, group, n, x, g, delta);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define MW_RULE(name, fields)                                                                                \
	static void name##_dense(const struct mw_coef *coef, float *state, size_t stride, const float *x,    \
		const float *g, float *delta, size_t n)                                                      \
	{                                                                                                    \
		run_dense(name, coef, fields, state, stride, x, g, delta, n);                                \
	}                                                                                                    \
	static void name##_sparse(const struct mw_coef *coef, float *state, const uint32_t *group, size_t n, \
		uint32_t width, const float *x, const float *g, float *delta)                                \
	{                                                                                                    \
		run_sparse(name, coef, fields, state, group, n, width, x, g, delta);                         \
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
