/*
 * hist.h: a histogram of counts: exact below 1024, then 64 buckets an octave (1.6 %). One owner adds; others may merge it
 * into theirs at any time, and see each number as of some moment.
 */
#ifndef MW_RUN_HIST_H
#define MW_RUN_HIST_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

enum { MW_HIST_EXACT = 1024, MW_HIST_SUB = 64, MW_HIST_BUCKETS = MW_HIST_EXACT + MW_HIST_SUB * 54 };

struct mw_hist {
	/* Sync: all fields are written by the owner alone, relaxed; mw_hist_merge reads them relaxed. */
	uint64_t count[MW_HIST_BUCKETS];
	uint64_t n, max;
	double sum, sum2;
};

void mw_hist_add(struct mw_hist *h, uint64_t value);
void mw_hist_add_all(struct mw_hist *h, const uint64_t *value, size_t n);
void mw_hist_merge(struct mw_hist *into, const struct mw_hist *from);
/* The smallest value v with P(x <= v) >= q (a bucket's lower end beyond 1023); 0 when empty. */
uint64_t mw_hist_quantile(const struct mw_hist *h, double q);
/* {n, mean, p50, p75, p90, p99, max, mean_square}; with buckets: also [[value, count], ...] of those not empty. */
json_t *mw_hist_json(const struct mw_hist *h, int buckets);
/* The lower end of a bucket. */
uint64_t mw_hist_value(uint32_t bucket);

#endif
