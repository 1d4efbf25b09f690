/* control_report.c: what the estimators found, as JSON and for people. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "mixing/exact.h"
#include "run/control.h"
#include "run/record.h"
#include "run/snapshot.h"
#include "run/windows.h"

static const char *unit_of(const struct mw_run *run)
{
	return mw_unit_name(run->protocol->clock == MW_CLOCK_ROUND ? MW_UNIT_ROUND : MW_UNIT_EVENT);
}

static json_t *estimate_json(const struct mw_run *run, const struct mw_estimate *e)
{
	json_t *j = json_object();
	json_object_set_new(j, "value", e->identified ? mw_json_number(e->value) : json_null());
	json_object_set_new(j, "target", json_string(mw_target_name(e->target)));
	json_object_set_new(j, "unit", json_string(unit_of(run)));
	json_object_set_new(j, "error", mw_json_number(e->error));
	json_object_set_new(j, "n", json_integer((json_int_t)e->n));
	json_object_set_new(j, "reason", *e->reason ? json_string(e->reason) : json_null());
	return j;
}

static void add_products(json_t *j, const struct mw_estimate *e)
{
	json_object_set_new(j, "pooled", mw_json_number(e->pooled));
	json_object_set_new(j, "split", mw_json_number(e->split));
	json_object_set_new(j, "tv", mw_json_number(e->tv));
	json_object_set_new(j, "sup", mw_json_number(e->sup));
	json_object_set_new(j, "quenched", mw_json_number(e->quenched));
}

static json_t *no_value(const char *why)
{
	return json_pack("{sn ss}", "value", "reason", why);
}

/* The slowest block stands for all; each one's value is listed beside it. */
static json_t *slowest(const struct mw_run *run, struct mw_estimate *e, uint32_t n)
{
	json_t *list = json_array();
	uint32_t worst = 0;
	double mean = 0;
	for (uint32_t b = 0; b < n; b++) {
		mean += e[b].value / n;
		json_array_append_new(list, e[b].identified ? mw_json_number(e[b].value) : json_null());
		if (!e[b].identified || (e[worst].identified && e[b].value > e[worst].value))
			worst = b;
	}
	/* The largest of several is larger by chance, too. */
	e[worst].error = fmax(e[worst].error, e[worst].value - mean);
	json_t *j = estimate_json(run, &e[worst]);
	add_products(j, &e[worst]);
	if (n > 1)
		json_object_set(j, "blocks", list);
	json_decref(list);
	return j;
}

/* Without replicas: the delays that were seen. */
static json_t *delays_json(const struct mw_run *run)
{
	struct mw_err err = { 0 };
	struct mw_hist *h = mw_record_staleness(run, &err);
	struct mw_estimate e;
	uint64_t *value = h ? mw_alloc_array(2 * MW_HIST_BUCKETS, sizeof(*value), "delays", &err) : NULL;
	if (!value) {
		mw_free(h);
		return no_value("out of memory");
	}
	for (uint32_t b = 0; b < MW_HIST_BUCKETS; b++)
		value[b] = mw_hist_value(b);
	for (uint32_t b = 0; run->control->counted && b < MW_HIST_BUCKETS; b++)
		h->count[b] -= run->control->counted[b];
	mw_delays_estimate(value, h->count, MW_HIST_BUCKETS, &e);
	mw_free(value);
	mw_free(h);
	json_t *j = estimate_json(run, &e);
	json_object_set_new(j, "sup", mw_json_number(e.sup));
	return j;
}

static json_t *trace_json(const struct mw_run *run)
{
	const struct mw_control *c = run->control;
	struct mw_estimate e[MW_CONTROL_BLOCKS];
	if (!run->protocol->n_slots)
		return delays_json(run);
	if (!c->products[0])
		return no_value("too many replicas to follow products; --estimate probe measures them");
	for (uint32_t b = 0; b < c->blocks; b++)
		mw_products_estimate(c->products[b], &e[b]);
	json_t *j = slowest(run, e, c->blocks);
	if (!run->exclusive)
		json_object_set_new(j, "ambiguous", json_integer((json_int_t)c->ambiguous));
	if (c->again && !run->steer) { /* steered, a run has many windows, each under another plan */
		mw_products_estimate(c->again, &e[0]);
		json_object_set_new(j, "same_windows", estimate_json(run, &e[0]));
	}
	return j;
}

static json_t *probe_json(const struct mw_run *run)
{
	const struct mw_control *c = run->control;
	struct mw_estimate e[MW_CONTROL_BLOCKS];
	if (!c->cols)
		return no_value("the protocol exchanges nothing");
	for (uint32_t b = 0; b < c->blocks; b++)
		mw_probe_estimate(c->probe[b], &e[b]);
	return slowest(run, e, c->blocks);
}

static json_t *passive_json(const struct mw_run *run)
{
	const struct mw_control *c = run->control;
	struct mw_estimate e;
	if (!run->protocol->n_slots)
		return no_value("the protocol exchanges nothing");
	if (!c->passive)
		return no_value(run->protocol->signed_plan
					? "changes on their way have no place in a snapshot"
					: "too many replicas");
	if (run->protocol->clock == MW_CLOCK_EVENT && run->activation != MW_ACT_RANDOM &&
		run->protocol->rows != run->n_workers)
		return no_value("replicas are renewed nearly in turn here: what is seen is who was last, not "
				"how it mixes");
	mw_passive_estimate(c->passive, &e);
	/* real threads are looked at as near to the stride as can be */
	double stride = c->passive_n > 1
				? (double)(c->passive_last - c->passive_first) / (double)(c->passive_n - 1)
				: NAN;
	double scale = stride / (double)mw_passive_stride(c->passive);
	e.value *= scale;
	e.error *= scale;
	if (e.identified && c->passive_late * 5 > c->passive_n) {
		e.identified = false;
		snprintf(e.reason, sizeof(e.reason),
			"not identified: the sampler came too late %llu times of %llu",
			(unsigned long long)c->passive_late, (unsigned long long)c->passive_n);
	}
	json_t *j = estimate_json(run, &e);
	bool round = run->protocol->clock == MW_CLOCK_ROUND;
	json_object_set_new(
		j, "s2f", mw_json_number(mw_passive_s2f(c->passive, round ? run->n_workers : 1) / scale));
	return j;
}

