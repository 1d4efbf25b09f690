/* snapshot.c: see snapshot.h. */
#include "run/snapshot.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/segments.h"

void mw_snapshot_columns(const struct mw_run *run, size_t from, size_t cols, float *out)
{
	for (uint32_t i = 0; i < run->replicas.n; i++)
		for (size_t k = 0; k < cols; k++)
			*out++ = mw_ld(&run->replicas.row[i].x[from + k]);
}

void mw_snapshot_parameters(const struct mw_run *run, uint32_t n, float *out)
{
	size_t dim = run->replicas.dim / run->n_blocks;
	for (uint32_t i = 0; i < run->replicas.n; i++)
		for (uint32_t k = 0; k < n; k++)
			*out++ = mw_ld(&run->replicas.row[i].x[dim * k / n]);
}

uint64_t mw_native_steps(const struct mw_run *run)
{
	if (run->protocol->clock == MW_CLOCK_ROUND)
		return __atomic_load_n(&run->counters[0].steps, __ATOMIC_RELAXED);
	return mw_total_pushes(run);
}

/* --- sampler ------------------------------------------------------------------------------------------------------- */

struct mw_sampler {
	pthread_t thread;
	struct mw_control *control;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool stop; /* Sync: set by the main thread when the segment is over; under the lock */
};

/* For so long, or until the sampler is to stop: false. */
static bool sleep_for(struct mw_sampler *s, double seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	double ns = (double)t.tv_nsec + fmin(seconds, 1e6) * 1e9;
	t.tv_sec += (time_t)(ns / 1e9);
	t.tv_nsec = (long)fmod(ns, 1e9);
	pthread_mutex_lock(&s->lock);
	while (!s->stop && pthread_cond_timedwait(&s->told, &s->lock, &t) == 0)
		;
	bool go_on = !s->stop;
	pthread_mutex_unlock(&s->lock);
	return go_on;
}

