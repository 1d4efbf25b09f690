/*
 * deal.h: rows that workers take from one pool when they want more (--deal dynamic), instead of equal parts: who is
 * faster does more of an epoch, and its last rows are nobody's alone. Guided self-scheduling (Polychronopoulos, Kuck
 * 1987): everyone takes a share of what is left, so that all end together and the counter is rarely touched before.
 */
#ifndef MW_RUN_DEAL_H
#define MW_RUN_DEAL_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"
#include "base/shared.h"

enum mw_deal { MW_DEAL_AUTO, MW_DEAL_STATIC, MW_DEAL_DYNAMIC };
#define MW_DEAL_CHOICES "auto|static|dynamic"

/* Hands out units of rows (see order.h) by their numbers, counted through all epochs. */
struct mw_dealer {
	/* Sync: the next one; relaxed compare-and-swap: numbers are handed out, nothing is published by them. */
	uint64_t next MW_LINE_ALIGNED;
	uint64_t limit MW_LINE_ALIGNED; /* none beyond before the workers have met; written while they rest */
	uint64_t step, most; /* units at a time: a multiple of step, which makes a batch; at most */
	uint64_t epoch_units;
	uint32_t workers;
};

/* The next units for one worker, [*from, *to); false: none before the workers have met. Thread-safe. */
bool mw_dealer_take(struct mw_dealer *d, uint64_t *from, uint64_t *to);

struct mw_run;
struct mw_worker;

/*
 * Make run->dealer, if rows are dealt dynamically: --deal, or auto: where workers neither wait for each other's steps nor
 * have rows, steps or delays prescribed one by one. The protocol, the rows and the steps of an epoch are known. Err:
 * USAGE, RESOURCE.
 */
int mw_deal_new(struct mw_run *run, struct mw_err *err);
/* "static" or "dynamic". */
const char *mw_deal_name(const struct mw_run *run);
/* Workers rest: deal what belongs to the segment up to run->segment_end, in own steps of workers that do equally many. */
void mw_deal_segment(struct mw_run *run);
/* The worker's place in the run, in the same unit: what the step size goes by. Without a dealer its own steps. */
uint64_t mw_deal_clock(const struct mw_worker *w);

/* For a checkpoint: what has been dealt, and what a worker has of it that it has not stepped on. Err of the latter: DATA. */
json_t *mw_deal_json(const struct mw_run *run);
json_t *mw_deal_worker_json(const struct mw_worker *w);
void mw_deal_restore(struct mw_run *run, const json_t *j);
int mw_deal_worker_restore(struct mw_worker *w, const json_t *j, const char *path, struct mw_err *err);

#endif
