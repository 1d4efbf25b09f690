/* moments.c: see moments.h. */
#include "optim/moments.h"

#include "base/mem.h"

const struct mw_option mw_moments_options[] = {
	{ "beta1", MW_OPT_FLOAT, offsetof(struct mw_moments_options, beta1), "0.9", 0, 0.999999, NULL, "B",
		"Decay of the running average of the gradient." },
	{ "beta2", MW_OPT_FLOAT, offsetof(struct mw_moments_options, beta2), "0.999", 0, 0.999999999, NULL,
		"B", "Decay of the running average of the squared gradient." },
	{ "eps", MW_OPT_FLOAT, offsetof(struct mw_moments_options, eps), "1e-8", 1e-30, 1e3, NULL, "E",
		"Added to the root of the second moment." },
	{ "bias-correction", MW_OPT_BOOL, offsetof(struct mw_moments_options, bias_correction), "yes", 0, 0,
		NULL, NULL, "Divide the averages by 1 - beta^t, as PyTorch does." },
	MW_DECAY_OPTION_LINES(struct mw_moments_options, "decoupled"),
	{ 0 },
};

struct moments {
	struct mw_beta beta1, beta2;
	float eps;
	struct mw_decay decay;
	bool corrected;
};

int mw_moments_setup(
	struct mw_optim *o, const struct mw_moments_options *p, enum mw_rule rule, struct mw_err *err)
{
	struct moments *m = mw_alloc(sizeof(*m), "moments", err);
	if (!m)
		return MW_ERESOURCE;
	mw_beta_init(&m->beta1, p->beta1);
	mw_beta_init(&m->beta2, p->beta2);
	m->eps = (float)p->eps;
	m->corrected = p->bias_correction;
	o->priv = m;
	mw_optim_rule(o, rule);
	m->decay = mw_decay_init(o, &p->decay);
	return 0;
}

struct mw_coef mw_moments_coef(const struct mw_optim *o, const struct mw_step *s)
{
	const struct moments *m = o->priv;
	double c1 = m->corrected ? mw_beta_correction(&m->beta1, s->t + 1) : 1;
	double c2 = m->corrected ? mw_beta_correction(&m->beta2, s->t + 1) : 1;
	return (struct mw_coef){ .keep1 = m->beta1.keep,
		.take1 = m->beta1.take,
		.keep2 = m->beta2.keep,
		.take2 = m->beta2.take,
		.size = (float)((double)s->rate / c1),
		.root_scale = (float)(1 / sqrt(c2)),
		.eps = m->eps,
		.couple = m->decay.couple,
		.shrink = s->rate * m->decay.shrink };
}
