/*
 * unit_model_net.c: nets against an interpreter of the same layers in double precision with plain loops and nothing
 * shared: losses, predictions, and gradients by central differences; every kind of layer with odd shapes and every
 * whole net, by every engine (--conv) and every instruction set that this machine has.
 */
#include "plugin_util.h"

#include "base/kernel.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/net.h"

enum { ROWS = 12, BATCH = 4, PROBES = 6 };

/* --- data ---------------------------------------------------------------------------------------------------------- */

static char set_name[] = "test";
static float labels[ROWS];

static struct mw_dataset data_of(uint32_t rows, uint32_t cols, uint32_t channels, uint32_t classes)
{
	struct mw_dataset d = { .name = set_name,
		.kind = MW_X_DENSE,
		.rows = ROWS,
		.features = rows * cols * channels,
		.ld = (size_t)rows * cols * channels,
		.image_rows = rows,
		.image_cols = cols,
		.channels = channels,
		.y = labels,
		.classes = classes };
	struct mw_rng r;
	mw_rng_init(&r, 7, rows * 1000 + channels);
	d.x = mw_alloc_array(ROWS * d.ld, sizeof(float), "test", NULL);
	for (size_t i = 0; i < ROWS * d.ld; i++)
		d.x[i] = (float)mw_rng_normal(&r);
	for (int i = 0; i < ROWS; i++) {
		uint64_t c = mw_rng_below(&r, classes);
		labels[i] = classes == 2 ? (float)(2 * (int)c - 1) : (float)c;
	}
	return d;
}

/* --- the same nets in double ----------------------------------------------------------------------------------------- */

struct reference {
	const struct mw_net *net;
	double **act;
	const double *x;
	const float *stats; /* NULL: of the batch */
	uint32_t n;
};

static double *image(const struct reference *r, uint32_t v, uint32_t i)
{
	return r->act[v] + i * r->net->value[v].size;
}

static double at(const struct reference *r, uint32_t v, uint32_t i, int64_t row, int64_t col, uint32_t c)
{
	const struct mw_value *s = &r->net->value[v];
	if (row < 0 || col < 0 || row >= s->rows || col >= s->cols || c >= s->channels)
		return 0;
	return image(r, v, i)[((size_t)row * s->cols + (size_t)col) * s->channels + c];
}

static double conv_at(const struct reference *r, const struct mw_layer *l, uint32_t i, uint32_t row,
	uint32_t col, uint32_t c)
{
	const struct mw_conv_shape *s = &l->conv.shape;
	double sum = l->bias == MW_NET_NONE ? 0 : r->x[l->bias + c];
	for (uint32_t k = 0; k < s->in; k++)
		for (uint32_t a = 0; a < s->kernel; a++)
			for (uint32_t b = 0; b < s->kernel; b++)
				sum += r->x[l->weight + ((c * s->in + k) * s->kernel + a) * s->kernel + b] *
				       at(r, l->in, i, (int64_t)row * s->stride + a - s->pad,
					       (int64_t)col * s->stride + b - s->pad, k);
	return sum;
}

static double dense_at(const struct reference *r, const struct mw_layer *l, uint32_t i, uint32_t c)
{
	size_t in = r->net->value[l->in].size;
	double sum = r->x[l->bias + c];
	for (size_t k = 0; k < in; k++)
		sum += r->x[l->weight + c * in + k] * image(r, l->in, i)[k];
	return sum;
}

static double max_at(const struct reference *r, const struct mw_layer *l, uint32_t i, uint32_t row,
	uint32_t col, uint32_t c)
{
	double max = -1e300;
	for (uint32_t a = 0; a < l->kernel; a++)
		for (uint32_t b = 0; b < l->kernel; b++)
			max = fmax(max, at(r, l->in, i, row * l->stride + a, col * l->stride + b, c));
	return max;
}

static double mean_at(const struct reference *r, const struct mw_layer *l, uint32_t i, uint32_t c)
{
	const struct mw_value *v = &r->net->value[l->in];
	double sum = 0;
	for (uint32_t a = 0; a < v->rows; a++)
		for (uint32_t b = 0; b < v->cols; b++)
			sum += at(r, l->in, i, a, b, c);
	return sum / (v->rows * v->cols);
}

