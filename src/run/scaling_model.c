/* scaling_model.c: see scaling.h. */
#include "run/scaling.h"

#include <math.h>

double mw_scaling_conflict_s(const struct mw_scaling *s)
{
	double c = s->lines > 0 ? (s->s2 - s->t2) / (s->lines / 2) : 0;
	return c > 0 ? c : 0;
}

/* A private example with n workers busy, g of them on a node. */
static double private_s(const struct mw_scaling *s, uint32_t n, double g)
{
	double compute = n == 1 ? s->t1 : s->t2;
	return s->bandwidth > 0 ? fmax(compute, g * s->bytes / s->bandwidth) : compute;
}

/* An example of one of n workers that share `lines` of what it touches over `nodes` nodes. */
static double shared_s(const struct mw_scaling *s, double lines, double n, double nodes, double base)
{
	if (n <= 1)
		return base;
	double far = nodes > 1 ? (n - n / nodes) / (n - 1) : 0;
	return base + mw_scaling_conflict_s(s) * lines * (n - 1) / n * (1 + far * (s->remote - 1));
}

/* What the hottest line lets through, which a share q of the rows touches. */
static double hot_rate(const struct mw_scaling *s, double q, double n, double nodes)
{
	if (n <= 1 || q <= 0 || s->latency <= 0)
		return INFINITY;
	double far = nodes > 1 ? (n - n / nodes) / (n - 1) : 0;
	return 1 / (s->latency * (1 + far * (s->remote - 1)) * q * (n - 1) / n);
}

static double node_rate(const struct mw_scaling *s, uint32_t n, double nodes, double base, double every)
{
	double g = n / nodes, example = shared_s(s, s->lines, g, 1, base), most = hot_rate(s, s->q, g, 1);
	if (nodes <= 1)
		return fmin(g / example, most);
	/*
	 * mean: the work of an exchange of two replicas; that of more is more. Where a worker a node helps with long ones (help.h)
	 * each is shorter, but the time that others take off it goes into theirs.
	 */
	double exchange = s->mean * (nodes / 2) * (nodes > 2 ? s->remote : 1);
	double refetch = mw_scaling_conflict_s(s) * fmin(s->period_lines, every * s->lines);
	double lead = every / (every * example + exchange + refetch),
	       others = every / (every * example + refetch);
	return nodes * fmin(lead + (g - 1) * others, most);
}

/* n workers, an exchange of `merge` seconds in `stripes` every so many of their examples. */
static double merging_rate(double n, double example, double merge, double stripes, double every)
{
	return fmin(n * every / (every * example + merge), every * stripes / merge);
}

static double hot_private_rate(const struct mw_scaling *s, double n, double nodes, double base, double every)
{
	double share = fmin(s->hot_columns / 16.0 / s->dim_lines, 1);
	double merge = s->merge * share * (nodes > 1 ? s->remote : 1);
	double rate = n / shared_s(s, s->cold_lines, n, nodes, base);
	if (merge > 0)
		rate = merging_rate(n, n / rate, merge, fmax(1, s->stripes * share), every);
	return fmin(rate, hot_rate(s, s->cold_q, n, nodes));
}

double mw_scaling_rate(
	const struct mw_scaling *s, enum mw_scaling_kind kind, uint32_t n, uint32_t nodes, double every)
{
	uint32_t needed = (n + s->cores_per_node - 1) / s->cores_per_node;
	double far = needed > 1 ? s->remote : 1, base = private_s(s, n, (double)n / needed);
	if (n == 1)
		return 1 / s->t1;
	if (kind == MW_SCALING_SHARED)
		return fmin(n / shared_s(s, s->lines, n, needed, base), hot_rate(s, s->q, n, needed));
	if (kind == MW_SCALING_NODE)
		return node_rate(s, n, nodes ? nodes : needed, base, every);
	if (kind == MW_SCALING_HOT)
		return hot_private_rate(s, n, needed, base, every);
	return merging_rate(n, base, s->merge * far, s->stripes, every);
}
