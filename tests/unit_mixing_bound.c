/* unit_mixing_bound.c: the convergence bounds of theory.md section 8, to the printed digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "mixing/bound.h"

/* Equal in as many significant digits as `want` was printed with. */
static void near(double got, double want, double relative)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("got %.14g, want %.14g", got, want);
}

static struct mw_bound_result eval(struct mw_bound_input in)
{
	struct mw_bound_result r;
	struct mw_err err = { 0 };
	if (mw_bound_evaluate(&in, &r, &err))
		fail_msg("%s", err.msg);
	return r;
}

static void theorem_1a(void **state)
{
	(void)state;
	struct mw_bound_input in = { .theorem = MW_THEOREM_1A,
		.smoothness = 1,
		.gap = 1,
		.noise = 1,
		.workers = 8,
		.steps = 1e4,
		.t_mix = 4 };
	struct mw_bound_result r = eval(in);
	near(r.step, .0210858166325, 1e-11);
	near(r.bound, .021605824703, 1e-10);
	assert_true(r.tuned && r.admissible);
	in.heterogeneity = .5;
	in.t_mix = 14;
	r = eval(in);
	near(r.step, .00396410295599, 1e-11);
	near(r.bound, .101401065637, 1e-11);
	r = eval((struct mw_bound_input){ .theorem = MW_THEOREM_1A,
		.smoothness = 2,
		.gap = 5,
		.noise = .1,
		.workers = 16,
		.steps = 1e5,
		.t_mix = 54 });
	near(r.step, .00154320987654, 1e-11);
	near(r.bound, .065093638546, 1e-11);
}

static void theorem_1b(void **state)
{
	(void)state;
	struct mw_bound_result r = eval((struct mw_bound_input){ .theorem = MW_THEOREM_1B,
		.smoothness = 1,
		.gap = 1,
		.noise = 1,
		.n_eff = 1,
		.steps = 1e4,
		.t_mix = 8 });
	near(r.step, .0141421356237, 1e-11);
	near(r.bound, .0509597402045, 1e-11);
	r = eval((struct mw_bound_input){ .theorem = MW_THEOREM_1B,
		.smoothness = 2,
		.gap = 5,
		.noise = .1,
		.n_eff = 1,
		.steps = 1e5,
		.t_mix = 64 });
	near(r.step, .0009765625, 1e-12);
	near(r.bound, .154023177083, 1e-11);
}

static void recorded_delays(void **state)
{
	(void)state;
	struct mw_bound_result r = eval((struct mw_bound_input){ .theorem = MW_THEOREM_1B,
		.lemma = MW_LEMMA_C4,
		.smoothness = 1,
		.gap = 1,
		.noise = 1,
		.n_eff = 1,
		.steps = 1e4,
		.workers = 8,
		.tau_avg = 7,
		.tau_max = 76 });
	near(r.step, .0108388746191, 1e-11);
	near(r.bound, .04722593584, 1e-9);
	near(r.a, 14, 1e-15);
	near(r.b, 2 * 76 * 7, 1e-15);
}

/* By hand: n = 8, t_mix = 23 events, so t_r = 23/8, A = 23/3, B = 23/3 + 8 (23/8)^2 = 73.7917. */
static void theorem_1c(void **state)
{
	(void)state;
	struct mw_bound_input in = { .theorem = MW_THEOREM_1C,
		.smoothness = 2,
		.gap = 3,
		.noise = .5,
		.heterogeneity = .25,
		.workers = 8,
		.steps = 1e6,
		.t_mix = 23,
		.step = .01 };
	struct mw_bound_result r = eval(in);
	near(r.a, 23. / 3, 1e-14);
	near(r.b, 23. / 3 + 8 * 23. / 8 * 23. / 8, 1e-14);
	near(r.effective_step, .01 / 8, 1e-14);
	near(r.bound,
		6 * 3 / (.00125 * 1e6) + 3 * 2 * .00125 * (.5 + .75) +
			5 * 4 * 1e-4 * (23. / 3 * .5 + 3 * r.b * .25),
		1e-12);
	near(r.step_max, 1 / (2 * sqrt(12 * r.b)), 1e-14);
	in.step = .02; /* above step_max = .0168 */
	r = eval(in);
	assert_false(r.admissible);
	assert_true(isnan(r.bound));
}

