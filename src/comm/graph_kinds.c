/* graph_kinds.c: the graphs that are made by a rule; weights as in graph.h. */
#include "comm/graph_make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"
#include "base/rng.h"

/* ceil(log2 n) */
static uint32_t log2_up(uint32_t n)
{
	uint32_t m = 0;
	while (((uint64_t)1 << m) < n)
		m++;
	return m;
}

static int need_power_of_2(const char *kind, uint32_t n, struct mw_err *err)
{
	uint64_t above = (uint64_t)1 << log2_up(n);
	if (above != n)
		MW_FAIL(err, USAGE,
			"graph %s needs a power of two of workers, not %" PRIu32 ": use --workers %" PRIu64
			" or %" PRIu64,
			kind, n, above / 2, above);
	return MW_OK;
}

int mw_make_ring(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	uint32_t n = m->n;
	(void)args;
	m->cyclic_edge = true;
	for (uint32_t i = 0; i < n; i++) {
		MW_TRY(mw_make_link(m, 0, i, i, 1. / 3, err));
		MW_TRY(mw_make_link(m, 0, i, (i + 1) % n, 1. / 3, err));
		MW_TRY(mw_make_link(m, 0, i, (i + n - 1) % n, 1. / 3, err));
	}
	return MW_OK;
}

/* The shape a x b with a <= b that is nearest to a square. */
static uint32_t squarest(uint32_t n)
{
	uint32_t a = 1;
	for (uint32_t d = 1; (uint64_t)d * d <= n; d++)
		if (n % d == 0)
			a = d;
	return a;
}

static int torus_shape(const char *args, uint32_t n, uint32_t *a, uint32_t *b, struct mw_err *err)
{
	char after;
	*a = squarest(n);
	*b = n / *a;
	if (!args)
		return MW_OK;
	if (!strchr("123456789", *args) || sscanf(args, "%" SCNu32 "x%" SCNu32 "%c", a, b, &after) != 2 ||
		!*b)
		MW_FAIL(err, USAGE,
			"graph torus:%s: write the shape as AxB, for example torus:%" PRIu32 "x%" PRIu32,
			args, squarest(n), n / squarest(n));
	if ((uint64_t)*a * *b != n)
		MW_FAIL(err, USAGE,
			"graph torus:%s has %" PRIu64 " nodes, but there are %" PRIu32
			" workers: use --workers %" PRIu64 " or torus:%" PRIu32 "x%" PRIu32,
			args, (uint64_t)*a * *b, n, (uint64_t)*a * *b, squarest(n), n / squarest(n));
	return MW_OK;
}

int mw_make_torus(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	uint32_t a, b;
	MW_TRY(torus_shape(args, m->n, &a, &b, err));
	m->spec = mw_strprintf("torus:%" PRIu32 "x%" PRIu32, a, b);
	for (uint32_t r = 0; r < m->n; r++) {
		uint32_t i = r / b, j = r % b;
		uint32_t to[5] = { r, (i + 1) % a * b + j, (i + a - 1) % a * b + j, i * b + (j + 1) % b,
			i * b + (j + b - 1) % b };
		for (int k = 0; k < 5; k++)
			MW_TRY(mw_make_link(m, 0, r, to[k], 1. / 5, err));
	}
	return MW_OK;
}

int mw_make_hypercube(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	uint32_t dims = log2_up(m->n);
	(void)args;
	MW_TRY(need_power_of_2("hypercube", m->n, err));
	for (uint32_t i = 0; i < m->n; i++) {
		MW_TRY(mw_make_link(m, 0, i, i, 1. / (dims + 1), err));
		for (uint32_t b = 0; b < dims; b++)
			MW_TRY(mw_make_link(m, 0, i, i ^ (1u << b), 1. / (dims + 1), err));
	}
	return MW_OK;
}

int mw_make_complete(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	(void)args;
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t j = 0; j < m->n; j++)
			MW_TRY(mw_make_link(m, 0, i, j, 1. / m->n, err));
	return MW_OK;
}

