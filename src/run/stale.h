/*
 * stale.h: what is done about stale updates (--stale-policy). Staleness is the number of writes that the update's view
 * misses when the update is about to land, counted for every update while a policy is on: two sums over the workers'
 * counters a step, O(workers) reads of lines that others write. Without a policy nothing is added to a step.
 *
 *   scale    the step size of this update is divided by 1 + staleness, as in delay-adaptive methods (Mishchenko, Bach, Even,
 *            Woodworth 2022; Koloskova, Stich, Jaggi 2022)
 *   drop:T   an update with staleness above T is not applied (Ringmaster ASGD's rule: Maranjyan, Tyurin, Richtarik 2025)
 */
#ifndef MW_RUN_STALE_H
#define MW_RUN_STALE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"

struct mw_run;
struct mw_worker;
struct mw_delta;

enum mw_stale_kind { MW_STALE_NONE, MW_STALE_SCALE, MW_STALE_DROP };

struct mw_stale {
	enum mw_stale_kind kind;
	uint64_t limit; /* DROP: the largest staleness that is applied */
};

/* USAGE: neither none, scale nor drop:T. */
int mw_stale_parse(const char *text, struct mw_stale *out, struct mw_err *err);
/* USAGE: the run can't have a policy (a barrier, a trace, a replay). After the protocol is known. */
int mw_stale_check(const struct mw_run *run, struct mw_err *err);
/*
 * The policy on an update that is about to be pushed, by its worker; call it with a policy only. False: it must not be
 * pushed; it has been counted.
 */
bool mw_stale_apply(struct mw_worker *w, struct mw_delta *d);
/* Of the summary: {policy, dropped, dropped_share, mean_factor}; null without a policy. */
json_t *mw_stale_json(const struct mw_run *run);

#endif
