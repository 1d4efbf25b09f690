/* clock.c: see clock.h. */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static double ticks_per_s; /* Sync: written once under pthread_once, read after it. */

static void measure(void)
{
	double t0 = mw_now_s(), t1;
	uint64_t c0 = mw_ticks(), c1;
	do {
		t1 = mw_now_s();
		c1 = mw_ticks();
	} while (t1 - t0 < 0.01);
	ticks_per_s = (double)(c1 - c0) / (t1 - t0);
}

bool mw_ticks_invariant(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d = 0;
	/* Leaf 0x80000007, EDX bit 8: invariant TSC. Hypervisors that hide the bit may still promise it to the kernel. */
	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1)
		return true;
	bool constant = false, nonstop = false;
	char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "flags", 5))
			continue;
		constant = strstr(line, " constant_tsc") != NULL;
		nonstop = strstr(line, " nonstop_tsc") != NULL;
		break;
	}
	if (f)
		fclose(f);
	return constant && nonstop;
#else
	return true;
#endif
}

double mw_ticks_per_s(void)
{
	pthread_once(&once, measure);
	return ticks_per_s;
}
