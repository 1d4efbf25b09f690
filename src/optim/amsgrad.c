/*
 * amsgrad.c: AMSGrad (Reddi, Kale, Kumar 2018).
 *
 * m = b1 m + (1-b1) g, v = b2 v + (1-b2) g^2, top = max(top, v), delta = -rate/(1-b1^t) m / (sqrt(top /
 * (1-b2^t)) + eps), weight decay as in adam.c: the maximum is over the uncorrected v and corrected afterwards, which is what
 * torch.optim.Adam(amsgrad=True) of PyTorch 1.13 does (tests/reference/optim_torch.py). The paper and
 * theory.md's Theorem 3 have no correction:
 * --no-bias-correction.
 */
#include "optim/moments.h"

static int setup(struct mw_optim *o, const void *options, struct mw_err *err)
{
	return mw_moments_setup(o, options, MW_RULE_amsgrad, err);
}

const struct mw_optim_ops mw_optim_amsgrad = {
	.name = "amsgrad",
	.summary = "AMSGrad: Adam whose second moment never falls",
	.options = mw_moments_options,
	.option_size = sizeof(struct mw_moments_options),
	.setup = setup,
	.coef = mw_moments_coef,
};
