/* unit_run_scaling.c: the arithmetic of the throughput model: the points that it is calibrated with, its limits, its order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "run/scaling.h"

static const struct mw_scaling s = { .t1 = 140e-9,
	.t2 = 150e-9,
	.s2 = 800e-9,
	.merge = 20e-6,
	.mean = 12e-6,
	.latency = 100e-9,
	.lines = 65,
	.q = 1,
	.dim_lines = 3000,
	.period_lines = 3000,
	.bytes = 600,
	.cold_lines = 20,
	.cold_q = 0.1,
	.hot_columns = 4800,
	.cores_per_node = 32,
	.stripes = 24,
	.remote = 2.5,
	.bandwidth = 0 };

static void near(double is, double want)
{
	if (!(fabs(is - want) <= 1e-9 * fabs(want)))
		fail_msg("%.12g is not %.12g", is, want);
}

/* One and two workers give back what was measured. */
static void test_calibrated_points(void **state)
{
	(void)state;
	near(mw_scaling_conflict_s(&s), 650e-9 / 32.5);
	for (int kind = 0; kind < 3; kind++)
		near(mw_scaling_rate(&s, (enum mw_scaling_kind)kind, 1, 0, 2048), 1 / 140e-9);
	near(mw_scaling_rate(&s, MW_SCALING_SHARED, 2, 0, 2048), 2 / 800e-9);
	near(mw_scaling_rate(&s, MW_SCALING_WORKER, 2, 0, 2048), 2 * 2048 / (2048 * 150e-9 + 20e-6));
	/* two groups: each exchanges every 2048 own steps, and fetches its lines again */
	near(mw_scaling_rate(&s, MW_SCALING_NODE, 2, 2, 2048),
		2 * 2048 / (2048 * 150e-9 + 12e-6 + 3000 * 20e-9));
	/* one node: one replica */
	near(mw_scaling_rate(&s, MW_SCALING_NODE, 2, 0, 2048),
		mw_scaling_rate(&s, MW_SCALING_SHARED, 2, 0, 2048));
}

static void test_limits(void **state)
{
	(void)state;
	struct mw_scaling x = s;
	/* the hottest line: never more than 1 / (latency q (n-1)/n), over nodes less */
	near(mw_scaling_rate(&s, MW_SCALING_SHARED, 32, 0, 2048), 1 / (100e-9 * 31 / 32));
	double far = (256 - 32.0) / 255;
	near(mw_scaling_rate(&s, MW_SCALING_SHARED, 256, 0, 2048),
		1 / (100e-9 * (1 + far * 1.5) * 255 / 256));
	/* a worker's own replica: linear while memory lasts */
	double w64 = mw_scaling_rate(&s, MW_SCALING_WORKER, 64, 0, 2048),
	       w128 = mw_scaling_rate(&s, MW_SCALING_WORKER, 128, 0, 2048);
	near(w128, 2 * w64);
	x.bandwidth = 32 * 600 / 1e-6; /* 32 workers of a node: 1 us an example */
	near(mw_scaling_rate(&x, MW_SCALING_WORKER, 64, 0, 1e12), 64 * 1e12 / (1e12 * 1e-6 + 50e-6));
	/* merges that are too frequent wait for each other: `stripes` at a time */
	near(mw_scaling_rate(&s, MW_SCALING_WORKER, 256, 0, 1), 24 / (20e-6 * 2.5));
	/* sharing that costs nothing: cores add up */
	x = s;
	x.s2 = x.t2;
	x.q = 0;
	near(mw_scaling_rate(&x, MW_SCALING_SHARED, 8, 0, 2048), 8 / 150e-9);
	x.s2 = x.t2 / 2; /* noise: never a gain */
	assert_true(mw_scaling_conflict_s(&x) == 0);
}

/* Hot columns private: between all shared and all private, and each of them at its ends. */
static void test_hot_private(void **state)
{
	(void)state;
	struct mw_scaling x = s;
	/* 300 lines of 3000: a tenth of a merge; 20 lines of 65 are found elsewhere every second time */
	near(mw_scaling_rate(&s, MW_SCALING_HOT, 2, 0, 2048),
		2 * 2048 / (2048 * (150e-9 + 20e-9 * 10) + 2e-6));
	near(mw_scaling_rate(&s, MW_SCALING_HOT, 1, 0, 2048), 1 / 140e-9);
	x.hot_columns = 0, x.cold_lines = x.lines, x.cold_q = x.q;
	for (uint32_t n = 2; n <= 256; n *= 2)
		near(mw_scaling_rate(&x, MW_SCALING_HOT, n, 0, 2048),
			mw_scaling_rate(&x, MW_SCALING_SHARED, n, 0, 2048));
	x.hot_columns = 48000, x.cold_lines = 0, x.cold_q = 0;
	for (uint32_t n = 2; n <= 256; n *= 2)
		near(mw_scaling_rate(&x, MW_SCALING_HOT, n, 0, 2048),
			mw_scaling_rate(&x, MW_SCALING_WORKER, n, 0, 2048));
	/* the hottest of the cold lines, and merges of 2.4 stripes at a time */
	near(mw_scaling_rate(&s, MW_SCALING_HOT, 256, 0, 1e12),
		fmin(256 / (150e-9 + 20e-9 * 20 * 255 / 256 * (1 + 224.0 / 255 * 1.5)),
			1 / (100e-9 * (1 + 224.0 / 255 * 1.5) * 0.1 * 255 / 256)));
	near(mw_scaling_rate(&s, MW_SCALING_HOT, 256, 0, 1), 2.4 / (2e-6 * 2.5));
}

static void test_order(void **state)
{
	(void)state;
	for (uint32_t n = 64; n <= 256; n *= 2) {
		double shared = mw_scaling_rate(&s, MW_SCALING_SHARED, n, 0, 2048);
		double node = mw_scaling_rate(&s, MW_SCALING_NODE, n, 0, 2048);
		double worker = mw_scaling_rate(&s, MW_SCALING_WORKER, n, 0, 2048);
		assert_true(shared < node && node < worker);
	}
	/* exchanges of more replicas cost more: eight nodes' leads lose a larger part of their time than two's */
	double two = mw_scaling_rate(&s, MW_SCALING_NODE, 2, 2, 64),
	       eight = mw_scaling_rate(&s, MW_SCALING_NODE, 8, 8, 64);
	assert_true(eight < 4 * two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calibrated_points),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_hot_private),
		cmocka_unit_test(test_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
