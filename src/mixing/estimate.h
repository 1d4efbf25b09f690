/* estimate.h: what every estimator of the mixing time in a running system returns (theory.md section 4). */
#ifndef MW_MIXING_ESTIMATE_H
#define MW_MIXING_ESTIMATE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Which quantity an estimator aims at: they differ, so a value without its target says nothing. */
enum mw_target {
	MW_TARGET_ANN,   /* t_ann: the mean is taken inside the norm */
	MW_TARGET_SUP,   /* t_ann of a fixed sequence: no mean, the largest over the starts seen */
	MW_TARGET_INF,   /* t_inf: ln 2 / the rate of the tail */
	MW_TARGET_FIRST, /* t_1: ln 2 / the rate of E Phi */
	MW_TARGETS
};

/* Numbers that do not exist are NAN. All times are in native steps. */
struct mw_estimate {
	bool identified; /* false: reason says why there is no value */
	char reason[160];
	double value,
		error; /* error: a standard error, and half of what the bracketing values differ by, in quadrature */
	enum mw_target target;
	double pooled, split; /* of one mean over all starts (biased up), and by halves (biased down) */
	double tv;            /* in total variation; NAN in the use form */
	double sup;           /* smallest k at which no start seen is above the threshold */
	double quenched;      /* mean time of one product to fall below it: the norm first, then the mean */
	uint64_t n;           /* starts or segments */
};

const char *mw_target_name(enum mw_target target); /* "t_ann", "t_sup", "t_inf", "t_1" */

/* No value yet, of n starts, segments or snapshots that were seen. */
static inline struct mw_estimate mw_estimate_none(enum mw_target target, uint64_t n)
{
	return (struct mw_estimate){ .value = NAN,
		.error = NAN,
		.pooled = NAN,
		.split = NAN,
		.tv = NAN,
		.sup = NAN,
		.quenched = NAN,
		.n = n,
		.target = target };
}

#endif
