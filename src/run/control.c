/* control.c: see control.h. */
#include "run/control.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "comm/access.h"
#include "run/events.h"
#include "run/record.h"
#include "run/snapshot.h"
#include "run/tmix_of_run.h"
#include "run/windows.h"
#include "run/worker.h"

/* Operations that a first idea of t_mix may cost at the start of a run. */
#define GUESS_WORK 2e8

enum { STREAM_INJECTOR = 0x1a7e0000 };

/*
 * Segments of a full estimate (--target-tmix). Over 128 of a random order windows scatter by 3 % (cached, async-ring, 8 workers in
 * sim). Node replicas' own t_mix moves more slowly than that, and a mean over windows is what holds there.
 */
enum { WINDOW_FIXED = 32, WINDOW_RANDOM = 128 };

static bool wants(const struct mw_run *run, enum mw_estimate_choice what)
{
	return run->opt->estimate == (int)what || run->opt->estimate == MW_ESTIMATE_ALL;
}

static bool exchanges(const struct mw_run *run)
{
	return run->protocol->n_slots > 0;
}

bool mw_control_records(const struct mw_run *run)
{
	return wants(run, MW_ESTIMATE_TRACE) && !run->exclusive && run->protocol->clock == MW_CLOCK_EVENT &&
	       exchanges(run) && run->protocol->rows <= MW_PRODUCTS_ROWS_MAX;
}

static uint32_t estimated_blocks(const struct mw_run *run)
{
	return run->n_blocks < MW_CONTROL_BLOCKS ? run->n_blocks : MW_CONTROL_BLOCKS;
}

/* Share of a block's parameters that probe columns may be unless asked for: what is exchanged grows by as much. */
#define COLUMNS_SHARE 0.01

/* Sim pays nothing that is measured; a block too small even for signs is small enough for anything. */
uint32_t mw_control_one_hot_max(const struct mw_run *run)
{
	double room = COLUMNS_SHARE * (double)run->model->dim / run->n_blocks;
	if (run->opt->probe_columns == MW_PROBE_SIGNS)
		return 0;
	if (run->opt->probe_columns == MW_PROBE_ONE_HOT || run->exclusive || room < MW_PROBE_COLUMNS ||
		room >= MW_PROBE_ONE_HOT_MAX)
		return MW_PROBE_ONE_HOT_MAX;
	return (uint32_t)room;
}

