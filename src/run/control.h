/*
 * control.h: estimators of the mixing time in a run (--estimate). In sim they are told of every push and exchange and look
 * at the replicas between two of them. In the threads engine workers record their events (trace) and, at the request of a
 * thread of its own, the sampler, inject probe columns and take snapshots of them (segments.h); the sampler itself looks at the
 * parameters (passive). Without --estimate there is no struct mw_control.
 */
#ifndef MW_RUN_CONTROL_H
#define MW_RUN_CONTROL_H

#include "mixing/passive.h"
#include "mixing/probe.h"
#include "mixing/trace.h"
#include "run/run.h"

/* Blocks of coordinates (--mix-fraction) that are estimated; the others mix alike. */
enum { MW_CONTROL_BLOCKS = 8 };
/* Probe segments whose beginnings are kept. */
enum { MW_CONTROL_ORIGINS = 4096 };

/* Sets of probe columns under --target-tmix, whose segments begin at different times. */
enum { MW_CONTROL_SETS = 16 };

enum mw_segment_state { MW_SEGMENT_NONE, MW_SEGMENT_INJECTING, MW_SEGMENT_OPEN, MW_SEGMENT_ENDED };

/*
 * A segment of one set of probe columns; all blocks share its beginning. Sync (threads): whoever holds `looking` (struct
 * mw_control) has it, but for `next`, which is the sampler's alone. To INJECTING and to NONE by the sampler, to OPEN and to ENDED
 * by a worker.
 */
struct mw_segment {
	enum mw_segment_state state;
	double origin, middle; /* native steps: of the last injection, and of their mean */
	double last_snapshot;  /* native step */
	double ages, spacing;  /* native steps: the largest age; between two snapshots of threads */
	double next;           /* native step from which on the sampler may end it, and begin the next one */
	uint32_t at[MW_CONTROL_BLOCKS]; /* sim: the next age of each block */
};

struct mw_control {
	struct mw_run *run;
	/* For the progress line; 0: none yet. Sync: written by who looks at the probes, or between segments; relaxed. */
	float live;
	bool fixed;         /* nothing of the order of events is random */
	bool running;       /* between begin and end: what is flushed afterwards is no step */
	bool pending;       /* a push whose exchange, if any, is still to come */
	uint64_t step;      /* native steps seen (sim, recorded events) */
	uint64_t ambiguous; /* recorded events that overlap in time with the one before */
	/*
	 * The exchanges once more, from the native steps alone at which the probe's segments began (threads, one block): what
	 * the probe should have seen. NULL: not both are wanted.
	 */
	struct mw_products *again;
	double *origins; /* increasing */
	uint32_t n_origins, next_origin;
	uint64_t first; /* native step at which recording began */
	uint32_t blocks;
	struct mw_products *products[MW_CONTROL_BLOCKS];
	struct mw_probe *probe[MW_CONTROL_BLOCKS];
	struct mw_passive *passive;

	/* Probe segments; workers read these between any two steps. */
	uint32_t cols MW_LINE_ALIGNED; /* probe columns of a set and block */
	uint32_t sets;
	float *columns; /* rows x cols. Sync: of who holds `looking` */
	float *pattern; /* rows x (blocks x cols): what is injected. Sync: written before `request` moves on, read after */
	uint32_t injecting; /* the set, one at a time. Sync: as pattern */
	/*
	 * Per row: the worker that injects, MW_NO_ROW: none; per worker: does it inject before it pushes, or before it views?
	 * Both are drawn for every segment, so that ages do not always begin with a row that has just been exchanged, or just
	 * will be. Sync: as pattern.
	 */
	uint32_t *injector;
	uint8_t *late;
	double *injected; /* per row: native step. Sync: written by the injector before its `done`, read after */
	struct mw_done {
		/* Sync: the last request that it has done; release, acquire by who looks. */
		uint64_t request;
		/* The worker's own: the step of its own at which it looks at the probes; UINT64_MAX: not before it injects. */
		uint64_t look;
		uint64_t
			wait; /* from one look to the next, in own steps, when it last looked; the worker's own */
		/* Sync: what it has spent on injections and looks (mw_ticks); relaxed, read by the sampler. */
		uint64_t ticks;
		uint64_t usual;  /* of these, once; the worker's own */
	} MW_LINE_ALIGNED *done; /* per worker, a line each */
	/* Sync: number of the last injection asked for; release by the sampler, acquire by workers. */
	uint64_t request MW_LINE_ALIGNED;
	/* Sync: somebody is at the segments; acquire and release. A worker that finds another one at it goes on. */
	uint32_t looking MW_LINE_ALIGNED;
	/* Segments that workers are at. Sync: written by who holds `looking`; relaxed, read by anyone. */
	uint32_t under_way;
	struct mw_segment set[MW_CONTROL_SETS];
	/* The sampler's, or sim's: */
	uint32_t used MW_LINE_ALIGNED; /* segments that have begun and are not yet taken apart */
	double spaced;                 /* native step from which on another set's segment may begin */
	double window_begin;           /* --target-tmix: native step */
	uint64_t ended,
		missed; /* segments; of these, had too few snapshots, or ages that were changed meanwhile */

