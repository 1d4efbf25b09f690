/*
 * unit_model_torch.c: MLP, LeNet-5 and ResNet-20 against PyTorch 1.13 in float64 (tests/reference/nets_torch.py):
 * probabilities, loss and gradient of a batch and the first step of two optimizers to 1e-5, and the losses of 20 steps within
 * four times what PyTorch's own float32 differs by.
 */
#include "base/kernel.h"
#include "plugin_util.h"

#include "base/mem.h"
#include "base/rng.h"
#include "model/model.h"
#include "optim/optim.h"

enum { STEPS = 20, CLASSES = 10, SHOWN = 3, LINE = 2000 };
enum { IMAGES = 1, LABELS, WEIGHTS, DOT, ENTRY }; /* what a hash is for */
#define TOLERANCE 1e-5

static double uniform(uint64_t seed, uint64_t stream, uint64_t i)
{
	return (double)(mw_hash3(seed, stream, i) >> 40) * 0x1p-23 - 1;
}

/* --- a net, its data and its parameters --------------------------------------------------------------------------- */

struct bed {
	char name[40];
	uint32_t batch;
	struct mw_dataset data;
	struct mw_model *model;
	void *work;
	float *x, *g, *state;
	struct mw_optim *optim;
	float rate;
};

static char set_name[] = "test";

static void make_data(struct bed *b, uint32_t side, uint32_t channels)
{
	struct mw_dataset *d = &b->data;
	*d = (struct mw_dataset){ .name = set_name,
		.kind = MW_X_DENSE,
		.rows = (uint64_t)b->batch * STEPS,
		.features = side * side * channels,
		.ld = (size_t)side * side * channels,
		.image_rows = side,
		.image_cols = side,
		.channels = channels,
		.classes = CLASSES };
	d->x = mw_alloc_array(d->rows * d->ld, sizeof(float), "test", NULL);
	d->y = mw_alloc_array(d->rows, sizeof(float), "test", NULL);
	for (uint64_t i = 0; i < d->rows * d->ld; i++)
		d->x[i] = (float)uniform(IMAGES, 0, i);
	for (uint64_t i = 0; i < d->rows; i++)
		d->y[i] = (float)(mw_hash3(LABELS, 0, i) % CLASSES);
}

static size_t floats_of(const struct mw_slice *s)
{
	size_t n = 1;
	for (int i = 0; i < s->ndim; i++)
		n *= s->shape[i];
	return n;
}

static void set_parameters(struct bed *b)
{
	for (size_t i = 0; i < b->model->n_slices; i++) {
		const struct mw_slice *s = &b->model->slices[i];
		size_t n = floats_of(s);
		float scale = (float)sqrt(6 / ((double)n / (double)s->shape[0]));
		for (size_t j = 0; j < n; j++) {
			float u = (float)uniform(WEIGHTS, i, j);
			b->x[s->offset + j] = s->ndim > 1                  ? u * scale
					      : strstr(s->name, ".weight") ? 1 + u * 0.25f
									   : u * 0.125f;
		}
	}
}

static void bed_init(struct bed *b, const char *options)
{
	struct mw_err err = { 0 };
	const struct mw_model_ops *ops = mw_model_find(b->name);
	bool image = !strncmp(b->name, "resnet", 6);
	assert_non_null(ops);
	make_data(b, image ? 32 : 28, image ? 3 : 1);
	void *o = plugin_options(ops->options, ops->option_size, options);
	if (mw_model_new_spec(b->name, o, &b->data, &b->model, &err))
		fail_msg("%s", err.msg);
	free(o);
	b->work = b->model->ops->work_new(b->model, b->batch, &err);
	if (!b->work)
		fail_msg("%s", err.msg);
	b->x = mw_alloc_array(b->model->dim, sizeof(float), "test", NULL);
	b->g = mw_alloc_array(b->model->dim, sizeof(float), "test", NULL);
	b->state = mw_alloc_array(3 * b->model->dim, sizeof(float), "test", NULL);
	set_parameters(b);
}

static void bed_fini(struct bed *b)
{
	if (b->work)
		b->model->ops->work_free(b->work);
	mw_model_free(b->model);
	mw_optim_free(b->optim);
	mw_free(b->data.x);
	mw_free(b->data.y);
	mw_free(b->x);
	mw_free(b->g);
	mw_free(b->state);
	*b = (struct bed){ 0 };
}

