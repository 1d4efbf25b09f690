/*
 * rmsprop.c: RMSProp (Tieleman, Hinton 2012): v = b2 v + (1-b2) g^2, delta = -rate g / (sqrt(v) + eps), as
 * torch.optim.RMSprop of PyTorch 1.13 (its alpha is our beta2).
 */
#include <math.h>

#include "base/mem.h"
#include "optim/optim_make.h"

struct rmsprop_options {
	double beta2, eps;
	struct mw_decay_options decay;
};

static const struct mw_option options[] = {
	{ "beta2", MW_OPT_FLOAT, offsetof(struct rmsprop_options, beta2), "0.99", 0, 0.999999999, NULL, "B",
		"Decay of the running average of the squared gradient." },
	{ "eps", MW_OPT_FLOAT, offsetof(struct rmsprop_options, eps), "1e-8", 1e-30, 1e3, NULL, "E",
		"Added to the root of the second moment." },
	MW_DECAY_OPTION_LINES(struct rmsprop_options, "coupled"),
	{ 0 },
};

struct rmsprop {
	float keep, take, eps, rate;
	struct mw_decay decay;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct rmsprop_options *p = options_;
	struct rmsprop *a = mw_alloc(sizeof(*a), "rmsprop", err);
	if (!a)
		return MW_ERESOURCE;
	*a = (struct rmsprop){ (float)p->beta2, (float)(1 - p->beta2), (float)p->eps, 0,
		mw_decay_init(o, &p->decay) };
	o->priv = a;
	o->fields = 1;
	return 0;
}

static struct rmsprop prepare(const struct rmsprop *a, const struct mw_step *s)
{
	struct rmsprop c = *a;
	c.rate = s->rate;
	c.decay.shrink *= s->rate;
	return c;
}

static inline void step(const void *coef, float *restrict v, float *restrict none1, float *restrict none2,
	const float *x, const float *g, float *delta, size_t n)
{
	struct rmsprop c = *(const struct rmsprop *)coef;
	(void)none1, (void)none2;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = mw_decayed(c.decay.couple, x, g, i);
		v[i] = c.keep * v[i] + c.take * (d * d);
		delta[i] = -mw_shrink(c.decay.shrink, x, i) - c.rate * d / (sqrtf(v[i]) + c.eps);
	}
}

MW_OPTIM_FUNCTIONS(struct rmsprop, prepare, step, 1)

const struct mw_optim_ops mw_optim_rmsprop = {
	.name = "rmsprop",
	.summary = "RMSProp: gradients over their running root mean square",
	.options = options,
	.option_size = sizeof(struct rmsprop_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
};
