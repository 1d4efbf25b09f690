/* popular.c: columns numbered by popularity; see dataset.h. */
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"

int mw_rank_by_count(const uint64_t *count, uint32_t n, uint64_t most, uint32_t *rank, struct mw_err *err)
{
	uint64_t *begin = mw_alloc_array(most + 2, sizeof(*begin), "the columns' popularity", err);
	if (!begin)
		return MW_ERESOURCE;
	for (uint32_t c = 0; c < n; c++)
		begin[most - count[c] + 1]++;
	for (uint64_t k = 1; k <= most + 1; k++)
		begin[k] += begin[k - 1];
	for (uint32_t c = 0; c < n; c++)
		rank[c] = (uint32_t)begin[most - count[c]]++;
	mw_free(begin);
	return 0;
}

static void rename_columns(struct mw_dataset *d, const uint32_t *rank)
{
	for (uint64_t i = 0; i < d->nnz; i++)
		d->col[i] = rank[d->col[i]];
}

/* feature: the column of a rank. */
static uint32_t columns_of_share(
	const struct mw_dataset *d, const uint64_t *count, const uint32_t *feature, double share)
{
	uint32_t n = 0;
	for (uint64_t sum = 0; n < d->features && (double)sum < share * (double)d->nnz; n++)
		sum += count[feature[n]];
	return n;
}

static int number(struct mw_dataset *d, struct mw_dataset *test, double share, uint64_t *count,
	uint32_t *rank, uint32_t *hot, struct mw_err *err)
{
	d->feature = mw_alloc_array(d->features, sizeof(*d->feature), "the columns' order", err);
	if (!d->feature)
		return MW_ERESOURCE;
	for (uint64_t i = 0; i < d->nnz; i++)
		count[d->col[i]]++;
	MW_TRY(mw_rank_by_count(
		count, d->features, d->rows, rank, err)); /* a column is in a row once at most */
	for (uint32_t c = 0; c < d->features; c++)
		d->feature[rank[c]] = c;
	*hot = columns_of_share(d, count, d->feature, share);
	rename_columns(d, rank);
	if (test)
		rename_columns(test, rank);
	return 0;
}

int mw_dataset_by_popularity(
	struct mw_dataset *d, struct mw_dataset *test, double share, uint32_t *hot, struct mw_err *err)
{
	MW_TRY(mw_dataset_own(d, err));
	if (test)
		MW_TRY(mw_dataset_own(test, err));
	uint64_t *count = mw_alloc_array(d->features, sizeof(*count), "the columns' popularity", err);
	uint32_t *rank = count ? mw_alloc_array(d->features, sizeof(*rank), "the columns' order", err) : NULL;
	int code = rank ? number(d, test, share, count, rank, hot, err) : MW_ERESOURCE;
	mw_free(count);
	mw_free(rank);
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
