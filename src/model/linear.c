/*
 * linear.c: models with one linear output: logistic regression, linear SVM (hinge), least squares, and the smooth nonconvex
 * squared distance of a sigmoid from the label.
 *
 * Minimise (1/rows) sum_r loss(w.x_r + b, y_r) + (lambda/2)|w|^2; the bias b is parameter `features` and is
 * not penalised. On CSR data a step touches the row's coordinates and the bias only, with the penalty's share
 * of model_make.h; on dense data the gradient is full and the penalty exact. All inner products are the
 * kernels' dot on dense rows, dot_sparse or dot_compact, which agree to the bit, on sparse ones; the derivative of a row is coef * x with
 * one product a coordinate.
 */
#include <string.h>

#include "base/kernel.h"
#include "base/mem.h"
#include "model/link.h"
#include "model/model_make.h"

struct linear_options {
	double l2;
	bool bias;
};

static const struct mw_option options[] = {
	{ "l2", MW_OPT_FLOAT, offsetof(struct linear_options, l2), "0", 0, 1e6, NULL, "LAMBDA",
		"Penalty (LAMBDA/2)|w|^2; the bias is not penalised. Sparse data: a step adds an unbiased "
		"share of it to the "
		"coordinates of its row." },
	{ "bias", MW_OPT_BOOL, offsetof(struct linear_options, bias), "yes", 0, 0, NULL, NULL,
		"Learn a constant term." },
	{ 0 },
};

struct linear {
	struct mw_linear lin;
	uint32_t features;
	size_t touch_max;
	const struct mw_dataset *train;
	float *share;
};

struct linear_work {
	const struct mw_kernels *k;
	struct mw_touch touch; /* CSR only */
};

static const struct linear *priv(const struct mw_model *m)
{
	return m->priv;
}

static int check(const struct mw_model *m, enum mw_link link, const struct mw_dataset *d, struct mw_err *err)
{
	MW_TRY(mw_model_wants_examples(m, d, err));
	if (link == MW_LINK_SQUARED && d->classes > 2)
		MW_FAIL(err, DATA,
			"model %s fits real targets; %s has %u classes: use --model softmax, or --label-kind "
			"real if "
			"its labels are numbers to be predicted",
			m->ops->name, d->name, d->classes);
	if (link != MW_LINK_SQUARED && d->classes == 0)
		MW_FAIL(err, DATA,
			"model %s tells two classes apart; %s has real targets: use --model squared",
			m->ops->name, d->name);
	if (link != MW_LINK_SQUARED && d->classes != 2)
		MW_FAIL(err, DATA, "model %s tells two classes apart; %s has %u: use --model softmax",
			m->ops->name, d->name, d->classes);
	return 0;
}

static int setup(struct mw_model *m, enum mw_link link, const struct linear_options *o,
	const struct mw_dataset *d, struct mw_err *err)
{
	MW_TRY(check(m, link, d, err));
	struct linear *p = mw_alloc(sizeof(*p), "linear model", err);
	if (!p)
		return MW_ERESOURCE;
	m->priv = p;
	p->lin = (struct mw_linear){ link, o->bias, (float)o->l2, NULL };
	p->features = d->features;
	p->train = d;
	m->dim = (size_t)d->features + o->bias;
	m->width = m->outputs = 1;
	m->sparse = d->kind == MW_X_CSR;
	if (m->sparse) {
		m->touch_max = p->touch_max = mw_model_longest_row(d) + o->bias;
		m->linear = &p->lin;
		if (o->l2 > 0)
			MW_TRY(mw_model_shares(d, &p->share, err));
		p->lin.l2_inv_popularity = p->share;
	} else {
		m->linear_dense = &p->lin;
	}
	MW_TRY(mw_model_slices_new(m, 2, err));
	mw_model_slice(m, "weight", 0, d->features, 0);
	if (o->bias)
		mw_model_slice(m, "bias", d->features, 1, 0);
	return 0;
}

