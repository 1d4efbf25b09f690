/* ramp.c: ramp:FROM,TO,steps=S: linear from FROM at step 0 to TO at step S, TO from then on. */
#include "sched/sched_make.h"

struct ramp {
	double from, to;
	uint64_t steps;
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct ramp *r = priv;
	const char *what = "schedule ramp:FROM,TO,steps=S: steps";
	double steps;
	MW_TRY(mw_sched_number(&args, ',', "schedule ramp:FROM,TO,steps=S: FROM", &r->from, err));
	MW_TRY(mw_sched_number(&args, ',', "schedule ramp:FROM,TO,steps=S: TO", &r->to, err));
	MW_TRY(mw_sched_keyed(&args, '\0', "steps", what, &steps, err));
	return mw_sched_whole(steps, what, &r->steps, err);
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct ramp *r = priv;
	(void)seed;
	(void)worker;
	if (step >= r->steps)
		return r->to;
	return r->from + (r->to - r->from) * ((double)step / (double)r->steps);
}

static double min(const void *priv)
{
	const struct ramp *r = priv;
	return r->from < r->to ? r->from : r->to;
}

static double max(const void *priv)
{
	const struct ramp *r = priv;
	return r->from > r->to ? r->from : r->to;
}

const struct mw_sched_ops mw_sched_ramp = {
	.name = "ramp",
	.summary = "linear from FROM to TO over S steps, then TO",
	.syntax = "ramp:FROM,TO,steps=S",
	.priv_size = sizeof(struct ramp),
	.parse = parse,
	.value = value,
	.min = min,
	.max = max,
};
