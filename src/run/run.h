/*
 * run.h: one training run: what it was told, what it was made of, and its workers. run.c puts it together, worker.c has
 * the phases of a step, threads.c and sim.c are the two engines that drive them.
 */
#ifndef MW_RUN_RUN_H
#define MW_RUN_RUN_H

#include <time.h>

#include "base/clock.h"
#include "base/shared.h"
#include "comm/executor.h"
#include "data/dataset.h"
#include "model/model.h"
#include "optim/optim.h"
#include "optim/rate.h"
#include "run/burst.h"
#include "run/command.h"
#include "run/deal.h"
#include "run/help.h"
#include "run/hist.h"
#include "run/leash.h"
#include "run/order.h"
#include "run/place.h"
#include "run/replay.h"
#include "run/shard.h"
#include "run/steer.h"
#include "run/stale.h"
#include "run/timeline.h"
#include "run/trace.h"
#include "run/train_options.h"
#include "run/wait.h"
#include "sched/sched.h"
#include "topo/layout.h"

/* How a gradient travels from the view to the push. */
enum mw_form {
	MW_FORM_ROW, /* linear model, CSR, plain SGD: example rows and a coefficient each; nothing is copied */
	MW_FORM_SPARSE, /* groups and values */
	MW_FORM_DENSE,  /* all parameters */
};

/* One update on its way. Arrays of row form: batch; sparse: touch_max * batch; dense: dim. */
struct mw_delta {
	uint64_t *row;
	float *coef;
	uint32_t *group;
	float *d;
	uint32_t n; /* rows or groups */
	float rate; /* the rate at issue, for optimizers that act at the push (--state shared) */
	uint64_t seen_others, seen_own; /* pushes that the view held; valid if measured */
	uint64_t view_ticks;
	bool measured;
	uint32_t next;    /* list of deltas due at the same step, in issue order */
	uint64_t row_one; /* the arrays of a batch of one */
	float coef_one;
};
#define MW_NO_DELTA UINT32_MAX

/* Sync: written by their worker alone (relaxed), read by anyone. A line of their own. */
struct mw_counters {
	uint64_t steps;    /* own steps begun and finished: the clock of SSP */
	uint64_t pushes;   /* updates that reached the push row */
	uint64_t examples; /* rows of those */
	float loss;        /* moving average of mini-batch losses; mw_st and mw_ld */
} MW_LINE_ALIGNED;

/* What one real thread needs, whichever worker it plays. */
struct mw_bench {
	void *work;                    /* the model's scratch */
	const struct mw_dataset *data; /* the training data near it */
	float *x, *g;
	struct mw_exec_scratch exec;
};

/* Parameters [from, to) that weight decay applies to, or not. */
struct mw_span {
	size_t from, to;
	bool decay;
};

struct mw_worker {
	/* What every step needs comes first: in sim very many workers take turns, and each line is a cache miss. */
	struct mw_run *run;
	struct mw_counters *counters;
	const struct mw_dataset *data; /* the training data near it */
	const struct mw_knobs
		*knobs; /* in effect for this worker; from the timeline entry before timeline_at */
	uint64_t step;  /* own steps begun */
	uint64_t mixes; /* mixes done or skipped: numbers the plans */
	uint64_t mix_seen_others, mix_seen_own; /* pushes at the last mix that wrote the view row */
	uint64_t mix_step;                      /* own step of that mix */
	uint64_t rate_step;
	struct mw_delta *pool;        /* ring of pending deltas: --staleness */
	uint32_t pool_n, issued;      /* issued: index of the delta being computed */
	struct mw_recorder *recorder; /* --trace; NULL: none */
	struct mw_hist *staleness;    /* its own, or the run's where there are very many workers */
	double staleness_sum, staleness_n;
	uint64_t staleness_max;
	double staleness_s, latency_n; /* seconds from view to push, summed over samples, and their number */
	uint64_t skew_sum;             /* pushes of others that went by while the counters were read */
	uint32_t id, timeline_at;
	uint32_t rows_have, rows_at;
	uint32_t action; /* pushes and mixes done of the step that was begun */
	float rate;
	bool begun;               /* a delta is made and waits for its turn (turns, sim) */
	struct mw_delta pool_one; /* the pool, where nothing is delayed */
	uint64_t rows_buf[MW_RATE_BLOCK +
			  MW_BURST_AHEAD]; /* the last MW_BURST_AHEAD are only looked at: fetched early */
	uint64_t fetch;       /* first element of a later block, for struct mw_burst: since rows_at was 0 */
	uint32_t fetch_lines; /* lines of it a row; 0: none */

