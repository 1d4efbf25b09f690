/* segments.c: see segments.h. */
#include "run/segments.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "comm/access.h"
#include "run/snapshot.h"
#include "run/worker.h"

enum { STREAM_INJECTOR = 0x1a7e0000 };

/*
 * Segments of one set in a full estimate (--target-tmix). What one set sees of node replicas (or of two workers) is but the time to
 * the next exchange, and over 128 of those their t_mix scatters by 8 %; with all sets windows scatter by 1 to 3 %.
 */
enum { WINDOW_FIXED = 32, WINDOW_RANDOM = 128 };

void mw_segments_draw(struct mw_control *c)
{
	const struct mw_run *run = c->run;
	const struct mw_protocol *p = run->protocol;
	uint32_t n = run->n_workers, first = (uint32_t)(mw_hash3(run->seed, STREAM_INJECTOR, c->request) % n);
	for (uint32_t i = 0; i < p->rows; i++)
		c->injector[i] = MW_NO_ROW;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t w = (first + k) % n;
		c->injector[p->push_row[w]] = w;
		/* a period of several steps is entered anywhere as it is */
		c->late[w] = p->clock == MW_CLOCK_EVENT && run->knobs.mix_every == 1 &&
			     mw_hash3(run->seed, STREAM_INJECTOR + 1 + w, c->request) >> 63;
	}
}

/* --- a segment ----------------------------------------------------------------------------------------------------- */

/* Where the columns of a set and block begin in a row. */
static size_t columns_at(const struct mw_control *c, uint32_t set, uint32_t b)
{
	return c->run->replicas.extra_at + (size_t)b * c->run->probe_columns + (size_t)set * c->cols;
}

static void inject_row(struct mw_run *run, uint32_t row)
{
	const struct mw_control *c = run->control;
	for (uint32_t b = 0; b < c->blocks; b++)
		mw_access_add(&run->replicas, row, columns_at(c, c->injecting, b), c->cols, 1,
			c->pattern + ((size_t)row * c->blocks + b) * c->cols);
}

static void set_pattern(struct mw_control *c, uint32_t set, uint32_t b)
{
	for (uint32_t i = 0; i < c->run->protocol->rows; i++) {
		const float *from = mw_probe_pattern(c->probe[b], set, i);
		float *to = c->pattern + ((size_t)i * c->blocks + b) * c->cols;
		for (uint32_t k = 0; k < c->cols; k++)
			to[k] = from ? from[k] : 0;
	}
}

/* Until the next look of the sampler is of use, in largest ages from a beginning: see mw_segments_wait. */
#define NEXT 1.67

static void begin_segment(struct mw_control *c, uint32_t set, double t)
{
	struct mw_segment *g = &c->set[set];
	g->ages = 0;
	g->spacing = INFINITY;
	for (uint32_t b = 0; b < c->blocks; b++) {
		const uint64_t *age;
		uint32_t n = mw_probe_ages(c->probe[b], &age);
		mw_snapshot_columns(c->run, columns_at(c, set, b), c->cols, c->columns);
		mw_probe_begin(c->probe[b], set, c->columns);
		set_pattern(c, set, b);
		g->at[b] = 0;
		g->ages = fmax(g->ages, (double)age[n - 1]);
		/* ages of a fixed order are not interpolated */
		g->spacing = fmin(g->spacing, (double)(age[1] - age[0]) / (c->fixed ? 2 : 1));
	}
	g->state = MW_SEGMENT_INJECTING;
	g->origin = t;
	g->last_snapshot = -INFINITY;
	g->next = t + (c->sets > 1 ? 1 : NEXT) * g->ages;
	c->injecting = set;
	c->spaced = c->sets > 1 ? t + mw_probe_spacing(c->probe[0]) : 0;
	c->used++;
	__atomic_store_n(&c->under_way, c->under_way + 1, __ATOMIC_RELAXED);
}

static bool all_injected(const struct mw_control *c)
{
	/* all workers, also those that had nothing to inject: they have read what the next request changes */
	for (uint32_t w = 0; w < c->run->n_workers; w++)
		if (__atomic_load_n(&c->done[w].request, __ATOMIC_ACQUIRE) != c->request)
			return false;
	return true;
}

