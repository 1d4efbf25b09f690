/* unit_sched.c: values, bounds and distributions of schedules, and what bad specs and files are told. */
#include "comm_util.h"

#include "sched/sched.h"

static struct mw_sched *sched_of(const char *spec)
{
	struct mw_err err = { 0 };
	struct mw_sched *s;
	if (mw_sched_parse(spec, &s, &err) != MW_OK)
		fail_msg("%s: %s", spec, err.msg);
	assert_string_equal(mw_sched_spec(s), spec);
	return s;
}

static void check_value(const char *spec, uint32_t worker, uint64_t step, double want)
{
	struct mw_sched *s = sched_of(spec);
	assert_near(mw_sched_value(s, 1, worker, step), want, 0);
	assert_near(mw_sched_value(s, 2, worker, step), want, 0);
	mw_sched_free(s);
}

static void test_values(void **state)
{
	(void)state;
	check_value("3.5", 7, 9, 3.5);
	check_value("constant:2k", 0, 0, 2000);
	check_value("uniform:4,4", 3, 5, 4);
	check_value("geometric:0", 3, 5, 0);
	check_value("heavy:0,shape=2", 3, 5, 0);
	check_value("square:8,1,period=10", 0, 4, 8);
	check_value("square:8,1,period=10", 0, 5, 1);
	check_value("square:8,1,period=10", 3, 20, 8);
	check_value("square:8,1,period=3", 0, 1, 8);
	check_value("square:8,1,period=3", 0, 2, 1);
	check_value("ramp:2,10,steps=4", 0, 0, 2);
	check_value("ramp:2,10,steps=4", 0, 1, 4);
	check_value("ramp:2,10,steps=4", 0, 4, 10);
	check_value("ramp:10,2,steps=4", 0, 3, 4);
	check_value("ramp:10,2,steps=4", 0, UINT64_MAX, 2);
	check_value("worker:1/2.5/0", 1, 9, 2.5);
	check_value("worker:1/2.5/0", 5, 9, 0);
	check_value("worker:7", 5, 9, 7);
	check_value("only:0/3,5", 3, 1, 5);
	check_value("only:0/3,5", 1, 1, 0);
	check_value("only:2,square:8,1,period=10", 2, 5, 1);
	check_value("only:2,only:2/4,6", 4, 0, 0);
}

static void test_bounds(void **state)
{
	static const struct {
		const char *spec;
		double max, fixed;
		bool zero;
	} cases[] = {
		{ "0", 0, 0, true },
		{ "constant:2", 2, 2, false },
		{ "uniform:0,8", 8, NAN, false },
		{ "uniform:3,3", 3, 3, false },
		{ "geometric:2", INFINITY, NAN, false },
		{ "geometric:0", 0, 0, true },
		{ "heavy:1,shape=2", INFINITY, NAN, false },
		{ "heavy:1,shape=2,max=9", 9, NAN, false },
		{ "heavy:0,shape=2", 0, 0, true },
		{ "square:1,4,period=2", 4, NAN, false },
		{ "square:4,4,period=2", 4, 4, false },
		{ "ramp:5,0,steps=3", 5, NAN, false },
		{ "worker:0/0", 0, 0, true },
		{ "worker:0/2", 2, NAN, false },
		{ "only:1,0", 0, 0, true },
		{ "only:1,3", 3, NAN, false },
	};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct mw_sched *s = sched_of(cases[c].spec);
		double fixed = mw_sched_fixed(s);
		assert_true(mw_sched_max(s) == cases[c].max);
		assert_true(fixed == cases[c].fixed || (isnan(fixed) && isnan(cases[c].fixed)));
		assert_int_equal(mw_sched_is_zero(s), cases[c].zero);
		mw_sched_free(s);
	}
	assert_true(mw_sched_is_zero(NULL));
	mw_sched_free(NULL);
}

/* Mean and variance over workers and steps against the law's, within 3 standard errors; values within the
 * bounds. */
static void check_moments(const char *spec, double low, double mean, double variance, bool whole)
{
	enum { WORKERS = 4, STEPS = 20000, N = WORKERS * STEPS };
	struct mw_sched *s = sched_of(spec);
	double sum = 0;
	for (uint32_t w = 0; w < WORKERS; w++)
		for (uint64_t t = 0; t < STEPS; t++) {
			double v = mw_sched_value(s, 42, w, t);
			assert_true(v >= low && v <= mw_sched_max(s) && (!whole || v == floor(v)));
			sum += v;
		}
	assert_near(sum / N, mean, 3 * sqrt(variance / N));
	mw_sched_free(s);
}

