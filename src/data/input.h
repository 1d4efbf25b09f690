/* input.h: the bytes of a data file, mapped when plain and inflated as a stream when gzip; told apart by
 * content. */
#ifndef MW_DATA_INPUT_H
#define MW_DATA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/err.h"

#define MW_HEAD_BYTES 4096
/* Bytes after the end of a mapping, and after what callers read, that may be loaded too; zero in a mapping.
 */
#define MW_INPUT_PAD 64

struct mw_input {
	const char *path; /* borrowed */
	int fd;           /* -1 when closed or owned by gz */
	uint64_t size;    /* of the file on disk */
	bool gzip;

	char *map; /* plain files, after mw_input_map: size bytes, then at least MW_INPUT_PAD zero bytes */
	size_t map_bytes;

	gzFile gz; /* after the first mw_input_read */
	bool ended;
};

/* Open a regular file that isn't empty. On failure nothing is left open. */
int mw_input_open(struct mw_input *in, const char *path, struct mw_err *err);
/* Closes and unmaps; fine on a zeroed struct. */
void mw_input_close(struct mw_input *in);

/* Map a plain file. Not for gzip. */
int mw_input_map(struct mw_input *in, struct mw_err *err);
/*
 * The next n bytes of content (inflated if gzip), fewer only at the end. Returns the count, or a negative
 * code for a truncated or damaged file. Concatenated gzip members are one stream; checksums are verified.
 */
int64_t mw_input_read(struct mw_input *in, void *buf, size_t n, struct mw_err *err);

/* The first bytes of the content of a file, at most n; *gzip: they were inflated. Returns the count or < 0.
 */
int64_t mw_input_head(const char *path, unsigned char *head, size_t n, bool *gzip, struct mw_err *err);

#endif
