/* unit_comm_graph.c: mixing matrices of graphs against closed forms, and what bad files and sizes are told.
 */
#include "comm_util.h"

static void check_rows(const struct mw_graph *g, const struct mw_graph_matrix *w)
{
	double *column = calloc(g->n, sizeof(*column));
	for (uint32_t i = 0; i < g->n; i++) {
		double row = 0;
		for (uint64_t k = w->first[i]; k < w->first[i + 1]; k++) {
			assert_true(w->entry[k].weight > 0);
			assert_true(w->entry[k].to < g->n);
			assert_true(k == w->first[i] || w->entry[k - 1].to < w->entry[k].to);
			row += w->entry[k].weight;
			column[w->entry[k].to] += w->entry[k].weight;
		}
		assert_near(row, 1, 1e-14);
	}
	for (uint32_t i = 0; i < g->n; i++)
		assert_near(column[i], 1, 1e-13);
	free(column);
}

static void check_edges(const struct mw_graph *g, double *const *dense, bool ring)
{
	uint64_t links = 0;
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t j = i + 1; j < g->n; j++) {
			bool linked = false;
			for (uint32_t t = 0; t < g->period; t++)
				linked = linked || dense[t][i * g->n + j] != 0 || dense[t][j * g->n + i] != 0;
			links += linked;
		}
	assert_int_equal(links, g->n_edges);
	for (uint64_t e = 0; e < g->n_edges; e++) {
		assert_true(g->edge[e][0] < g->edge[e][1]);
		if (e && !ring)
			assert_true(
				g->edge[e - 1][0] < g->edge[e][0] ||
				(g->edge[e - 1][0] == g->edge[e][0] && g->edge[e - 1][1] < g->edge[e][1]));
	}
}

static void test_every_kind(void **state)
{
	(void)state;
	for (size_t c = 0; c < N_GRAPH_CASES; c++)
		for (uint32_t n = 1; n <= 17; n++) {
			if (!graph_case_allows(&graph_cases[c], n))
				continue;
			struct mw_graph *g = graph_of(graph_cases[c].spec, n);
			double *dense[8];
			assert_true(g->period <= 8);
			for (uint32_t t = 0; t < g->period; t++) {
				dense[t] = graph_dense(g, t);
				check_rows(g, &g->w[t]);
				for (uint32_t i = 0; graph_cases[c].symmetric && i < n; i++)
					for (uint32_t j = 0; j < i; j++)
						assert_near(dense[t][i * n + j], dense[t][j * n + i], 0);
			}
			assert_int_equal(g->n, n);
			assert_true(g->doubly_stochastic);
			assert_true(g->connected);
			check_edges(g, dense, !strcmp(g->spec, "ring"));
			if (n == 1)
				assert_near(dense[0][0], 1, 0);
			for (uint32_t t = 0; t < g->period; t++)
				free(dense[t]);
			mw_graph_free(g);
		}
}

static void check_matrix(const char *spec, uint32_t n, const double *want)
{
	struct mw_graph *g = graph_of(spec, n);
	double *w = graph_dense(g, 0);
	for (uint32_t k = 0; k < n * n; k++)
		assert_near(w[k], want[k], 1e-15);
	free(w);
	mw_graph_free(g);
}

static void test_explicit(void **state)
{
	const double t = 1. / 3, h = .5;
	(void)state;
	check_matrix("ring", 2, (double[]){ t, 2 * t, 2 * t, t });
	check_matrix("ring", 3, (double[]){ t, t, t, t, t, t, t, t, t });
	check_matrix("ring", 4, (double[]){ t, t, 0, t, t, t, t, 0, 0, t, t, t, t, 0, t, t });
	check_matrix("torus", 2, (double[]){ .6, .4, .4, .6 });
	check_matrix("torus", 3, (double[]){ .6, .2, .2, .2, .6, .2, .2, .2, .6 });
	check_matrix(
		"torus:2x2", 4, (double[]){ .2, .4, .4, 0, .4, .2, 0, .4, .4, 0, .2, .4, 0, .4, .4, .2 });
	check_matrix("hypercube", 4, (double[]){ t, t, t, 0, t, t, 0, t, t, 0, t, t, 0, t, t, t });
	check_matrix("star", 3, (double[]){ t, t, t, t, 2 * t, 0, t, 0, 2 * t });
	check_matrix("exponential", 3, (double[]){ t, t, t, t, t, t, t, t, t });
	check_matrix("exponential", 4, (double[]){ t, t, t, 0, 0, t, t, t, t, 0, t, t, t, t, 0, t });
	check_matrix("onepeer-exp", 3, (double[]){ h, h, 0, 0, h, h, h, 0, h });
	check_matrix("onepeer-cube", 2, (double[]){ h, h, h, h });
}

