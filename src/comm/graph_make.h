/* graph_make.h: what the files that build graphs share; not for others. */
#ifndef MW_COMM_GRAPH_MAKE_H
#define MW_COMM_GRAPH_MAKE_H

#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"

struct mw_graph_link {
	uint32_t matrix, row, to;
	double weight;
};

/* A graph in the making: links in any order; those of the same place are added up by mw_graph_new. */
struct mw_graph_make {
	uint32_t n, period;
	uint64_t n_links, capacity;
	struct mw_graph_link *link;
	char *spec;       /* malloc'ed: the spec with defaults filled in; NULL: as given */
	bool cyclic_edge; /* ring: edge (0, n-1) comes last */
};

/* Growable array of undirected edges. */
struct mw_edge_list {
	uint64_t n, capacity;
	uint32_t (*edge)[2];
};

int mw_make_link(struct mw_graph_make *m, uint32_t matrix, uint32_t row, uint32_t to, double weight,
	struct mw_err *err);
int mw_make_edge(struct mw_edge_list *l, uint32_t a, uint32_t b, struct mw_err *err);
/* Order: each edge i < j, lexicographic, once. */
void mw_make_edges_unique(struct mw_edge_list *l);
int mw_make_edges_connect(
	const uint32_t (*edge)[2], uint64_t n_edges, uint32_t n, bool *connected, struct mw_err *err);
/* Metropolis-Hastings weights for edges that are unique. */
int mw_make_metropolis(struct mw_graph_make *m, const struct mw_edge_list *l, struct mw_err *err);

/* The kinds: args is the text after "kind:", NULL if there is none. */
int mw_make_ring(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_torus(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_hypercube(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_complete(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_star(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_exponential(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_onepeer_exp(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_onepeer_cube(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_regular(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_edges_file(struct mw_graph_make *m, const char *args, struct mw_err *err);
int mw_make_matrix_file(struct mw_graph_make *m, const char *args, struct mw_err *err);

#endif
