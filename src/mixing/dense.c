/* dense.c: norms of deflated products on the space where pi^T z = 0, and decisions about them. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

#define RADIUS_SQUARINGS 46

int mix_space_init(struct mix_space *s, uint32_t n, const double *pi, struct mw_err *err)
{
	size_t cells = (size_t)n * n;
	*s = (struct mix_space){ .n = n, .pi = pi };
	for (uint32_t i = 0; i < n; i++)
		s->pi2 += pi[i] * pi[i];
	s->g = mw_alloc_array(3 * cells, sizeof(double), "matrices of the mixing time", err);
	if (!s->g)
		return MW_ERESOURCE;
	s->a = s->g + cells;
	s->b = s->a + cells;
	return MW_OK;
}

void mix_space_fini(struct mix_space *s)
{
	mw_free(s->g);
	s->g = NULL;
}

void mix_deflated_identity(const struct mix_space *s, double *e)
{
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t j = 0; j < s->n; j++)
			e[(size_t)i * s->n + j] = (i == j) - s->pi[j];
}

double mix_tv(const double *e, uint32_t rows, uint32_t cols)
{
	double worst = 0;
	for (uint32_t i = 0; i < rows; i++) {
		double sum = 0;
		for (uint32_t j = 0; j < cols; j++)
			sum += fabs(e[(size_t)i * cols + j]);
		worst = fmax(worst, sum);
	}
	return worst / 2;
}

/* a := E P with P the projection on ker pi^T: restricting first keeps small norms accurate, pi = e_0 has large E. */
static void project(const struct mix_space *s, const double *e)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const double *row = e + (size_t)i * s->n;
		double *to = s->a + (size_t)i * s->n, u = 0;
		for (uint32_t j = 0; j < s->n; j++)
			u += row[j] * s->pi[j];
		u /= s->pi2;
		for (uint32_t j = 0; j < s->n; j++)
			to[j] = row[j] - u * s->pi[j];
	}
}

/* Largest eigenvalue of the symmetric matrix in g (its upper triangle), which is destroyed. */
static double largest(const struct mix_space *s)
{
	if (s->n == 1)
		return s->g[0];
	return mix_eigen(s->n, s->g, s->b, false) ? fmax(s->b[s->n - 1], 0) : NAN;
}

/* Is every eigenvalue of g below t? t I - g has a Cholesky factor then: a third of the cost, and no iteration. */
static bool below(const struct mix_space *s, double t)
{
	size_t n = s->n;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i; j < n; j++)
			s->g[i * n + j] = -s->g[i * n + j];
		s->g[i * n + i] += t;
	}
	return mix_positive(s->n, s->g);
}

double mix_l2(const struct mix_space *s, const double *e)
{
	project(s, e);
	mix_gram(s->n, s->a, s->g);
	return sqrt(largest(s));
}

static double squares(const struct mix_space *s, const double *a)
{
	double sum = 0;
	for (size_t i = 0; i < (size_t)s->n * s->n; i++)
		sum += a[i] * a[i];
	return sum;
}

bool mix_l2_within(const struct mix_space *s, const double *e, double threshold)
{
	double t2 = threshold * threshold, f2;
	project(s, e);
	f2 = squares(s, s->a);
	if (f2 <= t2 || s->n == 1)
		return true;
	if (f2 > t2 * (s->n - 1)) /* the mean of the squared singular values is over it */
		return false;
	mix_gram(s->n, s->a, s->g);
	return below(s, t2);
}

/* g := P M P */
static void project_symmetric(const struct mix_space *s, const double *m)
{
	uint32_t n = s->n;
	double *u = s->b, quad = 0;
	for (uint32_t i = 0; i < n; i++) {
		u[i] = 0;
		for (uint32_t j = 0; j < n; j++)
			u[i] += m[(size_t)i * n + j] * s->pi[j];
		u[i] /= s->pi2;
		quad += u[i] * s->pi[i];
	}
	quad /= s->pi2;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i; j < n; j++)
			s->g[(size_t)i * n + j] = m[(size_t)i * n + j] - u[i] * s->pi[j] - s->pi[i] * u[j] +
						  quad * s->pi[i] * s->pi[j];
}

double mix_top(const struct mix_space *s, const double *m)
{
	project_symmetric(s, m);
	return largest(s);
}

bool mix_top_within(const struct mix_space *s, const double *m, double threshold2)
{
	double trace = 0;
	project_symmetric(s, m);
	for (size_t i = 0; i < s->n; i++)
		trace += s->g[i * s->n + i];
	if (trace <= threshold2 || s->n == 1)
		return true;
	if (trace > threshold2 * (s->n - 1))
		return false;
	return below(s, threshold2);
}

/*
 * |E^(2^j)|^(1/2^j) for j = 46, scaled at every squaring (Gelfand): rounding of a squaring is halved by each later one,
 * so the logarithm is as accurate as the entries, for any E.
 */
double mix_radius(const struct mix_space *s, const double *e)
{
	double log_r = 0, *a = s->a, *b = s->b;
	memcpy(a, e, (size_t)s->n * s->n * sizeof(*e));
	for (int j = 0; j <= RADIUS_SQUARINGS; j++) {
		double size = sqrt(squares(s, a)), *t = a;
		if (!(size > 1e-150))
			return 0;
		log_r += log(size) * ldexp(1, -j);
		for (size_t i = 0; i < (size_t)s->n * s->n; i++)
			a[i] /= size;
		mix_multiply(s->n, a, a, b);
		a = b;
		b = t;
	}
	return exp(log_r);
}

double mix_distance(const struct mix_law *law, const struct mix_space *s, const double *e)
{
	return law->norm == MW_NORM_TV ? mix_tv(e, law->rows, law->rows) : mix_l2(s, e);
}

bool mix_within(const struct mix_law *law, const struct mix_space *s, const double *e)
{
	if (law->norm == MW_NORM_TV)
		return mix_tv(e, law->rows, law->rows) <= law->threshold;
	return mix_l2_within(s, e, law->threshold);
}
