/* events.c: see events.h. */
#include "run/events.h"

#include "base/mem.h"
#include "run/snapshot.h"
#include "run/worker.h"

/* One worker's events, in its own order. */
struct stream {
	struct mw_recorder_reader reader;
	struct mw_event e;
	bool there;
	uint64_t mixes; /* number of its next exchange */
};

void mw_events_begin(struct mw_control *c)
{
	struct mw_run *run = c->run;
	for (uint32_t w = 0; w < run->n_workers; w++) {
		c->mixes[w] = run->worker[w]->mixes;
		if (mw_control_records(run)) {
			mw_recorder_fini(run->worker[w]->recorder);
			mw_recorder_init(run->worker[w]->recorder, 0, 0);
			run->worker[w]->recorder->limit = MW_EVENTS_LIMIT / run->n_workers + 1;
		}
	}
	c->step = run->protocol->clock == MW_CLOCK_ROUND ? run->worker[0]->step : 0;
	c->first = mw_native_steps(run);
	c->n_origins = c->next_origin = 0;
}

/* An exchange counts from its end on: it may have waited for a lock before. */
static uint64_t end_of(const struct mw_event *e)
{
	return e->begin + e->duration;
}

/* The next push or exchange. */
static void advance(struct stream *s)
{
	do
		s->there = mw_recorder_next(&s->reader, &s->e);
	while (s->there && s->e.kind == MW_EVENT_VIEW);
}

/* Slack in effect for a worker at its own step. */
static const struct mw_knobs *knobs_at(const struct mw_run *run, uint64_t step)
{
	const struct mw_knobs *k = &run->knobs;
	for (uint32_t i = 0; mw_timeline_next(run->timeline, i) <= step; i++)
		k = &run->timeline->entry[i].knobs;
	return k;
}

static void feed(struct mw_control *c, struct stream *s, uint32_t w)
{
	struct mw_run *run = c->run;
	if (s->e.kind == MW_EVENT_PUSH || s->e.flags & MW_EVENT_WITH_PUSH)
		mw_control_push(c);
	if (s->e.kind == MW_EVENT_MIX) {
		uint64_t k = s->mixes++;
		mw_control_mix(c, w, mw_mix_choice(run, w, k), mw_mix_block(run, w, k),
			knobs_at(run, s->e.step)->slack);
	}
}

/* All events up to the moment at which the first recorder was full, by their ends. */
static void merge(struct mw_control *c, struct stream *s, uint64_t until)
{
	uint32_t n = c->run->n_workers, last_worker = 0;
	uint64_t last = 0;
	for (;;) {
		uint32_t next = n;
		for (uint32_t w = 0; w < n; w++)
			if (s[w].there && (next == n || end_of(&s[w].e) < end_of(&s[next].e)))
				next = w;
		if (next == n || end_of(&s[next].e) > until)
			return;
		c->ambiguous += s[next].e.begin < last && next != last_worker;
		last = end_of(&s[next].e);
		last_worker = next;
		feed(c, &s[next], next);
		advance(&s[next]);
	}
}

static void feed_events(struct mw_control *c)
{
	struct mw_run *run = c->run;
	struct mw_err err = { 0 };
	struct stream *s = mw_alloc_array(run->n_workers, sizeof(*s), "recorded events", &err);
	uint64_t until = UINT64_MAX;
	for (uint32_t w = 0; s && w < run->n_workers; w++) {
		const struct mw_recorder *r = run->worker[w]->recorder;
		mw_recorder_read(&s[w].reader, r);
		s[w].mixes = c->mixes[w];
		if (r->full && r->last_end < until)
			until = r->last_end;
		advance(&s[w]);
	}
	if (s)
		merge(c, s, until);
	mw_free(s);
}

/* Rounds need no record: what is exchanged after which step follows from the knobs. */
static void feed_rounds(struct mw_control *c)
{
	const struct mw_run *run = c->run;
	uint64_t k = c->mixes[0];
	for (uint64_t step = c->step, end = run->worker[0]->step; step < end; step++) {
		const struct mw_knobs *knobs = knobs_at(run, step);
		bool mixed = mw_knobs_next_mix(knobs, step) == step;
		mw_control_round(c, mixed, k, knobs->slack);
		k += mixed;
	}
}

void mw_events_end(struct mw_control *c)
{
	struct mw_run *run = c->run;
	if (!c->products[0])
		return;
	c->running = true;
	c->pending = false;
	for (uint32_t b = 0; b < c->blocks; b++)
		if (run->protocol->clock ==
			MW_CLOCK_EVENT) /* rounds go on where they ended; of events the rest was not recorded */
			mw_products_break(c->products[b]);
	if (c->again) {
		const uint64_t *age;
		uint32_t n = mw_probe_ages(c->probe[0], &age);
		mw_products_follow(c->again, age[0], age[n - 1]);
		mw_products_break(c->again);
	}
	if (run->protocol->clock == MW_CLOCK_ROUND)
		feed_rounds(c);
	else
		feed_events(c);
	c->running = false;
}
