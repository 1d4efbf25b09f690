/*
 * synth_dense.c: dense rows: normal clusters, images of shifted patterns, and a linear regression.
 *
 * dense: x = (m_class + z) / sqrt(features), z standard normal; two class means are about 4 standard
 * deviations apart in any dimension, so that two classes can be told apart in 97.7 % of the cases. images:
 * each class has a smooth pattern for each channel (a few low-frequency waves); an image is the pattern
 * shifted round by up to an eighth of its size, dimmed or brightened, with noise, cut to [0,1].
 * Channel-major, then row-major. regression: x standard normal / sqrt(features), y = w.x + noise z with
 * standard normal w.
 */
#include "data/synth.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "data/images.h"
#include "data/labels.h"
#include "data/parallel.h"

#define LD_UNIT     16
#define SEPARATION  4.0
#define WAVES       4
#define PIXEL_NOISE 0.15
#define THREAD_ROWS 256

/* What all rows share. Sync: written before the threads start, read only after. */
struct world {
	const struct mw_synth *s;
	struct mw_dataset *d;
	uint64_t classes;
	float *pattern; /* classes x features: means, or images; regression: the weights */
	int threads;
};

static void fill_means(const struct world *w)
{
	double scale = SEPARATION / sqrt(2.0 * w->d->features);
	for (uint64_t c = 0; c < w->classes; c++) {
		struct mw_rng rng;
		mw_rng_init(&rng, mw_synth_key(w->s, MW_SYNTH_PATTERN), c);
		for (uint32_t j = 0; j < w->d->features; j++)
			w->pattern[c * w->d->features + j] = (float)(scale * mw_rng_normal(&rng));
	}
}

/* One channel of a class: 1/2 plus waves of at most 3 periods over the image. */
static void fill_waves(const struct mw_synth *s, uint64_t stream, float *out)
{
	const double turn = 2 * 3.14159265358979323846 / (double)s->size;
	double fx[WAVES], fy[WAVES], phase[WAVES];
	struct mw_rng rng;
	mw_rng_init(&rng, mw_synth_key(s, MW_SYNTH_PATTERN), stream);
	for (int k = 0; k < WAVES; k++) {
		fx[k] = (double)mw_rng_below(&rng, 4);
		fy[k] = (double)mw_rng_below(&rng, 7) - 3;
		phase[k] = mw_rng_uniform(&rng) * (double)s->size;
	}
	for (int64_t i = 0; i < s->size; i++)
		for (int64_t j = 0; j < s->size; j++) {
			double v = 0.5;
			for (int k = 0; k < WAVES; k++)
				v += 0.5 / WAVES *
				     cos(turn * (fx[k] * (double)i + fy[k] * (double)j + phase[k]));
			out[i * s->size + j] = (float)v;
		}
}

static void make_cluster(const struct world *w, uint64_t row)
{
	struct mw_dataset *d = w->d;
	float *x = d->x + row * d->ld;
	double scale = 1 / sqrt(d->features);
	struct mw_rng rng;
	uint64_t c;
	mw_synth_row_rng(w->s, row, &rng);
	c = mw_rng_below(&rng, w->classes);
	for (uint32_t j = 0; j < d->features; j++)
		x[j] = (float)(scale * ((double)w->pattern[c * d->features + j] + mw_rng_normal(&rng)));
	c = mw_synth_flip(w->s, &rng, c, w->classes);
	d->y[row] = w->classes == 2 ? (float)(2 * (int)c - 1) : (float)c;
}

static void make_image(const struct world *w, uint64_t row)
{
	struct mw_dataset *d = w->d;
	uint64_t size = (uint64_t)w->s->size, reach = size / 8, c, di, dj;
	float *x = d->kind == MW_X_IMAGE ? NULL : d->x + row * d->ld;
	uint8_t *byte = d->kind == MW_X_IMAGE ? d->pixel + row * d->features : NULL;
	const float *p;
	double bright;
	struct mw_rng rng;
	mw_synth_row_rng(w->s, row, &rng);
	c = mw_rng_below(&rng, w->classes);
	di = size - reach + mw_rng_below(&rng, 2 * reach + 1);
	dj = size - reach + mw_rng_below(&rng, 2 * reach + 1);
	bright = 0.8 + 0.4 * mw_rng_uniform(&rng);
	p = w->pattern + c * d->features;
	for (int64_t ch = 0; ch < w->s->channels; ch++, p += size * size)
		for (uint64_t i = 0; i < size; i++)
			for (uint64_t j = 0; j < size; j++) {
				double v = bright * (double)p[(i + di) % size * size + (j + dj) % size];
				v += PIXEL_NOISE * mw_rng_normal(&rng);
				v = v < 0 ? 0 : v > 1 ? 1 : v;
				if (byte)
					*byte++ = (uint8_t)(255 * v + 0.5);
				else
					*x++ = (float)v;
			}
	c = mw_synth_flip(w->s, &rng, c, w->classes);
	d->y[row] = w->classes == 2 ? (float)(2 * (int)c - 1) : (float)c;
}

