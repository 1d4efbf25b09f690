/*
 * graph.h: who talks to whom, and with what weights: doubly stochastic mixing matrices in sparse rows.
 *
 * Weights: ring 1/3 on self and both neighbours (n = 2: 1/3, 2/3 on the double edge); torus 1/5; hypercube and static
 * exponential 1/(m+1), m = ceil(log2 n); one-peer: 1/2 and a period of m matrices; complete 1/n; star, random regular, edge lists:
 * Metropolis-Hastings (1 / (1 + max degree of both ends)).
 *
 * Links that fall together add up: a torus of 1 x n (what "torus" gives for prime n) is a ring with 3/5 on self and 1/5
 * on both neighbours. One worker gets the matrix [1] from every kind that is not a file.
 */
#ifndef MW_COMM_GRAPH_H
#define MW_COMM_GRAPH_H

#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"

struct mw_graph_entry {
	uint32_t to;
	double weight;
};

/* One sparse matrix: row i has entry[first[i] .. first[i+1]), the diagonal included, `to` increasing. */
struct mw_graph_matrix {
	uint64_t *first;
	struct mw_graph_entry *entry;
};

struct mw_graph {
	char *spec; /* with its defaults filled in: "torus" for 8 workers becomes "torus:2x4" */
	uint32_t n;
	uint32_t period; /* matrices that follow each other in turn; 1 unless one-peer */
	struct mw_graph_matrix *w;
	uint32_t (*edge)
		[2]; /* undirected edges i < j of the union graph, lexicographic (ring: i, i+1 in cyclic order) */
	uint64_t n_edges;
	bool circulant;         /* every matrix: the weight from i to j depends on (j - i) mod n only */
	bool doubly_stochastic; /* columns sum to 1 within 1e-6 too (file matrices may not) */
	bool connected;         /* the union graph, without directions */
};

/*
 * "ring" "torus" "torus:AxB" "hypercube" "complete" "star" "exponential" "onepeer-exp" "onepeer-cube"
 * "regular:D[,seed=S]" (D >= 2: drawn until connected) "edges:FILE" (two 0-based numbers a line, '#' comments)
 * "matrix:FILE" (Matrix Market, coordinate or array, general or symmetric; rows must sum to 1 within 1e-6, and what is
 * missing to 1 is put on the diagonal).
 * n is the number of workers; a graph that needs another n (hypercube: power of 2) or a file of another size is a USAGE
 * error that names the sizes that do. File errors name line and column.
 */
int mw_graph_new(const char *spec, uint32_t n, struct mw_graph **out, struct mw_err *err);
void mw_graph_free(struct mw_graph *g);
/*
 * The stationary vector of the graph: 1/n if doubly stochastic, else the pi with pi^T W = pi^T by elimination, O(n^3). A
 * matrix with several closed classes has no single one: a DATA error.
 */
int mw_graph_stationary(const struct mw_graph *g, double *pi, struct mw_err *err);
/* Names and one-line summaries of the kinds, for `mixwild list graphs`: NULL-terminated pairs. */
extern const char *const mw_graph_kinds[][2];

#endif