	struct mw_order order;
	uint32_t drawn; /* rows of the next batch that are there already (batches of several) */
	float *state;   /* --state worker: mw_state_floats(), else NULL */
	uint32_t *due_head, *due_tail; /* per step modulo pool_n: lists of pool indices */
	uint32_t *free_list, n_free;
	uint64_t flushed;   /* deltas pushed early because the run ended */
	uint64_t ssp_clock; /* the slowest clock when the view was fetched */
	double wait_s;      /* at gates and barriers (threads engine) */
	float *x;           /* sim with several threads: the view, until the gradient is computed */
	bool strayed;       /* its mask was not its place any more after a segment */
	uint64_t dropped;   /* --stale-policy drop: updates not applied */
	double factor_sum;  /* --stale-policy: sum of the factors of those applied */
} MW_LINE_ALIGNED;

struct mw_evaluation {
	double epoch, seconds;
	uint64_t steps, examples;
	double train_loss, train_accuracy, val_loss, val_accuracy, test_loss, test_accuracy,
		grad_norm; /* NAN: absent */
	double consensus;  /* sqrt(mean over workers of |view row - average|^2) */
};

struct mw_train_hooks;
struct mw_theory;

struct mw_run {
	struct mw_job *job;
	const struct mw_train_hooks *hooks; /* NULL: none */
	const struct mw_train_options *opt;
	struct mw_dataset *train, *test;
	struct mw_dataset **
		node_data; /* --data-place replicate: the training data of each node of the layout, else NULL */
	struct mw_place_list places; /* where memory was found after the start */
	struct mw_rows rows, val;
	uint32_t
		hot_columns; /* cached --hot: so many first ones workers have copies of; 0: they have of all */
	double hot_share;    /* of the non-zeros */
	struct mw_shards shards;  /* --shards */
	struct mw_dealer *dealer; /* --deal dynamic: rows are taken from it; NULL: equal parts */
	struct mw_model *model;
	struct mw_optim *optim;
	struct mw_rate *rate;
	struct mw_graph *graph;
	struct mw_protocol *protocol;
	struct mw_layout *layout;
	struct mw_replicas replicas;
	struct mw_executor executor;
	struct mw_leash leash; /* versioned protocols */
	struct mw_sched *staleness, *straggler, *compute_time, *push_time, *mix_time;
	struct mw_knobs knobs;        /* at the start */
	struct mw_timeline *timeline; /* NULL: nothing changes */
	struct mw_theory *theory;     /* --bound; NULL: none */
	struct mw_steer *steer;       /* --target-tmix: moves the knobs through the timeline; NULL: none */
	uint32_t timeline_reported, steer_reported;
	struct mw_hist *
		shared_staleness; /* sim with many workers: one histogram for all, so that it stays in cache */
	float *shared_state;      /* --state shared: mw_state_floats() */
	float *average;           /* pi^T X at the last evaluation, dim floats */
	float *stats;             /* the model's statistics for it: n_stats floats, and those of each batch */
	float *stats_part;
	struct mw_span *span; /* the optimizer's parameters, in order: see optimize.h */
	uint32_t n_spans;
	enum mw_form form;
	enum mw_access access;
	enum mw_state state;
	enum mw_activation activation;
	uint32_t batch, n_workers;
	uint64_t seed;
	int64_t ssp_bound;
	uint32_t n_blocks;                     /* partial consistency */
	uint64_t steps_per_epoch, total_steps; /* own steps of each worker; with a dealer on average */
	uint64_t done;                         /* as many are behind all of them (dealer) */
	bool bursts;                           /* the fused update path may be used */
	bool seen_at_mix;                      /* a view is as old as the last mix, not as the read */
	struct mw_stale stale;                 /* --stale-policy */
	bool collect; /* ROUND: deltas are handed to the executor at the barrier, not pushed one by one */
	struct mw_lanes *lanes; /* sim: steps need no more than lane.h's; else NULL */
	bool exclusive;         /* sim: one thread, no other touches replicas */
	bool own_in_view;       /* a worker's pushes go to the row it views */
	bool optim_at_push;     /* --state shared */
	bool helps;             /* exchanges are carried out by one worker a node together */
	uint32_t pool_n;        /* deltas a worker may have on their way */
	struct mw_push *
		round_push; /* collect: one a worker; written by it before the barrier, read by all after it */

	struct mw_counters *counters;
	struct mw_worker **worker;
	struct mw_bench *bench; /* one a real thread */
	uint32_t n_benches;

	const struct mw_engine_ops *ops;
	void *engine;        /* the engine's own */
	uint64_t sim_pushes; /* sim: sum over workers, so that a step costs the same for any number of them */
	/* Sync: turns: those that passed because of a gate; as `turn`. */
	uint64_t sim_skipped;
	struct mw_trace *replay; /* --replay */
	struct mw_replay_report replayed;
	double virtual_s; /* sim: the virtual clock (under turns: events) */

