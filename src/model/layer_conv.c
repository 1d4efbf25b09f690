/* layer_conv.c: a convolution with an optional bias and ReLU; conv.h has the engines. */
#include "model/net.h"

static size_t pixels(const struct mw_layer *l)
{
	return (size_t)l->conv.shape.out_rows * l->conv.shape.out_cols;
}

static void *work_new(const struct mw_net *net, struct mw_net_work *w, const struct mw_layer *l,
	uint32_t batch, struct mw_err *err)
{
	return l->conv.ops->work_new(&l->conv.shape, batch, net->conv_gemm, &w->space, err);
}

static void work_free(const struct mw_layer *l, void *work)
{
	l->conv.ops->work_free(work);
}

static void forward(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train)
{
	(void)train;
	l->conv.ops->forward(w->scratch[l->index], n, w->act[l->in], x + l->weight, w->act[l->out]);
	if (l->bias != MW_NET_NONE)
		w->k->bias_act(w->act[l->out], x + l->bias, n * pixels(l), l->conv.shape.out, l->relu);
}

static void backward(struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g)
{
	float *dy = mw_net_grad_of(w, l, n);
	if (l->bias != MW_NET_NONE)
		w->k->bias_act_back(
			w->act[l->out], dy, n * pixels(l), l->conv.shape.out, l->relu, g + l->bias);
	l->conv.ops->backward(w->scratch[l->index], n, w->act[l->in], dy, x + l->weight,
		mw_net_grad_for(w, l), g + l->weight);
}

const struct mw_layer_ops mw_layer_conv = {
	.kind = "conv", .work_new = work_new, .work_free = work_free, .forward = forward, .backward = backward
};

uint32_t mw_net_conv(struct mw_net *net, uint32_t in, const char *name, const struct mw_conv_spec *c)
{
	if (net->error)
		return 0;
	struct mw_value v = net->value[in];
	if (v.rows + 2 * c->pad < c->kernel || v.cols + 2 * c->pad < c->kernel) {
		net->error = mw_err_set(net->err, MW_EDATA,
			"model %s: images of %u x %u pixels are too small for it (layer %s)",
			net->model->ops->name, net->value[0].rows, net->value[0].cols, name);
		return 0;
	}
	uint32_t rows = (v.rows + 2 * c->pad - c->kernel) / c->stride + 1,
		 cols = (v.cols + 2 * c->pad - c->kernel) / c->stride + 1;
	struct mw_layer *l = mw_net_layer(net, &mw_layer_conv, in, UINT32_MAX, rows, cols, c->out);
	if (!l)
		return 0;
	size_t shape[] = { c->out, v.channels, c->kernel, c->kernel };
	l->relu = c->relu;
	l->conv.shape = (struct mw_conv_shape){ v.rows, v.cols, v.channels, c->out, c->kernel, c->stride,
		c->pad, rows, cols };
	l->conv.ops = mw_conv_for(net->conv, &l->conv.shape);
	l->weight = mw_net_parameter(net, name, "weight", shape, 4, true);
	if (c->bias)
		l->bias = mw_net_parameter(net, name, "bias", shape, 1, false);
	return l->out;
}
