/*
 * arena.h: inside of src/topo: memory on one NUMA node. Arenas belong to the process: one per node, made when
 * first asked for, never destroyed, since jemalloc can't give back an arena whose extents are retained.
 */
#ifndef MW_TOPO_ARENA_H
#define MW_TOPO_ARENA_H

#include <stddef.h>

#include "base/err.h"

struct mw_arena;

/* The arena of node P#os. NULL with err set (RESOURCE) when it can't be made. Thread-safe. */
struct mw_arena *mw_arena_get(unsigned os, struct mw_err *err);
/* The errno by which the kernel refused to bind this arena's pages (the first such), 0 if it never did.
 * Thread-safe. */
int mw_arena_refused(const struct mw_arena *a);

/* Zeroed, aligned to MW_LINE_BYTES, its pages not touched yet where they are fresh. Thread-safe. */
void *mw_arena_alloc(struct mw_arena *a, size_t bytes, const char *what, struct mw_err *err);
void mw_arena_free(void *p);

/* The system call that binds pages; a test puts one that refuses. Sync: set only while no other thread runs.
 */
extern long (*mw_arena_mbind)(void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits);

#endif
