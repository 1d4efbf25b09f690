/*
 * shard.h: rows that belong to one worker for good (--shards), so that workers' data may differ: the heterogeneity
 * zeta^2 of the theory.
 *
 *   iid              a random part
 *   label            rows sorted by label (real targets: by value) and cut into equal parts: as few labels a worker as can be
 *   dirichlet:ALPHA  worker w draws its share of labels q_w from a Dirichlet law whose mean is the share in all rows and
 *                    whose parameters add up to ALPHA times the number of classes (balanced classes: ALPHA each), then rows
 *                    by q_w without putting back, as Hsu, Qi, Brown (2019) do. Small: few labels a worker; large: iid
 *
 * All parts have the same number of rows within one, and are a pure function of (seed, data, number of workers).
 */
#ifndef MW_RUN_SHARD_H
#define MW_RUN_SHARD_H

#include "data/dataset.h"

enum mw_shard_kind { MW_SHARD_NONE, MW_SHARD_IID, MW_SHARD_LABEL, MW_SHARD_DIRICHLET };

struct mw_shards {
	enum mw_shard_kind kind;
	double alpha;
	uint32_t n;          /* workers */
	struct mw_rows *row; /* n lists of rows, increasing; NULL: none */
};

/* "none", "iid", "label", "dirichlet:ALPHA". */
int mw_shards_parse(const char *spec, struct mw_shards *s, struct mw_err *err);
/* Deal `rows` of d to n workers; nothing to do for none. On failure fini still works. */
int mw_shards_deal(struct mw_shards *s, const struct mw_dataset *d, const struct mw_rows *rows, uint64_t seed,
	uint32_t n, struct mw_err *err);
void mw_shards_fini(struct mw_shards *s);

/* The class of a row, 0..classes-1 (classes > 0). */
static inline uint32_t mw_row_class(const struct mw_dataset *d, uint64_t row)
{
	return d->classes == 2 ? d->y[row] > 0 : (uint32_t)d->y[row];
}
/* counts[c]: rows of class c that worker w has. */
void mw_shards_count(const struct mw_shards *s, const struct mw_dataset *d, uint32_t w, uint64_t *counts);
/*
 * Mean over workers of the total variation distance between a worker's labels and those of all: 0 alike, towards 1 nothing
 * in common. NAN without classes.
 */
double mw_shards_distance(const struct mw_shards *s, const struct mw_dataset *d);

#endif
