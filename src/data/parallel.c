/* parallel.c: see parallel.h. */
#include "data/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct part {
	void (*task)(void *ctx, int i);
	void *ctx;
	int i;
	pthread_t thread;
	bool started;
};

/* CPUs that this process may use. The mask grows until the kernel's fits. */
static int usable_cpus(void)
{
	for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
		size_t size = CPU_ALLOC_SIZE(bits);
		cpu_set_t *set = CPU_ALLOC(bits);
		int n = -1;
		if (set && sched_getaffinity(0, size, set) == 0)
			n = CPU_COUNT_S(size, set);
		CPU_FREE(set);
		if (n > 0)
			return n;
	}
	return 1;
}

int mw_parallel_threads(int asked, uint64_t work, uint64_t grain)
{
	uint64_t n = asked > 0 ? (uint64_t)asked : (uint64_t)usable_cpus(), most = work;
	if (asked <= 0)
		most = work / grain;
	if (n > most)
		n = most;
	if (n > MW_PARALLEL_MAX)
		n = MW_PARALLEL_MAX;
	return n ? (int)n : 1;
}

static void *run_part(void *arg)
{
	struct part *p = arg;
	p->task(p->ctx, p->i);
	return NULL;
}

void mw_parallel_run(int n, void (*task)(void *ctx, int i), void *ctx)
{
	struct part part[MW_PARALLEL_MAX];
	for (int i = 1; i < n; i++) {
		part[i] = (struct part){ .task = task, .ctx = ctx, .i = i };
		part[i].started = !pthread_create(&part[i].thread, NULL, run_part, &part[i]);
	}
	task(ctx, 0);
	for (int i = 1; i < n; i++) {
		if (part[i].started)
			pthread_join(part[i].thread, NULL);
		else
			task(ctx, i);
	}
}
