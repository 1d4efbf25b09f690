/* series.c: sums and crossings of a distance d(k) that is known as a function of k. */
#include <math.h>

#include "mixing/internal.h"

#define DEAR 5e4 /* operations */

/* d(a+1) + ... + d(b) when d is geometric between a and b. */
static double geometric(double da, double db, double len)
{
	double x = log(da / db) / len; /* d falls by exp(-x) a step */
	if (x * len < 1e-9)
		return db * len;
	return db * expm1(x * len) / expm1(x);
}

/*
 * The first terms one by one. Later d is close to geometric over a block of 1/512 of k (1/64 when dear), and its square
 * too: the relative error of the sum is below 1e-6 (1e-4), since d has settled on its few slowest modes.
 */
void mix_series(mix_curve *d, const void *context, double cost, double *s1, double *s2)
{
	double k = 0, last = 1, a1 = 0, a2 = 0, first = cost > DEAR ? 128 : 4096,
	       divisor = cost > DEAR ? 64 : 512;
	while (k < first && last > 1e-15) {
		last = d(context, ++k);
		a1 += last;
		a2 += last * last;
	}
	while (last > 1e-15 && k < MIX_MAX_STEPS) {
		double len = floor(k / divisor) + 1, next = d(context, k + len);
		if (!(next > 0))
			break;
		a1 += geometric(last, next, len);
		a2 += geometric(last * last, next * next, len);
		k += len;
		last = next;
	}
	*s1 = k < MIX_MAX_STEPS ? a1 : NAN;
	*s2 = k < MIX_MAX_STEPS ? a2 : NAN;
}

/* The smallest k >= 1 with d(k) <= threshold for a d that never rises; NAN beyond MIX_MAX_STEPS. */
double mix_crossing(mix_curve *d, const void *context, double threshold)
{
	double low = 0, high = 1;
	while (d(context, high) > threshold) {
		low = high;
		high *= 2;
		if (high > MIX_MAX_STEPS)
			return NAN;
	}
	while (high - low > 1) {
		double mid = floor((low + high) / 2);
		if (d(context, mid) > threshold)
			low = mid;
		else
			high = mid;
	}
	return high;
}

void mix_scale_result(const struct mix_law *law, struct mw_mixing_result *r)
{
	double c = law->scale, d0 = 1;
	if (c <= 1)
		return;
	if (law->norm == MW_NORM_TV && !law->use_form) {
		double least = 1;
		for (uint32_t i = 0; i < law->rows; i++)
			least = fmin(least, law->pi[i]);
		d0 = 1 - least;
	}
	r->t_mix *= c;
	r->error *= c;
	r->s1 = (c - 1) * d0 + c * r->s1;
	r->s2 = (c - 1) * d0 * d0 + c * r->s2;
	r->s2f = c > 1 ? NAN : r->s2f; /* not of one matrix any more */
	r->t_inf *= c;
	r->t_1 *= c;
	r->t_q *= c;
}
