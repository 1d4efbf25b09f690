/*
 * tune.h: `mixwild tune`: which workers, places, protocol, period and placement of data reach a loss soonest (or make the
 * most examples a second) for a given problem. tune_candidates.c makes the list, tune_trial.c runs one for a while,
 * halving.c decides who goes on, tune_report.c tells what was found; cmd_tune.c is the subcommand. One thread uses it.
 */
#ifndef MW_RUN_TUNE_H
#define MW_RUN_TUNE_H

#include "run/command.h"
#include "run/halving.h"
#include "run/remote.h"
#include "run/train.h"

/* What is searched; named and written as the options of train. */
struct mw_tune_options {
	char *workers, *bind, *protocol, *mix_every, *data_place;
	double budget;
	int64_t eta, repeats;
	char *job;
	int format;
	struct mw_train_options train; /* what all runs have in common */
};

struct mw_tune_candidate {
	uint32_t workers;
	char bind[24], protocol[24], data_place[16];
	int64_t mix_every; /* 0: the protocol's own */
};

/* Sums over the trials of a candidate in its last rung, and what doesn't change from trial to trial. */
struct mw_tune_facts {
	uint32_t n, rung;
	/* Sums; loss: the last one of each. */
	double examples_per_s, staleness_mean, staleness_p99, loss, epochs;
	double remote; /* sum of shares; NAN: not counted */
	double t_mix;  /* in gradient steps, NAN: none */
	char t_mix_reason[120];
	int64_t mix_every; /* in effect; 0: nothing is exchanged */
	uint32_t n_reached;
	char failed[200]; /* why it can't be run; "": it can */
};

struct mw_tune {
	struct mw_job *job;
	const struct mw_tune_options *opt;
	struct mw_dataset *train, *test;
	FILE *null; /* what the runs print */
	struct mw_tune_candidate *candidate;
	struct mw_tune_facts *facts;
	struct mw_halving_result *result;
	uint32_t *rank;
	uint32_t n, room;
	struct mw_halving_plan plan;
	bool to_loss; /* the goal: a loss, else examples a second */
	bool stopped; /* by a signal */
	uint32_t n_trials;
	/* Examples a second, and seconds to the loss (0: not reached), so far: evaluations are that close to each other. */
	double fastest, soonest;
	int remote_refused;
	struct mw_err first_err;
};

/* The list: all combinations that differ. */
int mw_tune_candidates(struct mw_tune *t, struct mw_err *err);
/* A first short run, for `fastest`; it counts for nothing. */
void mw_tune_warm_up(struct mw_tune *t, double seconds);
/* A mw_trial_fn; arg is the struct mw_tune. */
int mw_tune_trial(void *arg, uint32_t candidate, uint32_t rung, double seconds, struct mw_trial_score *score);
/* The options of `mixwild train` for a candidate, in turn: fn(arg, name, value); those of all runs, or its own. */
typedef void mw_tune_option_fn(void *arg, const char *name, const char *value);
void mw_tune_common_options(const struct mw_tune *t, mw_tune_option_fn *fn, void *arg);
void mw_tune_own_options(const struct mw_tune *t, uint32_t candidate, mw_tune_option_fn *fn, void *arg);
/* "2 workers, cached, close" for the progress line; buf is returned. */
const char *mw_tune_name(const struct mw_tune *t, uint32_t candidate, char *buf, size_t size);

void mw_tune_report(struct mw_tune *t);
/* The winner as a job file for `mixwild sweep`. */
int mw_tune_write_job(const struct mw_tune *t, const char *path, struct mw_err *err);

#endif
