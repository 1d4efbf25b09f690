/*
 * bound.h: convergence bounds through the mixing time: theorems 1A, 1B, 1C, 2, 3 and 4 of theory.md section 5, with given
 * constants; the step sizes they admit, and the step that makes each bound smallest.
 *
 *     1A  SGD, all workers in every round, heterogeneous data     (1/T) sum E|grad f(y)|^2
 *     1B  SGD, one gradient a step, homogeneous data              the same
 *     1C  AD-PSGD: one random worker a step, after the exchange   the same; T in steps
 *     2   SGD on convex f                                         E f(ybar) - f*
 *     3   AMSGrad, bounded gradients                              (1/T) sum E|grad f(z)|^2
 *     4   RMSProp, bounded gradients                              (1/T) sum E|grad f(y)|^2
 */
#ifndef MW_MIXING_BOUND_H
#define MW_MIXING_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum mw_theorem { MW_THEOREM_1A, MW_THEOREM_1B, MW_THEOREM_1C, MW_THEOREM_2, MW_THEOREM_3, MW_THEOREM_4 };

/* Which consensus lemma turns t_mix (or delays) into the constants A and B. */
enum mw_lemma {
	MW_LEMMA_AUTO, /* 1A: C1, 1B: C2, 1C: C5 */
	MW_LEMMA_C1,   /* all workers, doubly stochastic: A = (8/3) t, B = 8 t^2 */
	MW_LEMMA_C2,   /* one gradient a step, known schedule: the same */
	MW_LEMMA_C3,   /* one gradient a step, independent schedule, annealed TV: A = 4 t, B = 24 t^2 */
	MW_LEMMA_C4,   /* recorded delays: A = 2 tau_avg, B = 2 tau_max c_max */
	MW_LEMMA_C5,   /* AD-PSGD, t_r = t/n: A = (8/3) t_r, B = (8/3) t_r + 8 t_r^2 */
};

struct mw_bound_input {
	enum mw_theorem theorem;
	enum mw_lemma lemma;
	double smoothness;              /* L */
	double gap;                     /* Delta = f(x_0) - f*; theorem 2: |x_0 - x*|^2 */
	double noise;                   /* sigma^2: E|g - grad f|^2 */
	double heterogeneity;           /* zeta^2; theorem 2: zeta_*^2, at the optimum */
	double convexity;               /* mu >= 0 (theorem 2) */
	double workers;                 /* n (1A, 1C) */
	double n_eff;                   /* 1 / sum p_a^2 (1B, 2): 1 for a server or shared buffer */
	double share;                   /* c: effective step / step (1B); 0 stands for 1 */
	double steps;                   /* T */
	double t_mix;                   /* in steps; 0: not given */
	double a, b;                    /* given constants of the lemma instead; 0: from the lemma */
	double s1;                      /* sum of d (3, 4); 0: 2 t_mix - 1 */
	double tau_avg, tau_max, c_max; /* C4; c_max 0: workers - 1 */
	double clip;                    /* G >= |g|_inf (3, 4) */
	double dim;                     /* d (3, 4) */
	double eps, beta1, beta2;       /* (3, 4) */
	double step;                    /* alpha; 0: the tuned one */
};

struct mw_bound_result {
	double a, b, s1; /* as used; NAN where the theorem has none */
	double r;        /* R of theorems 3 and 4: |update| <= alpha R; else NAN */
	double step_max; /* largest admissible step; INFINITY: no condition */
	double step, effective_step;
	bool tuned, admissible; /* bound is NAN when the step is not admissible */
	double bound;
	/* The bound is opt/(alpha T) + noise alpha + drift alpha^2 + constant (theorem 2 with mu > 0: opt differs). */
	double opt_term, noise_term, drift_term, constant_term;
	const char *left_side, *condition, *name; /* static text */
};

/* What is out of range or missing is a USAGE error that names it. Thread-safe. */
int mw_bound_evaluate(const struct mw_bound_input *in, struct mw_bound_result *out, struct mw_err *err);

/* x' = x - alpha L x_{t - tau} is stable iff alpha L is below this (theory.md 5.5). */
double mw_bound_delay_limit(double tau);

#endif
