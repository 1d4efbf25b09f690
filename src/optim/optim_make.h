/*
 * optim_make.h: what optimizer files share. An optimizer is one function on a run of parameters whose state
 * fields lie in arrays of their own; the drivers here bring the state there and back, for both layouts of
 * optim.h.
 */
#ifndef MW_OPTIM_OPTIM_MAKE_H
#define MW_OPTIM_OPTIM_MAKE_H

#include "base/shared.h"
#include "optim/optim.h"

/* Before a loop over parameters: delta may be g, but never overlaps it otherwise, so that the loop may be
 * vectorised. */
#if defined(__clang__)
#define MW_EACH_PARAMETER _Pragma("clang loop vectorize(assume_safety)")
#else
#define MW_EACH_PARAMETER _Pragma("GCC ivdep")
#endif

/* The decay of a running average: keep = beta, take = 1 - beta. */
struct mw_beta {
	double beta;
	float keep, take;
	uint64_t settled; /* from this step on 1 - beta^t is 1 in double */
};
void mw_beta_init(struct mw_beta *b, double beta);
/* 1 - beta^t, by multiplications alone: the same bits everywhere. */
double mw_beta_correction(const struct mw_beta *b, uint64_t t);

/* Weight decay, the same in all optimizers: a member of the option struct named `decay`, two lines of its table. */
struct mw_decay_options {
	double weight_decay;
	int form;
};
enum mw_decay_form { MW_DECAY_COUPLED, MW_DECAY_DECOUPLED };
#define MW_DECAY_OPTION_LINES(type, usual)                                                                 \
	{ "weight-decay", MW_OPT_FLOAT, offsetof(type, decay.weight_decay), "0", 0, 1e3, NULL, "D",        \
		"Weight decay; sparse models: only of the coordinates that a step touches." },             \
	{                                                                                                  \
		"decay-form", MW_OPT_CHOICE, offsetof(type, decay.form), usual, 0, 0, "coupled|decoupled", \
			NULL,                                                                              \
			"Coupled: D x is added to the gradient. Decoupled: x shrinks by rate D x beside "  \
			"the step, "                                                                       \
			"as in AdamW and SGDW."                                                            \
	}

/* Both are 0 without decay, one of them else: direction's g = g + couple x, delta = ... - rate shrink x. */
struct mw_decay {
	float couple, shrink;
};
/* Also sets o->needs_x. */
struct mw_decay mw_decay_init(struct mw_optim *o, const struct mw_decay_options *p);

/* The gradient with coupled decay; x NULL: these parameters don't decay. */
static inline float mw_decayed(float couple, const float *x, const float *g, size_t i)
{
	return x ? g[i] + couple * x[i] : g[i];
}
/* What decoupled decay takes off. */
static inline float mw_shrink(float shrink, const float *x, size_t i)
{
	return x ? shrink * x[i] : 0.0f;
}

enum { MW_OPTIM_BLOCK = 64, MW_OPTIM_FIELDS = 3 };

/* coef: constants of this step. s0..s2: state fields (those beyond the optimizer's number are not touched).
 */
typedef void mw_optim_step(const void *coef, float *restrict s0, float *restrict s1, float *restrict s2,
	const float *x, const float *g, float *delta, size_t n);

static inline __attribute__((always_inline)) void mw_optim_dense(mw_optim_step *step, const void *coef,
	uint32_t fields, float *state, size_t stride, const float *x, const float *g, float *delta, size_t n)
{
#ifdef MW_STRICT_ATOMICS
	float s[MW_OPTIM_FIELDS][MW_OPTIM_BLOCK];
	for (size_t i = 0; i < n; i += MW_OPTIM_BLOCK) {
		size_t m = n - i < MW_OPTIM_BLOCK ? n - i : MW_OPTIM_BLOCK;
		for (uint32_t f = 0; f < fields; f++)
			for (size_t j = 0; j < m; j++)
				s[f][j] = mw_ld(&state[f * stride + i + j]);
		step(coef, s[0], s[1], s[2], x ? x + i : NULL, g + i, delta + i, m);
		for (uint32_t f = 0; f < fields; f++)
			for (size_t j = 0; j < m; j++)
				mw_st(&state[f * stride + i + j], s[f][j]);
	}
#else
	float *s1 = fields > 1 ? state + stride : NULL, *s2 = fields > 2 ? state + 2 * stride : NULL;
	step(coef, state, s1, s2, x, g, delta, n);
#endif
}

