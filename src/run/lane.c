/* lane.c: see lane.h. */
#include "run/lane.h"

#include <math.h>

#include "base/kernel_tables.h"
#include "base/mem.h"
#include "run/recording.h"
#include "run/worker_impl.h"

bool mw_lanes_ok(const struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	return run->exclusive && run->train->rows <= UINT32_MAX && run->form == MW_FORM_ROW &&
	       run->batch == 1 && run->pool_n == 1 && !p->n_slots && p->rows == 1 && !p->versioned &&
	       p->clock == MW_CLOCK_EVENT && run->ssp_bound < 0 && run->stale.kind == MW_STALE_NONE &&
	       !run->opt->tally && !run->control && !run->replay && !run->steer && !run->timeline &&
	       !mw_tracing(run);
}

static struct mw_step_times times_of(const struct mw_run *run)
{
	struct mw_step_times t = { .sched = { run->compute_time, run->knobs.straggler, run->push_time } };
	for (int i = 0; i < MW_TIMES; i++)
		t.fixed[i] = mw_sched_is_zero(t.sched[i]) ? 0 : mw_sched_fixed(t.sched[i]);
	return t;
}

int mw_lanes_new(struct mw_run *run, struct mw_err *err)
{
	struct mw_lanes *s = mw_alloc(sizeof(*s), "the workers' steps", err);
	if (!s)
		return err->code;
	run->lanes = s;
	s->data = run->worker[0]->data;
	s->linear = run->model->linear;
	s->x = run->replicas.row[0].x;
	s->times = times_of(run);
	s->lane = mw_alloc_array(run->n_workers, sizeof(*s->lane), "the workers' steps", err);
	s->delta = mw_alloc_array(run->n_workers, sizeof(*s->delta), "the workers' steps", err);
	for (uint32_t id = 0; s->lane && id < run->n_workers; id++)
		s->lane[id].waits = true;
	return s->lane && s->delta ? 0 : err->code;
}

void mw_lanes_free(struct mw_run *run)
{
	if (run->lanes) {
		mw_free(run->lanes->lane);
		mw_free(run->lanes->delta);
	}
	mw_free(run->lanes);
	run->lanes = NULL;
}

/* --- what the worker is asked and told ----------------------------------------------------------------------------- */

/* Tell the worker how far its lane has come. */
static void catch_up(struct mw_worker *w, const struct mw_lane *l)
{
	w->step = l->step;
	if (l->row)
		w->rows_at = (uint32_t)(l->row - w->rows_buf) - l->n_rows;
}

/* Rows to draw from and the rate are the worker's, and last for 64 steps at most. */
static void refill(struct mw_worker *w, struct mw_lane *l)
{
	catch_up(w, l);
	uint64_t rows = mw_step_rows(w);
	mw_step_knobs(w);
	uint64_t steps = w->rate_step - w->step;
	l->left = (uint32_t)(steps < rows ? steps : rows);
	l->row = w->rows_buf + w->rows_at;
	l->scale = -w->rate * w->run->protocol->push_weight;
}

static void copy_rows(struct mw_worker *w, struct mw_lane *l)
{
	if (!l->left)
		refill(w, l);
	l->n_rows = l->left < MW_LANE_ROWS ? l->left : MW_LANE_ROWS;
	for (uint32_t i = MW_LANE_ROWS - l->n_rows; i < MW_LANE_ROWS; i++)
		l->next_row[i] = (uint32_t)*l->row++;
	l->left -= l->n_rows;
}

void mw_lanes_load(struct mw_run *run)
{
	for (uint32_t id = 0; id < run->n_workers; id++) {
		run->lanes->lane[id].step = run->worker[id]->step;
		run->lanes->delta[id].loss = mw_ld(&run->counters[id].loss);
	}
}

void mw_lanes_publish(struct mw_run *run)
{
	for (uint32_t id = 0; id < run->n_workers; id++) {
		struct mw_lane *l = &run->lanes->lane[id];
		struct mw_worker *w = run->worker[id];
		uint64_t steps = l->step - w->counters->steps;
		catch_up(w, l);
		mw_bump(&w->counters->steps, steps);
		mw_bump(&w->counters->pushes, steps);
		mw_bump(&w->counters->examples, steps);
		mw_st(&w->counters->loss, run->lanes->delta[id].loss);
		w->staleness_n += (double)steps;
		w->staleness_sum += (double)l->tau_sum;
		w->staleness_max = l->tau_max > w->staleness_max ? l->tau_max : w->staleness_max;
		l->tau_sum = 0;
	}
}

/* --- events -------------------------------------------------------------------------------------------------------- */

/* A push was done, of a delta that missed tau others. */
static inline void plan_push(struct mw_run *run, uint32_t id, struct mw_lane *l)
{
	struct mw_lanes *s = run->lanes;
	uint64_t tau = run->sim_pushes++ - l->seen;
	if (run->shared_staleness)
		s->tau[s->n_tau++] = tau;
	else
		mw_hist_add(run->worker[id]->staleness, tau);
	l->tau_sum += tau;
	l->tau_max = tau > l->tau_max ? tau : l->tau_max;
	l->step++;
}

