/*
 * sim.c: the sim engine. Virtual workers go through the same phases as real ones, in virtual time, one event after the
 * other: bit for bit reproducible for a seed, whatever --threads. Real threads only compute gradients whose views have
 * been taken already; nothing depends on when they finish.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "run/control.h"
#include "run/event_queue.h"
#include "run/lane.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/worker.h"

enum task_state { TASK_NONE, TASK_QUEUED, TASK_RUNNING };

struct mw_sim {
	struct mw_event_queue events;
	uint8_t *parked; /* behind the SSP gate, or at its quota of this segment */
	uint32_t n_parked;
	bool opened; /* turns: the first steps have begun */

	/* The pool: threads 1.. of --threads; the caller is thread 0. Everything below: Sync: under lock. */
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t *thread;
	uint32_t n_threads;
	uint32_t *queue; /* ring of workers with a gradient to compute */
	uint32_t head, tail;
	uint8_t *task; /* enum task_state per worker */
	bool quit;
	mw_part_fn *fn;
	void *fn_arg;
	uint32_t next_part, parts_running;
};

/* --- pool -------------------------------------------------------------------------------------------------------- */

static bool pool_step(struct mw_run *run, struct mw_sim *s, struct mw_bench *bench)
{
	if (s->fn && s->next_part < MW_EVAL_PARTS) {
		uint32_t part = s->next_part++;
		s->parts_running++;
		pthread_mutex_unlock(&s->lock);
		s->fn(run, bench, part, s->fn_arg);
		pthread_mutex_lock(&s->lock);
		s->parts_running--;
		pthread_cond_broadcast(&s->done);
		return true;
	}
	while (s->head != s->tail) {
		uint32_t w = s->queue[s->head++ % run->n_workers];
		if (s->task[w] != TASK_QUEUED)
			continue; /* the caller was faster */
		s->task[w] = TASK_RUNNING;
		pthread_mutex_unlock(&s->lock);
		mw_step_gradient(run->worker[w], bench, run->worker[w]->x);
		pthread_mutex_lock(&s->lock);
		s->task[w] = TASK_NONE;
		pthread_cond_broadcast(&s->done);
		return true;
	}
	return false;
}

struct pool_arg {
	struct mw_run *run;
	uint32_t bench;
};

