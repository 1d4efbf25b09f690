/*
 * unit_model_grad.c: gradients of every model against central differences of an independent double-precision objective,
 * dense and sparse, with and without penalty, batches of one and more; losses, scores, predictions, refusals.
 */
#include "plugin_util.h"

#include "base/kernel.h"
#include "base/rng.h"
#include "data/dataset.h"
#include "model/link.h"
#include "model/model.h"

enum { ROWS = 23, FEATURES = 21, LD = 32, MAX_CLASSES = 19, MAX_DIM = (FEATURES + 1) * MAX_CLASSES };

/* One table of numbers, as CSR and as dense rows; the last feature occurs in no row. */
static float dense_x[ROWS * LD], val[ROWS * LD], labels[ROWS];
static uint32_t col[ROWS * LD];
static uint64_t row_ptr[ROWS + 1];
static char table_name[] = "table", quadratic_name[] = "synth:quadratic";

static struct mw_dataset data_of(enum mw_x_kind kind, uint32_t classes)
{
	struct mw_rng r;
	uint64_t nnz = 0;
	mw_rng_init(&r, 11, classes);
	for (int i = 0; i < ROWS; i++) {
		for (uint32_t j = 0; j + 1 < FEATURES; j++) {
			float x = mw_rng_below(&r, 10) < 6 && i != 7 ? (float)mw_rng_normal(&r)
								     : 0; /* row 7 is empty */
			dense_x[i * LD + j] = x;
			if (x != 0) {
				col[nnz] = j;
				val[nnz++] = x;
			}
		}
		row_ptr[i + 1] = nnz;
		labels[i] = classes == 2 ? (float)(2 * (int)mw_rng_below(&r, 2) - 1)
			    : classes    ? (float)mw_rng_below(&r, classes)
					 : (float)mw_rng_normal(&r);
	}
	return (struct mw_dataset){ .name = table_name,
		.kind = kind,
		.rows = ROWS,
		.nnz = nnz,
		.features = FEATURES,
		.row_ptr = row_ptr,
		.col = col,
		.val = val,
		.x = dense_x,
		.ld = LD,
		.y = labels,
		.classes = classes };
}

/* --- the objective again, in double and without any shared code ------------------------------------------------- */

struct objective {
	const char *model;
	const struct mw_dataset *d;
	uint32_t outputs;
	double l2;
	bool bias, shared_out; /* shared_out: the penalty of a sparse step (shares), else (l2/2)|w|^2 */
};

static double row_loss(const struct objective *o, uint64_t row, const double *x)
{
	double z[MAX_CLASSES], top = -1e300, sum = 0, y = (double)labels[row];
	for (uint32_t k = 0; k < o->outputs; k++) {
		z[k] = o->bias ? x[FEATURES * o->outputs + k] : 0;
		for (int j = 0; j < FEATURES; j++)
			z[k] += (double)dense_x[row * LD + j] * x[j * o->outputs + k];
		top = z[k] > top ? z[k] : top;
	}
	if (!strcmp(o->model, "logistic"))
		return log1p(exp(-y * z[0]));
	if (!strcmp(o->model, "hinge"))
		return fmax(0, 1 - y * z[0]);
	if (!strcmp(o->model, "sigmoid-squared"))
		return 1 / ((1 + exp(y * z[0])) * (1 + exp(y * z[0])));
	if (!strcmp(o->model, "squared"))
		return (z[0] - y) * (z[0] - y) / 2;
	for (uint32_t k = 0; k < o->outputs; k++)
		sum += exp(z[k] - top);
	return top + log(sum) - z[o->d->classes == 2 ? y > 0 : (uint32_t)y];
}