	/* threads engine */
	struct mw_barrier barrier, round_barrier;
	struct mw_gate gate;
	/* Sync: total events so far under --activation rr|random: whose turn it is follows from it; release/acquire. */
	uint64_t turn MW_LINE_ALIGNED;
	struct mw_help help; /* numa: an exchange that is open for others */
	/* Sync: token-ring: the group that holds the token, or MW_TOKEN_BUSY while it mixes; acquire/release. */
	uint32_t token MW_LINE_ALIGNED;
	/* Sync: set by anyone who wants the segment to end early (interrupt, divergence); relaxed, polled. */
	uint32_t stop MW_LINE_ALIGNED;
	/* Sync: set by the worker that saw a loss that is not finite; relaxed, read after a barrier. */
	uint32_t diverged;
	uint64_t
		segment_end; /* own steps (total events under turns) at which workers pause; written between barriers */
	/* The controller's own from here on: it writes while workers poll `stop`. */
	double train_s MW_LINE_ALIGNED; /* training clock: seconds in finished segments */
	double segment_s;               /* when the present segment began */
	bool in_segment;
	double sampled_s; /* --metrics-every: training clock and examples at the last sample */
	uint64_t sampled_examples;
	double saved_s; /* training clock at the last checkpoint */
	double drawn_s; /* when the progress line was drawn last */
	bool line_drawn;
	uint64_t staleness_p50, staleness_p99; /* as of the last evaluation, for the progress line */

	struct mw_evaluation last, best;
	uint32_t n_evaluations;
	double first_loss;
	FILE *metrics;
	struct mw_control *control; /* --estimate; NULL: none */
	uint32_t probe_columns; /* of one block, all sets; they are behind the parameters in every replica */
	json_t *t_mix;          /* "t_mix" of the summary: {exact, trace, probe, passive} */
	time_t started;
	char *run_dir;
	char why[320];          /* --protocol auto: what it chose by; else empty */
	const char *stopped_by; /* "epochs", "target", "signal", "time", "diverged" */
};
#define MW_TOKEN_BUSY UINT32_MAX

/* Put a run together from a parsed job: loads data, places workers, allocates. On error run_free still works. */
int mw_run_new(struct mw_job *job, struct mw_run **out, struct mw_err *err);
/* The same for a caller that has data already, or looks on (train.h); hooks NULL: none. */
int mw_run_new_with(
	struct mw_job *job, const struct mw_train_hooks *hooks, struct mw_run **out, struct mw_err *err);
void mw_run_free(struct mw_run *run);

/* A worker's own part; called by the thread that will use it, so that memory is near. */
int mw_worker_new(struct mw_run *run, uint32_t id, struct mw_worker **out, struct mw_err *err);
void mw_worker_free(struct mw_worker *w);
int mw_bench_init(struct mw_bench *b, struct mw_run *run, uint32_t node, struct mw_err *err);
void mw_bench_fini(struct mw_bench *b, struct mw_run *run);

/*
 * An engine. start makes workers; segment runs them until run->segment_end or run->stop; parts calls fn for every part
 * 0..MW_EVAL_PARTS-1 on the engine's threads while nobody trains; flush pushes what is still on its way; stop ends it
 * (also after a failed start).
 */
#define MW_EVAL_PARTS 64
typedef void mw_part_fn(struct mw_run *run, struct mw_bench *bench, uint32_t part, void *arg);
struct mw_engine_ops {
	const char *name;
	int (*start)(struct mw_run *run, struct mw_err *err);
	void (*segment)(struct mw_run *run);
	void (*parts)(struct mw_run *run, mw_part_fn *fn, void *arg);
	void (*flush)(struct mw_run *run);
	void (*stop)(struct mw_run *run);
};
extern const struct mw_engine_ops mw_engine_threads, mw_engine_sim, mw_engine_replay;

/* The most rows of a batch that a bench takes gradients of. */
uint32_t mw_bench_batch(const struct mw_run *run);

int mw_evaluate(struct mw_run *run, struct mw_evaluation *e, struct mw_err *err);

/* Has a signal asked the run to stop? */
bool mw_run_interrupted(const struct mw_run *run);
/* Whose turn the t-th event is (--activation rr|random). */
uint32_t mw_turn_of(const struct mw_run *run, uint64_t t);

static inline bool mw_tracing(const struct mw_run *run)
{
	return run->opt->trace && *run->opt->trace;
}

/* Sum of the pushes of all workers. */
static inline uint64_t mw_total_pushes(const struct mw_run *run)
{
	uint64_t n = 0;
	if (run->exclusive)
		return run->sim_pushes;
	for (uint32_t w = 0; w < run->n_workers; w++)
		n += __atomic_load_n(&run->counters[w].pushes, __ATOMIC_RELAXED);
	return n;
}

#endif
