/* labels.h: which labels occur, what kind they are, and their mapping to classes. */
#ifndef MW_DATA_LABELS_H
#define MW_DATA_LABELS_H

#include <stdbool.h>

#include "data/dataset.h"

/* More distinct integer labels than this are taken for real targets. */
#define MW_CLASSES_MAX 65536
/* Integers from here on aren't exact in float, so they can't name classes. */
#define MW_LABEL_INT_MAX 16777216.0f

/* The distinct labels seen so far, as long as all can name classes. One owner; zeroed: empty. */
struct mw_labels {
	float *value; /* increasing; owned */
	uint32_t n, room;
	bool real;  /* a label that isn't an integer below MW_LABEL_INT_MAX, or more than MW_CLASSES_MAX
		       distinct ones */
	float last; /* the label added last, valid when n > 0: most labels repeat */
};

bool mw_label_is_integer(float label);
/* Add one label. Fails only without memory (RESOURCE); once real, nothing more is kept. */
int mw_labels_add(struct mw_labels *l, float label, struct mw_err *err);
/* Add all of another set. */
int mw_labels_merge(struct mw_labels *l, const struct mw_labels *other, struct mw_err *err);
void mw_labels_fini(struct mw_labels *l);

/* The class of a label in d's mapping (label_value), or -1. */
int64_t mw_labels_class(const struct mw_dataset *d, double label);

/*
 * Decide what d->y (as read: values of the file) means, and rewrite y in place: sets classes, label_value,
 * label_count. `seen` holds the labels of y. With req->like its mapping is taken; the caller has checked that
 * every label is in it. One class only, and too many with MW_LABEL_CLASS, are DATA errors.
 */
int mw_labels_apply(const struct mw_data_request *req, const struct mw_labels *seen, struct mw_dataset *d,
	struct mw_err *err);
/* Set an n-class mapping with label_value 0..n-1 (-1 and +1 if n is 2) and count y, which holds classes
 * already. */
int mw_labels_set(struct mw_dataset *d, uint32_t n, struct mw_err *err);

#endif
