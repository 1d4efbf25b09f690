/* comm_util.h: small dense matrices and temporary files for the tests of graphs and plans. */
#ifndef MW_TESTS_COMM_UTIL_H
#define MW_TESTS_COMM_UTIL_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/graph.h"

/* Every rule-made graph; those that need a power of two are marked. */
static const struct graph_case {
	const char *spec;
	bool power_of_2, symmetric;
	uint32_t degree; /* regular: n * degree must be even and n > degree (or 1) */
} graph_cases[] = {
	{ "ring", false, true, 0 },
	{ "torus", false, true, 0 },
	{ "hypercube", true, true, 0 },
	{ "complete", false, true, 0 },
	{ "star", false, true, 0 },
	{ "exponential", false, false, 0 },
	{ "onepeer-exp", false, false, 0 },
	{ "onepeer-cube", true, true, 0 },
	{ "regular:2", false, true, 2 },
	{ "regular:3,seed=7", false, true, 3 },
};
#define N_GRAPH_CASES (sizeof(graph_cases) / sizeof(graph_cases[0]))

static inline bool graph_case_allows(const struct graph_case *c, uint32_t n)
{
	if (c->power_of_2)
		return (n & (n - 1)) == 0;
	return !c->degree || n == 1 || (n > c->degree && n * c->degree % 2 == 0);
}

static inline struct mw_graph *graph_of(const char *spec, uint32_t n)
{
	struct mw_err err = { 0 };
	struct mw_graph *g;
	if (mw_graph_new(spec, n, &g, &err) != MW_OK)
		fail_msg("%s, n = %u: %s", spec, n, err.msg);
	return g;
}

static inline double *graph_dense(const struct mw_graph *g, uint32_t t)
{
	double *w = calloc((size_t)g->n * g->n, sizeof(*w));
	for (uint32_t i = 0; i < g->n; i++)
		for (uint64_t k = g->w[t].first[i]; k < g->w[t].first[i + 1]; k++)
			w[(size_t)i * g->n + g->w[t].entry[k].to] = g->w[t].entry[k].weight;
	return w;
}

/* c := a b, all n x n */
static inline void multiply(const double *a, const double *b, double *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++) {
			double s = 0;
			for (uint32_t k = 0; k < n; k++)
				s += a[(size_t)i * n + k] * b[(size_t)k * n + j];
			c[(size_t)i * n + j] = s;
		}
}

/* One Jacobi rotation that makes a[p][q] zero. */
static inline void rotate(double *a, uint32_t n, uint32_t p, uint32_t q)
{
	double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
	double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
	double c = 1 / sqrt(t * t + 1), s = t * c;
	for (uint32_t k = 0; k < n; k++) {
		double x = a[k * n + p], y = a[k * n + q];
		a[k * n + p] = c * x - s * y;
		a[k * n + q] = s * x + c * y;
	}
	for (uint32_t k = 0; k < n; k++) {
		double x = a[p * n + k], y = a[q * n + k];
		a[p * n + k] = c * x - s * y;
		a[q * n + k] = s * x + c * y;
	}
}

static inline int descending(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;
	return a > b ? -1 : a < b;
}

/* Eigenvalues of a symmetric matrix, largest first, by cyclic Jacobi; a is destroyed. */
static inline void eigenvalues(double *a, uint32_t n, double *value)
{
	for (int sweep = 0; sweep < 60; sweep++)
		for (uint32_t p = 0; p < n; p++)
			for (uint32_t q = p + 1; q < n; q++)
				if (fabs(a[p * n + q]) > 1e-17)
					rotate(a, n, p, q);
	for (uint32_t i = 0; i < n; i++)
		value[i] = a[i * n + i];
	qsort(value, n, sizeof(*value), descending);
}

/* A new temporary file with this text; path has room for 64 bytes. */
static inline void write_temporary(char *path, const char *text)
{
	strcpy(path, "/tmp/mixwild-test-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

#define assert_near(a, b, tolerance)                                   \
	do {                                                           \
		double a_ = (a), b_ = (b);                             \
		if (!(fabs(a_ - b_) <= (tolerance)))                   \
			fail_msg("%s = %.15g, not %.15g", #a, a_, b_); \
	} while (0)

#endif
