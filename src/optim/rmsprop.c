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
	float keep, take, eps, momentum;
	struct mw_decay decay;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct rmsprop_options *p = options_;
	struct rmsprop *a = mw_alloc(sizeof(*a), "rmsprop", err);
	if (!a)
		return MW_ERESOURCE;
	*a = (struct rmsprop){ (float)p->beta2, (float)(1 - p->beta2), (float)p->eps, (float)p->momentum,
		mw_decay_init(o, &p->decay) };
	o->priv = a;
	mw_optim_rule(o, a->momentum > 0 ? MW_RULE_rmsprop_momentum : MW_RULE_rmsprop);
	return 0;
}

static struct mw_coef coef(const struct mw_optim *o, const struct mw_step *s)
{
	const struct rmsprop *a = o->priv;
	return (struct mw_coef){ .rate = s->rate,
		.keep2 = a->keep,
		.take2 = a->take,
		.eps = a->eps,
		.momentum = a->momentum,
		.couple = a->decay.couple,
		.shrink = a->decay.shrink * s->rate };
}

const struct mw_optim_ops mw_optim_rmsprop = {
	.name = "rmsprop",
	.summary = "RMSProp: gradients over their running root mean square",
	.options = options,
	.option_size = sizeof(struct rmsprop_options),
	.setup = setup,
	.coef = coef,
};
