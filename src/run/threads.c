/*
 * threads.c: the threads engine. Each worker is a pinned thread that races through its steps; the calling thread is the
 * controller, which wakes now and then to draw the progress line and to look for signals. Workers and controller meet at
 * a barrier at both ends of a segment (the steps between two evaluations), and never in between.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "model/link.h"
#include "run/burst.h"
#include "run/control.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/segments.h"
#include "run/train.h"
#include "run/worker_impl.h"

enum command { CMD_TRAIN, CMD_PARTS, CMD_FLUSH, CMD_EXIT };

struct mw_threads {
	pthread_t *thread;
	uint32_t n_started;
	struct mw_err *start_err; /* one a worker: written by it before the first barrier */
	enum command command;     /* Sync: written by the controller between barriers */
	mw_part_fn *fn;
	void *arg;
	/* Sync: workers that have finished their segment; the controller sleeps on it. acq_rel. */
	uint32_t finished MW_LINE_ALIGNED;
	pthread_mutex_t lock;
	pthread_cond_t done; /* signalled by the last worker to finish: the controller must not spin */
	pthread_cond_t start;
	enum {
		START_WAIT,
		START_GO,
		START_ABORT
	} state; /* Sync: under lock; nobody starts before all threads exist */
};

struct thread_arg {
	struct mw_run *run;
	uint32_t id;
};

static bool stopping(const struct mw_run *run)
{
	return __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
}

/* --- bursts ------------------------------------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Steps until something else than an update is due: a mix, a sample, a new rate, the end. */
static uint64_t burst_length(const struct mw_worker *w, uint64_t end)
{
	const struct mw_run *run = w->run;
	if (w->recorder && !w->recorder->full) /* --estimate trace: these steps are recorded one by one */
		return 0;
	uint64_t until = least(least(end, w->rate_step), mw_timeline_next(run->timeline, w->timeline_at)),
		 mix = mw_next_mix(w), every = (uint64_t)run->opt->sample_every;
	if (mix != UINT64_MAX)
		until = least(until, mix); /* the step that mixes goes through the phases */
	if (every)
		until = least(until, (w->step + every - 1) / every * every); /* so does a sampled one */
	/* probes are looked at between bursts */
	until = least(until, mw_control_next_look(run->control, w->id));
	/* an entry "at once" may have been published since the knobs were looked at */
	return until > w->step ? until - w->step : 0;
}

static void run_burst(struct mw_worker *w, uint32_t n)
{
	struct mw_run *run = w->run;
	float margin;
	struct mw_burst b = { .data = w->data,
		.linear = run->form == MW_FORM_DENSE ? run->model->linear_dense : run->model->linear,
		.x = run->replicas.row[run->protocol->push_row[w->id]].x,
		.row = w->rows_buf + w->rows_at,
		.n = n,
		.ahead = w->rows_have - w->rows_at,
		.fetch = w->fetch + (uint64_t)w->rows_at * w->fetch_lines * 16,
		.fetch_lines = w->fetch_lines,
		.own = run->replicas.row[run->protocol->push_row[w->id]].owned,
		.rate = w->rate,
		.weight = run->protocol->push_weight,
		.atomic = run->replicas.access == MW_ACCESS_ATOMIC &&
			  !run->replicas.row[run->protocol->push_row[w->id]].owned,
		.tally = run->opt->tally ? &run->replicas.row[run->protocol->push_row[w->id]].tally : NULL,
		.pushes = &w->counters->pushes,
		.examples = &w->counters->examples,
		.steps = &w->counters->steps,
		.margin = &margin };
	if (run->form == MW_FORM_SPARSE) {
		b.optim = run->optim;
		b.state = w->state;
		b.t = w->step;
		b.group = w->pool->group;
		b.delta = w->pool->d;
	}
	mw_burst_run(&b);
	mw_note_loss(w, mw_link_loss(b.linear->link, margin, w->data->y[b.row[n - 1]]));
	w->rows_at += n;
	w->step += n;
}