static int setup_logistic(struct mw_model *m, const void *o, const struct mw_dataset *d, struct mw_err *err)
{
	return setup(m, MW_LINK_LOGISTIC, o, d, err);
}

static int setup_hinge(struct mw_model *m, const void *o, const struct mw_dataset *d, struct mw_err *err)
{
	return setup(m, MW_LINK_HINGE, o, d, err);
}

static int setup_squared(struct mw_model *m, const void *o, const struct mw_dataset *d, struct mw_err *err)
{
	return setup(m, MW_LINK_SQUARED, o, d, err);
}

static int setup_sigmoid_squared(
	struct mw_model *m, const void *o, const struct mw_dataset *d, struct mw_err *err)
{
	return setup(m, MW_LINK_SIGMOID_SQUARED, o, d, err);
}

static void fini(struct mw_model *m)
{
	struct linear *p = m->priv;
	if (p)
		mw_free(p->share);
	mw_free(p);
}

static void work_free(void *work)
{
	struct linear_work *w = work;
	if (w)
		mw_touch_fini(&w->touch);
	mw_free(w);
}

static void *work_new(const struct mw_model *m, uint32_t batch_max, struct mw_err *err)
{
	const struct linear *p = priv(m);
	struct linear_work *w = mw_alloc(sizeof(*w), "scratch of a linear model", err);
	if (!w)
		return NULL;
	w->k = mw_kernels();
	uint32_t bias = p->lin.bias ? p->features : UINT32_MAX;
	if (m->sparse && mw_touch_init(&w->touch, p->train, batch_max, p->touch_max, bias, err) < 0) {
		work_free(w);
		return NULL;
	}
	return w;
}

static size_t touch(const struct mw_model *m, void *work, const struct mw_batch *b, const uint32_t **groups)
{
	struct linear_work *w = work;
	(void)m;
	*groups = w->touch.group;
	return mw_touch_batch(&w->touch, b);
}

/* Batch of one: g[i] = coef x[i] (+ share), then the bias. */
static float grad_row(const struct linear *p, const struct linear_work *w, const struct mw_batch *b,
	const float *x, float *g)
{
	const struct mw_dataset *d = b->data;
	uint64_t o = d->row_ptr[b->row[0]];
	size_t n = d->row_ptr[b->row[0] + 1] - o;
	const float *val = d->val + o;
	float y = d->y[b->row[0]], z = w->k->dot_compact(x, val, n);
	if (p->lin.bias)
		z += x[n];
	float coef = mw_link_dloss(p->lin.link, z, y);
	for (size_t i = 0; i < n; i++)
		g[i] = coef * val[i];
	for (size_t i = 0; p->share && i < n; i++)
		g[i] += p->lin.l2 * p->share[d->col[o + i]] * x[i];
	if (p->lin.bias)
		g[n] = coef;
	return mw_link_loss(p->lin.link, z, y);
}

static float grad_rows(
	const struct linear *p, struct linear_work *w, const struct mw_batch *b, const float *x, float *g)
{
	const struct mw_dataset *d = b->data;
	size_t bias = w->touch.n - 1;
	float scale = 1.0f / (float)b->n;
	double loss = 0;
	memset(g, 0, w->touch.n * sizeof(*g));
	for (uint32_t r = 0; r < b->n; r++) {
		uint64_t row = b->row[r], o = d->row_ptr[row];
		size_t n = d->row_ptr[row + 1] - o;
		const uint32_t *pos = mw_touch_positions(&w->touch, d, row);
		float z = w->k->dot_sparse(x, pos, d->val + o, n) + (p->lin.bias ? x[bias] : 0);
		float coef = mw_link_dloss(p->lin.link, z, d->y[row]) * scale;
		w->k->axpy_sparse(coef, pos, d->val + o, g, n);
		for (size_t i = 0; p->share && i < n; i++)
			g[pos[i]] += scale * p->lin.l2 * p->share[d->col[o + i]] * x[pos[i]];
		if (p->lin.bias)
			g[bias] += coef;
		loss += (double)mw_link_loss(p->lin.link, z, d->y[row]);
	}
	return (float)(loss / b->n);
}

