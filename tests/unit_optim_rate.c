/* unit_optim_rate.c: exact values of every learning-rate schedule, and what bad specs are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "optim/rate.h"

static struct mw_rate *rate_of(const char *spec)
{
	struct mw_err err = { 0 };
	struct mw_rate *r;
	if (mw_rate_parse(spec, &r, &err) < 0)
		fail_msg("%s: %s", spec, err.msg);
	return r;
}

static void check(const char *spec, double epoch, uint64_t step, float want)
{
	struct mw_rate *r = rate_of(spec);
	float got = mw_rate_at(r, epoch, 10, step);
	if (!(fabsf(got - want) <= 3e-7f * fabsf(want)))
		fail_msg("%s at epoch %g of 10, step %lu: %.9g, not %.9g", spec, epoch, (unsigned long)step,
			(double)got, (double)want);
	mw_rate_free(r);
}

static void values(void **state)
{
	(void)state;
	check("0.25", 3, 9, 0.25f);
	check("constant:1e-3", 0, 0, 1e-3f);
	check("constant:0.5,warmup=2", 0, 0, 0);
	check("constant:0.5,warmup=2", 0.5, 0, 0.125f);
	check("0.5,warmup=2", 1.5, 0, 0.375f);
	check("0.5,warmup=2", 2, 0, 0.5f);
	check("step:0.8,factor=0.5,every=3", 0, 0, 0.8f);
	check("step:0.8,factor=0.5,every=3", 2.999, 0, 0.8f);
	check("step:0.8,factor=0.5,every=3", 3, 0, 0.4f);
	check("step:0.8,factor=0.5,every=3", 9.5, 0, 0.1f);
	check("step:0.8,every=5", 5, 0, 0.08f);
	check("step:1,factor=0.1,at=2/5/7.5", 1.9, 0, 1);
	check("step:1,factor=0.1,at=2/5/7.5", 2, 0, 0.1f);
	check("step:1,factor=0.1,at=2/5/7.5", 5, 0, 0.01f);
	check("step:1,factor=0.1,at=2/5/7.5", 8, 0, 0.001f);
	check("step:1,factor=0.1,at=5,warmup=4", 3, 0, 0.75f);
	check("cosine:1", 0, 0, 1);
	check("cosine:1", 5, 0, 0.5f);
	check("cosine:1", 10 / 3.0, 0, 0.75f);
	check("cosine:1", 9.999, 0, 2.46740108e-8f); /* (pi 1e-4 / 2)^2 */
	check("cosine:1", 10, 0, 0);
	check("cosine:1", 12, 0, 0);
	check("cosine:0.5,min=0.1", 20 / 3.0, 0, 0.2f);
	check("cosine:0.5,min=0.1", 10, 0, 0.1f);
	check("cosine:1,warmup=5", 2.5, 0, 0.5f * 0.853553391f);
	check("invsqrt:0.6,after=1", 0, 0, 0.6f);
	check("invsqrt:0.6", 0, 3, 0.3f);
	check("invsqrt:0.6,after=100", 7, 300, 0.3f);
	check("invsqrt:0.6,after=100,warmup=8", 6, 800, 0.15f);
}

static void cosine_everywhere(void **state)
{
	(void)state;
	struct mw_rate *r = rate_of("cosine:2,min=0.5");
	for (double e = 0; e <= 10; e += 0.01) {
		double want = 0.5 + 1.5 * (1 + cos(acos(-1) * e / 10)) / 2;
		assert_true(fabs((double)mw_rate_at(r, e, 10, 0) - want) <= 4e-7 * want);
	}
	mw_rate_free(r);
}

static void check_description(const char *spec, const char *want, bool constant)
{
	struct mw_rate *r = rate_of(spec), *again;
	char *text = mw_rate_describe(r);
	assert_string_equal(text, want);
	assert_int_equal(mw_rate_is_constant(r), constant);
	again = rate_of(text);
	for (double e = 0; e < 10; e += 0.7)
		assert_true(mw_rate_at(r, e, 10, (uint64_t)(e * 50)) ==
			    mw_rate_at(again, e, 10, (uint64_t)(e * 50)));
	free(text);
	mw_rate_free(r);
	mw_rate_free(again);
}

