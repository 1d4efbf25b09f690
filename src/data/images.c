/* images.c: see images.h. */
#include "data/images.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* Floats that a row is padded to: one cache line. */
#define LD_UNIT 16
#define SHIFT   4

enum { STREAM_AUGMENT = 0xa06 };

/* ---- a batch as floats */

/* What one image is moved by. */
struct view {
	int down, right; /* out[i][j] = in[i + down][j + right], before mirroring */
	bool mirrored;
};

static struct view view_of(uint64_t key, uint32_t place)
{
	uint64_t bits = mw_hash3(key, STREAM_AUGMENT, place);
	const uint32_t span = 2 * SHIFT + 1;
	return (struct view){ (int)((bits & 0xffffffff) % span) - SHIFT, (int)((bits >> 32) % span) - SHIFT,
		bits >> 63 };
}

static void row_forward(const uint8_t *restrict in, size_t n, float mean, float scale, float *restrict out)
{
	for (size_t j = 0; j < n; j++)
		out[j] = ((float)in[j] - mean) * scale;
}

/* The same to every step-th float; step < 0: backwards, mirrored. */
static void row_strided(
	const uint8_t *restrict in, size_t n, float mean, float scale, float *restrict out, ptrdiff_t step)
{
	for (size_t j = 0; j < n; j++)
		out[(ptrdiff_t)j * step] = ((float)in[j] - mean) * scale;
}

static void row_zero(float *out, size_t n, ptrdiff_t step)
{
	for (size_t j = 0; j < n; j++)
		out[(ptrdiff_t)j * step] = 0;
}

/* One plane: rows of `cols` bytes into out, whose pixels are `step` and rows `row_step` floats apart. */
static void plane(const uint8_t *in, int rows, int cols, const struct view *v, float mean, float scale,
	float *out, ptrdiff_t step, ptrdiff_t row_step)
{
	int from = v->right < 0 ? -v->right : 0, to = v->right > 0 ? cols - v->right : cols;
	from = from < cols ? from : cols;
	to = to > from ? to : from;
	for (int i = 0; i < rows; i++) {
		ptrdiff_t s = v->mirrored ? -step : step;
		float *o = out + i * row_step + (v->mirrored ? (cols - 1) * step : 0);
		int y = i + v->down;
		if (y < 0 || y >= rows) {
			row_zero(o, (size_t)cols, s);
			continue;
		}
		const uint8_t *p = in + (size_t)y * (size_t)cols + from + v->right;
		row_zero(o, (size_t)from, s);
		if (s == 1)
			row_forward(p, (size_t)(to - from), mean, scale, o + from);
		else
			row_strided(p, (size_t)(to - from), mean, scale, o + from * s, s);
		row_zero(o + to * s, (size_t)(cols - to), s);
	}
}

static void image(const struct mw_dataset *d, uint64_t row, const struct view *v, enum mw_image_layout layout,
	float *out)
{
	size_t pixels = (size_t)d->image_rows * d->image_cols;
	int rows = (int)d->image_rows, cols = (int)d->image_cols;
	ptrdiff_t channels = (ptrdiff_t)d->channels;
	const uint8_t *in = d->pixel + row * d->features;
	for (uint32_t c = 0; c < d->channels; c++, in += pixels)
		if (layout == MW_NCHW)
			plane(in, rows, cols, v, d->pixel_mean[c], d->pixel_scale[c], out + c * pixels, 1,
				cols);
		else
			plane(in, rows, cols, v, d->pixel_mean[c], d->pixel_scale[c], out + c, channels,
				cols * channels);
}

/* Whole images in their own order, which need no rows: one long loop a plane. */
static void image_as_it_is(const struct mw_dataset *d, uint64_t row, float *out)
{
	size_t pixels = (size_t)d->image_rows * d->image_cols;
	const uint8_t *in = d->pixel + row * d->features;
	for (uint32_t c = 0; c < d->channels; c++)
		row_forward(in + c * pixels, pixels, d->pixel_mean[c], d->pixel_scale[c], out + c * pixels);
}

static void sparse_row(const struct mw_dataset *d, uint64_t row, float *out)
{
	memset(out, 0, d->features * sizeof(*out));
	for (uint64_t k = d->row_ptr[row]; k < d->row_ptr[row + 1]; k++)
		out[d->col[k]] = d->val[k];
}

