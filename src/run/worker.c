/* worker.c: see worker.h. */
#include "run/worker_impl.h"

#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "comm/access.h"
#include "model/link.h"
#include "run/recording.h"
#include "run/control.h"
#include "run/optimize.h"
#include "run/steer.h"

enum { STREAM_PLAN = 0x91a4, STREAM_BLOCK = 0xb10c, STREAM_AUGMENT = 0xa06e, STREAM_SCATTER = 0x5ca70000 };

/* --- draw ------------------------------------------------------------------------------------------------------- */

static void draw(struct mw_worker *w, struct mw_delta *d)
{
	uint32_t batch = w->run->batch;
	if (batch == 1) {
		mw_step_rows(w);
		d->row[0] = w->rows_buf[w->rows_at++];
	} else {
		mw_order_draw(&w->order, d->row + w->drawn, batch - w->drawn);
		w->drawn = 0;
	}
}

void mw_step_knobs(struct mw_worker *w)
{
	const struct mw_run *run = w->run;
	while (mw_timeline_next(run->timeline, w->timeline_at) <= w->step) {
		w->knobs = &run->timeline->entry[w->timeline_at++].knobs;
		w->rate_step = 0; /* the rate may be another one */
	}
	if (w->step < w->rate_step)
		return;
	uint64_t steps = run->batch < MW_RATE_BLOCK ? MW_RATE_BLOCK / run->batch : 1;
	uint64_t at = mw_deal_clock(w), block = at - at % steps;
	w->rate = mw_rate_at(
		w->knobs->rate, (double)block / (double)run->steps_per_epoch, run->opt->epochs, block);
	w->rate_step = w->step - w->step % steps + steps;
}

/* --- view and gradient ------------------------------------------------------------------------------------------ */

static void measure_view(struct mw_worker *w, struct mw_delta *d)
{
	const struct mw_run *run = w->run;
	uint64_t own = w->counters->pushes;
	if (!run->exclusive)
		d->view_ticks = mw_ticks();
	if (run->protocol->clock ==
		MW_CLOCK_ROUND) { /* counted in rounds: arrival order inside a round means nothing */
		d->seen_others = w->mix_step;
		d->seen_own = own;
		return;
	}
	d->seen_others = run->seen_at_mix ? w->mix_seen_others : mw_total_pushes(run) - own;
	d->seen_own = run->seen_at_mix && !run->own_in_view ? w->mix_seen_own : own;
}

/* Margin of one row under the run's access mode; versioned: v is the version held. */
static float margin(struct mw_worker *w, uint64_t row, const float *v)
{
	struct mw_run *run = w->run;
	const struct mw_dataset *t = w->data;
	uint64_t o = t->row_ptr[row], n = t->row_ptr[row + 1] - o;
	int64_t bias = run->model->linear->bias ? (int64_t)t->features : -1;
	if (!v)
		return mw_access_dot_row(
			&run->replicas, run->protocol->view_row[w->id], t->col + o, t->val + o, n, bias);
	float z = mw_kernels()->dot_sparse(v, t->col + o, t->val + o, n);
	return bias < 0 ? z : z + v[bias];
}

void mw_note_loss(struct mw_worker *w, float loss)
{
	float *mean = &w->counters->loss;
	mw_st(mean, mw_mean_loss(*mean, loss, w->step));
	if (!isfinite(loss))
		mw_run_diverged(w->run);
}

static void begin_rows(struct mw_worker *w, struct mw_delta *d, bool measure)
{
	struct mw_run *run = w->run;
	const struct mw_linear *lin = run->model->linear;
	uint32_t held = 0;
	const float *v = NULL;
	if (run->protocol->versioned) {
		held = mw_leash_acquire(&run->leash);
		v = mw_leash_x(&run->leash, held);
	}
	double loss = 0;
	float scale = -w->rate * run->protocol->push_weight / (float)run->batch;
	d->n = run->batch;
	measure = measure && (!run->exclusive || w->step % MW_LOSS_EVERY == 0);
	for (uint32_t i = 0; i < d->n; i++) {
		float z = margin(w, d->row[i], v), y = w->data->y[d->row[i]];
		d->coef[i] = mw_link_dloss(lin->link, z, y) * scale;
		if (measure)
			loss += (double)mw_link_loss(lin->link, z, y);
	}
	if (v)
		mw_leash_release(&run->leash, held);
	if (measure)
		mw_note_loss(w, (float)(loss / d->n));
}

