/* sched_make.h: what schedule plug-ins share to read their arguments; not for others. */
#ifndef MW_SCHED_SCHED_MAKE_H
#define MW_SCHED_SCHED_MAKE_H

#include "base/rng.h"
#include "sched/sched.h"

/*
 * The next number of *at, which must end with `sep` or at the end of the text; *at moves behind the
 * separator, NULL after the last. Values are finite and non-negative. `what` is put into messages ("schedule
 * uniform: B").
 */
int mw_sched_number(const char **at, char sep, const char *what, double *out, struct mw_err *err);
/* The same after "key=", for the last arguments of a schedule. */
int mw_sched_keyed(
	const char **at, char sep, const char *key, const char *what, double *out, struct mw_err *err);
/* A whole number of at least 1 in a double. */
int mw_sched_whole(double v, const char *what, uint64_t *out, struct mw_err *err);

/* 64 random bits that are a pure function of the three. */
static inline uint64_t mw_sched_bits(uint64_t seed, uint32_t worker, uint64_t step)
{
	return mw_hash3(seed, UINT64_C(0x7363686564) << 24 ^ worker, step);
}

#endif
