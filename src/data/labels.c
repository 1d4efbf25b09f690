/* labels.c: see labels.h. */
#include "data/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

bool mw_label_is_integer(float label)
{
	return fabsf(label) < MW_LABEL_INT_MAX && label == truncf(label);
}

/* Index of the first value that isn't below `label`. */
static uint32_t lower_bound(const float *value, uint32_t n, float label)
{
	uint32_t lo = 0, hi = n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (value[mid] < label)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int insert(struct mw_labels *l, uint32_t at, float label, struct mw_err *err)
{
	if (l->n == l->room) {
		uint32_t room = l->room ? 2 * l->room : 16;
		float *value = realloc(l->value, room * sizeof(*value));
		if (!value)
			MW_FAIL(err, RESOURCE, "out of memory: list of labels");
		l->value = value;
		l->room = room;
	}
	memmove(l->value + at + 1, l->value + at, (l->n - at) * sizeof(*l->value));
	l->value[at] = label;
	l->n++;
	return 0;
}

int mw_labels_add(struct mw_labels *l, float label, struct mw_err *err)
{
	uint32_t at;
	if (l->real || (l->n && label == l->last))
		return 0;
	if (!mw_label_is_integer(label)) {
		l->real = true;
		return 0;
	}
	at = lower_bound(l->value, l->n, label);
	l->last = label;
	if (at < l->n && l->value[at] == label)
		return 0;
	if (l->n == MW_CLASSES_MAX) {
		l->real = true;
		return 0;
	}
	return insert(l, at, label, err);
}

int mw_labels_merge(struct mw_labels *l, const struct mw_labels *other, struct mw_err *err)
{
	l->real |= other->real;
	for (uint32_t i = 0; i < other->n && !l->real; i++)
		MW_TRY(mw_labels_add(l, other->value[i], err));
	return 0;
}

void mw_labels_fini(struct mw_labels *l)
{
	free(l->value);
	*l = (struct mw_labels){ 0 };
}

int64_t mw_labels_class(const struct mw_dataset *d, double label)
{
	uint32_t lo = 0, hi = d->classes;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (d->label_value[mid] < label)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < d->classes && d->label_value[lo] == label ? (int64_t)lo : -1;
}

static int new_mapping(struct mw_dataset *d, uint32_t n, struct mw_err *err)
{
	d->classes = n;
	d->label_value = mw_alloc_array(n, sizeof(*d->label_value), "label values", err);
	d->label_count = mw_alloc_array(n, sizeof(*d->label_count), "label counts", err);
	return d->label_value && d->label_count ? 0 : MW_ERESOURCE;
}

/* Values of the file to classes. */
static void map_rows(struct mw_dataset *d)
{
	float last = NAN;
	int64_t c = 0;
	for (uint64_t i = 0; i < d->rows; i++) {
		if (d->y[i] != last) {
			last = d->y[i];
			c = mw_labels_class(d, (double)last);
		}
		d->label_count[c]++;
		d->y[i] = d->classes == 2 ? (float)(2 * c - 1) : (float)c;
	}
}

static int check_classes(const struct mw_data_request *req, const struct mw_labels *seen, struct mw_err *err)
{
	if (seen->real)
		MW_FAIL(err, DATA,
			"%s: the labels can't be classes: there are more than %d distinct ones; use "
			"--label-kind real",
			req->path, MW_CLASSES_MAX);
	if (seen->n == 1)
		MW_FAIL(err, DATA,
			"%s: every row has the label %g, so there is nothing to tell apart; give data with "
			"at least two "
			"classes, or --label-kind real if the labels are targets of a regression",
			req->path, (double)seen->value[0]);
	return 0;
}

int mw_labels_apply(const struct mw_data_request *req, const struct mw_labels *seen, struct mw_dataset *d,
	struct mw_err *err)
{
	const struct mw_dataset *like = req->like;
	if (like ? !like->classes
		 : req->label_kind == MW_LABEL_REAL || (req->label_kind == MW_LABEL_AUTO && seen->real))
		return 0;
	if (!like)
		MW_TRY(check_classes(req, seen, err));
	MW_TRY(new_mapping(d, like ? like->classes : seen->n, err));
	for (uint32_t c = 0; c < d->classes; c++)
		d->label_value[c] = like ? like->label_value[c] : (double)seen->value[c];
	map_rows(d);
	return 0;
}

int mw_labels_set(struct mw_dataset *d, uint32_t n, struct mw_err *err)
{
	MW_TRY(new_mapping(d, n, err));
	for (uint32_t c = 0; c < n; c++)
		d->label_value[c] = n == 2 ? 2.0 * c - 1 : (double)c;
	for (uint64_t i = 0; i < d->rows; i++)
		d->label_count[n == 2 ? (uint32_t)(d->y[i] > 0) : (uint32_t)d->y[i]]++;
	return 0;
}
