/* input.h: the bytes of a data file, from anywhere when plain and inflated as a stream when gzip; told apart by
 * content. */
#ifndef MW_DATA_INPUT_H
#define MW_DATA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/err.h"
#include "data/inflate.h"

#define MW_HEAD_BYTES 4096
/* Bytes behind a text that parsers may look at; zero behind its last line. */
#define MW_INPUT_PAD 64

struct mw_input {
	const char *path; /* borrowed */
	int fd;           /* -1 when closed */
	uint64_t size;    /* of the file on disk */
	struct timespec mtime;
	bool gzip;

	const struct mw_inflate_ops
		*inflate; /* for mw_input_read; another may be put here before the first one */
	void *stream;     /* its own; after the first mw_input_read */
	bool ended;
};

/* Open a regular file that isn't empty. On failure nothing is left open. */
int mw_input_open(struct mw_input *in, const char *path, struct mw_err *err);
/* Fine on a zeroed struct. */
void mw_input_close(struct mw_input *in);

/*
 * Read n bytes of a plain file from `at` on, all within its size. Thread-safe. Not mapped: a page fault costs more
 * than copying a page, and a file that is cut off meanwhile is an error here, not a signal.
 */
int mw_input_read_at(const struct mw_input *in, void *buf, size_t n, uint64_t at, struct mw_err *err);
/* Is the file still the one that was opened? DATA if it was written to since. */
int mw_input_unchanged(const struct mw_input *in, struct mw_err *err);
/* The share of a gzip file that mw_input_read has used up so far, 0 to 1. */
double mw_input_progress(const struct mw_input *in);
/*
 * The next n bytes of content (inflated if gzip), fewer only at the end. Returns the count, or a negative
 * code for a truncated or damaged file. Concatenated gzip members are one stream; checksums are verified.
 */
int64_t mw_input_read(struct mw_input *in, void *buf, size_t n, struct mw_err *err);

/* The first bytes of the content of a file, at most n; *gzip: they were inflated. Returns the count or < 0.
 */
int64_t mw_input_head(const char *path, unsigned char *head, size_t n, bool *gzip, struct mw_err *err);

#endif