static void test_properties(void **state)
{
	static const struct {
		const char *spec, *full;
		uint32_t n;
		bool circulant;
		uint32_t period;
		uint64_t edges;
	} cases[] = {
		{ "ring", "ring", 8, true, 1, 8 },
		{ "ring", "ring", 2, true, 1, 1 },
		{ "torus", "torus:2x4", 8, false, 1, 12 },
		{ "torus", "torus:1x7", 7, true, 1, 7 },
		{ "torus", "torus:3x5", 15, false, 1, 30 },
		{ "hypercube", "hypercube", 8, false, 1, 12 },
		{ "complete", "complete", 5, true, 1, 10 },
		{ "star", "star", 5, false, 1, 4 },
		{ "exponential", "exponential", 8, true, 1, 20 },
		{ "onepeer-exp", "onepeer-exp", 6, true, 3, 12 },
		{ "onepeer-cube", "onepeer-cube", 16, false, 4, 32 },
		{ "regular:4", "regular:4,seed=1", 9, false, 1, 18 },
	};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct mw_graph *g = graph_of(cases[c].spec, cases[c].n);
		assert_string_equal(g->spec, cases[c].full);
		assert_int_equal(g->circulant, cases[c].circulant);
		assert_int_equal(g->period, cases[c].period);
		assert_int_equal(g->n_edges, cases[c].edges);
		mw_graph_free(g);
	}
	struct mw_graph *ring = graph_of("ring", 5);
	for (uint32_t e = 0; e < 4; e++) {
		assert_int_equal(ring->edge[e][0], e);
		assert_int_equal(ring->edge[e][1], e + 1);
	}
	assert_int_equal(ring->edge[4][0], 0);
	assert_int_equal(ring->edge[4][1], 4);
	mw_graph_free(ring);
}

/* theory.md section 8: lambda2 of symmetric W, as given there. */
static void test_lambda2(void **state)
{
	static const struct {
		const char *spec;
		uint32_t n;
		double lambda2;
	} cases[] = {
		{ "ring", 4, .333333333333 },
		{ "ring", 5, .539344662917 },
		{ "ring", 8, .804737854124 },
		{ "ring", 16, .949253021674 },
		{ "ring", 32, .987190186935 },
		{ "ring", 64, .996789817781 },
		{ "torus:4x4", 16, .6 },
		{ "torus", 64, .882842712475 },
		{ "hypercube", 4, 1. / 3 },
		{ "hypercube", 8, .5 },
		{ "hypercube", 16, .6 },
		{ "hypercube", 64, 5. / 7 },
	};
	double value[64];
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct mw_graph *g = graph_of(cases[c].spec, cases[c].n);
		double *w = graph_dense(g, 0);
		eigenvalues(w, g->n, value);
		assert_near(value[0], 1, 1e-12);
		assert_near(value[1], cases[c].lambda2, 1e-12);
		free(w);
		mw_graph_free(g);
	}
}

/* The exponential graph is normal: its second eigenvalue modulus is the root of W W^T's second eigenvalue. */
static void test_exponential_rho(void **state)
{
	(void)state;
	for (uint32_t m = 2; m <= 6; m++) {
		uint32_t n = 1u << m;
		double value[64], *wt = malloc(n * n * sizeof(*wt)), *p = malloc(n * n * sizeof(*p));
		struct mw_graph *g = graph_of("exponential", n);
		double *w = graph_dense(g, 0);
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < n; j++)
				wt[i * n + j] = w[j * n + i];
		multiply(w, wt, p, n);
		eigenvalues(p, n, value);
		assert_near(sqrt(value[1]), (m - 1.) / (m + 1.), 1e-12);
		free(w);
		free(wt);
		free(p);
		mw_graph_free(g);
	}
}

/* theory.md section 8: lambda2(E W) of AsyncDR, W the average over a uniformly random edge. */
static void test_random_edge(void **state)
{
	static const double want[][2] = { { 4, .75 }, { 8, .963388347648 }, { 16, .995242470782 } };
	(void)state;
	for (int c = 0; c < 3; c++) {
		uint32_t n = (uint32_t)want[c][0];
		struct mw_graph *g = graph_of("ring", n);
		double value[16], *w = calloc(n * n, sizeof(*w));
		for (uint32_t i = 0; i < n; i++)
			w[i * n + i] = 1;
		for (uint64_t e = 0; e < g->n_edges; e++) {
			uint32_t i = g->edge[e][0], j = g->edge[e][1];
			double p = .5 / (double)g->n_edges;
			w[i * n + i] -= p;
			w[j * n + j] -= p;
			w[i * n + j] += p;
			w[j * n + i] += p;
		}
		eigenvalues(w, n, value);
		assert_near(value[1], want[c][1], 1e-12);
		free(w);
		mw_graph_free(g);
	}
}