static void moments(
	const struct reference *r, const struct mw_layer *l, uint32_t c, double *mean, double *var)
{
	const struct mw_value *v = &r->net->value[l->in];
	double n = (double)r->n * v->rows * v->cols;
	*mean = *var = 0;
	if (r->stats) {
		*mean = (double)r->stats[l->stat + c];
		*var = (double)r->stats[l->stat + v->channels + c];
		return;
	}
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < r->n; i++)
			for (uint32_t p = 0; p < v->rows * v->cols; p++) {
				double x = image(r, l->in, i)[p * v->channels + c];
				if (pass)
					*var += (x - *mean) * (x - *mean) / n;
				else
					*mean += x / n;
			}
}

static double flat_at(const struct reference *r, const struct mw_layer *l, uint32_t i, uint32_t c)
{
	const struct mw_value *v = &r->net->value[l->in];
	uint32_t p = c % (v->rows * v->cols);
	return at(r, l->in, i, p / v->cols, p % v->cols, c / (v->rows * v->cols));
}

static double value_at(const struct reference *r, const struct mw_layer *l, uint32_t i, uint32_t row,
	uint32_t col, uint32_t c)
{
	if (l->ops == &mw_layer_conv)
		return conv_at(r, l, i, row, col, c);
	if (l->ops == &mw_layer_dense)
		return dense_at(r, l, i, c);
	if (l->ops == &mw_layer_max_pool)
		return max_at(r, l, i, row, col, c);
	if (l->ops == &mw_layer_mean_pool)
		return mean_at(r, l, i, c);
	if (l->ops == &mw_layer_flatten)
		return flat_at(r, l, i, c);
	if (l->ops == &mw_layer_shrink)
		return at(r, l->in, i, row * l->stride, col * l->stride, c);
	assert_ptr_equal(l->ops, &mw_layer_norm);
	return at(r, l->in, i, row, col, c);
}

static void forward_layer(const struct reference *r, const struct mw_layer *l)
{
	const struct mw_value *v = &r->net->value[l->out];
	for (uint32_t c = 0; c < v->channels; c++) {
		double mean = 0, var = 1, gain = 1, offset = 0;
		if (l->ops == &mw_layer_norm) {
			moments(r, l, c, &mean, &var);
			gain = r->x[l->weight + c] / sqrt(var + 1e-5);
			offset = r->x[l->bias + c];
		}
		for (uint32_t i = 0; i < r->n; i++)
			for (uint32_t row = 0; row < v->rows; row++)
				for (uint32_t col = 0; col < v->cols; col++) {
					double y = (value_at(r, l, i, row, col, c) - mean) * gain + offset;
					if (l->add != UINT32_MAX)
						y += at(r, l->add, i, row, col, c);
					image(r, l->out, i)[(row * v->cols + col) * v->channels + c] =
						l->relu && y < 0 ? 0 : y;
				}
	}
}

/* Mean loss over the rows. */
static double forward_double(
	struct reference *r, const struct mw_dataset *d, const uint64_t *row, const double *x)
{
	const struct mw_net *net = r->net;
	const struct mw_value *v = &net->value[0];
	uint32_t pixels = v->rows * v->cols;
	double loss = 0;
	r->x = x;
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t p = 0; p < v->size; p++) /* planes to channels side by side */
			image(r, 0, i)[(p % pixels) * v->channels + p / pixels] =
				(double)d->x[row[i] * d->ld + p];
	for (uint32_t l = 0; l < net->n_layers; l++)
		forward_layer(r, &net->layer[l]);
	for (uint32_t i = 0; i < r->n; i++) {
		const double *z = image(r, net->n_values - 1, i);
		double sum = 0;
		uint32_t right = d->classes == 2 ? labels[row[i]] > 0 : (uint32_t)labels[row[i]];
		for (uint32_t k = 0; k < d->classes; k++)
			sum += exp(z[k]);
		loss += log(sum) - z[right];
	}
	return loss / r->n;
}

/* --- one net at a random point ---------------------------------------------------------------------------------------- */

static const struct mw_model_ops built; /* nets of this file */

struct subject {
	struct mw_model *m;
	const struct mw_dataset *d;
	void *work;
	float *x, *g;
	double *x_double;
	struct reference r;
};

