/*
 * replay.c: the sim engine driven by a recorded trace instead of a virtual clock. Events are performed in an order that
 * agrees with every worker's own order and with the versions that each event read or made; among those that may come
 * next the one that began first does. Where there are no versions (racy, atomic) only the time-stamps order events, and
 * those of different workers that overlap in time are counted as ambiguous.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/replay.h"
#include "run/worker.h"

struct head {
	struct mw_event e;
	struct mw_touch touch[MW_TOUCH_MAX];
	uint64_t at; /* position of the event after this one */
	bool there;
};

struct replay {
	struct head *head; /* next event of each worker */
	uint32_t *version; /* of each row */
	/* Reads still to come of each version of each row: reads[first[row] + version]; a write waits for those of the last. */
	uint32_t *reads;
	uint64_t *first;
	struct mw_replay_report report;
	uint64_t last_end; /* latest end of an event performed so far */
	uint32_t last_worker;
};

static void advance(struct mw_run *run, struct replay *r, uint32_t w)
{
	struct head *h = &r->head[w];
	h->there = mw_trace_next(run->replay, w, &h->at, &h->e, h->touch);
}

static uint32_t row_of(const struct mw_touch *t)
{
	return t->row & ~MW_TOUCH_WRITE;
}

static bool writes(const struct mw_touch *t)
{
	return t->row & MW_TOUCH_WRITE;
}

/* Do the versions that the event read or made come next? */
static bool enabled(const struct replay *r, const struct head *h)
{
	for (int i = 0; i < h->e.n_touch; i++) {
		const struct mw_touch *t = &h->touch[i];
		uint32_t now = r->version[row_of(t)];
		if (now != t->version - (writes(t) ? 1 : 0) ||
			(writes(t) && r->reads[r->first[row_of(t)] + now]))
			return false;
	}
	return true;
}

static int misfit(const struct mw_run *run, struct mw_err *err)
{
	MW_FAIL(err, DATA, "--replay %s: it names rows or versions that this run does not have",
		run->opt->replay);
}

/* fn for every event of the trace; stops at the first that fails. */
static int each_touch(const struct mw_run *run, struct replay *r,
	bool (*fn)(struct replay *, const struct mw_touch *), struct mw_err *err)
{
	struct mw_event e;
	struct mw_touch touch[MW_TOUCH_MAX];
	for (uint32_t w = 0; w < run->n_workers; w++)
		for (uint64_t at = 0; mw_trace_next(run->replay, w, &at, &e, touch);)
			for (int i = 0; i < e.n_touch; i++)
				if (row_of(&touch[i]) >= run->protocol->rows || !fn(r, &touch[i]))
					return misfit(run, err);
	return 0;
}

static bool count_write(struct replay *r, const struct mw_touch *t)
{
	if (writes(t))
		r->first[row_of(t) + 1]++;
	return true;
}

static bool count_read(struct replay *r, const struct mw_touch *t)
{
	uint64_t first = r->first[row_of(t)], versions = r->first[row_of(t) + 1] - first;
	if (t->version >= versions)
		return false;
	if (!writes(t))
		r->reads[first + t->version]++;
	return true;
}

static int count_reads(const struct mw_run *run, struct replay *r, struct mw_err *err)
{
	uint32_t rows = run->protocol->rows;
	r->first = mw_alloc_array((size_t)rows + 1, sizeof(*r->first), "the replay", err);
	if (!r->first)
		return err->code;
	MW_TRY(each_touch(run, r, count_write, err));
	for (uint32_t i = 0; i < rows; i++)
		r->first[i + 1] += r->first[i] + 1; /* versions 0..writes */
	r->reads = mw_alloc_array(r->first[rows], sizeof(*r->reads), "the replay", err);
	if (!r->reads)
		return err->code;
	return each_touch(run, r, count_read, err);
}

static uint32_t choose(const struct mw_run *run, const struct replay *r)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t w = 0; w < run->n_workers; w++) {
		const struct head *h = &r->head[w];
		if (h->there && (best == UINT32_MAX || h->e.begin < r->head[best].e.begin) && enabled(r, h))
			best = w;
	}
	return best;
}

