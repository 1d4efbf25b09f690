/*
 * quad.c: a quadratic with known optimum, f(x) = 1/2 sum_i h_i (x_i - o_i)^2, for theory and tests.
 *
 * "Row" r is f_r(x) = f(x) + s sum_i n_ri (x_i - o_i): its gradient is that of f plus noise of standard
 * deviation s in every coordinate, n_ri standard normal and a pure function of (noise_seed, r, i), so that a
 * step can be repeated anywhere. Scores are of f itself.
 */
#include <string.h>

#include "base/approx.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/model_make.h"

static int setup(struct mw_model *m, const void *options, const struct mw_dataset *d, struct mw_err *err)
{
	(void)options;
	if (d->kind != MW_X_QUADRATIC)
		MW_FAIL(err, DATA,
			"model quad wants a quadratic function (--data synth:quadratic,dim=D), not the "
			"examples of %s",
			d->name);
	m->dim = d->features;
	m->width = m->outputs = 1;
	MW_TRY(mw_model_slices_new(m, 1, err));
	mw_model_slice(m, "x", 0, d->features, 0);
	return 0;
}

struct quad_work {
	float *noise; /* of the batch's mean, dim rounded up to even */
};

static void work_free(void *work)
{
	struct quad_work *w = work;
	if (w)
		mw_free(w->noise);
	mw_free(w);
}

static void *work_new(const struct mw_model *m, uint32_t batch_max, struct mw_err *err)
{
	(void)batch_max;
	struct quad_work *w = mw_alloc(sizeof(*w), "scratch of a quadratic", err);
	if (w)
		w->noise = mw_alloc_array(m->dim + 1, sizeof(*w->noise), "gradient noise", err);
	if (w && w->noise)
		return w;
	work_free(w);
	return NULL;
}

static void add_noise(const struct mw_dataset *d, uint64_t row, float scale, float *noise)
{
	for (uint32_t i = 0; i < d->features; i += 2) {
		float a, b;
		mw_normal_pair(mw_hash3(d->noise_seed, row, i / 2), &a, &b);
		noise[i] += scale * a;
		noise[i + 1] += scale * b;
	}
}

static float grad(const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *g)
{
	const struct mw_dataset *d = b->data;
	float *noise = ((struct quad_work *)work)->noise;
	double loss = 0;
	memset(noise, 0, (m->dim + 1) * sizeof(*noise));
	for (uint32_t r = 0; d->noise > 0 && r < b->n; r++)
		add_noise(d, b->row[r], d->noise / (float)b->n, noise);
	for (size_t i = 0; i < m->dim; i++) {
		float e = x[i] - d->optimum[i], slope = d->curvature[i] * e;
		g[i] = slope + noise[i];
		loss += (double)e * (0.5 * (double)slope + (double)noise[i]);
	}
	return (float)loss;
}

static double value(const struct mw_dataset *d, const float *x)
{
	double f = 0;
	for (uint32_t i = 0; i < d->features; i++) {
		double e = (double)x[i] - (double)d->optimum[i];
		f += 0.5 * (double)d->curvature[i] * e * e;
	}
	return f;
}

static void score(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, struct mw_score *s)
{
	(void)m;
	(void)work;
	s->loss += value(b->data, x) * b->n;
	s->n += b->n;
}

/* f(x) for every row. */
static void predict(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *out)
{
	(void)m;
	(void)work;
	for (uint32_t r = 0; r < b->n; r++)
		out[r] = (float)value(b->data, x);
}

const struct mw_model_ops mw_model_quad = {
	.name = "quad",
	.summary = "quadratic function with known optimum and gradient noise",
	.setup = setup,
	.init = mw_model_init_zeros,
	.work_new = work_new,
	.work_free = work_free,
	.grad = grad,
	.score = score,
	.predict = predict,
};
