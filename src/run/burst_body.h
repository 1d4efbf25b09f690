/* burst_body.h: the fused update path; the file that includes it defines BURST, the function's name. */
#include "base/kernel_inline.h"
#include "model/link.h"
#include "run/burst.h"

/* A row's label and where it lies, for fetch_row to use some rows later. */
static inline void fetch_ptr(const struct mw_dataset *d, uint64_t row)
{
	__builtin_prefetch(&d->y[row]);
	__builtin_prefetch(&d->row_ptr[row]);
}

/*
 * By lines, not by elements: a row seldom begins at a line, and its last one would be missed. Always `lines` of them, so
 * that the branch that ends most rows is a predicted one.
 */
static inline void fetch_row(const struct mw_dataset *d, uint64_t row, uint32_t lines)
{
	uint64_t o = d->row_ptr[row] & ~(uint64_t)15, e = d->row_ptr[row + 1];
	for (uint32_t k = 0; k < lines; k++, o += 16) {
		__builtin_prefetch(&d->col[o]);
		__builtin_prefetch(&d->val[o]);
	}
	for (; o < e; o += 16) {
		__builtin_prefetch(&d->col[o]);
		__builtin_prefetch(&d->val[o]);
	}
}

static inline void count_push(const struct mw_burst *b)
{
	if (b->atomic)
		__atomic_add_fetch(b->tally, 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(b->tally, __atomic_load_n(b->tally, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* link, has_bias and atomic are constants in each caller, so that the loop has no branch on them. */
static inline __attribute__((always_inline)) void run_link(
	const struct mw_burst *b, enum mw_link link, bool has_bias, bool atomic)
{
	const struct mw_dataset *d = b->data;
	float *x = b->x, *bias = &x[d->features];
	uint64_t done = *b->pushes, examples = *b->examples, steps = *b->steps;
	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t row = b->row[i], o = d->row_ptr[row];
		size_t n = d->row_ptr[row + 1] - o;
		const uint32_t *col = d->col + o;
		const float *val = d->val + o;
		if (i + MW_BURST_AHEAD < b->ahead)
			fetch_ptr(d, b->row[i + MW_BURST_AHEAD]);
		if (i + MW_BURST_ROW_AHEAD < b->ahead)
			fetch_row(d, b->row[i + MW_BURST_ROW_AHEAD], b->lines);
		float z = mwk_dot_sparse(x, col, val, n) + (has_bias ? mw_ld(bias) : 0);
		float a = mw_link_dloss(link, z, d->y[row]) * b->scale;
		if (atomic) {
			for (size_t k = 0; k < n; k++)
				mw_add_atomic(&x[col[k]], a * val[k]);
			if (has_bias)
				mw_add_atomic(bias, a);
		} else {
			mwk_axpy_sparse(a, col, val, x, n);
			if (has_bias)
				mw_st(bias, mw_ld(bias) + a);
		}
		if (b->tally)
			count_push(b);
		__atomic_store_n(b->pushes, done + i + 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(b->examples, examples + b->n, __ATOMIC_RELAXED);
	__atomic_store_n(b->steps, steps + b->n, __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline)) void run(const struct mw_burst *b, enum mw_link link)
{
	if (b->atomic)
		b->linear->bias ? run_link(b, link, true, true) : run_link(b, link, false, true);
	else
		b->linear->bias ? run_link(b, link, true, false) : run_link(b, link, false, false);
}

void BURST(const struct mw_burst *b)
{
	switch (b->linear->link) {
	case MW_LINK_LOGISTIC: run(b, MW_LINK_LOGISTIC); break;
	case MW_LINK_HINGE: run(b, MW_LINK_HINGE); break;
	case MW_LINK_SIGMOID_SQUARED: run(b, MW_LINK_SIGMOID_SQUARED); break;
	case MW_LINK_SQUARED: run(b, MW_LINK_SQUARED); break;
	}
}
