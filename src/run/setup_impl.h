/* setup_impl.h: what setup.c and setup_data.c share. */
#ifndef MW_RUN_SETUP_IMPL_H
#define MW_RUN_SETUP_IMPL_H

#include "run/run.h"

/* How many workers, and where; a layout that is there is made anew. */
int mw_setup_layout(struct mw_run *run, struct mw_err *err);
/* Load training and test set, split off validation rows, deal shards. The number of workers is known. */
int mw_setup_data(struct mw_run *run, struct mw_err *err);

/* Model (auto: what suits the labels) and optimizer. */
int mw_setup_model(struct mw_run *run, struct mw_err *err);

/* cached --hot: number the columns by popularity, and find how many are hot. The protocol is known. */
int mw_setup_hot(struct mw_run *run, struct mw_err *err);
/* Then, once the replicas are there: the other columns become one memory. Whole pages of it, so a few more are hot. */
int mw_setup_cold(struct mw_run *run, struct mw_err *err);
/* A model file into run->average, and that into a file: there parameters are in the order of the features as loaded. */
int mw_setup_init(struct mw_run *run, struct mw_err *err);
int mw_setup_save(struct mw_run *run, const char *path, const json_t *about, struct mw_err *err);

/* What --protocol auto goes by. */
struct mw_sharing {
	uint32_t workers;
	bool sparse;       /* rows have columns of their own */
	double dim, batch; /* parameters; rows a step */
	double touched;    /* of them by a step's gradient, on average */
	double lines;      /* cache lines they lie in */
	double hot; /* share of these that lie in what a core's cache keeps: others' writes there are waited for */
	double curvature; /* rate times largest curvature of the loss: how far a step goes; NAN: not known */
	double epoch_steps; /* own steps of a worker */
};

struct mw_choice {
	const char *protocol;
	int64_t mix_every; /* 0: exchanges nothing */
	bool one;          /* one worker would do as well as all of them so, or better */
	double step_ns, shared_ns,
		merge_ns; /* a step's own time, a rough guess; what it waits for others' lines; for merges */
	double steps_max; /* unseen own steps allowed */
};

/* The rule: see setup_default.c. */
void mw_choose_sharing(const struct mw_sharing *s, struct mw_choice *choice);

/* Is the protocol known before the data are? Where it is named, and for auto where options are about exchanges: that is set. */
int mw_protocol_of_options(struct mw_run *run, bool *known, struct mw_err *err);
/*
 * Else: looks at the data, chooses, and sets --protocol and --mix-every of the job, so that the recorded options
 * are those of this run. Data, model, optimizer and workers are there; the protocol is not. With --workers auto it may
 * leave one of them.
 */
int mw_default_protocol(struct mw_run *run, struct mw_err *err);

#endif