static void test_one_peer_averages_exactly(void **state)
{
	static const char *const spec[] = { "onepeer-exp", "onepeer-cube" };
	(void)state;
	for (int s = 0; s < 2; s++)
		for (uint32_t n = 2; n <= 32; n *= 2) {
			struct mw_graph *g = graph_of(spec[s], n);
			double *product = graph_dense(g, 0), *next = malloc(n * n * sizeof(*next));
			for (uint32_t t = 1; t < g->period; t++) {
				double *w = graph_dense(g, t);
				multiply(w, product, next, n);
				memcpy(product, next, n * n * sizeof(*next));
				free(w);
			}
			for (uint32_t k = 0; k < n * n; k++)
				assert_near(product[k], 1. / n, 0);
			free(product);
			free(next);
			mw_graph_free(g);
		}
}

static void test_regular(void **state)
{
	(void)state;
	struct mw_graph *a = graph_of("regular:4,seed=1", 50), *b = graph_of("regular:4,seed=1", 50);
	struct mw_graph *other = graph_of("regular:4,seed=2", 50), *pairs = graph_of("regular:1", 6);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(a->w[0].first[i + 1] - a->w[0].first[i], 5);
	assert_int_equal(a->n_edges, 100);
	assert_memory_equal(a->edge, b->edge, 100 * sizeof(*a->edge));
	assert_memory_not_equal(a->edge, other->edge, 100 * sizeof(*a->edge));
	assert_false(pairs->connected);
	for (uint32_t seed = 1; seed <= 20;
		seed++) { /* two-regular graphs that are connected are one cycle */
		char spec[40];
		snprintf(spec, sizeof(spec), "regular:2,seed=%u", seed);
		struct mw_graph *g = graph_of(spec, 12);
		assert_true(g->connected);
		mw_graph_free(g);
	}
	mw_graph_free(a);
	mw_graph_free(b);
	mw_graph_free(other);
	mw_graph_free(pairs);
}

static void check_error(const char *spec, uint32_t n, int code, const char *part)
{
	struct mw_err err = { 0 };
	struct mw_graph *g;
	assert_int_equal(mw_graph_new(spec, n, &g, &err), code);
	assert_null(g);
	assert_int_equal(err.code, code);
	if (!strstr(err.msg, part))
		fail_msg("\"%s\" lacks \"%s\"", err.msg, part);
}

static void test_usage_errors(void **state)
{
	(void)state;
	check_error("hypercube", 6, MW_EUSAGE, "use --workers 4 or 8");
	check_error("onepeer-cube", 9, MW_EUSAGE, "use --workers 8 or 16");
	check_error("regular:3", 7, MW_EUSAGE, "use --workers 6 or 8");
	check_error("regular:3", 3, MW_EUSAGE, "at least 4 workers");
	check_error("regular:4", 4, MW_EUSAGE, "at least 5 workers");
	check_error("regular:0", 4, MW_EUSAGE, "at least 1");
	check_error("regular:2,sed=1", 4, MW_EUSAGE, "regular:D[,seed=S]");
	check_error("regular", 4, MW_EUSAGE, "regular:D[,seed=S]");
	check_error("torus:3x4", 8, MW_EUSAGE, "use --workers 12 or torus:2x4");
	check_error("torus:3", 9, MW_EUSAGE, "torus:3x3");
	check_error("torus:3x0", 9, MW_EUSAGE, "torus:3x3");
	check_error("torus:3x3x1", 9, MW_EUSAGE, "torus:3x3");
	check_error("ring:3", 4, MW_EUSAGE, "write it as ring");
	check_error("rign", 4, MW_EUSAGE, "did you mean \"ring\"?");
	check_error("", 4, MW_EUSAGE, "unknown graph");
	check_error("ring", 0, MW_EUSAGE, "at least one worker");
	check_error("edges:/nonexistent/x", 4, MW_EDATA, "/nonexistent/x: can't open");
	check_error("matrix:/nonexistent/x", 4, MW_EDATA, "/nonexistent/x: can't open");
}

#define COORDINATE "%%MatrixMarket matrix coordinate real general\n"

