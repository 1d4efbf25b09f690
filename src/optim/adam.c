/*
 * adam.c: Adam (Kingma, Ba 2015), with decoupled weight decay (AdamW; Loshchilov, Hutter 2019).
 *
 * m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, delta = -rate decay x - rate/(1-b1^t) m / (sqrt(v / (1-b2^t)) +
 * eps), as torch.optim.Adam and AdamW of PyTorch 1.13 (tests/reference/optim_torch.py).
 */
#include <math.h>

#include "base/mem.h"
#include "optim/optim_make.h"

struct adam_options {
	double beta1, beta2, eps, weight_decay;
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
	{ "weight-decay", MW_OPT_FLOAT, offsetof(struct adam_options, weight_decay), "0", 0, 1e3, NULL, "D",
		"Decoupled weight decay (AdamW): x shrinks by rate D x; sparse models: only the coordinates "
		"that a step touches." },
	{ 0 },
};

struct adam {
	struct mw_beta beta1, beta2;
	float eps, decay;
	bool corrected;
};

/* Constants of one step. */
struct coef {
	float keep1, take1, keep2, take2, size, root_scale, eps, shrink;
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
	a->decay = (float)p->weight_decay;
	o->needs_x = a->decay > 0;
	return 0;
}

static struct coef prepare(const struct adam *a, const struct mw_step *s)
{
	double c1 = a->corrected ? mw_beta_correction(&a->beta1, s->t + 1) : 1;
	double c2 = a->corrected ? mw_beta_correction(&a->beta2, s->t + 1) : 1;
	return (struct coef){ a->beta1.keep, a->beta1.take, a->beta2.keep, a->beta2.take,
		(float)((double)s->rate / c1), (float)(1 / sqrt(c2)), a->eps, s->rate * a->decay };
}

static inline void step(const void *coef, float *restrict m, float *restrict v, float *restrict none,
	const float *x, const float *g, float *delta, size_t n)
{
	struct coef c = *(const struct coef *)coef;
	(void)none;
	x = c.shrink > 0 ? x : NULL;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		m[i] = c.keep1 * m[i] + c.take1 * g[i];
		v[i] = c.keep2 * v[i] + c.take2 * (g[i] * g[i]);
		float shrink = x ? c.shrink * x[i] : 0.0f;
		delta[i] = -shrink - c.size * m[i] / (sqrtf(v[i]) * c.root_scale + c.eps);
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
