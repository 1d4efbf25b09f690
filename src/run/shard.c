/* shard.c: see shard.h. */
#include "run/shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"
#include "base/rng.h"

enum { STREAM_SHUFFLE = 0x5a4d, STREAM_SHARE = 0x5a4e, STREAM_DEAL = 0x5a4f };

int mw_shards_parse(const char *spec, struct mw_shards *s, struct mw_err *err)
{
	static const char *const names[] = { "none", "iid", "label", NULL };
	*s = (struct mw_shards){ 0 };
	for (int i = 0; names[i]; i++)
		if (!strcmp(spec, names[i])) {
			s->kind = (enum mw_shard_kind)i;
			return 0;
		}
	if (strncmp(spec, "dirichlet:", 10))
		MW_FAIL(err, USAGE,
			"--shards %s: expected none, iid, label or dirichlet:ALPHA (dirichlet:0.1)", spec);
	s->kind = MW_SHARD_DIRICHLET;
	MW_TRY(mw_parse_float(spec + 10, "--shards dirichlet:ALPHA", &s->alpha, err));
	if (!(s->alpha > 0 && s->alpha <= 1e9))
		MW_FAIL(err, USAGE, "--shards %s: ALPHA must be greater than 0 and at most 1e9", spec);
	return 0;
}

void mw_shards_fini(struct mw_shards *s)
{
	for (uint32_t w = 0; s->row && w < s->n; w++)
		mw_rows_fini(&s->row[w]);
	mw_free(s->row);
	s->row = NULL;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Empty lists with room for equal parts. */
static int lists_new(struct mw_shards *s, uint64_t rows, uint32_t n, struct mw_err *err)
{
	s->row = mw_alloc_array(n, sizeof(*s->row), "the shards", err);
	if (!s->row)
		return MW_ERESOURCE;
	s->n = n;
	for (uint32_t w = 0; w < n; w++) {
		s->row[w].idx = mw_alloc_array(rows / n + 1, sizeof(uint64_t), "the shards", err);
		if (!s->row[w].idx)
			return MW_ERESOURCE;
	}
	return 0;
}

/* How many rows worker w gets. */
static uint64_t quota(uint64_t rows, uint32_t n, uint32_t w)
{
	return (uint64_t)((unsigned __int128)rows * (w + 1) / n - (unsigned __int128)rows * w / n);
}

static void shuffled(const struct mw_rows *rows, uint64_t seed, uint64_t *out)
{
	struct mw_rng rng;
	mw_rng_init(&rng, seed, STREAM_SHUFFLE);
	for (uint64_t i = 0; i < rows->n; i++) { /* inside out Fisher-Yates */
		uint64_t j = mw_rng_below(&rng, i + 1);
		out[i] = out[j];
		out[j] = mw_rows_at(rows, i);
	}
}

struct target {
	float y;
	uint64_t row;
};

static int by_target(const void *a, const void *b)
{
	const struct target *p = a, *q = b;
	return p->y < q->y ? -1 : p->y > q->y ? 1 : by_number(&p->row, &q->row);
}

static int sort_by_target(const struct mw_dataset *d, uint64_t *order, uint64_t n, struct mw_err *err)
{
	struct target *t = mw_alloc_array(n, sizeof(*t), "the order of targets", err);
	if (!t)
		return MW_ERESOURCE;
	for (uint64_t i = 0; i < n; i++)
		t[i] = (struct target){ d->y[order[i]], order[i] };
	qsort(t, n, sizeof(*t), by_target);
	for (uint64_t i = 0; i < n; i++)
		order[i] = t[i].row;
	mw_free(t);
	return 0;
}

/* Stable, so that the random order stays inside a class; first[c]..first[c+1] is class c. */
static int sort_by_class(
	const struct mw_dataset *d, uint64_t *order, uint64_t n, uint64_t *first, struct mw_err *err)
{
	uint64_t *copy = mw_alloc_array(n, sizeof(*copy), "the order of labels", err);
	uint64_t *at = mw_alloc_array(d->classes, sizeof(*at), "the order of labels", err);
	int code = copy && at ? 0 : MW_ERESOURCE;
	memset(first, 0, (d->classes + 1) * sizeof(*first));
	for (uint64_t i = 0; code == 0 && i < n; i++)
		first[mw_row_class(d, order[i]) + 1]++;
	for (uint32_t c = 0; c < d->classes; c++)
		first[c + 1] += first[c];
	if (code == 0) {
		memcpy(copy, order, n * sizeof(*copy));
		memcpy(at, first, d->classes * sizeof(*at));
	}
	for (uint64_t i = 0; code == 0 && i < n; i++)
		order[at[mw_row_class(d, copy[i])]++] = copy[i];
	mw_free(copy);
	mw_free(at);
	return code;
}

static void cut(struct mw_shards *s, const uint64_t *order, uint64_t rows)
{
	for (uint32_t w = 0; w < s->n; w++) {
		s->row[w].n = quota(rows, s->n, w);
		memcpy(s->row[w].idx, order, s->row[w].n * sizeof(*order));
		order += s->row[w].n;
	}
}

/* ---- Dirichlet */

/* log of a Gamma(a, 1) variable: Marsaglia, Tsang (2000); a < 1 by their boost, in logarithms, since it may be tiny. */
static double log_gamma_draw(struct mw_rng *rng, double a)
{
	double boost = 0;
	if (a < 1) {
		boost = log(1 - mw_rng_uniform(rng)) / a;
		a += 1;
	}
	double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
	for (;;) {
		double x = mw_rng_normal(rng), v = 1 + c * x;
		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(1 - mw_rng_uniform(rng)) < x * x / 2 + d - d * v + d * log(v))
			return log(d) + log(v) + boost;
	}
}