static void subject_init(struct subject *s, const struct mw_model_ops *ops, const char *spec,
	const char *text, const struct mw_dataset *d)
{
	struct mw_err err = { 0 };
	struct mw_rng rng;
	void *options = plugin_options(ops->options, ops->option_size, text);
	*s = (struct subject){ .d = d };
	int code = ops != &built ? mw_model_new_spec(spec, options, d, &s->m, &err)
				 : mw_model_new(ops, options, d, &s->m, &err);
	if (code)
		fail_msg("%s: %s", spec, err.msg);
	free(options);
	size_t dim = s->m->dim;
	s->work = ops->work_new(s->m, BATCH, &err);
	s->x = mw_alloc_array(dim, sizeof(float), "test", &err);
	s->g = mw_alloc_array(dim, sizeof(float), "test", &err);
	s->x_double = mw_alloc_array(dim, sizeof(double), "test", &err);
	assert_true(s->work && s->x && s->g && s->x_double);
	ops->init(s->m, 3, s->x);
	mw_rng_init(&rng, 5, 0);
	for (size_t i = 0; i < dim; i++)
		s->x_double[i] = (double)(s->x[i] += 0.1f * (float)mw_rng_normal(&rng));
	s->r.net = s->m->priv;
	s->r.n = BATCH;
	s->r.act = calloc(s->r.net->n_values, sizeof(*s->r.act));
	for (uint32_t v = 0; v < s->r.net->n_values; v++)
		s->r.act[v] = calloc(BATCH * s->r.net->value[v].size, sizeof(double));
}

static void subject_fini(struct subject *s)
{
	for (uint32_t v = 0; v < s->r.net->n_values; v++)
		free(s->r.act[v]);
	free(s->r.act);
	s->m->ops->work_free(s->work);
	mw_free(s->x);
	mw_free(s->g);
	mw_free(s->x_double);
	mw_model_free(s->m);
}

static double slope(struct subject *s, const uint64_t *row, size_t i)
{
	double h = 1e-6, x = s->x_double[i];
	s->x_double[i] = x + h;
	double up = forward_double(&s->r, s->d, row, s->x_double);
	s->x_double[i] = x - h;
	double down = forward_double(&s->r, s->d, row, s->x_double);
	s->x_double[i] = x;
	return (up - down) / (2 * h);
}

static const uint64_t row[BATCH] = { 4, 1, 11, 4 };

/* What the interpreter says of a net at its point: made once, then every engine is held to it. */
struct expected {
	double loss;
	size_t n, at[PROBES * 100];
	double slope[PROBES * 100];
};

static size_t floats_of(const struct mw_slice *s)
{
	size_t n = 1;
	for (int k = 0; k < s->ndim; k++)
		n *= s->shape[k];
	return n;
}

/* A few coordinates of every slice. */
static void expect(struct subject *s, struct expected *e)
{
	e->n = 0;
	e->loss = forward_double(&s->r, s->d, row, s->x_double);
	for (size_t i = 0; i < s->m->n_slices; i++) {
		const struct mw_slice *slice = &s->m->slices[i];
		size_t n = floats_of(slice), step = n > PROBES ? n / (PROBES - 1) : 1;
		for (size_t k = 0; k < n; k += step) {
			assert_true(e->n < sizeof(e->at) / sizeof(e->at[0]));
			e->at[e->n] = slice->offset + k;
			e->slope[e->n++] = slope(s, row, slice->offset + k);
		}
	}
}

static const struct mw_slice *slice_of(const struct mw_model *m, size_t at)
{
	const struct mw_slice *s = m->slices;
	while (at >= s->offset + floats_of(s))
		s++;
	return s;
}

/* Gradients against the largest of their slice. */
static void check_gradient(struct subject *s, const char *what, const struct expected *e)
{
	struct mw_batch b = { .data = s->d, .row = row, .n = BATCH };
	for (size_t i = 0; i < s->m->dim; i++)
		s->g[i] = NAN; /* all of it has to be written */
	double loss = (double)s->m->ops->grad(s->m, s->work, &b, s->x, s->g);
	if (!(fabs(loss - e->loss) <= 1e-5 * (1 + e->loss)))
		fail_msg("%s: loss %.8g, not %.8g", what, loss, e->loss);
	for (size_t i = 0; i < s->m->dim; i++)
		assert_true(isfinite(s->g[i]));
	for (size_t i = 0; i < e->n; i++) {
		const struct mw_slice *slice = slice_of(s->m, e->at[i]);
		double most = 0, got = (double)s->g[e->at[i]];
		for (size_t k = 0; k < floats_of(slice); k++)
			most = fmax(most, fabs((double)s->g[slice->offset + k]));
		if (!(fabs(got - e->slope[i]) <= 3e-5 * most + 2e-7))
			fail_msg("%s: %s[%zu]: gradient %.8g, not %.8g (largest %.3g)", what, slice->name,
				e->at[i] - slice->offset, got, e->slope[i], most);
	}
}

