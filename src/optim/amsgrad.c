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

/* Constants of one step. */
struct coef {
	float keep1, take1, keep2, take2, size, root_scale, eps, couple, shrink;
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
	o->fields = 3;
	a->decay = mw_decay_init(o, &p->decay);
	return 0;
}

static struct coef prepare(const struct amsgrad *a, const struct mw_step *s)
{
	double c1 = a->corrected ? mw_beta_correction(&a->beta1, s->t + 1) : 1;
	double c2 = a->corrected ? mw_beta_correction(&a->beta2, s->t + 1) : 1;
	return (struct coef){ a->beta1.keep, a->beta1.take, a->beta2.keep, a->beta2.take,
		(float)((double)s->rate / c1), (float)(1 / sqrt(c2)), a->eps, a->decay.couple,
		s->rate * a->decay.shrink };
}

static inline void step(const void *coef, float *restrict m, float *restrict v, float *restrict top,
	const float *x, const float *g, float *delta, size_t n)
{
	struct coef c = *(const struct coef *)coef;
	MW_EACH_PARAMETER
	for (size_t i = 0; i < n; i++) {
		float d = mw_decayed(c.couple, x, g, i);
		m[i] = c.keep1 * m[i] + c.take1 * d;
		v[i] = c.keep2 * v[i] + c.take2 * (d * d);
		top[i] = v[i] > top[i] ? v[i] : top[i];
		delta[i] =
			-mw_shrink(c.shrink, x, i) - c.size * m[i] / (sqrtf(top[i]) * c.root_scale + c.eps);
	}
}

MW_OPTIM_FUNCTIONS(struct coef, prepare, step, 3)

const struct mw_optim_ops mw_optim_amsgrad = {
	.name = "amsgrad",
	.summary = "AMSGrad: Adam whose second moment never falls",
	.options = options,
	.option_size = sizeof(struct amsgrad_options),
	.setup = setup,
	.dense = dense,
	.sparse = sparse,
};
