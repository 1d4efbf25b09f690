/* libsvm.h: internal to libsvm*.c: a piece of LIBSVM text, and the parser that turns it into a piece of CSR.
 */
#ifndef MW_DATA_LIBSVM_H
#define MW_DATA_LIBSVM_H

#include "data/dataset.h"
#include "data/labels.h"

/* The largest index in a file: column and width must both fit 32 bits. */
#define MW_LIBSVM_INDEX_MAX 4294967294ULL

/* What holds for the whole file. Immutable while chunks are parsed. */
struct mw_libsvm_rules {
	const struct mw_data_request *req;
	enum mw_index_base base; /* of the request, or found in the training set */
	uint32_t width;          /* features that are allowed; 0: any */
};

/*
 * A block of whole lines, and where its rows go. Sync: of one thread, except that the arrays may be those of the
 * data set, see libsvm_csr.h. An array has room for whatever the text can hold: a row takes two bytes at least, a
 * pair four.
 */
#define MW_LIBSVM_ROW_BYTES 2
#define MW_LIBSVM_NNZ_BYTES 4

struct mw_libsvm_chunk {
	const struct mw_libsvm_rules *rules;
	const char *begin,
		*end; /* readable MW_INPUT_PAD bytes past end; *end is 0 unless a newline comes before it */

	uint64_t nnz_before; /* added to what is written into row_ptr */
	uint64_t *row_ptr;   /* begin of each row (the end of the last isn't written) */
	uint32_t *col;       /* index - shift */
	float *val, *y;      /* y: the labels as they stand there */
	uint64_t rows, nnz, lines;

	uint32_t shift;     /* 1: counted from 1, also while AUTO hasn't seen an index 0 */
	uint64_t index_max; /* largest index, valid if nnz > 0 */
	uint64_t max_line,
		max_column;      /* where it stands, from 1, in the block; valid if the rules have a width */
	struct mw_labels labels; /* of this block and of those that the chunk held before */

	struct mw_err err;
	uint64_t err_line, err_column; /* from 1, in the block; 0: an error of no line */
};

/* Parse all lines; the first error is left in c->err, without its place. */
void mw_libsvm_parse(struct mw_libsvm_chunk *c);
/* What to say of an index that is wider than allowed. */
void mw_libsvm_too_wide(const struct mw_libsvm_rules *rules, uint64_t index, bool from_zero, char what[600]);

#endif
