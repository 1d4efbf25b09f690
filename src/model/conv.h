/*
 * conv.h: convolutions of NHWC images by one of several engines, chosen at run time (--conv).
 *
 *   onednn    oneDNN (C API, version 2), loaded when it is first wanted. One thread: each worker has primitives and a
 *             stream of its own, and the OpenMP runtime underneath is told so by every thread that calls it.
 *   portable  own kernels (net_kernel.h) on an image at a time; with --isa portable the same bits on every machine.
 *   blas      columns (im2col) and one product an image, by OpenBLAS.
 *
 * A layer that oneDNN has only its reference code for is given to the own kernels.
 */
#ifndef MW_MODEL_CONV_H
#define MW_MODEL_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/gemm.h"

enum mw_conv_kind { MW_CONV_AUTO, MW_CONV_ONEDNN, MW_CONV_BLAS, MW_CONV_PORTABLE };
#define MW_CONV_CHOICES "auto|onednn|blas|portable"

struct mw_conv_shape {
	uint32_t rows, cols, in; /* of an image, and its channels */
	uint32_t out;            /* channels */
	uint32_t kernel, stride, pad;
	uint32_t out_rows, out_cols;
};

/* Memory that the convolutions of one worker use in turn. */
struct mw_conv_space {
	size_t want; /* bytes; the largest of all layers */
	void *p;
};

struct mw_conv_ops {
	const char *name;
	/* For batches of `batch` images or fewer; space: adds to ->want. gemm: for engines that need one. */
	void *(*work_new)(const struct mw_conv_shape *s, uint32_t batch, const struct mw_gemm *gemm,
		struct mw_conv_space *space, struct mw_err *err);
	void (*work_free)(void *work);
	/* x, y: n images; weight: OIHW, as it was given to forward when backward follows it. */
	void (*forward)(void *work, uint32_t n, const float *x, const float *weight, float *y);
	/* dweight: OIHW, written. dx may be NULL. */
	void (*backward)(void *work, uint32_t n, const float *x, const float *dy, const float *weight,
		float *dx, float *dweight);
};

/* What a layer does with its shape. */
struct mw_conv_plan {
	struct mw_conv_shape shape;
	const struct mw_conv_ops *ops;
};

/* What --conv auto takes where it can: --with-conv of configure. */
#ifndef MW_CONV_DEFAULT
#define MW_CONV_DEFAULT MW_CONV_ONEDNN
#endif

extern const struct mw_conv_ops mw_conv_onednn, mw_conv_columns, mw_conv_own;

/* The engine asked for, made definite; USAGE or RESOURCE if it can't be had here. */
int mw_conv_resolve(enum mw_conv_kind want, enum mw_conv_kind *kind, struct mw_err *err);
/* Which code does this shape under that (definite) engine. */
const struct mw_conv_ops *mw_conv_for(enum mw_conv_kind kind, const struct mw_conv_shape *s);
/* The product that goes with an engine. */
const struct mw_gemm *mw_conv_product(enum mw_conv_kind kind);
/* Before a thread runs convolutions: that it is alone. Costs nothing. */
void mw_conv_enter(void);

/* onednn: can it be used? *why (static) says why not. Thread-safe. */
bool mw_onednn_usable(const char **why);
/* "oneDNN 2.6.3"; only when usable. */
const char *mw_onednn_name(void);
/* Does it have more than reference code for this shape? */
bool mw_onednn_suits(const struct mw_conv_shape *s);
void mw_onednn_enter(void);

#endif