/* What the gradient is computed on, private to the worker. */
static void view(struct mw_worker *w, struct mw_bench *bench, struct mw_delta *d, float *x)
{
	struct mw_run *run = w->run;
	uint32_t row = run->protocol->view_row[w->id], width = run->model->width;
	const uint32_t *group = NULL;
	if (run->form == MW_FORM_SPARSE) {
		struct mw_batch b = { .data = w->data, .row = d->row, .n = run->batch };
		d->n = (uint32_t)run->model->ops->touch(run->model, bench->work, &b, &group);
		memcpy(d->group, group, d->n * sizeof(*group));
	}
	if (run->protocol->versioned) {
		uint32_t held = mw_leash_acquire(&run->leash);
		const float *v = mw_leash_x(&run->leash, held);
		if (group)
			mw_kernels()->gather(v, group, d->n, width, x);
		else
			memcpy(x, v, run->model->dim * sizeof(float));
		mw_leash_release(&run->leash, held);
	} else if (group) {
		mw_access_gather(&run->replicas, row, group, d->n, width, x);
	} else {
		mw_access_view(&run->replicas, row, 0, run->model->dim, x);
	}
}

/* Turn the gradient in d->d into a delta, in place, with the given state. */
static void optimize(
	const struct mw_run *run, struct mw_delta *d, float rate, uint64_t t, float *state, const float *x)
{
	struct mw_step s = { .rate = rate, .t = t };
	const struct mw_optim *o = run->optim;
	if (run->form == MW_FORM_SPARSE)
		mw_optim_sparse(o, &s, state, d->group, d->n, run->model->width, x, d->d, d->d);
	else
		mw_optimize_dense(run, &s, state, x, d->d, 0, run->model->dim);
}

void mw_step_view(struct mw_worker *w, struct mw_bench *bench, bool measure, float *x)
{
	struct mw_delta *d = &w->pool[w->issued];
	draw(w, d);
	mw_step_knobs(w);
	d->measured = measure;
	d->rate = w->rate;
	uint64_t begin = mw_event_begin(w);
	if (measure)
		measure_view(w, d);
	if (w->run->form == MW_FORM_ROW)
		begin_rows(w, d, measure);
	else
		view(w, bench, d, x);
	mw_event_row(w, MW_EVENT_VIEW, begin, w->run->protocol->view_row[w->id], false);
}

/* What the images of a step are moved by: a function of seed, worker and own step, so that a replay or resume sees it again. */
static uint64_t augment_key(const struct mw_worker *w)
{
	if (w->run->opt->augment == MW_AUGMENT_NONE)
		return 0;
	return mw_hash3(w->run->seed, STREAM_AUGMENT + ((uint64_t)w->id << 32), w->step) | 1;
}

/* --clip: by the norm over all trained parameters, as torch.nn.utils.clip_grad_norm_. */
static void clip(const struct mw_run *run, struct mw_delta *d)
{
	size_t n = run->form == MW_FORM_SPARSE ? (size_t)d->n * run->model->width : run->model->trained;
	float norm = sqrtf(mw_kernels()->dot(d->d, d->d, n)), scale = (float)run->opt->clip / (norm + 1e-6f);
	if (scale < 1)
		for (size_t i = 0; i < n; i++)
			d->d[i] *= scale;
}

void mw_step_gradient(struct mw_worker *w, struct mw_bench *bench, const float *x)
{
	struct mw_run *run = w->run;
	struct mw_delta *d = &w->pool[w->issued];
	if (run->form == MW_FORM_ROW)
		return;
	struct mw_batch b = { .data = w->data, .row = d->row, .n = run->batch, .augment = augment_key(w) };
	mw_note_loss(w, run->model->ops->grad(run->model, bench->work, &b, x, d->d));
	if (run->opt->clip > 0)
		clip(run, d);
	if (!run->optim_at_push)
		optimize(run, d, d->rate, w->step, w->state, x);
}