/* Half of lambda |w|^2; as shares: each row of the batch pays lambda / p_u for the features that it has. */
static double penalty(const struct objective *o, const uint64_t *rows, uint32_t n, const double *x)
{
	double sum = 0;
	for (int j = 0; j < FEATURES; j++) {
		double have = 0, batch = 0, square = 0;
		for (int i = 0; i < ROWS; i++)
			have += dense_x[i * LD + j] != 0;
		for (uint32_t i = 0; i < n; i++)
			batch += dense_x[rows[i] * LD + j] != 0;
		for (uint32_t k = 0; k < o->outputs; k++)
			square += x[j * o->outputs + k] * x[j * o->outputs + k];
		sum += o->shared_out ? (have > 0 ? batch / n * ROWS / have * square : 0) : square;
	}
	return o->l2 / 2 * sum;
}

static double objective(const struct objective *o, const uint64_t *rows, uint32_t n, const double *x)
{
	double loss = 0;
	for (uint32_t i = 0; i < n; i++)
		loss += row_loss(o, rows[i], x) / n;
	return loss + penalty(o, rows, n, x);
}

static double slope(const struct objective *o, const uint64_t *rows, uint32_t n, double *x, size_t i)
{
	double h = 1e-5, at = x[i];
	x[i] = at + h;
	double up = objective(o, rows, n, x);
	x[i] = at - h;
	double down = objective(o, rows, n, x);
	x[i] = at;
	return (up - down) / (2 * h);
}

/* --- a model at a random point ------------------------------------------------------------------------------------ */

struct subject {
	struct mw_model *m;
	void *work;
	float x[MAX_DIM];
	double x_double[MAX_DIM];
};