static bool try_burst(struct mw_worker *w, uint64_t end)
{
	mw_step_knobs(w);
	uint64_t n = burst_length(w, end);
	if (n)
		n = least(n, mw_step_rows(w));
	if (n)
		run_burst(w, (uint32_t)n);
	return n > 0;
}

/* --- steps ------------------------------------------------------------------------------------------------------- */

static bool sampled(const struct mw_worker *w)
{
	uint64_t every = (uint64_t)w->run->opt->sample_every;
	if (w->run->stale.kind != MW_STALE_NONE) /* the policy wants to know every update's staleness */
		return true;
	return every && w->step % every == 0;
}

/* Before a step, or (late) before its push: probe columns that the sampler of --estimate asks for. */
static void serve(struct mw_worker *w, bool late)
{
	if (w->run->control && mw_control_asks(w->run->control, w->id, late))
		mw_segments_inject(w);
}

/* Between two steps: a look at the probes, where one is due. */
static void watch(struct mw_worker *w)
{
	if (w->step >= mw_control_next_look(w->run->control, w->id))
		mw_segments_watch(w);
}

static void straggle(const struct mw_worker *w)
{
	if (!mw_sched_is_zero(w->knobs->straggler))
		mw_delay(mw_sched_value(w->knobs->straggler, w->run->seed, w->id, w->step));
}

static uint64_t slowest_clock(const struct mw_run *run)
{
	uint64_t min = UINT64_MAX;
	for (uint32_t i = 0; i < run->n_workers; i++)
		min = least(min, __atomic_load_n(&run->counters[i].steps, __ATOMIC_ACQUIRE));
	return min;
}

/* SSP: wait until no worker is more than the bound behind; then fetch a view that is new enough. False: stopping. */
static bool pass_gate(struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_run *run = w->run;
	struct mw_gate_try t = { 0 };
	uint64_t slowest;
	if (run->ssp_bound < 0)
		return true;
	double start = 0;
	while ((slowest = slowest_clock(run)) + (uint64_t)run->ssp_bound < w->step && !stopping(run)) {
		if (!t.n)
			start = mw_now_s();
		mw_gate_wait(&run->gate, &t);
	}
	mw_gate_pass(&run->gate, &t);
	if (t.n)
		w->wait_s += mw_now_s() - start;
	if (stopping(run))
		return false;
	mw_step_fetch(w, bench, slowest);
	return true;
}

static void event_step(struct mw_worker *w, struct mw_bench *bench)
{
	mw_step_begin(w, bench, sampled(w));
	straggle(w);
	serve(w, true);
	mw_step_finish(w, bench);
	if (w->run->ssp_bound >= 0)
		mw_gate_signal(&w->run->gate);
}

static void run_events(struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_run *run = w->run;
	uint64_t end = run->dealer ? UINT64_MAX : run->segment_end;
	bool helper = run->helps && run->protocol->slot[w->id].n; /* the first worker of a node */
	while (w->step < end && !stopping(run) && (!run->dealer || mw_step_has_rows(w))) {
		serve(w, false);
		watch(w);
		if (helper && mw_help_is_open(&run->help))
			mw_help_join(&run->help, &run->executor, &bench->exec);
		if (run->bursts && try_burst(w, end))
			continue;
		if (!pass_gate(w, bench))
			break;
		event_step(w, bench);
	}
}

static bool gate_open(const struct mw_worker *w, uint64_t *slowest)
{
	*slowest = w->run->ssp_bound < 0 ? 0 : slowest_clock(w->run);
	return w->run->ssp_bound < 0 || *slowest + (uint64_t)w->run->ssp_bound >= w->step;
}

/* Make the next delta, unless the gate is closed. */
static void begin_turn(struct mw_worker *w, struct mw_bench *bench)
{
	uint64_t slowest;
	if (w->begun || !gate_open(w, &slowest))
		return;
	mw_step_fetch(w, bench, slowest);
	mw_step_begin(w, bench, sampled(w));
	straggle(w);
	w->begun = true;
}

/*
 * Wait for this worker's turn. Turns that passed (behind a gate) count too; both numbers are written by whose turn it is.
 * Read one after the other they may be of different moments, but their sum can't go beyond a turn of this worker's that
 * it hasn't taken, so if it says that the turn is its own, it is. False: the segment ends.
 */