/* The first estimator that has a value, in the order of their worth. */
static double best_value(json_t *j)
{
	static const char *const names[] = { "trace", "probe", "passive" };
	for (int i = 0; i < 3; i++) {
		json_t *value = json_object_get(json_object_get(j, names[i]), "value");
		if (json_is_number(value))
			return json_number_value(value);
	}
	return NAN;
}

json_t *mw_control_json(struct mw_run *run)
{
	int what = run->opt->estimate;
	bool all = what == MW_ESTIMATE_ALL;
	json_t *j = json_object();
	json_object_set_new(j, "trace", all || what == MW_ESTIMATE_TRACE ? trace_json(run) : json_null());
	json_object_set_new(j, "probe", all || what == MW_ESTIMATE_PROBE ? probe_json(run) : json_null());
	json_object_set_new(
		j, "passive", all || what == MW_ESTIMATE_PASSIVE ? passive_json(run) : json_null());
	double best = best_value(j);
	if (best > 0)
		mw_st(&run->control->live, (float)best);
	return j;
}

void mw_control_publish(struct mw_control *c)
{
	double every = c->run->opt->metrics_every, now = mw_now_s();
	if (!(every > 0) || !c->run->metrics || now - c->latest_s < every / 2)
		return;
	c->latest_s = now;
	json_t *j = mw_control_json(c->run);
	json_decref(__atomic_exchange_n(&c->latest, j, __ATOMIC_ACQ_REL)); /* taken by mw_control_latest */
}

json_t *mw_control_latest(struct mw_run *run)
{
	struct mw_control *c = run->control;
	if (!c)
		return json_null();
	if (!c->sampler) /* nobody else looks at the estimators */
		return mw_control_json(run);
	json_t *j = __atomic_exchange_n(&c->latest, NULL, __ATOMIC_ACQ_REL);
	if (j) {
		json_decref(c->shown);
		c->shown = j;
	}
	return c->shown ? json_incref(c->shown) : json_null();
}

static void keep_counts(struct mw_control *c)
{
	struct mw_err err = { 0 };
	struct mw_hist *h = mw_record_staleness(c->run, &err);
	for (uint32_t b = 0; h && b < MW_HIST_BUCKETS; b++)
		c->counted[b] = h->count[b];
	mw_free(h);
}

static void begin_anew(struct mw_control *c)
{
	keep_counts(c);
	for (uint32_t b = 0; b < c->blocks; b++) {
		if (c->products[b])
			mw_products_restart(c->products[b]);
		if (c->probe[b])
			mw_probe_restart(c->probe[b]);
	}
	if (c->passive)
		mw_passive_restart(c->passive);
	c->passive_next = c->passive_n = c->passive_late = 0;
}

void mw_control_window(struct mw_run *run)
{
	struct mw_control *c = run->control;
	if (!c || !c->windows)
		return;
	json_t *j = mw_control_json(run);
	mw_windows_add(c->windows, (double)mw_native_steps(run), best_value(j), run->last.train_loss);
	json_decref(c->stretch);
	c->stretch = j;
	begin_anew(c);
}

/* threads: what sampling took, and for what. */
static void add_cost(const struct mw_control *c, json_t *j)
{
	json_object_set_new(j, "sampler_share", mw_json_number((c->sampler_s + c->workers_s) / c->process_s));
	if (c->cols) {
		json_object_set_new(j, "segments", json_integer((json_int_t)c->ended));
		json_object_set_new(j, "segments_missed", json_integer((json_int_t)c->missed));
	}
}

void mw_control_report(struct mw_run *run)
{
	if (!run->control)
		return;
	json_t *stretch = run->control->stretch, *j = stretch ? json_incref(stretch) : mw_control_json(run);
	json_object_update(run->t_mix, j);
	if (run->steer)
		json_object_set_new(run->t_mix, "control", mw_steer_json(run->steer));
	if (run->control->process_s > 0)
		add_cost(run->control, run->t_mix);
	if (run->control->windows)
		json_object_set_new(run->t_mix, "loss", mw_windows_json(run->control->windows));
	json_decref(j);
}

void mw_control_print(struct mw_run *run)
{
	static const char *const names[] = { "trace", "probe", "passive" };
	for (int i = 0; run->control && i < 3; i++) {
		json_t *e = json_object_get(run->t_mix, names[i]), *value = json_object_get(e, "value");
		if (json_is_number(value))
			fprintf(run->job->msg, "          %.4g +- %.2g %s by %s (%s, %lld %s)\n",
				json_number_value(value), json_number_value(json_object_get(e, "error")),
				unit_of(run), names[i], json_string_value(json_object_get(e, "target")),
				(long long)json_integer_value(json_object_get(e, "n")),
				i == 2 ? "snapshots" : "starts");
		else if (json_is_object(e))
			fprintf(run->job->msg, "          no value by %s: %s\n", names[i],
				json_string_value(json_object_get(e, "reason")));
	}
}