static void test_distributions(void **state)
{
	double m = 100, a = 2.5; /* Pareto of scale 1 cut off at m: E v^k = 1 + int_1^m k v^(k-1) v^-a dv */
	double mean = 1 + (1 - pow(m, 1 - a)) / (a - 1), square = 1 + 2 * (1 - pow(m, 2 - a)) / (a - 2);
	(void)state;
	check_moments("uniform:2,9", 2, 5.5, 63. / 12, true);
	check_moments("uniform:0,1", 0, .5, .25, true);
	check_moments("uniform:2.0,9", 2, 5.5, 49. / 12, false);
	check_moments("uniform:0.5,1.5", .5, 1, 1. / 12, false);
	check_moments("geometric:8", 0, 8, 72, true);
	check_moments("geometric:0.25", 0, .25, .3125, true);
	check_moments("geometric:1000", 0, 1000, 1001000, true);
	check_moments("heavy:3,shape=4", 3, 4, 2, false); /* variance S^2 a / ((a-1)^2 (a-2)) = 9 * 4 / 18 */
	check_moments("heavy:1,shape=2.5,max=100", 1, mean, square - mean * mean, false);
}

/* Shares of single values against the law, within 3 standard errors. */
static void test_tails(void **state)
{
	enum { N = 40000 };
	struct mw_sched *u = sched_of("uniform:0,3"), *g = sched_of("geometric:2"),
			*h = sched_of("heavy:2,shape=1.5");
	double ends = 0, at_least_3 = 0, above_8 = 0;
	(void)state;
	for (uint64_t t = 0; t < N; t++) {
		double v = mw_sched_value(u, 3, 0, t);
		ends += v == 0 || v == 3;
		at_least_3 += mw_sched_value(g, 3, 0, t) >= 3;
		above_8 += mw_sched_value(h, 3, 0, t) > 8;
	}
	assert_near(ends / N, .5, 3 * .5 / sqrt(N));
	assert_near(at_least_3 / N, 8. / 27, 3 * sqrt(8. / 27 * 19 / 27 / N));
	assert_near(above_8 / N, .125, 3 * sqrt(.125 * .875 / N));
	mw_sched_free(u);
	mw_sched_free(g);
	mw_sched_free(h);
}

static void test_pure(void **state)
{
	static const char *const specs[] = { "uniform:0,1000000", "uniform:0.0,1", "geometric:1000",
		"heavy:1,shape=1" };
	(void)state;
	for (int k = 0; k < 4; k++) {
		struct mw_sched *a = sched_of(specs[k]), *b = sched_of(specs[k]);
		uint32_t same = 0;
		double first = mw_sched_value(a, 1, 2, 3);
		for (uint64_t t = 0; t < 1000; t++) {
			double v = mw_sched_value(a, 9, 1, 999 - t);
			assert_near(v, mw_sched_value(b, 9, 1, 999 - t), 0);
			same += v == mw_sched_value(a, 10, 1, 999 - t);
			same += v == mw_sched_value(a, 9, 2, 999 - t);
			same += v == mw_sched_value(a, 9, 1, 1000 + t);
		}
		assert_true(same < 30);
		assert_near(mw_sched_value(a, 1, 2, 3), first, 0);
		mw_sched_free(a);
		mw_sched_free(b);
	}
}

/* heavy's own logarithm and exponential against the library's: u is recovered from shape 1, v = 1/u. */
static void test_heavy_accuracy(void **state)
{
	struct mw_sched *one = sched_of("heavy:1,shape=1"), *s = sched_of("heavy:3,shape=0.7");
	(void)state;
	for (uint64_t t = 0; t < 20000; t++) {
		double v = mw_sched_value(one, 5, 0, t), want = 3 * pow(v, 1 / .7);
		assert_near(mw_sched_value(s, 5, 0, t) / want, 1, 1e-14);
	}
	mw_sched_free(one);
	mw_sched_free(s);
}

static void check_error(const char *spec, int code, const char *part)
{
	struct mw_err err = { 0 };
	struct mw_sched *s;
	assert_int_equal(mw_sched_parse(spec, &s, &err), code);
	assert_null(s);
	if (!strstr(err.msg, part))
		fail_msg("%s: \"%s\" lacks \"%s\"", spec, err.msg, part);
}