static void open_segment(struct mw_control *c, uint32_t set)
{
	struct mw_segment *g = &c->set[set];
	double sum = 0;
	uint32_t n = 0;
	g->state = MW_SEGMENT_OPEN;
	for (uint32_t i = 0; i < c->run->protocol->rows; i++) {
		if (c->injector[i] == MW_NO_ROW)
			continue;
		for (uint32_t b = 0; b < c->blocks; b++)
			mw_probe_injected(c->probe[b], set, i, c->injected[i]);
		g->origin = fmax(g->origin, c->injected[i]);
		sum += c->injected[i];
		n++;
	}
	g->middle = sum / n;
}

static void close_segment(struct mw_control *c, uint32_t set)
{
	c->set[set].state = MW_SEGMENT_ENDED;
	__atomic_store_n(&c->under_way, c->under_way - 1, __ATOMIC_RELAXED);
}

/* --- what comes of it ---------------------------------------------------------------------------------------------- */

/* Every so many segments, where it is cheap. */
static void show(struct mw_control *c)
{
	struct mw_estimate e;
	if (mw_probe_segments(c->probe[0]) % 16 || c->run->protocol->rows > 64)
		return;
	mw_probe_estimate(c->probe[0], &e);
	if (e.identified)
		mw_st(&c->live, (float)e.value);
}

/*
 * A window is over when one set alone would have had its segments. Where the sampler's share of time is too small for all sets
 * to be at work, as many segments as one set has in a window are enough.
 */
static bool window_over(const struct mw_control *c, uint32_t b, double t)
{
	uint64_t segments = mw_probe_segments(c->probe[b]), least = c->fixed ? WINDOW_FIXED : WINDOW_RANDOM;
	double longest = (double)least *
			 (mw_probe_spacing(c->probe[b]) * c->sets + mw_steer_target(c->run->steer) / 2);
	return segments >= least && (segments >= least * c->sets || t - c->window_begin >= longest);
}

/* The slowest block's value; false: not all of them have one. */
static bool all_blocks(struct mw_control *c, double t, struct mw_estimate *worst)
{
	for (uint32_t b = 0; b < c->blocks; b++) {
		struct mw_estimate e;
		if (!window_over(c, b, t))
			return false;
		mw_probe_estimate(c->probe[b], &e);
		if (!e.identified)
			return false;
		if (!b || e.value > worst->value)
			*worst = e;
	}
	return true;
}

/* --target-tmix: a full estimate moves the actuator, and the next one begins. */
static void steer(struct mw_control *c, double t)
{
	struct mw_steer *s = c->run->steer;
	struct mw_estimate e = { 0 };
	if (!s || !all_blocks(c, t, &e))
		return;
	mw_steer_window(s, e.value, e.error, mw_native_steps(c->run));
	c->window_begin = t;
	mw_st(&c->live, (float)e.value);
	for (uint32_t b = 0; b < c->blocks; b++) {
		if (c->products[b])
			mw_products_restart(c->products[b]);
		mw_probe_aim(c->probe[b], mw_steer_target(s));
	}
	if (c->passive)
		mw_passive_restart(c->passive);
	c->passive_next = c->passive_n = c->passive_late = 0;
	c->n_origins = 0;
}

/* Of the segments that the probe counts. */
static void keep_origin(struct mw_control *c, uint32_t set)
{
	if (!mw_probe_segments(c->probe[0])) /* it has begun anew */
		c->n_origins = 0;
	else if (c->n_origins < MW_CONTROL_ORIGINS)
		c->origins[c->n_origins++] = round(c->set[set].middle);
}

/* Take apart the one that was closed. */
static void end_segment(struct mw_control *c, uint32_t set, double t)
{
	struct mw_segment *g = &c->set[set];
	g->state = MW_SEGMENT_NONE;
	g->next = 0;
	c->used--;
	c->ended++;
	for (uint32_t b = 0; b < c->blocks; b++) {
		bool counts = mw_probe_end(c->probe[b], set);
		c->missed += b == 0 && !counts;
		if (counts && c->again)
			keep_origin(c, set);
		if (b == 0)
			show(c);
		g->next = fmax(g->next, g->origin + (double)mw_probe_period(c->probe[b]));
	}
	steer(c, t);
}

static bool may_begin(const struct mw_control *c, uint32_t set, double t)
{
	const struct mw_segment *g = &c->set[set];
	if (g->state != MW_SEGMENT_NONE || t < g->next || t < c->spaced ||
		c->set[c->injecting].state == MW_SEGMENT_INJECTING)
		return false;
	return !c->run->steer || !mw_steer_pending(c->run->steer);
}

