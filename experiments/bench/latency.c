/* latency.c: one-way latency between two CPUs in ns: two pinned threads hand a cache line to each other. Usage: latency CPU CPU */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define END    UINT32_MAX
#define CHUNK  500 /* handovers that are timed together */
#define CHUNKS 100
#define ENOUGH 0.5 /* seconds */

static struct {
	/* Sync: written by the thread whose turn it is (parity), release; the other acquires it. END: no more turns. */
	uint32_t turn;
	char rest[124];
} line __attribute__((aligned(128)));

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		fprintf(stderr, "latency: CPU %d can't be had; the figure means little\n", cpu);
}

/* Wait for turn t and pass it on. False: there are no more turns. */
static bool play(uint32_t t, uint32_t next)
{
	uint32_t seen;
	while ((seen = __atomic_load_n(&line.turn, __ATOMIC_ACQUIRE)) != t)
		if (seen == END)
			return false;
	__atomic_store_n(&line.turn, next, __ATOMIC_RELEASE);
	return true;
}

static void *other(void *cpu)
{
	pin(*(int *)cpu);
	for (uint32_t t = 1; play(t, t + 1); t += 2)
		;
	return NULL;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	uint32_t t = 0;
	double begin = now(), best = 1e9;
	if (argc != 3) {
		fprintf(stderr, "usage: latency CPU CPU\n");
		return 2;
	}
	int a = atoi(argv[1]), b = atoi(argv[2]);
	pin(a);
	if (pthread_create(&thread, NULL, other, &b))
		return 4;
	/* The best chunk: a thread that is taken off its CPU meanwhile costs milliseconds. */
	for (int i = 0; i < CHUNKS && now() - begin < ENOUGH; i++) {
		double start = now();
		for (uint32_t end = t + CHUNK; t < end; t += 2)
			play(t, t + 1);
		double ns = (now() - start) / CHUNK * 1e9;
		best = ns < best ? ns : best;
	}
	play(t, END);
	pthread_join(thread, NULL);
	printf("%.0f\n", best);
	return 0;
}
