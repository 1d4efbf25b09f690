/*
 * sched.h: schedules, pure functions of (seed, worker, step). A worker evaluates them when it issues a step, so
 * that no controller has to be on time. Values are non-negative: own steps for --staleness, factors or seconds
 * for stragglers and virtual durations, as the option says.
 *
 *   constant:A                   A itself says the same
 *   uniform:A,B                  integers A..B, each as likely; reals of [A,B) if A or B has a decimal point
 *   geometric:MEAN               integers 0, 1, 2, ...
 *   heavy:SCALE,shape=S[,max=M]  Pareto: P(value > v) = (SCALE/v)^S; cut off at M
 *   square:HIGH,LOW,period=P     HIGH for the first half
 *   ramp:FROM,TO,steps=S         linear, then TO
 *   worker:A/B/C...              worker w takes entry w modulo their number
 *   file:PATH                    CSV "delay" or "worker,delay", or these columns among others under a header;
 *                                replayed cyclically; worker w is the file's worker w modulo their number
 *   only:W1/W2...,SPEC           SPEC for these workers, 0 for the others
 *
 * Two uses with the same seed see the same numbers: give each use a seed of its own.
 */
#ifndef MW_SCHED_SCHED_H
#define MW_SCHED_SCHED_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"

struct mw_sched;

/* One kind of schedule: a plug-in. */
struct mw_sched_ops {
	const char *name, *summary, *syntax;
	size_t priv_size;
	/* args: the text after "name:", may be empty. priv is zeroed. */
	int (*parse)(void *priv, const char *args, struct mw_err *err);
	void (*fini)(void *priv); /* may be NULL */
	double (*value)(const void *priv, uint64_t seed, uint32_t worker, uint64_t step);
	/* The smallest and the largest value it can give; INFINITY if unbounded. */
	double (*min)(const void *priv);
	double (*max)(const void *priv);
};

/* All schedules of registry.def, NULL-terminated. */
extern const struct mw_sched_ops *const mw_scheds[];

/* An unknown name is a USAGE error that names the nearest; a bad file is a DATA error with its place. */
int mw_sched_parse(const char *spec, struct mw_sched **out, struct mw_err *err);
void mw_sched_free(struct mw_sched *s);
double mw_sched_value(const struct mw_sched *s, uint64_t seed, uint32_t worker, uint64_t step);
double mw_sched_max(const struct mw_sched *s);
/* Is the value 0 always? (NULL counts as zero.) */
bool mw_sched_is_zero(const struct mw_sched *s);
/* NAN unless the value is the same for every (seed, worker, step). */
double mw_sched_fixed(const struct mw_sched *s);
const char *mw_sched_spec(const struct mw_sched *s);

#endif
