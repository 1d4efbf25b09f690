/*
 * softmax.c: multinomial logistic regression.
 *
 * Minimise (1/rows) sum_r -log softmax(W' x_r + b)[y_r] + (lambda/2)|W|^2. Parameters are feature-major: row
 * f of W has one float a class, and the bias is the last row, so that a non-zero of an example meets one
 * short run of memory. Zeros are skipped on dense data too (images are mostly background). On CSR data a step
 * touches the rows of its non-zeros and the bias, with the penalty's share of model_make.h; on dense data the
 * penalty is exact.
 */
#include <string.h>

#include "base/kernel.h"
#include "base/mem.h"
#include "model/model_make.h"

struct softmax_options {
	double l2;
};

static const struct mw_option options[] = {
	{ "l2", MW_OPT_FLOAT, offsetof(struct softmax_options, l2), "0", 0, 1e6, NULL, "LAMBDA",
		"Penalty (LAMBDA/2)|W|^2; the bias is not penalised. Sparse data: a step adds an unbiased "
		"share of it to the "
		"coordinates of its row." },
	{ 0 },
};

struct softmax {
	const struct mw_dataset *train;
	uint32_t features, classes;
	size_t touch_max;
	float l2;
	float *share; /* CSR and l2 > 0 */
};

struct softmax_work {
	const struct mw_kernels *k;
	struct mw_touch touch; /* CSR */
	float *z;              /* classes */
	uint32_t *idx;         /* dense: the non-zeros of a row */
	float *val;
};

/* The non-zeros of an example, and where their parameters are: group[i] is a row of the array at hand. */
struct example {
	const uint32_t *group, *col;
	const float *val;
	size_t n;
};

static const struct softmax *priv(const struct mw_model *m)
{
	return m->priv;
}

static int setup(struct mw_model *m, const void *options_, const struct mw_dataset *d, struct mw_err *err)
{
	const struct softmax_options *o = options_;
	MW_TRY(mw_model_wants_examples(m, d, err));
	if (d->classes < 2)
		MW_FAIL(err, DATA,
			"model softmax tells classes apart; %s has real targets: use --model squared, or "
			"--label-kind "
			"class if its labels are classes",
			d->name);
	struct softmax *p = mw_alloc(sizeof(*p), "softmax model", err);
	if (!p)
		return MW_ERESOURCE;
	m->priv = p;
	*p = (struct softmax){
		.train = d, .features = d->features, .classes = d->classes, .l2 = (float)o->l2
	};
	m->dim = ((size_t)d->features + 1) * d->classes;
	m->outputs = d->classes;
	m->sparse = d->kind == MW_X_CSR;
	m->width = m->sparse ? d->classes : 1;
	if (m->sparse) {
		m->touch_max = p->touch_max = mw_model_longest_row(d) + 1;
		if (o->l2 > 0)
			MW_TRY(mw_model_shares(d, &p->share, err));
	}
	MW_TRY(mw_model_slices_new(m, 2, err));
	mw_model_slice(m, "weight", 0, d->features, d->classes);
	mw_model_slice(m, "bias", (size_t)d->features * d->classes, d->classes, 0);
	return 0;
}

static void fini(struct mw_model *m)
{
	struct softmax *p = m->priv;
	if (p)
		mw_free(p->share);
	mw_free(p);
}

static void work_free(void *work)
{
	struct softmax_work *w = work;
	if (w) {
		mw_touch_fini(&w->touch);
		mw_free(w->z);
		mw_free(w->idx);
		mw_free(w->val);
	}
	mw_free(w);
}

static void *work_new(const struct mw_model *m, uint32_t batch_max, struct mw_err *err)
{
	const struct softmax *p = priv(m);
	struct softmax_work *w = mw_alloc(sizeof(*w), "scratch of a softmax model", err);
	if (!w)
		return NULL;
	w->k = mw_kernels();
	w->z = mw_alloc_array(p->classes, sizeof(*w->z), "class scores", err);
	bool ok = w->z;
	if (m->sparse) {
		ok = ok && mw_touch_init(&w->touch, p->train, batch_max, p->touch_max, p->features, err) == 0;
	} else {
		w->idx = mw_alloc_array((size_t)p->features + 16, sizeof(*w->idx), "non-zeros of a row", err);
		w->val = mw_alloc_array((size_t)p->features + 16, sizeof(*w->val), "non-zeros of a row", err);
		ok = ok && w->idx && w->val;
	}
	if (ok)
		return w;
	work_free(w);
	return NULL;
}

static size_t touch(const struct mw_model *m, void *work, const struct mw_batch *b, const uint32_t **groups)
{
	struct softmax_work *w = work;
	(void)m;
	*groups = w->touch.group;
	return mw_touch_batch(&w->touch, b);
}

