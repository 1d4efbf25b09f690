/* train.h: one training run from inside: what `mixwild train` does, with data that are there already and a look at its end. */
#ifndef MW_RUN_TRAIN_H
#define MW_RUN_TRAIN_H

#include "run/run.h"

/* What a caller wants besides the job's options. Zeroed: nothing. */
struct mw_train_hooks {
	struct mw_dataset *train,
		*test;  /* borrowed instead of loaded (test may be NULL); --data-place may move them */
	double limit_s; /* stop at this training time; 0: none */
	void (*evaluated)(
		struct mw_run *run, const struct mw_evaluation *e, void *arg); /* NULL: nobody looks */
	void (*done)(struct mw_run *run,
		void *arg); /* at the end, before the run is freed; also of a diverged one */
	void *arg;
};

/* Run a job of the command train. hooks NULL: as from the command line. */
int mw_train(struct mw_job *job, const struct mw_train_hooks *hooks, struct mw_err *err);
/* The data that a train job's options name. */
int mw_train_load(const struct mw_train_options *o, struct mw_dataset **train, struct mw_dataset **test,
	struct mw_err *err);

#endif