static void descriptions(void **state)
{
	(void)state;
	check_description("0.1", "constant:0.1,warmup=0", true);
	check_description("0.1,warmup=1", "constant:0.1,warmup=1", false);
	check_description("step:0.1,every=30", "step:0.1,factor=0.1,every=30,warmup=0", false);
	check_description("step:0.1,at=3/6,factor=0.5", "step:0.1,factor=0.5,at=3/6,warmup=0", false);
	check_description("cosine:2", "cosine:2,min=0,warmup=0", false);
	check_description("invsqrt:2,after=1k", "invsqrt:2,after=1000,warmup=0", false);
}

/* After the warm-up, whatever comes before it. */
static void beginnings(void **state)
{
	static const struct {
		const char *spec;
		float rate;
	} want[] = { { "0.1", 0.1f }, { "0.1,warmup=3", 0.1f }, { "cosine:1,warmup=5", 0.5f },
		{ "step:1,factor=0.1,at=5,warmup=6", 0.1f }, { "invsqrt:0.6,after=100,warmup=8", 0.6f } };
	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct mw_rate *r;
		assert_int_equal(mw_rate_parse(want[i].spec, &r, NULL), 0);
		assert_float_equal(mw_rate_begin(r, 10), want[i].rate, 1e-6f);
		mw_rate_free(r);
	}
}

static void check_error(const char *spec, const char *want)
{
	struct mw_err err = { 0 };
	struct mw_rate *r;
	assert_int_equal(mw_rate_parse(spec, &r, &err), MW_EUSAGE);
	assert_string_equal(err.msg, want);
}

static void errors(void **state)
{
	(void)state;
	struct mw_err err = { 0 };
	struct mw_rate *r;
	check_error("constant:-1", "learning rate 'constant:-1': the rate must be at least 0, not -1");
	check_error("constant:", "learning rate 'constant:': the rate is missing, for example constant:0.1");
	check_error("step:1", "learning rate 'step:1': step needs every=E or at=E1/E2/... (one of them)");
	check_error("step:1,every=1,at=2",
		"learning rate 'step:1,every=1,at=2': step needs every=E or at=E1/E2/... (one of "
		"them)");
	check_error("step:1,every=0", "learning rate 'step:1,every=0': every must be greater than 0, not 0");
	check_error("step:1,at=/", "learning rate 'step:1,at=/': at needs epochs, for example at=30/60");
	check_error("cosine:1,min=2", "learning rate 'cosine:1,min=2': min is above the rate it starts from");
	check_error("cosine:1,mn=0",
		"learning rate 'cosine:1,mn=0': cosine has no 'mn'; did you mean 'min'? (it takes min, "
		"warmup)");
	check_error("1,2", "learning rate '1,2': '2' is no KEY=VALUE");
	check_error("cosin:1", "learning rate 'cosin:1': there is no schedule 'cosin'; did you mean "
			       "'cosine'? (there are constant:A, "
			       "step:A,factor=F,every=E, step:A,factor=F,at=E1/E2, cosine:A,min=B, "
			       "invsqrt:A,after=T; each takes warmup=E)");
	static const char *const bad[] = { "", "x", "nan", "inf", "1e999", "0.1x", "step:1,at=1/b",
		"constant:1,warmup=-1" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.code = 0;
		assert_int_equal(mw_rate_parse(bad[i], &r, &err), MW_EUSAGE);
	}
	mw_rate_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(cosine_everywhere),
		cmocka_unit_test(descriptions),
		cmocka_unit_test(beginnings),
		cmocka_unit_test(errors),
	};
	return cmocka_run_group_tests_name("learning rates", tests, NULL, NULL);
}