static bool await_turn(struct mw_worker *w)
{
	struct mw_run *run = w->run;
	struct mw_gate_try t = { 0 };
	uint64_t turn;
	while ((turn = __atomic_load_n(&run->turn, __ATOMIC_ACQUIRE)) < run->segment_end && !stopping(run) &&
		mw_turn_of(run, turn + __atomic_load_n(&run->sim_skipped, __ATOMIC_ACQUIRE)) != w->id)
		mw_gate_wait(&run->gate, &t);
	mw_gate_pass(&run->gate, &t);
	return turn < run->segment_end && !stopping(run);
}

/* --activation rr|random: pushes (and mixes) happen in a given order, one at a time. */
static void run_turns(struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_run *run = w->run;
	uint64_t slowest;
	for (;;) {
		serve(w, false);
		begin_turn(w, bench);
		if (!await_turn(w))
			return;       /* what has begun goes on in the next segment */
		begin_turn(w, bench); /* the gate may have opened meanwhile */
		if (w->begun) {
			serve(w, true);
			watch(w); /* nobody else's step is under way */
			mw_step_finish(w, bench);
			w->begun = false;
			if (gate_open(w, &slowest)) /* fetches are mixes: one at a time too */
				mw_step_fetch(w, bench, slowest);
			__atomic_store_n(&run->turn, run->turn + 1, __ATOMIC_RELEASE);
		} else {
			__atomic_store_n(&run->sim_skipped, run->sim_skipped + 1, __ATOMIC_RELEASE);
		}
		mw_gate_signal(&run->gate);
	}
}

/* All take over changes at the same own step: they are published before the second barrier. */
static void publish(struct mw_run *run, uint64_t step)
{
	if (run->steer)
		mw_steer_publish(run->steer, step);
	else
		mw_timeline_tick(run->timeline, run->train_s + (mw_now_s() - run->segment_s), step);
}

/* The worker's node at a barrier. */
static uint32_t group_of(const struct mw_worker *w)
{
	return (uint32_t)w->run->layout->slot[w->id].node;
}

/* False: another worker stops and will not come. */
static bool meet_and_mix(struct mw_worker *w, struct mw_bench *bench, size_t lo, size_t hi)
{
	struct mw_run *run = w->run;
	double start = mw_now_s();
	bool met = mw_barrier_wait_in(&run->round_barrier, group_of(w));
	w->wait_s += mw_now_s() - start;
	if (!met)
		return false;
	mw_round_mix(w, bench, lo, hi);
	if (w->id == 0)
		publish(run, w->step + 1);
	start = mw_now_s();
	met = mw_barrier_wait_in(
		&run->round_barrier, group_of(w)); /* nobody goes on before all coordinates are mixed */
	w->wait_s += mw_now_s() - start;
	return met;
}

