/*
 * conv_product.c: convolutions an image at a time, so that it stays in cache: by matrix products on columns (OpenBLAS),
 * y = columns(x) x weights and dweights = columns(x)' x dy, or the same by own kernels on the image with a border. dx
 * is, at stride 1, the convolution of dy with the turned kernel; else dy x weights' is added up at the pixels that the
 * columns came from.
 */
#include <string.h>

#include "base/mem.h"
#include "model/conv.h"
#include "model/net_kernel.h"

struct work {
	struct mw_conv_shape s, back; /* back: the convolution that gives dx */
	bool turned;                  /* there is one */
	bool own;
	const struct mw_gemm *gemm;
	const struct mw_net_kernels *k;
	struct mw_conv_space *space; /* columns, or the image with its border */
	size_t depth, pixels;        /* kernel^2 in; output pixels */
	float *weight, *dweight;     /* depth x out */
	float *back_weight;          /* kernel^2 out x in */
	float *panel, *back_panel;   /* own: these in the kernels' order */
};

static void work_free(void *work)
{
	struct work *w = work;
	if (w) {
		mw_free(w->weight);
		mw_free(w->dweight);
		mw_free(w->back_weight);
		mw_free(w->panel);
		mw_free(w->back_panel);
	}
	mw_free(w);
}

static size_t depth_of(const struct mw_conv_shape *s)
{
	return (size_t)s->kernel * s->kernel * s->in;
}

/* What the space has to hold for a shape: columns, or a border around the image. */
static void need(struct work *w, const struct mw_conv_shape *s, bool columns)
{
	size_t floats = columns ? depth_of(s) * s->out_rows * s->out_cols
				: ((size_t)s->rows + 2 * s->pad) * ((size_t)s->cols + 2 * s->pad) * s->in +
					  MW_NET_SLACK;
	size_t bytes = floats * sizeof(float);
	w->space->want = bytes > w->space->want ? bytes : w->space->want;
}

static float *panel_new(const struct mw_conv_shape *s, struct mw_err *err)
{
	size_t out = ((size_t)s->out + MW_NET_PANEL - 1) / MW_NET_PANEL * MW_NET_PANEL;
	return mw_alloc_array(depth_of(s) * out, sizeof(float), "a convolution", err);
}

static void *work_new(const struct mw_conv_shape *s, bool own, const struct mw_gemm *gemm,
	struct mw_conv_space *space, struct mw_err *err)
{
	struct work *w = mw_alloc(sizeof(*w), "a convolution", err);
	if (!w)
		return NULL;
	w->s = *s;
	w->back = (struct mw_conv_shape){ s->out_rows, s->out_cols, s->out, s->in, s->kernel, 1,
		s->kernel - 1 - s->pad, s->rows, s->cols };
	w->turned = s->stride == 1 && s->pad < s->kernel;
	w->own = own;
	w->gemm = gemm;
	w->k = mw_net_kernels();
	w->space = space;
	w->depth = depth_of(s);
	w->pixels = (size_t)s->out_rows * s->out_cols;
	need(w, s, !own || !w->turned);
	need(w, s, false);
	if (w->turned)
		need(w, &w->back, !own);
	w->weight = mw_alloc_array(w->depth * s->out, sizeof(float), "a convolution", err);
	w->dweight = mw_alloc_array(w->depth * s->out, sizeof(float), "a convolution", err);
	w->back_weight = mw_alloc_array(w->depth * s->out, sizeof(float), "a convolution", err);
	w->panel = panel_new(s, err);
	w->back_panel = panel_new(&w->back, err);
	if (w->weight && w->dweight && w->back_weight && w->panel && w->back_panel)
		return w;
	work_free(w);
	return NULL;
}

static void *own_new(const struct mw_conv_shape *s, uint32_t batch, const struct mw_gemm *gemm,
	struct mw_conv_space *space, struct mw_err *err)
{
	(void)batch;
	return work_new(s, true, gemm, space, err);
}

static void *columns_new(const struct mw_conv_shape *s, uint32_t batch, const struct mw_gemm *gemm,
	struct mw_conv_space *space, struct mw_err *err)
{
	(void)batch;
	return work_new(s, false, gemm, space, err);
}

/* --- weights ------------------------------------------------------------------------------------------------------- */

/* OIHW to (kernel row, kernel column, in) x out, and back. */
static void sort_weights(const struct work *w, const float *oihw, float *sorted)
{
	size_t taps = (size_t)w->s.kernel * w->s.kernel, in = w->s.in, out = w->s.out;
	for (size_t o = 0; o < out; o++)
		for (size_t i = 0; i < in; i++)
			for (size_t t = 0; t < taps; t++)
				sorted[(t * in + i) * out + o] = *oihw++;
}

