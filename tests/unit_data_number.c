/* unit_data_number.c: decimal text to float against glibc's strtof, which rounds correctly. */
#include <math.h>

#include "base/rng.h"
#include "data/number.h"
#include "data_util.h"

/* Text in a buffer that may be read past its end. */
static enum mw_number_result parse(const char *text, float *out, size_t *length)
{
	char buf[256] = { 0 };
	const char *p = buf;
	enum mw_number_result r;
	assert_true(strlen(text) < 128);
	strcpy(buf, text);
	r = mw_number_float(&p, out);
	*length = (size_t)(p - buf);
	return r;
}

static void check_against_strtof(const char *text)
{
	char *end;
	float want = strtof(text, &end), got = -7;
	size_t length;
	enum mw_number_result r = parse(text, &got, &length);
	if (isinf(want)) {
		assert_int_equal(r, MW_NUMBER_TOO_LARGE);
		return;
	}
	if (r != MW_NUMBER_OK || memcmp(&got, &want, 4) || length != (size_t)(end - text))
		fail_msg("%s: got %.9g (result %d, %zu bytes), strtof says %.9g", text, (double)got, r,
			length, (double)want);
}

static void chosen(void **state)
{
	static const char *const text[] = { "0", "-0", "1", "+1", ".5", "5.", "-.25", "0.1", "1e0", "1E5",
		"1e+5", "1e-5", "1e-45", "1e-46", "1.17549435e-38", "1.1754943e-38", "3.4028235e38",
		"3.4028235677973366e38", "1e39", "1e400", "16777217", "16777219", "33554435",
		"1.00000005960464477539", "1.0000000596046448", "1.00000017881393432617",
		"0.000000000000000000000000000000000001", "123456789012345678901234567890",
		"00000000000000000000000000000001.5", "0.30000001192092896", "9999999", "99999999",
		"999999999", "0.12345678", "0.123456789", "0.1234567812345678",
		"0.12345678123456789012345678", "1e-400", "7.0064923216240854e-46",
		"7.0064923216240855e-46" };
	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		check_against_strtof(text[i]);
}

static void not_numbers(void **state)
{
	static const struct {
		const char *text;
		enum mw_number_result result;
	} t[] = { { "", MW_NUMBER_NONE }, { "-", MW_NUMBER_NONE }, { ".", MW_NUMBER_NONE },
		{ "e5", MW_NUMBER_NONE }, { "1e", MW_NUMBER_NONE }, { "1e+", MW_NUMBER_NONE },
		{ "x", MW_NUMBER_NONE }, { "--1", MW_NUMBER_NONE }, { "nan", MW_NUMBER_NOT_FINITE },
		{ "-NaN", MW_NUMBER_NOT_FINITE }, { "inf", MW_NUMBER_NOT_FINITE },
		{ "+Infinity", MW_NUMBER_NOT_FINITE }, { "1e99", MW_NUMBER_TOO_LARGE },
		{ "-1e999999999999999999999", MW_NUMBER_TOO_LARGE } };
	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		float f;
		size_t length;
		assert_int_equal(parse(t[i].text, &f, &length), t[i].result);
		assert_int_equal(length, 0);
	}
}

static void stops_after_the_number(void **state)
{
	float f;
	size_t length;
	(void)state;
	assert_int_equal(parse("0x10", &f, &length), MW_NUMBER_OK);
	assert_int_equal(length, 1);
	assert_int_equal(parse("1.5.5", &f, &length), MW_NUMBER_OK);
	assert_int_equal(length, 3);
	assert_int_equal(parse("2:3", &f, &length), MW_NUMBER_OK);
	assert_int_equal(length, 1);
}

/* Midpoints of neighbouring floats, and what lies a little beside them: where double rounding goes wrong. */
static void near_midpoints(struct mw_rng *rng, char *text, size_t n)
{
	float a = (float)mw_rng_below(rng, 1 << 24) * 0x1p-12f, b = nextafterf(a, 1e9f);
	double mid = ((double)a + (double)b) / 2;
	int side = (int)mw_rng_below(rng, 3) - 1;
	snprintf(text, n, "%.*f", 30, mid + side * 0x1p-60);
}

static void random_numbers(void **state)
{
	struct mw_rng rng;
	(void)state;
	mw_rng_init(&rng, 20260930, 1);
	for (int i = 0; i < 300000; i++) {
		char text[120];
		double u = mw_rng_uniform(&rng);
		int digits = (int)mw_rng_below(&rng, 20);
		switch (i % 5) {
		case 0: snprintf(text, sizeof(text), "%.6g", u); break;
		case 1: snprintf(text, sizeof(text), "%.17g", 200 * u - 100); break;
		case 2: snprintf(text, sizeof(text), "%.*f", digits, 1e4 * u); break;
		case 3:
			snprintf(text, sizeof(text), "%.*e", digits,
				u * pow(10, (int)mw_rng_below(&rng, 90) - 50));
			break;
		default: near_midpoints(&rng, text, sizeof(text));
		}
		check_against_strtof(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen),
		cmocka_unit_test(not_numbers),
		cmocka_unit_test(stops_after_the_number),
		cmocka_unit_test(random_numbers),
	};
	return cmocka_run_group_tests_name("data number", tests, NULL, NULL);
}
