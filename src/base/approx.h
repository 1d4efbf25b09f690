/*
 * approx.h: exp, log and what is made of them, in float, from additions, multiplications and divisions only.
 *
 * libm's functions differ between versions and CPUs in the last bit; these give the same bits wherever IEEE
 * arithmetic is not contracted (-ffp-contract=off, set by the build), so that a run can be repeated on
 * another machine. They have no table and no branch in the common path, so that loops over them vectorise.
 *
 * Coefficients: Remez exchange, tests/reference/approx_remez.py. Errors over the whole float range, in units
 * of the last place against double libm (tests/unit_kernel.c asserts them): exp 1, log 1, sigmoid 2.5,
 * softplus 2.5.
 */
#ifndef MW_BASE_APPROX_H
#define MW_BASE_APPROX_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln 2 = HI + LO; HI has 15 bits, so that k * HI is exact for every exponent k of a float. */
#define MW_LN2_HI 0x1.62e4p-1f
#define MW_LN2_LO 0x1.7f7d1cp-20f

static inline uint32_t mw_float_bits(float x)
{
	uint32_t u;
	memcpy(&u, &x, sizeof(u));
	return u;
}

static inline float mw_bits_float(uint32_t u)
{
	float x;
	memcpy(&x, &u, sizeof(x));
	return x;
}

/*
 * exp(x) with denormal results, infinity from 88.73 on, NaN for NaN. x = n ln 2 + r, |r| <= ln 2 / 2,
 * e^r = 1 + r + r^2 P(r) within 2^-27.8; 2^n is applied as two factors, since n reaches -150.
 */
static inline float mw_exp(float x)
{
	const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
	float c = x < -104.0f ? -104.0f : x;
	c = c > 89.0f ? 89.0f : c;
	float t = c * 0x1.715476p+0f + round, n = t - round;
	float hi = c - n * MW_LN2_HI, lo = n * MW_LN2_LO, r = hi - lo, r2 = r * r;
	float lost = (hi - r) - lo; /* by rounding r */
	float p01 = 0x1.fffffcp-2f + r * 0x1.55549p-3f, p23 = 0x1.5558f4p-5f + r * 0x1.123a6cp-7f;
	float p = p01 + r2 * (p23 + r2 * 0x1.6a234cp-10f);
	float y = 1.0f + (r + (lost + r2 * p));
	uint32_t k = mw_float_bits(t) - mw_float_bits(round) + 512, half = k >> 1;
	return y * mw_bits_float((half - 256 + 127) << 23) * mw_bits_float((k - half - 256 + 127) << 23);
}

/*
 * log(1 + f) for -0.3 <= f <= 1, f exact: s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - s (f - s^2 P(s^2)),
 * so that the leading term carries no rounding.
 */
static inline float mw_log1p_unit(float f)
{
	float s = f / (2.0f + f), t = s * s;
	float p = 0x1.9996acp-2f + t * (0x1.250916p-2f + t * (0x1.b6dd64p-3f + t * 0x1.f199dp-3f));
	return f - s * (f - t * (0x1.555558p-1f + t * p));
}

/* log(x): -infinity for 0, NaN for negative x and NaN. */
static inline float mw_log(float x)
{
	float k = 0;
	if (!(x >= 0x1p-126f && x < INFINITY)) {
		if (!(x > 0))
			return x == 0 ? -INFINITY : NAN;
		if (x == INFINITY)
			return x;
		x *= 0x1p24f; /* denormal */
		k = -24;
	}
	uint32_t u = mw_float_bits(x);
	float m = mw_bits_float((u & 0x7fffff) | 0x3f800000); /* [1, 2), then [0.71, 1.41] */
	k += (float)((int)(u >> 23) - 127);
	if (m > 0x1.6a09e6p0f) {
		m *= 0.5f;
		k += 1;
	}
	float l = mw_log1p_unit(m - 1.0f);
	return k == 0 ? l : k * MW_LN2_HI + (l + k * MW_LN2_LO);
}

/* 1 / (1 + exp(-z)). */
static inline float mw_sigmoid(float z)
{
	float e = mw_exp(-fabsf(z));
	return (z < 0 ? e : 1.0f) / (1.0f + e);
}

/* log(1 + exp(z)). */
static inline float mw_softplus(float z)
{
	float l = mw_log1p_unit(mw_exp(-fabsf(z)));
	return z > 0 ? z + l : l;
}

/* sin and cos of f turns, |f| <= 1/8: relative error of sin 2^-23, absolute of cos 2^-23. */
static inline float mw_sin_turn(float f)
{
	float t = f * f;
	return f * (0x1.921fb6p+2f + t * (-0x1.4abbbap+5f + t * (0x1.465e92p+6f + t * -0x1.2d9302p+6f)));
}

static inline float mw_cos_turn(float f)
{
	float t = f * f;
	return 1.0f +
	       t * (-0x1.3bd3ccp+4f + t * (0x1.03c1dcp+6f + t * (-0x1.55c57cp+6f + t * 0x1.d9c366p+5f)));
}

/* sin and cos of u / 2^24 turns, for a 24-bit phase u: quarter turns are exact. */
static inline void mw_sincos_phase(uint32_t u, float *sine, float *cosine)
{
	uint32_t a = u + 0x200000, quarter = (a >> 22) & 3;
	float f = (float)((int32_t)(a & 0x3fffff) - 0x200000) * 0x1p-24f, s = mw_sin_turn(f),
	      c = mw_cos_turn(f);
	float x = quarter & 1 ? s : c, y = quarter & 1 ? c : s;
	*cosine = quarter == 1 || quarter == 2 ? -x : x;
	*sine = quarter >= 2 ? -y : y;
}

/* Two independent standard normals from 64 random bits (Box and Muller 1958); 24 bits each for radius and
 * phase. */
static inline void mw_normal_pair(uint64_t bits, float *a, float *b)
{
	float u = (float)((uint32_t)(bits >> 40) + 1) * 0x1p-24f; /* (0, 1] */
	float radius = sqrtf(-2.0f * mw_log(u));
	mw_sincos_phase((uint32_t)bits & 0xffffff, a, b);
	*a *= radius;
	*b *= radius;
}

#endif