/* --- sim ----------------------------------------------------------------------------------------------------------- */

static void inject_all(struct mw_control *c, uint32_t set, double t)
{
	for (uint32_t i = 0; i < c->run->protocol->rows; i++)
		if (c->injector[i] != MW_NO_ROW) {
			inject_row(c->run, i);
			c->injected[i] = t;
		}
	open_segment(c, set);
}

/* Take what is due of block b; true: its last age has passed. */
static bool look_at_block(struct mw_control *c, uint32_t set, uint32_t b, double t)
{
	struct mw_segment *g = &c->set[set];
	const uint64_t *age;
	uint32_t n = mw_probe_ages(c->probe[b], &age);
	double passed = t - g->origin;
	if (g->at[b] < n && passed >= (double)age[g->at[b]]) {
		mw_snapshot_columns(c->run, columns_at(c, set, b), c->cols, c->columns);
		mw_probe_snapshot(c->probe[b], set, t, c->columns);
		g->at[b]++;
	}
	return passed > (double)age[n - 1] || g->at[b] >= n;
}

static void look_at_set(struct mw_control *c, uint32_t set, double t)
{
	if (may_begin(c, set, t)) {
		begin_segment(c, set, t);
		inject_all(c, set, t);
	}
	if (c->set[set].state == MW_SEGMENT_NONE)
		return;
	uint32_t over = 0;
	for (uint32_t b = 0; b < c->blocks; b++)
		over += look_at_block(c, set, b, t);
	if (over == c->blocks) {
		close_segment(c, set);
		end_segment(c, set, t);
	}
}

void mw_segments_step(struct mw_control *c, double t)
{
	for (uint32_t set = 0; set < c->sets; set++)
		look_at_set(c, set, t);
}

/* --- threads: the sampler ------------------------------------------------------------------------------------------ */

static bool try_to_look(struct mw_control *c)
{
	/* who only waits does not take the line away; acquire: stop_looking of the one before */
	return !__atomic_load_n(&c->looking, __ATOMIC_RELAXED) &&
	       !__atomic_exchange_n(&c->looking, 1, __ATOMIC_ACQUIRE);
}

static void stop_looking(struct mw_control *c)
{
	__atomic_store_n(&c->looking, 0, __ATOMIC_RELEASE); /* try_to_look */
}

/* The sampler waits asleep: the worker that is looking may have lost its CPU to it. */
static void wait_to_look(struct mw_control *c)
{
	const struct timespec moment = { .tv_nsec = 20000 };
	while (!try_to_look(c))
		nanosleep(&moment, NULL);
}

bool mw_segments_full(const struct mw_control *c)
{
	return c->used == c->sets;
}

static bool begin_any(struct mw_control *c, double t)
{
	for (uint32_t set = 0; set < c->sets; set++)
		if (may_begin(c, set, t)) {
			mw_segments_draw(c);
			begin_segment(c, set, t);
			return true;
		}
	return false;
}

bool mw_segments_begin(struct mw_control *c, double t)
{
	wait_to_look(c);
	bool begun = begin_any(c, t);
	if (begun)
		__atomic_store_n(&c->request, c->request + 1, __ATOMIC_RELEASE); /* read by mw_control_asks */
	stop_looking(c);
	return begun;
}

uint32_t mw_segments_end(struct mw_control *c)
{
	uint32_t n = 0;
	wait_to_look(c);
	for (uint32_t set = 0; set < c->sets; set++)
		if (c->set[set].state == MW_SEGMENT_ENDED) {
			end_segment(c, set, (double)mw_native_steps(c->run));
			n++;
		}
	stop_looking(c);
	return n;
}

/*
 * From the beginning of one to that of the next there are about NEXT largest ages, as mw_probe_period asks of a random order, and
 * it is ended then as well, in one waking. With several sets there are wakings in between, and each ends those that are over.
 * At least a part of that time lies between two looks: an injection, or the actuator, may take a while.
 */
double mw_segments_wait(const struct mw_control *c, double t)
{
	double first = INFINITY, least = mw_probe_spacing(c->probe[0]) / (c->sets > 1 ? 4 : 20);
	for (uint32_t set = 0; set < c->sets; set++)
		first = fmin(first, c->set[set].next);
	return fmax(fmax(first, c->spaced) - t, least);
}

