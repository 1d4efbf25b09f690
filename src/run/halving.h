/*
 * halving.h: successive halving (Jamieson, Talwalkar 2016): all candidates are tried for a short time, the best 1/eta of
 * them eta times as long, and so on, until a few are left. From the second rung on every candidate is tried several times,
 * all candidates in turn, so that a slow moment of the machine doesn't hit one alone. Knows nothing of what is tried.
 */
#ifndef MW_RUN_HALVING_H
#define MW_RUN_HALVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { MW_HALVING_RUNGS = 16, MW_HALVING_REPEATS = 15 };

/* Smaller is better; second decides where first is equal (both infinite: nothing was reached). */
struct mw_trial_score {
	double first, second;
};

struct mw_halving_plan {
	uint32_t rungs;
	uint32_t n[MW_HALVING_RUNGS], repeats[MW_HALVING_RUNGS];
	double seconds[MW_HALVING_RUNGS]; /* of one trial */
};

/*
 * Rungs for n candidates: the next has ceil(n / eta) of them, while there are more than eta. Trials get eta times as long
 * from rung to rung; all together take budget_s, or longer if the first would be shorter than least_s. The first rung
 * tries once, unless it is the only one.
 */
void mw_halving_plan(uint32_t n, uint32_t eta, uint32_t repeats, double budget_s, double least_s,
	struct mw_halving_plan *plan);
double mw_halving_total_s(const struct mw_halving_plan *plan);

/* What became of a candidate: its scores in the last rung that it was tried in. */
struct mw_halving_result {
	uint32_t rung, n; /* n 0: never tried to the end */
	struct mw_trial_score score[MW_HALVING_REPEATS];
	struct mw_trial_score median, best, worst;
};

/* One trial of a candidate. Less than 0 ends the search; what was found so far counts. */
typedef int mw_trial_fn(
	void *arg, uint32_t candidate, uint32_t rung, double seconds, struct mw_trial_score *score);

/*
 * Carry the plan out. result: one a candidate; rank: their numbers, the best first (who got further up is better, then the
 * median; equal ones in order). Returns 0, or what the trial that ended the search returned.
 */
int mw_halving_run(const struct mw_halving_plan *plan, mw_trial_fn *trial, void *arg,
	struct mw_halving_result *result, uint32_t *rank);

#endif