static void test_errors(void **state)
{
	static const char *const cases[][2] = {
		{ "", "missing" },
		{ "constant", "missing" },
		{ "constant:x", "'x'" },
		{ "-1", "at least 0" },
		{ "1,2", "'1,2'" },
		{ "unifrm:1,2", "did you mean \"uniform\"?" },
		{ "uniform:5", "B is missing" },
		{ "uniform:5,", "B is missing" },
		{ "uniform:5,2", "B must be at least A" },
		{ "uniform:1,2,3", "'2,3'" },
		{ "geometric:-1", "at least 0" },
		{ "geometric:1e13", "above 1e12" },
		{ "heavy:1", "expected shape=NUMBER" },
		{ "heavy:1,2", "expected shape=NUMBER, not 2" },
		{ "heavy:1,shape=0", "at least 0.1" },
		{ "heavy:4,shape=2,max=3", "below the scale" },
		{ "heavy:4,shape=2,max=9,x=1", "'9,x=1'" },
		{ "square:1,2", "expected period=NUMBER" },
		{ "square:1,2,period=1", "no halves" },
		{ "square:1,2,period=2.5", "whole number" },
		{ "ramp:1,2,steps=0", "whole number of at least 1" },
		{ "worker:", "missing" },
		{ "worker:1//2", "'' is not" },
		{ "worker:1/a", "'a'" },
		{ "only:1", "only:W1/W2...,SPEC" },
		{ "only:,5", "whole numbers" },
		{ "only:1/x,5", "whole numbers" },
		{ "only:1/,5", "whole numbers" },
		{ "only:4294967295,5", "whole numbers" },
		{ "only:1,nothing:5", "unknown schedule" },
	};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		check_error(cases[c][0], MW_EUSAGE, cases[c][1]);
	check_error("file:/nonexistent/x", MW_EDATA, "/nonexistent/x: can't open");
	check_error("file:", MW_EDATA, "can't open");
	check_error("file:/", MW_EDATA, "/: can't read");
}

static void test_file_errors(void **state)
{
	static const char *const cases[][2] = {
		{ "", "no delays" },
		{ "# only a note\n", "no delays" },
		{ "delay\n", "no delays" },
		{ "worker,wait\n0,1\n", ":1:1: expected a number, or a header" },
		{ "delay\n1\n-2\n", ":3:1: a delay must be" },
		{ "1\n2\nx\n", ":3:1: a delay must be" },
		{ "0,1\n0,2 3\n", ":2:3: a delay must be" },
		{ "0,1\n0,inf\n", ":2:3: a delay must be" },
		{ "0,1\n\n0\n", ":3:2: the line ends before" },
		{ "0,1\n1.5,2\n", ":2:1: a worker must be" },
		{ "0,1\n-1,2\n", ":2:1: a worker must be" },
		{ "0,1,2\n", ":1:5: unexpected further column" },
		{ "1\n1,2\n", ":2:3: unexpected further column" },
		{ "0,1\n2,1\n", "worker 1 has no delays, but worker 2 has" },
		{ "1,1\n", "worker 0 has no delays, but worker 1 has" },
	};
	char path[64], spec[100];
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		write_temporary(path, cases[c][0]);
		snprintf(spec, sizeof(spec), "file:%s", path);
		check_error(spec, MW_EDATA, cases[c][1]);
		unlink(path);
	}
}

static void test_files(void **state)
{
	static const struct {
		const char *text;
		uint32_t worker;
		uint64_t step;
		double want, max;
	} cases[] = {
		{ "3\n4.5\n0\n", 2, 0, 3, 4.5 },
		{ "3\n4.5\n0\n", 0, 4, 4.5, 4.5 },
		{ "delay\n3\n\n4\n", 0, 3, 4, 4 },
		{ "0,1\n1,7\n0,2\n1,8\n1,9\n", 0, 3, 2, 9 },
		{ "0,1\n1,7\n0,2\n1,8\n1,9\n", 1, 4, 8, 9 },
		{ "0,1\n1,7\n0,2\n1,8\n1,9\n", 3, 5, 9, 9 },
		{ "time, delay ,note,worker\r\n.1, 5 ,a,1\r\n.2,6,b,0\r\n", 1, 0, 5, 6 },
		{ "# measured\ntime,delay\n.1,5\n.2,6\n", 9, 1, 6, 6 },
	};
	char path[64], spec[100];
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		write_temporary(path, cases[c].text);
		snprintf(spec, sizeof(spec), "file:%s", path);
		check_value(spec, cases[c].worker, cases[c].step, cases[c].want);
		struct mw_sched *s = sched_of(spec);
		assert_near(mw_sched_max(s), cases[c].max, 0);
		mw_sched_free(s);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_distributions),
		cmocka_unit_test(test_tails),
		cmocka_unit_test(test_pure),
		cmocka_unit_test(test_heavy_accuracy),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_file_errors),
		cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests_name("schedules", tests, NULL, NULL);
}