static void test_file_errors(void **state)
{
	static const struct {
		const char *kind, *text;
		uint32_t n;
		int code;
		const char *part;
	} cases[] = {
		{ "edges", "0 1\n1 x\n", 2, MW_EDATA, ":2:3: expected the edge's second worker" },
		{ "edges", "0 1\n\n# note\n1\n", 2, MW_EDATA, ":4:3: expected the edge's second worker" },
		{ "edges", "0 1 2\n", 3, MW_EDATA, ":1:5: unexpected text" },
		{ "edges", "0 -1\n", 3, MW_EDATA, ":1:3: expected" },
		{ "edges", "0 1.5\n", 3, MW_EDATA, ":1:3: the edge's second worker must be a whole number" },
		{ "edges", "2 2\n", 3, MW_EDATA, "an edge from worker 2 to itself" },
		{ "edges", "0 1\n1 4\n", 4, MW_EUSAGE, "use --workers 5" },
		{ "edges", "0 1\n", 4, MW_EUSAGE, "use --workers 2" },
		{ "matrix", "", 2, MW_EDATA, "the file is empty" },
		{ "matrix", "0.5 0.5\n", 2, MW_EDATA, ":1:1: expected \"%%MatrixMarket\"" },
		{ "matrix", "%%MatrixMarket matrix sparse real general\n", 2, MW_EDATA,
			":1:23: expected \"coordinate\" or \"array\"" },
		{ "matrix", "%%MatrixMarket matrix array complex general\n", 2, MW_EDATA,
			":1:29: expected \"real\"" },
		{ "matrix", COORDINATE, 2, MW_EDATA, "size is missing" },
		{ "matrix", COORDINATE "2 3 1\n1 1 1\n", 2, MW_EDATA, "must be square" },
		{ "matrix", COORDINATE "3 3 1\n1 1 1\n", 2, MW_EUSAGE, "use --workers 3" },
		{ "matrix", COORDINATE "2 2 2\n1 1 1\n2 3 1\n", 2, MW_EDATA,
			":4:4: column 3 is not in 1..2" },
		{ "matrix", COORDINATE "2 2 2\n0 1 1\n2 2 1\n", 2, MW_EDATA, ":3:2: row 0 is not in 1..2" },
		{ "matrix", COORDINATE "2 2 2\n1 1 1\n2 2 one\n", 2, MW_EDATA, ":4:5: expected a weight" },
		{ "matrix", COORDINATE "2 2 2\n1 1 1\n2 2 nan\n", 2, MW_EDATA, ":4:5: expected a weight" },
		{ "matrix", COORDINATE "2 2 3\n1 1 1\n2 1 -.5\n2 2 1.5\n", 2, MW_EDATA,
			":4:5: weight -0.5 is negative" },
		{ "matrix", COORDINATE "2 2 3\n1 1 1\n2 2 1\n", 2, MW_EDATA, "ends after 2 of 3 entries" },
		{ "matrix", COORDINATE "2 2 2\n1 1 1\n2 2 1\n2 1 0\n", 2, MW_EDATA, ":5:1: more entries" },
		{ "matrix", COORDINATE "2 2 3\n1 1 1\n2 2 .5\n2 2 .5\n", 2, MW_EDATA,
			"entry (2, 2) is given twice" },
		{ "matrix", COORDINATE "2 2 3\n1 1 0.999\n2 1 .5\n2 2 .4\n", 2, MW_EDATA,
			"row 2 (counted from 1) sums to 0.9:" },
		{ "matrix", COORDINATE "2 2 2\n1 1 1\n2 2 1.00001\n", 2, MW_EDATA, "row 2" },
		{ "matrix", "%%MatrixMarket matrix array real general\n2 2\n.5\n.5\n.5\n", 2, MW_EDATA,
			"ends after 3 of 4 entries" },
		{ "matrix", "%%MatrixMarket matrix array real general\n2 2\n.5\n.5\n.5\n.5 1\n", 2, MW_EDATA,
			":6:4: unexpected text" },
	};
	char path[64], spec[100];
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		write_temporary(path, cases[c].text);
		snprintf(spec, sizeof(spec), "%s:%s", cases[c].kind, path);
		check_error(spec, cases[c].n, cases[c].code, cases[c].part);
		unlink(path);
	}
}

static struct mw_graph *graph_from(const char *kind, const char *text, uint32_t n)
{
	char path[64], spec[100];
	write_temporary(path, text);
	snprintf(spec, sizeof(spec), "%s:%s", kind, path);
	struct mw_graph *g = graph_of(spec, n);
	unlink(path);
	return g;
}