/* The same where groups are single parameters, which is what linear models have. */
static inline __attribute__((always_inline)) void mw_optim_single(mw_optim_step *step, const void *coef,
	uint32_t fields, float *state, const uint32_t *group, size_t n, const float *x, const float *g,
	float *delta)
{
	float s[MW_OPTIM_FIELDS][MW_OPTIM_BLOCK];
	for (size_t done = 0; done < n; done += MW_OPTIM_BLOCK) {
		size_t m = n - done < MW_OPTIM_BLOCK ? n - done : MW_OPTIM_BLOCK;
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < fields; f++)
				s[f][k] = mw_ld(state + (size_t)group[done + k] * fields + f);
		step(coef, s[0], s[1], s[2], x ? x + done : NULL, g + done, delta + done, m);
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < fields; f++)
				mw_st(state + (size_t)group[done + k] * fields + f, s[f][k]);
	}
}

/* Blocks of parameters, so that the arithmetic runs on vectors although the state is scattered. */
static inline __attribute__((always_inline)) void mw_optim_sparse(mw_optim_step *step, const void *coef,
	uint32_t fields, float *state, const uint32_t *group, size_t n, uint32_t width, const float *x,
	const float *g, float *delta)
{
	if (width == 1) {
		mw_optim_single(step, coef, fields, state, group, n, x, g, delta);
		return;
	}
	float s[MW_OPTIM_FIELDS][MW_OPTIM_BLOCK];
	float *at[MW_OPTIM_BLOCK];
	size_t total = n * width, i = 0;
	uint32_t j = 0; /* the next parameter is group[i] * width + j */
	for (size_t done = 0; done < total;) {
		size_t m = total - done < MW_OPTIM_BLOCK ? total - done : MW_OPTIM_BLOCK;
		for (size_t k = 0; k < m; k++) {
			at[k] = state + ((size_t)group[i] * width + j) * fields;
			for (uint32_t f = 0; f < fields; f++)
				s[f][k] = mw_ld(at[k] + f);
			if (++j == width) {
				j = 0;
				i++;
			}
		}
		step(coef, s[0], s[1], s[2], x ? x + done : NULL, g + done, delta + done, m);
		for (size_t k = 0; k < m; k++)
			for (uint32_t f = 0; f < fields; f++)
				mw_st(at[k] + f, s[f][k]);
		done += m;
	}
}

/* The two functions of an ops table: coefficients by `prepare`, arithmetic by `step`, FIELDS state fields. */
#define MW_OPTIM_FUNCTIONS(type, prepare, step, FIELDS)                                                     \
	static void dense(const struct mw_optim *o, const struct mw_step *s, float *state, size_t stride,   \
		const float *x, const float *g, float *delta, size_t n)                                     \
	{                                                                                                   \
		type c = prepare(o->priv, s);                                                               \
		mw_optim_dense(step, &c, FIELDS, state, stride, o->needs_x ? x : NULL, g, delta, n);        \
	}                                                                                                   \
	static void sparse(const struct mw_optim *o, const struct mw_step *s, float *state,                 \
		const uint32_t *group, size_t n, uint32_t width, const float *x, const float *g,            \
		float *delta)                                                                               \
	{                                                                                                   \
		type c = prepare(o->priv, s);                                                               \
		mw_optim_sparse(step, &c, FIELDS, state, group, n, width, o->needs_x ? x : NULL, g, delta); \
	}

#endif