/* Margin of any row on the whole parameter array. */
static float margin(const struct linear *p, const struct linear_work *w, const struct mw_dataset *d,
	uint64_t row, const float *x)
{
	float z;
	if (d->kind == MW_X_CSR) {
		uint64_t o = d->row_ptr[row];
		z = w->k->dot_sparse(x, d->col + o, d->val + o, d->row_ptr[row + 1] - o);
	} else {
		z = w->k->dot(x, d->x + row * d->ld, p->features);
	}
	return p->lin.bias ? z + x[p->features] : z;
}

static float grad_dense(const struct linear *p, const struct linear_work *w, const struct mw_batch *b,
	const float *x, float *g)
{
	const struct mw_dataset *d = b->data;
	float scale = 1.0f / (float)b->n, bias = 0;
	double loss = 0;
	memset(g, 0, p->features * sizeof(*g));
	if (p->lin.l2 > 0)
		w->k->axpy(p->lin.l2, x, g, p->features);
	for (uint32_t r = 0; r < b->n; r++) {
		uint64_t row = b->row[r];
		float z = margin(p, w, d, row, x), coef = mw_link_dloss(p->lin.link, z, d->y[row]) * scale;
		w->k->axpy(coef, d->x + row * d->ld, g, p->features);
		bias += coef;
		loss += (double)mw_link_loss(p->lin.link, z, d->y[row]);
	}
	if (p->lin.bias)
		g[p->features] = bias;
	return (float)(loss / b->n);
}

static float grad(const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *g)
{
	if (!m->sparse)
		return grad_dense(priv(m), work, b, x, g);
	return b->n == 1 ? grad_row(priv(m), work, b, x, g) : grad_rows(priv(m), work, b, x, g);
}

static void score(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, struct mw_score *s)
{
	enum mw_link link = priv(m)->lin.link;
	for (uint32_t r = 0; r < b->n; r++) {
		float z = margin(priv(m), work, b->data, b->row[r], x), y = b->data->y[b->row[r]];
		s->loss += (double)mw_link_loss(link, z, y);
		s->correct += m->ops->classifies && (z > 0) == (y > 0);
	}
	s->n += b->n;
}

static double penalty(const struct mw_model *m, const float *x)
{
	double sum = 0, l2 = (double)priv(m)->lin.l2;
	for (size_t i = 0; l2 > 0 && i < priv(m)->features; i++)
		sum += (double)x[i] * (double)x[i];
	return 0.5 * l2 * sum;
}

static void predict(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *out)
{
	for (uint32_t r = 0; r < b->n; r++)
		out[r] = margin(priv(m), work, b->data, b->row[r], x);
}

#define LINEAR(link, its_name, is_classifier, text)           \
	const struct mw_model_ops mw_model_##link = {         \
		.name = its_name,                             \
		.summary = text,                              \
		.options = options,                           \
		.option_size = sizeof(struct linear_options), \
		.classifies = is_classifier,                  \
		.setup = setup_##link,                        \
		.fini = fini,                                 \
		.init = mw_model_init_zeros,                  \
		.work_new = work_new,                         \
		.work_free = work_free,                       \
		.touch = touch,                               \
		.grad = grad,                                 \
		.score = score,                               \
		.penalty = penalty,                           \
		.predict = predict,                           \
	};

LINEAR(logistic, "logistic", true, "logistic regression, two classes")
LINEAR(hinge, "hinge", true, "linear support vector machine (hinge loss), two classes")
LINEAR(squared, "squared", false, "least squares, real targets")
LINEAR(sigmoid_squared, "sigmoid-squared", true,
	"squared distance of a sigmoid from the class: smooth, not convex")
