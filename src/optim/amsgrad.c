/*
 * amsgrad.c: AMSGrad (Reddi, Kale, Kumar 2018).
 *
 * m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, top = max(top, v), delta = -rate/(1-b1^t) m / (sqrt(top /
 * (1-b2^t)) + eps), weight decay as in adam.c: the maximum is over the uncorrected v and corrected afterwards, which is what
 * torch.optim.Adam(amsgrad=True) of PyTorch 1.13 does (tests/reference/optim_torch.py). The paper and
 * theory.md's Theorem 3 have no correction:
 * --no-bias-correction.
 */
#include <math.h>

#include "base/mem.h"
#include "optim/optim_make.h"

struct amsgrad_options {
	double beta1, beta2, eps;
	struct mw_decay_options decay;
	bool bias_correction;
};

static const struct mw_option options[] = {
	{ "beta1", MW_OPT_FLOAT, offsetof(struct amsgrad_options, beta1), "0.9", 0, 0.999999, NULL, "B",
		"Decay of the running average of the gradient." },
	{ "beta2", MW_OPT_FLOAT, offsetof(struct amsgrad_options, beta2), "0.999", 0, 0.999999999, NULL, "B",
		"Decay of the running average of the squared gradient." },
	{ "eps", MW_OPT_FLOAT, offsetof(struct amsgrad_options, eps), "1e-8", 1e-30, 1e3, NULL, "E",
		"Added to the root of the second moment." },
	{ "bias-correction", MW_OPT_BOOL, offsetof(struct amsgrad_options, bias_correction), "yes", 0, 0,
		NULL, NULL, "Divide the averages by 1 - beta^t, as PyTorch does." },
	MW_DECAY_OPTION_LINES(struct amsgrad_options, "decoupled"),
	{ 0 },
};

struct amsgrad {
	struct mw_beta beta1, beta2;
	float eps;
	struct mw_decay decay;
	bool corrected;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct amsgrad_options *p = options_;
	struct amsgrad *a = mw_alloc(sizeof(*a), "amsgrad", err);
	if (!a)
		return MW_ERESOURCE;
	mw_beta_init(&a->beta1, p->beta1);
	mw_beta_init(&a->beta2, p->beta2);
	a->eps = (float)p->eps;
	a->corrected = p->bias_correction;
	o->priv = a;
	mw_optim_rule(o, MW_RULE_amsgrad);
	a->decay = mw_decay_init(o, &p->decay);
	return 0;
}

static struct mw_coef prepare(const struct amsgrad *a, const struct mw_step *s)
{
	double c1 = a->corrected ? mw_beta_correction(&a->beta1, s->t + 1) : 1;
	double c2 = a->corrected ? mw_beta_correction(&a->beta2, s->t + 1) : 1;
	return (struct mw_coef){ .keep1 = a->beta1.keep,
		.take1 = a->beta1.take,
		.keep2 = a->beta2.keep,
		.take2 = a->beta2.take,
		.size = (float)((double)s->rate / c1),
		.root_scale = (float)(1 / sqrt(c2)),
		.eps = a->eps,
		.couple = a->decay.couple,
		.shrink = s->rate * a->decay.shrink };
}

MW_OPTIM_FUNCTIONS(prepare)

const struct mw_optim_ops mw_optim_amsgrad = {
	.name = "amsgrad",
	.summary = "AMSGrad: Adam whose second moment never falls",
	.options = options,
	.option_size = sizeof(struct amsgrad_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
	.row = row,
};
