/*
 * conv_gemm.c: convolution as a matrix product, an image at a time (so that the columns stay in cache): im2col writes
 * the pixels under the kernel of every output pixel into a row, in the order (kernel row, kernel column, channel), in
 * which NHWC has them in runs; then y = columns x weights. Backward: dweights = columns' x dy, and dx gathers
 * dcolumns = dy x weights' at the pixels they came from.
 */
#include <string.h>

#include "base/mem.h"
#include "model/conv.h"

struct work {
	struct mw_conv_shape s;
	const struct mw_gemm *gemm;
	struct mw_conv_space *space; /* columns, for one image */
	size_t depth, pixels;        /* kernel^2 in; output pixels */
	float *weight, *dweight;     /* depth x out */
};

static void work_free(void *work)
{
	struct work *w = work;
	if (w) {
		mw_free(w->weight);
		mw_free(w->dweight);
	}
	mw_free(w);
}

static void *work_new(const struct mw_conv_shape *s, uint32_t batch, const struct mw_gemm *gemm,
	struct mw_conv_space *space, struct mw_err *err)
{
	struct work *w = mw_alloc(sizeof(*w), "a convolution", err);
	(void)batch;
	if (!w)
		return NULL;
	w->s = *s;
	w->gemm = gemm;
	w->space = space;
	w->depth = (size_t)s->kernel * s->kernel * s->in;
	w->pixels = (size_t)s->out_rows * s->out_cols;
	size_t bytes = w->depth * w->pixels * sizeof(float);
	space->want = bytes > space->want ? bytes : space->want;
	w->weight = mw_alloc_array(w->depth * s->out, sizeof(float), "a convolution", err);
	if (w->weight)
		w->dweight = mw_alloc_array(w->depth * s->out, sizeof(float), "a convolution", err);
	if (w->weight && w->dweight)
		return w;
	work_free(w);
	return NULL;
}

/* OIHW to (kernel row, kernel column, in) x out, and back. */
static void turn(const struct work *w, const float *oihw, float *hwio)
{
	size_t taps = (size_t)w->s.kernel * w->s.kernel, in = w->s.in, out = w->s.out;
	for (size_t o = 0; o < out; o++)
		for (size_t i = 0; i < in; i++)
			for (size_t t = 0; t < taps; t++)
				hwio[(t * in + i) * out + o] = *oihw++;
}

static void turn_back(const struct work *w, const float *hwio, float *oihw)
{
	size_t taps = (size_t)w->s.kernel * w->s.kernel, in = w->s.in, out = w->s.out;
	for (size_t o = 0; o < out; o++)
		for (size_t i = 0; i < in; i++)
			for (size_t t = 0; t < taps; t++)
				*oihw++ = hwio[(t * in + i) * out + o];
}

/* The columns of the kernel at output column c that lie inside the image: [from, to). */
static inline void inside(
	const struct mw_conv_shape *s, uint32_t c, int64_t *left, int64_t *from, int64_t *to)
{
	*left = (int64_t)c * s->stride - s->pad;
	*from = *left < 0 ? -*left : 0;
	*to = *left + s->kernel > s->cols ? (int64_t)s->cols - *left : s->kernel;
	*from = *from > s->kernel ? s->kernel : *from;
	*to = *to < *from ? *from : *to;
}

static void im2col(const struct mw_conv_shape *s, const float *x, float *col)
{
	size_t run = (size_t)s->kernel * s->in;
	int64_t left, from, to;
	for (uint32_t r = 0; r < s->out_rows; r++)
		for (uint32_t c = 0; c < s->out_cols; c++) {
			inside(s, c, &left, &from, &to);
			for (uint32_t k = 0; k < s->kernel; k++, col += run) {
				int64_t row = (int64_t)r * s->stride + k - s->pad;
				if (row < 0 || row >= s->rows) {
					memset(col, 0, run * sizeof(*col));
					continue;
				}
				const float *pixel = x + (row * s->cols + left) * s->in;
				if (from)
					memset(col, 0, (size_t)from * s->in * sizeof(*col));
				memcpy(col + from * s->in, pixel + from * s->in,
					(size_t)(to - from) * s->in * sizeof(*col));
				if (to < s->kernel)
					memset(col + to * s->in, 0,
						(size_t)(s->kernel - to) * s->in * sizeof(*col));
			}
		}
}

/* dx += what each column came from. */
static void col2im(const struct mw_conv_shape *s, const float *col, float *dx)
{
	size_t run = (size_t)s->kernel * s->in;
	int64_t left, from, to;
	for (uint32_t r = 0; r < s->out_rows; r++)
		for (uint32_t c = 0; c < s->out_cols; c++) {
			inside(s, c, &left, &from, &to);
			for (uint32_t k = 0; k < s->kernel; k++, col += run) {
				int64_t row = (int64_t)r * s->stride + k - s->pad;
				if (row < 0 || row >= s->rows)
					continue;
				float *restrict pixel = dx + (row * s->cols + left + from) * s->in;
				const float *restrict p = col + from * s->in;
				for (int64_t i = 0, n = (to - from) * s->in; i < n; i++)
					pixel[i] += p[i];
			}
		}
}

/* A kernel of one pixel without padding reads the image as it is. */
static bool is_product(const struct mw_conv_shape *s)
{
	return s->kernel == 1 && s->stride == 1 && s->pad == 0;
}

static const float *columns(const struct work *w, const float *image)
{
	if (is_product(&w->s))
		return image;
	im2col(&w->s, image, w->space->p);
	return w->space->p;
}

static void forward(void *work, uint32_t n, const float *x, const float *weight, float *y)
{
	struct work *w = work;
	size_t in = (size_t)w->s.rows * w->s.cols * w->s.in, out = w->s.out;
	turn(w, weight, w->weight);
	for (uint32_t i = 0; i < n; i++)
		w->gemm->multiply(false, false, w->pixels, out, w->depth, columns(w, x + i * in), w->depth,
			w->weight, out, false, y + i * w->pixels * out, out);
}

static void backward(void *work, uint32_t n, const float *x, const float *dy, const float *weight, float *dx,
	float *dweight)
{
	struct work *w = work;
	size_t in = (size_t)w->s.rows * w->s.cols * w->s.in, out = w->s.out;
	(void)weight; /* turned by forward */
	for (uint32_t i = 0; i < n; i++) {
		const float *d = dy + i * w->pixels * out;
		w->gemm->multiply(true, false, w->depth, out, w->pixels, columns(w, x + i * in), w->depth, d,
			out, i > 0, w->dweight, out);
		if (!dx)
			continue;
		float *col = is_product(&w->s) ? dx + i * in : w->space->p;
		w->gemm->multiply(
			false, true, w->pixels, w->depth, out, d, out, w->weight, out, false, col, w->depth);
		if (is_product(&w->s))
			continue;
		memset(dx + i * in, 0, in * sizeof(*dx));
		col2im(&w->s, col, dx + i * in);
	}
	turn_back(w, w->dweight, dweight);
}

const struct mw_conv_ops mw_conv_gemm = { "product", work_new, work_free, forward, backward };
