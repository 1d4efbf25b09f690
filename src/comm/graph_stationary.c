/* graph_stationary.c: the left fixed vector of a mixing matrix; see graph.h. */
#include "comm/graph.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* The augmented system: W^T - I, its last equation (a sum of the others) replaced by sum(pi) = 1. */
static void fill_system(const struct mw_graph *g, double *a)
{
	uint32_t n = g->n;
	size_t width = (size_t)n + 1;
	for (uint32_t i = 0; i < n; i++) {
		const struct mw_graph_matrix *w = &g->w[0];
		for (uint64_t k = w->first[i]; k < w->first[i + 1]; k++)
			a[w->entry[k].to * width + i] += w->entry[k].weight;
		a[i * width + i] -= 1;
	}
	for (uint32_t j = 0; j <= n; j++)
		a[(n - 1) * width + j] = 1;
}

static void swap_rows(double *a, double *b, size_t n)
{
	for (size_t j = 0; j < n; j++) {
		double t = a[j];
		a[j] = b[j];
		b[j] = t;
	}
}

/* Gauss-Jordan with row pivoting on n x (n+1); false if singular. */
static bool eliminate(double *a, uint32_t n)
{
	size_t width = (size_t)n + 1;
	for (uint32_t c = 0; c < n; c++) {
		uint32_t best = c;
		for (uint32_t r = c + 1; r < n; r++)
			if (fabs(a[r * width + c]) > fabs(a[best * width + c]))
				best = r;
		if (fabs(a[best * width + c]) < 1e-13)
			return false;
		swap_rows(a + best * width, a + c * width, width);
		for (uint32_t r = 0; r < n; r++) {
			double f = a[r * width + c] / a[c * width + c];
			if (r == c || f == 0)
				continue;
			for (size_t j = c; j < width; j++)
				a[r * width + j] -= f * a[c * width + j];
		}
	}
	return true;
}

int mw_graph_stationary(const struct mw_graph *g, double *pi, struct mw_err *err)
{
	uint32_t n = g->n;
	size_t width = (size_t)n + 1;
	double sum = 0;
	if (g->doubly_stochastic) {
		for (uint32_t i = 0; i < n; i++)
			pi[i] = 1. / n;
		return MW_OK;
	}
	double *a = mw_alloc_array(n * width, sizeof(*a), "stationary vector", err);
	if (!a)
		return MW_ERESOURCE;
	fill_system(g, a);
	bool unique = eliminate(a, n);
	for (uint32_t i = 0; unique && i < n; i++)
		sum += pi[i] = fmax(0, a[i * width + n] / a[i * width + i]);
	for (uint32_t i = 0; unique && i < n; i++)
		pi[i] /= sum;
	mw_free(a);
	if (!unique)
		MW_FAIL(err, DATA,
			"graph %s: the matrix has several groups of workers that never hear of each other, "
			"so there is no one "
			"average that it keeps: make it connected, or let every column sum to 1",
			g->spec);
	return MW_OK;
}
