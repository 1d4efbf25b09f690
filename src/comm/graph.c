/* graph.c: from a graph's spec to sparse mixing matrices, its edges and its properties; see graph.h. */
#include "comm/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"
#include "comm/graph_make.h"

enum args { ARGS_NONE, ARGS_OPTIONAL, ARGS_REQUIRED };

/* name, builder, arguments, syntax, summary */
#define KINDS(X)                                                                                            \
	X("ring", ring, NONE, "ring", "1/3 on self and on both neighbours")                                 \
	X("torus", torus, OPTIONAL, "torus[:AxB]",                                                          \
		"1/5 on self and on four neighbours; default: most square")                                 \
	X("hypercube", hypercube, NONE, "hypercube", "1/(m+1) on self and m neighbours, n = 2^m")           \
	X("complete", complete, NONE, "complete", "1/n on everyone")                                        \
	X("star", star, NONE, "star", "worker 0 is everyone's neighbour; Metropolis-Hastings weights")      \
	X("exponential", exponential, NONE, "exponential", "1/(m+1) on self and hops 1, 2, 4, ...")         \
	X("onepeer-exp", onepeer_exp, NONE, "onepeer-exp", "1/2 on self and one hop, 1, 2, 4, ... in turn") \
	X("onepeer-cube", onepeer_cube, NONE, "onepeer-cube", "averages along one hypercube axis in turn")  \
	X("regular", regular, REQUIRED, "regular:D[,seed=S]", "random graph, D neighbours each")            \
	X("edges", edges_file, REQUIRED, "edges:FILE", "edge list; Metropolis-Hastings weights")            \
	X("matrix", matrix_file, REQUIRED, "matrix:FILE", "a full mixing matrix in Matrix Market form")

