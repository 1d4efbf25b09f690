/* net.c: see net.h: putting a net together, and its first parameters. */
#include "model/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/approx.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/model_make.h"

#define SLICES_A_LAYER 2

static int room(struct mw_net *net, uint32_t layers, struct mw_err *err)
{
	net->capacity = layers;
	net->layer = mw_alloc_array(layers, sizeof(*net->layer), "a net", err);
	net->value = mw_alloc_array(layers + 1, sizeof(*net->value), "a net", err);
	net->slice = mw_alloc_array((size_t)SLICES_A_LAYER * layers, sizeof(*net->slice), "a net", err);
	net->stat_slice =
		mw_alloc_array((size_t)SLICES_A_LAYER * layers, sizeof(*net->stat_slice), "a net", err);
	return net->layer && net->value && net->slice && net->stat_slice ? 0 : MW_ERESOURCE;
}

static int check_data(const struct mw_model *m, const struct mw_dataset *d, bool images, struct mw_err *err)
{
	MW_TRY(mw_model_wants_examples(m, d, err));
	if (d->classes < 2)
		MW_FAIL(err, DATA,
			"model %s tells classes apart; %s has real targets: use --model squared, or "
			"--label-kind class if its "
			"labels are classes",
			m->ops->name, d->name);
	uint64_t pixels = (uint64_t)d->image_rows * d->image_cols;
	if (images && (!pixels || d->features % pixels))
		MW_FAIL(err, DATA,
			"model %s learns from images; %s has rows of %u features without a shape: use "
			"--model mlp, or image "
			"data",
			m->ops->name, d->name, d->features);
	return 0;
}

static void input(struct mw_net *net, const struct mw_dataset *d, bool images)
{
	struct mw_value *v = &net->value[net->n_values++];
	v->rows = images ? d->image_rows : 1;
	v->cols = images ? d->image_cols : 1;
	v->size = d->features;
	v->channels = d->features / (v->rows * v->cols);
	v->producer = UINT32_MAX;
	net->layout = images ? MW_NHWC : MW_NCHW;
}

int mw_net_begin(struct mw_model *m, const struct mw_net_options *o, const struct mw_dataset *train,
	bool images, uint32_t layers, struct mw_err *err)
{
	MW_TRY(check_data(m, train, images, err));
	struct mw_net *net = mw_alloc(sizeof(*net), "a net", err);
	if (!net)
		return MW_ERESOURCE;
	m->priv = net;
	net->model = m;
	net->err = err;
	net->classes = train->classes;
	net->decay_all = o->decay_all;
	net->norm_eps = 1e-5f;
	net->norm_momentum = (float)o->norm_momentum;
	net->exchange = o->norm_stats == MW_NORM_EXCHANGE;
	m->stat_batches = (uint32_t)o->norm_batches;
	MW_TRY(mw_conv_resolve((enum mw_conv_kind)o->conv, &net->conv, err));
	MW_TRY(mw_gemm_resolve((enum mw_gemm_kind)o->dense, &net->gemm, err));
	net->conv_gemm = mw_conv_product(net->conv);
	MW_TRY(room(net, layers, err));
	input(net, train, images);
	return 0;
}

/* Which of the two readers of a value. */
static uint32_t reader(struct mw_net *net, uint32_t value)
{
	uint32_t r = net->value[value].consumers++;
	if (r > 1)
		net->error =
			mw_err_set(net->err, MW_EINTERNAL, "a value of the net has more than two readers");
	return r > 1 ? 1 : r;
}

struct mw_layer *mw_net_layer(struct mw_net *net, const struct mw_layer_ops *ops, uint32_t in, uint32_t add,
	uint32_t rows, uint32_t cols, uint32_t channels)
{
	if (!net->error && net->n_layers == net->capacity)
		net->error = mw_err_set(net->err, MW_EINTERNAL, "a net has more layers than room");
	if (net->error)
		return NULL;
	struct mw_layer *l = &net->layer[net->n_layers];
	*l = (struct mw_layer){
		.ops = ops, .index = net->n_layers, .in = in, .add = add, .out = net->n_values
	};
	l->weight = l->bias = l->stat = MW_NET_NONE;
	l->in_reader = reader(net, in);
	if (add != UINT32_MAX)
		l->add_reader = reader(net, add);
	net->value[net->n_values++] = (struct mw_value){ .rows = rows,
		.cols = cols,
		.channels = channels,
		.size = (size_t)rows * cols * channels,
		.producer = net->n_layers++ };
	return l;
}

static size_t add_slice(
	struct mw_slice *s, const char *name, const char *what, const size_t *shape, int ndim, size_t *end)
{
	size_t n = 1, offset = *end;
	snprintf(s->name, sizeof(s->name), "%s.%s", name, what);
	s->offset = offset;
	s->ndim = ndim;
	for (int i = 0; i < ndim; i++)
		n *= s->shape[i] = shape[i];
	*end += n;
	return offset;
}

size_t mw_net_parameter(
	struct mw_net *net, const char *name, const char *what, const size_t *shape, int ndim, bool decay)
{
	struct mw_slice *s = &net->slice[net->n_slices++];
	s->no_decay = !decay && !net->decay_all;
	return add_slice(s, name, what, shape, ndim, &net->model->dim);
}

