/* worker.c: worker:A/B/C...: a value of its own for each worker. */
#include "base/mem.h"
#include "sched/sched_make.h"

struct per_worker {
	double *entry;
	uint32_t n;
};

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct per_worker *p = priv;
	uint32_t n = 1;
	for (const char *c = args; *c; c++)
		n += *c == '/';
	p->entry = mw_alloc_array(n, sizeof(*p->entry), "schedule worker", err);
	if (!p->entry)
		return MW_ERESOURCE;
	for (p->n = 0; p->n < n; p->n++)
		MW_TRY(mw_sched_number(&args, '/', "schedule worker:A/B...: an entry", &p->entry[p->n], err));
	return MW_OK;
}

static void fini(void *priv)
{
	mw_free(((struct per_worker *)priv)->entry);
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct per_worker *p = priv;
	(void)seed;
	(void)step;
	return p->entry[worker % p->n];
}

static double min(const void *priv)
{
	const struct per_worker *p = priv;
	double m = p->entry[0];
	for (uint32_t i = 1; i < p->n; i++)
		m = p->entry[i] < m ? p->entry[i] : m;
	return m;
}

static double max(const void *priv)
{
	const struct per_worker *p = priv;
	double m = p->entry[0];
	for (uint32_t i = 1; i < p->n; i++)
		m = p->entry[i] > m ? p->entry[i] : m;
	return m;
}

const struct mw_sched_ops mw_sched_worker = {
	.name = "worker",
	.summary = "worker w takes entry w modulo their number",
	.syntax = "worker:A/B/C...",
	.priv_size = sizeof(struct per_worker),
	.parse = parse,
	.fini = fini,
	.value = value,
	.min = min,
	.max = max,
};