/* A row against the whole parameter array. */
static struct example example_of(
	const struct softmax *p, struct softmax_work *w, const struct mw_dataset *d, uint64_t row)
{
	if (d->kind == MW_X_CSR) {
		uint64_t o = d->row_ptr[row];
		return (struct example){ d->col + o, d->col + o, d->val + o, d->row_ptr[row + 1] - o };
	}
	size_t n = w->k->nonzeros(d->x + row * d->ld, p->features, w->idx, w->val);
	return (struct example){ w->idx, w->idx, w->val, n };
}

static uint32_t class_of(const struct mw_dataset *d, uint64_t row)
{
	return d->classes == 2 ? d->y[row] > 0 : (uint32_t)d->y[row];
}

/* Class probabilities into w->z; returns the loss -log p[label]. */
static float forward(const struct softmax *p, struct softmax_work *w, const struct example *e, const float *x,
	const float *bias, uint32_t label)
{
	memcpy(w->z, bias, p->classes * sizeof(*w->z));
	w->k->rows_dot(x, e->group, e->val, e->n, p->classes, w->z);
	float z = w->z[label];
	return w->k->softmax(w->z, p->classes) - z;
}

static void add_share(const struct softmax *p, const struct example *e, const float *x, float *g, float scale)
{
	for (size_t i = 0; i < e->n; i++) {
		float a = scale * p->l2 * p->share[e->col[i]];
		size_t o = (size_t)e->group[i] * p->classes;
		for (uint32_t k = 0; k < p->classes; k++)
			g[o + k] += a * x[o + k];
	}
}

static float grad(const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *g)
{
	const struct softmax *p = priv(m);
	struct softmax_work *w = work;
	size_t bias = (m->sparse ? w->touch.n - 1 : p->features) * (size_t)p->classes;
	float scale = 1.0f / (float)b->n;
	double loss = 0;
	memset(g, 0, (bias + p->classes) * sizeof(*g));
	if (!m->sparse && p->l2 > 0)
		w->k->axpy(p->l2, x, g, bias);
	for (uint32_t r = 0; r < b->n; r++) {
		struct example e = example_of(p, w, b->data, b->row[r]);
		if (m->sparse)
			e.group = mw_touch_positions(&w->touch, b->data, b->row[r]);
		uint32_t label = class_of(b->data, b->row[r]);
		loss += (double)forward(p, w, &e, x, x + bias, label);
		w->z[label] -= 1.0f;
		for (uint32_t k = 0; k < p->classes; k++) {
			w->z[k] *= scale;
			g[bias + k] += w->z[k];
		}
		w->k->rows_add(w->z, e.group, e.val, e.n, p->classes, g);
		if (p->share)
			add_share(p, &e, x, g, scale);
	}
	return (float)(loss / b->n);
}

static void score(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, struct mw_score *s)
{
	const struct softmax *p = priv(m);
	struct softmax_work *w = work;
	for (uint32_t r = 0; r < b->n; r++) {
		struct example e = example_of(p, w, b->data, b->row[r]);
		uint32_t label = class_of(b->data, b->row[r]), best = 0;
		s->loss += (double)forward(p, w, &e, x, x + (size_t)p->features * p->classes, label);
		for (uint32_t k = 1; k < p->classes; k++)
			best = w->z[k] > w->z[best] ? k : best;
		s->correct += best == label;
	}
	s->n += b->n;
}

static double penalty(const struct mw_model *m, const float *x)
{
	const struct softmax *p = priv(m);
	double sum = 0;
	for (size_t i = 0; p->l2 > 0 && i < (size_t)p->features * p->classes; i++)
		sum += (double)x[i] * (double)x[i];
	return 0.5 * (double)p->l2 * sum;
}

static void predict(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *out)
{
	const struct softmax *p = priv(m);
	struct softmax_work *w = work;
	for (uint32_t r = 0; r < b->n; r++) {
		struct example e = example_of(p, w, b->data, b->row[r]);
		forward(p, w, &e, x, x + (size_t)p->features * p->classes, 0);
		memcpy(out + (size_t)r * p->classes, w->z, p->classes * sizeof(*out));
	}
}

const struct mw_model_ops mw_model_softmax = {
	.name = "softmax",
	.summary = "softmax (multinomial logistic) regression, two classes or more",
	.options = options,
	.option_size = sizeof(struct softmax_options),
	.classifies = true,
	.setup = setup,
	.fini = fini,
	.init = mw_model_init_zeros,
	.work_new = work_new,
	.work_free = work_free,
	.touch = touch,
	.grad = grad,
	.score = score,
	.penalty = penalty,
	.predict = predict,
};
