/*
 * wait.h: waiting of threads: spin for a little, then sleep on a futex, so that 16 workers on 2 CPUs still progress.
 */
#ifndef MW_RUN_WAIT_H
#define MW_RUN_WAIT_H

#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/shared.h"
#include "topo/layout.h"

/* The threads of one NUMA node at a barrier: what they write and wait for is on lines of their node. */
struct mw_barrier_group {
	/* Sync: arrivals of this round; fetch-add acq_rel, so that all that came before is seen by all that leave. */
	uint32_t arrived MW_LINE_ALIGNED;
	uint32_t n; /* threads */
	/* Sync: number of the round; the last of all threads bumps it (release), the others wait for that (acquire). */
	uint32_t round MW_LINE_ALIGNED;
	/* Sync: threads asleep on round; relaxed hint, the futex itself rechecks. */
	uint32_t sleepers;
};

/*
 * A barrier: within each node first, then across. Only the last thread of a node touches the line that all nodes share, and
 * the last of all writes one line a node.
 */
struct mw_barrier {
	/* Sync: nodes whose threads have all arrived; fetch-add acq_rel by the last thread of each. */
	uint32_t arrived MW_LINE_ALIGNED;
	/* Sync: set by a thread that will not come any more (relaxed; those that wait look every 10 ms). */
	uint32_t cancelled MW_LINE_ALIGNED;
	uint32_t n_groups, spins;
	struct mw_barrier_group **group; /* NULL: one group, own */
	const struct mw_layout *layout;  /* owner of their memory */
	struct mw_barrier_group own;
};

/* n threads, one group. spins: how often to look before sleeping; few when there are more threads than CPUs. */
void mw_barrier_init(struct mw_barrier *b, uint32_t n, uint32_t spins);
/* All workers of a layout, a group a node, and `others` more threads in group 0. Needs mw_barrier_fini, also on error. */
int mw_barrier_init_nodes(
	struct mw_barrier *b, const struct mw_layout *l, uint32_t others, uint32_t spins, struct mw_err *err);
void mw_barrier_fini(struct mw_barrier *b);
/* Wait for all threads; group: the caller's. Everything written before is visible after. False: cancelled, not all came. */
bool mw_barrier_wait_in(struct mw_barrier *b, uint32_t group);
static inline bool mw_barrier_wait(struct mw_barrier *b)
{
	return mw_barrier_wait_in(b, 0);
}
/* For a thread that will not come: all that wait, now or later, return false. */
void mw_barrier_cancel(struct mw_barrier *b);

/*
 * A gate: threads wait until a condition holds that others bring about. A waiter calls mw_gate_wait in a loop around its
 * own test; whoever changes what is tested calls mw_gate_signal, which costs one read of a quiet line when none waits.
 */
struct mw_gate {
	/* Sync: number of threads that wait; seq_cst against the tested state, so that no signal is missed. */
	uint32_t waiting MW_LINE_ALIGNED;
	uint32_t word; /* Sync: bumped by signals, futex word. */
	uint32_t spins;
};

struct mw_gate_try {
	uint32_t n;    /* unsuccessful tests so far */
	uint32_t seen; /* word before the last test */
	bool announced;
};

void mw_gate_init(struct mw_gate *g, uint32_t spins);
/* After an unsuccessful test: pause, or sleep until a signal (at most 10 ms). */
void mw_gate_wait(struct mw_gate *g, struct mw_gate_try *t);
/* After the successful test. */
void mw_gate_pass(struct mw_gate *g, struct mw_gate_try *t);
void mw_gate_signal(struct mw_gate *g);

/* Sleep (>= 100 us) or spin until this many seconds have passed. */
void mw_delay(double seconds);

#endif
