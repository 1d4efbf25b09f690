/* square.c: square:HIGH,LOW,period=P: HIGH in the first half of every P steps, LOW in the second. */
#include "sched/sched_make.h"

struct square {
	double high, low;
	uint64_t period;
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct square *s = priv;
	const char *what = "schedule square:HIGH,LOW,period=P: period";
	double period;
	MW_TRY(mw_sched_number(&args, ',', "schedule square:HIGH,LOW,period=P: HIGH", &s->high, err));
	MW_TRY(mw_sched_number(&args, ',', "schedule square:HIGH,LOW,period=P: LOW", &s->low, err));
	MW_TRY(mw_sched_keyed(&args, '\0', "period", what, &period, err));
	MW_TRY(mw_sched_whole(period, what, &s->period, err));
	if (s->period < 2)
		MW_FAIL(err, USAGE, "schedule square: a period of 1 has no halves: use constant:A");
	return MW_OK;
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct square *s = priv;
	(void)seed;
	(void)worker;
	return step % s->period < (s->period + 1) / 2 ? s->high : s->low;
}

static double min(const void *priv)
{
	const struct square *s = priv;
	return s->high < s->low ? s->high : s->low;
}

static double max(const void *priv)
{
	const struct square *s = priv;
	return s->high > s->low ? s->high : s->low;
}

const struct mw_sched_ops mw_sched_square = {
	.name = "square",
	.summary = "HIGH and LOW for half a period each",
	.syntax = "square:HIGH,LOW,period=P",
	.priv_size = sizeof(struct square),
	.parse = parse,
	.value = value,
	.min = min,
	.max = max,
};
