/* halving.c: see halving.h. */
#include "run/halving.h"

#include <stdlib.h>
#include <string.h>

void mw_halving_plan(uint32_t n, uint32_t eta, uint32_t repeats, double budget_s, double least_s,
	struct mw_halving_plan *plan)
{
	double cost = 0, length = 1;
	memset(plan, 0, sizeof(*plan));
	for (uint32_t k = n;; k = (k + eta - 1) / eta) {
		uint32_t r = plan->rungs++;
		plan->n[r] = k;
		plan->repeats[r] = r ? repeats : 1;
		plan->seconds[r] = length;
		length *= eta;
		if (k <= eta || plan->rungs == MW_HALVING_RUNGS)
			break;
	}
	if (plan->rungs == 1)
		plan->repeats[0] = repeats;
	for (uint32_t r = 0; r < plan->rungs; r++)
		cost += plan->n[r] * plan->repeats[r] * plan->seconds[r];
	double first = budget_s / cost > least_s ? budget_s / cost : least_s;
	for (uint32_t r = 0; r < plan->rungs; r++)
		plan->seconds[r] *= first;
}

double mw_halving_total_s(const struct mw_halving_plan *plan)
{
	double total = 0;
	for (uint32_t r = 0; r < plan->rungs; r++)
		total += plan->n[r] * plan->repeats[r] * plan->seconds[r];
	return total;
}

static int compare(const struct mw_trial_score *a, const struct mw_trial_score *b)
{
	if (a->first < b->first || a->first > b->first)
		return a->first < b->first ? -1 : 1;
	if (a->second < b->second || a->second > b->second)
		return a->second < b->second ? -1 : 1;
	return 0;
}

static int by_score(const void *a, const void *b)
{
	return compare(a, b);
}

/* The median of an even number is the worse of the two in the middle: no promise that was not kept. */
static void summarise(struct mw_halving_result *r)
{
	struct mw_trial_score sorted[MW_HALVING_REPEATS];
	memcpy(sorted, r->score, sizeof(sorted));
	qsort(sorted, r->n, sizeof(*sorted), by_score);
	r->median = sorted[r->n / 2];
	r->best = sorted[0];
	r->worst = sorted[r->n - 1];
}

static bool is_better(const struct mw_halving_result *a, const struct mw_halving_result *b)
{
	if (!a->n || !b->n)
		return a->n > 0 && !b->n;
	if (a->rung != b->rung)
		return a->rung > b->rung;
	return compare(&a->median, &b->median) < 0;
}

/* Insertion: stable, and there are few. */
static void sort_rank(const struct mw_halving_result *result, uint32_t *rank, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		uint32_t c = rank[i], k = i;
		for (; k > 0 && is_better(&result[c], &result[rank[k - 1]]); k--)
			rank[k] = rank[k - 1];
		rank[k] = c;
	}
}

static void add_score(struct mw_halving_result *r, uint32_t rung, struct mw_trial_score score)
{
	if (r->rung != rung)
		r->n = 0;
	r->rung = rung;
	r->score[r->n++] = score;
	summarise(r);
}

/* All candidates in turn, as often as the plan says. */
static int climb(const struct mw_halving_plan *plan, uint32_t rung, mw_trial_fn *trial, void *arg,
	struct mw_halving_result *result, const uint32_t *rank)
{
	for (uint32_t k = 0; k < plan->repeats[rung]; k++)
		for (uint32_t i = 0; i < plan->n[rung]; i++) {
			struct mw_trial_score score;
			int code = trial(arg, rank[i], rung, plan->seconds[rung], &score);
			if (code < 0)
				return code;
			add_score(&result[rank[i]], rung, score);
		}
	return 0;
}

int mw_halving_run(const struct mw_halving_plan *plan, mw_trial_fn *trial, void *arg,
	struct mw_halving_result *result, uint32_t *rank)
{
	int code = 0;
	for (uint32_t i = 0; i < plan->n[0]; i++) {
		result[i] = (struct mw_halving_result){ 0 };
		rank[i] = i;
	}
	for (uint32_t r = 0; r < plan->rungs && !code; r++) {
		code = climb(plan, r, trial, arg, result, rank);
		sort_rank(result, rank, plan->n[0]);
	}
	return code;
}
