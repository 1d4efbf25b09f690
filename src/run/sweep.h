/*
 * sweep.h: many runs from one job file. sweep_file.c makes the list of runs, sweep_search.c the rates still to be tried,
 * sweep_folder.c says what is done already, sweep_exec.c has them done by processes of their own, sweep_index.c writes
 * the table of results; cmd_sweep.c is the subcommand. One thread uses all of it.
 */
#ifndef MW_RUN_SWEEP_H
#define MW_RUN_SWEEP_H

#include <stdio.h>
#include <sys/types.h>
#include <jansson.h>

#include "base/ini.h"
#include "run/command.h"

/* One option of a run, and the place in the job file that set it. */
struct mw_sweep_setting {
	char *key, *value, *where;
	bool varies; /* part of the run's name */
};

enum mw_sweep_state {
	MW_SWEEP_WAITING,
	MW_SWEEP_RUNNING,
	MW_SWEEP_DONE,
	MW_SWEEP_DIVERGED,   /* done too: that is its result */
	MW_SWEEP_FAILED,     /* see error; tried again next time */
	MW_SWEEP_INTERRUPTED /* resumed next time */
};

struct mw_sweep_search;

struct mw_sweep_run {
	char *name; /* JOB/key=value,...: its folder below the sweep's */
	char *job;  /* section of the job file */
	struct mw_sweep_setting *setting;
	size_t n_settings;
	struct mw_sweep_search *search; /* rate = grid:...; NULL: no search */
	double rate;                    /* of a search */
	bool trial;                     /* of a search, and not (yet) what it has chosen */
	enum mw_sweep_state state;
	bool resumes;     /* a checkpoint is there to go on from */
	bool exclusive;   /* threads engine: nothing else may run beside it */
	uint32_t cores;   /* sim: its threads */
	pid_t pid;        /* RUNNING */
	int error_fd;     /* RUNNING: the message of a failure comes from here */
	double started_s; /* RUNNING */
	double seconds;   /* wall clock, of runs done in this call; 0: done before */
	struct mw_err error;
};

/* rate = grid:LOW,HIGH,N[,FORM]: geometric; more rates are tried while the best one is the first or the last. */
struct mw_sweep_search {
	double low, high, ratio;
	uint32_t n, extended;
	char *form;                       /* "@" stands for the rate */
	char *job, *where;                /* as in runs */
	struct mw_sweep_setting *setting; /* of its runs, without rate and seed */
	size_t n_settings;
	struct mw_sweep_setting *seed; /* the first one searches, all get the best rate */
	size_t n_seeds;
	bool chosen; /* the best rate is known, the other seeds' runs are in the list */
};

struct mw_sweep {
	const char *path; /* of the job file; borrowed */
	char *out;        /* the sweep's folder */
	bool force;
	struct mw_sweep_run **run;
	size_t n;
	struct mw_sweep_search **search;
	size_t n_searches;
	uint32_t slots; /* runs of the sim engine side by side */
	FILE *msg;      /* NULL: none */
	bool live;
	int *interrupt; /* see struct mw_job */
	bool drawn;     /* a progress line is on the terminal */
	double drawn_s;
	int lock; /* descriptor that holds the folder's lock; -1: none */
};

/*
 * Read the job file and make the list of runs, every one checked as the command line of `mixwild train` would be.
 * out: the folder, NULL: what the job file or its name says. Errors: USAGE (FILE:LINE), DATA, RESOURCE. mw_sweep_fini
 * works after an error too.
 */
int mw_sweep_load(struct mw_sweep *s, const char *path, const char *out, struct mw_err *err);
void mw_sweep_fini(struct mw_sweep *s);

/*
 * A run with this section's settings (copied) and, unless NULL, one more setting each for rate and seed; added to the
 * list and checked.
 */
int mw_sweep_add(struct mw_sweep *s, const char *job, const struct mw_sweep_setting *setting, size_t n,
	const struct mw_sweep_setting *rate, const struct mw_sweep_setting *seed, struct mw_sweep_run **out,
	struct mw_err *err);
/* The run as a job of `mixwild train`; the caller frees it. */
int mw_sweep_job(
	const struct mw_sweep *s, const struct mw_sweep_run *r, struct mw_job **out, struct mw_err *err);
/* "OUT/NAME"; free() it. */
char *mw_sweep_folder(const struct mw_sweep *s, const struct mw_sweep_run *r);
const char *mw_sweep_value(const struct mw_sweep_run *r, const char *key);

/* Parse grid:... and add the search, and the runs it begins with. The settings are copied. */
int mw_sweep_search_new(struct mw_sweep *s, const char *job, const struct mw_sweep_setting *setting, size_t n,
	const struct mw_sweep_setting *grid, const struct mw_sweep_setting *seed, size_t n_seeds,
	struct mw_err *err);
void mw_sweep_search_free(struct mw_sweep_search *x);
/* What follows from the runs that are done: more rates, or the best one for the other seeds. */
int mw_sweep_search_advance(struct mw_sweep *s, struct mw_err *err);
/* Runs that searches will at least still add. */
size_t mw_sweep_search_pending(const struct mw_sweep *s);

/*
 * Look into the run's folder: DONE, DIVERGED, or WAITING (resumes or not). USAGE if there is a run with other options
 * (unless --force: WAITING then).
 */
int mw_sweep_look(const struct mw_sweep *s, struct mw_sweep_run *r, struct mw_err *err);
/* run.json of the folder; NULL: none, or damaged. */
json_t *mw_sweep_read(const struct mw_sweep *s, const struct mw_sweep_run *r);

/*
 * Do all runs that wait. Processes are forked: a run that crashes doesn't take the others along, and memory is given back.
 * An interrupt is passed on; what was running then can be resumed. index.csv is written after each run.
 */
int mw_sweep_execute(struct mw_sweep *s, struct mw_err *err);
/* The progress line of a terminal. */
void mw_sweep_draw(struct mw_sweep *s);
void mw_sweep_clear(struct mw_sweep *s);

/* The table of results: an array of objects that all have the same members in one order. */
json_t *mw_sweep_table(const struct mw_sweep *s);
/* The same as CSV: names of columns with _ for -, nothing where there is no value. */
void mw_sweep_csv(const json_t *table, FILE *f);
/* Write index.csv, whole or not at all. */
int mw_sweep_index(const struct mw_sweep *s, struct mw_err *err);

#endif
