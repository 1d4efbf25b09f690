/* stats.c: see stats.h. */
#include "base/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum { STREAM_BOOTSTRAP = 0x57a7000, RESAMPLES_MIN = 100, PAIRS_MIN = 3, PAIRS_MIN_INTERVAL = 4 };

/* Of n equal numbers whose mean is rounded a variance of this times the mean squared is left over. */
#define ROUNDING 1e-30

struct ranked {
	double value;
	uint64_t at;
};

static double pearson(const double *x, const double *y, uint32_t n)
{
	double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
	for (uint32_t i = 0; i < n; i++) {
		mx += (x[i] - mx) / (i + 1);
		my += (y[i] - my) / (i + 1);
	}
	for (uint32_t i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		yy += (y[i] - my) * (y[i] - my);
		xy += (x[i] - mx) * (y[i] - my);
	}
	if (!(xx > ROUNDING * n * mx * mx) || !(yy > ROUNDING * n * my * my))
		return NAN;
	return fmax(-1, fmin(1, xy / (sqrt(xx) * sqrt(yy))));
}

static int by_value(const void *a, const void *b)
{
	double u = ((const struct ranked *)a)->value, v = ((const struct ranked *)b)->value;
	return (u > v) - (u < v);
}

static void rank(const double *x, uint32_t n, double *out, struct ranked *order)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = (struct ranked){ x[i], i };
	qsort(order, n, sizeof(*order), by_value);
	for (uint32_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && order[j].value == order[i].value; j++)
			;
		for (uint32_t k = i; k < j; k++) /* ranks i+1 .. j */
			out[order[k].at] = 0.5 * (i + 1.0 + j);
	}
}

double mw_correlation(enum mw_correlation kind, const double *x, const double *y, uint32_t n, double *work)
{
	if (n < PAIRS_MIN)
		return NAN;
	for (uint32_t i = 0; i < n; i++)
		if (!isfinite(x[i]) || !isfinite(y[i]) || (kind == MW_PEARSON_LOG_X && !(x[i] > 0)))
			return NAN;
	if (kind == MW_PEARSON)
		return pearson(x, y, n);
	if (kind == MW_PEARSON_LOG_X) {
		for (uint32_t i = 0; i < n; i++)
			work[i] = log(x[i]);
		return pearson(work, y, n);
	}
	struct ranked *order = (struct ranked *)(work + 2 * (size_t)n);
	rank(x, n, work, order);
	rank(y, n, work + n, order);
	return pearson(work, work + n, n);
}

double mw_quantile_sorted(const double *sorted, uint32_t n, double q)
{
	double at = fmax(0, fmin(1, q)) * (n - 1.0);
	uint32_t i = (uint32_t)at;
	return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static int ascending(const void *a, const void *b)
{
	double u = *(const double *)a, v = *(const double *)b;
	return (u > v) - (u < v);
}

/* Correlations of `resamples` draws into value, sorted; returns how many there are. */
static uint32_t resample(enum mw_correlation kind, const double *x, const double *y, uint32_t n,
	uint32_t resamples, uint64_t seed, double *work, double *value)
{
	struct mw_rng rng;
	double *xs = work + MW_CORRELATION_WORK(n), *ys = xs + n;
	uint32_t have = 0;
	mw_rng_init(&rng, seed, STREAM_BOOTSTRAP);
	for (uint32_t r = 0; r < resamples; r++) {
		for (uint32_t i = 0; i < n; i++) {
			uint64_t k = mw_rng_below(&rng, n);
			xs[i] = x[k];
			ys[i] = y[k];
		}
		double c = mw_correlation(kind, xs, ys, n, work);
		if (!isnan(c))
			value[have++] = c;
	}
	qsort(value, have, sizeof(*value), ascending);
	return have;
}

int mw_correlation_bootstrap(enum mw_correlation kind, const double *x, const double *y, uint32_t n,
	double level, uint32_t resamples, uint64_t seed, struct mw_interval *out, struct mw_err *err)
{
	*out = (struct mw_interval){ NAN, NAN, NAN, n, 0 };
	if (!(level > 0 && level < 1) || resamples < RESAMPLES_MIN)
		MW_FAIL(err, USAGE,
			"a bootstrap interval of level %g from %u resamples: needs 0 < level < 1 "
			"and at least %d",
			level, resamples, RESAMPLES_MIN);
	double *work = mw_alloc_array(
		MW_CORRELATION_WORK(n) + 2 * (size_t)n + 1, sizeof(*work), "correlations", err);
	double *value = mw_alloc_array(resamples, sizeof(*value), "correlations", err);
	int code = work && value ? 0 : MW_ERESOURCE;
	if (!code)
		out->value = mw_correlation(kind, x, y, n, work);
	if (!code && n >= PAIRS_MIN_INTERVAL && !isnan(out->value)) {
		uint32_t have = resample(kind, x, y, n, resamples, seed, work, value);
		out->resamples = have;
		if (have >= RESAMPLES_MIN / 2) {
			out->low = mw_quantile_sorted(value, have, (1 - level) / 2);
			out->high = mw_quantile_sorted(value, have, (1 + level) / 2);
		}
	}
	mw_free(work);
	mw_free(value);
	return code;
}
