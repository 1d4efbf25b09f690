/*
 * burst.h: the fused update path: an uninterrupted run of steps on a one-output linear model, batch 1, on one replica: of
 * plain SGD over CSR or dense rows, or of an optimizer with a state of the worker's own over CSR rows. Compiled for each
 * instruction set; bit for bit what the phases of worker.c do step by step.
 */
#ifndef MW_RUN_BURST_H
#define MW_RUN_BURST_H

#include "data/dataset.h"
#include "model/model.h"
#include "optim/optim.h"

/* How many rows ahead a row's indices and values are asked for: about 300 elements, two DRAM latencies of work. */
#define MW_BURST_FETCH 4
/* How many rows ahead a row is known, and asked for where it begins and its label. */
#define MW_BURST_AHEAD 16
/* The same for dense rows: their first quarters; each further quarter is asked for a row later. At most MW_BURST_AHEAD. */
#define MW_BURST_AHEAD_DENSE 8

struct mw_burst {
	const struct mw_dataset *data;
	const struct mw_linear *linear;
	float *x; /* the replica that is viewed and pushed to; racy (shared.h) */
	const uint64_t
		*row; /* the rows of the burst; row[n .. ahead) are the next ones, to be fetched in advance */
	uint32_t n, ahead;
	/*
	 * CSR rows that come in blocks: a later block's elements from `fetch` on, which each row asks fetch_lines lines of. 0:
	 * rows are asked for one by one. Lines in the order of memory come faster than a block's rows in theirs.
	 */
	uint64_t fetch;
	uint32_t fetch_lines;
	bool own; /* nobody else writes x meanwhile */
	float rate;
	double weight;                /* what a delta is multiplied with when it is pushed */
	uint32_t *tally;              /* NULL, or the row's count of pushes (--tally) */
	const struct mw_optim *optim; /* CSR rows: NULL is plain SGD; else with its state (worker's own) */
	float *state;
	uint64_t t;      /* steps done with that state */
	uint32_t *group; /* room for a row's coordinates and their delta, bias included */
	float *delta;
	bool atomic;   /* adds by compare-and-swap */
	float *margin; /* NULL, or out: the last row's, bias included */
	/* Sync: the worker's own counters (struct mw_counters), stored after every push, relaxed. */
	uint64_t *pushes, *examples, *steps;
};

void mw_burst_run(const struct mw_burst *b);

typedef void mw_burst_fn(const struct mw_burst *b);
extern mw_burst_fn mw_burst_portable, mw_burst_avx2, mw_burst_avx512;

#endif
