/* bench.c: what `mixwild bench` measures, and what it measures on; see bench.h. */
#include "run/bench.h"

#include <string.h>
#include <unistd.h>

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

#include "base/alone.h"
#include "base/kernel_tables.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/merge.h"
#include "run/burst.h"

#define ROWS       40000
#define ROW_LENGTH 75
#define NNZ        ((uint64_t)ROWS * ROW_LENGTH)
#define FAR        ((size_t)1 << 20)
#define MB         ((uint64_t)1 << 20)
#define FMA_TURNS  200000
#define SIGMOIDS   100000

/* ---- data */

static uint64_t large_enough(void)
{
	long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
	uint64_t bytes = cache > 0 ? 4 * (uint64_t)cache : 0;
	return bytes < 64 * MB ? 64 * MB : bytes > 512 * MB ? 512 * MB : bytes;
}

static const struct mw_gauge_raw *raw_of(enum mw_isa isa)
{
#ifdef MW_KERNEL_X86
	if (isa == MW_ISA_AVX512)
		return &mw_gauge_avx512;
	if (isa == MW_ISA_AVX2)
		return &mw_gauge_avx2;
#endif
	(void)isa;
	return &mw_gauge_portable;
}

static int alloc_models(struct mw_gauge *b, struct mw_err *err)
{
	const size_t n = MW_GAUGE_GEMM * MW_GAUGE_GEMM;
	b->w = mw_alloc_array(MW_GAUGE_FEATURES + 1, sizeof(float), "a model", err);
	b->copy = mw_alloc_array(MW_GAUGE_FEATURES + 1, sizeof(float), "a model", err);
	b->base = mw_alloc_array(MW_GAUGE_FEATURES + 1, sizeof(float), "a model", err);
	b->a = mw_alloc_array(n, sizeof(float), "a matrix", err);
	b->b = mw_alloc_array(n, sizeof(float), "a matrix", err);
	b->c = mw_alloc_array(n, sizeof(float), "a matrix", err);
	if (!b->w || !b->copy || !b->base || !b->a || !b->b || !b->c)
		return MW_ERESOURCE;
	for (size_t i = 0; i < n; i++)
		b->a[i] = b->b[i] = (float)(i % 7) * 0.1f;
	return 0;
}

static int alloc_large(struct mw_gauge *b, uint64_t bytes, struct mw_err *err)
{
	struct mw_rng rng;
	b->n_large = (size_t)(bytes / sizeof(float) / MW_GAUGE_DENSE) * MW_GAUGE_DENSE;
	b->large = mw_alloc_array(b->n_large, sizeof(float), "memory to measure on", err);
	b->n_far = FAR;
	b->far = mw_alloc_array(FAR, sizeof(*b->far), "random places", err);
	if (!b->large || !b->far)
		return MW_ERESOURCE;
	for (size_t i = 0; i < b->n_large; i++)
		b->large[i] = 1e-3f;
	mw_rng_init(&rng, 1, 1);
	for (size_t i = 0; i < FAR; i++)
		b->far[i] = (uint32_t)mw_rng_below(&rng, b->n_large);
	return 0;
}

/* Few popular features and many rare ones, in rows of one length. */
static int alloc_rows(struct mw_gauge *b, struct mw_err *err)
{
	struct mw_dataset *d = &b->rows;
	struct mw_rng rng;
	d->kind = MW_X_CSR;
	d->rows = ROWS;
	d->nnz = NNZ;
	d->features = MW_GAUGE_FEATURES;
	d->row_ptr = mw_alloc_array(ROWS + 1, sizeof(*d->row_ptr), "row pointers", err);
	d->col = mw_alloc_array(NNZ + 16, sizeof(*d->col), "column indices", err);
	d->val = mw_alloc_array(NNZ + 16, sizeof(*d->val), "values", err);
	d->y = mw_alloc_array(ROWS, sizeof(*d->y), "labels", err);
	b->order = mw_alloc_array(ROWS, sizeof(*b->order), "rows", err);
	if (!d->row_ptr || !d->col || !d->val || !d->y || !b->order)
		return MW_ERESOURCE;
	mw_rng_init(&rng, 1, 2);
	for (uint64_t i = 0; i < NNZ; i++) {
		double u = mw_rng_uniform(&rng);
		d->col[i] = (uint32_t)(u * u * u * MW_GAUGE_FEATURES);
		d->val[i] = 0.1f;
	}
	for (uint64_t r = 0; r < ROWS; r++) {
		d->row_ptr[r + 1] = (r + 1) * ROW_LENGTH;
		d->y[r] = r % 2 ? 1 : -1;
		b->order[r] = r;
	}
	return 0;
}