static void check_predictions(struct subject *s, const char *what, double loss)
{
	struct mw_batch b = { .data = s->d, .row = row, .n = BATCH };
	float *out = malloc(BATCH * s->m->outputs * sizeof(*out));
	struct mw_score score = { 0 };
	double sum = 0;
	s->m->ops->score(s->m, s->work, &b, s->x, &score);
	s->m->ops->predict(s->m, s->work, &b, s->x, out);
	if (!(fabs(score.loss / BATCH - loss) <= 1e-5 * (1 + loss)) || score.n != BATCH)
		fail_msg("%s: score %.8g, not %.8g", what, score.loss / BATCH, loss);
	for (uint32_t i = 0; i < BATCH; i++) {
		uint32_t right = s->d->classes == 2 ? labels[row[i]] > 0 : (uint32_t)labels[row[i]];
		sum -= log((double)out[i * s->m->outputs + right]) / BATCH;
	}
	assert_true(fabs(sum - loss) <= 1e-5 * (1 + loss));
	free(out);
}

/* One net by one engine of one instruction set; expected is made by the first. */
static void check_net(const struct mw_model_ops *ops, const char *spec, const char *text,
	const struct mw_dataset *d, struct expected *e)
{
	char what[200];
	struct subject s;
	snprintf(what, sizeof(what), "%s %s (%s)", spec, text, mw_kernels()->name);
	subject_init(&s, ops, spec, text, d);
	if (!e->n)
		expect(&s, e);
	check_gradient(&s, what, e);
	check_predictions(&s, what, e->loss);
	subject_fini(&s);
}

/* By all engines that can be had here. */
static void check_everywhere(const struct mw_model_ops *ops, const char *spec, const struct mw_dataset *d)
{
	static const char *const convs[] = { "conv=onednn", "conv=blas", "conv=portable" };
	static const char *const denses[] = { "dense=own", "dense=blas", "dense=own" };
	bool has_conv = ops->options[0].name && !strcmp(ops->options[0].name, "conv");
	static struct expected e;
	e.n = 0;
	for (int isa = 0; isa < MW_ISA_COUNT; isa++) {
		if (!mw_kernels_of((enum mw_isa)isa))
			continue;
		assert_int_equal(mw_isa_select(mw_kernels_of((enum mw_isa)isa)->name, NULL), 0);
		for (int k = has_conv ? 0 : 1; k < 3; k++) {
			char text[80];
			enum mw_conv_kind kind;
			const struct mw_gemm *gemm;
			if (mw_conv_resolve((enum mw_conv_kind)(MW_CONV_ONEDNN + k), &kind, NULL) ||
				mw_gemm_resolve(k == 1 ? MW_GEMM_BLAS : MW_GEMM_OWN, &gemm, NULL))
				continue;
			snprintf(text, sizeof(text), "%s %s", has_conv ? convs[k] : "", denses[k]);
			check_net(ops, spec, text, d, &e);
		}
	}
	assert_int_equal(mw_isa_select("auto", NULL), 0);
}

/* --- single layers --------------------------------------------------------------------------------------------------- */

static uint32_t (*builder)(struct mw_net *net);

static int setup_built(struct mw_model *m, const void *o, const struct mw_dataset *d, struct mw_err *err)
{
	MW_TRY(mw_net_begin(m, o, d, true, 16, err));
	uint32_t v = builder(m->priv);
	mw_net_dense(m->priv, v, "last", d->classes, false);
	return mw_net_end(m->priv);
}

static const struct mw_option net_options[] = { MW_NET_OPTION_CONV, MW_NET_OPTIONS, MW_NET_OPTIONS_NORM,
	{ 0 } };
static const struct mw_model_ops built = { .name = "built",
	.options = net_options,
	.option_size = sizeof(struct mw_net_options),
	.setup = setup_built,
	MW_NET_OPS };

static uint32_t conv(struct mw_net *net, uint32_t in, const char *name, struct mw_conv_spec c)
{
	return mw_net_conv(net, in, name, &c);
}

static uint32_t flat(struct mw_net *net)
{
	return mw_net_dense(net, mw_net_flatten(net, 0), "hidden", 7, true);
}

static uint32_t conv_5_no_pad(struct mw_net *net)
{
	uint32_t v = conv(net, 0, "a", (struct mw_conv_spec){ 5, 5, 1, 0, true, true });
	return mw_net_flatten(net, conv(net, v, "b", (struct mw_conv_spec){ 3, 2, 1, 0, true, false }));
}

static uint32_t conv_stride(struct mw_net *net)
{
	uint32_t v = conv(net, 0, "a", (struct mw_conv_spec){ 16, 3, 2, 1, false, false });
	return mw_net_flatten(net, conv(net, v, "b", (struct mw_conv_spec){ 8, 3, 2, 1, true, true }));
}

