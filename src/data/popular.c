/* popular.c: columns numbered by popularity; see dataset.h. */
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"

struct ranking {
	uint64_t *count;   /* non-zeros, by column; then where the columns of a count begin in the order */
	uint64_t *begin;   /* by count */
	uint32_t *feature; /* by rank: the column */
	uint32_t *rank;    /* by column */
};

static void ranking_fini(struct ranking *r)
{
	mw_free(r->count);
	mw_free(r->begin);
	mw_free(r->feature);
	mw_free(r->rank);
}

static int ranking_init(struct ranking *r, const struct mw_dataset *d, struct mw_err *err)
{
	r->count = mw_alloc_array(d->features, sizeof(*r->count), "the columns' popularity", err);
	r->begin = mw_alloc_array(d->rows + 2, sizeof(*r->begin), "the columns' popularity", err);
	r->feature = mw_alloc_array(d->features, sizeof(*r->feature), "the columns' order", err);
	r->rank = mw_alloc_array(d->features, sizeof(*r->rank), "the columns' order", err);
	return r->count && r->begin && r->feature && r->rank ? 0 : MW_ERESOURCE;
}

/* A column is in a row once at most, so counts go to the number of rows: sorting by them is counting again. */
static void rank(struct ranking *r, const struct mw_dataset *d)
{
	for (uint64_t i = 0; i < d->nnz; i++)
		r->count[d->col[i]]++;
	for (uint32_t c = 0; c < d->features; c++)
		r->begin[d->rows - r->count[c] + 1]++;
	for (uint64_t k = 1; k <= d->rows + 1; k++)
		r->begin[k] += r->begin[k - 1];
	for (uint32_t c = 0; c < d->features; c++) {
		uint32_t at = (uint32_t)r->begin[d->rows - r->count[c]]++;
		r->feature[at] = c;
		r->rank[c] = at;
	}
}

static void rename_columns(const struct ranking *r, struct mw_dataset *d)
{
	for (uint64_t i = 0; i < d->nnz; i++)
		d->col[i] = r->rank[d->col[i]];
}

static uint32_t columns_of_share(const struct ranking *r, const struct mw_dataset *d, double share)
{
	uint32_t n = 0;
	for (uint64_t sum = 0; n < d->features && (double)sum < share * (double)d->nnz; n++)
		sum += r->count[r->feature[n]];
	return n;
}

int mw_dataset_by_popularity(
	struct mw_dataset *d, struct mw_dataset *test, double share, uint32_t *hot, struct mw_err *err)
{
	struct ranking r = { 0 };
	int code = mw_dataset_own(d, err);
	if (!code && test)
		code = mw_dataset_own(test, err);
	if (!code)
		code = ranking_init(&r, d, err);
	if (!code) {
		rank(&r, d);
		*hot = columns_of_share(&r, d, share);
		rename_columns(&r, d);
		if (test)
			rename_columns(&r, test);
		d->feature = r.feature;
		r.feature = NULL;
	}
	ranking_fini(&r);
	return code;
}

void mw_dataset_swap_features(
	const struct mw_dataset *d, uint32_t width, bool to_loaded, const float *from, float *to)
{
	for (size_t c = 0; c < d->features; c++) {
		size_t f = d->feature[c], a = to_loaded ? f : c, b = to_loaded ? c : f;
		memcpy(to + a * width, from + b * width, width * sizeof(*to));
	}
}
