/*
 * moments.h: what Adam and its kin share: options, running averages of the gradient and of its square, constants of a step.
 * They differ in the rule alone.
 */
#ifndef MW_OPTIM_MOMENTS_H
#define MW_OPTIM_MOMENTS_H

#include "optim/optim_make.h"

struct mw_moments_options {
	double beta1, beta2, eps;
	struct mw_decay_options decay;
	bool bias_correction;
};
extern const struct mw_option mw_moments_options[];

int mw_moments_setup(
	struct mw_optim *o, const struct mw_moments_options *p, enum mw_rule rule, struct mw_err *err);
struct mw_coef mw_moments_coef(const struct mw_optim *o, const struct mw_step *s);

#endif
