/*
 * order.h: which rows a worker draws, in which order: a pure function of (seed, epoch, worker), so no lock is shared.
 *
 *   block   blocks of 64 consecutive rows in random order, and the rows inside each in random order: nearly the quality
 *           of a true shuffle at the memory speed of a scan
 *   random  a true random permutation (random DRAM lines: several times slower on sparse data)
 *   file    as they are in the file
 *
 * Every epoch the permutation is new, and worker w takes the w-th of n equal parts of it (--data-place shared), a part
 * of the file that stays its own (shard), or what a dealer gives it: then the permutation is that function, and who gets which
 * part of it is not known before.
 */
#ifndef MW_RUN_ORDER_H
#define MW_RUN_ORDER_H

#include "base/rng.h"
#include "data/dataset.h"
#include "run/deal.h"

enum mw_order_kind { MW_ORDER_BLOCK, MW_ORDER_RANDOM, MW_ORDER_FILE };
#define MW_ORDER_CHOICES    "block|random|file"
#define MW_ORDER_BLOCK_ROWS 64
#define MW_ORDER_KNOWN      4

struct mw_order_known {
	uint64_t position, unit;
};

struct mw_order {
	enum mw_order_kind kind;
	bool shard;
	uint64_t seed;
	uint32_t worker, workers;
	const struct mw_rows *rows;
	struct mw_dealer *dealer; /* NULL: equal parts */
	uint64_t unit, units;     /* rows a block (1 for random and file); blocks an epoch */
	uint64_t base;            /* position at which the current epoch begins: 0 without a dealer */
	uint64_t begin, end;      /* this worker's positions in units: of the current epoch, or as dealt */
	uint64_t epoch, position; /* next unit */
	struct mw_perm perm;
	struct mw_order_known known[MW_ORDER_KNOWN];
	uint64_t first;       /* shard: first unit of the worker's own part */
	uint64_t block_start; /* current block: rows block_start + inside[at] for at < block_rows */
	uint32_t at, block_rows;
	uint8_t inside[MW_ORDER_BLOCK_ROWS];
};

/* Rows a unit. Small data have smaller ones, so that every worker gets a few. */
uint64_t mw_order_unit(enum mw_order_kind kind, uint64_t rows, uint32_t workers);
/* The part of 0..rows-1 that is worker's own where data are sharded: [*lo, *hi). */
void mw_order_part(enum mw_order_kind kind, uint64_t rows, uint32_t worker, uint32_t workers, uint64_t *lo,
	uint64_t *hi);
/* rows is borrowed and not empty. */
void mw_order_init(struct mw_order *o, enum mw_order_kind kind, bool shard, const struct mw_rows *rows,
	uint64_t seed, uint32_t worker, uint32_t workers);
/* Take units from the dealer from now on. Nothing has been drawn. */
void mw_order_deal(struct mw_order *o, struct mw_dealer *dealer);
/*
 * The next n rows (indices into the dataset); goes on into the next epoch's order by itself. Returns how many there are: n,
 * or fewer where the dealer has no more before the workers meet.
 */
uint32_t mw_order_draw(struct mw_order *o, uint64_t *row, uint32_t n);
/*
 * block: the rows [*from, *to) of the dataset that hold the k-th block (0: the next) after the one that was drawn from last, for
 * who wants to have them in a cache, k + 1 < MW_ORDER_KNOWN; false where there is none in this epoch or in what was dealt.
 */
bool mw_order_next_block(struct mw_order *o, uint64_t k, uint64_t *from, uint64_t *to);
/* The rows that an epoch of this order goes through, where its worker has rows of its own: [*lo, *hi) of the result. */
const struct mw_rows *mw_order_own(const struct mw_order *o, uint64_t *lo, uint64_t *hi);
/* Skip n draws (resume, without a dealer). */
void mw_order_skip(struct mw_order *o, uint64_t n);
/* With one: where it is, and back there. Units [at[0], at[1]) are left, of the first one rows from at[2] on. */
void mw_order_where(const struct mw_order *o, uint64_t at[3]);
void mw_order_go_to(struct mw_order *o, const uint64_t at[3]);

#endif