/* What is dealt from: classes' rows, each from its own end. */
struct deck {
	const uint64_t *order, *first;
	uint64_t *left;
	double *share; /* of worker w: share[w * classes + c], largest 1 */
	uint32_t classes;
};

static void draw_shares(const struct deck *k, double alpha, uint64_t rows, uint64_t seed, uint32_t n)
{
	for (uint32_t w = 0; w < n; w++) {
		double *q = k->share + (size_t)w * k->classes, top = -INFINITY;
		struct mw_rng rng;
		mw_rng_init(&rng, mw_hash3(seed, STREAM_SHARE, 0), w);
		for (uint32_t c = 0; c < k->classes; c++) {
			uint64_t count = k->first[c + 1] - k->first[c];
			double a = alpha * k->classes * (double)count / (double)rows;
			q[c] = count ? log_gamma_draw(&rng, a) : -INFINITY;
			top = q[c] > top ? q[c] : top;
		}
		for (uint32_t c = 0; c < k->classes; c++)
			q[c] = exp(q[c] - top);
	}
}

/* A class with rows left, by the shares q; if none of those that q wants has any, the one with the most. */
static uint32_t draw_class(const struct deck *k, const double *q, double u)
{
	double sum = 0;
	uint32_t best = 0, last = k->classes;
	for (uint32_t c = 0; c < k->classes; c++) {
		sum += k->left[c] ? q[c] : 0;
		best = k->left[c] > k->left[best] ? c : best;
	}
	u *= sum;
	for (uint32_t c = 0; c < k->classes; c++) {
		if (!k->left[c] || !(q[c] > 0))
			continue;
		last = c;
		if (u < q[c])
			return c;
		u -= q[c];
	}
	return last < k->classes ? last : best;
}

/* A row each in turn, so that nobody finds the classes emptied by the others before. */
static void deal(struct mw_shards *s, const struct deck *k, uint64_t rows, uint64_t seed)
{
	struct mw_rng rng;
	mw_rng_init(&rng, seed, STREAM_DEAL);
	for (uint64_t dealt = 0; dealt < rows;)
		for (uint32_t w = 0; w < s->n; w++) {
			struct mw_rows *r = &s->row[w];
			if (r->n == quota(rows, s->n, w))
				continue;
			uint32_t c = draw_class(k, k->share + (size_t)w * k->classes, mw_rng_uniform(&rng));
			r->idx[r->n++] = k->order[k->first[c] + --k->left[c]];
			dealt++;
		}
}

