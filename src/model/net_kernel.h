/*
 * net_kernel.h: the vector kernels of nets, one table per instruction set as in base/kernel.h: matrix products for
 * builds and runs without BLAS, bias and ReLU, and batch norm fused with the residual sum and ReLU.
 *
 * All memory is private to the calling thread. Activations are NHWC: `rows` pixels (or examples) of c consecutive
 * channels. Within a table results are a pure function of the arguments; the portable table gives the same bits on
 * every machine.
 */
#ifndef MW_MODEL_NET_KERNEL_H
#define MW_MODEL_NET_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_net_kernels {
	const char *name;

	/* C = op(A) op(B) (accumulate: C += ...), row-major, op(A) m x k and op(B) k x n; ta, tb: stored transposed. */
	void (*gemm)(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda,
		const float *b, size_t ldb, bool accumulate, float *c, size_t ldc);

	/* x += bias (NULL: none), then ReLU if asked, in place */
	void (*bias_act)(float *x, const float *bias, size_t rows, size_t c, bool relu);
	/* dy := dy where y > 0 (relu), in place; db[j] = sum over rows (NULL: not wanted) */
	void (*bias_act_back)(const float *y, float *dy, size_t rows, size_t c, bool relu, float *db);

	/* sum[j] += x - shift[j], square[j] += (x - shift[j])^2; float sums of at most 1,024 rows, then double */
	void (*norm_sums)(
		const float *x, const float *shift, size_t rows, size_t c, double *sum, double *square);
	/* y = (x - mean[j]) scale[j] + offset[j] (+ add), then ReLU if asked */
	void (*norm_apply)(const float *x, const float *add, const float *mean, const float *scale,
		const float *offset, size_t rows, size_t c, bool relu, float *y);
	/*
	 * dz = (dy + dy2) where y > 0 (relu; dy2 may be NULL, dz may be dy), and its sums over rows:
	 * sum[j] += dz, cross[j] += dz (x - mean[j]).
	 */
	void (*norm_back_sums)(const float *x, const float *y, const float *dy, const float *dy2,
		const float *mean, size_t rows, size_t c, bool relu, float *dz, double *sum, double *cross);
	/* dx = a[j] dz + b[j] (x - mean[j]) + d[j] */
	void (*norm_back_apply)(const float *x, const float *dz, const float *mean, const float *a,
		const float *b, const float *d, size_t rows, size_t c, float *dx);

	/* y += x */
	void (*add)(const float *x, float *y, size_t n);
	/*
	 * The largest of each k x k window (no padding, stride s) of one image, and its place in the window: 0..k*k-1,
	 * the first of equals.
	 */
	void (*max_pool)(const float *x, size_t cols, size_t c, size_t out_rows, size_t out_cols, size_t k,
		size_t s, float *y, uint8_t *place);
};

extern const struct mw_net_kernels mw_net_kernels_portable, mw_net_kernels_avx2, mw_net_kernels_avx512;

/* The table for the instruction set that base/kernel.h has selected. Thread-safe. */
const struct mw_net_kernels *mw_net_kernels(void);

#endif
