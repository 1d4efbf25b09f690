/*
 * synth_sparse.c: text-like sparse rows with a planted linear signal.
 *
 * Features have Zipf-Mandelbrot popularity 1 / (rank + 11) and a random rank; a row has a lognormal number of
 * distinct features (mean nnz, sigma 1/2), drawn by popularity; a value is the feature's inverse document
 * frequency times 1 + an exponential of mean 1/2; the row is scaled to length 1. A tenth of the features
 * carry a standard normal weight, the label is the sign of their sum, and a fraction `noise` of the labels is
 * wrong.
 */
#include "data/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/labels.h"
#include "data/parallel.h"

#define POPULARITY_SHIFT 11.0
#define LENGTH_SIGMA     0.5
#define LENGTH_MIN       4
/* Rows longer than this many times the mean are cut there: 5 standard deviations. */
#define LENGTH_MAX_TIMES 13
#define CSR_PAD          16
#define THREAD_ROWS      4096

/* What all rows share. Sync: written before the threads start, read only after. */
struct world {
	const struct mw_synth *s;
	struct mw_dataset *d;
	uint32_t features;
	double *cdf;         /* of a rank */
	uint32_t *guide;     /* guide[j]: the first rank whose cdf is above j / features */
	uint32_t *id;        /* rank to column */
	float *idf, *weight; /* of a rank */
	uint64_t length_max;
	int threads;
	struct mw_err *err; /* one a thread */
};

static void fill_popularity(struct world *w)
{
	double sum = 0, below = 0;
	uint32_t rank = 0;
	for (uint32_t r = 0; r < w->features; r++)
		sum += 1 / (r + POPULARITY_SHIFT);
	for (uint32_t r = 0; r < w->features; r++) {
		double p = 1 / (r + POPULARITY_SHIFT) / sum;
		w->idf[r] = (float)log(1 + 1 / ((double)w->s->nnz * p));
		below += p;
		w->cdf[r] = below;
	}
	w->cdf[w->features - 1] = 1;
	for (uint32_t j = 0; j < w->features; j++) {
		while (w->cdf[rank] <= (double)j / w->features)
			rank++;
		w->guide[j] = rank;
	}
}

/* Weights, a tenth of them (or about ten at least, in narrow sets) not 0; and the columns of the ranks. */
static void fill_signal(struct world *w)
{
	double carry = fmax(0.1, 10.0 / w->features);
	struct mw_perm perm;
	struct mw_rng rng;
	mw_perm_init(&perm, w->features, mw_synth_key(w->s, MW_SYNTH_ORDER), 0);
	mw_rng_init(&rng, mw_synth_key(w->s, MW_SYNTH_SIGNAL), 0);
	for (uint32_t r = 0; r < w->features; r++) {
		w->id[r] = (uint32_t)mw_perm_at(&perm, r);
		w->weight[r] = mw_rng_uniform(&rng) < carry ? (float)mw_rng_normal(&rng) : 0;
	}
}

/* The first draw of a row: how long it is. */
static uint64_t draw_length(const struct world *w, struct mw_rng *rng)
{
	double mu = -0.5 * LENGTH_SIGMA * LENGTH_SIGMA;
	double z = (double)w->s->nnz * exp(LENGTH_SIGMA * mw_rng_normal(rng) + mu);
	uint64_t n = (uint64_t)(z + 0.5),
		 least = (uint64_t)w->s->nnz < LENGTH_MIN ? (uint64_t)w->s->nnz : LENGTH_MIN;
	n = n < least ? least : n;
	return n > w->length_max ? w->length_max : n;
}

static uint32_t draw_rank(const struct world *w, struct mw_rng *rng)
{
	double u = mw_rng_uniform(rng);
	uint32_t rank = w->guide[(uint32_t)(u * w->features)];
	while (w->cdf[rank] <= u)
		rank++;
	return rank;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* seen: a byte for each rank, all 0 before and after. pick: room for the row. */
static void make_row(const struct world *w, uint64_t row, unsigned char *seen, uint64_t *pick)
{
	struct mw_dataset *d = w->d;
	uint32_t *col = d->col + d->row_ptr[row];
	float *val = d->val + d->row_ptr[row];
	double dot = 0, squares = 0, scale;
	struct mw_rng rng;
	uint64_t n, c;
	mw_synth_row_rng(w->s, row, &rng);
	n = draw_length(w, &rng);
	for (uint64_t i = 0; i < n;) {
		uint32_t rank = draw_rank(w, &rng);
		if (!seen[rank]) {
			seen[rank] = 1;
			pick[i++] = (uint64_t)w->id[rank] << 32 | rank;
		}
	}
	qsort(pick, n, sizeof(*pick), compare);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t rank = (uint32_t)pick[i];
		double x = (double)w->idf[rank] * (1 - 0.5 * log(1 - mw_rng_uniform(&rng)));
		seen[rank] = 0;
		col[i] = (uint32_t)(pick[i] >> 32);
		val[i] = (float)x;
		squares += x * x;
		dot += x * (double)w->weight[rank];
	}
	scale = 1 / sqrt(squares);
	for (uint64_t i = 0; i < n; i++)
		val[i] = (float)((double)val[i] * scale);
	c = dot != 0 ? dot > 0 : mw_rng_next(&rng) >> 63;
	d->y[row] = mw_synth_flip(w->s, &rng, c, 2) ? 1.0f : -1.0f;
}