int mw_make_metropolis(struct mw_graph_make *m, const struct mw_edge_list *l, struct mw_err *err)
{
	int rc = MW_OK;
	uint32_t *degree = mw_alloc_array(m->n, sizeof(*degree), "graph degrees", err);
	double *self = mw_alloc_array(m->n, sizeof(*self), "graph weights", err);
	if (!degree || !self)
		rc = MW_ERESOURCE;
	for (uint64_t e = 0; rc == MW_OK && e < l->n; e++) {
		degree[l->edge[e][0]]++;
		degree[l->edge[e][1]]++;
	}
	for (uint32_t i = 0; rc == MW_OK && i < m->n; i++)
		self[i] = 1;
	for (uint64_t e = 0; rc == MW_OK && e < l->n; e++) {
		uint32_t i = l->edge[e][0], j = l->edge[e][1];
		double w = 1. / (1 + (double)(degree[i] > degree[j] ? degree[i] : degree[j]));
		self[i] -= w;
		self[j] -= w;
		rc = mw_make_link(m, 0, i, j, w, err);
		if (rc == MW_OK)
			rc = mw_make_link(m, 0, j, i, w, err);
	}
	for (uint32_t i = 0; rc == MW_OK && i < m->n; i++)
		rc = mw_make_link(m, 0, i, i, self[i], err);
	mw_free(degree);
	mw_free(self);
	return rc;
}

int mw_make_star(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	struct mw_edge_list l = { 0 };
	int rc = MW_OK;
	(void)args;
	for (uint32_t i = 1; i < m->n && rc == MW_OK; i++)
		rc = mw_make_edge(&l, 0, i, err);
	if (rc == MW_OK)
		rc = mw_make_metropolis(m, &l, err);
	free(l.edge);
	return rc;
}

int mw_make_exponential(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	uint32_t hops = log2_up(m->n);
	(void)args;
	for (uint32_t i = 0; i < m->n; i++) {
		MW_TRY(mw_make_link(m, 0, i, i, 1. / (hops + 1), err));
		for (uint32_t b = 0; b < hops; b++)
			MW_TRY(mw_make_link(
				m, 0, i, (uint32_t)((i + ((uint64_t)1 << b)) % m->n), 1. / (hops + 1), err));
	}
	return MW_OK;
}

/* One hop a round: i + 2^b (mod n), or i with bit b flipped. */
static int one_peer(struct mw_graph_make *m, bool cube, struct mw_err *err)
{
	uint32_t hops = log2_up(m->n);
	m->period = hops ? hops : 1;
	for (uint32_t b = 0; b < m->period; b++)
		for (uint32_t i = 0; i < m->n; i++) {
			uint64_t hop = (uint64_t)1 << b;
			uint64_t to = m->n == 1 ? 0 : cube ? i ^ hop : (i + hop) % m->n;
			MW_TRY(mw_make_link(m, b, i, i, 1. / 2, err));
			MW_TRY(mw_make_link(m, b, i, (uint32_t)to, 1. / 2, err));
		}
	return MW_OK;
}

int mw_make_onepeer_exp(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	(void)args;
	return one_peer(m, false, err);
}

int mw_make_onepeer_cube(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	(void)args;
	MW_TRY(need_power_of_2("onepeer-cube", m->n, err));
	return one_peer(m, true, err);
}

static int regular_args(const char *args, uint32_t n, uint32_t *degree, int64_t *seed, struct mw_err *err)
{
	int64_t d;
	const char *comma = strchr(args, ',');
	char *text = strndup(args, comma ? (size_t)(comma - args) : strlen(args));
	if (!text)
		MW_FAIL(err, RESOURCE, "out of memory: graph");
	int rc = mw_parse_int(text, "graph regular:D", &d, err);
	free(text);
	MW_TRY(rc);
	*seed = 1;
	if (comma && strncmp(comma, ",seed=", 6))
		MW_FAIL(err, USAGE, "graph regular:%s: write it as regular:D[,seed=S]", args);
	if (comma)
		MW_TRY(mw_parse_int(comma + 6, "graph regular: seed", seed, err));
	if (d < 1 || d > INT32_MAX)
		MW_FAIL(err, USAGE, "graph regular:%s: the degree must be at least 1", args);
	*degree = (uint32_t)d;
	if (n > 1 && d >= n)
		MW_FAIL(err, USAGE, "graph regular:%s needs at least %" PRId64 " workers, not %" PRIu32, args,
			d + 1 + (d + 1) * d % 2, n);
	if (n > 1 && n % 2 && d % 2) {
		if (n - 1 > d)
			MW_FAIL(err, USAGE,
				"graph regular:%s needs an even number of workers, not %" PRIu32
				": use --workers %" PRIu32 " or %" PRIu32,
				args, n, n - 1, n + 1);
		MW_FAIL(err, USAGE,
			"graph regular:%s needs an even number of workers, not %" PRIu32
			": use --workers %" PRIu32,
			args, n, n + 1);
	}
	return MW_OK;
}

