/* touch.c: which groups of parameters a batch of CSR rows touches; see model_make.h. */
#include <string.h>

#include "base/mem.h"
#include "model/model_make.h"

size_t mw_model_longest_row(const struct mw_dataset *d)
{
	uint64_t longest = 0;
	for (uint64_t r = 0; r < d->rows; r++)
		if (d->row_ptr[r + 1] - d->row_ptr[r] > longest)
			longest = d->row_ptr[r + 1] - d->row_ptr[r];
	return longest;
}

int mw_model_shares(const struct mw_dataset *d, float **share, struct mw_err *err)
{
	float *s = mw_alloc_array(d->features, sizeof(*s), "shares of the penalty", err);
	uint64_t *count = mw_alloc_array(d->features, sizeof(*count), "feature counts", err);
	int ret = s && count ? 0 : MW_ERESOURCE;
	for (uint64_t i = 0; !ret && i < d->nnz; i++)
		count[d->col[i]]++;
	for (uint32_t u = 0; !ret && u < d->features; u++)
		s[u] = count[u] ? (float)((double)d->rows / (double)count[u]) : 0;
	mw_free(count);
	if (ret)
		mw_free(s);
	else
		*share = s;
	return ret;
}

int mw_touch_init(struct mw_touch *t, const struct mw_dataset *d, uint32_t batch_max, size_t touch_max,
	uint32_t bias_group, struct mw_err *err)
{
	size_t groups = (size_t)d->features + 1,
	       most = touch_max * batch_max < groups ? touch_max * batch_max : groups;
	if (batch_max > 1 && touch_max > SIZE_MAX / batch_max)
		most = groups;
	if (most < touch_max)
		most = touch_max;
	unsigned bits = 4;
	while (((size_t)1 << bits) < 2 * most)
		bits++;
	*t = (struct mw_touch){ .shift = 64 - bits, .bias_group = bias_group, .slots = (size_t)1 << bits };
	t->group = mw_alloc_array(most + 1, sizeof(*t->group), "touched groups", err);
	t->iota = mw_alloc_array(touch_max + 1, sizeof(*t->iota), "positions", err);
	t->pos = mw_alloc_array(touch_max + 1, sizeof(*t->pos), "positions of a row", err);
	if (batch_max > 1)
		t->slot = mw_alloc_array(t->slots, sizeof(*t->slot), "map of touched groups", err);
	if (!t->group || !t->iota || !t->pos || (batch_max > 1 && !t->slot))
		return MW_ERESOURCE;
	for (size_t i = 0; i <= touch_max; i++)
		t->iota[i] = (uint32_t)i;
	return 0;
}

void mw_touch_fini(struct mw_touch *t)
{
	mw_free(t->group);
	mw_free(t->iota);
	mw_free(t->pos);
	mw_free(t->slot);
	*t = (struct mw_touch){ 0 };
}

/* The slot of a key, or the free slot where it belongs (its stamp is not the current one). At most half is
 * full. */
static struct mw_touch_slot *find(const struct mw_touch *t, uint32_t key)
{
	size_t mask = t->slots - 1, i = (size_t)((key * 0x9e3779b97f4a7c15ULL) >> t->shift);
	while (t->slot[i].stamp == t->stamp && t->slot[i].key != key)
		i = (i + 1) & mask;
	return &t->slot[i];
}

static void clear(struct mw_touch *t)
{
	if (++t->stamp == 0) {
		memset(t->slot, 0, t->slots * sizeof(*t->slot));
		t->stamp = 1;
	}
}

static void merge_row(struct mw_touch *t, const uint32_t *col, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct mw_touch_slot *s = find(t, col[i]);
		if (s->stamp == t->stamp)
			continue;
		*s = (struct mw_touch_slot){ col[i], t->stamp, (uint32_t)t->n };
		t->group[t->n++] = col[i];
	}
}

size_t mw_touch_batch(struct mw_touch *t, const struct mw_batch *b)
{
	const struct mw_dataset *d = b->data;
	t->n = 0;
	t->single = b->n == 1;
	if (t->single) {
		uint64_t o = d->row_ptr[b->row[0]];
		t->n = d->row_ptr[b->row[0] + 1] - o;
		memcpy(t->group, d->col + o, t->n * sizeof(*t->group));
	} else {
		clear(t);
		for (uint32_t r = 0; r < b->n; r++) {
			uint64_t o = d->row_ptr[b->row[r]];
			merge_row(t, d->col + o, d->row_ptr[b->row[r] + 1] - o);
		}
	}
	if (t->bias_group != UINT32_MAX)
		t->group[t->n++] = t->bias_group;
	return t->n;
}

const uint32_t *mw_touch_positions(struct mw_touch *t, const struct mw_dataset *d, uint64_t row)
{
	if (t->single)
		return t->iota;
	const uint32_t *col = d->col + d->row_ptr[row];
	size_t n = d->row_ptr[row + 1] - d->row_ptr[row];
	for (size_t i = 0; i < n; i++)
		t->pos[i] = find(t, col[i])->pos;
	return t->pos;
}
