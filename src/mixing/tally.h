/*
 * tally.h: means of products over many starts, at a grid of ages, and the age at which they fall below the threshold.
 * What is added is E = Phi - 1 pi^T, rows x cols; which columns there are and what is averaged depends on the kind:
 *
 *   GRAM    E^T E on ker pi^T (all columns): d(k)^2 is the largest eigenvalue of the mean    threshold eps^2, eps = 1/2
 *   USE     |E[v][r]| of view row v and the column of push row r: d(k) the largest mean      threshold eps, eps = 1/4
 *   SQUARE  E[v][r]^2 likewise: copies of a server, where this is the l2 norm                 threshold eps^2, eps = 1/2
 *
 * The largest of sample means is biased up; taken on one half of the starts and valued on the other it is biased down a
 * little. Both are kept (theory.md 4a).
 */
#ifndef MW_MIXING_TALLY_H
#define MW_MIXING_TALLY_H

#include "base/err.h"
#include "mixing/estimate.h"

enum mw_tally_kind { MW_TALLY_GRAM, MW_TALLY_USE, MW_TALLY_SQUARE };
enum { MW_TALLY_BATCHES = 8, MW_TALLY_GRID = 64, MW_TALLY_NEIGHBOURS = 8 };

struct mw_tally_config {
	enum mw_tally_kind kind;
	uint32_t rows, cols;
	const double *pi; /* rows; borrowed; GRAM */
	uint32_t n_view;  /* USE, SQUARE: rows that matter */
	const uint32_t *view;
	double eps; /* 0: the kind's own */
	bool fixed; /* the sequence is no random one: the value is the largest over starts, not the mean */
};

struct mw_tally;

/* Pointers of the configuration must outlive the tally. */
int mw_tally_new(const struct mw_tally_config *c, struct mw_tally **out, struct mw_err *err);
void mw_tally_free(struct mw_tally *t);
/* Ages from `first` (at least 1) to `last`, at most MW_TALLY_GRID of them, evenly spaced; forgets what was added. */
void mw_tally_grid(struct mw_tally *t, uint64_t first, uint64_t last);
/*
 * Now and then, when enough is known: a finer grid around the crossing, or one that reaches it. True: the grid has changed,
 * and nothing is added to it yet.
 */
bool mw_tally_adjust(struct mw_tally *t);
/* Ages around a value that is expected: where they turn out not to hold it, mw_tally_adjust finds others. */
void mw_tally_aim(struct mw_tally *t, double expected);
/* How many ages there are, and which. */
uint32_t mw_tally_ages(const struct mw_tally *t, const uint64_t **age);
/* Add the product of start number `start` at grid point g. */
void mw_tally_add(struct mw_tally *t, uint64_t start, uint32_t g, const double *e);
/* Is this one product within the threshold by itself? */
bool mw_tally_within(struct mw_tally *t, const double *e);
/* Starts that were added (at the age that has most of them). */
uint64_t mw_tally_starts(const struct mw_tally *t);
/* The crossing. Not identified: too few starts, or still above the threshold at the last age. */
void mw_tally_estimate(struct mw_tally *t, struct mw_estimate *out);

#endif
