/* number.c: see number.h. */
#include "data/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

const uint32_t mw_power10[8] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000 };

const double mw_tenth[38] = { 1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12,
	1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22, 1e-23, 1e-24, 1e-25, 1e-26,
	1e-27, 1e-28, 1e-29, 1e-30, 1e-31, 1e-32, 1e-33, 1e-34, 1e-35, 1e-36, 1e-37 };

/* Sync: written once under pthread_once, read after it. A program may have set a locale with a decimal comma.
 */
static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The end of the decimal number at p, or NULL if there is none: strtof also takes hex, inf and nan. */
static const char *scan(const char *p)
{
	bool any = false;
	if (*p == '+' || *p == '-')
		p++;
	for (; is_digit(*p); p++)
		any = true;
	if (*p == '.')
		for (p++; is_digit(*p); p++)
			any = true;
	if (!any)
		return NULL;
	if ((*p | 0x20) == 'e') {
		const char *e = p + 1;
		if (*e == '+' || *e == '-')
			e++;
		if (!is_digit(*e))
			return NULL;
		while (is_digit(*e))
			e++;
		p = e;
	}
	return p;
}

static bool says_not_finite(const char *p)
{
	if (*p == '+' || *p == '-')
		p++;
	return !strncasecmp(p, "nan", 3) || !strncasecmp(p, "inf", 3);
}

/*
 * The common exponents, by the reasoning of mw_number_float: at most 18 digits, 10^-k with k <= 37. Returns
 * false if that isn't what stands there.
 */
static bool small_exponent(const char *p, const char *end, float *out)
{
	bool negative = *p == '-', in_fraction = false;
	uint64_t value = 0, bits;
	long digits = 0, k = 0;
	double r;
	if (*p == '+' || *p == '-')
		p++;
	for (; p < end && (is_digit(*p) || *p == '.'); p++) {
		if (*p == '.') {
			in_fraction = true;
			continue;
		}
		value = value * 10 + (uint64_t)(*p - '0');
		k += in_fraction;
		if (++digits > 18)
			return false;
	}
	if (p < end && end - p > 4)
		return false;
	if (p < end) {
		long e = strtol(p + 1, NULL, 10);
		k -= e;
	}
	if (k < 0 || k > 37)
		return false;
	r = (double)(int64_t)value * mw_tenth[k];
	memcpy(&bits, &r, 8);
	if ((((uint32_t)bits & 0x1fffffff) - (0x10000000u - 4)) <= 8)
		return false;
	*out = (float)(negative ? -r : r);
	return true;
}

enum mw_number_result mw_number_slow(const char **p, float *out)
{
	const char *end = scan(*p);
	float v;
	if (!end)
		return says_not_finite(*p) ? MW_NUMBER_NOT_FINITE : MW_NUMBER_NONE;
	if (!small_exponent(*p, end, &v)) {
		pthread_once(&once, make_locale);
		v = c_locale ? strtof_l(*p, NULL, c_locale) : strtof(*p, NULL);
	}
	if (isinf(v))
		return MW_NUMBER_TOO_LARGE;
	*out = v;
	*p = end;
	return MW_NUMBER_OK;
}