/* With mu = 0 the tuned step is the closed form; with mu > 0 it is no worse than that one. */
static void theorem_2(void **state)
{
	(void)state;
	struct mw_bound_input in = { .theorem = MW_THEOREM_2,
		.smoothness = 2,
		.gap = 10,
		.noise = .9,
		.n_eff = 8,
		.steps = 4000,
		.t_mix = 4,
		.step = 1 / (26. * 2 * 4) };
	double a = in.step, t = 4000;
	in.convexity = .02;
	struct mw_bound_result r = eval(in);
	near(r.step_max, a, 1e-14);
	near(r.bound,
		20 * fmin(1 / t, pow(1 - a * .01, t)) / a + 2 * a * .9 / 8 + 10 * 2 * a * a * 8 / 3 * 4 * .9,
		1e-11);
	in.step = 0;
	double best = eval(in).bound;
	assert_true(best <= r.bound * (1 + 1e-12));
	in.convexity = 0;
	assert_true(best <= eval(in).bound * (1 + 1e-12));
}

static void adaptive(void **state)
{
	(void)state;
	struct mw_bound_input in = { .theorem = MW_THEOREM_3,
		.smoothness = 1,
		.gap = 1,
		.clip = 1,
		.dim = 10,
		.eps = .1,
		.beta1 = .9,
		.beta2 = .99,
		.steps = 1e6,
		.step = 1e-4,
		.s1 = 15 };
	struct mw_bound_result r = eval(in);
	near(r.r, 31.6227766017, 1e-11);
	near(r.bound, .30757782, 1e-11);
	in.s1 = 0;
	in.t_mix = 8; /* S1 <= 2 t_mix - 1 = 15 */
	near(eval(in).bound, .30757782, 1e-11);
	in.theorem = MW_THEOREM_4;
	in.eps = 1;
	in.beta2 = .9;
	in.noise = 1;
	r = eval(in);
	near(r.r, 3.16227766017, 1e-11);
	near(r.bound, 1.30695606407, 1e-11);
}

/* Seven digits of the largest stable alpha L of x' = x - alpha L x_{t - tau}. */
static void delay_limit(void **state)
{
	(void)state;
	const double tau[] = { 1, 3, 7, 15, 31 }, want[] = { 1, .445042, .209057, .101298, .049861 };
	for (int i = 0; i < 5; i++)
		assert_true(fabs(mw_bound_delay_limit(tau[i]) - want[i]) < 5e-7);
}

/* The tuned step is at most 1.5 times worse than the best of a fine grid (section 5.2's closed form is not the minimum). */
static void tuned_is_good(void **state)
{
	(void)state;
	for (int th = MW_THEOREM_1A; th <= MW_THEOREM_4; th++) {
		struct mw_bound_input in = { .theorem = (enum mw_theorem)th,
			.smoothness = 1,
			.gap = 1,
			.noise = 1,
			.workers = 8,
			.n_eff = 1,
			.steps = 1e5,
			.t_mix = 5,
			.clip = 1,
			.dim = 10,
			.eps = 1,
			.beta1 = .9,
			.beta2 = .99 };
		struct mw_bound_result r = eval(in);
		assert_true(r.admissible);
		for (double a = 1e-6; a < fmin(r.step_max, 10); a *= 1.1) {
			in.step = a;
			assert_true(r.bound <= 1.5 * eval(in).bound);
		}
		near(r.bound, r.opt_term + r.noise_term + r.drift_term + r.constant_term, 1e-12);
	}
}

static void refused(const char *part, struct mw_bound_input in)
{
	struct mw_bound_result r;
	struct mw_err err = { 0 };
	assert_int_equal(mw_bound_evaluate(&in, &r, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, part));
}

static void errors(void **state)
{
	(void)state;
	struct mw_bound_input in = {
		.theorem = MW_THEOREM_1A, .smoothness = 1, .gap = 1, .workers = 8, .steps = 10
	};
	refused("mixing time", in);
	in.t_mix = 4;
	in.lemma = MW_LEMMA_C3;
	refused("own lemma", in);
	in.smoothness = 0;
	refused("smoothness", in);
	in = (struct mw_bound_input){ .theorem = MW_THEOREM_1B,
		.smoothness = 1,
		.gap = 1,
		.steps = 10,
		.n_eff = 1,
		.t_mix = 2,
		.heterogeneity = 1 };
	refused("homogeneous", in);
	in = (struct mw_bound_input){ .theorem = MW_THEOREM_4,
		.smoothness = 1,
		.gap = 1,
		.steps = 10,
		.t_mix = 2,
		.clip = 1,
		.dim = 1,
		.eps = .1,
		.beta2 = .9 };
	refused("1/2", in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(theorem_1a),
		cmocka_unit_test(theorem_1b),
		cmocka_unit_test(recorded_delays),
		cmocka_unit_test(theorem_1c),
		cmocka_unit_test(theorem_2),
		cmocka_unit_test(adaptive),
		cmocka_unit_test(delay_limit),
		cmocka_unit_test(tuned_is_good),
		cmocka_unit_test(errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
