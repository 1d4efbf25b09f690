/* control.c: see control.h. */
#include "run/control.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/access.h"
#include "run/events.h"
#include "run/record.h"
#include "run/segments.h"
#include "run/snapshot.h"
#include "run/tmix_of_run.h"
#include "run/windows.h"
#include "run/worker.h"

/* Operations that a first idea of t_mix may cost at the start of a run. */
#define GUESS_WORK 2e8

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
static uint32_t column_room(const struct mw_run *run)
{
	double room = COLUMNS_SHARE * (double)run->model->dim / run->n_blocks;
	return run->exclusive || room < MW_PROBE_COLUMNS || room >= MW_PROBE_ONE_HOT_MAX
		       ? MW_PROBE_ONE_HOT_MAX
		       : (uint32_t)room;
}

/* Pushed replicas up to which the columns are one-hot (see probe.h). */
static uint32_t one_hot_max(const struct mw_run *run)
{
	if (run->opt->probe_columns == MW_PROBE_SIGNS)
		return 0;
	return run->opt->probe_columns == MW_PROBE_ONE_HOT ? MW_PROBE_ONE_HOT_MAX : column_room(run);
}

/* Columns of all sets together: more of them would show little more. */
enum { SETS_COLUMNS = 32 };

/* Sets of columns: one, more under --target-tmix if they are cheap. */
static uint32_t sets_of(const struct mw_run *run)
{
	uint32_t most = one_hot_max(run), cols = mw_probe_columns(run->protocol, most),
		 room = column_room(run);
	if (!(run->opt->target_tmix > 0) ||
		cols > most) /* signs: one start at a time, seen with few columns */
		return 1;
	uint32_t sets = (room < SETS_COLUMNS ? room : SETS_COLUMNS) / cols;
	return sets < 1 ? 1 : sets > MW_CONTROL_SETS ? MW_CONTROL_SETS : sets;
}

uint32_t mw_control_block_columns(const struct mw_run *run)
{
	return sets_of(run) * mw_probe_columns(run->protocol, one_hot_max(run));
}

uint32_t mw_control_columns(const struct mw_run *run)
{
	if (!wants(run, MW_ESTIMATE_PROBE) || !exchanges(run))
		return 0;
	return estimated_blocks(run) * mw_control_block_columns(run);
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

static int make_probes(struct mw_control *c, double t, struct mw_err *err)
{
	struct mw_run *run = c->run;
	const struct mw_protocol *p = run->protocol;
	c->sets = sets_of(run);
	c->cols = run->probe_columns / c->sets;
	c->columns = mw_alloc_array((size_t)p->rows * c->cols, sizeof(float), "probe columns", err);
	c->pattern =
		mw_alloc_array((size_t)p->rows * c->cols * c->blocks, sizeof(float), "probe columns", err);
	c->injector = mw_alloc_array(p->rows, sizeof(*c->injector), "probe columns", err);
	c->injected = mw_alloc_array(p->rows, sizeof(*c->injected), "probe columns", err);
	c->late = mw_alloc_array(run->n_workers, 1, "probe columns", err);
	c->done = mw_alloc_array(run->n_workers, sizeof(*c->done), "probe columns", err);
	if (!c->columns || !c->pattern || !c->injector || !c->injected || !c->late || !c->done)
		return err->code;
	for (uint32_t w = 0; w < run->n_workers; w++)
		c->done[w].look = UINT64_MAX;
	mw_ticks_per_s(); /* the first time it takes a while */
	mw_segments_draw(c);
	for (uint32_t b = 0; b < c->blocks; b++) {
		MW_TRY(mw_probe_new(
			p, c->fixed, one_hot_max(run), c->sets, t, run->seed + b, &c->probe[b], err));
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

void mw_control_look_at_parameters(struct mw_control *c, double t)
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

static void look(struct mw_control *c, double t)
{
	if (c->cols)
		mw_segments_step(c, t);
	if (c->passive)
		mw_control_look_at_parameters(c, t);
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
		look(c, (double)c->step);
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
