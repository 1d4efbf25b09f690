/* bench_latency.c: one-way latency between two CPUs: two pinned threads hand a cache line to each other. */
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "run/bench.h"

#define END    UINT32_MAX
#define CHUNK  200 /* handovers that are timed together */
#define CHUNKS 40
#define ENOUGH 0.05 /* seconds */

struct line {
	/* Sync: written by the thread whose turn it is (parity), release; the other acquires it. END: no more turns. */
	uint32_t turn;
	char rest[124];
} __attribute__((aligned(128)));

struct pair {
	struct line line;
	cpu_set_t cpu[2];
};

/* Wait for turn t and pass it on. False: there are no more turns. */
static bool play(struct line *line, uint32_t t)
{
	uint32_t seen;
	while ((seen = __atomic_load_n(&line->turn, __ATOMIC_ACQUIRE)) != t)
		if (seen == END)
			return false;
	__atomic_store_n(&line->turn, t + 1, __ATOMIC_RELEASE);
	return true;
}

static void *other(void *arg)
{
	struct pair *p = arg;
	pthread_setaffinity_np(pthread_self(), sizeof(p->cpu[1]), &p->cpu[1]);
	for (uint32_t t = 1; play(&p->line, t); t += 2)
		;
	return NULL;
}

/* The best chunk: a thread that is taken off its CPU meanwhile costs milliseconds. */
static double best_chunk(struct line *line)
{
	double begin = mw_now_s(), best = 1e9;
	uint32_t t = 0;
	for (int i = 0; i < CHUNKS && mw_now_s() - begin < ENOUGH; i++) {
		double start = mw_now_s(), ns;
		for (uint32_t end = t + CHUNK; t < end; t += 2)
			play(line, t);
		ns = (mw_now_s() - start) / CHUNK * 1e9;
		best = ns < best ? ns : best;
	}
	while (__atomic_load_n(&line->turn, __ATOMIC_ACQUIRE) != t)
		; /* the other's turn must be over */
	__atomic_store_n(&line->turn, END, __ATOMIC_RELEASE);
	return best;
}

/* The first two CPUs of a set. Returns how many there were. */
static int first_two(const cpu_set_t *all, cpu_set_t cpu[2])
{
	int n = 0;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, all)) {
			CPU_ZERO(&cpu[n]);
			CPU_SET(i, &cpu[n++]);
		}
	return n;
}

double mw_gauge_latency(struct mw_gauge *b)
{
	struct pair p = { .line.turn = 0 };
	cpu_set_t before;
	pthread_t thread;
	double ns = -1;
	(void)b;
	if (sched_getaffinity(0, sizeof(before), &before) || first_two(&before, p.cpu) < 2)
		return -1;
	pthread_setaffinity_np(pthread_self(), sizeof(p.cpu[0]), &p.cpu[0]);
	if (pthread_create(&thread, NULL, other, &p) == 0) {
		ns = best_chunk(&p.line);
		pthread_join(thread, NULL);
	}
	pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
	return ns;
}