static void run_rounds(struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_run *run = w->run;
	size_t dim = run->replicas.dim, lo = dim * w->id / run->n_workers,
	       hi = dim * (w->id + 1) / run->n_workers;
	lo &= ~(size_t)31; /* whole cache lines each */
	if (w->id + 1 < run->n_workers)
		hi &= ~(size_t)31;
	while (w->step < run->segment_end) {
		if (stopping(run)) { /* the others may be waiting for this one already */
			mw_barrier_cancel(&run->round_barrier);
			break;
		}
		serve(w, false);
		watch(w);
		if (run->bursts && try_burst(w, run->segment_end))
			continue;
		mw_step_begin(w, bench, sampled(w));
		straggle(w);
		mw_step_finish(w, bench);
		if (mw_round_due(w) && !meet_and_mix(w, bench, lo, hi))
			break; /* the step is not counted: a resumed run does it again, with its mix */
		mw_round_end(w, bench);
	}
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

static void train(struct mw_worker *w, struct mw_bench *bench)
{
	if (w->run->protocol->clock == MW_CLOCK_ROUND)
		run_rounds(w, bench);
	else if (w->run->activation != MW_ACT_FREE)
		run_turns(w, bench);
	else
		run_events(w, bench);
}

static void report_done(struct mw_run *run)
{
	struct mw_threads *t = run->engine;
	if (__atomic_add_fetch(&t->finished, 1, __ATOMIC_ACQ_REL) < run->n_workers)
		return;
	pthread_mutex_lock(&t->lock);
	pthread_cond_signal(&t->done);
	pthread_mutex_unlock(&t->lock);
}

static void obey(struct mw_run *run, struct mw_worker *w, struct mw_bench *bench)
{
	struct mw_threads *t = run->engine;
	switch (t->command) {
	case CMD_TRAIN:
		train(w, bench);
		/* libraries have been initialised and used by now (OpenBLAS): some of them move threads */
		w->strayed |= !mw_layout_verify_worker(run->layout, w->id);
		break;
	case CMD_PARTS:
		for (uint32_t part = w->id; part < MW_EVAL_PARTS; part += run->n_workers)
			t->fn(run, bench, part, t->arg);
		break;
	case CMD_FLUSH: mw_step_flush(w, bench); break;
	case CMD_EXIT: break;
	}
}

static void *thread_main(void *p)
{
	struct thread_arg arg = *(struct thread_arg *)p;
	struct mw_run *run = arg.run;
	struct mw_threads *t = run->engine;
	struct mw_err *err = &t->start_err[arg.id];
	struct mw_bench *bench = &run->bench[arg.id];
	free(p);
	pthread_mutex_lock(&t->lock);
	while (t->state == START_WAIT)
		pthread_cond_wait(&t->start, &t->lock);
	bool go = t->state == START_GO;
	pthread_mutex_unlock(&t->lock);
	if (!go)
		return NULL;
	/* Bind first: memory that is touched next is then near. */
	if (mw_layout_bind_worker(run->layout, arg.id, err) == 0 &&
		mw_bench_init(bench, run, (uint32_t)run->layout->slot[arg.id].node, err) == 0)
		mw_worker_new(run, arg.id, &run->worker[arg.id], err);
	if (!err->code && !mw_layout_verify_worker(run->layout, arg.id))
		mw_err_set(err, MW_ERESOURCE,
			"worker %u was moved off its place while it started, by a library or another "
			"process; start again, or "
			"use --bind none",
			arg.id);
	report_done(run);
	for (;;) {
		mw_barrier_wait_in(&run->barrier, (uint32_t)run->layout->slot[arg.id].node);
		if (t->command == CMD_EXIT)
			return NULL;
		obey(run, run->worker[arg.id], bench);
		report_done(run);
	}
}

/* Seconds of training time that a caller's limit leaves; a day where there is none. */
static double left_s(const struct mw_run *run)
{
	if (!run->hooks || run->hooks->limit_s <= 0)
		return 86400;
	return run->hooks->limit_s - (run->train_s + (mw_now_s() - run->segment_s));
}

/* How long the controlling thread sleeps at a time: 50 ms, less where samples are closer or a limit is near. */
static long tick_ns(const struct mw_run *run, bool training)
{
	double tick = 0.05, every = run->opt->metrics_every, left = training ? left_s(run) : tick;
	tick = every > 0 && every < tick ? every : tick;
	tick = left < tick ? left > 0.001 ? left : 0.001 : tick;
	return (long)(tick * 1e9);
}

/* Wait until every worker has reported; writes metrics, draws the progress line and looks for signals meanwhile. */
static void wait_done(struct mw_run *run, bool training)
{
	struct mw_threads *t = run->engine;
	pthread_mutex_lock(&t->lock);
	while (__atomic_load_n(&t->finished, __ATOMIC_ACQUIRE) < run->n_workers) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += tick_ns(run, training);
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&t->done, &t->lock, &until);
		if (training) {
			if (mw_run_interrupted(run) || left_s(run) <= 0)
				__atomic_store_n(&run->stop, 1, __ATOMIC_RELAXED);
			if (run->protocol->clock == MW_CLOCK_EVENT && !run->steer)
				mw_timeline_tick(
					run->timeline, run->train_s + (mw_now_s() - run->segment_s), 0);
			mw_metrics_tick(run);
			mw_progress_draw(run);
		}
	}
	pthread_mutex_unlock(&t->lock);
}