void mw_step_begin(struct mw_worker *w, struct mw_bench *bench, bool measure)
{
	mw_step_view(w, bench, measure, bench->x);
	mw_step_gradient(w, bench, bench->x);
}

/* --- push ------------------------------------------------------------------------------------------------------- */

struct leash_push {
	struct mw_worker *w;
	const struct mw_delta *d;
};

/* Add a delta to a private copy of the parameters. */
static void add_private(float *x, void *arg)
{
	struct leash_push *p = arg;
	const struct mw_run *run = p->w->run;
	const struct mw_dataset *t = p->w->data;
	const struct mw_delta *d = p->d;
	for (uint32_t i = 0; run->form == MW_FORM_ROW && i < d->n; i++) {
		uint64_t o = t->row_ptr[d->row[i]], n = t->row_ptr[d->row[i] + 1] - o;
		mw_kernels()->axpy_sparse(d->coef[i], t->col + o, t->val + o, x, n);
		if (run->model->linear->bias)
			x[t->features] += d->coef[i];
	}
	if (run->form == MW_FORM_SPARSE)
		mw_kernels()->scatter_add(d->d, d->group, d->n, run->model->width, x);
	if (run->form == MW_FORM_DENSE)
		mw_kernels()->axpy(1, d->d, x, run->model->dim);
}

static void push_to(struct mw_worker *w, const struct mw_delta *d, uint32_t row)
{
	struct mw_run *run = w->run;
	const struct mw_dataset *t = w->data;
	int64_t bias = run->form == MW_FORM_ROW && run->model->linear->bias ? (int64_t)t->features : -1;
	if (run->protocol->versioned) {
		struct leash_push p = { w, d };
		mw_leash_update(&run->leash, add_private, &p);
		return;
	}
	switch (run->form) {
	case MW_FORM_ROW:
		for (uint32_t i = 0; i < d->n; i++) {
			uint64_t o = t->row_ptr[d->row[i]], n = t->row_ptr[d->row[i] + 1] - o;
			mw_access_add_row(&run->replicas, row, t->col + o, t->val + o, n, bias, d->coef[i]);
		}
		break;
	case MW_FORM_SPARSE:
		mw_access_scatter(&run->replicas, row, d->group, d->n, run->model->width, d->d);
		break;
	case MW_FORM_DENSE:
		mw_access_add(&run->replicas, row, 0, run->model->dim, run->protocol->push_weight, d->d);
		break;
	}
}

uint64_t mw_staleness_of(const struct mw_worker *w, const struct mw_delta *d)
{
	const struct mw_run *run = w->run;
	uint64_t own = w->counters->pushes;
	if (run->protocol->clock == MW_CLOCK_ROUND)
		return (w->step - d->seen_others) * (run->n_workers - 1) + (own - d->seen_own);
	return (mw_total_pushes(run) - own - d->seen_others) + (own - d->seen_own);
}

void mw_note_staleness(struct mw_worker *w, uint64_t tau)
{
	mw_hist_add(w->staleness, tau);
	w->staleness_sum += (double)tau;
	w->staleness_n++;
	if (tau > w->staleness_max)
		w->staleness_max = tau;
}

static void observe(struct mw_worker *w, const struct mw_delta *d)
{
	const struct mw_run *run = w->run;
	if (!d->measured)
		return;
	uint64_t own = w->counters->pushes, tau = mw_staleness_of(w, d);
	if (run->protocol->clock != MW_CLOCK_ROUND)
		w->skew_sum += mw_total_pushes(run) - own - d->seen_others - (tau - (own - d->seen_own));
	mw_note_staleness(w, tau);
	if (run->exclusive) /* virtual time goes on between events only, and nobody pushes meanwhile */
		return;
	w->staleness_s += (double)(mw_ticks() - d->view_ticks);
	w->latency_n++;
}

static void count_push(struct mw_worker *w, const struct mw_delta *d)
{
	observe(w, d);
	mw_bump(&w->counters->pushes, 1);
	mw_bump(&w->counters->examples, w->run->batch);
	if (w->run->exclusive) {
		w->run->sim_pushes++;
		if (w->run->control)
			mw_control_push(w->run->control);
	}
}

