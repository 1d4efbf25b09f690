/* libsvm_csr.h: internal to libsvm*.c: the data set as it grows, one parsed block behind the other. */
#ifndef MW_DATA_LIBSVM_CSR_H
#define MW_DATA_LIBSVM_CSR_H

#include <pthread.h>

#include "data/libsvm.h"

#define MW_LIBSVM_TURNS 64

/* Columns that were stored as index - 1 before an index 0 had been seen. */
struct mw_libsvm_range {
	uint64_t at, n;
};

/*
 * The data set under construction. Blocks are parsed in any order and by any thread, and placed in the order of the
 * file, each when its turn comes; copying them to their place goes on in parallel. So there is one pass over the text,
 * nothing is held twice but a block a thread, and the first error of the file is the one that is reported.
 */
struct mw_libsvm_csr {
	const struct mw_libsvm_rules *rules;
	struct mw_dataset *d; /* arrays of the rooms below; Sync: replaced under moving for writing */
	uint64_t row_room, nnz_room;

	pthread_mutex_t lock; /* guards all that follows */
	/* Block b waits on turned[b % TURNS]: to wake all would cost a switch to each thread a block. */
	pthread_cond_t turned[MW_LIBSVM_TURNS];
	pthread_rwlock_t moving; /* held for reading by who copies into the arrays; taken inside lock */
	uint64_t turn;           /* the block that is placed next */
	uint64_t rows, nnz, lines;
	bool failed;
	struct mw_err err;

	bool any; /* a pair was there, and of the largest index: */
	uint64_t index_max, max_line, max_column;
	bool from_zero; /* an index 0 was there */
	struct mw_libsvm_range *one;
	uint64_t n_one, one_room;
};

int mw_libsvm_csr_init(struct mw_libsvm_csr *s, const struct mw_libsvm_rules *rules, struct mw_dataset *d,
	struct mw_err *err);
/* Keeps the arrays, which are the data set's. */
void mw_libsvm_csr_fini(struct mw_libsvm_csr *s);

/*
 * For a single parser: point the chunk's arrays at the place where its text's rows belong. `share` is the part of the
 * file that the blocks before this one are, in 0..1, from which the sizes of the arrays are guessed; 0: no idea. An
 * error is left in the chunk.
 */
int mw_libsvm_csr_direct(struct mw_libsvm_csr *s, struct mw_libsvm_chunk *c, double share);
/*
 * Wait for the turn of block `number`, and place it; the chunk may be used again. Returns false when there was an
 * error, in this block or an earlier one: it is in s->err.
 */
bool mw_libsvm_csr_place(struct mw_libsvm_csr *s, struct mw_libsvm_chunk *c, uint64_t number, double share);
/* After the last block, with no thread left: row_ptr's end, the padding, one index base, the width. */
int mw_libsvm_csr_finish(struct mw_libsvm_csr *s, struct mw_err *err);

#endif