static int dirichlet(struct mw_shards *s, const uint64_t *order, const uint64_t *first, uint32_t classes,
	uint64_t rows, uint64_t seed, struct mw_err *err)
{
	struct deck k = { order, first, mw_alloc_array(classes, sizeof(uint64_t), "the shards", err),
		mw_alloc_array((size_t)classes * s->n, sizeof(double), "the shards", err), classes };
	int code = k.left && k.share ? 0 : MW_ERESOURCE;
	for (uint32_t c = 0; code == 0 && c < classes; c++)
		k.left[c] = first[c + 1] - first[c];
	if (code == 0) {
		draw_shares(&k, s->alpha, rows, seed, s->n);
		deal(s, &k, rows, seed);
	}
	mw_free(k.left);
	mw_free(k.share);
	return code;
}

/* ---- */

static int check(
	const struct mw_shards *s, const struct mw_dataset *d, uint64_t rows, uint32_t n, struct mw_err *err)
{
	if (n > rows)
		MW_FAIL(err, USAGE, "--shards: %u workers can't have rows of their own: there are only %llu",
			n, (unsigned long long)rows);
	if (s->kind == MW_SHARD_LABEL && !d->y)
		MW_FAIL(err, USAGE, "--shards label: %s has no labels; take iid", d->name);
	if (s->kind == MW_SHARD_DIRICHLET && !d->classes)
		MW_FAIL(err, USAGE, "--shards dirichlet: the labels of %s are no classes; take label or iid",
			d->name);
	return 0;
}

static int by_label(struct mw_shards *s, const struct mw_dataset *d, uint64_t *order, uint64_t rows,
	uint64_t seed, struct mw_err *err)
{
	uint64_t *first = mw_alloc_array((size_t)d->classes + 1, sizeof(*first), "the order of labels", err);
	if (!first)
		return MW_ERESOURCE;
	int code = sort_by_class(d, order, rows, first, err);
	if (code == 0 && s->kind == MW_SHARD_LABEL)
		cut(s, order, rows);
	else if (code == 0)
		code = dirichlet(s, order, first, d->classes, rows, seed, err);
	mw_free(first);
	return code;
}

int mw_shards_deal(struct mw_shards *s, const struct mw_dataset *d, const struct mw_rows *rows, uint64_t seed,
	uint32_t n, struct mw_err *err)
{
	int code = 0;
	if (s->kind == MW_SHARD_NONE)
		return 0;
	MW_TRY(check(s, d, rows->n, n, err));
	uint64_t *order = mw_alloc_array(rows->n, sizeof(*order), "the order of rows", err);
	if (!order)
		return MW_ERESOURCE;
	code = lists_new(s, rows->n, n, err);
	if (code == 0) {
		shuffled(rows, seed, order);
		if (s->kind != MW_SHARD_IID && d->classes)
			code = by_label(s, d, order, rows->n, seed, err);
		else if (s->kind == MW_SHARD_LABEL)
			code = sort_by_target(d, order, rows->n, err);
		if (code == 0 && (s->kind == MW_SHARD_IID || !d->classes))
			cut(s, order, rows->n);
	}
	mw_free(order);
	for (uint32_t w = 0; code == 0 && w < n; w++)
		qsort(s->row[w].idx, s->row[w].n, sizeof(uint64_t), by_number);
	return code;
}

void mw_shards_count(const struct mw_shards *s, const struct mw_dataset *d, uint32_t w, uint64_t *counts)
{
	memset(counts, 0, d->classes * sizeof(*counts));
	for (uint64_t i = 0; i < s->row[w].n; i++)
		counts[mw_row_class(d, s->row[w].idx[i])]++;
}

double mw_shards_distance(const struct mw_shards *s, const struct mw_dataset *d)
{
	uint64_t *one = NULL, *all = NULL, rows = 0;
	double sum = 0;
	if (s->row && d->classes) {
		one = calloc(d->classes, sizeof(*one));
		all = calloc(d->classes, sizeof(*all));
	}
	for (uint32_t w = 0; one && all && w < s->n; w++) {
		mw_shards_count(s, d, w, one);
		rows += s->row[w].n;
		for (uint32_t c = 0; c < d->classes; c++)
			all[c] += one[c];
	}
	for (uint32_t w = 0; one && all && w < s->n; w++) {
		mw_shards_count(s, d, w, one);
		for (uint32_t c = 0; c < d->classes; c++)
			sum += fabs((double)one[c] / (double)s->row[w].n - (double)all[c] / (double)rows) / 2;
	}
	bool known = one && all;
	free(one);
	free(all);
	return known ? sum / s->n : NAN;
}