/* Adjacency as one bit a pair. */
static bool adjacent(const uint8_t *bits, uint32_t n, uint32_t a, uint32_t b)
{
	uint64_t at = (uint64_t)a * n + b;
	return bits[at / 8] >> (at % 8) & 1;
}

static void flip_edge(uint8_t *bits, uint32_t n, uint32_t a, uint32_t b)
{
	uint64_t ab = (uint64_t)a * n + b, ba = (uint64_t)b * n + a;
	bits[ab / 8] ^= (uint8_t)(1u << (ab % 8));
	bits[ba / 8] ^= (uint8_t)(1u << (ba % 8));
}

/* Try `times` random switches of two edges, (a,b) (c,d) to (a,d) (c,b), which keep every degree. */
static void switch_edges(
	struct mw_edge_list *l, uint8_t *bits, uint32_t n, uint64_t times, struct mw_rng *rng)
{
	for (uint64_t t = 0; t < times; t++) {
		uint32_t *e = l->edge[mw_rng_below(rng, l->n)], *f = l->edge[mw_rng_below(rng, l->n)];
		uint32_t flip = (uint32_t)mw_rng_below(rng, 2), a = e[0], b = e[1], c = f[flip], d = f[!flip];
		if (a == c || a == d || b == c || b == d || adjacent(bits, n, a, d) ||
			adjacent(bits, n, c, b))
			continue;
		flip_edge(bits, n, a, b);
		flip_edge(bits, n, c, d);
		flip_edge(bits, n, a, d);
		flip_edge(bits, n, c, b);
		e[1] = d;
		f[0] = c;
		f[1] = b;
	}
}

/* The regular graph to start from: neighbours at distance 1 .. D/2, and opposite if D is odd. */
static int start_edges(struct mw_edge_list *l, uint8_t *bits, uint32_t n, uint32_t degree, struct mw_err *err)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t h = 1; h <= degree / 2; h++)
			MW_TRY(mw_make_edge(l, i, (i + h) % n, err));
	for (uint32_t i = 0; degree % 2 && i < n / 2; i++)
		MW_TRY(mw_make_edge(l, i, i + n / 2, err));
	for (uint64_t e = 0; e < l->n; e++)
		flip_edge(bits, n, l->edge[e][0], l->edge[e][1]);
	return MW_OK;
}

int mw_make_regular(struct mw_graph_make *m, const char *args, struct mw_err *err)
{
	uint32_t degree = 0;
	int64_t seed;
	struct mw_rng rng;
	struct mw_edge_list l = { 0 };
	MW_TRY(regular_args(args, m->n, &degree, &seed, err));
	m->spec = mw_strprintf("regular:%" PRIu32 ",seed=%" PRId64, degree, seed);
	if (m->n == 1)
		return mw_make_link(m, 0, 0, 0, 1, err);
	uint8_t *bits = mw_alloc(((size_t)m->n * m->n + 7) / 8, "graph adjacency", err);
	int rc = bits ? start_edges(&l, bits, m->n, degree, err) : MW_ERESOURCE;
	/* 20 tries an edge forget the start; a graph that fell apart (rare unless D is 2) is switched on. */
	bool connected = false;
	mw_rng_init(&rng, (uint64_t)seed, 0);
	for (int round = 0; rc == MW_OK && !connected && round < 1000; round++) {
		switch_edges(&l, bits, m->n, 20 * l.n, &rng);
		rc = mw_make_edges_connect((const uint32_t(*)[2])l.edge, l.n, m->n, &connected, err);
		connected = connected || degree == 1;
	}
	if (rc == MW_OK)
		rc = mw_make_metropolis(m, &l, err);
	free(l.edge);
	mw_free(bits);
	return rc;
}
