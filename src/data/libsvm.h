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
 * Whole lines of text, and where their rows go. Sync: filled by the caller before a thread parses it, by that
 * thread alone while it does, and read again after the join; no two chunks share a byte of their arrays.
 */
struct mw_libsvm_chunk {
	const struct mw_libsvm_rules *rules;
	const char *begin,
		*end; /* readable MW_INPUT_PAD bytes past end; *end is 0 unless a newline comes before it */
	uint64_t lines_before; /* in the file, before begin */

	uint64_t lines, colons; /* by mw_libsvm_count: bounds for rows and nnz */

	uint64_t nnz_before; /* added to what is written into row_ptr */
	uint64_t *row_ptr;   /* begin of each row (the end of the last isn't written) */
	uint32_t *col;       /* index - shift */
	float *val, *y;      /* y: the labels as they stand there */
	uint64_t rows, nnz;

	uint32_t shift;                /* 1: counted from 1, also while AUTO hasn't seen an index 0 */
	uint64_t index_max;            /* largest index, valid if nnz > 0 */
	uint64_t max_line, max_column; /* where it stands */
	struct mw_labels labels;

	struct mw_err err;
};

/* Lines (a last one without newline counts) and colons. */
void mw_libsvm_count(struct mw_libsvm_chunk *c);
/* Parse all lines; the first error is left in c->err, as path:line:column: what; what to do. */
void mw_libsvm_parse(struct mw_libsvm_chunk *c);
/* The error of an index that is wider than allowed, at a known place. Returns MW_EDATA. */
int mw_libsvm_too_wide(const struct mw_libsvm_rules *rules, uint64_t index, bool from_zero, uint64_t line,
	uint64_t column, struct mw_err *err);

#endif
