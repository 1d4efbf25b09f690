/* text.c: numbers from text, and the nearest of several names (declared in option.h). */
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names longer than this are never misspelt option names. */
#define NAME_MAX_LENGTH 63

/* Power of ten of a suffix, -1 if there is no such suffix. */
static int suffix_power(const char *s)
{
	if (!*s)
		return 0;
	if (s[1])
		return -1;
	return *s == 'k' || *s == 'K' ? 3 : *s == 'M' ? 6 : *s == 'G' ? 9 : -1;
}

/* Read digits[.digits][e[+-]digits][suffix] as mantissa * 10^power, exactly; false: no such number. */
static bool scan_decimal(const char *s, bool negative, int64_t *mantissa, int *power)
{
	int n_digits = 0, fraction = 0;
	bool point = false;
	for (*mantissa = 0; isdigit((unsigned char)*s) || (*s == '.' && !point); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		int digit = negative ? '0' - *s : *s - '0';
		if (__builtin_mul_overflow(*mantissa, 10, mantissa) ||
			__builtin_add_overflow(*mantissa, digit, mantissa))
			return false;
		n_digits++;
		fraction += point;
	}
	long exponent = 0;
	if (n_digits && (*s == 'e' || *s == 'E')) {
		char *end;
		const char *first = s + 1 + (s[1] == '+' || s[1] == '-');
		if (!isdigit((unsigned char)*first))
			return false;
		exponent = strtol(s + 1, &end, 10);
		s = end;
	}
	int suffix = suffix_power(s);
	if (!n_digits || suffix < 0 || exponent < -99 || exponent > 99)
		return false;
	*power = (int)exponent + suffix - fraction;
	return true;
}

int mw_parse_int(const char *text, const char *what, int64_t *out, struct mw_err *err)
{
	int64_t value;
	int power;
	bool negative = text[0] == '-';
	if (!scan_decimal(text + (text[0] == '-' || text[0] == '+'), negative, &value, &power))
		goto bad;
	for (; power > 0 && value; power--)
		if (__builtin_mul_overflow(value, 10, &value))
			goto bad;
	for (; power < 0 && value; power++) {
		if (value % 10)
			goto bad;
		value /= 10;
	}
	*out = value;
	return MW_OK;
bad:
	MW_FAIL(err, USAGE, "%s: '%s' is not a whole number in the 64-bit range (like 12, 10k, 2M or 1e6)",
		what, text);
}

int mw_parse_float(const char *text, const char *what, double *out, struct mw_err *err)
{
	char *end = NULL;
	double value = 0;
	/* strtod would also take leading blanks, hexadecimal numbers, "inf" and "nan" */
	if (text[0] && strspn(text, "0123456789.+-eEkMG") == strlen(text))
		value = strtod(text, &end);
	int power = end && end != text ? suffix_power(end) : -1;
	if (power > 0)
		value *= pow(10, power);
	if (power < 0 || !isfinite(value))
		MW_FAIL(err, USAGE, "%s: '%s' is not a finite number (like 0.1, 1e-3 or 2k)", what, text);
	*out = value;
	return MW_OK;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned row[3][NAME_MAX_LENGTH + 1];
	for (size_t j = 0; j <= nb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *cur = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			cur[j] = min3(up[j] + 1, cur[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				up2[j - 2] + 1 < cur[j])
				cur[j] = up2[j - 2] + 1;
		}
	}
	return row[na % 3][nb];
}

const char *mw_nearest(const char *name, const char *const *candidates, size_t n)
{
	const char *best = NULL;
	size_t length = strlen(name);
	unsigned best_distance = 0;
	for (size_t i = 0; length <= NAME_MAX_LENGTH && i < n; i++) {
		size_t l = strlen(candidates[i]);
		if (l > NAME_MAX_LENGTH)
			continue;
		unsigned d = distance(name, length, candidates[i], l);
		if (3 * d <= (l > length ? l : length) && (!best || d < best_distance)) {
			best = candidates[i];
			best_distance = d;
		}
	}
	return best;
}
