/* model_make.h: what model files share: slices, checks of the data, and the groups that a batch of CSR rows
 * touches. */
#ifndef MW_MODEL_MODEL_MAKE_H
#define MW_MODEL_MODEL_MAKE_H

#include "model/model.h"

/* Room for n slices, then fill them in order; a slice of one dimension has d1 = 0. */
int mw_model_slices_new(struct mw_model *m, size_t n, struct mw_err *err);
void mw_model_slice(struct mw_model *m, const char *name, size_t offset, size_t d0, size_t d1);

/*
 * An init() whose start is the origin, whatever the seed: for convex problems (or nearly so around it), and for a quadratic, whose
 * distance to the optimum is the data's.
 */
void mw_model_init_zeros(const struct mw_model *m, uint64_t seed, float *x);

/* A model of examples was given a quadratic: a DATA error. */
int mw_model_wants_examples(const struct mw_model *m, const struct mw_dataset *d, struct mw_err *err);

/* The number of entries in the longest row of CSR data. */
size_t mw_model_longest_row(const struct mw_dataset *d);

/*
 * The penalty's share. (lambda/2)|w|^2 has a gradient on every coordinate, but a sparse step may touch only
 * those of its row. A coordinate u that is in a fraction p_u of the rows gets lambda w_u / p_u whenever it is
 * touched: the mean over all rows is lambda w_u, so the step is unbiased (the device of Niu, Recht, Re,
 * Wright, "Hogwild!", 2011, section 2). share[u] = 1 / p_u over all rows of d (also those split off for
 * validation), 0 where no row has u: that coordinate is never trained. *share is owned by the caller
 * (mw_free).
 */
int mw_model_shares(const struct mw_dataset *d, float **share, struct mw_err *err);

struct mw_touch_slot {
	uint32_t key, stamp, pos;
};

/*
 * The distinct groups of a batch: columns in order of first appearance, then the group of the bias. Batches
 * of several rows are merged by a hash map that belongs to one worker and is emptied by a new stamp.
 */
struct mw_touch {
	uint32_t *group; /* touched groups, compact order */
	uint32_t *iota;  /* 0, 1, 2...: the positions of a batch of one */
	uint32_t *pos;   /* positions of one row */
	struct mw_touch_slot *slot;
	uint32_t shift, stamp;
	size_t slots, n;
	uint32_t bias_group; /* UINT32_MAX: none */
	bool single;
};

/* touch_max: groups of the longest row, bias included; bias_group: UINT32_MAX for none. */
int mw_touch_init(struct mw_touch *t, const struct mw_dataset *d, uint32_t batch_max, size_t touch_max,
	uint32_t bias_group, struct mw_err *err);
void mw_touch_fini(struct mw_touch *t);
/* Collect the groups of a batch; returns their number (t->n). */
size_t mw_touch_batch(struct mw_touch *t, const struct mw_batch *b);
/* The position in compact order of each entry of a row of the batch collected last; valid until the next
 * call. */
const uint32_t *mw_touch_positions(struct mw_touch *t, const struct mw_dataset *d, uint64_t row);

#endif