double mw_segments_workers_s(const struct mw_control *c)
{
	uint64_t ticks = 0;
	for (uint32_t w = 0; c->cols && w < c->run->n_workers; w++)
		ticks += __atomic_load_n(&c->done[w].ticks, __ATOMIC_RELAXED);
	return (double)ticks / mw_ticks_per_s();
}

/* --- threads: the workers ------------------------------------------------------------------------------------------ */

/* A worker that loses its CPU while it looks has not spent that time: no look counts more than so many usual ones. */
enum { UNUSUAL = 8, REMEMBERED = 16 };

/* What the worker has spent since then. */
static void charge(struct mw_done *d, uint64_t since)
{
	uint64_t took = mw_ticks() - since, most = UNUSUAL * d->usual;
	if (d->usual && took > most)
		took = most;
	d->usual = d->usual ? (d->usual * (REMEMBERED - 1) + took) / REMEMBERED + 1 : took;
	__atomic_store_n(&d->ticks, d->ticks + took, __ATOMIC_RELAXED);
}

void mw_segments_inject(struct mw_worker *w)
{
	struct mw_control *c = w->run->control;
	struct mw_done *d = &c->done[w->id];
	bool round = w->run->protocol->clock == MW_CLOCK_ROUND;
	uint64_t begin = mw_ticks(), request = __atomic_load_n(&c->request, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < w->run->protocol->rows; i++)
		if (c->injector[i] == w->id) {
			inject_row(w->run, i);
			c->injected[i] = (double)(round ? w->step : mw_native_steps(w->run));
		}
	/* rounds: between two of its own steps the first worker sees all rows as they are between two rounds */
	d->look = round && w->id ? UINT64_MAX : w->step;
	charge(d, begin);
	__atomic_store_n(&d->request, request, __ATOMIC_RELEASE); /* read by all_injected */
}

static void take_snapshots(struct mw_control *c, uint32_t set)
{
	for (uint32_t b = 0; b < c->blocks; b++) {
		const uint64_t *age;
		mw_probe_ages(c->probe[b], &age);
		double start = (double)mw_native_steps(c->run);
		mw_snapshot_columns(c->run, columns_at(c, set, b), c->cols, c->columns);
		double end = (double)mw_native_steps(c->run);
		/* while this was read others went on: what is too blurred is no snapshot */
		if (end - start <= (double)(age[1] - age[0]))
			mw_probe_snapshot(c->probe[b], set, (start + end) / 2, c->columns);
	}
}

/* The native step at which the set's next snapshot is due; INFINITY: it needs none. */
static double watch_set(struct mw_control *c, uint32_t set, double t)
{
	struct mw_segment *g = &c->set[set];
	if (g->state == MW_SEGMENT_INJECTING && all_injected(c))
		open_segment(c, set);
	if (g->state != MW_SEGMENT_INJECTING && g->state != MW_SEGMENT_OPEN)
		return INFINITY;
	bool over = g->state == MW_SEGMENT_OPEN && t > g->origin + g->ages;
	if (over || t >= g->last_snapshot + g->spacing) {
		take_snapshots(c, set);
		g->last_snapshot = t;
	}
	if (over)
		close_segment(c, set);
	return over ? INFINITY : g->last_snapshot + g->spacing;
}

/* Own steps until a snapshot is due, if the others are as fast; UINT64_MAX: no segment is under way. */
static uint64_t watch(struct mw_control *c)
{
	double t = (double)mw_native_steps(c->run), due = INFINITY;
	for (uint32_t set = 0; set < c->sets; set++)
		due = fmin(due, watch_set(c, set, t));
	if (due == INFINITY)
		return UINT64_MAX;
	double steps = (due - t) / (c->run->protocol->clock == MW_CLOCK_ROUND ? 1 : c->run->n_workers);
	return steps > 1 ? (uint64_t)steps : 1;
}

void mw_segments_watch(struct mw_worker *w)
{
	struct mw_control *c = w->run->control;
	struct mw_done *d = &c->done[w->id];
	uint64_t begin = mw_ticks();
	if (!__atomic_load_n(&c->under_way, __ATOMIC_RELAXED)) {
		d->wait = UINT64_MAX;
	} else if (try_to_look(c)) {
		d->wait = watch(c);
		stop_looking(c);
	} else if (d->wait == UINT64_MAX ||
		   !d->wait) { /* else in as long again: what is due is being seen to */
		d->wait = 1;
	}
	d->look = d->wait == UINT64_MAX ? UINT64_MAX : w->step + d->wait;
	charge(d, begin);
}