static void row_range(const struct world *w, int i, uint64_t *from, uint64_t *to)
{
	*from = (uint64_t)((unsigned __int128)w->d->rows * (unsigned)i / (unsigned)w->threads);
	*to = (uint64_t)((unsigned __int128)w->d->rows * ((unsigned)i + 1) / (unsigned)w->threads);
}

static void length_task(void *ctx, int i)
{
	struct world *w = ctx;
	uint64_t from, to;
	struct mw_rng rng;
	row_range(w, i, &from, &to);
	for (uint64_t r = from; r < to; r++) {
		mw_synth_row_rng(w->s, r, &rng);
		w->d->row_ptr[r + 1] = draw_length(w, &rng);
	}
}

static void row_task(void *ctx, int i)
{
	struct world *w = ctx;
	unsigned char *seen = mw_alloc(w->features, "marks of features", &w->err[i]);
	uint64_t *pick = mw_alloc_array(w->length_max, sizeof(*pick), "features of a row", &w->err[i]);
	uint64_t from, to;
	row_range(w, i, &from, &to);
	for (uint64_t r = from; seen && pick && r < to; r++)
		make_row(w, r, seen, pick);
	mw_free(seen);
	mw_free(pick);
}

static int world_init(struct world *w, struct mw_err *err)
{
	w->cdf = mw_alloc_array(w->features, sizeof(*w->cdf), "popularity of features", err);
	w->guide = mw_alloc_array(w->features, sizeof(*w->guide), "popularity of features", err);
	w->id = mw_alloc_array(w->features, sizeof(*w->id), "columns of features", err);
	w->idf = mw_alloc_array(w->features, sizeof(*w->idf), "weights of features", err);
	w->weight = mw_alloc_array(w->features, sizeof(*w->weight), "weights of features", err);
	w->err = mw_alloc_array((size_t)w->threads, sizeof(*w->err), "errors of threads", err);
	if (!w->cdf || !w->guide || !w->id || !w->idf || !w->weight || !w->err)
		return MW_ERESOURCE;
	fill_popularity(w);
	fill_signal(w);
	return 0;
}

static void world_fini(struct world *w)
{
	mw_free(w->cdf);
	mw_free(w->guide);
	mw_free(w->id);
	mw_free(w->idf);
	mw_free(w->weight);
	mw_free(w->err);
}

static int make_rows(struct world *w, struct mw_err *err)
{
	struct mw_dataset *d = w->d;
	d->row_ptr = mw_alloc_array(d->rows + 1, sizeof(*d->row_ptr), "row pointers", err);
	d->y = mw_alloc_array(d->rows, sizeof(*d->y), "labels", err);
	if (!d->row_ptr || !d->y)
		return MW_ERESOURCE;
	mw_parallel_run(w->threads, length_task, w);
	for (uint64_t r = 0; r < d->rows; r++)
		d->row_ptr[r + 1] += d->row_ptr[r];
	d->nnz = d->row_ptr[d->rows];
	d->col = mw_alloc_array(d->nnz + CSR_PAD, sizeof(*d->col), "column indices", err);
	d->val = mw_alloc_array(d->nnz + CSR_PAD, sizeof(*d->val), "values", err);
	if (!d->col || !d->val)
		return MW_ERESOURCE;
	mw_parallel_run(w->threads, row_task, w);
	for (int i = 0; i < w->threads; i++)
		if (w->err[i].code)
			return mw_err_set(err, w->err[i].code, "%s", w->err[i].msg);
	return mw_labels_set(d, 2, err);
}

int mw_synth_sparse(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err)
{
	struct world w = { .s = s, .d = d, .features = (uint32_t)s->features };
	int ret;
	if (s->nnz > s->features)
		MW_FAIL(err, USAGE, "%s: nnz=%lld is more than features=%lld; take fewer", d->name,
			(long long)s->nnz, (long long)s->features);
	d->kind = MW_X_CSR;
	d->rows = (uint64_t)s->rows;
	d->features = w.features;
	w.length_max = (uint64_t)s->nnz * LENGTH_MAX_TIMES;
	if (w.length_max > w.features)
		w.length_max = w.features;
	w.threads = mw_parallel_threads(s->threads, d->rows, THREAD_ROWS);
	ret = world_init(&w, err);
	if (ret == 0)
		ret = make_rows(&w, err);
	world_fini(&w);
	return ret;
}
