/* only.c: only:W1/W2...,SPEC: another schedule for the workers named, 0 for the others. */
#include "sched/sched_make.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct only {
	uint32_t *worker, n;
	struct mw_sched *inner;
};

static int parse_workers(struct only *o, const char *args, const char *end, struct mw_err *err)
{
	uint32_t n = 1;
	for (const char *c = args; c < end; c++)
		n += *c == '/';
	o->worker = mw_alloc_array(n, sizeof(*o->worker), "schedule only", err);
	if (!o->worker)
		return MW_ERESOURCE;
	for (const char *at = args; o->n < n; at++) {
		char *after;
		errno = 0;
		unsigned long w = isdigit((unsigned char)*at) ? strtoul(at, &after, 10) : UINT32_MAX;
		if (errno || w >= UINT32_MAX || (*after != '/' && after != end))
			MW_FAIL(err, USAGE,
				"schedule only:%s: workers are whole numbers from 0, as in only:0/3,SPEC",
				args);
		o->worker[o->n++] = (uint32_t)w;
		at = after;
	}
	return MW_OK;
}

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct only *o = priv;
	const char *comma = strchr(args, ',');
	if (!comma)
		MW_FAIL(err, USAGE, "schedule only:%s: write it as only:W1/W2...,SPEC", args);
	MW_TRY(parse_workers(o, args, comma, err));
	return mw_sched_parse(comma + 1, &o->inner, err);
}

static void fini(void *priv)
{
	struct only *o = priv;
	mw_free(o->worker);
	mw_sched_free(o->inner);
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct only *o = priv;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->worker[i] == worker)
			return mw_sched_value(o->inner, seed, worker, step);
	return 0;
}

static double min(const void *priv)
{
	(void)priv; /* there may be others */
	return 0;
}

static double max(const void *priv)
{
	return mw_sched_max(((const struct only *)priv)->inner);
}

const struct mw_sched_ops mw_sched_only = {
	.name = "only",
	.summary = "a schedule for some workers, 0 for the others",
	.syntax = "only:W1/W2...,SPEC",
	.priv_size = sizeof(struct only),
	.parse = parse,
	.fini = fini,
	.value = value,
	.min = min,
	.max = max,
};
