/* deal.c: see deal.h. */
#include "run/deal.h"

#include "base/mem.h"
#include "run/order.h"
#include "run/run.h"

enum { ROWS_MOST = 4096 };

bool mw_dealer_take(struct mw_dealer *d, uint64_t *from, uint64_t *to)
{
	uint64_t next = __atomic_load_n(&d->next, __ATOMIC_RELAXED), n;
	do {
		if (next >= d->limit)
			return false;
		n = (d->limit - next) / (4 * (uint64_t)d->workers);
		n = n < d->step ? d->step : n > d->most ? d->most : n / d->step * d->step;
		n = n < d->limit - next ? n : d->limit - next;
	} while (!__atomic_compare_exchange_n(
		&d->next, &next, next + n, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*from = next;
	*to = next + n;
	return true;
}

/* What rows can't be dealt with: they are prescribed to a worker, or its steps are counted against the others'. */
static const char *obstacle(const struct mw_run *run)
{
	const struct mw_train_options *o = run->opt;
	if (run->exclusive)
		return "--engine sim";
	if (run->protocol->clock == MW_CLOCK_ROUND)
		return "a protocol with a barrier";
	if (run->ssp_bound >= 0)
		return "a gate";
	if (run->activation != MW_ACT_FREE)
		return "--activation";
	if (run->shards.row)
		return "--shards";
	if (o->data_place == MW_DATA_SHARD)
		return "--data-place shard";
	if (mw_tracing(run))
		return "--trace";
	if (run->timeline)
		return o->target_tmix > 0 ? "--target-tmix" : "--timeline";
	if (run->rows.n / run->n_workers < run->batch)
		return "fewer rows than one batch a worker";
	return NULL;
}

int mw_deal_new(struct mw_run *run, struct mw_err *err)
{
	const char *why = obstacle(run);
	if (run->opt->deal == MW_DEAL_DYNAMIC && why)
		MW_FAIL(err, USAGE,
			"--deal dynamic does not go with %s: it leaves open who does which rows and how many "
			"steps; "
			"take --deal static",
			why);
	bool paced = !mw_sched_is_zero(run->straggler); /* somebody wants workers to be slow: let them */
	if (why || run->n_workers == 1 || run->opt->deal == MW_DEAL_STATIC ||
		(run->opt->deal == MW_DEAL_AUTO && paced))
		return 0;
	struct mw_dealer *d = mw_alloc(sizeof(*d), "the dealing of rows", err);
	if (!d)
		return err->code;
	uint64_t unit = mw_order_unit((enum mw_order_kind)run->opt->order, run->rows.n, run->n_workers);
	d->workers = run->n_workers;
	d->epoch_units = (run->rows.n + unit - 1) / unit;
	d->step = (run->batch + unit - 1) / unit;
	d->most = (ROWS_MOST / unit + d->step - 1) / d->step * d->step;
	run->dealer = d;
	return 0;
}

void mw_deal_segment(struct mw_run *run)
{
	struct mw_dealer *d = run->dealer;
	if (d)
		d->limit = (uint64_t)(((unsigned __int128)run->segment_end * d->epoch_units +
					      run->steps_per_epoch - 1) /
				      run->steps_per_epoch);
}

uint64_t mw_deal_clock(const struct mw_worker *w)
{
	const struct mw_run *run = w->run;
	if (!run->dealer)
		return w->step;
	return (uint64_t)((unsigned __int128)w->order.position * run->steps_per_epoch /
			  run->dealer->epoch_units);
}

const char *mw_deal_name(const struct mw_run *run)
{
	return run->dealer ? "dynamic" : "static";
}

/* ---- checkpoints */

json_t *mw_deal_json(const struct mw_run *run)
{
	const struct mw_dealer *d = run->dealer;
	return d ? json_pack("{sI sI}", "next", (json_int_t)d->next, "done", (json_int_t)run->done) : NULL;
}

void mw_deal_restore(struct mw_run *run, const json_t *j)
{
	run->dealer->next = (uint64_t)json_integer_value(json_object_get(j, "next"));
	run->done = (uint64_t)json_integer_value(json_object_get(j, "done"));
}

/* Rows that were drawn and not stepped on. */
static uint64_t *in_hand(const struct mw_worker *w, uint32_t *n)
{
	bool single = w->run->batch == 1;
	*n = single ? w->rows_have - w->rows_at : w->drawn;
	return single ? (uint64_t *)w->rows_buf + w->rows_at : w->pool[w->issued].row;
}

json_t *mw_deal_worker_json(const struct mw_worker *w)
{
	uint64_t at[3];
	uint32_t n;
	const uint64_t *row = in_hand(w, &n);
	json_t *rows = json_array();
	mw_order_where(&w->order, at);
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(rows, json_integer((json_int_t)row[i]));
	return json_pack("{s[III] so}", "units", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2],
		"rows", rows);
}

int mw_deal_worker_restore(struct mw_worker *w, const json_t *j, const char *path, struct mw_err *err)
{
	const struct mw_run *run = w->run;
	const json_t *units = json_object_get(j, "units"), *rows = json_object_get(j, "rows");
	uint64_t at[3], n = json_array_size(rows);
	uint64_t room = run->batch == 1 ? MW_RATE_BLOCK + MW_BURST_AHEAD : run->batch - 1;
	for (size_t i = 0; i < 3; i++)
		at[i] = (uint64_t)json_integer_value(json_array_get(units, i));
	bool right = json_array_size(units) == 3 && n <= room && at[0] <= at[1] &&
		     at[1] <= run->dealer->next && at[2] < w->order.unit;
	uint64_t *row = run->batch == 1 ? w->rows_buf : w->pool[w->issued].row;
	for (size_t i = 0; right && i < n; i++) {
		row[i] = (uint64_t)json_integer_value(json_array_get(rows, i));
		right = row[i] < run->train->rows;
	}
	if (!right)
		MW_FAIL(err, DATA, "%s: what it says of the rows of worker %u makes no sense", path, w->id);
	mw_order_go_to(&w->order, at);
	if (run->batch == 1)
		w->rows_have = (uint32_t)n;
	else
		w->drawn = (uint32_t)n;
	return 0;
}