static double cpu_s(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * What sampling takes against its share of what this process has had, over all stretches between evaluations: the sampler's own
 * time, what injections and snapshots take from the workers, and a toll for every time it wakes up. A probe segment has to be
 * paid for before it begins, by the mean cost of those before; none is cut short, since the long ones are those in which
 * workers are slow. Workers that sleep between steps leave a CPU free, and are too slow to be watched any less.
 */
struct budget {
	double process_s, own_s; /* clocks, less what earlier stretches took */
	double share;
	double began_s; /* what had been spent when the last segment ended, or this one began if none was under way */
	double begun_s; /* when the last one began */
	double cpus;    /* that the others can keep busy */
	double wake_s;  /* what resting costs, each time: going to sleep and waking up */
	double toll_s;  /* and what that costs the worker that has to make way, each time */
	double tolls_s; /* so far */
	double waits;   /* workers that stand still while one of them does */
	double start_s;
	uint64_t first; /* native step then */
};

/* What nobody knows yet: two wakings, and what is made of a segment of two workers. */
#define FIRST_COST_S 3e-4
/* Segments that the mean cost is taken over, about: what once took long may have been the machine. */
#define REMEMBERED 8
/* Of a share that is used for nothing but waking up to see that there is nothing to spend yet, a fourth at most. */
#define WAKE_PART    0.25
#define FIRST_WAKE_S 10e-6
/*
 * A worker that is interrupted loses more than the time that the sampler's clock shows: on a virtual machine of 2 CPUs, both
 * at work, a program that only woke up 930 times a second took 3.5 % from them (`cached` on sparse rows), 75 us each time,
 * of which 17 by its own clock.
 */
#define TOLL_S 60e-6
/* Costs vary: where the next segment has to be paid for first, it is by then. */
#define SURELY 1.1
/* The speed of a run is not known well at its beginning: no rest is longer than this share of what has passed. */
#define TRUSTED   0.25
#define LONGEST_S 0.05

/* What sampling has cost, to all workers together. */
static double spent_s(const struct budget *b, const struct mw_control *c)
{
	return b->waits * (cpu_s(CLOCK_THREAD_CPUTIME_ID) - b->own_s + b->tolls_s + mw_segments_workers_s(c));
}

/*
 * Where all CPUs are busy. A round waits for its last worker; who is interrupted while it holds a lock keeps another one
 * waiting: of dense rows under async-ring, locked, a worker holds its row's most of the time.
 */
static double waiting(const struct mw_run *run)
{
	if (run->protocol->clock == MW_CLOCK_ROUND)
		return run->layout->usable_pus;
	bool locked = run->replicas.access >= MW_ACCESS_LOCKED &&
		      !run->replicas.row[run->protocol->push_row[0]].owned;
	return locked && run->n_workers > 1 ? 2 : 1; /* a copy of its own (cached) needs no lock */
}

static void budget_init(struct budget *b, struct mw_control *c)
{
	const struct mw_run *run = c->run;
	bool alone = run->n_workers < run->layout->usable_pus;
	*b = (struct budget){ .process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - c->process_s,
		.own_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - c->sampler_s,
		.share = mw_sched_is_zero(run->straggler) ? run->opt->sampler_share : 1,
		.cpus = alone ? run->n_workers : run->layout->usable_pus,
		.wake_s = FIRST_WAKE_S,
		.toll_s = alone ? 0 : TOLL_S,
		.tolls_s = c->tolls_s,
		.waits = alone ? 1 : waiting(run),
		.start_s = mw_now_s(),
		.first = mw_native_steps(run) };
	b->begun_s = b->start_s; /* a segment of the stretch before may go on */
	b->began_s = spent_s(b, c);
	c->watch_s = c->watch_s > 0 ? c->watch_s : FIRST_COST_S;
}

/* CPU time that the others have still to take before `more` may be spent; at most 0: it may. */
static double lacking_s(const struct budget *b, const struct mw_control *c, double more)
{
	double all = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - b->process_s;
	return b->share < 1 ? (spent_s(b, c) + more) / b->share - all : 0;
}

/* How long the others take at least until that is so. */
static double soonest_s(const struct budget *b, double lacking)
{
	double wake = b->waits * (b->wake_s + b->toll_s) / b->share;
	return fmax(lacking + wake, wake / WAKE_PART) / b->cpus;
}

/* Take the segments that are over apart. Estimates take a while, and are part of their cost. */
static void end(struct mw_control *c, struct budget *b)
{
	uint32_t n = c->cols ? mw_segments_end(c) : 0;
	if (!n)
		return;
	mw_control_publish(c);
	double cost = spent_s(b, c) - b->began_s;
	b->began_s += cost;
	c->watch_s += (cost / n - c->watch_s) / REMEMBERED;
}

/* What is due at native step t, if there is enough to spend; returns what lacks. */
static double look(struct mw_control *c, struct budget *b, double t)
{
	bool none = c->cols && !c->used;
	double lacking = lacking_s(b, c, c->cols && !mw_segments_full(c) ? c->watch_s : 0),
	       before = spent_s(b, c);
	if (lacking > 0)
		return lacking;
	if (c->cols && mw_segments_begin(c, t)) {
		b->began_s = none ? before : b->began_s;
		b->begun_s = mw_now_s();
	}
	if (c->passive) {
		mw_control_look_at_parameters(c, t);
		if (!c->cols)
			mw_control_publish(c);
	}
	return 0;
}

/*
 * While segments of all sets are under way, the time at least until one can be taken apart and the next one is paid for. Where a
 * worker has lost its CPU that may take any time, and to look again and again would only keep it from coming back.
 */
static double full_s(const struct mw_control *c, const struct budget *b)
{
	double passed = mw_now_s() - b->begun_s,
	       paid = b->share < 1 ? SURELY * c->watch_s / b->share / b->cpus : 0;
	return fmax(passed, paid - passed);
}

/* Until the next look is of use. */
static double pause_s(const struct mw_control *c, const struct budget *b, double t, double lacking)
{
	double passed = mw_now_s() - b->start_s, speed = (t - (double)b->first) / passed, pause = INFINITY,
	       shortest = 1 / c->run->opt->sample_rate;
	if (c->cols && speed > 0)
		pause = mw_segments_wait(c, t) / speed;
	if (c->cols && mw_segments_full(c))
		pause = fmax(speed > 0 ? pause : 0, full_s(c, b));
	if (c->passive && speed > 0)
		pause = fmin(pause, (double)mw_passive_stride(c->passive) / 8 / speed);
	if (!(speed > 0))
		pause = fmin(pause, shortest);
	pause = fmin(fmax(pause, shortest), fmax(LONGEST_S, TRUSTED * passed));
	return lacking > 0 ? fmax(pause, soonest_s(b, lacking)) : pause;
}

static bool rest(struct mw_sampler *s, struct budget *b, double seconds)
{
	double asleep = cpu_s(CLOCK_THREAD_CPUTIME_ID);
	bool go_on = sleep_for(s, seconds);
	b->wake_s += (cpu_s(CLOCK_THREAD_CPUTIME_ID) - asleep - b->wake_s) / 16;
	b->tolls_s += b->toll_s;
	return go_on;
}

static void *sample(void *arg)
{
	struct mw_sampler *s = arg;
	struct mw_control *c = s->control;
	struct mw_err err = { 0 };
	struct budget budget;
	double t, lacking;
	budget_init(&budget, c);
	mw_layout_bind_controller(c->run->layout, &err); /* where it floats it floats */
	prctl(PR_SET_TIMERSLACK, 1000UL);
	do {
		t = (double)mw_native_steps(c->run);
		end(c, &budget);
		lacking = look(c, &budget, t);
	} while (rest(s, &budget, pause_s(c, &budget, t, lacking)));
	c->tolls_s = budget.tolls_s;
	c->sampler_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - budget.own_s;
	c->workers_s = mw_segments_workers_s(c);
	c->process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - budget.process_s;
	return NULL;
}

static void dispose(struct mw_sampler *s)
{
	pthread_cond_destroy(&s->told);
	pthread_mutex_destroy(&s->lock);
	mw_free(s);
}

int mw_sampler_start(struct mw_control *c, struct mw_err *err)
{
	struct mw_sampler *s = mw_alloc(sizeof(*s), "the sampler", err);
	if (!s)
		return err->code;
	s->control = c;
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->told, &clock);
	pthread_condattr_destroy(&clock);
	pthread_mutex_init(&s->lock, NULL);
	int code = pthread_create(&s->thread, NULL, sample, s);
	if (code) {
		dispose(s);
		MW_FAIL(err, RESOURCE, "no thread for the sampler of --estimate could be created: %s",
			strerror(code));
	}
	c->sampler = s;
	return 0;
}

void mw_sampler_stop(struct mw_control *c)
{
	struct mw_sampler *s = c->sampler;
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->told);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	dispose(s);
	c->sampler = NULL;
}