static void count(const struct mw_run *run, struct replay *r, const struct head *h, uint32_t w)
{
	const struct mw_protocol *p = run->protocol;
	uint32_t row = h->e.kind == MW_EVENT_PUSH ? p->push_row[w] : p->view_row[w];
	bool alone =
		h->e.kind != MW_EVENT_MIX && p->row_owner[row] == w; /* nobody else's event bears on it */
	r->report.events++;
	if (!h->e.n_touch && !alone && h->e.begin < r->last_end && w != r->last_worker)
		r->report.ambiguous++;
	if (h->e.begin + h->e.duration > r->last_end) {
		r->last_end = h->e.begin + h->e.duration;
		r->last_worker = w;
	}
}

/* Perform one event. False: the trace does not fit the run. */
static bool perform(struct mw_run *run, struct replay *r, uint32_t id)
{
	struct mw_worker *w = run->worker[id];
	struct mw_bench *bench = &run->bench[0];
	const struct head *h = &r->head[id];
	if (h->e.step != (uint32_t)w->step)
		return false;
	if (h->e.kind == MW_EVENT_MIX && h->e.flags & MW_EVENT_FETCH) {
		mw_step_fetch_now(w, bench);
	} else if (h->e.kind == MW_EVENT_VIEW) {
		if (w->begun)
			return false;
		mw_step_begin(w, bench, true);
		w->begun = true;
	} else {
		if (!w->begun)
			return false;
		/* a token that the worker did not hold left no event */
		while (w->begun && mw_step_next_is_mix(w) != (h->e.kind == MW_EVENT_MIX))
			w->begun = mw_step_skip(w);
		if (!w->begun)
			return false;
		w->begun = mw_step_action(w, bench);
	}
	for (int i = 0; i < h->e.n_touch; i++)
		if (writes(&h->touch[i]))
			r->version[row_of(&h->touch[i])] = h->touch[i].version;
		else
			r->reads[r->first[row_of(&h->touch[i])] + h->touch[i].version]--;
	return true;
}

/* After its last event a step may end with a token test that left none. */
static void end_step(struct mw_run *run, struct replay *r, uint32_t id)
{
	struct mw_worker *w = run->worker[id];
	const struct head *h = &r->head[id];
	if (w->begun && w->action > 0 && (!h->there || h->e.kind == MW_EVENT_VIEW))
		while (w->begun)
			w->begun = mw_step_skip(w);
}

static int start(struct mw_run *run, struct mw_err *err)
{
	struct replay *r = mw_alloc(sizeof(*r), "the replay", err);
	if (!r)
		return err->code;
	run->engine = r;
	r->head = mw_alloc_array(run->n_workers, sizeof(*r->head), "the replay", err);
	r->version = mw_alloc_array(run->protocol->rows, sizeof(*r->version), "the replay", err);
	if (!r->head || !r->version)
		return err->code;
	if (json_is_true(json_object_get(run->replay->header, "windows")))
		MW_FAIL(err, DATA,
			"--replay %s: it holds windows of a run, not all of it; record without --trace-every",
			run->opt->replay);
	MW_TRY(count_reads(run, r, err));
	for (uint32_t w = 0; w < run->n_workers; w++) {
		MW_TRY(mw_worker_new(run, w, &run->worker[w], err));
		advance(run, r, w);
	}
	for (uint32_t i = 0; i < run->n_benches; i++)
		MW_TRY(mw_bench_init(&run->bench[i], run, 0, err));
	return 0;
}

/* The whole trace is one segment: evaluations in between would only show states that the real run did not rest in. */
static void segment(struct mw_run *run)
{
	struct replay *r = run->engine;
	uint32_t w;
	while ((w = choose(run, r)) != UINT32_MAX) {
		count(run, r, &r->head[w], w);
		if (!perform(run, r, w)) {
			r->report.misfit = true;
			break;
		}
		advance(run, r, w);
		end_step(run, r, w);
	}
	for (uint32_t i = 0; i < run->n_workers; i++)
		r->report.left += r->head[i].there;
	run->replayed = r->report;
}

static void parts(struct mw_run *run, mw_part_fn *fn, void *arg)
{
	for (uint32_t part = 0; part < MW_EVAL_PARTS; part++)
		fn(run, &run->bench[0], part, arg);
}

static void flush(struct mw_run *run)
{
	for (uint32_t w = 0; w < run->n_workers; w++)
		mw_step_flush(run->worker[w], &run->bench[0]);
}

static void stop(struct mw_run *run)
{
	struct replay *r = run->engine;
	if (!r)
		return;
	mw_free(r->head);
	mw_free(r->version);
	mw_free(r->reads);
	mw_free(r->first);
	mw_free(r);
	run->engine = NULL;
}

const struct mw_engine_ops mw_engine_replay = { "replay", start, segment, parts, flush, stop };