static void command(struct mw_run *run, enum command c)
{
	struct mw_threads *t = run->engine;
	t->command = c;
	__atomic_store_n(&t->finished, 0, __ATOMIC_RELAXED);
	mw_barrier_wait(&run->barrier);
}

static int start_thread(struct mw_run *run, uint32_t id, struct mw_err *err)
{
	struct mw_threads *t = run->engine;
	struct thread_arg *arg = malloc(sizeof(*arg));
	if (!arg)
		MW_FAIL(err, RESOURCE, "out of memory starting worker %u", id);
	*arg = (struct thread_arg){ run, id };
	int code = pthread_create(&t->thread[id], NULL, thread_main, arg);
	if (code) {
		free(arg);
		MW_FAIL(err, RESOURCE,
			"worker %u of %u: no thread could be created (%s); fewer --workers, or raise the "
			"limit (ulimit -u, "
			"the cgroup's pids.max)",
			id, run->n_workers, strerror(code));
	}
	t->n_started++;
	return 0;
}

static int start(struct mw_run *run, struct mw_err *err)
{
	struct mw_threads *t = mw_alloc(sizeof(*t), "the thread table", err);
	bool crowded = run->n_workers >= run->layout->usable_pus;
	if (!t)
		return err->code;
	run->engine = t;
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->done, &attr);
	pthread_cond_init(&t->start, NULL);
	pthread_condattr_destroy(&attr);
	t->thread = mw_alloc_array(run->n_workers, sizeof(*t->thread), "the thread table", err);
	t->start_err = mw_alloc_array(run->n_workers, sizeof(*t->start_err), "the thread table", err);
	if (!t->thread || !t->start_err)
		return err->code;
	/* More threads than PUs: looking again and again only keeps the others from running. */
	uint32_t spins = run->n_workers > run->layout->usable_pus ? 20 : 4000;
	MW_TRY(mw_barrier_init_nodes(&run->round_barrier, run->layout, 0, spins, err));
	mw_gate_init(&run->gate, spins);
	MW_TRY(mw_barrier_init_nodes(&run->barrier, run->layout, 1, crowded ? 20 : 2000, err));
	int code = 0;
	for (uint32_t i = 0; i < run->n_workers && !code; i++)
		code = start_thread(run, i, err);
	pthread_mutex_lock(&t->lock);
	t->state = code ? START_ABORT : START_GO;
	pthread_cond_broadcast(&t->start);
	pthread_mutex_unlock(&t->lock);
	if (code)
		return code;
	wait_done(run, false);
	for (uint32_t i = 0; i < run->n_workers; i++)
		if (t->start_err[i].code)
			return mw_err_set(err, t->start_err[i].code, "%s", t->start_err[i].msg);
	return 0;
}

static void segment(struct mw_run *run)
{
	mw_deal_segment(run);
	command(run, CMD_TRAIN);
	wait_done(run, true);
}

static void parts(struct mw_run *run, mw_part_fn *fn, void *arg)
{
	struct mw_threads *t = run->engine;
	t->fn = fn;
	t->arg = arg;
	command(run, CMD_PARTS);
	wait_done(run, false);
}

static void flush(struct mw_run *run)
{
	command(run, CMD_FLUSH);
	wait_done(run, false);
}

static void stop(struct mw_run *run)
{
	struct mw_threads *t = run->engine;
	if (!t)
		return;
	if (t->state == START_GO) {
		t->command = CMD_EXIT;
		mw_barrier_wait(&run->barrier);
	}
	for (uint32_t i = 0; i < t->n_started; i++)
		pthread_join(t->thread[i], NULL);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->start);
	mw_barrier_fini(&run->barrier);
	mw_barrier_fini(&run->round_barrier);
	mw_free(t->thread);
	mw_free(t->start_err);
	mw_free(t);
	run->engine = NULL;
}

const struct mw_engine_ops mw_engine_threads = { "threads", start, segment, parts, flush, stop };
