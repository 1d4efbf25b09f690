/*
 * adam.c: Adam (Kingma, Ba 2015), with decoupled weight decay (AdamW; Loshchilov, Hutter 2019) or coupled.
 *
 * m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, delta = -rate decay x - rate/(1-b1^t) m / (sqrt(v / (1-b2^t)) +
 * eps), as torch.optim.AdamW (coupled: Adam) of PyTorch 1.13 (tests/reference/optim_torch.py).
 */
#include <math.h>

#include "base/mem.h"
#include "optim/optim_make.h"

struct adam_options {
	double beta1, beta2, eps;
	struct mw_decay_options decay;
	bool bias_correction;
};

static const struct mw_option options[] = {
	{ "beta1", MW_OPT_FLOAT, offsetof(struct adam_options, beta1), "0.9", 0, 0.999999, NULL, "B",
		"Decay of the running average of the gradient." },
	{ "beta2", MW_OPT_FLOAT, offsetof(struct adam_options, beta2), "0.999", 0, 0.999999999, NULL, "B",
		"Decay of the running average of the squared gradient." },
	{ "eps", MW_OPT_FLOAT, offsetof(struct adam_options, eps), "1e-8", 1e-30, 1e3, NULL, "E",
		"Added to the root of the second moment." },
	{ "bias-correction", MW_OPT_BOOL, offsetof(struct adam_options, bias_correction), "yes", 0, 0, NULL,
		NULL, "Divide the averages by 1 - beta^t, as PyTorch does." },
	MW_DECAY_OPTION_LINES(struct adam_options, "decoupled"),
	{ 0 },
};

struct adam {
	struct mw_beta beta1, beta2;
	float eps;
	struct mw_decay decay;
	bool corrected;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct adam_options *p = options_;
	struct adam *a = mw_alloc(sizeof(*a), "adam", err);
	if (!a)
		return MW_ERESOURCE;
	mw_beta_init(&a->beta1, p->beta1);
	mw_beta_init(&a->beta2, p->beta2);
	a->eps = (float)p->eps;
	a->corrected = p->bias_correction;
	o->priv = a;
	mw_optim_rule(o, MW_RULE_adam);
	a->decay = mw_decay_init(o, &p->decay);
	return 0;
}

static struct mw_coef prepare(const struct adam *a, const struct mw_step *s)
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

const struct mw_optim_ops mw_optim_adam = {
	.name = "adam",
	.summary = "Adam; with --weight-decay AdamW",
	.options = options,
	.option_size = sizeof(struct adam_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
	.row = row,
};