static void *pool_main(void *p)
{
	struct pool_arg arg = *(struct pool_arg *)p;
	struct mw_sim *s = arg.run->engine;
	free(p);
	pthread_mutex_lock(&s->lock);
	while (!s->quit)
		if (!pool_step(arg.run, s, &arg.run->bench[arg.bench]))
			pthread_cond_wait(&s->work, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void begin(struct mw_run *run, struct mw_worker *w)
{
	struct mw_sim *s = run->engine;
	w->begun = true;
	if (run->lanes) {
		mw_lane_step(run, w->id, MW_LANE_VIEW);
		return;
	}
	if (!s->n_threads) {
		mw_step_begin(w, &run->bench[0], true);
		return;
	}
	mw_step_view(w, &run->bench[0], true, w->x);
	pthread_mutex_lock(&s->lock);
	s->task[w->id] = TASK_QUEUED;
	s->queue[s->tail++ % run->n_workers] = w->id;
	if (s->tail - s->head > run->n_workers) /* entries that the caller settled itself */
		s->head = s->tail - run->n_workers;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

/* Have w's gradient: compute it here if no thread has begun; while one is at it, help with the others. */
static void settle(struct mw_run *run, struct mw_worker *w)
{
	struct mw_sim *s = run->engine;
	if (!s->n_threads)
		return;
	pthread_mutex_lock(&s->lock);
	if (s->task[w->id] == TASK_QUEUED) {
		s->task[w->id] = TASK_NONE;
		pthread_mutex_unlock(&s->lock);
		mw_step_gradient(w, &run->bench[0], w->x);
		return;
	}
	while (s->task[w->id] == TASK_RUNNING)
		if (!pool_step(run, s, &run->bench[0]))
			pthread_cond_wait(&s->done, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void finish(struct mw_run *run, struct mw_worker *w)
{
	w->begun = false;
	if (run->lanes) {
		mw_lane_step(run, w->id, MW_LANE_PUSH);
		return;
	}
	settle(run, w);
	mw_step_finish(w, &run->bench[0]);
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static uint64_t slowest_clock(const struct mw_run *run)
{
	uint64_t min = UINT64_MAX;
	for (uint32_t i = 0; i < run->n_workers; i++)
		if (run->counters[i].steps < min)
			min = run->counters[i].steps;
	return min;
}

static bool gate_open(const struct mw_run *run, const struct mw_worker *w, uint64_t slowest)
{
	return run->ssp_bound < 0 || slowest + (uint64_t)run->ssp_bound >= w->step;
}

static void park(struct mw_sim *s, uint32_t w)
{
	s->n_parked += !s->parked[w];
	s->parked[w] = 1;
}

/*
 * With very many workers nobody's data are in cache when its turn comes. So they are asked for while the events in front of
 * it are performed, in steps, since each says where the next is: the worker, the numbers of the rows that it will push
 * and view, where these begin, the rows.
 */
enum { AHEAD_WORKER = MW_QUEUE_NEAR - 1, AHEAD_NUMBERS = 11, AHEAD_EXTENTS = 8, AHEAD_ROWS = 6 };

static void fetch_worker(const struct mw_run *run, uint32_t id)
{
	const char *w = (const char *)run->worker[id];
	for (size_t o = 0; o < offsetof(struct mw_worker, rows_buf); o += 64)
		__builtin_prefetch(w + o);
	__builtin_prefetch(&run->counters[id]);
}

static void fetch_extent(const struct mw_dataset *t, uint64_t row)
{
	__builtin_prefetch(&t->row_ptr[row]);
	__builtin_prefetch(&t->y[row]);
}

static void fetch_row(const struct mw_dataset *t, uint64_t row)
{
	for (uint64_t o = t->row_ptr[row] & ~(uint64_t)15; o < t->row_ptr[row + 1]; o += 16) {
		__builtin_prefetch(&t->col[o]);
		__builtin_prefetch(&t->val[o]);
	}
}

static void fetch_ahead(const struct mw_run *run, struct mw_event_queue *q)
{
	const struct mw_worker *w;
	if (q->n_near <= AHEAD_WORKER) /* few workers: all is in cache */
		return;
	fetch_worker(run, mw_queue_near(q, AHEAD_WORKER)->worker);
	if (run->form != MW_FORM_ROW || run->batch > 1)
		return;
	w = run->worker[mw_queue_near(q, AHEAD_NUMBERS)->worker];
	__builtin_prefetch(&w->rows_buf[w->rows_at]);
	w = run->worker[mw_queue_near(q, AHEAD_EXTENTS)->worker];
	fetch_extent(run->train, w->pool[w->issued].row_one);
	fetch_extent(run->train, w->rows_buf[w->rows_at]);
	w = run->worker[mw_queue_near(q, AHEAD_ROWS)->worker];
	fetch_row(run->train, w->pool[w->issued].row_one);
	fetch_row(run->train, w->rows_buf[w->rows_at]);
}

static bool next_event(const struct mw_run *run, struct mw_event_queue *q, struct mw_sim_event *e)
{
	mw_queue_look_ahead(q);
	fetch_ahead(run, q);
	return mw_queue_pop(q, e);
}

/* Virtual seconds from a view to the landing of its push: gradient, straggling, push. */
static double step_time(const struct mw_run *run, const struct mw_worker *w)
{
	return mw_sched_value(run->compute_time, run->seed, w->id, w->step) +
	       mw_sched_value(w->knobs->straggler, run->seed, w->id, w->step) +
	       mw_sched_value(run->push_time, run->seed, w->id, w->step);
}

/* Begin at virtual time `now`, or park behind the gate; at: when it will have finished. */
static void try_begin(struct mw_run *run, struct mw_worker *w, double now, uint64_t slowest)
{
	struct mw_sim *s = run->engine;
	if (w->step >= run->segment_end || !gate_open(run, w, slowest)) {
		park(s, w->id);
		return;
	}
	s->n_parked -= s->parked[w->id];
	s->parked[w->id] = 0;
	mw_step_fetch(w, &run->bench[0], slowest);
	begin(run, w);
	double d = step_time(run, w);
	mw_queue_push(
		&s->events, (struct mw_sim_event){ .time = now + d, .worker = w->id, .finish = true }, now);
}

static void unpark(struct mw_run *run, double now)
{
	struct mw_sim *s = run->engine;
	if (!s->n_parked)
		return;
	uint64_t slowest = run->ssp_bound < 0 ? 0 : slowest_clock(run);
	for (uint32_t w = 0; w < run->n_workers && s->n_parked; w++)
		if (s->parked[w])
			try_begin(run, run->worker[w], now, slowest);
}

enum { LOOK_EVERY = 4096 }; /* events */

static bool stopping(struct mw_run *run, uint64_t event)
{
	if (event % LOOK_EVERY == 0) {
		if (run->lanes && (run->job->live || run->opt->metrics_every > 0))
			mw_lanes_publish(run);
		if (mw_run_interrupted(run))
			run->stop = 1;
		mw_metrics_tick(run);
		mw_progress_draw(run);
	}
	if (!run->steer)
		mw_timeline_tick(run->timeline, run->virtual_s,
			run->protocol->clock == MW_CLOCK_ROUND ? run->worker[0]->step : 0);
	return __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
}

static void run_free(struct mw_run *run)
{
	struct mw_sim *s = run->engine;
	uint64_t n = 0;
	unpark(run, run->virtual_s);
	struct mw_sim_event e;
	while (!stopping(run, n++) && next_event(run, &s->events, &e)) {
		struct mw_worker *w = run->worker[e.worker];
		run->virtual_s = e.time;
		if (e.finish) {
			finish(run, w);
			double d = mw_sched_value(run->mix_time, run->seed, w->id, w->step);
			if (d > 0) {
				mw_queue_push(&s->events,
					(struct mw_sim_event){ .time = e.time + d, .worker = w->id }, e.time);
				continue;
			}
		}
		try_begin(run, w, e.time, run->ssp_bound < 0 ? 0 : slowest_clock(run));
		if (run->ssp_bound >= 0)
			unpark(run, e.time);
	}
}

/* run_free where lanes do: many events are planned, then performed. */
static void run_lanes(struct mw_run *run)
{
	struct mw_sim *s = run->engine;
	mw_lanes_begin(run, &s->events);
	for (uint64_t n = 0; !stopping(run, n); n += MW_LANE_BATCH) {
		bool more = mw_lanes_plan(run, &s->events);
		mw_lanes_perform(run);
		if (!more)
			break;
	}
}

/* At the start all views are of the same version. */
static void begin_all(struct mw_run *run)
{
	struct mw_sim *s = run->engine;
	uint64_t slowest = slowest_clock(run);
	s->opened = true;
	for (uint32_t w = 0; w < run->n_workers; w++)
		if (!run->worker[w]->begun && gate_open(run, run->worker[w], slowest)) {
			mw_step_fetch(run->worker[w], &run->bench[0], slowest);
			begin(run, run->worker[w]);
		}
}

static void run_turns(struct mw_run *run)
{
	struct mw_sim *s = run->engine;
	uint64_t n = 0;
	if (!s->opened) /* once, not at every segment: what a run does must not depend on when it is evaluated */
		begin_all(run);
	for (; run->turn < run->segment_end && !stopping(run, n++); run->turn++) {
		struct mw_worker *w = run->worker[mw_turn_of(run, run->turn + run->sim_skipped)];
		if (!w->begun) { /* only behind a gate: its turn passes */
			uint64_t slowest = run->ssp_bound < 0 ? 0 : slowest_clock(run);
			if (!gate_open(run, w, slowest)) {
				run->sim_skipped++;
				run->turn--;
				continue;
			}
			mw_step_fetch(w, &run->bench[0], slowest);
			begin(run, w);
		}
		finish(run, w);
		run->virtual_s += 1;
		uint64_t slowest = run->ssp_bound < 0 ? 0 : slowest_clock(run);
		if (gate_open(run, w, slowest)) {
			mw_step_fetch(w, &run->bench[0], slowest);
			begin(run, w);
		}
	}
}

/* Rounds: all begin, all finish, one mix. */
static void run_rounds(struct mw_run *run)
{
	while (run->worker[0]->step < run->segment_end && !stopping(run, run->worker[0]->step * 64)) {
		double longest = 0;
		for (uint32_t w = 0; w < run->n_workers; w++) {
			double d = step_time(run, run->worker[w]);
			longest = d > longest ? d : longest;
			begin(run, run->worker[w]);
		}
		for (uint32_t w = 0; w < run->n_workers; w++)
			finish(run, run->worker[w]);
		if (mw_round_due(run->worker[0])) {
			mw_round_mix(run->worker[0], &run->bench[0], 0, run->replicas.dim);
			longest += mw_sched_value(run->mix_time, run->seed, 0, run->worker[0]->step);
		}
		const struct mw_worker *first = run->worker[0];
		bool mixed = mw_next_mix(first) == first->step;
		for (uint32_t w = 0; w < run->n_workers; w++)
			mw_round_end(run->worker[w], &run->bench[0]);
		if (run->control)
			mw_control_round(run->control, mixed, first->mixes - mixed, first->knobs->slack);
		run->virtual_s += longest;
	}
}

static void segment(struct mw_run *run)
{
	if (run->lanes)
		mw_lanes_load(run);
	if (run->protocol->clock == MW_CLOCK_ROUND)
		run_rounds(run);
	else if (run->activation != MW_ACT_FREE)
		run_turns(run);
	else if (run->lanes)
		run_lanes(run);
	else
		run_free(run);
	if (run->lanes)
		mw_lanes_publish(run);
}

/* --- engine ------------------------------------------------------------------------------------------------------ */

static int start_pool(struct mw_run *run, struct mw_sim *s, struct mw_err *err)
{
	uint32_t n = (uint32_t)run->opt->threads;
	if (n > 1 && run->form == MW_FORM_DENSE && run->model->dim >= 512) {
		for (uint32_t w = 0; w < run->n_workers; w++) {
			run->worker[w]->x = mw_alloc_array(run->model->dim, sizeof(float), "a view", err);
			if (!run->worker[w]->x)
				return err->code;
		}
		s->queue = mw_alloc_array(run->n_workers, sizeof(*s->queue), "the task queue", err);
		s->task = mw_alloc_array(run->n_workers, sizeof(*s->task), "the task queue", err);
		s->thread = mw_alloc_array(n, sizeof(*s->thread), "the thread table", err);
		if (!s->queue || !s->task || !s->thread)
			return err->code;
	} else {
		n = 1; /* smaller gradients cost less than handing them over */
	}
	for (uint32_t i = 0; i + 1 < n; i++) {
		struct pool_arg *arg = malloc(sizeof(*arg));
		if (!arg)
			MW_FAIL(err, RESOURCE, "out of memory starting a thread");
		*arg = (struct pool_arg){ run, i + 1 };
		if (pthread_create(&s->thread[i], NULL, pool_main, arg)) {
			free(arg);
			MW_FAIL(err, RESOURCE, "no thread could be created; fewer --threads");
		}
		s->n_threads++;
	}
	return 0;
}

static int start(struct mw_run *run, struct mw_err *err)
{
	struct mw_sim *s = mw_alloc(sizeof(*s), "the simulator", err);
	if (!s)
		return err->code;
	run->engine = s;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->done, NULL);
	MW_TRY(mw_queue_init(&s->events, run->n_workers, err));
	s->parked = mw_alloc_array(run->n_workers, 1, "the event queue", err);
	if (!s->parked)
		return err->code;
	for (uint32_t w = 0; w < run->n_workers; w++) {
		MW_TRY(mw_worker_new(run, w, &run->worker[w], err));
		park(s, w);
	}
	for (uint32_t i = 0; i < run->n_benches; i++)
		MW_TRY(mw_bench_init(&run->bench[i], run, 0, err));
	MW_TRY(start_pool(run, s, err));
	return mw_lanes_ok(run) ? mw_lanes_new(run, err) : 0;
}

static void parts(struct mw_run *run, mw_part_fn *fn, void *arg)
{
	struct mw_sim *s = run->engine;
	pthread_mutex_lock(&s->lock);
	s->next_part = 0;
	s->fn_arg = arg;
	s->fn = fn;
	pthread_cond_broadcast(&s->work);
	while (s->next_part < MW_EVAL_PARTS)
		pool_step(run, s, &run->bench[0]);
	while (s->parts_running)
		pthread_cond_wait(&s->done, &s->lock);
	s->fn = NULL;
	pthread_mutex_unlock(&s->lock);
}

static void flush(struct mw_run *run)
{
	for (uint32_t w = 0; w < run->n_workers; w++)
		mw_step_flush(run->worker[w], &run->bench[0]);
}

static void stop(struct mw_run *run)
{
	struct mw_sim *s = run->engine;
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->quit = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	for (uint32_t i = 0; i < s->n_threads; i++)
		pthread_join(s->thread[i], NULL);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->done);
	pthread_mutex_destroy(&s->lock);
	for (uint32_t w = 0; w < run->n_workers; w++)
		if (run->worker[w]) {
			mw_free(run->worker[w]->x);
			run->worker[w]->x = NULL;
		}
	mw_lanes_free(run);
	mw_queue_fini(&s->events);
	mw_free(s->parked);
	mw_free(s->queue);
	mw_free(s->task);
	mw_free(s->thread);
	mw_free(s);
	run->engine = NULL;
}

const struct mw_engine_ops mw_engine_sim = { "sim", start, segment, parts, flush, stop };
