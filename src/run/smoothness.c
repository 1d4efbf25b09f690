/* smoothness.c: L and G of the run's objective from its data; see theory.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/link.h"
#include "run/theory.h"
#include "run/theory_impl.h"

enum { STREAM_POWER = 0x9043, ITERATIONS = 100 };
#define SETTLED 1e-5
/* The iteration comes from below; what it may still be short of. */
#define MARGIN 1.01

/* Rows of a dataset as vectors, with a one behind them where there is a bias. */
struct matrix {
	const struct mw_dataset *d;
	const struct mw_rows *rows;
	uint64_t from, to, stride;
	bool bias;
	size_t dim;
};

static double row_dot(const struct matrix *m, uint64_t r, const double *v)
{
	const struct mw_dataset *d = m->d;
	double z = m->bias ? v[d->features] : 0;
	if (d->kind == MW_X_CSR)
		for (uint64_t o = d->row_ptr[r]; o < d->row_ptr[r + 1]; o++)
			z += (double)d->val[o] * v[d->col[o]];
	else
		for (uint32_t j = 0; j < d->features; j++)
			z += (double)d->x[r * d->ld + j] * v[j];
	return z;
}

static void row_add(const struct matrix *m, uint64_t r, double a, double *v)
{
	const struct mw_dataset *d = m->d;
	if (m->bias)
		v[d->features] += a;
	if (d->kind == MW_X_CSR)
		for (uint64_t o = d->row_ptr[r]; o < d->row_ptr[r + 1]; o++)
			v[d->col[o]] += a * (double)d->val[o];
	else
		for (uint32_t j = 0; j < d->features; j++)
			v[j] += a * (double)d->x[r * d->ld + j];
}

static double norm(const double *v, size_t n)
{
	double s = 0;
	for (size_t i = 0; i < n; i++)
		s += v[i] * v[i];
	return sqrt(s);
}

/* Largest eigenvalue of (1/n) sum a a^T; v, w: room for dim each. */
static double largest_eigenvalue(const struct matrix *m, double *v, double *w)
{
	struct mw_rng rng;
	double lambda = 0;
	mw_rng_init(&rng, 1, STREAM_POWER);
	for (size_t i = 0; i < m->dim; i++)
		v[i] = mw_rng_normal(&rng);
	for (int k = 0; k < ITERATIONS; k++) {
		double length = norm(v, m->dim), before = lambda, n = 0;
		for (size_t i = 0; i < m->dim; i++) {
			v[i] /= length;
			w[i] = 0;
		}
		for (uint64_t i = m->from; i < m->to; i += m->stride, n++) {
			uint64_t r = mw_rows_at(m->rows, i);
			row_add(m, r, row_dot(m, r, v), w);
		}
		lambda = norm(w, m->dim) / n;
		if (!(lambda > 0) || fabs(lambda - before) < SETTLED * lambda)
			break;
		memcpy(v, w, m->dim * sizeof(*v));
	}
	return lambda * MARGIN;
}

/* The largest over the workers' parts, or of all rows. */
static int data_eigenvalue(struct mw_run *run, bool bias, double work, double *out, struct mw_err *err)
{
	const struct mw_dataset *d = run->train;
	double a_row = d->kind == MW_X_CSR ? (double)d->nnz / (double)d->rows : d->features;
	double cost = 4 * a_row * (double)run->rows.n * 30; /* iterations, mostly */
	struct matrix m = { .d = d,
		.rows = &run->rows,
		.bias = bias,
		.dim = (size_t)d->features + bias,
		.stride = cost > work ? (uint64_t)(cost / work) + 1 : 1 };
	double *v = mw_alloc_array(2 * m.dim, sizeof(*v), "the smoothness of the objective", err);
	if (!v)
		return err->code;
	bool own = mw_own_rows(run) && run->worker; /* before the workers are made: of all rows */
	uint32_t parts = own ? run->n_workers : 1;
	*out = 0;
	for (uint32_t p = 0; p < parts; p++) {
		if (own)
			m.rows = mw_order_own(&run->worker[p]->order, &m.from, &m.to);
		else
			m.to = run->rows.n;
		*out = fmax(*out, largest_eigenvalue(&m, v, v + m.dim));
	}
	mw_free(v);
	return 0;
}

double mw_theory_option(const struct mw_run *run, const char *name)
{
	json_t *config = mw_job_config(run->job), *v = json_object_get(config, name);
	double x = json_is_number(v)  ? json_number_value(v)
		   : json_is_true(v)  ? 1
		   : json_is_false(v) ? 0
				      : NAN;
	json_decref(config);
	return x;
}

static enum mw_link link_of(const struct mw_run *run)
{
	static const char *const names[] = { "logistic", "hinge", "squared", "sigmoid-squared" };
	for (int i = 0; i < 4; i++)
		if (!strcmp(run->model->ops->name, names[i]))
			return (enum mw_link)i;
	return MW_LINK_HINGE;
}

/* curvature: the largest second derivative of the loss in its margin */
static int curvature_of(struct mw_run *run, double curvature, double work, double *l, struct mw_err *err)
{
	const struct mw_dataset *d = run->train;
	bool softmax = !strcmp(run->model->ops->name, "softmax");
	double l2 = mw_theory_option(run, "l2"), bias = mw_theory_option(run, "bias"), lambda = 0;
	*l = NAN;
	if (d->kind == MW_X_QUADRATIC) {
		for (uint32_t i = 0; i < d->features; i++)
			lambda = fmax(lambda, (double)d->curvature[i]);
		*l = lambda;
		return 0;
	}
	if (curvature == 0 || (d->kind != MW_X_CSR && d->kind != MW_X_DENSE))
		return 0;
	MW_TRY(data_eigenvalue(run, softmax || bias == 1, work, &lambda, err));
	*l = curvature * lambda + (l2 > 0 ? l2 : 0);
	return 0;
}

int mw_smoothness(struct mw_run *run, double work, double *l, struct mw_err *err)
{
	/* the Hessian of softmax in its class scores is diag(p) - p p^T, at most 1/2 */
	bool softmax = !strcmp(run->model->ops->name, "softmax");
	return curvature_of(run, softmax ? 0.5 : mw_link_curvature(link_of(run)), work, l, err);
}

int mw_typical_curvature(struct mw_run *run, double work, double *l, struct mw_err *err)
{
	if (!strcmp(run->model->ops->name, "hinge"))
		return curvature_of(run, 1, work, l, err);
	if (!strcmp(run->model->ops->name, "softmax"))
		return curvature_of(run, 1.0 / run->train->classes, work, l, err);
	return mw_smoothness(run, work, l, err);
}

double mw_gradient_limit(struct mw_run *run)
{
	const struct mw_dataset *d = run->train;
	bool softmax = !strcmp(run->model->ops->name, "softmax");
	double slope = softmax ? 1 : mw_link_slope(link_of(run)), most = 1; /* the bias */
	if ((link_of(run) == MW_LINK_HINGE && !softmax && strcmp(run->model->ops->name, "hinge")) ||
		slope == 0 || mw_theory_option(run, "l2") > 0)
		return NAN;
	if (d->kind == MW_X_CSR)
		for (uint64_t o = 0; o < d->nnz; o++)
			most = fmax(most, fabs((double)d->val[o]));
	else if (d->kind == MW_X_DENSE)
		for (uint64_t r = 0; r < d->rows; r++)
			for (uint32_t j = 0; j < d->features; j++)
				most = fmax(most, fabs((double)d->x[r * d->ld + j]));
	else
		return NAN;
	return slope * most;
}