int mw_gauge_init(struct mw_gauge *b, uint64_t large_bytes, struct mw_err *err)
{
	memset(b, 0, sizeof(*b));
	b->k = mw_kernels();
	b->raw = raw_of(b->k->isa);
	MW_TRY(alloc_models(b, err));
	MW_TRY(alloc_large(b, large_bytes ? large_bytes : large_enough(), err));
	return alloc_rows(b, err);
}

void mw_gauge_fini(struct mw_gauge *b)
{
	mw_free(b->large);
	mw_free(b->far);
	mw_free(b->w);
	mw_free(b->copy);
	mw_free(b->base);
	mw_free(b->a);
	mw_free(b->b);
	mw_free(b->c);
	mw_free(b->rows.row_ptr);
	mw_free(b->rows.col);
	mw_free(b->rows.val);
	mw_free(b->rows.y);
	mw_free(b->order);
}

/* ---- ceilings */

static double read_memory(struct mw_gauge *b)
{
	b->sink += b->raw->sum(b->large, b->n_large);
	return (double)b->n_large * sizeof(float);
}

static double copy_memory(struct mw_gauge *b)
{
	size_t half = b->n_large / 2 * sizeof(float);
	memcpy(b->large, (char *)b->large + half, half);
	return 2.0 * (double)half;
}

static double read_anywhere(struct mw_gauge *b)
{
	b->sink += b->raw->gather(b->large, b->far, b->n_far);
	return (double)b->n_far;
}

static double read_model(struct mw_gauge *b)
{
	b->sink += b->raw->gather(b->w, b->rows.col, NNZ);
	return (double)NNZ;
}

static double multiply_add(struct mw_gauge *b)
{
	double flops = 0;
	b->sink += b->raw->fma(FMA_TURNS, &flops);
	return flops;
}

/* ---- kernels */

static double dense_dot(struct mw_gauge *b)
{
	for (size_t i = 0; i < b->n_large; i += MW_GAUGE_DENSE)
		b->sink += b->k->dot(b->large + i, b->w, MW_GAUGE_DENSE);
	return (double)b->n_large;
}

static double dense_axpy(struct mw_gauge *b)
{
	for (size_t i = 0; i < b->n_large; i += MW_GAUGE_DENSE)
		b->k->axpy(1e-9f, b->large + i, b->w, MW_GAUGE_DENSE);
	return (double)b->n_large;
}

static double dense_step(struct mw_gauge *b)
{
	for (size_t i = 0; i < b->n_large; i += MW_GAUGE_DENSE) {
		float z = b->k->dot(b->large + i, b->w, MW_GAUGE_DENSE);
		b->k->axpy(1e-6f * (1 - z), b->large + i, b->w, MW_GAUGE_DENSE);
	}
	return (double)b->n_large;
}

static double sparse_dot(struct mw_gauge *b)
{
	for (uint64_t o = 0; o < NNZ; o += ROW_LENGTH)
		b->sink += b->k->dot_sparse(b->w, b->rows.col + o, b->rows.val + o, ROW_LENGTH);
	return (double)NNZ;
}

static double sparse_push(struct mw_gauge *b)
{
	for (uint64_t o = 0; o < NNZ; o += ROW_LENGTH)
		b->k->axpy_sparse(1e-9f, b->rows.col + o, b->rows.val + o, b->w, ROW_LENGTH);
	return (double)NNZ;
}

static double sparse_push_atomic(struct mw_gauge *b)
{
	for (uint64_t o = 0; o < NNZ / 4; o++)
		mw_add_atomic(&b->w[b->rows.col[o]], 1e-9f * b->rows.val[o]);
	return (double)(NNZ / 4);
}

