/* uniform.c: uniform:A,B: whole numbers A..B, or reals of [A,B) when an end is written with a decimal point.
 */
#include "sched/sched_make.h"

#include <math.h>
#include <string.h>

struct uniform {
	double a, b;
	bool whole;
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct uniform *u = priv;
	const char *at = args;
	MW_TRY(mw_sched_number(&at, ',', "schedule uniform:A,B: A", &u->a, err));
	MW_TRY(mw_sched_number(&at, '\0', "schedule uniform:A,B: B", &u->b, err));
	if (u->b < u->a)
		MW_FAIL(err, USAGE, "schedule uniform:%s: B must be at least A", args);
	u->whole = !strchr(args, '.') && u->a == floor(u->a) && u->b == floor(u->b);
	return MW_OK;
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct uniform *u = priv;
	double r = mw_u01(mw_sched_bits(seed, worker, step));
	return u->whole ? u->a + floor(r * (u->b - u->a + 1)) : u->a + r * (u->b - u->a);
}

static double min(const void *priv)
{
	return ((const struct uniform *)priv)->a;
}

static double max(const void *priv)
{
	return ((const struct uniform *)priv)->b;
}

const struct mw_sched_ops mw_sched_uniform = {
	.name = "uniform",
	.summary = "each step anew, all values from A to B as likely",
	.syntax = "uniform:A,B (whole numbers; reals if an end has a decimal point)",
	.priv_size = sizeof(struct uniform),
	.parse = parse,
	.value = value,
	.min = min,
	.max = max,
};
