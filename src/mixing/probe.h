/*
 * probe.h: the mixing time from probe columns: extra coordinates that no gradient touches and that are exchanged with
 * the parameters (theory.md 4b). A segment begins with an injection into the push rows; snapshots of the columns at
 * known ages then show how far it has spread, without knowing anything of what was exchanged when.
 *
 * One-hot: a column for each push row; the columns together are the product Phi itself. Where there are too many rows,
 * k columns of random signs whose pi-weighted sum is zero: their spread falls at first with all modes and in the end
 * with the slowest, so the tail is fitted, after averaging over segments (t_inf); copies of a server: the crossing.
 *
 * An injection is added to what is in the column, with a sign that changes from segment to segment at random, so that
 * nothing has to be reset and what is left of earlier segments averages out.
 *
 * Several sets of columns, whose segments begin at different times, see more starts in the same time. All of them add to one
 * estimate.
 */
#ifndef MW_MIXING_PROBE_H
#define MW_MIXING_PROBE_H

#include "mixing/trace.h"

enum { MW_PROBE_ONE_HOT_MAX = 128, MW_PROBE_COLUMNS = 8, MW_PROBE_SNAPSHOTS = 256 };

struct mw_probe;

/*
 * one_hot_max: push rows up to which columns are one-hot. guess: a first idea of t_mix, corrected by what is seen. sets: at
 * least 1; below, `set` is from 0 on.
 */
int mw_probe_new(const struct mw_protocol *p, bool fixed, uint32_t one_hot_max, uint32_t sets, double guess,
	uint64_t seed, struct mw_probe **out, struct mw_err *err);
void mw_probe_free(struct mw_probe *s);
/* Columns that the protocol needs, a set. */
uint32_t mw_probe_columns(const struct mw_protocol *p, uint32_t one_hot_max);

/* Begin a segment; x: rows x columns as they are before the injection. */
void mw_probe_begin(struct mw_probe *s, uint32_t set, const float *x);
/* What to add to the columns of this row, and NULL if it is no push row. */
const float *mw_probe_pattern(const struct mw_probe *s, uint32_t set, uint32_t row);
/* That was done at native step t. */
void mw_probe_injected(struct mw_probe *s, uint32_t set, uint32_t row, double t);
/* The ages at which snapshots are of use, and an age (drawn at each call) at which the set's next segment may begin. */
uint32_t mw_probe_ages(const struct mw_probe *s, const uint64_t **age);
uint64_t mw_probe_period(struct mw_probe *s);
/* Native steps from the beginning of one set's segment to that of another, at least. */
double mw_probe_spacing(const struct mw_probe *s);
/* All rows at native step t. */
void mw_probe_snapshot(struct mw_probe *s, uint32_t set, double t, const float *x);
/* False: the segment had too few snapshots and was dropped. */
bool mw_probe_end(struct mw_probe *s, uint32_t set);
/* Forget all that was learnt, and the segments under way: the schedule has changed. */
void mw_probe_restart(struct mw_probe *s);
/* The same, knowing that the new value is near `expected`: ages around it are looked at, at once. */
void mw_probe_aim(struct mw_probe *s, double expected);
uint64_t mw_probe_segments(const struct mw_probe *s);
void mw_probe_estimate(struct mw_probe *s, struct mw_estimate *out);

#endif
