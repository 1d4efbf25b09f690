/*
 * rmsprop.c: RMSProp (Tieleman, Hinton 2012): v = b2 v + (1-b2) g^2, r = g / (sqrt(v) + eps), b = momentum b + r,
 * delta = -rate b, as torch.optim.RMSprop of PyTorch 1.13 (its alpha is our beta2).
 */
#include <math.h>

#include "base/mem.h"
#include "optim/optim_make.h"

struct rmsprop_options {
	double beta2, eps, momentum;
	struct mw_decay_options decay;
};

static const struct mw_option options[] = {
	{ "beta2", MW_OPT_FLOAT, offsetof(struct rmsprop_options, beta2), "0.99", 0, 0.999999999, NULL, "B",
		"Decay of the running average of the squared gradient." },
	{ "eps", MW_OPT_FLOAT, offsetof(struct rmsprop_options, eps), "1e-8", 1e-30, 1e3, NULL, "E",
		"Added to the root of the second moment." },
	{ "momentum", MW_OPT_FLOAT, offsetof(struct rmsprop_options, momentum), "0", 0, 0.999999, NULL, "M",
		"Momentum: each step keeps M of the last one." },
	MW_DECAY_OPTION_LINES(struct rmsprop_options, "coupled"),
	{ 0 },
};

struct rmsprop {
	float keep, take, eps, momentum, rate;
	struct mw_decay decay;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct rmsprop_options *p = options_;
	struct rmsprop *a = mw_alloc(sizeof(*a), "rmsprop", err);
	if (!a)
		return MW_ERESOURCE;
	*a = (struct rmsprop){ (float)p->beta2, (float)(1 - p->beta2), (float)p->eps, (float)p->momentum, 0,
		mw_decay_init(o, &p->decay) };
	o->priv = a;
	o->fields = p->momentum > 0 ? 2 : 1;
	return 0;
}

static struct rmsprop prepare(const struct rmsprop *a, const struct mw_step *s)
{
	struct rmsprop c = *a;
	c.rate = s->rate;
	c.decay.shrink *= s->rate;
	return c;
}

static inline void plain(
	struct rmsprop c, float *restrict v, const float *x, const float *g, float *delta, size_t n)
{
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = mw_decayed(c.decay.couple, x, g, i);
		v[i] = c.keep * v[i] + c.take * (d * d);
		delta[i] = -mw_shrink(c.decay.shrink, x, i) - c.rate * d / (sqrtf(v[i]) + c.eps);
	}
}

static inline void heavy_ball(struct rmsprop c, float *restrict v, float *restrict b, const float *x,
	const float *g, float *delta, size_t n)
{
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = mw_decayed(c.decay.couple, x, g, i);
		v[i] = c.keep * v[i] + c.take * (d * d);
		b[i] = c.momentum * b[i] + d / (sqrtf(v[i]) + c.eps);
		delta[i] = -mw_shrink(c.decay.shrink, x, i) - c.rate * b[i];
	}
}

static inline void step(const void *coef, float *restrict v, float *restrict b, float *restrict none,
	const float *x, const float *g, float *delta, size_t n)
{
	const struct rmsprop *c = coef;
	(void)none;
	if (c->momentum > 0)
		heavy_ball(*c, v, b, x, g, delta, n);
	else
		plain(*c, v, x, g, delta, n);
}

MW_OPTIM_FUNCTIONS(struct rmsprop, prepare, step, o->fields)

const struct mw_optim_ops mw_optim_rmsprop = {
	.name = "rmsprop",
	.summary = "RMSProp: gradients over their running root mean square",
	.options = options,
	.option_size = sizeof(struct rmsprop_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
};
