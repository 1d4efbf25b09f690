/* clock.h: time that only goes forward, and the time-stamp counter for event order. */
#ifndef MW_BASE_CLOCK_H
#define MW_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Seconds of CLOCK_MONOTONIC. */
static inline double mw_now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Ticks of the CPU's time-stamp counter (x86: rdtsc, aarch64: cntvct), not serialising: about 10 ns. */
static inline uint64_t mw_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t t;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
#else
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
#endif
}

/* Do ticks run at one rate on all CPUs, also when these sleep (x86: constant_tsc and nonstop_tsc; aarch64: always)? */
bool mw_ticks_invariant(void);

/* Ticks per second, measured once against CLOCK_MONOTONIC (about 10 ms the first time). Thread-safe. */
double mw_ticks_per_s(void);

#endif