/* The optimizer at the push, with the state that all share. Locked access guards the state by the row's lock. */
static void optimize_shared(struct mw_worker *w, struct mw_bench *bench, struct mw_delta *d)
{
	struct mw_run *run = w->run;
	uint32_t row = run->protocol->push_row[w->id];
	const float *x = NULL;
	uint64_t t = mw_total_pushes(run); /* one step counter for the one state */
	if (run->optim->needs_x) {
		if (run->form == MW_FORM_SPARSE)
			mw_access_gather(&run->replicas, row, d->group, d->n, run->model->width, bench->x);
		else
			mw_access_view(&run->replicas, row, 0, run->model->dim, bench->x);
		x = bench->x;
	}
	mw_access_write_begin(&run->replicas, row);
	optimize(run, d, d->rate, t, run->shared_state, x);
	mw_access_write_end(&run->replicas, row);
}

void mw_push_delta(struct mw_worker *w, struct mw_bench *bench, struct mw_delta *d)
{
	struct mw_run *run = w->run;
	const struct mw_protocol *p = run->protocol;
	if (run->stale.kind != MW_STALE_NONE && !mw_stale_apply(w, d))
		return;
	if (run->optim_at_push)
		optimize_shared(w, bench, d);
	if (run->form == MW_FORM_SPARSE && p->push_weight != 1)
		for (size_t i = 0; i < (size_t)d->n * run->model->width; i++)
			d->d[i] *= p->push_weight;
	uint64_t begin = mw_event_begin(w);
	push_to(w, d, p->push_row[w->id]);
	mw_event_row(w, MW_EVENT_PUSH, begin, p->push_row[w->id], true);
	if (run->opt->tally)
		mw_access_tally(&run->replicas, p->push_row[w->id]);
	if (p->push2_row && p->push2_row[w->id] != MW_NO_ROW)
		push_to(w, d, p->push2_row[w->id]);
	count_push(w, d);
}

/* --- pending deltas (--staleness) ------------------------------------------------------------------------------- */

static void enqueue(struct mw_worker *w, uint64_t due)
{
	uint32_t slot = (uint32_t)(due % w->pool_n), i = w->issued;
	w->pool[i].next = MW_NO_DELTA;
	if (w->due_head[slot] == MW_NO_DELTA)
		w->due_head[slot] = i;
	else
		w->pool[w->due_tail[slot]].next = i;
	w->due_tail[slot] = i;
}

/* Push what is due at this step, in issue order. */
static void push_due(struct mw_worker *w, struct mw_bench *bench, uint64_t step)
{
	uint32_t slot = (uint32_t)(step % w->pool_n);
	for (uint32_t i = w->due_head[slot], next; i != MW_NO_DELTA; i = next) {
		next = w->pool[i].next;
		mw_push_delta(w, bench, &w->pool[i]);
		w->free_list[w->n_free++] = i;
	}
	w->due_head[slot] = MW_NO_DELTA;
}

void mw_delay_and_push(struct mw_worker *w, struct mw_bench *bench)
{
	const struct mw_run *run = w->run;
	uint64_t tau = (uint64_t)mw_sched_value(w->knobs->staleness, run->seed, w->id, w->step);
	if (tau > w->pool_n - 1)
		tau = w->pool_n - 1;
	enqueue(w, w->step + tau);
	push_due(w, bench, w->step);
	w->issued = w->free_list[--w->n_free];
}

void mw_step_flush(struct mw_worker *w, struct mw_bench *bench)
{
	if (w->pool_n < 2)
		return;
	for (uint64_t step = w->step; step < w->step + w->pool_n; step++) {
		uint64_t before = w->counters->pushes;
		push_due(w, bench, step);
		w->flushed += w->counters->pushes - before;
	}
}

