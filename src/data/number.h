/*
 * number.h: decimal text to unsigned and float, eight digits at a time.
 *
 * All readers may load MW_INPUT_PAD bytes past the number's start; the text must be readable that far.
 */
#ifndef MW_DATA_NUMBER_H
#define MW_DATA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum mw_number_result {
	MW_NUMBER_OK,
	MW_NUMBER_NONE,       /* no decimal number here */
	MW_NUMBER_NOT_FINITE, /* nan, inf, infinity */
	MW_NUMBER_TOO_LARGE,  /* beyond float */
};

/* Eight characters, '0'..'9' turned into 0..9 and all others into more. Little-endian machines only. */
static inline uint64_t mw_load8(const char *p)
{
	uint64_t x;
	memcpy(&x, p, 8);
	return x ^ 0x3030303030303030ULL;
}

/*
 * The top bit of each byte that is no digit, right up to the first such byte (a carry may spoil those behind
 * it); 0 if all eight are digits.
 */
static inline uint64_t mw_nondigits(uint64_t x)
{
	return ((x + 0x7676767676767676ULL) | x) & 0x8080808080808080ULL;
}

/* The value of eight digits, the first of them in the lowest byte; leading ones may be 0. */
static inline uint64_t mw_value8(uint64_t x)
{
	x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffULL;
	x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffULL;
	return (x * 10000 + (x >> 32)) & 0xffffffffULL;
}

/* The value of the n digits before the first non-digit; 1 <= n <= 7. */
static inline uint64_t mw_value_of(uint64_t x, unsigned n)
{
	return mw_value8(
		x << (64 - 8 * n)); /* zeros come in as leading digits, what follows the number leaves */
}

/* 10^k, and 10^-k correctly rounded: all k for which 10^-k is a normal float. */
extern const uint32_t mw_power10[8];
extern const double mw_tenth[38];

/*
 * The slow way for all that mw_number_float doesn't do at once: exact for any decimal. *p moves past the
 * number if the result is OK.
 */
enum mw_number_result mw_number_slow(const char **p, float *out);

/*
 * The float nearest to the decimal number [+-]digits[.digits][e[+-]digits] at *p (ties to even, as strtof).
 * *p moves past it.
 *
 * Fast way: digits as an integer times 10^-k in double. Each of the three roundings errs by half a unit in
 * the last place of double, so the float is right unless the product is within 4 such units of the middle
 * between two floats; that is left to the slow way, as are exponents and more than 18 digits.
 */
static inline enum mw_number_result mw_number_float(const char **p, float *out)
{
	const char *q = *p;
	bool negative = false;
	unsigned n, digits = 1, frac = 0;
	uint64_t x, other, value, bits;
	double r;
	if (*q == '-') {
		negative = true;
		q++;
	}
	/* Branches on what usually stands there ("0.") let the processor run ahead; lengths as data would
	 * not. */
	if ((unsigned char)(*q - '0') < 10 && q[1] == '.') {
		value = (uint64_t)(*q - '0');
		q++;
	} else {
		x = mw_load8(q);
		other = mw_nondigits(x);
		if (!other || (other & 0x80))
			return mw_number_slow(p, out);
		digits = (unsigned)__builtin_ctzll(other) >> 3;
		value = mw_value_of(x, digits);
		q += digits;
	}
	if (*q == '.') {
		for (q++; x = mw_load8(q), other = mw_nondigits(x), !other; q += 8, frac += 8, digits += 8) {
			if (digits > 10)
				return mw_number_slow(p, out);
			value = value * 100000000 + mw_value8(x);
		}
		n = (unsigned)__builtin_ctzll(other) >> 3;
		if (digits + n > 18)
			return mw_number_slow(p, out);
		if (n)
			value = value * mw_power10[n] + mw_value_of(x, n);
		q += n;
		frac += n;
	}
	if ((*q | 0x20) == 'e')
		return mw_number_slow(p, out);
	r = (double)(int64_t)value * mw_tenth[frac];
	memcpy(&bits, &r, 8);
	/* The 29 bits that float drops: is the product near their middle? */
	if ((((uint32_t)bits & 0x1fffffff) - (0x10000000u - 4)) <= 8)
		return mw_number_slow(p, out);
	*out = (float)(negative ? -r : r);
	*p = q;
	return MW_NUMBER_OK;
}

#endif