/* The fused path of a run, as one worker of `sequential` takes it. */
static double sparse_step(struct mw_gauge *b)
{
	const struct mw_linear linear = { .link = MW_LINK_LOGISTIC };
	uint64_t pushes = 0, examples = 0, steps = 0;
	struct mw_burst burst = { .data = &b->rows,
		.linear = &linear,
		.x = b->w,
		.row = b->order,
		.n = ROWS,
		.ahead = ROWS,
		.own = true,
		.rate = 1e-6f,
		.weight = 1,
		.pushes = &pushes,
		.examples = &examples,
		.steps = &steps };
	mw_burst_run(&burst);
	return (double)NNZ;
}

static double merge(struct mw_gauge *b, bool atomic)
{
	for (size_t i = 0; i < MW_GAUGE_FEATURES; i += 4)
		b->copy[i] += 1e-6f;
	mw_merge(b->w, b->copy, b->base, MW_GAUGE_FEATURES, atomic);
	return MW_GAUGE_FEATURES;
}

static double merge_racy(struct mw_gauge *b)
{
	return merge(b, false);
}

static double merge_atomic(struct mw_gauge *b)
{
	return merge(b, true);
}

static double view(struct mw_gauge *b)
{
	b->k->view(b->w, b->copy, MW_GAUGE_FEATURES);
	return MW_GAUGE_FEATURES;
}

static double sigmoid(struct mw_gauge *b)
{
	for (int i = 0; i < SIGMOIDS; i++)
		b->sink += b->k->sigmoid((float)(i % 64) * 0.25f - 8);
	return SIGMOIDS;
}

#ifdef HAVE_CBLAS
static double gemm(struct mw_gauge *b)
{
	const int n = MW_GAUGE_GEMM;
	mw_stay_alone();
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, b->a, n, b->b, n, 0, b->c, n);
	return 2.0 * n * n * n;
}
#endif

const struct mw_gauge_item mw_gauge_items[] = {
	{ "read", "memory read from end to end", "GB/s", 1e-9, false, false, read_memory, 0, 1, 0 },
	{ "copy", "memory copied; bytes read and written", "GB/s", 1e-9, false, false, copy_memory, 0, 1, 0 },
	{ "gather-far", "floats read at random places of memory", "M/s", 1e-6, false, false, read_anywhere, 0,
		0, 1 },
	{ "gather-near", "floats read at a row's places of a model that is in a cache", "M/s", 1e-6, false,
		true, read_model, 0, 0, 1 },
	{ "fma", "multiply-adds on registers", "GFLOP/s", 1e-9, false, true, multiply_add, 1, 0, 0 },
	{ "core-to-core", "a cache line's way from one CPU to another", "ns", 0, false, true,
		mw_gauge_latency, 0, 0, 0 },

	{ "dense-dot", "dot of dense rows of 784 from memory", "M/s", 1e-6, true, false, dense_dot, 2, 4, 0 },
	{ "dense-axpy", "dense rows of 784 from memory, added to a model", "M/s", 1e-6, true, false,
		dense_axpy, 2, 4, 0 },
	{ "dense-step", "both, row by row", "M/s", 1e-6, true, false, dense_step, 4, 4, 0 },
	{ "sparse-dot", "dot of sparse rows of 75 of 47,236", "M/s", 1e-6, true, false, sparse_dot, 2, 8, 1 },
	{ "sparse-push", "sparse rows added to a model, racy", "M/s", 1e-6, true, false, sparse_push, 2, 8,
		1 },
	{ "sparse-push-atomic", "sparse rows added by compare-and-swap", "M/s", 1e-6, true, false,
		sparse_push_atomic, 2, 8, 1 },
	{ "sparse-step", "steps of logistic regression on sparse rows, as training takes them", "M/s", 1e-6,
		true, false, sparse_step, 4, 8, 2 },
	{ "merge", "a worker's changes merged into a shared model of 47,236, racy", "M/s", 1e-6, true, true,
		merge_racy, 0, 0, 0 },
	{ "merge-atomic", "the same by compare-and-swap", "M/s", 1e-6, true, true, merge_atomic, 0, 0, 0 },
	{ "view", "a model of 47,236 copied", "M/s", 1e-6, true, true, view, 0, 0, 0 },
	{ "sigmoid", "logistic functions", "M/s", 1e-6, true, true, sigmoid, 0, 0, 0 },
#ifdef HAVE_CBLAS
	{ "gemm", "BLAS: 256 x 256 matrices multiplied", "GFLOP/s", 1e-9, true, true, gemm, 1, 0, 0 },
#endif
	{ 0 },
};
