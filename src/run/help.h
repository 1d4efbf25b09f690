/*
 * help.h: an exchange of all nodes' replicas (numa) that several threads carry out together: one worker a node. It stays one
 * event: the worker whose exchange is due opens it, cuts the coordinates into blocks, and the others' first workers take
 * blocks, all rows of each, when they come by. (Each node averaging its own row would not keep the mean: the rows would be
 * read at different times.)
 */
#ifndef MW_RUN_HELP_H
#define MW_RUN_HELP_H

#include "comm/executor.h"

/* Floats of a block: large enough that taking one costs nothing, small enough that nobody waits long for the last. */
enum { MW_HELP_FLOATS = 8192, MW_HELP_LEAST = 4 * MW_HELP_FLOATS };

struct mw_help {
	/* Sync: seq_cst. FREE to TAKEN by compare-and-swap; the opener then sets OPEN (pairs with helpers' loads) and FREE. */
	uint32_t state MW_LINE_ALIGNED;
	/* Sync: helpers between looking and having finished their blocks; seq_cst against state. */
	uint32_t inside MW_LINE_ALIGNED;
	/* Sync: the next block; relaxed, since every block is taken once and the opener waits for `inside`. */
	uint32_t next MW_LINE_ALIGNED;
	/* The event. Sync: written by the opener before OPEN, constant until FREE. */
	uint32_t slot MW_LINE_ALIGNED, choice, n_blocks, n_push;
	double gamma;
	size_t from, n;
	struct mw_push push;
	/* Blocks that were done by others, ever. Sync: relaxed, written by helpers as they leave. */
	uint64_t helped MW_LINE_ALIGNED;
};
enum { MW_HELP_FREE, MW_HELP_TAKEN, MW_HELP_OPEN };

/*
 * May exchanges of this protocol be shared out: is one plan of several rows the only plan of all workers that have one?
 * Locked rows can't be: helpers would wait for each other.
 */
bool mw_help_suits(const struct mw_protocol *p, const struct mw_replicas *r);
/* Carry an exchange out, alone where it is small or another one is open (which is helped first). As mw_exec_plan. */
void mw_help_plan(struct mw_help *h, const struct mw_executor *e, struct mw_exec_scratch *s, uint32_t slot,
	uint32_t choice, double gamma, size_t from, size_t n, const struct mw_push *push, uint32_t n_push);
/* Take blocks of the open exchange, if there is one. */
void mw_help_join(struct mw_help *h, const struct mw_executor *e, struct mw_exec_scratch *s);
static inline bool mw_help_is_open(const struct mw_help *h)
{
	return __atomic_load_n(&h->state, __ATOMIC_RELAXED) == MW_HELP_OPEN; /* mw_help_join looks again */
}

#endif
