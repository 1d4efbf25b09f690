/*
 * shared.h: how floats that several threads read and write are touched.
 *
 * Racy access means: every load and store is one aligned 4-byte access that can't tear, in any order. C11 would write
 * that with relaxed atomics, but gcc 12 does not vectorise loops over them (a factor of 14 on 4096 floats). So the
 * release build uses plain accesses and relies on what every supported machine guarantees: aligned 4-byte accesses,
 * also as lanes of a vector access, are single-copy atomic on x86-64 and aarch64. Under ThreadSanitizer, and with
 * --enable-strict-atomics, the same code uses relaxed builtins, so that the sanitizer reports what is NOT meant.
 */
#ifndef MW_BASE_SHARED_H
#define MW_BASE_SHARED_H

#include <stdint.h>
#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define MW_STRICT_ATOMICS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MW_STRICT_ATOMICS 1
#endif
#endif

#ifdef MW_STRICT_ATOMICS
static inline float mw_ld(const float *p)
{
	float v;
	__atomic_load(p, &v, __ATOMIC_RELAXED);
	return v;
}
static inline void mw_st(float *p, float v)
{
	__atomic_store(p, &v, __ATOMIC_RELAXED);
}
#else
static inline float mw_ld(const float *p)
{
	return *p;
}
static inline void mw_st(float *p, float v)
{
	*p = v;
}
#endif

/* x += d that loses no update of others: compare-and-swap on the bits. */
static inline void mw_add_atomic(float *p, float d)
{
	union {
		float f;
		uint32_t u;
	} old, new;
	uint32_t *word = (uint32_t *)(void *)p;
	old.u = __atomic_load_n(word, __ATOMIC_RELAXED);
	do
		new.f = old.f + d;
	while (!__atomic_compare_exchange_n(word, &old.u, new.u, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Cache line size for padding: 128, since x86 prefetches pairs of lines and some aarch64 lines are 128. */
#define MW_LINE_BYTES   128
#define MW_LINE_ALIGNED __attribute__((aligned(MW_LINE_BYTES)))

/*
 * Ask for a line that is to be written soon, so that it comes at once for writing and not first for reading. prefetchw by
 * name: where the baseline lacks its flag, compilers write a prefetch for reading. Not for processors without AVX2.
 */
static inline void mw_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

static inline void mw_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
