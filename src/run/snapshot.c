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

/* Native steps until a look is of use: a quarter of the distance of ages, or the next segment's beginning. */
static double wanted_steps(const struct mw_control *c, double t)
{
	double least = c->passive ? (double)mw_passive_stride(c->passive) / 8 : INFINITY;
	const uint64_t *age;
	double begin = mw_segments_begin(c);
	if (c->cols && mw_segments_idle(c) && begin > t)
		return fmin(least, begin - t);
	for (uint32_t b = 0; c->cols && b < c->blocks; b++) {
		mw_probe_ages(c->probe[b], &age);
		least = fmin(least, (double)(age[1] - age[0]) / 4);
	}
	return least;
}

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
 * The sampler's own time against its share of what this process has had, over all stretches between evaluations: one that
 * began anew with each could finish a probe segment for nothing every time. A probe segment, with what is made of it, has
 * to be paid for before it begins, by the cost of those before: none is cut short that costs less than twice as much, since
 * the long ones are those in which workers are slow. Workers that sleep between steps leave a CPU free, and are too slow to
 * be watched any less.
 */
struct budget {
	double process_s, own_s; /* clocks, less what earlier stretches took */
	double share;
	double began_s; /* what had been spent when this look or probe segment began */
	double cpus;    /* that the others can keep busy */
	double wake_s;  /* what resting costs, each time: going to sleep and waking up */
	double toll_s;  /* and what that costs the worker that has to make way, each time */
	double tolls_s; /* so far */
};

/* What nobody knows yet: some ten looks of two workers' rows. */
#define FIRST_COST_S 1e-3
/* What once took long may have been the machine. */
#define FORGET 0.95
/* Of a share that is used for nothing but waking up to see that there is nothing to spend yet, a fourth at most. */
#define WAKE_PART    0.25
#define FIRST_WAKE_S 10e-6
/*
 * A worker that is interrupted loses more than the time that the sampler's clock shows: on a virtual machine of 2 CPUs, both
 * at work, a program that only woke up 930 times a second took 3.5 % from them (`cached` on sparse rows), 75 us each time,
 * of which 17 by its own clock.
 */
#define TOLL_S 60e-6
/* Where steps are too fast for snapshots, segments are tried less often: those that were in vain are paid four times. */
#define MISSED 3

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
		.tolls_s = c->tolls_s };
	c->watch_s = c->watch_s > 0 ? c->watch_s : FIRST_COST_S;
}

/* What the sampler has cost. */
static double spent_s(const struct budget *b)
{
	return cpu_s(CLOCK_THREAD_CPUTIME_ID) - b->own_s + b->tolls_s;
}

/* CPU time that the others have still to take before the sampler may take `more`; at most 0: it may. */
static double lacking_s(const struct budget *b, double more)
{
	double all = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - b->process_s;
	return b->share < 1 ? (spent_s(b) + more) / b->share - all : 0;
}

/* How long the others take at least until that is so. */
static double soonest_s(const struct budget *b, double lacking)
{
	double wake = (b->wake_s + b->toll_s) / b->share;
	return fmax(lacking + wake, wake / WAKE_PART) / b->cpus;
}

/* A look, and what is to be made of it. */
static void look(struct mw_control *c, struct budget *b, uint64_t t)
{
	bool probing = !mw_segments_idle(c);
	if (!probing)
		b->began_s = spent_s(b);
	mw_control_look(c, (double)t, false);
	if (!c->ended && !mw_segments_idle(c))
		return;
	mw_control_publish(c); /* estimates take a while */
	double cost = spent_s(b) - b->began_s;
	b->began_s += cost;
	if (probing && c->missed)
		b->tolls_s += MISSED * cost;
	if (probing || !c->cols) /* other looks came too early for anything */
		c->watch_s *= FORGET;
	c->watch_s = fmax(c->watch_s, cost);
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
	double shortest = 1 / c->run->opt->sample_rate, start = mw_now_s(), pause;
	uint64_t first = mw_native_steps(c->run);
	struct budget budget;
	budget_init(&budget, c);
	mw_layout_bind_controller(c->run->layout, &err); /* where it floats it floats */
	prctl(PR_SET_TIMERSLACK, 1000UL);
	do {
		bool idle = mw_segments_idle(c);
		double lacking = lacking_s(&budget, idle ? c->watch_s : -c->watch_s);
		c->unpaid = !idle && lacking_s(&budget, c->watch_s) > 0;
		if (lacking > 0) {
			pause = soonest_s(&budget, lacking);
			continue;
		}
		uint64_t t = mw_native_steps(c->run);
		look(c, &budget, t);
		double speed = (double)(t - first) / (mw_now_s() - start); /* native steps a second */
		pause = speed > 0 ? wanted_steps(c, (double)t) / speed : shortest;
		pause = fmin(fmax(pause, shortest), 0.05);
	} while (rest(s, &budget, pause));
	c->tolls_s = budget.tolls_s;
	c->sampler_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - budget.own_s;
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