/* Loss and gradient of the t-th batch. */
static double gradient(struct bed *b, uint64_t t)
{
	uint64_t row[64];
	for (uint32_t i = 0; i < b->batch; i++)
		row[i] = t * b->batch + i;
	struct mw_batch batch = { .data = &b->data, .row = row, .n = b->batch };
	return (double)b->model->ops->grad(b->model, b->work, &batch, b->x, b->g);
}

/* The delta stays in g. */
static void step(struct bed *b, uint64_t t)
{
	struct mw_step s = { .rate = b->rate, .t = t };
	size_t dim = b->model->dim;
	mw_optim_dense(b->optim, &s, b->state, dim, b->x, b->g, b->g, dim);
	for (size_t i = 0; i < dim; i++)
		b->x[i] += b->g[i];
}

/* --- comparisons --------------------------------------------------------------------------------------------------- */

static void near(const char *what, double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%s: %.9g, PyTorch has %.9g (allowed: %.3g)", what, got, want, tolerance);
}

/* Norm, product with a random vector and three entries of a slice of g; all to 1e-5 of its own norm, or of `norm` if > 0. */
static void check_digest(
	const struct bed *b, const char *what, size_t slice, const char *numbers, double norm)
{
	const struct mw_slice *s = &b->model->slices[slice];
	const float *v = b->g + s->offset;
	size_t n = floats_of(s);
	double want[5], square = 0, dot = 0;
	char label[200];
	assert_int_equal(
		sscanf(numbers, "%lf %lf %lf %lf %lf", &want[0], &want[1], &want[2], &want[3], &want[4]), 5);
	for (size_t j = 0; j < n; j++) {
		square += (double)v[j] * (double)v[j];
		dot += (double)v[j] * uniform(DOT, slice, j);
	}
	snprintf(label, sizeof(label), "%s, %s of %s", b->name, what, s->name);
	norm = norm > 0 ? norm : want[0];
	near(label, sqrt(square), want[0], TOLERANCE * norm);
	near(label, dot, want[1], TOLERANCE * norm);
	for (uint64_t k = 0; k < 3; k++)
		near(label, (double)v[mw_hash3(ENTRY, slice, k) % n], want[2 + k], TOLERANCE * norm);
}

/*
 * What an error of a step is measured by: SGD's by the step itself (0). AMSGrad's first step divides a gradient by its own
 * size, so that the sign of one that is nearly 0 is rounding: by the parameters after it.
 */
static double step_norm(const struct bed *b, size_t slice)
{
	const struct mw_slice *s = &b->model->slices[slice];
	double square = 0;
	for (size_t j = 0; b->optim->fields > 1 && j < floats_of(s); j++)
		square += (double)b->x[s->offset + j] * (double)b->x[s->offset + j];
	return sqrt(square);
}

static void check_probabilities(struct bed *b, const char *numbers)
{
	uint64_t row[64];
	float p[64 * CLASSES];
	char *end;
	for (uint32_t i = 0; i < b->batch; i++)
		row[i] = i;
	struct mw_batch batch = { .data = &b->data, .row = row, .n = b->batch };
	b->model->ops->predict(b->model, b->work, &batch, b->x, p); /* batch norms: of these rows */
	for (int i = 0; i < SHOWN * CLASSES; i++, numbers = end) {
		double want = strtod(numbers, &end);
		assert_true(end != numbers);
		near(b->name, (double)p[i], want, TOLERANCE * want + 1e-8);
	}
}

/* --- the file, line by line ------------------------------------------------------------------------------------------ */

static void begin_run(struct bed *b, const char *line)
{
	char name[50];
	int end = 0;
	assert_int_equal(sscanf(line, "%49s %f%n", name, &b->rate, &end), 2);
	const struct mw_optim_ops *ops = mw_optim_find(name);
	void *options = plugin_options(ops->options, ops->option_size, line + end);
	mw_optim_free(b->optim);
	assert_int_equal(mw_optim_new(ops, options, &b->optim, NULL), 0);
	free(options);
	memset(b->state, 0, 3 * b->model->dim * sizeof(float));
	set_parameters(b);
	gradient(b, 0);
	step(b, 0);
}

