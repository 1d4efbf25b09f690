/* constant.c: constant:A, always the same. */
#include "sched/sched_make.h"

struct constant {
	double a;
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	return mw_sched_number(&args, '\0', "schedule constant:A", &((struct constant *)priv)->a, err);
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	(void)seed;
	(void)worker;
	(void)step;
	return ((const struct constant *)priv)->a;
}

static double limit(const void *priv)
{
	return ((const struct constant *)priv)->a;
}

const struct mw_sched_ops mw_sched_constant = {
	.name = "constant",
	.summary = "always A",
	.syntax = "constant:A, or just A",
	.priv_size = sizeof(struct constant),
	.parse = parse,
	.value = value,
	.min = limit,
	.max = limit,
};
