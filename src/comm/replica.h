/*
 * replica.h: the copies of the parameters, one row of the paper's X each, and the locks that guard whole rows.
 *
 * Rows live on the NUMA node of the worker beside which the protocol put them. Every row starts on a line of its own
 * and is padded, so that two rows never share a cache line.
 */
#ifndef MW_COMM_REPLICA_H
#define MW_COMM_REPLICA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/shared.h"
#include "comm/protocol.h"
#include "topo/layout.h"

/* How several threads read and write one replica. */
enum mw_access {
	MW_ACCESS_RACY,    /* plain loads and stores: updates may be lost, reads may mix versions (Hogwild) */
	MW_ACCESS_ATOMIC,  /* reads as racy, every add is a compare-and-swap: no update is lost */
	MW_ACCESS_LOCKED,  /* one lock a replica around every read and write */
	MW_ACCESS_SEQLOCK, /* writers as locked; readers retry until they saw one whole version */
};
#define MW_ACCESS_CHOICES "racy|atomic|locked|seqlock"

struct mw_replica {
	float *x; /* stride floats. Sync: as the access mode says; touched by access.c and the executor only */
	/*
	 * Kahan: what x lost to rounding in exchanges, to be added later; double: the value of which x is the rounding
	 * (NULL otherwise). Sync: touched only by an executor that owns the row's event: under the row's lock, or
	 * between barriers.
	 */
	float *comp;
	double *wide;
	/*
	 * Pushes counted the way floats are pushed (--tally): racy access loses some, and this says how many. Sync: as x.
	 * On a line of its own.
	 */
	uint32_t tally MW_LINE_ALIGNED;
	bool owned; /* one worker alone ever touches it: no locks or atomics, whatever the access mode */
	/* Sync: 0 free, 1 held, 2 held and waited for (futex). Acquire pairs with the release in mw_unlock. */
	uint32_t lock MW_LINE_ALIGNED;
	/* Sync: twice the writes so far, odd while a writer is inside; written under the lock, release; readers acquire. */
	uint64_t seq;
} MW_LINE_ALIGNED;

struct mw_replicas {
	uint32_t n;
	size_t dim, stride; /* floats; stride >= dim, a multiple of 32 */
	size_t extra_at,
		extra; /* probe columns: coordinates behind the model's, which only the executor exchanges */
	size_t cold_from, cold_to; /* one memory in all rows (mw_replicas_share); equal: none */
	uint32_t n_mapped;         /* the first rows have memory of their own making, for that */
	enum mw_access access;
	struct mw_replica *row;
	const struct mw_layout *layout;
};

enum mw_precision { MW_PRECISION_FLOAT, MW_PRECISION_KAHAN, MW_PRECISION_DOUBLE };

/* The node of the layout that a row lives on. */
uint32_t mw_replica_node(const struct mw_protocol *p, const struct mw_layout *layout, uint32_t row);
/* Rows of `dim` zeros, placed as p->row_worker says. */
int mw_replicas_init(struct mw_replicas *r, const struct mw_protocol *p, const struct mw_layout *layout,
	size_t dim, enum mw_access access, enum mw_precision precision, struct mw_err *err);
/* The same with room for `extra` more coordinates in every row, on lines of their own, from r->extra_at on. */
int mw_replicas_init_wide(struct mw_replicas *r, const struct mw_protocol *p, const struct mw_layout *layout,
	size_t dim, size_t extra, enum mw_access access, enum mw_precision precision, struct mw_err *err);
void mw_replicas_fini(struct mw_replicas *r);
/*
 * From now on the whole pages of coordinates [from, to) are the same memory in all rows, row 0's: what one row is given, all
 * have, and an exchange leaves them out. Before values are set.
 */
int mw_replicas_share(
	struct mw_replicas *r, const struct mw_protocol *p, size_t from, size_t to, struct mw_err *err);
/* The part of mw_replicas_fini that undoes it. */
void mw_replicas_unmap(struct mw_replicas *r);
/* Set every row to x0 (and wide to it, comp to 0). Not concurrent with anything. */
void mw_replicas_set(struct mw_replicas *r, const float *x0);
/* out := sum_r pi[r] row r, the virtual average of theory.md 1.1, summed in double. Callers stop writers first. */
void mw_replicas_average(const struct mw_replicas *r, const double *pi, size_t from, size_t to, float *out);
/*
 * Consensus distance: sqrt(sum_w |view row of w - average|^2 / workers), over coordinates [from, to), as its square sum
 * so that parts add up.
 */
double mw_replicas_spread(const struct mw_replicas *r, const struct mw_protocol *p, const float *average,
	size_t from, size_t to);

/* A lock word of three states: see struct mw_replica. */
void mw_lock(uint32_t *word);
void mw_unlock(uint32_t *word);

#endif
