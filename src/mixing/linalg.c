/* linalg.c: dense products, Cholesky and symmetric eigenvalues; see linalg.h. */
#include "mixing/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alone.h"

#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

#ifdef HAVE_CBLAS
void mix_multiply(uint32_t n, const double *a, const double *b, double *c)
{
	int d = (int)n;
	mw_stay_alone();
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, d, d, d, 1, a, d, b, d, 0, c, d);
}

void mix_gram(uint32_t n, const double *a, double *g)
{
	int d = (int)n;
	mw_stay_alone();
	cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, d, d, 1, a, d, 0, g, d);
}
#else
void mix_multiply(uint32_t n, const double *a, const double *b, double *c)
{
	memset(c, 0, (size_t)n * n * sizeof(*c));
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			double f = a[i * n + k];
			for (size_t j = 0; f != 0 && j < n; j++)
				c[i * n + j] += f * b[k * n + j];
		}
}

void mix_gram(uint32_t n, const double *a, double *g)
{
	memset(g, 0, (size_t)n * n * sizeof(*g));
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < n; i++) {
			double f = a[k * n + i];
			for (size_t j = i; f != 0 && j < n; j++)
				g[i * n + j] += f * a[k * n + j];
		}
}
#endif

#ifdef HAVE_LAPACKE
#include <lapacke.h>

bool mix_positive(uint32_t n, double *a)
{
	mw_stay_alone();
	return LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', (int)n, a, (int)n) == 0;
}

bool mix_eigen(uint32_t n, double *a, double *w, bool vectors)
{
	mw_stay_alone();
	return LAPACKE_dsyevd(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', 'L', (int)n, a, (int)n, w) == 0;
}
#else
/* Right-looking Cholesky by rows of the upper triangle. */
bool mix_positive(uint32_t n, double *a)
{
	for (size_t k = 0; k < n; k++) {
		double pivot = a[k * n + k];
		if (!(pivot > 0))
			return false;
		for (size_t i = k + 1; i < n; i++) {
			double f = a[k * n + i] / pivot;
			for (size_t j = i; f != 0 && j < n; j++)
				a[i * n + j] -= f * a[k * n + j];
		}
	}
	return true;
}

/* One Jacobi rotation that makes a[p][q] zero; v (rows are vectors) may be NULL. */
static void rotate(size_t n, double *a, double *v, size_t p, size_t q)
{
	double apq = a[p * n + q], theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
	double t = (theta < 0 ? -1 : 1) / (fabs(theta) + hypot(1, theta)), c = 1 / hypot(1, t), s = t * c;
	for (size_t k = 0; k < n; k++) {
		double kp = a[k * n + p], kq = a[k * n + q];
		a[k * n + p] = c * kp - s * kq;
		a[k * n + q] = s * kp + c * kq;
	}
	for (size_t k = 0; k < n; k++) {
		double pk = a[p * n + k], qk = a[q * n + k];
		a[p * n + k] = c * pk - s * qk;
		a[q * n + k] = s * pk + c * qk;
	}
	for (size_t k = 0; v && k < n; k++) {
		double pk = v[p * n + k], qk = v[q * n + k];
		v[p * n + k] = c * pk - s * qk;
		v[q * n + k] = s * pk + c * qk;
	}
}

/* Ascending, with the rows of v (may be NULL) moved along. */
static void sort_rows(size_t n, double *w, double *v)
{
	for (size_t i = 0; i + 1 < n; i++) {
		size_t least = i;
		for (size_t j = i + 1; j < n; j++)
			if (w[j] < w[least])
				least = j;
		double t = w[i];
		w[i] = w[least];
		w[least] = t;
		for (size_t k = 0; v && least != i && k < n; k++) {
			t = v[i * n + k];
			v[i * n + k] = v[least * n + k];
			v[least * n + k] = t;
		}
	}
}

/* Cyclic Jacobi on a full copy. */
static bool jacobi(size_t n, double *a, double *w, double *v)
{
	for (int sweep = 0; sweep < 60; sweep++) {
		double off = 0, all = 0;
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++) {
				all += a[i * n + j] * a[i * n + j];
				off += i == j ? 0 : a[i * n + j] * a[i * n + j];
			}
		if (off <= 1e-30 * all) {
			for (size_t i = 0; i < n; i++)
				w[i] = a[i * n + i];
			sort_rows(n, w, v);
			return true;
		}
		for (size_t p = 0; p < n; p++)
			for (size_t q = p + 1; q < n; q++)
				if (a[p * n + q] != 0)
					rotate(n, a, v, p, q);
	}
	return false;
}

bool mix_eigen(uint32_t n, double *a, double *w, bool vectors)
{
	double *v = vectors ? malloc((size_t)n * n * sizeof(*v)) : NULL;
	if (vectors && !v)
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			a[i * n + j] = i <= j ? a[i * n + j] : a[j * n + i];
			if (v)
				v[i * n + j] = i == j;
		}
	bool fine = jacobi(n, a, w, v);
	if (v)
		memcpy(a, v, (size_t)n * n * sizeof(*v));
	free(v);
	return fine;
}
#endif
