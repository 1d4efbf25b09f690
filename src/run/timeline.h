/*
 * timeline.h: knobs that change while a run goes on: `--timeline 'at 2 epochs: staleness=constant:64; at 4 epochs:
 * mix-every=16'`. Each entry is a whole set of knobs (what came before plus one change). Entries at epochs or steps take
 * effect at a known own step of every worker, so nobody has to be on time and sim is exact. Entries at seconds become
 * active when the controller (a round's first worker, under a barrier) sees that their time has come.
 */
#ifndef MW_RUN_TIMELINE_H
#define MW_RUN_TIMELINE_H

#include <stdint.h>
#include <jansson.h>

#include "base/err.h"
#include "base/rng.h"
#include "optim/rate.h"
#include "sched/sched.h"

/* What may change during a run. Immutable once published. */
struct mw_knobs {
	const struct mw_sched *staleness, *straggler;
	const struct mw_rate *rate;
	int64_t mix_every;
	double slack;
	/*
	 * The period in steps is mix_every + mix_part / MW_MIX_PARTS: with a part, periods of mix_every and mix_every + 1
	 * alternate as evenly as they can (--target-tmix; 0 otherwise).
	 */
	uint32_t mix_part;
};
#define MW_MIX_PARTS 65536u

/* The first own step from `step` on that an exchange follows: the last one of its period, counted from step 0. */
static inline uint64_t mw_knobs_next_mix(const struct mw_knobs *k, uint64_t step)
{
	uint64_t every = (uint64_t)k->mix_every;
	if (!k->mix_part)
		return step + (every - 1 - step % every);
	unsigned __int128 period = (unsigned __int128)every * MW_MIX_PARTS + k->mix_part;
	unsigned __int128 n =
		(unsigned __int128)step * MW_MIX_PARTS / period + 1; /* periods that will have ended */
	return (uint64_t)((n * period + MW_MIX_PARTS - 1) / MW_MIX_PARTS - 1);
}

/*
 * The same where exchanges are scattered: one follows a step of every period, all of them equally likely, by a pure function
 * of seed, stream and the period's number.
 */
static inline uint64_t mw_knobs_next_scattered(
	const struct mw_knobs *k, uint64_t step, uint64_t seed, uint64_t stream)
{
	unsigned __int128 period = (unsigned __int128)k->mix_every * MW_MIX_PARTS + k->mix_part;
	unsigned __int128 n = (unsigned __int128)step * MW_MIX_PARTS / period; /* the period of this step */
	uint64_t begin = (uint64_t)((n * period + MW_MIX_PARTS - 1) / MW_MIX_PARTS), end, at;
	for (;; n++, begin = end) {
		end = (uint64_t)(((n + 1) * period + MW_MIX_PARTS - 1) / MW_MIX_PARTS);
		at = begin +
		     (uint64_t)(((unsigned __int128)mw_hash3(seed, stream, (uint64_t)n) * (end - begin)) >>
				64);
		if (at >= step)
			return at;
	}
}

enum mw_timeline_unit { MW_AT_EPOCHS, MW_AT_STEPS, MW_AT_SECONDS };

struct mw_timeline_entry {
	enum mw_timeline_unit unit;
	double at;
	char *change; /* "mix-every=16", as given */
	struct mw_knobs knobs;
	/*
	 * Own step at which it takes effect; UINT64_MAX: not yet known (seconds). Sync: stored once, release, by the
	 * controller; pairs with the acquire in mw_timeline_next.
	 */
	uint64_t step;
	double applied_s; /* training clock when the controller saw it in effect; NAN before */
	void *owned_sched, *owned_rate;
};

struct mw_timeline {
	struct mw_timeline_entry *entry;
	uint32_t n;
};

/* first: the knobs at the start. steps_per_epoch may be 0 until known: see mw_timeline_resolve. */
int mw_timeline_parse(
	const char *spec, const struct mw_knobs *first, struct mw_timeline **out, struct mw_err *err);
void mw_timeline_free(struct mw_timeline *t);
/* Turn epochs into own steps; entries must not go back. */
int mw_timeline_resolve(struct mw_timeline *t, uint64_t steps_per_epoch, struct mw_err *err);

/* Own step of entry i, UINT64_MAX if there is none or its time has not come. Any thread. */
static inline uint64_t mw_timeline_next(const struct mw_timeline *t, uint32_t i)
{
	return t && i < t->n ? __atomic_load_n(&t->entry[i].step, __ATOMIC_ACQUIRE) : UINT64_MAX;
}

/*
 * Make entries in seconds whose time has come take effect at own step `step` (0: at once). seconds: the training clock
 * (sim: the virtual clock). One caller at a time.
 */
void mw_timeline_tick(struct mw_timeline *t, double seconds, uint64_t step);
/* The first entry from *next on that is in effect at own step `step` and not reported yet, or NULL. */
const struct mw_timeline_entry *mw_timeline_report(
	struct mw_timeline *t, uint32_t *next, uint64_t step, double seconds);

#endif
