/*
 * leash.h: consistent lock-free versions of one replica ("leashed" SGD, Bäckström et al. 2021, in our own design): a
 * reader always gets one whole version, a writer builds a new version and publishes it with one compare-and-swap; if
 * another was faster it starts again from the newest one. So no update is lost and no read is torn.
 *
 * Versions live in a fixed pool of 2n + 1 buffers with reference counts: each of n threads holds at most one version for
 * reading and one that it writes, and one is the newest.
 */
#ifndef MW_RUN_LEASH_H
#define MW_RUN_LEASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/shared.h"

struct mw_leash_version {
	float *x; /* Sync: written only by the thread that holds it unpublished; immutable while referenced */
	/* Sync: references; WRITER while unpublished; seq_cst against `newest`. */
	int64_t refs MW_LINE_ALIGNED;
	uint64_t number; /* versions before it; written before publication */
};

struct mw_leash {
	uint32_t n;
	size_t dim;
	struct mw_leash_version *version;
	/* Sync: index of the newest version in the low 32 bits, a tag against reuse above; seq_cst. */
	uint64_t newest MW_LINE_ALIGNED;
};

int mw_leash_init(struct mw_leash *l, uint32_t threads, size_t dim, struct mw_err *err);
void mw_leash_fini(struct mw_leash *l);
void mw_leash_set(struct mw_leash *l, const float *x0);

/* Hold the newest version: its floats may be read until mw_leash_release(index). */
uint32_t mw_leash_acquire(struct mw_leash *l);
void mw_leash_release(struct mw_leash *l, uint32_t index);
static inline const float *mw_leash_x(const struct mw_leash *l, uint32_t index)
{
	return l->version[index].x;
}
/* Number of the version that this thread's last call held or published. */
extern __thread uint64_t mw_leash_version_seen;
/* Publish newest + change, where change(x, arg) edits a private copy. Returns how often it had to start again. */
uint64_t mw_leash_update(struct mw_leash *l, void (*change)(float *x, void *arg), void *arg);

#endif