static void subject_init(struct subject *s, const char *name, const char *text, const struct mw_dataset *d)
{
	struct mw_rng r;
	struct mw_err err = { 0 };
	const struct mw_model_ops *ops = mw_model_find(name);
	void *options = plugin_options(ops->options, ops->option_size, text);
	if (mw_model_new(ops, options, d, &s->m, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	free(options);
	s->work = ops->work_new(s->m, ROWS, &err);
	assert_non_null(s->work);
	assert_true(s->m->dim <= MAX_DIM);
	ops->init(s->m, 1, s->x);
	mw_rng_init(&r, 5, 0);
	for (size_t i = 0; i < s->m->dim; i++)
		s->x_double[i] = (double)(s->x[i] += 0.4f * (float)mw_rng_normal(&r));
}

static void subject_fini(struct subject *s)
{
	s->m->ops->work_free(s->work);
	mw_model_free(s->m);
}

/* The gradient on all parameters; returns the loss. Sparse: gathered, then spread again, and each group once. */
static float full_gradient(struct subject *s, const struct mw_batch *b, float *g)
{
	float xc[MAX_DIM], gc[MAX_DIM];
	const uint32_t *group;
	if (!s->m->sparse)
		return s->m->ops->grad(s->m, s->work, b, s->x, g);
	uint32_t width = s->m->width;
	memset(g, 0, s->m->dim * sizeof(*g));
	size_t n = s->m->ops->touch(s->m, s->work, b, &group);
	assert_true(n <= s->m->touch_max * b->n);
	mw_kernels()->gather(s->x, group, n, width, xc);
	float loss = s->m->ops->grad(s->m, s->work, b, xc, gc);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(group[i], group[k]);
	mw_kernels()->scatter_add(gc, group, n, width, g);
	return loss;
}

static void check_batch(struct subject *s, struct objective *o, const uint64_t *rows, uint32_t n)
{
	float g[MAX_DIM];
	struct mw_batch b = { .data = o->d, .row = rows, .n = n };
	double loss = 0;
	float got = full_gradient(s, &b, g);
	for (uint32_t i = 0; i < n; i++)
		loss += row_loss(o, rows[i], s->x_double) / n;
	assert_true(fabs((double)got - loss) <= 2e-6 * (1 + loss));
	for (size_t i = 0; i < s->m->dim; i++) {
		double want = slope(o, rows, n, s->x_double, i);
		if (!(fabs((double)g[i] - want) <= 1e-5 * (1 + fabs(want))))
			fail_msg("%s, %s, l2 %g, batch %u, parameter %zu: %.8g, not %.8g", o->model,
				s->m->sparse ? "sparse" : "dense", o->l2, n, i, (double)g[i], want);
	}
}

static void check_model(const char *name, uint32_t classes, double l2, bool bias, enum mw_x_kind kind)
{
	static const uint64_t some[] = { 4, 19, 7, 4, 0 }; /* an empty row, and one twice */
	uint64_t all[ROWS];
	char text[100];
	bool softmax = !strcmp(name, "softmax");
	struct mw_dataset d = data_of(kind, classes);
	struct objective o = { name, &d, softmax ? classes : 1, l2, bias, kind == MW_X_CSR };
	struct subject s;
	snprintf(text, sizeof(text), "l2=%g%s", l2, bias ? "" : " bias=no");
	subject_init(&s, name, text, &d);
	for (uint64_t r = 0; r < ROWS; r++) {
		all[r] = r;
		check_batch(&s, &o, &r, 1);
	}
	check_batch(&s, &o, some, 5);
	check_batch(&s, &o, some + 1, 2);
	check_batch(&s, &o, all, ROWS);
	subject_fini(&s);
}

static const struct {
	const char *name;
	uint32_t classes;
} models[] = {
	{ "logistic", 2 },
	{ "hinge", 2 },
	{ "sigmoid-squared", 2 },
	{ "squared", 0 },
	{ "squared", 2 },
	{ "softmax", 2 },
	{ "softmax", 3 },
	{ "softmax", 10 },
	{ "softmax", MAX_CLASSES },
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

static void central_differences(void **state)
{
	(void)state;
	for (int isa = 0; isa < MW_ISA_COUNT; isa++) {
		if (!mw_kernels_of((enum mw_isa)isa))
			continue;
		assert_int_equal(mw_isa_select(mw_kernels_of((enum mw_isa)isa)->name, NULL), 0);
		for (size_t i = 0; i < N_MODELS; i++)
			for (int k = 0; k < 4; k++)
				check_model(models[i].name, models[i].classes, k & 1 ? 0.3 : 0, true,
					k & 2 ? MW_X_CSR : MW_X_DENSE);
	}
	for (int k = 0; k < 4; k++)
		check_model("logistic", 2, k & 1 ? 0.3 : 0, false, k & 2 ? MW_X_CSR : MW_X_DENSE);
	assert_int_equal(mw_isa_select("auto", NULL), 0);
}

/* Over all rows, the shares of sparse steps add up to the gradient of (l2/2)|w|^2 on every feature that occurs. */
static void shares_add_up(void **state)
{
	(void)state;
	uint64_t all[ROWS];
	for (uint64_t r = 0; r < ROWS; r++)
		all[r] = r;
	for (size_t i = 0; i < N_MODELS; i++) {
		bool softmax = !strcmp(models[i].name, "softmax");
		struct mw_dataset d = data_of(MW_X_CSR, models[i].classes);
		struct objective o = { models[i].name, &d, softmax ? d.classes : 1, 0.3, true, false };
		struct subject s;
		float g[MAX_DIM], mean[MAX_DIM] = { 0 };
		subject_init(&s, o.model, "l2=0.3", &d);
		struct mw_batch b = { .data = &d, .row = all, .n = ROWS };
		full_gradient(&s, &b, g);
		for (size_t k = 0; k < s.m->dim; k++)
			if (k / o.outputs != FEATURES - 1)
				assert_true(fabs((double)g[k] - slope(&o, all, ROWS, s.x_double, k)) < 2e-5);
			else
				assert_true(g[k] == 0); /* no row has it */
		for (uint64_t r = 0; r < ROWS; r++) {
			float one[MAX_DIM];
			struct mw_batch single = { .data = &d, .row = &r, .n = 1 };
			full_gradient(&s, &single, one);
			for (size_t k = 0; k < s.m->dim; k++)
				mean[k] += one[k] / ROWS;
		}
		for (size_t k = 0; k < s.m->dim; k++)
			assert_float_equal(mean[k], g[k], 2e-5f);
		subject_fini(&s);
	}
}

/* What a fused path relies on: z = dot_sparse + bias, g = coef * x with one product, the bias last. */
static void bits_of_a_row(void **state)
{
	(void)state;
	static const char *const names[] = { "logistic", "hinge", "squared", "sigmoid-squared" };
	for (int i = 0; i < 4; i++) {
		struct mw_dataset d = data_of(MW_X_CSR, 2);
		struct subject s;
		subject_init(&s, names[i], "", &d);
		const struct mw_linear *lin = s.m->linear;
		assert_int_equal(lin->link, i);
		assert_true(lin->bias && lin->l2 == 0);
		for (uint64_t r = 0; r < ROWS; r++) {
			struct mw_batch b = { .data = &d, .row = &r, .n = 1 };
			const uint32_t *group;
			float xc[FEATURES + 1], g[FEATURES + 1];
			uint64_t o = row_ptr[r], n = row_ptr[r + 1] - o;
			assert_int_equal(s.m->ops->touch(s.m, s.work, &b, &group), n + 1);
			mw_kernels()->gather(s.x, group, n + 1, 1, xc);
			float loss = s.m->ops->grad(s.m, s.work, &b, xc, g);
			float z = mw_kernels()->dot_sparse(s.x, col + o, val + o, n) + s.x[FEATURES];
			float coef = mw_link_dloss(lin->link, z, labels[r]);
			assert_true(loss == mw_link_loss(lin->link, z, labels[r]));
			for (uint64_t k = 0; k < n; k++) {
				assert_int_equal(group[k], col[o + k]);
				assert_true(g[k] == coef * val[o + k]);
			}
			assert_int_equal(group[n], FEATURES);
			assert_true(g[n] == coef);
		}
		subject_fini(&s);
	}
}

/* The largest first and second derivatives are reached, and never exceeded. */
static void links_have_their_limits(void **state)
{
	static const enum mw_link links[] = { MW_LINK_LOGISTIC, MW_LINK_SQUARED, MW_LINK_SIGMOID_SQUARED };
	(void)state;
	for (int i = 0; i < 3; i++) {
		double steepest = 0, bent = 0, h = 1.0 / 64;
		for (double z = -12; z <= 12; z += h) {
			double a = (double)mw_link_dloss(links[i], (float)z, 1),
			       b = (double)mw_link_dloss(links[i], (float)(z + h), 1);
			steepest = fmax(steepest, fabs(a));
			bent = fmax(bent, fabs(b - a) / h);
		}
		assert_true(bent <= mw_link_curvature(links[i]) * (1 + 1e-4));
		assert_true(bent >= mw_link_curvature(links[i]) * (1 - 1e-3));
		if (links[i] == MW_LINK_SQUARED) {
			assert_true(mw_link_slope(links[i]) == 0); /* no limit */
			continue;
		}
		assert_true(steepest <= mw_link_slope(links[i]) * (1 + 1e-6));
		assert_true(steepest >= mw_link_slope(links[i]) * (1 - 1e-3));
	}
}

static void scores(void **state)
{
	(void)state;
	uint64_t all[ROWS];
	for (uint64_t r = 0; r < ROWS; r++)
		all[r] = r;
	for (size_t i = 0; i < 2 * N_MODELS; i++) {
		const char *name = models[i / 2].name;
		bool softmax = !strcmp(name, "softmax");
		struct mw_dataset d = data_of(i % 2 ? MW_X_CSR : MW_X_DENSE, models[i / 2].classes);
		struct objective o = { name, &d, softmax ? d.classes : 1, 0.3, true, false };
		struct subject s;
		struct mw_score score = { 0 };
		struct mw_batch b = { .data = &d, .row = all, .n = ROWS };
		float out[ROWS * MAX_CLASSES];
		double loss = 0;
		uint64_t correct = 0;
		subject_init(&s, name, "l2=0.3", &d);
		s.m->ops->score(s.m, s.work, &b, s.x, &score);
		s.m->ops->predict(s.m, s.work, &b, s.x, out);
		assert_int_equal(s.m->outputs, o.outputs);
		for (uint64_t r = 0; r < ROWS; r++) {
			loss += row_loss(&o, r, s.x_double);
			float *p = out + r * o.outputs, sum = 0;
			uint32_t best = 0, label = d.classes == 2 ? labels[r] > 0 : (uint32_t)labels[r];
			for (uint32_t k = 0; k < o.outputs; k++) {
				best = p[k] > p[best] ? k : best;
				sum += p[k];
			}
			if (softmax) {
				assert_float_equal(sum, 1, 1e-6f);
				assert_true(
					fabs(-log((double)p[label]) - row_loss(&o, r, s.x_double)) < 1e-5);
			}
			correct += softmax ? best == label
					   : s.m->ops->classifies && (p[0] > 0) == (labels[r] > 0);
		}
		assert_int_equal(score.n, ROWS);
		assert_int_equal(score.correct, correct);
		assert_true(fabs(score.loss - loss) < 1e-5 * loss);
		assert_true(
			fabs(s.m->ops->penalty(s.m, s.x) - penalty(&o, all, ROWS, s.x_double)) < 1e-6 * loss);
		subject_fini(&s);
	}
}

/* Slices cover the parameters without gap, in order. */
static void slices(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_MODELS; i++) {
		struct mw_dataset d = data_of(MW_X_CSR, models[i].classes);
		struct subject s;
		size_t at = 0;
		subject_init(&s, models[i].name, "", &d);
		for (size_t k = 0; k < s.m->n_slices; k++) {
			const struct mw_slice *c = &s.m->slices[k];
			assert_int_equal(c->offset, at);
			at += c->shape[0] * (c->ndim == 2 ? c->shape[1] : 1);
		}
		assert_int_equal(at, s.m->dim);
		subject_fini(&s);
	}
}

static float curvature[5] = { 1, 0.1f, 10, 2, 0.5f }, optimum[5] = { 0, 1, -1, 0.3f, 5 };

static struct mw_dataset quadratic_of(float noise)
{
	return (struct mw_dataset){ .name = quadratic_name,
		.kind = MW_X_QUADRATIC,
		.rows = 1000,
		.features = 5,
		.curvature = curvature,
		.optimum = optimum,
		.noise = noise,
		.noise_seed = 3 };
}

static void quadratic(void **state)
{
	(void)state;
	struct mw_dataset d = quadratic_of(0);
	struct subject s;
	struct mw_score score = { 0 };
	float g[5];
	double f = 0;
	uint64_t rows[] = { 17, 18, 17 };
	struct mw_batch b = { .data = &d, .row = rows, .n = 3 };
	subject_init(&s, "quad", "", &d);
	float loss = s.m->ops->grad(s.m, s.work, &b, s.x, g);
	for (int i = 0; i < 5; i++) {
		double e = s.x_double[i] - (double)optimum[i];
		f += (double)curvature[i] * e * e / 2;
		assert_float_equal(g[i], curvature[i] * (s.x[i] - optimum[i]), 1e-6f);
	}
	assert_true(fabs((double)loss - f) < 1e-6 * f);
	s.m->ops->score(s.m, s.work, &b, s.x, &score);
	assert_true(score.n == 3 && fabs(score.loss - 3 * f) < 1e-6 * f);
	subject_fini(&s);
}

/* Noise is a function of the row, averaged over a batch, and a slope of the loss, which is linear in it. */
static void quadratic_noise(void **state)
{
	(void)state;
	struct mw_dataset d = quadratic_of(0.25f);
	struct subject s;
	float g[5], g17[5], g18[5], mean[5], up, down;
	uint64_t rows[] = { 17, 18, 17 };
	struct mw_batch b = { .data = &d, .row = rows, .n = 3 }, b17 = { .data = &d, .row = rows, .n = 1 },
			b18 = { .data = &d, .row = rows + 1, .n = 1 };
	subject_init(&s, "quad", "", &d);
	s.m->ops->grad(s.m, s.work, &b17, s.x, g17);
	s.m->ops->grad(s.m, s.work, &b18, s.x, g18);
	s.m->ops->grad(s.m, s.work, &b, s.x, mean);
	s.m->ops->grad(s.m, s.work, &b17, s.x, g);
	assert_memory_equal(g, g17, sizeof(g));
	for (int i = 0; i < 5; i++) {
		assert_true(g17[i] != g18[i]);
		assert_float_equal(mean[i], (2 * g17[i] + g18[i]) / 3, 1e-5f);
		float at = s.x[i];
		s.x[i] = at + 0.01f;
		up = s.m->ops->grad(s.m, s.work, &b, s.x, g);
		s.x[i] = at - 0.01f;
		down = s.m->ops->grad(s.m, s.work, &b, s.x, g);
		s.x[i] = at;
		assert_float_equal((up - down) / 0.02f, mean[i], 2e-3f);
	}
	subject_fini(&s);
}

/* Standard deviation over rows, in every coordinate: within 5 standard errors. */
static void quadratic_noise_size(void **state)
{
	(void)state;
	struct mw_dataset d = quadratic_of(0.25f);
	struct subject s;
	double square[5] = { 0 };
	subject_init(&s, "quad", "", &d);
	for (uint64_t row = 0; row < 4000; row++) {
		float g[5];
		struct mw_batch b = { .data = &d, .row = &row, .n = 1 };
		s.m->ops->grad(s.m, s.work, &b, optimum, g);
		for (int i = 0; i < 5; i++)
			square[i] += (double)(g[i] * g[i]);
	}
	for (int i = 0; i < 5; i++)
		assert_true(fabs(square[i] / 4000 / 0.0625 - 1) < 5 * sqrt(2.0 / 4000));
	subject_fini(&s);
}

static void check_refused(const char *name, const struct mw_dataset *d, const char *want)
{
	struct mw_err err = { 0 };
	struct mw_model *m;
	assert_int_equal(mw_model_new(mw_model_find(name), NULL, d, &m, &err), MW_EDATA);
	assert_string_equal(err.msg, want);
}

static void refusals(void **state)
{
	(void)state;
	struct mw_dataset ten = data_of(MW_X_CSR, 10), real = data_of(MW_X_CSR, 0),
			  none = data_of(MW_X_CSR, 2);
	struct mw_dataset quad = { .name = quadratic_name, .kind = MW_X_QUADRATIC, .rows = 1, .features = 5 };
	none.rows = 0;
	check_refused("logistic", &ten,
		"model logistic tells two classes apart; table has 10: use --model softmax");
	check_refused("hinge", &real,
		"model hinge tells two classes apart; table has real targets: use --model squared");
	check_refused("squared", &ten,
		"model squared fits real targets; table has 10 classes: use --model softmax, or --label-kind "
		"real if its labels "
		"are numbers to be predicted");
	check_refused("softmax", &real,
		"model softmax tells classes apart; table has real targets: use --model squared, or "
		"--label-kind class if its "
		"labels are classes");
	check_refused("quad", &ten,
		"model quad wants a quadratic function (--data synth:quadratic,dim=D), not the examples of "
		"table");
	check_refused("softmax", &quad,
		"model softmax learns from examples; synth:quadratic is a quadratic function: use --model "
		"quad");
	check_refused("logistic", &none, "table has no rows: there is nothing to train on");
	assert_null(mw_model_find("no-such-model"));
	mw_model_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(central_differences),
		cmocka_unit_test(shares_add_up),
		cmocka_unit_test(bits_of_a_row),
		cmocka_unit_test(links_have_their_limits),
		cmocka_unit_test(scores),
		cmocka_unit_test(slices),
		cmocka_unit_test(quadratic),
		cmocka_unit_test(quadratic_noise),
		cmocka_unit_test(quadratic_noise_size),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
