/*
 * geometric.c: geometric:MEAN: 0, 1, 2, ... with P(value >= k) = q^k, q = MEAN / (1 + MEAN).
 *
 * The value is the largest k with q^k >= u, u uniform on (0,1], found by halving steps with powers q^(2^i):
 * multiplications alone, so that the result has the same bits on every machine, which a library logarithm
 * would not promise.
 */
#include "sched/sched_make.h"

#include <math.h>

#define POWERS 62

struct geometric {
	double mean;
	double power[POWERS]; /* q^(2^i) */
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct geometric *g = priv;
	MW_TRY(mw_sched_number(&args, '\0', "schedule geometric:MEAN", &g->mean, err));
	if (g->mean > 1e12)
		MW_FAIL(err, USAGE, "schedule geometric: a mean of %g is above 1e12", g->mean);
	g->power[0] = g->mean / (1 + g->mean);
	for (int i = 1; i < POWERS; i++)
		g->power[i] = g->power[i - 1] * g->power[i - 1];
	return MW_OK;
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct geometric *g = priv;
	double u = 0x1p-53 + mw_u01(mw_sched_bits(seed, worker, step)), p = 1, k = 0;
	for (int i = POWERS - 1; i >= 0; i--)
		if (p * g->power[i] >= u) {
			p *= g->power[i];
			k += (double)((uint64_t)1 << i);
		}
	return k;
}

static double min(const void *priv)
{
	(void)priv;
	return 0;
}

static double max(const void *priv)
{
	return ((const struct geometric *)priv)->mean > 0 ? INFINITY : 0;
}

const struct mw_sched_ops mw_sched_geometric = {
	.name = "geometric",
	.summary = "whole numbers from 0, memoryless, with a given mean",
	.syntax = "geometric:MEAN",
	.priv_size = sizeof(struct geometric),
	.parse = parse,
	.value = value,
	.min = min,
	.max = max,
};
