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

/* Constants of one step. */
struct coef {
	float keep1, take1, keep2, take2, size, root_scale, eps, couple, shrink;
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
	o->fields = 2;
	a->decay = mw_decay_init(o, &p->decay);
	return 0;
}

static struct coef prepare(const struct adam *a, const struct mw_step *s)
{
	double c1 = a->corrected ? mw_beta_correction(&a->beta1, s->t + 1) : 1;
	double c2 = a->corrected ? mw_beta_correction(&a->beta2, s->t + 1) : 1;
	return (struct coef){ a->beta1.keep, a->beta1.take, a->beta2.keep, a->beta2.take,
		(float)((double)s->rate / c1), (float)(1 / sqrt(c2)), a->eps, a->decay.couple,
		s->rate * a->decay.shrink };
}

static inline void step(const void *coef, float *restrict m, float *restrict v, float *restrict none,
	const float *x, const float *g, float *delta, size_t n)
{
	struct coef c = *(const struct coef *)coef;
	(void)none;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = mw_decayed(c.couple, x, g, i);
		m[i] = c.keep1 * m[i] + c.take1 * d;
		v[i] = c.keep2 * v[i] + c.take2 * (d * d);
		delta[i] = -mw_shrink(c.shrink, x, i) - c.size * m[i] / (sqrtf(v[i]) * c.root_scale + c.eps);
	}
}

MW_OPTIM_FUNCTIONS(struct coef, prepare, step, 2)

const struct mw_optim_ops mw_optim_adam = {
	.name = "adam",
	.summary = "Adam; with --weight-decay AdamW",
	.options = options,
	.option_size = sizeof(struct adam_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
};