static inline void plan_view(struct mw_run *run, uint32_t id, struct mw_lane *l, struct mw_lane_event *e)
{
	if (!l->n_rows)
		copy_rows(run->worker[id], l);
	l->seen = run->sim_pushes;
	e->row = l->next_row[MW_LANE_ROWS - l->n_rows--];
	e->scale = l->scale;
	if (l->step % MW_LOSS_EVERY == 0)
		e->what |= MW_LANE_LOSS | (l->step ? 0 : MW_LANE_FIRST);
}

static inline void plan(struct mw_run *run, uint32_t id, uint32_t what)
{
	struct mw_lane *l = &run->lanes->lane[id];
	struct mw_lane_event *e = &run->lanes->planned[run->lanes->n_planned++];
	*e = (struct mw_lane_event){ .worker = id, .what = what };
	if (what & MW_LANE_PUSH)
		plan_push(run, id, l);
	if (what & MW_LANE_VIEW)
		plan_view(run, id, l, e);
}

static bool perform(struct mw_lanes *s)
{
#if defined(MW_KERNEL_X86)
	if (mw_kernels()->isa == MW_ISA_AVX512)
		return mw_lanes_avx512(s);
	if (mw_kernels()->isa == MW_ISA_AVX2)
		return mw_lanes_avx2(s);
#endif
	return mw_lanes_portable(s);
}

void mw_lanes_perform(struct mw_run *run)
{
	struct mw_lanes *s = run->lanes;
	if (!perform(s))
		mw_run_diverged(run);
	if (s->n_tau)
		mw_hist_add_all(run->shared_staleness, s->tau, s->n_tau);
	s->n_planned = s->n_tau = 0;
}

void mw_lane_step(struct mw_run *run, uint32_t id, uint32_t what)
{
	plan(run, id, what);
	mw_lanes_perform(run);
}

/* --- free workers --------------------------------------------------------------------------------------------------- */

static inline double time_of(const struct mw_run *run, int i, uint32_t id, uint64_t step)
{
	const struct mw_step_times *t = &run->lanes->times;
	return isnan(t->fixed[i]) ? mw_sched_value(t->sched[i], run->seed, id, step) : t->fixed[i];
}

/* After the begin of a step at virtual time `now`: its end. */
static inline void await(struct mw_run *run, struct mw_event_queue *q, uint32_t id, double now)
{
	uint64_t step = run->lanes->lane[id].step;
	double d = time_of(run, MW_TIME_GRADIENT, id, step) + time_of(run, MW_TIME_STRAGGLING, id, step) +
		   time_of(run, MW_TIME_PUSH, id, step);
	mw_queue_push(q, (struct mw_sim_event){ .time = now + d, .worker = id, .finish = true }, now);
}

void mw_lanes_begin(struct mw_run *run, struct mw_event_queue *q)
{
	for (uint32_t id = 0; id < run->n_workers; id++) {
		struct mw_lane *l = &run->lanes->lane[id];
		if (!l->waits || l->step >= run->segment_end)
			continue;
		l->waits = false;
		mw_lane_step(run, id, MW_LANE_VIEW);
		await(run, q, id, run->virtual_s);
	}
}

/* What the coming events will touch of their lanes. */
static void fetch_lanes(const struct mw_lanes *s, struct mw_event_queue *q)
{
	enum { AHEAD_LANE = MW_QUEUE_NEAR - 1, AHEAD_ROW = MW_QUEUE_NEAR / 2 };
	mw_queue_look_ahead(q);
	if (q->n_near <= AHEAD_LANE)
		return;
	const struct mw_lane *l = &s->lane[mw_queue_near(q, AHEAD_LANE)->worker];
	__builtin_prefetch(l, 1);
	__builtin_prefetch(l->next_row, 1);
	l = &s->lane[mw_queue_near(q, AHEAD_ROW)->worker];
	if (!l->n_rows) {
		__builtin_prefetch(l->row);
		__builtin_prefetch(l->row + MW_LANE_ROWS - 1);
	}
}

/* A worker's delta lands, and it goes on at once: nothing is exchanged here, so that takes no time. */
static void plan_event(struct mw_run *run, struct mw_event_queue *q, const struct mw_sim_event *e)
{
	if (run->lanes->lane[e->worker].step + 1 < run->segment_end) {
		plan(run, e->worker, MW_LANE_PUSH | MW_LANE_VIEW);
		await(run, q, e->worker, e->time);
		return;
	}
	plan(run, e->worker, MW_LANE_PUSH);
	run->lanes->lane[e->worker].waits = true;
}

bool mw_lanes_plan(struct mw_run *run, struct mw_event_queue *q)
{
	struct mw_lanes *s = run->lanes;
	struct mw_sim_event e;
	while (s->n_planned < MW_LANE_BATCH) {
		fetch_lanes(s, q);
		if (!mw_queue_pop(q, &e))
			return false;
		run->virtual_s = e.time;
		plan_event(run, q, &e);
	}
	return true;
}
