/*
 * trace.h: the mixing time from what really happened: the order of pushes and exchanges of a run (theory.md 4a).
 *
 * Replicas: products of the plans as they were carried out, followed from many starts at once by the row operations of
 * plan.h, as E = Phi - 1 pi^T. First one product is followed until it is within the threshold, again and again: that
 * is the quenched time, and it says how far the grid of ages must reach; then starts are opened at random about every
 * half of that time. One shared buffer: the histogram of delays between read and write.
 */
#ifndef MW_MIXING_TRACE_H
#define MW_MIXING_TRACE_H

#include "comm/protocol.h"
#include "mixing/tally.h"

/* Rows beyond which following products costs more than it is worth. */
enum { MW_PRODUCTS_ROWS_MAX = 260 };

struct mw_products;

/* fixed: the order of events and the picks are no random ones. Errors: USAGE for more rows than are followed, RESOURCE. */
int mw_products_new(
	const struct mw_protocol *p, bool fixed, uint64_t seed, struct mw_products **out, struct mw_err *err);
void mw_products_free(struct mw_products *s);
/* An exchange was carried out (NULL: nothing was). */
void mw_products_mix(struct mw_products *s, const struct mw_plan *plan, double gamma);
/* One native step has ended, its exchange included. */
void mw_products_step(struct mw_products *s);
/* What comes next does not follow on what came before: open products are dropped. */
void mw_products_break(struct mw_products *s);
/* Forget all that was learnt: the schedule has changed. */
void mw_products_restart(struct mw_products *s);
/*
 * From now on starts are opened by mw_products_start alone, and followed from age `first` to age `last`. Forgets what was
 * learnt, unless these are the ages of the last call.
 */
void mw_products_follow(struct mw_products *s, uint64_t first, uint64_t last);
void mw_products_start(struct mw_products *s);
void mw_products_estimate(struct mw_products *s, struct mw_estimate *out);

/* Which rows and columns of E matter under protocol p, for tallies of products and of probes. */
struct mw_uses {
	enum mw_tally_kind kind;
	uint32_t n_view, n_push, *view, *push; /* distinct rows; GRAM: all rows, in order */
};
int mw_uses_init(struct mw_uses *u, const struct mw_protocol *p, struct mw_err *err);
void mw_uses_fini(struct mw_uses *u);

/* Delays of a shared buffer: count[i] uses missed value[i] writes; increasing. */
void mw_delays_estimate(const uint64_t *value, const uint64_t *count, uint32_t n, struct mw_estimate *out);

#endif