static void unsort_weights(const struct work *w, const float *sorted, float *oihw)
{
	size_t taps = (size_t)w->s.kernel * w->s.kernel, in = w->s.in, out = w->s.out;
	for (size_t o = 0; o < out; o++)
		for (size_t i = 0; i < in; i++)
			for (size_t t = 0; t < taps; t++)
				*oihw++ = sorted[(t * in + i) * out + o];
}

/* OIHW to (kernel row, kernel column, out) x in with the kernel turned by half a turn. */
static void turn_weights(const struct work *w, const float *oihw, float *turned)
{
	size_t taps = (size_t)w->s.kernel * w->s.kernel, in = w->s.in, out = w->s.out;
	for (size_t o = 0; o < out; o++)
		for (size_t i = 0; i < in; i++)
			for (size_t t = 0; t < taps; t++)
				turned[((taps - 1 - t) * out + o) * in + i] = *oihw++;
}

/* --- images --------------------------------------------------------------------------------------------------------- */

/* A kernel of one pixel without padding reads the image as it is. */
static const float *columns(const struct work *w, const struct mw_conv_shape *s, const float *image)
{
	if (s->kernel == 1 && s->stride == 1 && s->pad == 0)
		return image;
	w->k->to_columns(s, image, w->space->p);
	return w->space->p;
}

static const float *bordered(const struct work *w, const struct mw_conv_shape *s, const float *image)
{
	if (s->pad == 0)
		return image;
	w->k->pad_image(s, image, w->space->p);
	return w->space->p;
}

static void convolve(const struct work *w, const struct mw_conv_shape *s, const float *image,
	const float *weight, const float *panel, float *y)
{
	size_t depth = depth_of(s);
	if (w->own)
		w->k->convolve(s, bordered(w, s, image), panel, y);
	else
		w->gemm->multiply(false, false, (size_t)s->out_rows * s->out_cols, s->out, depth,
			columns(w, s, image), depth, weight, s->out, false, y, s->out);
}

static void convolve_weights(const struct work *w, const float *image, const float *dy, bool more)
{
	if (w->own)
		w->k->convolve_weights(&w->s, bordered(w, &w->s, image), dy, w->dweight);
	else
		w->gemm->multiply(true, false, w->depth, w->s.out, w->pixels, columns(w, &w->s, image),
			w->depth, dy, w->s.out, more, w->dweight, w->s.out);
}

static void convolve_back(const struct work *w, const float *dy, float *dx)
{
	float *col = w->space->p;
	if (w->turned) {
		convolve(w, &w->back, dy, w->back_weight, w->back_panel, dx);
		return;
	}
	w->gemm->multiply(false, true, w->pixels, w->depth, w->s.out, dy, w->s.out, w->weight, w->s.out,
		false, col, w->depth);
	memset(dx, 0, (size_t)w->s.rows * w->s.cols * w->s.in * sizeof(*dx));
	w->k->from_columns(&w->s, col, dx);
}

static void forward(void *work, uint32_t n, const float *x, const float *weight, float *y)
{
	struct work *w = work;
	size_t in = (size_t)w->s.rows * w->s.cols * w->s.in, out = w->pixels * w->s.out;
	sort_weights(w, weight, w->weight);
	if (w->own)
		w->k->pack_panels(w->weight, w->depth, w->s.out, w->panel);
	for (uint32_t i = 0; i < n; i++)
		convolve(w, &w->s, x + i * in, w->weight, w->panel, y + i * out);
}

static void backward(void *work, uint32_t n, const float *x, const float *dy, const float *weight, float *dx,
	float *dweight)
{
	struct work *w = work;
	size_t in = (size_t)w->s.rows * w->s.cols * w->s.in, out = w->pixels * w->s.out;
	if (dx && w->turned)
		turn_weights(w, weight, w->back_weight);
	if (dx && w->turned && w->own)
		w->k->pack_panels(w->back_weight, depth_of(&w->back), w->back.out, w->back_panel);
	memset(w->dweight, 0, w->depth * w->s.out * sizeof(*w->dweight));
	for (uint32_t i = 0; i < n; i++) {
		convolve_weights(w, x + i * in, dy + i * out, i > 0);
		if (dx)
			convolve_back(w, dy + i * out, dx + i * in);
	}
	unsort_weights(w, w->dweight, dweight);
}

const struct mw_conv_ops mw_conv_columns = { "columns", columns_new, work_free, forward, backward };
const struct mw_conv_ops mw_conv_own = { "own", own_new, work_free, forward, backward };