static const struct kind {
	const char *name;
	int (*make)(struct mw_graph_make *m, const char *args, struct mw_err *err);
	enum args args;
	const char *syntax;
} kinds[] = {
#define X(name, fn, args, syntax, summary) { name, mw_make_##fn, ARGS_##args, syntax },
	KINDS(X)
#undef X
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const char *const mw_graph_kinds[][2] = {
#define X(name, fn, args, syntax, summary) { syntax, summary },
	KINDS(X)
#undef X
		{ NULL, NULL },
};

int mw_make_link(struct mw_graph_make *m, uint32_t matrix, uint32_t row, uint32_t to, double weight,
	struct mw_err *err)
{
	if (m->n_links == m->capacity) {
		uint64_t capacity = m->capacity ? m->capacity * 2 : 64;
		struct mw_graph_link *link = realloc(m->link, capacity * sizeof(*link));
		if (!link)
			MW_FAIL(err, RESOURCE, "out of memory: a graph with more than %llu links",
				(unsigned long long)m->n_links);
		m->link = link;
		m->capacity = capacity;
	}
	m->link[m->n_links++] = (struct mw_graph_link){ matrix, row, to, weight };
	return MW_OK;
}

int mw_make_edge(struct mw_edge_list *l, uint32_t a, uint32_t b, struct mw_err *err)
{
	if (l->n == l->capacity) {
		uint64_t capacity = l->capacity ? l->capacity * 2 : 64;
		void *edge = realloc(l->edge, capacity * sizeof(*l->edge));
		if (!edge)
			MW_FAIL(err, RESOURCE, "out of memory: a graph with more than %llu edges",
				(unsigned long long)l->n);
		l->edge = edge;
		l->capacity = capacity;
	}
	l->edge[l->n][0] = a < b ? a : b;
	l->edge[l->n++][1] = a < b ? b : a;
	return MW_OK;
}

static int compare_edges(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;
	if (a[0] != b[0])
		return a[0] < b[0] ? -1 : 1;
	return a[1] == b[1] ? 0 : a[1] < b[1] ? -1 : 1;
}

void mw_make_edges_unique(struct mw_edge_list *l)
{
	uint64_t kept = 0;
	if (!l->n)
		return;
	qsort(l->edge, l->n, sizeof(*l->edge), compare_edges);
	for (uint64_t e = 1; e < l->n; e++)
		if (compare_edges(l->edge[kept], l->edge[e])) {
			kept++;
			memmove(l->edge[kept], l->edge[e], sizeof(*l->edge));
		}
	l->n = kept + 1;
}

static uint32_t root_of(uint32_t *parent, uint32_t i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

int mw_make_edges_connect(
	const uint32_t (*edge)[2], uint64_t n_edges, uint32_t n, bool *connected, struct mw_err *err)
{
	uint32_t parts = n;
	uint32_t *parent = mw_alloc_array(n, sizeof(*parent), "graph components", err);
	if (!parent)
		return MW_ERESOURCE;
	for (uint32_t i = 0; i < n; i++)
		parent[i] = i;
	for (uint64_t e = 0; e < n_edges; e++) {
		uint32_t a = root_of(parent, edge[e][0]), b = root_of(parent, edge[e][1]);
		parts -= a != b;
		parent[a] = b;
	}
	mw_free(parent);
	*connected = parts == 1;
	return MW_OK;
}

static int compare_links(const void *pa, const void *pb)
{
	const struct mw_graph_link *a = pa, *b = pb;
	if (a->matrix != b->matrix)
		return a->matrix < b->matrix ? -1 : 1;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->to == b->to ? 0 : a->to < b->to ? -1 : 1;
}

/* Sort the links and add up those of the same place; zeros are dropped. */
static void merge_links(struct mw_graph_make *m)
{
	uint64_t kept = 0;
	qsort(m->link, m->n_links, sizeof(*m->link), compare_links);
	for (uint64_t k = 0; k < m->n_links;) {
		struct mw_graph_link sum = m->link[k];
		for (k++; k < m->n_links && !compare_links(&sum, &m->link[k]); k++)
			sum.weight += m->link[k].weight;
		if (sum.weight != 0)
			m->link[kept++] = sum;
	}
	m->n_links = kept;
}

/* Matrices from sorted links. */
static int fill_matrices(struct mw_graph *g, const struct mw_graph_make *m, struct mw_err *err)
{
	uint64_t k = 0;
	g->w = mw_alloc_array(g->period, sizeof(*g->w), "graph", err);
	if (!g->w)
		return MW_ERESOURCE;
	for (uint32_t t = 0; t < g->period; t++) {
		uint64_t from = k;
		while (k < m->n_links && m->link[k].matrix == t)
			k++;
		struct mw_graph_matrix *w = &g->w[t];
		w->first = mw_alloc_array((size_t)g->n + 1, sizeof(*w->first), "graph rows", err);
		w->entry = mw_alloc_array(k - from, sizeof(*w->entry), "graph weights", err);
		if (!w->first || !w->entry)
			return MW_ERESOURCE;
		for (uint64_t e = from; e < k; e++) {
			w->first[m->link[e].row + 1]++;
			w->entry[e - from] = (struct mw_graph_entry){ m->link[e].to, m->link[e].weight };
		}
		for (uint32_t i = 0; i < g->n; i++)
			w->first[i + 1] += w->first[i];
	}
	return MW_OK;
}

static int fill_edges(struct mw_graph *g, const struct mw_graph_make *m, struct mw_err *err)
{
	struct mw_edge_list l = { 0 };
	int rc = MW_OK;
	for (uint64_t k = 0; k < m->n_links && rc == MW_OK; k++)
		if (m->link[k].row != m->link[k].to)
			rc = mw_make_edge(&l, m->link[k].row, m->link[k].to, err);
	if (rc == MW_OK) {
		mw_make_edges_unique(&l);
		g->edge = mw_alloc_array(l.n, sizeof(*g->edge), "graph edges", err);
		rc = g->edge ? MW_OK : MW_ERESOURCE;
	}
	if (rc == MW_OK && l.n) {
		g->n_edges = l.n;
		memcpy(g->edge, l.edge, l.n * sizeof(*l.edge));
		if (m->cyclic_edge && g->n > 2) { /* (0, n-1) stands second */
			memmove(g->edge[1], g->edge[2], (l.n - 2) * sizeof(*l.edge));
			memcpy(g->edge[l.n - 1], l.edge[1], sizeof(*l.edge));
		}
	}
	free(l.edge);
	return rc;
}

/* Does row i hold row 0 shifted by i? Both are in order of `to`, so compare from the entry that wraps. */
static bool row_is_shift(const struct mw_graph_matrix *w, uint32_t n, uint32_t i)
{
	uint64_t len = w->first[1], at = w->first[i], wrap = 0;
	if (w->first[i + 1] - at != len)
		return false;
	while (wrap < len && w->entry[at + wrap].to < i)
		wrap++;
	for (uint64_t k = 0; k < len; k++) {
		const struct mw_graph_entry *a = &w->entry[k], *b = &w->entry[at + (wrap + k) % len];
		if ((a->to + (uint64_t)i) % n != b->to || fabs(a->weight - b->weight) > 1e-12)
			return false;
	}
	return true;
}

static int find_properties(struct mw_graph *g, struct mw_err *err)
{
	double *column = mw_alloc_array(g->n, sizeof(*column), "graph column sums", err);
	if (!column)
		return MW_ERESOURCE;
	g->circulant = g->doubly_stochastic = true;
	for (uint32_t t = 0; t < g->period; t++) {
		const struct mw_graph_matrix *w = &g->w[t];
		memset(column, 0, g->n * sizeof(*column));
		for (uint64_t k = 0; k < w->first[g->n]; k++)
			column[w->entry[k].to] += w->entry[k].weight;
		for (uint32_t i = 0; i < g->n; i++) {
			g->doubly_stochastic = g->doubly_stochastic && fabs(column[i] - 1) <= 1e-6;
			g->circulant = g->circulant && row_is_shift(w, g->n, i);
		}
	}
	mw_free(column);
	return mw_make_edges_connect((const uint32_t(*)[2])g->edge, g->n_edges, g->n, &g->connected, err);
}

static const struct kind *find_kind(const char *spec, const char **args, struct mw_err *err)
{
	const char *names[N_KINDS], *colon = strchr(spec, ':');
	size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
	const struct kind *found = NULL;
	for (size_t i = 0; i < N_KINDS; i++) {
		names[i] = kinds[i].name;
		if (strlen(names[i]) == len && !memcmp(names[i], spec, len))
			found = &kinds[i];
	}
	*args = colon ? colon + 1 : NULL;
	if (!found) {
		char *name = strndup(spec, len);
		const char *near = name ? mw_nearest(name, names, N_KINDS) : NULL;
		mw_err_set(err, MW_EUSAGE, "unknown graph \"%.*s\"%s%s%s; `mixwild list graphs` names all",
			(int)len, spec, near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
		free(name);
	} else if (!colon != (found->args == ARGS_NONE) && found->args != ARGS_OPTIONAL) {
		mw_err_set(err, MW_EUSAGE, "graph \"%s\": write it as %s", spec, found->syntax);
		return NULL;
	}
	return found;
}

static int finish(struct mw_graph *g, struct mw_graph_make *m, const char *spec, struct mw_err *err)
{
	g->spec = mw_strdup(m->spec ? m->spec : spec);
	if (!g->spec)
		MW_FAIL(err, RESOURCE, "out of memory: graph name");
	g->n = m->n;
	g->period = m->period;
	merge_links(m);
	MW_TRY(fill_matrices(g, m, err));
	MW_TRY(fill_edges(g, m, err));
	return find_properties(g, err);
}

int mw_graph_new(const char *spec, uint32_t n, struct mw_graph **out, struct mw_err *err)
{
	const char *args;
	struct mw_graph_make m = { .n = n, .period = 1 };
	*out = NULL;
	if (!n)
		MW_FAIL(err, USAGE, "graph %s: at least one worker is needed", spec);
	const struct kind *kind = find_kind(spec, &args, err);
	if (!kind)
		return MW_EUSAGE;
	struct mw_graph *g = mw_alloc(sizeof(*g), "graph", err);
	int rc = g ? kind->make(&m, args, err) : MW_ERESOURCE;
	if (rc == MW_OK)
		rc = finish(g, &m, spec, err);
	free(m.link);
	free(m.spec);
	if (rc == MW_OK)
		*out = g;
	else
		mw_graph_free(g);
	return rc;
}

void mw_graph_free(struct mw_graph *g)
{
	if (!g)
		return;
	for (uint32_t t = 0; g->w && t < g->period; t++) {
		mw_free(g->w[t].first);
		mw_free(g->w[t].entry);
	}
	mw_free(g->w);
	mw_free(g->edge);
	free(g->spec);
	mw_free(g);
}
