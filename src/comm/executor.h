/*
 * executor.h: carries mixing plans out on memory. All protocols and all mixing knobs go through here: slack, partial
 * consistency, the form and the precision of the exchange, and the access mode.
 *
 * An exchange is done in delta form, x_i := x_i + u_i with u_i = gamma sum_j W_ij (x_j - x_i): what is read before
 * anything is written, and what is added sums to zero under pi, so that atomic and locked access conserve pi^T X up to
 * rounding. Forms (theory.md section 6): fused adds the worker's own delta in the same rounding, x := fl(x + (u + d));
 * separate rounds twice; convex computes (1-gamma) x + gamma W x, which is biased in float32 and here to show it.
 */
#ifndef MW_COMM_EXECUTOR_H
#define MW_COMM_EXECUTOR_H

#include "comm/replica.h"

enum mw_mix_form { MW_MIX_FUSED, MW_MIX_SEPARATE, MW_MIX_CONVEX };
#define MW_MIX_FORM_CHOICES  "fused|separate|convex"
#define MW_PRECISION_CHOICES "float|kahan|double"

struct mw_compiled; /* a plan with what the executor found out about it */

struct mw_executor {
	struct mw_replicas *r;
	const struct mw_protocol *p;
	enum mw_mix_form form;
	enum mw_precision precision;
	struct mw_compiled **slot; /* per slot, one for each of its plans */
	uint32_t max_rows, max_touch;
	bool whole_rows; /* lock whole rows, not stripes, so that every exchange is one version (traces) */
	/*
	 * Merge protocols under locked access: the shared row has a lock for each stripe of coordinates, and workers start
	 * at different stripes, so that their merges follow each other through the row instead of waiting for all of it.
	 */
	struct mw_stripe *stripe;
	size_t stripe_floats;
	uint32_t n_stripes;
};

struct mw_stripe {
	uint32_t lock MW_LINE_ALIGNED; /* Sync: mw_lock */
};

/* Scratch for one thread. */
struct mw_exec_scratch {
	float *u; /* max_rows blocks */
	float *y; /* max_touch blocks */
	uint64_t *
		version; /* NULL, or room for max_touch: versions that the last plan made or, for copies, read */
	double *wide;
};

/* A delta that goes into a row together with the exchange: x[row] += weight * delta (whole array, absolute index). */
struct mw_push {
	uint32_t row;
	float weight;
	const float *delta;
} MW_LINE_ALIGNED; /* workers write theirs side by side every round */

int mw_executor_init(struct mw_executor *e, struct mw_replicas *r, const struct mw_protocol *p,
	enum mw_mix_form form, enum mw_precision precision, struct mw_err *err);
void mw_executor_fini(struct mw_executor *e);
int mw_exec_scratch_init(struct mw_exec_scratch *s, const struct mw_executor *e, struct mw_err *err);
void mw_exec_scratch_fini(struct mw_exec_scratch *s);

/*
 * Carry out plan `choice` of `slot`, with slack gamma, on coordinates [from, from + n), together with the pushes there. exclusive: no other
 * thread touches these coordinates of these rows meanwhile (sim, or between barriers); otherwise the access mode holds.
 * Pushes to rows that the plan does not write are added before the exchange reads them. No failure, no allocation.
 */
void mw_exec_plan(const struct mw_executor *e, struct mw_exec_scratch *s, uint32_t slot, uint32_t choice,
	double gamma, size_t from, size_t n, const struct mw_push *push, uint32_t n_push, bool exclusive);

/* Rows that a plan touches, increasing; for copies the one row that is read. */
void mw_exec_touched(const struct mw_executor *e, uint32_t slot, uint32_t choice, const uint32_t **row,
	uint32_t *n, bool *written);

/* May a worker hand its push to slot's plans (they write its push row), so that fused rounding is possible? */
bool mw_exec_takes_push(const struct mw_executor *e, uint32_t slot, uint32_t row);

#endif