/* --- mix -------------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct mw_worker *w)
{
	return w->run->protocol->clock == MW_CLOCK_ROUND ? 0 : w->id;
}

static bool has_plans(const struct mw_worker *w)
{
	const struct mw_protocol *p = w->run->protocol;
	return p->n_slots && p->slot[slot_of(w)].n;
}

uint64_t mw_next_mix(const struct mw_worker *w)
{
	const struct mw_run *run = w->run;
	if (!has_plans(w) || run->protocol->due == MW_DUE_SSP)
		return UINT64_MAX;
	if (run->steer && mw_steer_scatters(run->steer))
		return mw_knobs_next_scattered(w->knobs, w->step, run->seed, STREAM_SCATTER + w->id);
	return mw_knobs_next_mix(w->knobs, w->step);
}

uint32_t mw_mix_block(const struct mw_run *run, uint32_t slot, uint64_t k)
{
	uint64_t blocks = run->n_blocks;
	if (blocks == 1)
		return 0;
	if (run->opt->mix_blocks == MW_BLOCKS_CYCLIC)
		return (uint32_t)(k % blocks);
	return (uint32_t)(((unsigned __int128)mw_hash3(run->seed, STREAM_BLOCK + slot, k) * blocks) >> 64);
}

/* The block of coordinates of the k-th mix of a slot: all of them unless --mix-fraction. */
void mw_mix_range(const struct mw_run *run, uint32_t slot, uint64_t k, size_t *from, size_t *n)
{
	size_t dim = run->replicas.dim, b = mw_mix_block(run, slot, k), blocks = run->n_blocks;
	*from = dim * b / blocks;
	*n = dim * (b + 1) / blocks - *from;
}

uint32_t mw_mix_choice(const struct mw_run *run, uint32_t slot, uint64_t k)
{
	const struct mw_plan_list *l = &run->protocol->slot[slot];
	if (run->protocol->pick == MW_PICK_CYCLIC)
		return (uint32_t)(k % l->n);
	return (uint32_t)(((unsigned __int128)mw_hash3(run->seed, STREAM_PLAN + slot, k) * l->n) >> 64);
}

void mw_note_mix(struct mw_worker *w)
{
	const struct mw_run *run = w->run;
	w->mix_step = w->step + 1;
	if (!run->seen_at_mix || run->protocol->clock == MW_CLOCK_ROUND)
		return;
	w->mix_seen_own = w->counters->pushes;
	w->mix_seen_others = mw_total_pushes(run) - w->mix_seen_own;
}

/* Exchange without a push, or together with the worker's own fresh delta. */
static void mix(struct mw_worker *w, struct mw_bench *bench, const struct mw_push *push, uint16_t flags)
{
	struct mw_run *run = w->run;
	uint32_t slot = slot_of(w), choice = mw_mix_choice(run, slot, w->mixes);
	size_t from, n, dim = run->replicas.dim;
	mw_mix_range(run, slot, w->mixes, &from, &n);
	size_t extent = mw_control_extent(run, n);
	uint64_t begin = mw_event_begin(w);
	mw_note_mix(w); /* before the exchange: what comes in later is not counted as seen */
	if (run->helps)
		mw_help_plan(&run->help, &run->executor, &bench->exec, slot, choice, w->knobs->slack, from, n,
			push, push ? 1 : 0);
	else
		mw_exec_plan(&run->executor, &bench->exec, slot, choice, w->knobs->slack, from, extent, push,
			push ? 1 : 0, run->exclusive);
	mw_event_mix(w, bench, begin, slot, choice, flags);
	if (run->control) {
		uint32_t block = mw_mix_block(run, slot, w->mixes);
		if (extent == n)
			mw_control_exchange(run, bench, slot, choice, block, w->knobs->slack);
		if (run->exclusive)
			mw_control_mix(run->control, slot, choice, block, w->knobs->slack);
	}
	if (push && n < dim) { /* the coordinates that are not exchanged get the delta all the same */
		mw_access_add(&run->replicas, push->row, 0, from, push->weight, push->delta);
		mw_access_add(&run->replicas, push->row, from + n, dim - from - n, push->weight,
			push->delta + from + n);
	}
	w->mixes++;
}

