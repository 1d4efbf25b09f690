/*
 * sgd.c: stochastic gradient descent with momentum (heavy ball) or Nesterov's momentum, as PyTorch defines
 * them: g' = g + decay x, b = momentum b + g', direction = b (Nesterov: g' + momentum b), delta = -rate
 * direction; decoupled decay (SGDW): g' = g, delta = -rate direction - rate decay x.
 */
#include "base/mem.h"
#include "optim/optim_make.h"

struct sgd_options {
	double momentum;
	struct mw_decay_options decay;
	bool nesterov;
};

static const struct mw_option options[] = {
	{ "momentum", MW_OPT_FLOAT, offsetof(struct sgd_options, momentum), "0", 0, 0.999999, NULL, "M",
		"Momentum: each step keeps M of the last one." },
	{ "nesterov", MW_OPT_BOOL, offsetof(struct sgd_options, nesterov), "no", 0, 0, NULL, NULL,
		"Nesterov's momentum instead of the heavy ball." },
	MW_DECAY_OPTION_LINES(struct sgd_options, "coupled"),
	{ 0 },
};

struct sgd {
	float momentum, rate;
	struct mw_decay decay;
	bool nesterov;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct sgd_options *p = options_;
	if (p->nesterov && p->momentum == 0)
		MW_FAIL(err, USAGE, "--nesterov needs a momentum: add --momentum 0.9, for example");
	struct sgd *s = mw_alloc(sizeof(*s), "sgd", err);
	if (!s)
		return MW_ERESOURCE;
	*s = (struct sgd){ (float)p->momentum, 0, mw_decay_init(o, &p->decay), p->nesterov };
	o->priv = s;
	o->fields = s->momentum > 0;
	o->plain = !o->fields && !o->needs_x;
	return 0;
}

static struct sgd prepare(const struct sgd *p, const struct mw_step *s)
{
	struct sgd c = *p;
	c.rate = s->rate;
	c.decay.shrink *= s->rate;
	return c;
}

static inline void plain(const void *coef, float *restrict s0, float *restrict s1, float *restrict s2,
	const float *x, const float *g, float *delta, size_t n)
{
	struct sgd c = *(const struct sgd *)coef;
	(void)s0, (void)s1, (void)s2;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++)
		delta[i] = -c.rate * mw_decayed(c.decay.couple, x, g, i) - mw_shrink(c.decay.shrink, x, i);
}

static inline void heavy_ball(const void *coef, float *restrict s0, float *restrict s1, float *restrict s2,
	const float *x, const float *g, float *delta, size_t n)
{
	struct sgd c = *(const struct sgd *)coef;
	(void)s1, (void)s2;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		s0[i] = c.momentum * s0[i] + mw_decayed(c.decay.couple, x, g, i);
		delta[i] = -c.rate * s0[i] - mw_shrink(c.decay.shrink, x, i);
	}
}

static inline void nesterov(const void *coef, float *restrict s0, float *restrict s1, float *restrict s2,
	const float *x, const float *g, float *delta, size_t n)
{
	struct sgd c = *(const struct sgd *)coef;
	(void)s1, (void)s2;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = mw_decayed(c.decay.couple, x, g, i);
		s0[i] = c.momentum * s0[i] + d;
		delta[i] = -c.rate * (d + c.momentum * s0[i]) - mw_shrink(c.decay.shrink, x, i);
	}
}

static inline void step(const void *coef, float *restrict s0, float *restrict s1, float *restrict s2,
	const float *x, const float *g, float *delta, size_t n)
{
	const struct sgd *c = coef;
	if (c->momentum == 0)
		plain(coef, s0, s1, s2, x, g, delta, n);
	else if (c->nesterov)
		nesterov(coef, s0, s1, s2, x, g, delta, n);
	else
		heavy_ball(coef, s0, s1, s2, x, g, delta, n);
}

static void dense(const struct mw_optim *o, const struct mw_step *s, float *state, size_t stride,
	const float *x, const float *g, float *delta, size_t n)
{
	struct sgd c = prepare(o->priv, s);
	mw_optim_dense(step, &c, o->fields, state, stride, o->needs_x ? x : NULL, g, delta, n);
}

static void sparse(const struct mw_optim *o, const struct mw_step *s, float *state, const uint32_t *group,
	size_t n, uint32_t width, const float *x, const float *g, float *delta)
{
	struct sgd c = prepare(o->priv, s);
	x = o->needs_x ? x : NULL;
	if (o->fields)
		mw_optim_sparse(step, &c, 1, state, group, n, width, x, g, delta);
	else
		plain(&c, NULL, NULL, NULL, x, g, delta, n * width);
}

const struct mw_optim_ops mw_optim_sgd = {
	.name = "sgd",
	.summary = "stochastic gradient descent, with momentum or Nesterov's",
	.options = options,
	.option_size = sizeof(struct sgd_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
};
