/* burst_body.h: the fused update path; the file that includes it defines BURST, the function's name. */
#include "base/kernel_inline.h"
#include "model/link.h"
#include "run/burst.h"

static inline void fetch_row(const struct mw_dataset *d, uint64_t row)
{
	uint64_t o = d->row_ptr[row], e = d->row_ptr[row + 1];
	__builtin_prefetch(&d->y[row]);
	for (; o < e; o += 16) {
		__builtin_prefetch(&d->col[o]);
		__builtin_prefetch(&d->val[o]);
	}
}

static inline void add_row(const struct mw_burst *b, uint64_t o, size_t n, float a)
{
	if (b->atomic) {
		for (size_t i = 0; i < n; i++)
			mw_add_atomic(&b->x[b->data->col[o + i]], a * b->data->val[o + i]);
	} else {
		mwk_axpy_sparse(a, b->data->col + o, b->data->val + o, b->x, n);
	}
}

static inline void add_bias(const struct mw_burst *b, float a)
{
	float *bias = &b->x[b->data->features];
	if (b->atomic)
		mw_add_atomic(bias, a);
	else
		mw_st(bias, mw_ld(bias) + a);
}

static inline void count_push(const struct mw_burst *b)
{
	if (b->atomic)
		__atomic_add_fetch(b->tally, 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(b->tally, __atomic_load_n(b->tally, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* link and has_bias are constants in each caller, so that the loop has no branch on them. */
static inline __attribute__((always_inline)) void run_link(
	const struct mw_burst *b, enum mw_link link, bool has_bias)
{
	const struct mw_dataset *d = b->data;
	uint64_t done = *b->pushes, examples = *b->examples, steps = *b->steps;
	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t row = b->row[i], o = d->row_ptr[row];
		size_t n = d->row_ptr[row + 1] - o;
		if (i + MW_BURST_AHEAD < b->ahead)
			fetch_row(d, b->row[i + MW_BURST_AHEAD]);
		float z = mwk_dot_sparse(b->x, d->col + o, d->val + o, n);
		if (has_bias)
			z += mw_ld(&b->x[d->features]);
		float a = mw_link_dloss(link, z, d->y[row]) * b->scale;
		add_row(b, o, n, a);
		if (has_bias)
			add_bias(b, a);
		if (b->tally)
			count_push(b);
		__atomic_store_n(b->pushes, done + i + 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(b->examples, examples + b->n, __ATOMIC_RELAXED);
	__atomic_store_n(b->steps, steps + b->n, __ATOMIC_RELAXED);
}

void BURST(const struct mw_burst *b)
{
	bool bias = b->linear->bias;
	switch (b->linear->link) {
	case MW_LINK_LOGISTIC:
		bias ? run_link(b, MW_LINK_LOGISTIC, true) : run_link(b, MW_LINK_LOGISTIC, false);
		break;
	case MW_LINK_HINGE:
		bias ? run_link(b, MW_LINK_HINGE, true) : run_link(b, MW_LINK_HINGE, false);
		break;
	case MW_LINK_SIGMOID_SQUARED:
		bias ? run_link(b, MW_LINK_SIGMOID_SQUARED, true)
		     : run_link(b, MW_LINK_SIGMOID_SQUARED, false);
		break;
	case MW_LINK_SQUARED:
		bias ? run_link(b, MW_LINK_SQUARED, true) : run_link(b, MW_LINK_SQUARED, false);
		break;
	}
}
