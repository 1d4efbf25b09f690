/* layer_pool.c: layers without parameters: the largest of a window, the mean of an image, and option A's shortcut. */
#include <string.h>

#include "base/mem.h"
#include "model/net.h"

/* --- max ----------------------------------------------------------------------------------------------------------- */

static void *max_work_new(const struct mw_net *net, struct mw_net_work *w, const struct mw_layer *l,
	uint32_t batch, struct mw_err *err)
{
	(void)w;
	return mw_alloc(net->value[l->out].size * batch + MW_NET_SLACK, "a pooling layer", err);
}

static void max_work_free(const struct mw_layer *l, void *work)
{
	(void)l;
	mw_free(work);
}

static void max_forward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	const struct mw_value *in = &w->net->value[l->in], *out = &w->net->value[l->out];
	(void)x;
	(void)train;
	for (uint32_t i = 0; i < n; i++)
		w->k->max_pool(w->act[l->in] + i * in->size, in->cols, in->channels, out->rows, out->cols,
			l->kernel, l->stride, w->act[l->out] + i * out->size,
			(uint8_t *)w->scratch[l->index] + i * out->size);
}

static void max_backward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	const struct mw_value *in = &w->net->value[l->in], *out = &w->net->value[l->out];
	const uint8_t *place = w->scratch[l->index];
	float *dy = mw_net_grad_of(w, l, n), *dx = mw_net_grad_for(w, l);
	(void)x;
	(void)g;
	if (!dx)
		return;
	memset(dx, 0, n * in->size * sizeof(*dx));
	for (uint32_t i = 0; i < n; i++, dx += in->size)
		for (size_t r = 0; r < out->rows; r++)
			for (size_t q = 0; q < out->cols; q++)
				for (size_t c = 0; c < out->channels; c++, dy++, place++)
					dx[((r * l->stride + *place / l->kernel) * in->cols + q * l->stride +
						   *place % l->kernel) *
							in->channels +
						c] += *dy;
}

const struct mw_layer_ops mw_layer_max_pool = {
	.kind = "max pool",
	.work_new = max_work_new,
	.work_free = max_work_free,
	.forward = max_forward,
	.backward = max_backward,
};

uint32_t mw_net_max_pool(struct mw_net *net, uint32_t in, uint32_t kernel, uint32_t stride)
{
	if (net->error)
		return 0;
	struct mw_value v = net->value[in];
	if (v.rows < kernel || v.cols < kernel) {
		net->error = mw_err_set(net->err, MW_EDATA,
			"model %s: images of %u x %u pixels are too small for it", net->model->ops->name,
			net->value[0].rows, net->value[0].cols);
		return 0;
	}
	struct mw_layer *l = mw_net_layer(net, &mw_layer_max_pool, in, UINT32_MAX,
		(v.rows - kernel) / stride + 1, (v.cols - kernel) / stride + 1, v.channels);
	if (!l)
		return 0;
	l->kernel = kernel;
	l->stride = stride;
	return l->out;
}

/* --- mean ---------------------------------------------------------------------------------------------------------- */

static void mean_forward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	const struct mw_value *in = &w->net->value[l->in];
	size_t pixels = (size_t)in->rows * in->cols, c = in->channels;
	const float *from = w->act[l->in];
	(void)x;
	(void)train;
	for (uint32_t i = 0; i < n; i++) {
		float *to = w->act[l->out] + i * c;
		memset(to, 0, c * sizeof(*to));
		for (size_t p = 0; p < pixels; p++, from += c)
			w->k->add(from, to, c);
		for (size_t j = 0; j < c; j++)
			to[j] /= (float)pixels;
	}
}

static void mean_backward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	const struct mw_value *in = &w->net->value[l->in];
	size_t pixels = (size_t)in->rows * in->cols, c = in->channels;
	float *dy = mw_net_grad_of(w, l, n), *dx = mw_net_grad_for(w, l);
	(void)x;
	(void)g;
	for (uint32_t i = 0; dx && i < n; i++, dy += c) {
		for (size_t j = 0; j < c; j++)
			dy[j] /= (float)pixels;
		for (size_t p = 0; p < pixels; p++, dx += c)
			memcpy(dx, dy, c * sizeof(*dx));
	}
}

const struct mw_layer_ops mw_layer_mean_pool = {
	.kind = "mean pool", .forward = mean_forward, .backward = mean_backward
};

uint32_t mw_net_mean_pool(struct mw_net *net, uint32_t in)
{
	struct mw_layer *l = mw_net_layer(
		net, &mw_layer_mean_pool, in, UINT32_MAX, 1, 1, net->error ? 1 : net->value[in].channels);
	return l ? l->out : 0;
}

/* --- shrink -------------------------------------------------------------------------------------------------------- */

static void shrink_forward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	const struct mw_value *in = &w->net->value[l->in], *out = &w->net->value[l->out];
	const float *from = w->act[l->in];
	float *to = w->act[l->out];
	(void)x;
	(void)train;
	for (uint32_t i = 0; i < n; i++, from += in->size)
		for (size_t r = 0; r < out->rows; r++)
			for (size_t q = 0; q < out->cols; q++, to += out->channels) {
				memcpy(to, from + (r * in->cols + q) * l->stride * in->channels,
					in->channels * sizeof(*to));
				memset(to + in->channels, 0, (out->channels - in->channels) * sizeof(*to));
			}
}

static void shrink_backward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	const struct mw_value *in = &w->net->value[l->in], *out = &w->net->value[l->out];
	const float *dy = mw_net_grad_of(w, l, n);
	float *dx = mw_net_grad_for(w, l);
	(void)x;
	(void)g;
	if (!dx)
		return;
	memset(dx, 0, n * in->size * sizeof(*dx));
	for (uint32_t i = 0; i < n; i++, dx += in->size)
		for (size_t r = 0; r < out->rows; r++)
			for (size_t q = 0; q < out->cols; q++, dy += out->channels)
				memcpy(dx + (r * in->cols + q) * l->stride * in->channels, dy,
					in->channels * sizeof(*dx));
}

const struct mw_layer_ops mw_layer_shrink = {
	.kind = "shrink", .forward = shrink_forward, .backward = shrink_backward
};

uint32_t mw_net_shrink(struct mw_net *net, uint32_t in, uint32_t channels, uint32_t stride)
{
	if (net->error)
		return 0;
	struct mw_value v = net->value[in];
	struct mw_layer *l = mw_net_layer(net, &mw_layer_shrink, in, UINT32_MAX,
		(v.rows + stride - 1) / stride, (v.cols + stride - 1) / stride, channels);
	if (!l)
		return 0;
	l->stride = stride;
	return l->out;
}