void mw_batch_floats(const struct mw_batch *b, enum mw_image_layout layout, float *out)
{
	const struct mw_dataset *d = b->data;
	for (uint32_t i = 0; i < b->n; i++, out += d->features) {
		uint64_t row = b->row[i];
		switch (d->kind) {
		case MW_X_DENSE: memcpy(out, d->x + row * d->ld, d->features * sizeof(*out)); break;
		case MW_X_CSR: sparse_row(d, row, out); break;
		case MW_X_QUADRATIC: memset(out, 0, d->features * sizeof(*out)); break;
		case MW_X_IMAGE:
			if (!b->augment && (layout == MW_NCHW || d->channels == 1)) {
				image_as_it_is(d, row, out);
			} else {
				struct view v = b->augment ? view_of(b->augment, i) : (struct view){ 0 };
				image(d, row, &v, layout, out);
			}
		}
	}
}

/* ---- for readers */

static int check_like(const struct mw_data_request *req, const struct mw_dataset *d, struct mw_err *err)
{
	const struct mw_dataset *like = req->like;
	uint32_t width = like ? like->features : req->features;
	if (width && width != d->features)
		MW_FAIL(err, DATA, "%s: images of %u pixels, but %s has %u features", req->path, d->features,
			like ? "the training set" : "--features", width);
	if (like && like->kind == MW_X_IMAGE &&
		(like->channels != d->channels || like->image_rows != d->image_rows ||
			like->image_cols != d->image_cols))
		MW_FAIL(err, DATA,
			"%s: images of %u x %u with %u channels, but the training set's are %u x %u with %u",
			req->path, d->image_rows, d->image_cols, d->channels, like->image_rows,
			like->image_cols, like->channels);
	return 0;
}

int mw_images_prepare(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err)
{
	uint64_t features = (uint64_t)d->channels * d->image_rows * d->image_cols;
	if (features > UINT32_MAX / 2)
		MW_FAIL(err, DATA, "%s: images of %llu pixels are too large", req->path,
			(unsigned long long)features);
	d->features = (uint32_t)features;
	d->nnz = d->rows * features;
	MW_TRY(check_like(req, d, err));
	if (req->keep_bytes) {
		if (d->channels > MW_CHANNELS_MAX)
			MW_FAIL(err, DATA, "%s: images of %u channels; this model takes at most %d",
				req->path, d->channels, MW_CHANNELS_MAX);
		d->kind = MW_X_IMAGE;
		d->pixel = mw_alloc_array(d->rows, d->features, "images", err);
		return d->pixel ? 0 : MW_ERESOURCE;
	}
	d->kind = MW_X_DENSE;
	d->ld = ((size_t)features + LD_UNIT - 1) / LD_UNIT * LD_UNIT;
	d->x = mw_alloc_array(d->rows, d->ld * sizeof(*d->x), "images", err);
	return d->x ? 0 : MW_ERESOURCE;
}

void mw_images_put(struct mw_dataset *d, uint64_t row, uint64_t n, const uint8_t *bytes)
{
	if (d->kind == MW_X_IMAGE) {
		memcpy(d->pixel + row * d->features, bytes, n * d->features);
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < d->features; j++)
			d->x[(row + i) * d->ld + j] = (float)bytes[i * d->features + j] / 255.0f;
}

/* From a histogram: exact counts, so that the order of rows and threads does not matter. */
static void scale_of(const uint64_t count[256], float *mean, float *scale)
{
	double n = 0, sum = 0, square = 0;
	for (int v = 0; v < 256; v++) {
		n += (double)count[v];
		sum += (double)count[v] * v;
	}
	double m = n > 0 ? sum / n : 0;
	for (int v = 0; v < 256; v++)
		square += (double)count[v] * (v - m) * (v - m);
	*mean = (float)m;
	*scale = square > 0 ? (float)(1 / sqrt(square / n))
			    : 1.0f / 255; /* one colour only: nothing to scale */
}

void mw_images_finish(const struct mw_data_request *req, struct mw_dataset *d)
{
	size_t pixels = (size_t)d->image_rows * d->image_cols;
	if (d->kind != MW_X_IMAGE)
		return;
	if (req->like && req->like->kind == MW_X_IMAGE) {
		memcpy(d->pixel_mean, req->like->pixel_mean, sizeof(d->pixel_mean));
		memcpy(d->pixel_scale, req->like->pixel_scale, sizeof(d->pixel_scale));
		return;
	}
	for (uint32_t c = 0; c < d->channels; c++) {
		uint64_t count[256] = { 0 };
		for (uint64_t r = 0; r < d->rows; r++)
			for (size_t j = 0; j < pixels; j++)
				count[d->pixel[r * d->features + c * pixels + j]]++;
		scale_of(count, &d->pixel_mean[c], &d->pixel_scale[c]);
	}
}
