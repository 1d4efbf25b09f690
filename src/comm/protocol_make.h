/* protocol_make.h: what the setup functions of protocols are built from; not for others. */
#ifndef MW_COMM_PROTOCOL_MAKE_H
#define MW_COMM_PROTOCOL_MAKE_H

#include "comm/protocol.h"

/* Arrays for `rows` rows: every worker views and pushes to row 0, every row lives on node 0, pi is 0. */
int mw_make_rows(struct mw_protocol *p, uint32_t rows, struct mw_err *err);
/* Worker w views and pushes to row first + w * step, which lives beside it. */
void mw_make_own_rows(struct mw_protocol *p, uint32_t first, uint32_t step);
/* pi := 1/rows on every row. */
void mw_make_uniform_pi(struct mw_protocol *p);

int mw_make_slots(struct mw_protocol *p, uint32_t n_slots, struct mw_err *err);
/* Room for `capacity` plans in a slot's list. */
int mw_make_list(struct mw_protocol *p, uint32_t slot, uint32_t capacity, struct mw_err *err);
/* A plan that the protocol owns. */
int mw_make_plan(
	struct mw_protocol *p, uint32_t n_rows, uint32_t n_src, struct mw_plan **out, struct mw_err *err);
/* The next plan of a slot (in the room that mw_make_list made). */
void mw_make_append(struct mw_protocol *p, uint32_t slot, struct mw_plan *plan);
/* mw_make_list and mw_make_append for a slot with one plan. */
int mw_make_only(struct mw_protocol *p, uint32_t slot, struct mw_plan *plan, struct mw_err *err);

/* Plans: rows to .. to + n - 1 := row from; all rows := their mean; the triple of `merge` protocols. */
int mw_make_copies(struct mw_protocol *p, uint32_t from, uint32_t to, uint32_t n, struct mw_plan **out,
	struct mw_err *err);
int mw_make_mean(struct mw_protocol *p, struct mw_plan **out, struct mw_err *err);
int mw_make_triple(struct mw_protocol *p, uint32_t server, uint32_t copy, uint32_t base, struct mw_plan **out,
	struct mw_err *err);

/* server: row 0, worker w's copy: row 1 + w, viewed by it; pushes go to the server; pi = e_0. */
int mw_make_server(struct mw_protocol *p, struct mw_err *err);
/* The same, worker w refreshing its own copy in slot w. */
int mw_make_server_refresh(struct mw_protocol *p, struct mw_err *err);

/* Gossip on p->graph, for the presets too. */
int mw_make_sync_gossip(struct mw_protocol *p, struct mw_err *err);
struct mw_pair_options {
	int order; /* index into "auto|random|cyclic" */
};
extern const struct mw_option mw_pair_option_table[];
int mw_make_async_gossip(
	struct mw_protocol *p, const struct mw_pair_options *o, bool random_edges, struct mw_err *err);
/* A preset takes the graph that it stands for only. */
int mw_make_require_ring(const struct mw_protocol *p, const char *general, struct mw_err *err);

#endif
