/* segments.c: see segments.h. */
#include "run/segments.h"

#include <math.h>

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

static void begin_segment(struct mw_control *c, uint32_t set, double t, bool exact)
{
	struct mw_segment *g = &c->set[set];
	if (!exact)
		mw_segments_draw(c);
	for (uint32_t b = 0; b < c->blocks; b++) {
		mw_snapshot_columns(c->run, columns_at(c, set, b), c->cols, c->columns);
		mw_probe_begin(c->probe[b], set, c->columns);
		set_pattern(c, set, b);
		g->at[b] = 0;
	}
	g->state = MW_SEGMENT_INJECTING;
	g->origin = t;
	g->last_snapshot = -INFINITY;
	c->injecting = set;
	c->spaced = c->sets > 1 ? t + mw_probe_spacing(c->probe[0]) : 0;
	for (uint32_t i = 0; exact && i < c->run->protocol->rows; i++)
		if (c->injector[i] != MW_NO_ROW) {
			inject_row(c->run, i);
			c->injected[i] = t;
		}
	if (!exact)
		__atomic_store_n(&c->request, c->request + 1, __ATOMIC_RELEASE); /* read by mw_control_asks */
}

void mw_segments_inject(struct mw_worker *w)
{
	struct mw_control *c = w->run->control;
	uint64_t request = __atomic_load_n(&c->request, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < w->run->protocol->rows; i++)
		if (c->injector[i] == w->id) {
			inject_row(w->run, i);
			c->injected[i] =
				(double)(w->run->protocol->clock == MW_CLOCK_ROUND ? w->step
										   : mw_native_steps(w->run));
		}
	__atomic_store_n(&c->done[w->id].request, request, __ATOMIC_RELEASE); /* read by all_injected */
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
	g->state = MW_SEGMENT_OPEN;
	for (uint32_t i = 0; i < c->run->protocol->rows; i++)
		for (uint32_t b = 0; b < c->blocks && c->injector[i] != MW_NO_ROW; b++) {
			mw_probe_injected(c->probe[b], set, i, c->injected[i]);
			g->origin = fmax(g->origin, c->injected[i]);
		}
}

/* Take what is due of block b; true: its last age has passed. */
static bool look_at_block(struct mw_control *c, uint32_t set, uint32_t b, double t, bool exact)
{
	struct mw_segment *g = &c->set[set];
	const uint64_t *age;
	uint32_t n = mw_probe_ages(c->probe[b], &age);
	double passed = t - g->origin;
	bool due = exact ? g->at[b] < n && passed >= (double)age[g->at[b]]
			 : t >= g->last_snapshot + (double)(age[1] - age[0]) / 2;
	if (due) {
		double start = exact ? t : (double)mw_native_steps(c->run);
		mw_snapshot_columns(c->run, columns_at(c, set, b), c->cols, c->columns);
		double end = exact ? t : (double)mw_native_steps(c->run);
		/* while this was read others went on: what is too blurred is no snapshot */
		if (end - start <= (double)(age[1] - age[0]))
			mw_probe_snapshot(c->probe[b], set, (start + end) / 2, c->columns);
		g->at[b]++;
	}
	return passed > (double)age[n - 1] || (exact && g->at[b] >= n);
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
static void keep_origin(struct mw_control *c)
{
	uint64_t segments = mw_probe_segments(c->probe[0]);
	double sum = 0;
	uint32_t n = 0;
	if (!segments) { /* it has begun anew */
		c->n_origins = 0;
		return;
	}
	for (uint32_t i = 0; i < c->run->protocol->rows; i++)
		if (c->injector[i] != MW_NO_ROW) {
			sum += c->injected[i];
			n++;
		}
	if (c->n_origins < MW_CONTROL_ORIGINS)
		c->origins[c->n_origins++] = round(sum / n);
}

static void end_segment(struct mw_control *c, uint32_t set, double t)
{
	struct mw_segment *g = &c->set[set];
	g->state = MW_SEGMENT_NONE;
	g->next = 0;
	c->ended = true;
	for (uint32_t b = 0; b < c->blocks; b++) {
		bool counts = mw_probe_end(c->probe[b], set);
		c->missed |= !counts;
		if (counts && c->again)
			keep_origin(c);
		if (b == 0)
			show(c);
		g->next = fmax(g->next, g->origin + (double)mw_probe_period(c->probe[b]));
	}
	steer(c, t);
}

bool mw_segments_idle(const struct mw_control *c)
{
	for (uint32_t i = 0; i < c->sets; i++)
		if (c->set[i].state != MW_SEGMENT_NONE)
			return false;
	return true;
}

double mw_segments_begin(const struct mw_control *c)
{
	double first = INFINITY;
	for (uint32_t i = 0; i < c->sets; i++)
		if (c->set[i].state == MW_SEGMENT_NONE)
			first = fmin(first, c->set[i].next);
	return fmax(first, c->spaced);
}

static bool may_begin(const struct mw_control *c, uint32_t set, double t)
{
	if (c->unpaid || t < c->set[set].next || t < c->spaced ||
		c->set[c->injecting].state == MW_SEGMENT_INJECTING)
		return false;
	return !c->run->steer || !mw_steer_pending(c->run->steer);
}

static void look_at_set(struct mw_control *c, uint32_t set, double t, bool exact)
{
	struct mw_segment *g = &c->set[set];
	if (g->state == MW_SEGMENT_NONE && may_begin(c, set, t))
		begin_segment(c, set, t, exact);
	if (g->state == MW_SEGMENT_INJECTING && (exact || all_injected(c)))
		open_segment(c, set);
	if (g->state == MW_SEGMENT_NONE)
		return;
	uint32_t over = 0;
	for (uint32_t b = 0; b < c->blocks; b++)
		over += look_at_block(c, set, b, t, exact);
	if (t >= g->last_snapshot)
		g->last_snapshot = t;
	if (over == c->blocks && g->state == MW_SEGMENT_OPEN)
		end_segment(c, set, t);
}

void mw_segments_look(struct mw_control *c, double t, bool exact)
{
	c->ended = c->missed = false;
	for (uint32_t set = 0; set < c->sets; set++)
		look_at_set(c, set, t, exact);
}
