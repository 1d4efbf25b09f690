/*
 * lane.h: the simulator's commonest case: plain SGD on a one-output linear model over CSR rows, batch 1, one replica and
 * nothing that looks on (mw_lanes_ok). With very many workers, what the general phases ask at every step costs more than
 * the step, and what they touch of a worker falls out of the cache before its next turn. But which worker does what, on
 * which row, doesn't depend on the parameters. So many events are planned first, with one line a worker, its lane; then
 * they are performed, and what they need of memory is known well before. The worker itself learns of its steps now and
 * then. The same values in the same order as the phases', hence the same bits: a test holds it to that.
 */
#ifndef MW_RUN_LANE_H
#define MW_RUN_LANE_H

#include "run/event_queue.h"
#include "run/run.h"

#define MW_LANE_ROWS 16

/*
 * To plan the next step of a worker. The next rows' numbers are copied here, a few at a time: where they are drawn to, each
 * worker's are on another page of memory, and to translate so many addresses takes long.
 */
struct mw_lane {
	uint64_t seen;       /* pushes of all when the view was taken */
	const uint64_t *row; /* in the worker's rows_buf, behind those copied; NULL: not asked yet */
	uint64_t tau_sum;    /* since it was published */
	uint64_t tau_max;
	uint64_t step; /* own steps finished */
	uint32_t left; /* steps after the copied rows until the worker must be asked for more, or the rate */
	uint32_t n_rows; /* copied and not used yet: the last ones of next_row */
	float scale;     /* -rate * push weight */
	bool waits;      /* free workers: has done its steps of this segment */
	uint32_t next_row[MW_LANE_ROWS] __attribute__((aligned(64)));
} __attribute__((aligned(64)));

/* To perform it: the delta that was made and not pushed yet. */
struct mw_lane_delta {
	uint64_t at; /* where its row begins */
	uint32_t n;  /* non-zeros */
	float coef;
	float loss; /* struct mw_counters */
};

enum { MW_LANE_PUSH = 1, MW_LANE_VIEW = 2, MW_LANE_FIRST = 4, MW_LANE_LOSS = 8 };

/* What a worker does at one time: push its delta; then take a view and make the next one. */
struct mw_lane_event {
	uint32_t worker, what;
	uint32_t row;
	float scale;
	/* Of the row, found shortly before it's performed: where it begins, its non-zeros, its label. */
	uint64_t at;
	uint32_t n;
	float y;
};

#define MW_LANE_BATCH 512

/* The schedules of a step's times, or what they always are. */
enum { MW_TIME_GRADIENT, MW_TIME_STRAGGLING, MW_TIME_PUSH, MW_TIMES };

struct mw_step_times {
	const struct mw_sched *sched[MW_TIMES];
	double fixed[MW_TIMES]; /* NAN: drawn */
};

struct mw_lanes {
	const struct mw_dataset *data;
	const struct mw_linear *linear;
	float *x;
	struct mw_lane *lane;        /* one a worker */
	struct mw_lane_delta *delta; /* one a worker */
	struct mw_step_times times;
	uint32_t n_planned, n_tau;
	struct mw_lane_event planned[MW_LANE_BATCH];
	uint64_t tau[MW_LANE_BATCH]; /* of their pushes, for the histogram of all workers */
};

/* Does the run need no more than this? Then mw_lanes_new, before the first step. */
bool mw_lanes_ok(const struct mw_run *run);
int mw_lanes_new(struct mw_run *run, struct mw_err *err);
void mw_lanes_free(struct mw_run *run);
/* Before a segment: take over what may have changed (--resume). */
void mw_lanes_load(struct mw_run *run);
/* Workers, their counters and their staleness are as of the last call of this. */
void mw_lanes_publish(struct mw_run *run);

/* Turns: an event of this worker, planned and performed at once; what: MW_LANE_PUSH or MW_LANE_VIEW. */
void mw_lane_step(struct mw_run *run, uint32_t worker, uint32_t what);

/* Free workers: those that wait begin, at the start of a segment. */
void mw_lanes_begin(struct mw_run *run, struct mw_event_queue *q);
/* Plan the next events, as many as there is room for; false: there are no more, all workers wait. */
bool mw_lanes_plan(struct mw_run *run, struct mw_event_queue *q);
/* Perform what was planned. A loss that isn't finite stops the run after it, so that what was counted was done. */
void mw_lanes_perform(struct mw_run *run);

/* The same, compiled for each instruction set; false: a loss is not finite. */
typedef bool mw_lanes_fn(struct mw_lanes *s);
extern mw_lanes_fn mw_lanes_portable, mw_lanes_avx2, mw_lanes_avx512;

#endif
