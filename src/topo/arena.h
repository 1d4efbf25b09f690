/*
 * arena.h: inside of src/topo: memory that goes where a policy says. Arenas belong to the process: one per policy, made
 * when first asked for, never destroyed, since jemalloc can't give back an arena whose extents are retained.
 */
#ifndef MW_TOPO_ARENA_H
#define MW_TOPO_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Bits of the widest masks: nodes by P#, and CPUs (more than any kernel's NR_CPUS, 8192). */
enum {
	MW_NODE_BITS = 4096,
	MW_CPU_BITS = 16384,
	MW_WORD_BITS = 8 * (int)sizeof(unsigned long),
	MW_NODE_WORDS = MW_NODE_BITS / MW_WORD_BITS,
	MW_CPU_WORDS = MW_CPU_BITS / MW_WORD_BITS
};

/* Where pages go. Zeroed before it is filled: policies are compared by their bytes. */
struct mw_mem_policy {
	int mode; /* MPOL_BIND, MPOL_PREFERRED or MPOL_INTERLEAVE over `nodes`; MPOL_DEFAULT: touched from `cpus` */
	unsigned os; /* P# for messages */
	unsigned long nodes[MW_NODE_WORDS];
	unsigned long cpus[MW_CPU_WORDS];
};

/* Pieces smaller than this get no huge pages where several nodes share a range of memory. */
#define MW_HUGE_FROM ((size_t)32 << 20)

struct mw_arena;

/* The arena of a policy. NULL with err set (RESOURCE) when it can't be made. Thread-safe. */
struct mw_arena *mw_arena_get(const struct mw_mem_policy *policy, struct mw_err *err);
/* The errno by which the kernel refused to bind this arena's pages (the first such), 0 if it never did.
 * Thread-safe. */
int mw_arena_refused(const struct mw_arena *a);

/* Zeroed, aligned to MW_LINE_BYTES, its pages not touched yet where they are fresh (and the policy isn't MPOL_DEFAULT).
 * Thread-safe. */
void *mw_arena_alloc(struct mw_arena *a, size_t bytes, const char *what, struct mw_err *err);
void mw_arena_free(void *p);

/* The system call that binds pages; a test puts one that refuses. Sync: set only while no other thread runs.
 */
extern long (*mw_arena_mbind)(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags);

#endif
