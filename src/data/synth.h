/* synth.h: internal to synth*.c: what was asked for, and one generator for each kind. */
#ifndef MW_DATA_SYNTH_H
#define MW_DATA_SYNTH_H

#include "base/rng.h"
#include "data/dataset.h"

enum mw_synth_kind {
	MW_SYNTH_SPARSE,
	MW_SYNTH_DENSE,
	MW_SYNTH_IMAGES,
	MW_SYNTH_REGRESSION,
	MW_SYNTH_QUADRATIC,
	MW_SYNTH_KINDS
};

/*
 * The keys of a spec. Row i of a set is a pure function of (kind, its shape keys, seed, skip + i): `skip`
 * goes on where another set of the same seed has ended.
 */
struct mw_synth {
	enum mw_synth_kind kind;
	int64_t rows, features, nnz, classes, channels, size, skip, seed;
	double noise; /* sparse, dense, images: fraction of wrong labels; regression, quadratic: standard
			 deviation */
	double cond;
	int threads;
	const struct mw_data_request *req; /* borrowed */
};

/* What a stream of random numbers is for. */
enum mw_synth_stream { MW_SYNTH_ROW, MW_SYNTH_SIGNAL, MW_SYNTH_ORDER, MW_SYNTH_PATTERN, MW_SYNTH_GRADIENT };

/* The seed of one kind and purpose. */
static inline uint64_t mw_synth_key(const struct mw_synth *s, enum mw_synth_stream what)
{
	return mw_hash3((uint64_t)s->seed, 0x73796e7468ULL + (uint64_t)s->kind, (uint64_t)what);
}

/* A row's own random numbers. */
static inline void mw_synth_row_rng(const struct mw_synth *s, uint64_t row, struct mw_rng *rng)
{
	mw_rng_init(rng, mw_synth_key(s, MW_SYNTH_ROW), (uint64_t)s->skip + row);
}

/* A class, replaced by another one with probability `noise`. */
static inline uint64_t mw_synth_flip(
	const struct mw_synth *s, struct mw_rng *rng, uint64_t c, uint64_t classes)
{
	if (mw_rng_uniform(rng) < s->noise)
		return (c + 1 + mw_rng_below(rng, classes - 1)) % classes;
	return c;
}

/* Fill d (kind, counts, arrays; classes and labels too). */
int mw_synth_sparse(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err);
int mw_synth_dense(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err);
int mw_synth_images(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err);
int mw_synth_regression(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err);
int mw_synth_quadratic(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err);

#endif
