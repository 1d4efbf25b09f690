/* metrics.c: see metrics.h. */
#include "run/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/control.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/theory.h"

/* A sample reads this many coordinates of every viewed replica at most: it must not disturb who computes. */
enum { SAMPLED_COORDINATES = 1024 };

/* One write a line, so that a kill leaves whole lines. */
static int write_line(struct mw_run *run, json_t *j, struct mw_err *err)
{
	char *line = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(10));
	json_decref(j);
	bool bad = !line || fprintf(run->metrics, "%s\n", line) < 0 || fflush(run->metrics);
	free(line);
	if (bad)
		MW_FAIL(err, RESOURCE, "%s/metrics.jsonl can't be written: %s", run->run_dir,
			strerror(errno));
	return 0;
}

int mw_metrics_evaluation(struct mw_run *run, const struct mw_evaluation *e, struct mw_err *err)
{
	if (!run->metrics)
		return 0;
	struct mw_hist *h = mw_record_staleness(run, err);
	if (!h)
		return err->code;
	json_t *j = mw_record_evaluation(run, e);
	json_object_set_new(j, "epoch", json_real(e->epoch));
	json_object_set_new(j, "steps", json_integer((json_int_t)e->steps));
	json_object_set_new(j, "rate",
		json_real((double)mw_rate_at(
			run->rate, e->epoch, run->opt->epochs, mw_deal_clock(run->worker[0]))));
	json_object_set_new(j, "staleness", mw_hist_json(h, 0));
	if (run->control)
		json_object_set_new(j, "t_mix", mw_control_json(run));
	if (run->theory)
		json_object_set_new(j, "bound", mw_theory_json(run));
	mw_free(h);
	return write_line(run, j, err);
}

/* --- events -------------------------------------------------------------------------------------------------------- */

static int tell_window(struct mw_run *run, const struct mw_steer_window *w, struct mw_err *err)
{
	uint32_t n = run->steer_reported;
	if (n <= 8 || !(n & (n - 1))) /* all of them are in the metrics */
		mw_say(run, "control   t_mix %.4g +- %.2g, target %.4g %s, at %s %.6g; next %.6g\n",
			w->measured, w->error, mw_steer_target(run->steer), mw_steer_unit(run->steer),
			mw_steer_actuator(run->steer), w->value, w->next);
	if (!run->metrics)
		return 0;
	json_t *j = json_pack("{ss}", "event", "control"), *window = mw_steer_window_json(run->steer, w);
	json_object_update(j, window);
	json_decref(window);
	return write_line(run, j, err);
}

static int tell_change(struct mw_run *run, const struct mw_timeline_entry *e, struct mw_err *err)
{
	if (!run->steer) /* else the window's line has said it */
		mw_say(run, "timeline  %s, from own step %llu on\n", e->change, (unsigned long long)e->step);
	if (!run->metrics)
		return 0;
	return write_line(run,
		json_pack("{ss ss sI sf}", "event", "timeline", "change", e->change, "own_step",
			(json_int_t)e->step, "seen_at_s", e->applied_s),
		err);
}

/* Own steps that every worker has begun. */
static uint64_t least_step(const struct mw_run *run)
{
	uint64_t step = UINT64_MAX;
	for (uint32_t w = 0; w < run->n_workers; w++) {
		uint64_t s = __atomic_load_n(&run->counters[w].steps, __ATOMIC_RELAXED);
		step = s < step ? s : step;
	}
	return step;
}

static double clock_now(const struct mw_run *run)
{
	return run->train_s + (run->in_segment ? mw_now_s() - run->segment_s : 0);
}

int mw_metrics_events(struct mw_run *run, struct mw_err *err)
{
	const struct mw_timeline_entry *e;
	const struct mw_steer_window *w;
	uint64_t step = least_step(run);
	while (run->steer && (w = mw_steer_at(run->steer, run->steer_reported))) {
		run->steer_reported++;
		MW_TRY(tell_window(run, w, err));
	}
	while (run->timeline && step &&
		(e = mw_timeline_report(run->timeline, &run->timeline_reported, step, clock_now(run))))
		MW_TRY(tell_change(run, e, err));
	return 0;
}

/* --- samples ------------------------------------------------------------------------------------------------------- */

/* sqrt(mean over workers of |view row - average|^2), from a sample of the coordinates, while they move. */
static double consensus(const struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	size_t dim = run->replicas.dim, n = dim < SAMPLED_COORDINATES ? dim : SAMPLED_COORDINATES;
	double sum = 0;
	if (p->versioned)
		return 0;
	for (size_t k = 0; k < n; k++) {
		size_t j = dim * k / n;
		double average = 0;
		for (uint32_t i = 0; i < p->rows; i++)
			if (p->pi[i] != 0)
				average += p->pi[i] * (double)mw_ld(&run->replicas.row[i].x[j]);
		for (uint32_t w = 0; w < p->workers; w++) {
			double d = (double)mw_ld(&run->replicas.row[p->view_row[w]].x[j]) - average;
			sum += d * d;
		}
	}
	return sqrt(sum / p->workers * (double)dim / (double)n);
}

static json_t *sample_json(struct mw_run *run, double seconds, const struct mw_hist *h)
{
	uint64_t steps = 0, examples = 0;
	for (uint32_t w = 0; w < run->n_workers; w++) {
		steps += __atomic_load_n(&run->counters[w].steps, __ATOMIC_RELAXED);
		examples += __atomic_load_n(&run->counters[w].examples, __ATOMIC_RELAXED);
	}
	double since = seconds - run->sampled_s, speed = (double)(examples - run->sampled_examples) / since;
	json_t *j = json_pack("{ss sI sf sf so so}", "event", "sample", "steps", (json_int_t)steps, "epoch",
		(double)examples / (double)run->rows.n, "seconds", seconds, "virtual_seconds",
		run->exclusive ? json_real(run->virtual_s) : json_null(), "running_loss",
		mw_json_number(mw_running_loss(run)));
	json_object_set_new(j, "train_loss", mw_json_number(run->last.train_loss));
	json_object_set_new(j, "consensus_distance", mw_json_number(consensus(run)));
	json_object_set_new(j, "examples", json_integer((json_int_t)examples));
	json_object_set_new(j, "examples_per_s", mw_json_number(since > 0 ? speed : NAN));
	json_object_set_new(j, "staleness", mw_hist_json(h, 0));
	json_object_set_new(j, "t_mix", mw_control_latest(run));
	run->sampled_s = seconds;
	run->sampled_examples = examples;
	return j;
}

static int sample(struct mw_run *run, double seconds, struct mw_err *err)
{
	struct mw_hist *h = mw_record_staleness(run, err);
	if (!h)
		return err->code;
	int code = write_line(run, sample_json(run, seconds, h), err);
	mw_free(h);
	return code;
}

void mw_metrics_tick(struct mw_run *run)
{
	struct mw_err err = { 0 };
	double every = run->opt->metrics_every, now = clock_now(run);
	mw_metrics_events(run, &err);
	if (run->metrics && every > 0 && now - run->sampled_s >= every)
		sample(run, now, &err);
}