static uint32_t conv_wide(struct mw_net *net)
{
	uint32_t v = conv(net, 0, "a", (struct mw_conv_spec){ 16, 3, 1, 1, true, true });
	v = conv(net, v, "b", (struct mw_conv_spec){ 32, 3, 1, 1, true, true });
	return mw_net_mean_pool(net, conv(net, v, "c", (struct mw_conv_spec){ 16, 1, 1, 0, true, true }));
}

static uint32_t conv_far_pad(struct mw_net *net)
{
	return mw_net_flatten(net, conv(net, 0, "a", (struct mw_conv_spec){ 4, 3, 3, 3, true, true }));
}

static uint32_t norm_only(struct mw_net *net)
{
	return mw_net_flatten(
		net, mw_net_norm(net, conv(net, 0, "a", (struct mw_conv_spec){ 5, 3, 1, 1, false, false }),
			     "n", UINT32_MAX, false));
}

/* A value with two readers, summed behind a batch norm: 16 channels take the tiled kernels, 5 the plain ones. */
static uint32_t residual(struct mw_net *net, uint32_t channels, bool relu)
{
	struct mw_conv_spec c = { channels, 3, 1, 1, false, false };
	uint32_t v = mw_net_norm(net, conv(net, 0, "a", c), "n", UINT32_MAX, relu);
	return mw_net_flatten(net, mw_net_norm(net, conv(net, v, "b", c), "m", v, relu));
}

static uint32_t residual_16(struct mw_net *net)
{
	return residual(net, 16, true);
}

static uint32_t residual_5(struct mw_net *net)
{
	return residual(net, 5, true);
}

static uint32_t residual_no_relu(struct mw_net *net)
{
	return residual(net, 16, false);
}

/* A value that is no batch norm's with two readers. */
static uint32_t two_readers(struct mw_net *net)
{
	struct mw_conv_spec c = { 4, 3, 1, 1, true, true };
	uint32_t v = conv(net, 0, "a", c);
	return mw_net_flatten(net, mw_net_norm(net, conv(net, v, "b", c), "m", v, true));
}

static uint32_t shrunk(struct mw_net *net)
{
	struct mw_conv_spec c = { 4, 3, 1, 1, false, false }, d = { 6, 3, 2, 1, false, false };
	uint32_t v = mw_net_norm(net, conv(net, 0, "a", c), "n", UINT32_MAX, true);
	uint32_t side = mw_net_shrink(net, v, 6, 2);
	return mw_net_mean_pool(net, mw_net_norm(net, conv(net, v, "b", d), "m", side, true));
}

static uint32_t max_2(struct mw_net *net)
{
	uint32_t v = mw_net_max_pool(
		net, conv(net, 0, "a", (struct mw_conv_spec){ 6, 3, 1, 1, true, true }), 2, 2);
	return mw_net_flatten(net, v);
}

static uint32_t max_overlapping(struct mw_net *net)
{
	uint32_t v = mw_net_max_pool(
		net, conv(net, 0, "a", (struct mw_conv_spec){ 3, 3, 1, 1, true, false }), 3, 2);
	return mw_net_flatten(net, v);
}

static uint32_t (*const builders[])(struct mw_net *net) = { flat, conv_5_no_pad, conv_stride, conv_wide,
	conv_far_pad, norm_only, residual_16, residual_5, residual_no_relu, two_readers, shrunk, max_2,
	max_overlapping };

static void layers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(builders) / sizeof(*builders); i++) {
		struct mw_dataset d = data_of(i % 2 ? 6 : 7, 7, 1 + i % 3, i % 2 ? 2 : 5);
		char spec[40];
		builder = builders[i];
		snprintf(spec, sizeof(spec), "layer test %zu", i);
		check_everywhere(&built, spec, &d);
		mw_free(d.x);
	}
}

static void nets(void **state)
{
	static const char *const specs[] = { "lenet5", "resnet:n=1,width=4",
		"resnet:n=1,width=4,shortcut=conv" };
	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct mw_dataset d = data_of(i ? 8 : 14, i ? 8 : 14, i ? 3 : 1, 5);
		check_everywhere(mw_model_find(specs[i]), specs[i], &d);
		mw_free(d.x);
	}
	struct mw_dataset d = data_of(1, 21, 1, 3);
	check_everywhere(mw_model_find("mlp"), "mlp:9,17,33", &d);
	check_everywhere(mw_model_find("mlp"), "mlp:1", &d);
	mw_free(d.x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layers),
		cmocka_unit_test(nets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