static void check_file(
	const char *kind, const char *text, uint32_t n, const double *want, bool doubly, bool connected)
{
	struct mw_graph *g = graph_from(kind, text, n);
	double *w = graph_dense(g, 0);
	for (uint32_t k = 0; k < n * n; k++)
		assert_near(w[k], want[k], 1e-15);
	assert_int_equal(g->doubly_stochastic, doubly);
	assert_int_equal(g->connected, connected);
	free(w);
	mw_graph_free(g);
}

static void test_files(void **state)
{
	const double t = 1. / 3, path3[] = { 2 * t, t, 0, t, t, t, 0, t, 2 * t };
	(void)state;
	check_file("edges", "# a path, one edge twice\n0 1\n2,1\r\n\n1 0\n", 3, path3, true, true);
	check_file("edges", "0 1\n2 3\n", 4,
		(double[]){ .5, .5, 0, 0, .5, .5, 0, 0, 0, 0, .5, .5, 0, 0, .5, .5 }, true, false);
	check_file("edges", "", 1, (double[]){ 1 }, true, true);
	check_file("matrix", COORDINATE "% note\n3 3 5\n1 2 .25\n1 1 .75\n2 2 1\n3 3 .5\n3 1 .5\n", 3,
		(double[]){ .75, .25, 0, 0, 1, 0, .5, 0, .5 }, false, true);
	check_file("matrix",
		"%%MatrixMarket MATRIX coordinate real symmetric\n2 2 3\n1 1 .75\n2 1 .25\n2 2 .75\n", 2,
		(double[]){ .75, .25, .25, .75 }, true, true);
	check_file("matrix", "%%MatrixMarket matrix array double general\n2 2\n.9\n.2\n.1 .8\n", 2,
		(double[]){ .9, .1, .2, .8 }, false, true);
	check_file("matrix", "%%MatrixMarket matrix array real symmetric\n2 2\n.75\n.25\n.75\n", 2,
		(double[]){ .75, .25, .25, .75 }, true, true);
	check_file("matrix", "%%MatrixMarket matrix array integer general\n2 2\n0\n1\n1\n0\n", 2,
		(double[]){ 0, 1, 1, 0 }, true, true);
	/* What is missing to 1 goes to the diagonal, or over the row where there is none. */
	check_file("matrix", COORDINATE "2 2 4\n1 1 .5\n1 2 .4999999\n2 1 .4999999\n2 2 .5\n", 2,
		(double[]){ .5000001, .4999999, .4999999, .5000001 }, true, true);
	check_file(
		"matrix", COORDINATE "2 2 2\n1 2 .9999999\n2 1 1\n", 2, (double[]){ 0, 1, 1, 0 }, true, true);
}

/* theory.md section 8: the chain with pi = (.6, .3, .1). */
static void test_stationary(void **state)
{
	struct mw_err err = { 0 };
	double pi[4];
	(void)state;
	struct mw_graph *g = graph_from(
		"matrix", "%%MatrixMarket matrix array real general\n3 3\n.9 .2 0\n.1 .7 .3\n0 .1 .7\n", 3);
	assert_int_equal(mw_graph_stationary(g, pi, &err), MW_OK);
	assert_near(pi[0], .6, 1e-14);
	assert_near(pi[1], .3, 1e-14);
	assert_near(pi[2], .1, 1e-14);
	mw_graph_free(g);
	g = graph_from(
		"matrix", COORDINATE "3 3 4\n1 1 1\n2 1 .5\n2 3 .5\n3 1 1\n", 3); /* all ends at worker 0 */
	assert_int_equal(mw_graph_stationary(g, pi, &err), MW_OK);
	assert_near(pi[0], 1, 1e-14);
	assert_near(pi[1], 0, 1e-14);
	mw_graph_free(g);
	g = graph_from(
		"matrix", COORDINATE "3 3 4\n1 1 1\n2 2 1\n3 1 .5\n3 2 .5\n", 3); /* two closed classes */
	assert_int_equal(mw_graph_stationary(g, pi, &err), MW_EDATA);
	assert_non_null(strstr(err.msg, "no one average"));
	mw_graph_free(g);
	g = graph_of("ring", 4);
	assert_int_equal(mw_graph_stationary(g, pi, NULL), MW_OK);
	assert_near(pi[3], .25, 0);
	mw_graph_free(g);
	mw_graph_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind),
		cmocka_unit_test(test_explicit),
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_lambda2),
		cmocka_unit_test(test_exponential_rho),
		cmocka_unit_test(test_random_edge),
		cmocka_unit_test(test_one_peer_averages_exactly),
		cmocka_unit_test(test_regular),
		cmocka_unit_test(test_usage_errors),
		cmocka_unit_test(test_file_errors),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_stationary),
	};
	return cmocka_run_group_tests_name("graphs", tests, NULL, NULL);
}