static void make_target(const struct world *w, uint64_t row)
{
	struct mw_dataset *d = w->d;
	float *x = d->x + row * d->ld;
	double y = 0, scale = 1 / sqrt(d->features);
	struct mw_rng rng;
	mw_synth_row_rng(w->s, row, &rng);
	for (uint32_t j = 0; j < d->features; j++) {
		x[j] = (float)(scale * mw_rng_normal(&rng));
		y += (double)x[j] * (double)w->pattern[j];
	}
	d->y[row] = (float)(y + w->s->noise * mw_rng_normal(&rng));
}

static void row_task(void *ctx, int i)
{
	const struct world *w = ctx;
	uint64_t rows = w->d->rows;
	uint64_t from = (uint64_t)((unsigned __int128)rows * (unsigned)i / (unsigned)w->threads);
	uint64_t to = (uint64_t)((unsigned __int128)rows * ((unsigned)i + 1) / (unsigned)w->threads);
	for (uint64_t r = from; r < to; r++)
		switch (w->s->kind) {
		case MW_SYNTH_DENSE: make_cluster(w, r); break;
		case MW_SYNTH_IMAGES: make_image(w, r); break;
		default: make_target(w, r); break;
		}
}

/* Labels, patterns (left to the caller to fill) and threads, once the shape is known. */
static int world_init(struct world *w, struct mw_err *err)
{
	struct mw_dataset *d = w->d;
	uint64_t classes = w->classes ? w->classes : 1;
	d->y = mw_alloc_array(d->rows, sizeof(*d->y), "labels", err);
	w->pattern = mw_alloc_array(classes, d->features * sizeof(*w->pattern), "class patterns", err);
	w->threads = mw_parallel_threads(w->s->threads, d->rows, THREAD_ROWS);
	return d->y && w->pattern ? 0 : MW_ERESOURCE;
}

static int dense_init(struct world *w, struct mw_err *err)
{
	struct mw_dataset *d = w->d;
	d->kind = MW_X_DENSE;
	d->rows = (uint64_t)w->s->rows;
	d->features = (uint32_t)w->s->features;
	d->nnz = d->rows * d->features;
	d->ld = ((size_t)d->features + LD_UNIT - 1) / LD_UNIT * LD_UNIT;
	d->x = mw_alloc_array(d->rows, d->ld * sizeof(*d->x), "rows", err);
	return d->x ? world_init(w, err) : MW_ERESOURCE;
}

/* Whether the set suits the training set is left to the caller. */
static int images_init(struct world *w, struct mw_err *err)
{
	struct mw_dataset *d = w->d;
	struct mw_data_request req = { .path = d->name, .keep_bytes = w->s->req->keep_bytes };
	d->rows = (uint64_t)w->s->rows;
	d->channels = (uint32_t)w->s->channels;
	d->image_rows = d->image_cols = (uint32_t)w->s->size;
	MW_TRY(mw_images_prepare(&req, d, err));
	return world_init(w, err);
}

static int make_rows(struct world *w, struct mw_err *err)
{
	mw_parallel_run(w->threads, row_task, w);
	return w->classes ? mw_labels_set(w->d, (uint32_t)w->classes, err) : 0;
}

int mw_synth_dense(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err)
{
	struct world w = { .s = s, .d = d, .classes = (uint64_t)s->classes };
	int ret = dense_init(&w, err);
	if (ret == 0) {
		fill_means(&w);
		ret = make_rows(&w, err);
	}
	mw_free(w.pattern);
	return ret;
}

int mw_synth_images(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err)
{
	struct world w = { .s = s, .d = d, .classes = (uint64_t)s->classes };
	uint64_t pixels = (uint64_t)(s->size * s->size), planes = w.classes * (uint64_t)s->channels;
	int ret;
	if (pixels * (uint64_t)s->channels > UINT32_MAX / 2)
		MW_FAIL(err, USAGE, "%s: the images are too large; take fewer channels or a smaller size",
			d->name);
	ret = images_init(&w, err);
	if (ret == 0) {
		for (uint64_t i = 0; i < planes; i++)
			fill_waves(s, i, w.pattern + i * pixels);
		ret = make_rows(&w, err);
		mw_images_finish(s->req, d);
	}
	mw_free(w.pattern);
	return ret;
}

int mw_synth_regression(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err)
{
	struct world w = { .s = s, .d = d };
	int ret = dense_init(&w, err);
	if (ret == 0) {
		struct mw_rng rng;
		mw_rng_init(&rng, mw_synth_key(s, MW_SYNTH_SIGNAL), 0);
		for (uint32_t j = 0; j < d->features; j++)
			w.pattern[j] = (float)mw_rng_normal(&rng);
		ret = make_rows(&w, err);
	}
	mw_free(w.pattern);
	return ret;
}
