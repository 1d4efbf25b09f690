/* snapshot.c: see snapshot.h. */
#include "run/snapshot.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/mem.h"

void mw_snapshot_columns(const struct mw_run *run, uint32_t block, float *out)
{
	size_t cols = run->probe_columns, from = run->replicas.extra_at + block * cols;
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
	/* Sync: set by the main thread when the segment is over; relaxed, polled. */
	uint32_t stop;
};

/* Native steps between two looks that are of use: a quarter of the distance of ages. */
static double wanted_steps(const struct mw_control *c)
{
	double least = c->passive ? (double)mw_passive_stride(c->passive) / 8 : INFINITY;
	const uint64_t *age;
	for (uint32_t b = 0; c->cols && b < c->blocks; b++) {
		mw_probe_ages(c->probe[b], &age);
		least = fmin(least, (double)(age[1] - age[0]) / 4);
	}
	return least;
}

static void rest(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };
	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

static double cpu_s(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * The sampler's own time against its share of what this process has had, over all stretches between evaluations: one that
 * began anew with each could finish a probe segment for nothing every time. Workers that sleep between steps leave a CPU
 * free, and are too slow to be watched any less.
 */
struct budget {
	double process_s, own_s; /* clocks, less what earlier stretches took */
	double share;
};

static void budget_init(struct budget *b, const struct mw_control *c)
{
	bool sleepy = !mw_sched_is_zero(c->run->straggler);
	*b = (struct budget){ cpu_s(CLOCK_PROCESS_CPUTIME_ID) - c->process_s,
		cpu_s(CLOCK_THREAD_CPUTIME_ID) - c->sampler_s, sleepy ? 1 : c->run->opt->sampler_share };
}

/* How much CPU time the others have still to take before the sampler is within its share; at most 0: it is. */
static double overdrawn_s(const struct budget *b)
{
	double all = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - b->process_s;
	return b->share < 1 ? (cpu_s(CLOCK_THREAD_CPUTIME_ID) - b->own_s) / b->share - all : 0;
}

static void *sample(void *arg)
{
	struct mw_sampler *s = arg;
	struct mw_control *c = s->control;
	struct mw_err err = { 0 };
	double shortest = 1 / c->run->opt->sample_rate, start = mw_now_s();
	uint64_t first = mw_native_steps(c->run);
	struct budget budget;
	budget_init(&budget, c);
	mw_layout_bind_controller(c->run->layout, &err); /* where it floats it floats */
	prctl(PR_SET_TIMERSLACK, 1000UL);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		double over = c->state == MW_SEGMENT_NONE ? overdrawn_s(&budget) : 0;
		if (over > 0) { /* waking up costs too */
			rest(fmin(fmax(over / c->run->n_workers, 0.002), 0.02));
			continue;
		}
		uint64_t t = mw_native_steps(c->run);
		mw_control_look(c, (double)t, false);
		if (c->state == MW_SEGMENT_NONE) /* estimates take a while */
			mw_control_publish(c);
		double speed = (double)(t - first) / (mw_now_s() - start); /* native steps a second */
		double pause = speed > 0 ? wanted_steps(c) / speed : shortest;
		rest(fmin(fmax(pause, shortest), 0.05));
	}
	c->sampler_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - budget.own_s;
	c->process_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - budget.process_s;
	return NULL;
}

int mw_sampler_start(struct mw_control *c, struct mw_err *err)
{
	struct mw_sampler *s = mw_alloc(sizeof(*s), "the sampler", err);
	if (!s)
		return err->code;
	s->control = c;
	int code = pthread_create(&s->thread, NULL, sample, s);
	if (code) {
		mw_free(s);
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
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
	mw_free(s);
	c->sampler = NULL;
}
