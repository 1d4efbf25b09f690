/*
 * adam.c: Adam (Kingma, Ba 2015), with decoupled weight decay (AdamW; Loshchilov, Hutter 2019) or coupled.
 *
 * m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, delta = -rate decay x - rate/(1-b1^t) m / (sqrt(v / (1-b2^t)) +
 * eps), as torch.optim.AdamW (coupled: Adam) of PyTorch 1.13 (tests/reference/optim_torch.py).
 */
#include "optim/moments.h"

static int setup(struct mw_optim *o, const void *options, struct mw_err *err)
{
	return mw_moments_setup(o, options, MW_RULE_adam, err);
}

const struct mw_optim_ops mw_optim_adam = {
	.name = "adam",
	.summary = "Adam; with --weight-decay AdamW",
	.options = mw_moments_options,
	.option_size = sizeof(struct mw_moments_options),
	.setup = setup,
	.coef = mw_moments_coef,
};
