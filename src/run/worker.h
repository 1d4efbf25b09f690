/*
 * worker.h: the phases of a step, the same for both engines:
 *
 *   begin   draw rows, view, gradient, optimizer (its state is the worker's own): the delta is made
 *   finish  push what is due (--staleness), then mix if it is time
 *
 * The threads engine runs begin and finish one after the other; sim runs them at two virtual times. Nothing here
 * allocates, fails or waits.
 */
#ifndef MW_RUN_WORKER_H
#define MW_RUN_WORKER_H

#include "run/run.h"

/* Which plan of its slot, and which block of coordinates, the k-th exchange of a slot takes. */
uint32_t mw_mix_choice(const struct mw_run *run, uint32_t slot, uint64_t k);
uint32_t mw_mix_block(const struct mw_run *run, uint32_t slot, uint64_t k);

/* Make the worker's next delta. measure: record staleness for it. */
void mw_step_begin(struct mw_worker *w, struct mw_bench *bench, bool measure);
/* sim with a thread pool: the two halves of begin. view copies what the gradient needs into x (dense form). */
void mw_step_view(struct mw_worker *w, struct mw_bench *bench, bool measure, float *x);
void mw_step_gradient(struct mw_worker *w, struct mw_bench *bench, const float *x);

/* Push, and for event protocols mix. For rounds: leaves the delta to the round's mix where run->collect says so. */
void mw_step_finish(struct mw_worker *w, struct mw_bench *bench);
/*
 * EVENT: the next push or mix of the step that was begun; false when it was the last and the step has ended. finish is
 * this until false; a replay does it event by event.
 */
bool mw_step_action(struct mw_worker *w, struct mw_bench *bench);
bool mw_step_next_is_mix(const struct mw_worker *w);
/* Replay: pass over the next action (a token that was not there); false when the step has ended. */
bool mw_step_skip(struct mw_worker *w);
/* SSP: fetch a newer view if the one at hand is too old for the next step; slowest: the slowest worker's clock. */
void mw_step_fetch(struct mw_worker *w, struct mw_bench *bench, uint64_t slowest);
/* The same without asking: a replay knows that the recorded run did. */
void mw_step_fetch_now(struct mw_worker *w, struct mw_bench *bench);
/* ROUND: coordinates [from, to) of the round's mix (and of the collected pushes). Between two barriers. */
void mw_round_mix(struct mw_worker *w, struct mw_bench *bench, size_t from, size_t to);
/* ROUND: must the workers meet after this step? Ask before mw_round_end. */
bool mw_round_due(const struct mw_worker *w);
/* ROUND: after the mix, or instead of it. */
void mw_round_end(struct mw_worker *w, struct mw_bench *bench);

/* Push all pending deltas now (end of run); counted in w->flushed. */
void mw_step_flush(struct mw_worker *w, struct mw_bench *bench);

/* Own step at which the worker mixes next (>= step); UINT64_MAX: never. */
uint64_t mw_next_mix(const struct mw_worker *w);
/* Take over knobs whose time has come, and the rate if a rate block begins. */
void mw_step_knobs(struct mw_worker *w);
/* Batches of one: have rows in rows_buf; returns how many from rows_at on. 0: the dealer has no more in this segment. */
uint32_t mw_step_rows(struct mw_worker *w);
/* Are there rows for one more step? Those of a batch that is not full are kept for the next segment. */
bool mw_step_has_rows(struct mw_worker *w);

#endif
