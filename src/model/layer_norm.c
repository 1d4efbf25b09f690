/*
 * layer_norm.c: batch norm (Ioffe, Szegedy 2015) over examples and pixels, fused with a residual sum and ReLU:
 * y = relu((x - mean) / sqrt(var + eps) gamma + beta + add).
 *
 * Training uses the mean and the (biased) variance of the batch. Scoring uses the statistics that the worker was given
 * (mw_net_use_stats), the running averages among the parameters (--bn-stats exchange), or else the batch's own.
 * Backward: with xh = (x - mean) / s, dz = dy where y > 0, N values a channel,
 * dx = gamma / s (dz - mean(dz) - xh mean(dz xh)), dgamma = sum dz xh, dbeta = sum dz, d add = dz.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/net.h"

/* c floats each, c the channels */
struct norm {
	float *mean, *inverse, *scale, *a, *b, *d;
	double *sum, *square;
	float *floats;
};

static size_t channels(const struct mw_net_work *w, const struct mw_layer *l)
{
	return w->net->value[l->out].channels;
}

static size_t rows_of(const struct mw_net_work *w, const struct mw_layer *l, uint32_t n)
{
	return (size_t)n * w->net->value[l->out].rows * w->net->value[l->out].cols;
}

static void work_free(const struct mw_layer *l, void *work)
{
	struct norm *s = work;
	(void)l;
	if (s) {
		mw_free(s->floats);
		mw_free(s->sum);
	}
	mw_free(s);
}

static void *work_new(const struct mw_net *net, struct mw_net_work *w, const struct mw_layer *l,
	uint32_t batch, struct mw_err *err)
{
	size_t c = net->value[l->out].channels;
	struct norm *s = mw_alloc(sizeof(*s), "a batch norm", err);
	(void)w;
	(void)batch;
	if (!s)
		return NULL;
	s->floats = mw_alloc_array(6 * c, sizeof(float), "a batch norm", err);
	s->sum = mw_alloc_array(2 * c, sizeof(double), "a batch norm", err);
	if (!s->floats || !s->sum) {
		work_free(l, s);
		return NULL;
	}
	s->square = s->sum + c;
	float **part[] = { &s->mean, &s->inverse, &s->scale, &s->a, &s->b, &s->d };
	for (size_t i = 0; i < 6; i++)
		*part[i] = s->floats + i * c;
	return s;
}

/* Mean and 1 / sqrt(var + eps) of the batch; sums are about the first pixel, so that a large mean costs no digits. */
static void measure(struct mw_net_work *w, const struct mw_layer *l, struct norm *s, uint32_t n)
{
	size_t c = channels(w, l), rows = rows_of(w, l, n);
	const float *x = w->act[l->in];
	float *moments = w->moments + l->stat;
	memset(s->sum, 0, 2 * c * sizeof(*s->sum));
	w->k->norm_sums(x, x, rows, c, s->sum, s->square);
	for (size_t j = 0; j < c; j++) {
		double m = s->sum[j] / (double)rows, var = s->square[j] / (double)rows - m * m;
		var = var < 0 ? 0 : var; /* NaN stays */
		s->mean[j] = (float)((double)x[j] + m);
		s->inverse[j] = (float)(1 / sqrt(var + (double)w->net->norm_eps));
		moments[j] = s->mean[j];
		moments[c + j] = (float)var;
	}
}

static void forward(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	struct norm *s = w->scratch[l->index];
	size_t c = channels(w, l);
	const float *gamma = x + l->weight, *beta = x + l->bias;
	const float *stats = train ? NULL : w->net->exchange ? x + w->net->model->trained : w->stats;
	if (!stats)
		measure(w, l, s, n);
	for (size_t j = 0; j < c; j++) {
		if (stats) {
			s->mean[j] = stats[l->stat + j];
			s->inverse[j] = 1 / sqrtf(fmaxf(stats[l->stat + c + j], 0) + w->net->norm_eps);
		}
		s->scale[j] = gamma[j] * s->inverse[j];
	}
	w->k->norm_apply(w->act[l->in], l->add == UINT32_MAX ? NULL : w->act[l->add], s->mean, s->scale, beta,
		rows_of(w, l, n), c, l->relu, w->act[l->out]);
}

/* Running averages move towards the batch's: their "gradient" is what they lack, times the momentum. */
static void track(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	size_t c = channels(w, l), trained = w->net->model->trained;
	double rows = (double)rows_of(w, l, n), unbiased = rows > 1 ? rows / (rows - 1) : 1;
	const float *have = x + trained + l->stat, *seen = w->moments + l->stat;
	float *to = g + trained + l->stat, momentum = w->net->norm_momentum;
	for (size_t j = 0; j < c; j++) {
		to[j] = momentum * (have[j] - seen[j]);
		to[c + j] = momentum * (have[c + j] - (float)(unbiased * (double)seen[c + j]));
	}
}

static void backward(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	struct norm *s = w->scratch[l->index];
	size_t c = channels(w, l), rows = rows_of(w, l, n);
	float **dy = w->grad[l->out];
	memset(s->sum, 0, 2 * c * sizeof(*s->sum));
	/* The gradient of the sum's other part is dz itself, in the same memory. */
	w->k->norm_back_sums(w->act[l->in], w->act[l->out], dy[0], dy[1], s->mean, rows, c, l->relu, dy[0],
		s->sum, s->square);
	for (size_t j = 0; j < c; j++) {
		double scale = (double)s->scale[j], inverse = (double)s->inverse[j];
		g[l->bias + j] = (float)s->sum[j];
		g[l->weight + j] = (float)(s->square[j] * inverse);
		s->a[j] = s->scale[j];
		s->b[j] = (float)(-scale * inverse * inverse * s->square[j] / (double)rows);
		s->d[j] = (float)(-scale * s->sum[j] / (double)rows);
	}
	w->k->norm_back_apply(
		w->act[l->in], dy[0], s->mean, s->a, s->b, s->d, rows, c, mw_net_grad_for(w, l));
	if (w->net->exchange)
		track(w, l, n, x, g);
}

const struct mw_layer_ops mw_layer_norm = { .kind = "batch norm",
	.work_new = work_new,
	.work_free = work_free,
	.forward = forward,
	.backward = backward };

uint32_t mw_net_norm(struct mw_net *net, uint32_t in, const char *name, uint32_t add, bool relu)
{
	if (net->error)
		return 0;
	struct mw_value v = net->value[in];
	struct mw_layer *l = mw_net_layer(net, &mw_layer_norm, in, add, v.rows, v.cols, v.channels);
	if (!l)
		return 0;
	size_t shape[] = { v.channels };
	l->relu = relu;
	l->weight = mw_net_parameter(net, name, "weight", shape, 1, false);
	l->bias = mw_net_parameter(net, name, "bias", shape, 1, false);
	l->stat = mw_net_statistic(net, name, v.channels);
	return l->out;
}
