/*
 * sgd.c: stochastic gradient descent with momentum (heavy ball) or Nesterov's momentum, as PyTorch defines
 * them: g' = g + decay x, b = momentum b + g', direction = b (Nesterov: g' + momentum b), delta = -rate
 * direction; decoupled decay (SGDW): g' = g, delta = -rate direction - rate decay x.
 */
#include "base/mem.h"
#include "optim/optim_make.h"

struct sgd_options {
	double momentum;
	struct mw_decay_options decay;
	bool nesterov;
};

static const struct mw_option options[] = {
	{ "momentum", MW_OPT_FLOAT, offsetof(struct sgd_options, momentum), "0", 0, 0.999999, NULL, "M",
		"Momentum: each step keeps M of the last one." },
	{ "nesterov", MW_OPT_BOOL, offsetof(struct sgd_options, nesterov), "no", 0, 0, NULL, NULL,
		"Nesterov's momentum instead of the heavy ball." },
	MW_DECAY_OPTION_LINES(struct sgd_options, "coupled"),
	{ 0 },
};

struct sgd {
	float momentum;
	struct mw_decay decay;
	bool nesterov;
};

static int setup(struct mw_optim *o, const void *options_, struct mw_err *err)
{
	const struct sgd_options *p = options_;
	if (p->nesterov && p->momentum == 0)
		MW_FAIL(err, USAGE, "--nesterov needs a momentum: add --momentum 0.9, for example");
	struct sgd *s = mw_alloc(sizeof(*s), "sgd", err);
	if (!s)
		return MW_ERESOURCE;
	*s = (struct sgd){ (float)p->momentum, mw_decay_init(o, &p->decay), p->nesterov };
	o->priv = s;
	mw_optim_rule(o, s->momentum == 0 ? MW_RULE_sgd_plain
			 : s->nesterov    ? MW_RULE_sgd_nesterov
					  : MW_RULE_sgd_heavy_ball);
	o->plain = !o->fields && !o->needs_x;
	return 0;
}

static struct mw_coef coef(const struct mw_optim *o, const struct mw_step *s)
{
	const struct sgd *p = o->priv;
	return (struct mw_coef){ .rate = s->rate,
		.momentum = p->momentum,
		.couple = p->decay.couple,
		.shrink = p->decay.shrink * s->rate };
}

const struct mw_optim_ops mw_optim_sgd = {
	.name = "sgd",
	.summary = "stochastic gradient descent, with momentum or Nesterov's",
	.options = options,
	.option_size = sizeof(struct sgd_options),
	.setup = setup,
	.coef = coef,
};
