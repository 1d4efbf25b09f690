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

/* What kernels may touch behind an array, in elements; and the widest panel. */
#define MW_NET_SLACK 64
#define MW_NET_PANEL 32

struct mw_conv_shape;

struct mw_net_kernels {
	const char *name;

	/* C = op(A) op(B) (accumulate: C += ...), row-major, op(A) m x k and op(B) k x n; ta, tb: stored transposed. */
	void (*gemm)(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda,
		const float *b, size_t ldb, bool accumulate, float *c, size_t ldc);

	/* x += bias, then ReLU if asked, in place */
	void (*bias_act)(float *x, const float *bias, size_t rows, size_t c, bool relu);
	/* dy := dy where y > 0 (relu), in place; db[j] = sum over rows */
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

	/* An image to columns, out_rows * out_cols rows of kernel^2 * in floats; and back: dx += what each came from. */
	void (*to_columns)(const struct mw_conv_shape *s, const float *x, float *col);
	void (*from_columns)(const struct mw_conv_shape *s, const float *col, float *dx);

	/*
	 * Convolution of one image with its border of `pad` zeros around it (pad_image; padded: room for them and
	 * MW_NET_SLACK floats). panel: weights (depth x out, depth = kernel^2 in, in the order of columns) by
	 * pack_panels, out rounded up to MW_NET_PANEL. dweight (depth x out) += its gradient; reads MW_NET_SLACK floats
	 * past dy.
	 */
	void (*pad_image)(const struct mw_conv_shape *s, const float *x, float *padded);
	void (*pack_panels)(const float *weight, size_t depth, size_t out, float *panel);
	void (*convolve)(const struct mw_conv_shape *s, const float *padded, const float *panel, float *y);
	void (*convolve_weights)(
		const struct mw_conv_shape *s, const float *padded, const float *dy, float *dweight);

	/* y += x */
	void (*add)(const float *x, float *y, size_t n);
	/*
	 * The largest of each k x k window (no padding, stride s) of one image, and its place in the window: 0..k*k-1,
	 * the first of equals. Reads and writes up to MW_NET_SLACK elements past the arrays.
	 */
	void (*max_pool)(const float *x, size_t cols, size_t c, size_t out_rows, size_t out_cols, size_t k,
		size_t s, float *y, uint8_t *place);
};

extern const struct mw_net_kernels mw_net_kernels_portable, mw_net_kernels_avx2, mw_net_kernels_avx512;

/* The table for the instruction set that base/kernel.h has selected. Thread-safe. */
const struct mw_net_kernels *mw_net_kernels(void);

#endif