/* Token ring: only the holder's group mixes, then the token goes on. */
static void mix_token(struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_run *run = w->run;
	uint32_t groups = run->protocol->groups, group = w->id % groups, holder = group;
	if (!__atomic_compare_exchange_n(
		    &run->token, &holder, MW_TOKEN_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	mix(w, bench, NULL, 0);
	__atomic_store_n(&run->token, (group + 1) % groups, __ATOMIC_RELEASE);
}

void mw_step_fetch_now(struct mw_worker *w, struct mw_bench *bench)
{
	mix(w, bench, NULL, MW_EVENT_FETCH);
}

void mw_step_fetch(struct mw_worker *w, struct mw_bench *bench, uint64_t slowest)
{
	uint64_t bound = (uint64_t)w->run->ssp_bound;
	if (w->run->protocol->due != MW_DUE_SSP || !has_plans(w) || w->ssp_clock + bound >= w->step)
		return;
	w->ssp_clock = slowest;
	mw_step_fetch_now(w, bench);
}

/* --- finish ----------------------------------------------------------------------------------------------------- */

/* What the end of a step consists of, in order. */
enum action { ACTION_NONE, ACTION_PUSH, ACTION_MIX, ACTION_PUSH_AND_MIX };

static bool fuses(const struct mw_worker *w)
{
	const struct mw_run *run = w->run;
	return w->pool_n == 1 && run->opt->mix_order == MW_MIX_AFTER && run->form == MW_FORM_DENSE &&
	       !run->optim_at_push && run->protocol->due != MW_DUE_TOKEN &&
	       mw_exec_takes_push(&run->executor, w->id, run->protocol->push_row[w->id]);
}

static enum action nth_action(const struct mw_worker *w, uint32_t i)
{
	bool due = mw_next_mix(w) == w->step, before = w->run->opt->mix_order == MW_MIX_BEFORE;
	if (!due)
		return i == 0 ? ACTION_PUSH : ACTION_NONE;
	if (fuses(w))
		return i == 0 ? ACTION_PUSH_AND_MIX : ACTION_NONE;
	return i > 1 ? ACTION_NONE : (i == 0) == before ? ACTION_MIX : ACTION_PUSH;
}

static void act(struct mw_worker *w, struct mw_bench *bench, enum action a)
{
	struct mw_run *run = w->run;
	struct mw_delta *d = &w->pool[w->issued];
	struct mw_push push = { run->protocol->push_row[w->id], (float)run->protocol->push_weight, d->d };
	switch (a) {
	case ACTION_PUSH: w->pool_n > 1 ? mw_delay_and_push(w, bench) : mw_push_delta(w, bench, d); break;
	case ACTION_MIX:
		run->protocol->due == MW_DUE_TOKEN ? mix_token(w, bench) : mix(w, bench, NULL, 0);
		break;
	case ACTION_PUSH_AND_MIX:
		if (run->stale.kind != MW_STALE_NONE && !mw_stale_apply(w, d)) {
			mix(w, bench, NULL, 0);
			break;
		}
		count_push(w, d);
		mix(w, bench, &push, MW_EVENT_WITH_PUSH);
		break;
	case ACTION_NONE: break;
	}
}

bool mw_step_action(struct mw_worker *w, struct mw_bench *bench)
{
	act(w, bench, nth_action(w, w->action));
	return mw_step_skip(w);
}

bool mw_step_skip(struct mw_worker *w)
{
	w->action++;
	if (nth_action(w, w->action) != ACTION_NONE)
		return true;
	w->action = 0;
	w->step++;
	mw_bump(&w->counters->steps, 1);
	return false;
}

bool mw_step_next_is_mix(const struct mw_worker *w)
{
	enum action a = nth_action(w, w->action);
	return a == ACTION_MIX || a == ACTION_PUSH_AND_MIX;
}

void mw_step_finish(struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_run *run = w->run;
	if (run->protocol->clock == MW_CLOCK_EVENT) {
		while (mw_step_action(w, bench))
			;
		return;
	}
	/* A round: the rest follows in mw_round_mix and mw_round_end. */
	if (run->collect && mw_round_due(w)) {
		struct mw_delta *d = &w->pool[0];
		run->round_push[w->id] =
			(struct mw_push){ run->protocol->push_row[w->id], run->protocol->push_weight, d->d };
		count_push(w, d);
	} else if (run->opt->mix_order == MW_MIX_AFTER || !mw_round_due(w)) {
		w->pool_n > 1 ? mw_delay_and_push(w, bench) : mw_push_delta(w, bench, &w->pool[0]);
	}
}
