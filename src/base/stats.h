/*
 * stats.h: how two lists of numbers go together: Pearson's and Spearman's correlation, with bootstrap intervals. Pure
 * functions; any thread.
 */
#ifndef MW_BASE_STATS_H
#define MW_BASE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum mw_correlation {
	MW_PEARSON,
	MW_PEARSON_LOG_X, /* of log x and y; every x must be positive */
	MW_SPEARMAN,      /* Pearson's of the ranks; ties get the mean of their ranks */
};

/* Numbers that mw_correlation works in for n pairs. */
#define MW_CORRELATION_WORK(n) (4 * (size_t)(n))

/*
 * Correlation of x[0..n-1] with y[0..n-1], in [-1, 1]. work: MW_CORRELATION_WORK(n) numbers. NAN: fewer than 3 pairs, one
 * of the lists does not vary, a number that is not finite, or (MW_PEARSON_LOG_X) an x that is not positive.
 */
double mw_correlation(enum mw_correlation kind, const double *x, const double *y, uint32_t n, double *work);

struct mw_interval {
	double value;       /* of the pairs as they are; NAN: none */
	double low, high;   /* NAN: none */
	uint32_t n;         /* pairs */
	uint32_t resamples; /* that had a value: those in which one list does not vary have none */
};

/*
 * The same with its percentile bootstrap interval (Efron 1979): pairs are drawn with replacement `resamples` times (at
 * least 100), and the interval holds the middle `level` (0.95, say) of their correlations, interpolated as numpy's
 * quantile does. The same seed gives the same interval. There is none for fewer than 4 pairs. Fails only for want of
 * memory, or where level is not between 0 and 1 or resamples below 100.
 */
int mw_correlation_bootstrap(enum mw_correlation kind, const double *x, const double *y, uint32_t n,
	double level, uint32_t resamples, uint64_t seed, struct mw_interval *out, struct mw_err *err);

/* Quantile q in [0, 1] of n >= 1 sorted numbers, linear between neighbours. */
double mw_quantile_sorted(const double *sorted, uint32_t n, double q);

#endif