size_t mw_net_statistic(struct mw_net *net, const char *name, size_t channels)
{
	size_t mean = add_slice(
		&net->stat_slice[net->n_stat_slices++], name, "running_mean", &channels, 1, &net->n_stats);
	add_slice(&net->stat_slice[net->n_stat_slices++], name, "running_var", &channels, 1, &net->n_stats);
	return mean;
}

/* --- the end ------------------------------------------------------------------------------------------------------- */

/* Statistics as coordinates: slices behind the parameters. As measurements: slices of their own. */
static int place_statistics(struct mw_net *net, struct mw_err *err)
{
	struct mw_model *m = net->model;
	m->trained = m->dim;
	if (!net->n_stats)
		return 0;
	if (!net->exchange) {
		m->n_stats = net->n_stats;
		m->n_stat_slices = net->n_stat_slices;
		m->stat_slices = mw_alloc_array(net->n_stat_slices, sizeof(*m->stat_slices), "a net", err);
		if (!m->stat_slices)
			return MW_ERESOURCE;
		memcpy(m->stat_slices, net->stat_slice, net->n_stat_slices * sizeof(*m->stat_slices));
		return 0;
	}
	m->dim += net->n_stats;
	for (size_t i = 0; i < net->n_stat_slices; i++) {
		struct mw_slice *s = &m->slices[m->n_slices++];
		*s = net->stat_slice[i];
		s->offset += m->trained;
	}
	return 0;
}

/* The libraries that have a part in it. */
static void name_math(struct mw_net *net)
{
	const struct mw_gemm *own = mw_gemm_own(), *blas = NULL;
	bool onednn = false, kernels = false;
	for (uint32_t i = 0; i < net->n_layers; i++) {
		const struct mw_layer *l = &net->layer[i];
		const struct mw_gemm *g = l->ops == &mw_layer_conv ? net->conv_gemm : net->gemm;
		bool product = l->ops == &mw_layer_conv || l->ops == &mw_layer_dense;
		bool by_onednn = l->ops == &mw_layer_conv && l->conv.ops == &mw_conv_onednn;
		onednn |= by_onednn;
		kernels |= product && !by_onednn && g == own;
		if (product && !by_onednn && g != own)
			blas = g;
	}
	snprintf(net->math, sizeof(net->math), "%s%s%s%s%s", onednn ? mw_onednn_name() : "",
		onednn && blas ? ", " : "", blas ? blas->name : "", (onednn || blas) && kernels ? ", " : "",
		kernels ? own->name : "");
	net->model->math = net->math;
	net->model->callers_max = blas ? blas->callers_max : 0;
}

int mw_net_end(struct mw_net *net)
{
	struct mw_model *m = net->model;
	struct mw_err *err = net->err;
	if (net->error)
		return net->error;
	m->width = 1;
	m->outputs = net->classes;
	m->heavy = true;
	MW_TRY(mw_model_slices_new(m, net->n_slices + net->n_stat_slices, err));
	memcpy(m->slices, net->slice, net->n_slices * sizeof(*m->slices));
	m->n_slices = net->n_slices;
	MW_TRY(place_statistics(net, err));
	name_math(net);
	return 0;
}

void mw_net_fini(struct mw_model *m)
{
	struct mw_net *net = m->priv;
	if (!net)
		return;
	mw_free(net->layer);
	mw_free(net->value);
	mw_free(net->slice);
	mw_free(net->stat_slice);
	mw_free(net);
}

/* --- first parameters ----------------------------------------------------------------------------------------------- */

/* Normal with variance gain / fan_in (He, Zhang, Ren, Sun 2015: 2 before a ReLU). */
static void init_weights(float *x, size_t n, size_t fan_in, double gain, uint64_t seed, uint64_t stream)
{
	float scale = (float)sqrt(gain / (double)fan_in);
	for (size_t i = 0; i < n; i += 2) {
		float a, b;
		mw_normal_pair(mw_hash3(seed, stream, i), &a, &b);
		x[i] = scale * a;
		if (i + 1 < n)
			x[i + 1] = scale * b;
	}
}

/* Weights as He et al.; of the last layer, which no ReLU follows, with gain 1. Biases 0; batch norms the identity. */
void mw_net_init(const struct mw_model *m, uint64_t seed, float *x)
{
	const struct mw_net *net = m->priv;
	memset(x, 0, m->dim * sizeof(*x));
	for (uint32_t i = 0; i < net->n_layers; i++) {
		const struct mw_layer *l = &net->layer[i];
		size_t out = net->value[l->out].channels, in = net->value[l->in].size;
		if (l->ops == &mw_layer_conv)
			in = (size_t)l->conv.shape.kernel * l->conv.shape.kernel * l->conv.shape.in;
		if (l->ops == &mw_layer_conv || l->ops == &mw_layer_dense)
			init_weights(x + l->weight, in * out, in, i + 1 < net->n_layers ? 2 : 1, seed,
				0x4e37 + (uint64_t)i);
		for (size_t j = 0; l->ops == &mw_layer_norm && j < out; j++) {
			x[l->weight + j] = 1;
			if (net->exchange)
				x[m->trained + l->stat + out + j] = 1;
		}
	}
}
