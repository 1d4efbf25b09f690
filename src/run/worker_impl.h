/* worker_impl.h: what worker.c, lane.c and round.c share. */
#ifndef MW_RUN_WORKER_IMPL_H
#define MW_RUN_WORKER_IMPL_H

#include "run/worker.h"

/* A counter that its worker alone writes. */
static inline void mw_bump(uint64_t *counter, uint64_t by)
{
	__atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

/* Push one delta: the optimizer first, if its state is shared; counted and observed. */
void mw_push_delta(struct mw_worker *w, struct mw_bench *bench, struct mw_delta *d);
/* Writes that the view of a measured delta misses now. */
uint64_t mw_staleness_of(const struct mw_worker *w, const struct mw_delta *d);
/* Put the issued delta into the queue of its due step, and push what is due now. */
void mw_delay_and_push(struct mw_worker *w, struct mw_bench *bench);
/* The coordinates of the k-th mix of a slot: all of them unless --mix-fraction. */
void mw_mix_range(const struct mw_run *run, uint32_t slot, uint64_t k, size_t *from, size_t *n);
/* The running loss of the worker's batches; one that is not finite stops the run. */
void mw_note_loss(struct mw_worker *w, float loss);
/* sim measures every step's staleness; the running loss of row form needs no more than every so many. */
#define MW_LOSS_EVERY 16
static inline float mw_mean_loss(float mean, float loss, uint64_t step)
{
	return step == 0 ? loss : mean + 0.05f * (loss - mean);
}

/* A loss is not finite: the run ends. */
static inline void mw_run_diverged(struct mw_run *run)
{
	if (__atomic_load_n(&run->diverged, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&run->diverged, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&run->stop, 1, __ATOMIC_RELAXED);
}

/* A push that missed tau writes when its view was used. */
void mw_note_staleness(struct mw_worker *w, uint64_t tau);
/* Remember what the view holds from now on. */
void mw_note_mix(struct mw_worker *w);

#endif
