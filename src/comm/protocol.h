/*
 * protocol.h: every protocol is replicas + wiring + plans. A protocol file has one setup function that says how many
 * replicas there are, which one each worker views and pushes to, and which plans there are; all of it is data that the
 * engines, the executor and the exact mixing time read. No protocol touches parameters by itself.
 */
#ifndef MW_COMM_PROTOCOL_H
#define MW_COMM_PROTOCOL_H

#include "base/option.h"
#include "comm/graph.h"
#include "comm/plan.h"

#define MW_NO_ROW UINT32_MAX

/* What one native step is. */
enum mw_clock {
	MW_CLOCK_EVENT, /* one completed push; each worker mixes by its own steps */
	MW_CLOCK_ROUND, /* all workers push, then one plan for all, under a barrier */
};

/* How the k-th mix of a slot picks among the plans of its slot. */
enum mw_pick { MW_PICK_CYCLIC, MW_PICK_RANDOM };

/* When a worker's mix is due, besides --mix-every. */
enum mw_due {
	MW_DUE_ALWAYS,
	MW_DUE_SSP,   /* only when the view's guaranteed clock is below own clock - bound */
	MW_DUE_TOKEN, /* only by the group that holds the token, which then passes on */
};

enum mw_activation { MW_ACT_RR, MW_ACT_RANDOM, MW_ACT_FREE };

struct mw_plan_list {
	uint32_t n;
	struct mw_plan **plan;
};

struct mw_protocol {
	const struct mw_protocol_ops *ops;
	uint32_t workers, rows;
	uint32_t *view_row, *push_row; /* per worker */
	uint32_t *push2_row;           /* a second row that gets the same delta (ssp: own copy), or NULL */
	uint32_t *row_worker;          /* per row: the worker beside whose node it lives; MW_NO_ROW: node 0 */
	double push_weight;            /* the delta is multiplied by it */
	double *pi; /* per row: left fixed vector of all plans; signed plans: may have signs */
	/*
	 * Per row: the one worker that ever touches it, so that it needs no atomics or locks whatever --access says;
	 * MW_NO_ROW: several do, or none. View, push and own plans count; under a barrier plans do not.
	 */
	uint32_t *row_owner;
	enum mw_clock clock;

	/*
	 * Plans: EVENT: slot w is worker w's list; ROUND: slot 0 only, never empty. n_slots 0: nothing to mix (knobs are
	 * refused). An EVENT list may be empty (n = 0): that worker never mixes (numa: all but a node's leader, which
	 * mixes for all; gossip: a worker without neighbours).
	 */
	uint32_t n_slots;
	struct mw_plan_list *slot;
	struct mw_plan **all; /* every plan once, owned; lists of several slots may share one */
	uint32_t n_all, all_capacity;
	enum mw_pick pick;
	enum mw_due due;
	uint32_t groups;   /* TOKEN: number of groups; worker w is in group w % groups */
	int64_t mix_every; /* the protocol's own period (local-sgd's H, cached's k); --mix-every replaces it */
	int64_t ssp_bound; /* gate: no worker leads the slowest by more than this; -1: no gate */
	bool signed_plan;  /* weights may be negative: use form of the mixing time */
	/*
	 * Plans are triples, in this order of rows: server := server + copy - base, copy := the same, base := the same,
	 * each with sources (server, copy, base) and weights (1, 1, -1): see the executor's merge kernel.
	 */
	bool merge;
	double hot;     /* merge: of that many columns only, or (below 1) of that share; 0: of all */
	bool versioned; /* leashed: the one replica is a chain of whole versions */
	const struct mw_graph *graph; /* NULL, or what the plans were made from (borrowed) */
};

struct mw_protocol_config {
	uint32_t workers;
	uint32_t nodes; /* numa: groups; worker_node[w] < nodes */
	const uint32_t *worker_node;
	const struct mw_graph *graph; /* protocols with a default_graph only; borrowed by the protocol */
	bool random_edges;            /* gossip: RANDOM instead of CYCLIC pick (from activation) */
};

struct mw_protocol_ops {
	const char *name, *summary;
	const char *expands;        /* NULL, or for presets what it stands for: "async-gossip --graph ring" */
	const char *default_graph;  /* NULL: takes no graph */
	const char *default_access; /* "racy", "atomic" or "locked" */
	const struct mw_option *options;
	size_t option_size;
	int (*setup)(struct mw_protocol *p, const void *options, const struct mw_protocol_config *c,
		struct mw_err *err);
};

/*
 * Allocate and set up; options: the struct that ops->options fills, NULL for the defaults. The graph must outlive the
 * protocol and have c->workers nodes. What the protocol can't do (sequential with two workers) is a USAGE error.
 */
int mw_protocol_new(const struct mw_protocol_ops *ops, const void *options,
	const struct mw_protocol_config *c, struct mw_protocol **out, struct mw_err *err);
void mw_protocol_free(struct mw_protocol *p);

/* The plan of the k-th mix of a slot, NULL if its list is empty; u: 64 random bits, used when pick is RANDOM. */
static inline const struct mw_plan *mw_protocol_plan(
	const struct mw_protocol *p, uint32_t slot, uint64_t k, uint64_t u)
{
	const struct mw_plan_list *l = &p->slot[slot];
	if (!l->n)
		return NULL;
	uint64_t c = p->pick == MW_PICK_CYCLIC ? k % l->n : (uint64_t)(((unsigned __int128)u * l->n) >> 64);
	return l->plan[c];
}

#endif