uint32_t mw_control_columns(const struct mw_run *run)
{
	if (!wants(run, MW_ESTIMATE_PROBE) || !exchanges(run))
		return 0;
	return estimated_blocks(run) * mw_probe_columns(run->protocol, mw_control_one_hot_max(run));
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

/* Is the order of events the same whatever the seed? */
static bool fixed_order(const struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	bool random_blocks = run->n_blocks > 1 && run->opt->mix_blocks == MW_BLOCKS_RANDOM, choice = false;
	for (uint32_t s = 0; s < p->n_slots; s++)
		choice |= p->slot[s].n > 1 && p->pick == MW_PICK_RANDOM;
	/* under --target-tmix knobs change between estimate windows only */
	return !random_blocks && !choice && !run->replay && (!run->timeline || run->steer) &&
	       (p->clock == MW_CLOCK_ROUND || run->activation == MW_ACT_RR);
}

static double guess(struct mw_run *run)
{
	struct mw_mixing_result r = { 0 };
	struct mw_err err = { 0 };
	if (run->steer)
		return mw_steer_target(run->steer);
	if (mw_tmix_exact(run, GUESS_WORK, &r, &err) == 0 && r.mixes && isfinite(r.t_mix))
		return r.t_mix;
	return 4.0 * run->n_workers * (double)run->knobs.mix_every;
}

static void draw_injectors(struct mw_control *c)
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

static int make_probes(struct mw_control *c, double t, struct mw_err *err)
{
	struct mw_run *run = c->run;
	const struct mw_protocol *p = run->protocol;
	c->cols = run->probe_columns;
	c->columns = mw_alloc_array((size_t)p->rows * c->cols, sizeof(float), "probe columns", err);
	c->pattern =
		mw_alloc_array((size_t)p->rows * c->cols * c->blocks, sizeof(float), "probe columns", err);
	c->injector = mw_alloc_array(p->rows, sizeof(*c->injector), "probe columns", err);
	c->injected = mw_alloc_array(p->rows, sizeof(*c->injected), "probe columns", err);
	c->late = mw_alloc_array(run->n_workers, 1, "probe columns", err);
	c->done = mw_alloc_array(run->n_workers, sizeof(*c->done), "probe columns", err);
	if (!c->columns || !c->pattern || !c->injector || !c->injected || !c->late || !c->done)
		return err->code;
	draw_injectors(c);
	for (uint32_t b = 0; b < c->blocks; b++) {
		MW_TRY(mw_probe_new(
			p, c->fixed, mw_control_one_hot_max(run), t, run->seed + b, &c->probe[b], err));
		if (run->steer) /* t is the target, and the actuator has been set for it */
			mw_probe_aim(c->probe[b], t);
	}
	return 0;
}

/* Native steps after which a fixed order of exchanges begins again. */
static uint64_t period_of(const struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	uint64_t every = (uint64_t)run->knobs.mix_every * run->n_blocks, choices = 1;
	for (uint32_t s = 0; s < p->n_slots; s++)
		choices = p->slot[s].n > choices ? p->slot[s].n : choices;
	return every * choices * (p->clock == MW_CLOCK_ROUND ? 1 : run->n_workers);
}

/* About a quarter of t_mix; whole periods of a fixed order, if they are not much longer, so that one matrix fits. */
static uint64_t passive_stride(const struct mw_control *c, double t)
{
	uint64_t stride = t > 4 ? (uint64_t)(t / 4) : 1, period = period_of(c->run);
	if (!c->fixed || (double)period > 2 * t)
		return stride;
	return stride < period ? period : stride / period * period;
}

static int make_passive(struct mw_control *c, double t, struct mw_err *err)
{
	struct mw_run *run = c->run;
	size_t dim = run->model->dim /
		     run->n_blocks; /* blocks are exchanged at different times: the first one is seen */
	bool round = run->protocol->clock == MW_CLOCK_ROUND;
	if (run->protocol->rows > MW_PASSIVE_ROWS_MAX || run->protocol->signed_plan || !dim)
		return 0;
	c->coords = dim < MW_PASSIVE_COORDINATES ? (uint32_t)dim : MW_PASSIVE_COORDINATES;
	c->coordinates =
		mw_alloc_array((size_t)run->protocol->rows * c->coords, sizeof(float), "snapshots", err);
	if (!c->coordinates)
		return err->code;
	return mw_passive_new(run->protocol->rows, run->protocol->pi, c->coords, passive_stride(c, t),
		run->steps_per_epoch * (round ? 1 : run->n_workers), &c->passive, err);
}

static int make_again(struct mw_control *c, struct mw_err *err)
{
	c->origins = mw_alloc_array(MW_CONTROL_ORIGINS, sizeof(*c->origins), "the controller", err);
	if (!c->origins)
		return err->code;
	return mw_products_new(c->run->protocol, c->fixed, c->run->seed, &c->again, err);
}

static int make(struct mw_control *c, struct mw_err *err)
{
	struct mw_run *run = c->run;
	c->fixed = fixed_order(run);
	c->blocks = estimated_blocks(run);
	c->mixes = mw_alloc_array(run->n_workers, sizeof(*c->mixes), "the controller", err);
	if (!c->mixes)
		return err->code;
	if (run->timeline && !run->steer) {
		c->counted = mw_alloc_array(MW_HIST_BUCKETS, sizeof(*c->counted), "the controller", err);
		if (!c->counted)
			return err->code;
		MW_TRY(mw_windows_new(&c->windows, err));
	}
	if (!exchanges(run))
		return 0;
	double t = run->opt->estimate == MW_ESTIMATE_TRACE ? NAN : guess(run);
	for (uint32_t b = 0;
		wants(run, MW_ESTIMATE_TRACE) && run->protocol->rows <= MW_PRODUCTS_ROWS_MAX && b < c->blocks;
		b++)
		MW_TRY(mw_products_new(run->protocol, c->fixed, run->seed + b, &c->products[b], err));
	if (run->probe_columns)
		MW_TRY(make_probes(c, t, err));
	if (wants(run, MW_ESTIMATE_PASSIVE))
		MW_TRY(make_passive(c, t, err));
	if (mw_control_records(run) && run->probe_columns && c->blocks == 1)
		MW_TRY(make_again(c, err));
	return 0;
}

int mw_control_new(struct mw_run *run, struct mw_err *err)
{
	if (run->opt->estimate == MW_ESTIMATE_NONE)
		return 0;
	run->control = mw_alloc(sizeof(*run->control), "the controller", err);
	if (!run->control)
		return err->code;
	run->control->run = run;
	return make(run->control, err);
}

void mw_control_free(struct mw_control *c)
{
	if (!c)
		return;
	mw_sampler_stop(c);
	json_decref(c->latest);
	json_decref(c->shown);
	json_decref(c->stretch);
	for (uint32_t b = 0; b < MW_CONTROL_BLOCKS; b++) {
		mw_products_free(c->products[b]);
		mw_probe_free(c->probe[b]);
	}
	mw_products_free(c->again);
	mw_passive_free(c->passive);
	mw_free(c->origins);
	mw_free(c->columns);
	mw_free(c->pattern);
	mw_free(c->injector);
	mw_free(c->injected);
	mw_free(c->late);
	mw_free(c->done);
	mw_free(c->coordinates);
	mw_free(c->mixes);
	mw_free(c->counted);
	mw_windows_free(c->windows);
	mw_free(c);
}

int mw_control_begin(struct mw_run *run, struct mw_err *err)
{
	struct mw_control *c = run->control;
	if (!c)
		return 0;
	c->running = true;
	if (run->exclusive)
		return 0;
	mw_events_begin(c);
	return c->cols || c->passive ? mw_sampler_start(c, err) : 0;
}

void mw_control_end(struct mw_run *run)
{
	struct mw_control *c = run->control;
	if (!c)
		return;
	c->running = false;
	if (run->exclusive)
		return;
	mw_sampler_stop(c);
	mw_events_end(c);
}

/* --- what happens (sim, and recorded events) ----------------------------------------------------------------------- */

static void step_again(struct mw_control *c)
{
	mw_products_step(c->again);
	while (c->next_origin < c->n_origins && c->origins[c->next_origin] <= (double)(c->first + c->step)) {
		mw_products_start(c->again);
		c->next_origin++;
	}
}

static void native_step(struct mw_control *c)
{
	c->step++;
	for (uint32_t b = 0; b < c->blocks; b++)
		if (c->products[b])
			mw_products_step(c->products[b]);
	if (c->again)
		step_again(c);
	if (c->run->exclusive)
		mw_control_look(c, (double)c->step, true);
}

/* A step is a push and the exchange after it, so it ends when the next push comes; before: an exchange and a push. */
void mw_control_push(struct mw_control *c)
{
	if (!c->running || c->run->protocol->clock == MW_CLOCK_ROUND)
		return;
	if (c->pending || c->run->opt->mix_order == MW_MIX_BEFORE)
		native_step(c);
	c->pending = c->run->opt->mix_order == MW_MIX_AFTER;
}

void mw_control_mix(struct mw_control *c, uint32_t slot, uint32_t choice, uint32_t block, double gamma)
{
	if (block < c->blocks && c->products[block])
		mw_products_mix(c->products[block], c->run->protocol->slot[slot].plan[choice], gamma);
	if (c->again)
		mw_products_mix(c->again, c->run->protocol->slot[slot].plan[choice], gamma);
}

void mw_control_round(struct mw_control *c, bool mixed, uint64_t k, double gamma)
{
	if (!c->running)
		return;
	if (mixed)
		mw_control_mix(c, 0, mw_mix_choice(c->run, 0, k), mw_mix_block(c->run, 0, k), gamma);
	native_step(c);
}

/* --- probe segments ------------------------------------------------------------------------------------------------ */

static void inject_row(struct mw_run *run, uint32_t row)
{
	const struct mw_control *c = run->control;
	size_t floats = (size_t)c->blocks * c->cols;
	mw_access_add(&run->replicas, row, run->replicas.extra_at, floats, 1, c->pattern + row * floats);
}

static void set_pattern(struct mw_control *c, uint32_t b)
{
	for (uint32_t i = 0; i < c->run->protocol->rows; i++) {
		const float *from = mw_probe_pattern(c->probe[b], i);
		float *to = c->pattern + ((size_t)i * c->blocks + b) * c->cols;
		for (uint32_t k = 0; k < c->cols; k++)
			to[k] = from ? from[k] : 0;
	}
}

static void begin_segment(struct mw_control *c, double t, bool exact)
{
	if (!exact)
		draw_injectors(c);
	for (uint32_t b = 0; b < c->blocks; b++) {
		mw_snapshot_columns(c->run, b, c->columns);
		mw_probe_begin(c->probe[b], c->columns);
		set_pattern(c, b);
		c->at[b] = 0;
	}
	c->state = MW_SEGMENT_INJECTING;
	c->origin = t;
	c->last_snapshot = -INFINITY;
	for (uint32_t i = 0; exact && i < c->run->protocol->rows; i++)
		if (c->injector[i] != MW_NO_ROW) {
			inject_row(c->run, i);
			c->injected[i] = t;
		}
	if (!exact)
		__atomic_store_n(&c->request, c->request + 1, __ATOMIC_RELEASE); /* read by mw_control_asks */
}

void mw_control_inject(struct mw_worker *w)
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

static void open_segment(struct mw_control *c)
{
	c->state = MW_SEGMENT_OPEN;
	for (uint32_t i = 0; i < c->run->protocol->rows; i++)
		for (uint32_t b = 0; b < c->blocks && c->injector[i] != MW_NO_ROW; b++) {
			mw_probe_injected(c->probe[b], i, c->injected[i]);
			c->origin = fmax(c->origin, c->injected[i]);
		}
}

/* Take what is due of block b; true: its last age has passed. */
static bool look_at_block(struct mw_control *c, uint32_t b, double t, bool exact)
{
	const uint64_t *age;
	uint32_t n = mw_probe_ages(c->probe[b], &age);
	double passed = t - c->origin;
	bool due = exact ? c->at[b] < n && passed >= (double)age[c->at[b]]
			 : t >= c->last_snapshot + (double)(age[1] - age[0]) / 2;
	if (due) {
		double start = exact ? t : (double)mw_native_steps(c->run);
		mw_snapshot_columns(c->run, b, c->columns);
		double end = exact ? t : (double)mw_native_steps(c->run);
		/* while this was read others went on: what is too blurred is no snapshot */
		if (end - start <= (double)(age[1] - age[0]))
			mw_probe_snapshot(c->probe[b], (start + end) / 2, c->columns);
		c->at[b]++;
	}
	return passed > (double)age[n - 1] || (exact && c->at[b] == n);
}

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

/* The slowest block's value; false: not all of them have one. */
static bool all_blocks(struct mw_control *c, struct mw_estimate *worst)
{
	for (uint32_t b = 0; b < c->blocks; b++) {
		struct mw_estimate e;
		if (mw_probe_segments(c->probe[b]) < (c->fixed ? WINDOW_FIXED : WINDOW_RANDOM))
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
static void steer(struct mw_control *c)
{
	struct mw_steer *s = c->run->steer;
	struct mw_estimate e = { 0 };
	if (!s || !all_blocks(c, &e))
		return;
	mw_steer_window(s, e.value, e.error, mw_native_steps(c->run));
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

static void end_segment(struct mw_control *c)
{
	c->state = MW_SEGMENT_NONE;
	c->next = 0;
	c->missed = false;
	for (uint32_t b = 0; b < c->blocks; b++) {
		bool counts = mw_probe_end(c->probe[b]);
		c->missed |= !counts;
		if (counts && c->again)
			keep_origin(c);
		if (b == 0)
			show(c);
		c->next = fmax(c->next, c->origin + (double)mw_probe_period(c->probe[b]));
	}
	steer(c);
}

static void look_at_probes(struct mw_control *c, double t, bool exact)
{
	if (c->state == MW_SEGMENT_NONE && t >= c->next &&
		!(c->run->steer && mw_steer_pending(c->run->steer)))
		begin_segment(c, t, exact);
	if (c->state == MW_SEGMENT_INJECTING && (exact || all_injected(c)))
		open_segment(c);
	if (c->state == MW_SEGMENT_NONE)
		return;
	uint32_t ended = 0;
	for (uint32_t b = 0; b < c->blocks; b++)
		ended += look_at_block(c, b, t, exact);
	if (t >= c->last_snapshot)
		c->last_snapshot = t;
	if (ended == c->blocks && c->state == MW_SEGMENT_OPEN)
		end_segment(c);
}

static void look_at_parameters(struct mw_control *c, double t)
{
	uint64_t stride = mw_passive_stride(c->passive), now = (uint64_t)t;
	if (now < c->passive_next)
		return;
	c->passive_late += c->passive_next && now > c->passive_next + stride / 4;
	mw_snapshot_parameters(c->run, c->coords, c->coordinates);
	mw_passive_add(c->passive, c->coordinates);
	c->passive_first = c->passive_n++ ? c->passive_first : now;
	c->passive_last = now;
	c->passive_next = now + stride;
}

void mw_control_look(struct mw_control *c, double t, bool exact)
{
	if (c->cols)
		look_at_probes(c, t, exact);
	if (c->passive)
		look_at_parameters(c, t);
}
