/*
 * optim_make.h: what optimizer files share. An optimizer is options, constants of a step, and a rule of rules.h that they
 * are given to.
 */
#ifndef MW_OPTIM_OPTIM_MAKE_H
#define MW_OPTIM_OPTIM_MAKE_H

#include "optim/optim.h"
#include "optim/rules.h"

/* The decay of a running average: keep = beta, take = 1 - beta. */
struct mw_beta {
	double beta;
	float keep, take;
	uint64_t settled; /* from this step on 1 - beta^t is 1 in double */
};
void mw_beta_init(struct mw_beta *b, double beta);
/* 1 - beta^t, by multiplications alone: the same bits everywhere. */
double mw_beta_correction(const struct mw_beta *b, uint64_t t);

/* Weight decay, the same in all optimizers: a member of the option struct named `decay`, two lines of its table. */
struct mw_decay_options {
	double weight_decay;
	int form;
};
enum mw_decay_form { MW_DECAY_COUPLED, MW_DECAY_DECOUPLED };
#define MW_DECAY_OPTION_LINES(type, usual)                                                                 \
	{ "weight-decay", MW_OPT_FLOAT, offsetof(type, decay.weight_decay), "0", 0, 1e3, NULL, "D",        \
		"Weight decay; sparse models: only of the coordinates that a step touches." },             \
	{                                                                                                  \
		"decay-form", MW_OPT_CHOICE, offsetof(type, decay.form), usual, 0, 0, "coupled|decoupled", \
			NULL,                                                                              \
			"Coupled: D x is added to the gradient. Decoupled: x shrinks by rate D x beside "  \
			"the step, "                                                                       \
			"as in AdamW and SGDW."                                                            \
	}

/* Both are 0 without decay, one of them else: direction's g = g + couple x, delta = ... - rate shrink x. */
struct mw_decay {
	float couple, shrink;
};
/* Also sets o->needs_x. */
struct mw_decay mw_decay_init(struct mw_optim *o, const struct mw_decay_options *p);

/* Choose the arithmetic: sets o->rule and o->fields. */
void mw_optim_rule(struct mw_optim *o, enum mw_rule rule);

#endif
