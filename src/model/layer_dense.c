/* layer_dense.c: a fully connected layer, y = x W' + b (then ReLU), and the flattening of images in front of it. */
#include "model/net.h"

static uint32_t in_size(const struct mw_net_work *w, const struct mw_layer *l)
{
	return (uint32_t)w->net->value[l->in].size;
}

static void forward(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	size_t in = in_size(w, l), out = w->net->value[l->out].size;
	(void)train;
	w->gemm->multiply(
		false, true, n, out, in, w->act[l->in], in, x + l->weight, in, false, w->act[l->out], out);
	w->k->bias_act(w->act[l->out], x + l->bias, n, out, l->relu);
}

static void backward(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	size_t in = in_size(w, l), out = w->net->value[l->out].size;
	float *dy = mw_net_grad_of(w, l, n), *dx = mw_net_grad_for(w, l);
	w->k->bias_act_back(w->act[l->out], dy, n, out, l->relu, g + l->bias);
	w->gemm->multiply(true, false, out, in, n, dy, out, w->act[l->in], in, false, g + l->weight, in);
	if (dx)
		w->gemm->multiply(false, false, n, in, out, dy, out, x + l->weight, in, false, dx, in);
}

const struct mw_layer_ops mw_layer_dense = { .kind = "dense", .forward = forward, .backward = backward };

uint32_t mw_net_dense(struct mw_net *net, uint32_t in, const char *name, uint32_t out, bool relu)
{
	struct mw_layer *l = mw_net_layer(net, &mw_layer_dense, in, UINT32_MAX, 1, 1, out);
	if (!l)
		return 0;
	size_t shape[] = { out, net->value[in].size };
	l->relu = relu;
	l->weight = mw_net_parameter(net, name, "weight", shape, 2, true);
	l->bias = mw_net_parameter(net, name, "bias", shape, 1, false);
	return l->out;
}

/* --- flatten ------------------------------------------------------------------------------------------------------- */

/* NHWC to planes, the order of PyTorch's flatten. */
static void flatten_forward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	const struct mw_value *v = &w->net->value[l->in];
	size_t pixels = (size_t)v->rows * v->cols;
	const float *from = w->act[l->in];
	float *to = w->act[l->out];
	(void)x;
	(void)train;
	for (uint32_t i = 0; i < n; i++, from += v->size, to += v->size)
		for (size_t p = 0; p < pixels; p++)
			for (size_t c = 0; c < v->channels; c++)
				to[c * pixels + p] = from[p * v->channels + c];
}

static void flatten_backward(
	struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	const struct mw_value *v = &w->net->value[l->in];
	size_t pixels = (size_t)v->rows * v->cols;
	const float *from = mw_net_grad_of(w, l, n);
	float *to = mw_net_grad_for(w, l);
	(void)x;
	(void)g;
	for (uint32_t i = 0; to && i < n; i++, from += v->size, to += v->size)
		for (size_t p = 0; p < pixels; p++)
			for (size_t c = 0; c < v->channels; c++)
				to[p * v->channels + c] = from[c * pixels + p];
}

const struct mw_layer_ops mw_layer_flatten = {
	.kind = "flatten", .forward = flatten_forward, .backward = flatten_backward
};

uint32_t mw_net_flatten(struct mw_net *net, uint32_t in)
{
	struct mw_layer *l = mw_net_layer(
		net, &mw_layer_flatten, in, UINT32_MAX, 1, 1, net->error ? 1 : (uint32_t)net->value[in].size);
	return l ? l->out : 0;
}
