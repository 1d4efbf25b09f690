/*
 * run_bound.c: `train --bound`: constants estimated from the data, which theorem covers which run, and that measured
 * gradients stay within their bounds (experiments/bounds is the long form).
 */
#include "run_util.h"

#include <math.h>

#include "run/theory.h"

#define QUAD "data=synth:quadratic,dim=16,noise=1,rows=400 batch=1 engine=sim bound=yes epochs=8 "
#define SIGMOID                                                                                      \
	"data=synth:dense,rows=200,features=8,classes=2 model=sigmoid-squared engine=sim bound=yes " \
	"epochs=8 "

static void evaluate(struct test_run *t)
{
	struct mw_err err = { 0 };
	run_loss(t);
	if (mw_theory_evaluated(t->run, &t->run->last, &err))
		fail_msg("%s", err.msg);
}

/* The whole run, evaluated 80 times; base: all options but those. */
static json_t *bound_of(const char *base, const char *options)
{
	struct test_run t;
	run_open(&t, "%s %s", base, options);
	uint64_t all = t.run->total_steps * (run_in_turns(&t) ? t.run->n_workers : 1);
	evaluate(&t);
	for (uint64_t k = 1; k <= 80; k++) {
		run_until(&t, all * k / 80);
		evaluate(&t);
	}
	json_t *j = mw_theory_json(t.run);
	run_close(&t);
	return j;
}

static double number(json_t *j, const char *name)
{
	json_t *v = json_object_get(j, name);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void holds(const char *base, const char *options, const char *theorem)
{
	json_t *j = bound_of(base, options);
	const char *name = json_string_value(json_object_get(j, "theorem")),
		   *reason = json_string_value(json_object_get(j, "reason"));
	double ratio = number(j, "ratio");
	if (!(ratio > 0.001 && ratio <= 1) || !name || strcmp(name, theorem))
		fail_msg("%s: theorem %s, measured %g, bound %g: %s", options, name ? name : "-",
			number(j, "measured"), number(j, "bound"), reason ? reason : "");
	json_decref(j);
}

static void bounds_hold(void **state)
{
	(void)state;
	holds(SIGMOID, "protocol=sync-ring workers=8 rate=0.1", "1A");
	holds(SIGMOID, "protocol=sync-ring workers=8 rate=0.05 data-place=shard slack=0.5", "1A");
	holds(SIGMOID, "protocol=async-ps workers=4 rate=0.05 activation=rr", "1B");
	holds(SIGMOID, "protocol=async-ring workers=4 rate=0.02 activation=random", "1B");
	holds(SIGMOID, "protocol=async-ring workers=4 rate=0.1 activation=random mix-order=before", "1C");
	holds(SIGMOID,
		"protocol=sync-ring workers=4 rate=0.001 optimizer=amsgrad bias-correction=no eps=0.1 "
		"beta2=0.99",
		"3");
	holds(SIGMOID, "protocol=sync-ring workers=4 rate=0.001 optimizer=rmsprop eps=1 beta2=0.999", "4");
	holds(QUAD, "protocol=local-sgd period=4 workers=8 rate=0.01", "1A");
	holds(QUAD, "protocol=hogwild workers=4 staleness=constant:2 rate=0.005", "1B");
	holds(QUAD, "protocol=ssp ssp-bound=1 workers=4 rate=0.005 activation=random", "1B");
	holds(QUAD, "protocol=numa groups=2 average-every=4 workers=4 rate=0.004 activation=rr", "1B");
	holds(QUAD, "protocol=token-ring hop-every=2 workers=2 rate=0.01 activation=rr", "1B");
}

/* Noise of standard deviation 1 in each of 16 coordinates; curvatures from 1/cond to 1; the same data for all. */
static void constants_of_the_quadratic(void **state)
{
	(void)state;
	json_t *j = bound_of(QUAD, "protocol=sync-ring workers=4 rate=0.01 mix-every=2");
	assert_true(fabs(number(j, "sigma2") - 16) < 1.6);
	assert_true(number(j, "zeta2") == 0);
	assert_true(fabs(number(j, "L") - 1) < 1e-6);
	assert_true(fabs(number(j, "t_mix") - 2) < 1e-9); /* a ring of 4 mixes in one exchange */
	assert_true(fabs(number(j, "step_max") - 1 / (6. * 2)) < 1e-9);
	json_decref(j);
	j = bound_of("data=synth:quadratic,dim=160,noise=1,rows=400 engine=sim bound=yes epochs=2",
		"protocol=sync-ring workers=4 rate=0.01 data-place=shard batch=4");
	/* the mean noise of a worker's 100 rows, about that of all: 160 (1/100 - 1/400) = 1.2, with 480 degrees of freedom */
	assert_true(fabs(number(j, "zeta2") - 1.2) < 0.25);
	assert_true(fabs(number(j, "sigma2") - 160 / 4) < 4);
	json_decref(j);
}

/* Rows (1, 0) and (0, 2): (1/n) sum a a^T = diag(0.5, 2). */
static void smoothness_by_hand(void **state)
{
	static const struct {
		const char *model;
		double l;
	} want[] = { { "squared", 2 }, { "logistic", 0.5 }, { "sigmoid-squared", 0.30811714 } };
	const char *file = temporary_file("1 1:1\n-1 2:2\n");
	struct mw_err err = { 0 };
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct test_run t;
		double l;
		run_open(&t, "data=%s model=%s bias=no l2=0.25 engine=sim workers=1", file, want[i].model);
		assert_int_equal(mw_smoothness(t.run, 1e9, &l, &err), 0);
		assert_true(l >= want[i].l + 0.25);
		assert_true(l <= 1.011 * want[i].l + 0.25);
		assert_true(isnan(mw_gradient_limit(t.run))); /* the penalty's gradient grows with w */
		run_close(&t);
	}
	struct test_run t;
	run_open(&t, "data=%s model=sigmoid-squared engine=sim workers=1", file);
	assert_true(fabs(mw_gradient_limit(t.run) - 2 * 8. / 27) < 1e-9);
	run_close(&t);
	double l;
	run_open(&t, "data=%s model=hinge engine=sim workers=1", file);
	assert_int_equal(mw_smoothness(t.run, 1e9, &l, &err), 0);
	assert_true(isnan(l));
	run_close(&t);
}

static void no_bound(const char *options, const char *why)
{
	json_t *j = bound_of(QUAD, options);
	const char *reason = json_string_value(json_object_get(j, "reason"));
	if (!reason || !strstr(reason, why) || !json_is_null(json_object_get(j, "bound")))
		fail_msg("%s: '%s', not '%s'", options, reason ? reason : "", why);
	json_decref(j);
}

static void what_is_not_covered_is_said(void **state)
{
	struct mw_err err;
	(void)state;
	no_bound("protocol=sync-ring workers=8 rate=0.1", "larger than the theorem admits");
	no_bound("protocol=sync-ring workers=4 rate=0.001 optimizer=sgd momentum=0.9", "without momentum");
	no_bound("protocol=sync-ring workers=4 rate=cosine:0.001", "not constant");
	no_bound("protocol=async-ring workers=4 rate=0.001 data-place=shard", "homogeneous");
	no_bound("protocol=sync-ring workers=4 rate=0.001 optimizer=amsgrad", "without bias correction");
	no_bound("protocol=numa groups=2 workers=4 rate=0.001", "--activation rr");
	assert_int_equal(run_error(&err, QUAD "eval-rows=10 workers=1"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--eval-rows"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(constants_of_the_quadratic),
		cmocka_unit_test(smoothness_by_hand),
		cmocka_unit_test(what_is_not_covered_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