/* Step 0 is done when the losses come: they are computed again from the start. */
static void check_loss(struct bed *b, const char *line)
{
	int t;
	double want, spread;
	char label[100];
	assert_int_equal(sscanf(line, "%d %lf %lf", &t, &want, &spread), 3);
	if (t == 0) {
		set_parameters(b);
		memset(b->state, 0, 3 * b->model->dim * sizeof(float));
	}
	snprintf(label, sizeof(label), "%s, %s, loss before step %d", b->name, b->optim->ops->name, t);
	near(label, gradient(b, (uint64_t)t), want, 4 * spread);
	step(b, (uint64_t)t);
}

static const char *after(const char *line, const char *word)
{
	size_t n = strlen(word);
	return strncmp(line, word, n) ? NULL : line + n;
}

/* All that the file says of a net; whole: also the runs. options: those of the model. Returns the lines checked. */
static int follow(const char *name, const char *options, bool whole)
{
	struct bed b = { 0 };
	char path[1000], line[LINE], slice_name[50];
	const char *root = getenv("MW_SRCDIR"), *rest;
	int checked = 0, end;
	size_t slice, n;
	snprintf(path, sizeof(path), "%s/tests/data/nets_reference.txt", root ? root : ".");
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if ((rest = after(line, "net "))) {
			bed_fini(&b);
			assert_int_equal(sscanf(rest, "%39s %u", b.name, &b.batch), 2);
			if (strcmp(b.name, name))
				*b.name = 0;
			else
				bed_init(&b, options);
			continue;
		}
		if (!*b.name)
			continue;
		checked++;
		if ((rest = after(line, "prob "))) {
			check_probabilities(&b, rest);
		} else if ((rest = after(line, "loss0 "))) {
			near(b.name, gradient(&b, 0), strtod(rest, NULL), TOLERANCE * strtod(rest, NULL));
		} else if ((rest = after(line, "grad "))) {
			assert_int_equal(sscanf(rest, "%zu %49s %zu %n", &slice, slice_name, &n, &end), 3);
			assert_true(slice < b.model->n_slices && n == floats_of(&b.model->slices[slice]));
			assert_string_equal(slice_name, b.model->slices[slice].name);
			check_digest(&b, "gradient", slice, rest + end, 0);
		} else if (!whole) {
			break;
		} else if ((rest = after(line, "run "))) {
			begin_run(&b, rest);
		} else if ((rest = after(line, "step "))) {
			assert_int_equal(sscanf(rest, "%zu %n", &slice, &end), 1);
			check_digest(&b, b.optim->ops->name, slice, rest + end, step_norm(&b, slice));
		} else if ((rest = after(line, "losses "))) {
			check_loss(&b, rest);
		}
	}
	fclose(f);
	bed_fini(&b);
	return checked;
}

static void mlp(void **state)
{
	(void)state;
	assert_int_equal(follow("mlp:256,128", "", true), 2 + 6 + 2 * (1 + 6 + STEPS));
}

static void lenet(void **state)
{
	(void)state;
	assert_int_equal(follow("lenet5", "", true), 2 + 10 + 2 * (1 + 10 + STEPS));
}

static void resnet(void **state)
{
	(void)state;
	assert_int_equal(follow("resnet20", "", true), 2 + 59 + 2 * (1 + 59 + STEPS));
}

/* Gradients by every engine for convolutions. */
static void engines(void **state)
{
	(void)state;
	follow("lenet5", "conv=portable", false);
	follow("resnet20", "conv=portable", false);
	if (mw_kernels()->isa == MW_ISA_PORTABLE) /* goes with no library (strict atomics: ThreadSanitizer) */
		return;
#ifdef HAVE_CBLAS
	follow("lenet5", "conv=blas", false);
	follow("resnet20", "conv=blas", false);
#endif
#ifdef HAVE_ONEDNN
	follow("lenet5", "conv=onednn", false);
	follow("resnet20", "conv=onednn", false);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlp),
		cmocka_unit_test(lenet),
		cmocka_unit_test(resnet),
		cmocka_unit_test(engines),
	};
	return cmocka_run_group_tests_name("nets against PyTorch", tests, NULL, NULL);
}