	/* passive */
	uint64_t passive_next, passive_last, passive_first, passive_n, passive_late;
	uint32_t coords;
	float *coordinates; /* rows x coords */

	/* --timeline: one value for each stretch between two evaluations */
	struct mw_windows *windows; /* NULL: the schedule does not change */
	uint64_t *counted;          /* delays of earlier stretches, by bucket */
	json_t *stretch;            /* the estimates of the last one; NULL: none is over */

	/* threads engine */
	struct mw_sampler *sampler;
	/* --metrics-every: the estimates, made by the sampler about that often. Sync: exchanged as a whole, acq_rel. */
	json_t *latest, *shown; /* shown: the last one taken; the controlling thread's own */
	double latest_s;        /* when; the sampler's own */
	uint64_t *mixes;        /* per worker, when the segment began */
	double watch_s,
		tolls_s; /* what a probe segment, and waking up, have cost: see snapshot.c; the sampler's */
	/* CPU time while the sampler ran, its own, the workers' for its sake, and all; the sampler's until it has ended */
	double sampler_s, workers_s, process_s;
};

/* After everything else of the run has been made. */
int mw_control_new(struct mw_run *run, struct mw_err *err);
void mw_control_free(struct mw_control *c);
/* Probe columns that every replica needs, over all blocks. */
uint32_t mw_control_columns(const struct mw_run *run);
/* Those of one block, all sets, where there are any. */
uint32_t mw_control_block_columns(const struct mw_run *run);
/* Do workers of the threads engine record events for an estimator? */
bool mw_control_records(const struct mw_run *run);

/* Around a segment, while workers rest. */
int mw_control_begin(struct mw_run *run, struct mw_err *err);
void mw_control_end(struct mw_run *run);

/* sim: a push was done; an exchange was done; a round has ended, with the k-th exchange or without one. */
void mw_control_push(struct mw_control *c);
void mw_control_mix(struct mw_control *c, uint32_t slot, uint32_t choice, uint32_t block, double gamma);
void mw_control_round(struct mw_control *c, bool mixed, uint64_t k, double gamma);

/* threads: is there a probe injection (mw_segments_inject) that this worker has not done yet? */
static inline bool mw_control_asks(const struct mw_control *c, uint32_t worker, bool late)
{
	return c->cols && __atomic_load_n(&c->request, __ATOMIC_ACQUIRE) != c->done[worker].request &&
	       c->late[worker] == late;
}
/* threads, between two own steps: the step before which the worker looks at the probes (mw_segments_watch). */
static inline uint64_t mw_control_next_look(const struct mw_control *c, uint32_t worker)
{
	return c && c->cols ? c->done[worker].look : UINT64_MAX;
}
/*
 * Floats that an exchange of a block takes: where there is only one, its probe columns are exchanged with it, in one go; what
 * lies between is 0 and stays so.
 */
static inline size_t mw_control_extent(const struct mw_run *run, size_t n)
{
	return run->probe_columns && run->n_blocks == 1 && !run->helps
		       ? run->replicas.extra_at + run->probe_columns
		       : n;
}
/* The exchange of the probe columns, right after that of the parameters. */
static inline void mw_control_exchange(struct mw_run *run, struct mw_bench *bench, uint32_t slot,
	uint32_t choice, uint32_t block, double gamma)
{
	size_t cols = run->probe_columns;
	if (cols && block < MW_CONTROL_BLOCKS)
		mw_exec_plan(&run->executor, &bench->exec, slot, choice, gamma,
			run->replicas.extra_at + block * cols, cols, NULL, 0,
			run->exclusive || run->protocol->clock == MW_CLOCK_ROUND);
}

/* Take a snapshot of the parameters if one is due at native step t (sim; threads: the sampler). */
void mw_control_look_at_parameters(struct mw_control *c, double t);

/*
 * After an evaluation and its line of metrics: where the schedule changes during the run (--timeline), keep the value of
 * the stretch that has ended, with the decrease of the loss in it, and begin anew.
 */
void mw_control_window(struct mw_run *run);

/* {trace, probe, passive} into run->t_mix; the same as a new object for a line of metrics; lines for people. */
void mw_control_report(struct mw_run *run);
json_t *mw_control_json(struct mw_run *run);
/* While a segment runs, for its controlling thread: the newest estimates, or null while there are none. */
json_t *mw_control_latest(struct mw_run *run);
/* The sampler: make them, if it is time. */
void mw_control_publish(struct mw_control *c);
void mw_control_print(struct mw_run *run);

#endif
