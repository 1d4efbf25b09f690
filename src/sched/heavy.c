/*
 * heavy.c: heavy:SCALE,shape=S[,max=M]: Pareto, P(value > v) = (SCALE / v)^S for v >= SCALE, cut off at M.
 *
 * value = SCALE u^(-1/S) = SCALE exp(-log(u) / S). Logarithm and exponential are written out in additions,
 * multiplications and divisions, which round the same everywhere; library ones differ between machines.
 */
#include "sched/sched_make.h"

#include <math.h>

#define LN2_HIGH \
	0x1.62e42fefa38p-1 /* ln 2 without its last bits: k * LN2_HIGH is exact for the k of a double */
#define LN2_LOW 0x1.ef35793c7673p-45

struct heavy {
	double scale, shape, max;
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct heavy *h = priv;
	h->max = INFINITY;
	MW_TRY(mw_sched_number(&args, ',', "schedule heavy:SCALE,shape=S: SCALE", &h->scale, err));
	MW_TRY(mw_sched_keyed(&args, ',', "shape", "schedule heavy:SCALE,shape=S: shape", &h->shape, err));
	if (args)
		MW_TRY(mw_sched_keyed(
			&args, '\0', "max", "schedule heavy:SCALE,shape=S,max=M: max", &h->max, err));
	if (h->shape < 0.1)
		MW_FAIL(err, USAGE, "schedule heavy: shape must be at least 0.1, not %g", h->shape);
	if (h->max < h->scale)
		MW_FAIL(err, USAGE, "schedule heavy: max %g is below the scale %g", h->max, h->scale);
	return MW_OK;
}

/* log(x) for normal x > 0: x = 2^k m, m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m-1)/(m+1)). */
static double log_exact(double x)
{
	int k;
	double m = frexp(x, &k), sum = 0;
	if (m < 0x1.6a09e667f3bcdp-1) {
		m *= 2;
		k--;
	}
	double s = (m - 1) / (m + 1), s2 = s * s;
	for (int i = 21; i >= 3; i -= 2)
		sum = (sum + 1. / i) * s2;
	return k * LN2_HIGH + (k * LN2_LOW + 2 * (s + s * sum));
}

/* exp(x) for x in [0, 700]: x = k ln 2 + r, |r| <= ln(2)/2, Taylor to r^14. */
static double exp_exact(double x)
{
	double k = floor(x / (LN2_HIGH + LN2_LOW) + .5), r = (x - k * LN2_HIGH) - k * LN2_LOW, sum = 1;
	for (int i = 14; i >= 1; i--)
		sum = 1 + r * sum / i;
	return ldexp(sum, (int)k);
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct heavy *h = priv;
	double u = 0x1p-53 + mw_u01(mw_sched_bits(seed, worker, step)); /* (0,1] */
	double v = h->scale == 0 ? 0 : h->scale * exp_exact(-log_exact(u) / h->shape);
	return v < h->max ? v : h->max;
}

static double min(const void *priv)
{
	return ((const struct heavy *)priv)->scale;
}

static double max(const void *priv)
{
	const struct heavy *h = priv;
	return h->scale == 0 ? 0 : h->max;
}

const struct mw_sched_ops mw_sched_heavy = {
	.name = "heavy",
	.summary = "heavy tail: Pareto from SCALE on, cut off at max",
	.syntax = "heavy:SCALE,shape=S[,max=M]",
	.priv_size = sizeof(struct heavy),
	.parse = parse,
	.value = value,
	.min = min,
	.max = max,
};
