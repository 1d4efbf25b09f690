/* unit_base_stats.c: correlations and their intervals against scipy (tests/reference/stats_scipy.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "base/stats.h"

#define N 12
static const double x[N] = { 2, 5, 11, 23, 38, 154, 216, 9245, 12, 40, 40, 3 };
static const double y[N] = { 0.231, 0.244, 0.240, 0.262, 0.251, 0.291, 0.3, 0.342, 0.262, 0.257, 0.272,
	0.236 };

static void values_of_scipy(void **state)
{
	double work[MW_CORRELATION_WORK(N)];
	(void)state;
	assert_float_equal(mw_correlation(MW_PEARSON, x, y, N, work), 0.767382836687159, 1e-13);
	assert_float_equal(mw_correlation(MW_PEARSON_LOG_X, x, y, N, work), 0.965192107983817, 1e-13);
	assert_float_equal(mw_correlation(MW_SPEARMAN, x, y, N, work), 0.926315789473684, 1e-13);
}

static void large_offsets_do_not_matter(void **state)
{
	double a[N], b[N], work[MW_CORRELATION_WORK(N)];
	(void)state;
	for (int i = 0; i < N; i++) {
		a[i] = 1e6 + x[i];
		b[i] = -1e6 - 8 * y[i];
	}
	assert_float_equal(mw_correlation(MW_PEARSON, a, b, N, work), -0.767382836687159, 1e-8);
	assert_float_equal(mw_correlation(MW_SPEARMAN, a, b, N, work), -0.926315789473684, 1e-13);
}

static void no_value_where_there_is_none(void **state)
{
	static const double same[4] = { 0.1, 0.1, 0.1, 0.1 }, some[4] = { 1, 2, 3, 5 };
	static const double bad[4] = { 1, NAN, 2, 3 }, zero[4] = { 0, 1, 2, 3 };
	double work[MW_CORRELATION_WORK(4)];
	(void)state;
	assert_true(isnan(mw_correlation(MW_PEARSON, some, some, 2, work)));
	for (int k = MW_PEARSON; k <= MW_SPEARMAN; k++) {
		assert_true(isnan(mw_correlation(k, same, some, 4, work)));
		assert_true(isnan(mw_correlation(k, some, same, 4, work)));
		assert_true(isnan(mw_correlation(k, some, bad, 4, work)));
		assert_float_equal(
			mw_correlation(k, some, some, 4, work), 1, k == MW_PEARSON_LOG_X ? 0.05 : 1e-15);
	}
	assert_true(isnan(mw_correlation(MW_PEARSON_LOG_X, zero, some, 4, work)));
}

static void interval(enum mw_correlation kind, double low, double high)
{
	struct mw_interval r, again, other;
	struct mw_err err = { 0 };
	assert_int_equal(mw_correlation_bootstrap(kind, x, y, N, 0.9, 20000, 7, &r, &err), 0);
	assert_int_equal(r.n, N);
	assert_in_range(r.resamples, 19990, 20000); /* a draw without variation is rare */
	/* the standard error of these quantiles at 20,000 draws is about 0.002 (low) and 0.0002 (high) */
	assert_float_equal(r.low, low, 0.008);
	assert_float_equal(r.high, high, 0.0015);
	mw_correlation_bootstrap(kind, x, y, N, 0.9, 20000, 7, &again, &err);
	mw_correlation_bootstrap(kind, x, y, N, 0.9, 20000, 8, &other, &err);
	assert_true(again.low == r.low && again.high == r.high);
	assert_true(other.low != r.low || other.high != r.high);
}

static void intervals_of_scipy(void **state)
{
	(void)state;
	interval(MW_PEARSON_LOG_X, 0.8548, 0.9910);
	interval(MW_SPEARMAN, 0.7002, 0.9982);
}

static void intervals_of_few_pairs(void **state)
{
	struct mw_interval r;
	struct mw_err err = { 0 };
	(void)state;
	assert_int_equal(mw_correlation_bootstrap(MW_PEARSON, x, y, 3, 0.95, 1000, 1, &r, &err), 0);
	assert_true(isfinite(r.value) && isnan(r.low) && isnan(r.high));
	assert_int_equal(mw_correlation_bootstrap(MW_PEARSON, x, y, 0, 0.95, 1000, 1, &r, &err), 0);
	assert_true(isnan(r.value));
	assert_int_equal(mw_correlation_bootstrap(MW_PEARSON, x, y, N, 1.5, 1000, 1, &r, &err), MW_EUSAGE);
}

static void quantiles_of_numpy(void **state)
{
	static const double sorted[N] = { 0.231, 0.236, 0.240, 0.244, 0.251, 0.257, 0.262, 0.262, 0.272,
		0.291, 0.3, 0.342 };
	(void)state;
	assert_float_equal(mw_quantile_sorted(sorted, N, 0.025), 0.232375, 1e-12);
	assert_float_equal(mw_quantile_sorted(sorted, N, 0.5), 0.2595, 1e-12);
	assert_float_equal(mw_quantile_sorted(sorted, N, 0.975), 0.33045, 1e-12);
	assert_float_equal(mw_quantile_sorted(sorted, N, 1), 0.342, 0);
	assert_float_equal(mw_quantile_sorted(sorted, 1, 0.5), 0.231, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_scipy),
		cmocka_unit_test(large_offsets_do_not_matter),
		cmocka_unit_test(no_value_where_there_is_none),
		cmocka_unit_test(intervals_of_scipy),
		cmocka_unit_test(intervals_of_few_pairs),
		cmocka_unit_test(quantiles_of_numpy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
