/*
 * adagrad.c: Adagrad (Duchi, Hazan, Singer 2011): v = v + g^2, delta = -rate g / (sqrt(v) + eps), as
 * torch.optim.Adagrad of PyTorch 1.13.
 */
#include <math.h>

#include "base/mem.h"
#include "optim/optim_make.h"

struct adagrad_options {
	double eps;
	struct mw_decay_options decay;
};

static const struct mw_option options[] = {
	{ "eps", MW_OPT_FLOAT, offsetof(struct adagrad_options, eps), "1e-10", 1e-30, 1e3, NULL, "E",
		"Added to the root of the second moment." },
	MW_DECAY_OPTION_LINES(struct adagrad_options, "coupled"),
	{ 0 },
};

struct adagrad {
	float eps;
	struct mw_decay decay;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct adagrad_options *p = options_;
	struct adagrad *a = mw_alloc(sizeof(*a), "adagrad", err);
	if (!a)
		return MW_ERESOURCE;
	*a = (struct adagrad){ (float)p->eps, mw_decay_init(o, &p->decay) };
	o->priv = a;
	mw_optim_rule(o, MW_RULE_adagrad);
	return 0;
}

static struct mw_coef coef(const struct mw_optim *o, const struct mw_step *s)
{
	const struct adagrad *a = o->priv;
	return (struct mw_coef){
		.rate = s->rate, .eps = a->eps, .couple = a->decay.couple, .shrink = a->decay.shrink * s->rate
	};
}

const struct mw_optim_ops mw_optim_adagrad = {
	.name = "adagrad",
	.summary = "Adagrad: gradients over the root of the sum of their squares",
	.options = options,
	.option_size = sizeof(struct adagrad_options),
	.setup = setup,
	.coef = coef,
};
