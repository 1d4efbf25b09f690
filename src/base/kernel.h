/*
 * kernel.h: the vector kernels, one table per instruction set, chosen at start.
 *
 * The same source (kernel_body.h, kernel_inline.h) is compiled three times: portable (no intrinsics: the same
 * bits on every machine), AVX2+FMA, AVX-512; always with -ffp-contract=off. Within one table these keep the
 * same order of summation, so that a fused step and its plain loop agree to the bit: dot_sparse and dot_compact; dot, for
 * long dense rows, has one of its own. Updates round the product before the addition in every table, and exp and log (approx.h) give
 * the same bits in every table.
 *
 * Arguments named w are floats of a replica: they may be read and written by other threads at the same time,
 * and are touched only by single aligned 4-byte accesses (shared.h). All others are private to the caller or
 * immutable.
 */
#ifndef MW_BASE_KERNEL_H
#define MW_BASE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum mw_isa { MW_ISA_PORTABLE, MW_ISA_AVX2, MW_ISA_AVX512, MW_ISA_COUNT };

struct mw_kernels {
	const char *name; /* "portable", "avx2", "avx512" */
	enum mw_isa isa;

	/* sum_i a[i] b[i] */
	float (*dot)(const float *a, const float *b, size_t n);
	/* sum_i w[idx[i]] val[i]; idx below 2^31. Reads nothing past n and no other coordinate of w. */
	float (*dot_sparse)(const float *w, const uint32_t *idx, const float *val, size_t n);
	/* the same on values gathered before: sum_i wc[i] val[i], in dot_sparse's order and with its bits */
	float (*dot_compact)(const float *wc, const float *val, size_t n);
	/* w[idx[i]] += a val[i], in order of i, racy */
	void (*axpy_sparse)(float a, const uint32_t *idx, const float *val, float *w, size_t n);
	/* w[i] += a x[i], racy */
	void (*axpy)(float a, const float *x, float *w, size_t n);
	/* out[i] = w[i] */
	void (*view)(const float *w, float *out, size_t n);
	/* w[i] = x[i] */
	void (*store)(const float *x, float *w, size_t n);
	/* out[i*width + j] = w[group[i]*width + j] */
	void (*gather)(const float *w, const uint32_t *group, size_t n, uint32_t width, float *out);
	/* w[group[i]*width + j] += d[i*width + j], racy */
	void (*scatter_add)(const float *d, const uint32_t *group, size_t n, uint32_t width, float *w);

	/*
	 * Rows of `width` consecutive private floats, for models with several outputs.
	 * rows_dot: z[j] += sum_i val[i] w[group[i]*width + j]. rows_add: g[group[i]*width + j] += val[i]
	 * c[j].
	 */
	void (*rows_dot)(
		const float *w, const uint32_t *group, const float *val, size_t n, uint32_t width, float *z);
	void (*rows_add)(
		const float *c, const uint32_t *group, const float *val, size_t n, uint32_t width, float *g);
	/* Indices and values of the non-zero entries of x, in order; idx and val have room for n + 16. Their
	 * number. */
	size_t (*nonzeros)(const float *x, size_t n, uint32_t *idx, float *val);

	/* 1 / (1 + exp(-z)), log(1 + exp(z)): within 2.5 ulp of float over the whole range */
	float (*sigmoid)(float z);
	float (*softplus)(float z);
	/* in place: z[i] := exp(z[i] - max) / sum; returns log(sum exp z). n >= 1 */
	float (*softmax)(float *z, size_t n);
};

/* The best table this CPU (and, for AVX, its OS) supports. */
enum mw_isa mw_isa_detect(void);
/* "auto", "portable", "avx2", "avx512"; what the CPU lacks is a RESOURCE error. Once, before threads start.
 */
int mw_isa_select(const char *name, struct mw_err *err);
/* The selected table (auto when nothing was selected). Thread-safe. */
const struct mw_kernels *mw_kernels(void);
/* A given table, NULL if this CPU lacks it. */
const struct mw_kernels *mw_kernels_of(enum mw_isa isa);

#endif
