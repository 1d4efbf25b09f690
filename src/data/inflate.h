/*
 * inflate.h: the content of a gzip file as a stream. Two engines that behave alike, as zlib's gzread does: members one
 * behind the other are one stream, what follows a member and doesn't begin like one is passed over, checksums and
 * lengths are verified. zlib is always there; ISA-L takes half its time, where configure found it.
 */
#ifndef MW_DATA_INFLATE_H
#define MW_DATA_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MW_INFLATE_CUT = -1, MW_INFLATE_DAMAGED = -2 };

struct mw_inflate_ops {
	const char *name;
	/* A stream from the first byte of the file on; the descriptor stays the caller's. NULL: no memory. */
	void *(*open)(int fd, struct mw_err *err);
	void (*close)(void *stream); /* NULL is fine */
	/*
	 * The next n bytes of content, fewer only at the end. MW_INFLATE_CUT: the file ends too early;
	 * MW_INFLATE_DAMAGED: *fault says what is wrong, in zlib's words. Nothing more can be read then.
	 */
	int64_t (*read)(void *stream, void *buf, size_t n, const char **fault);
	/* Bytes of the file that were used so far. */
	uint64_t (*used)(const void *stream);
};

/* Hands on as they are files that are not gzip. */
extern const struct mw_inflate_ops mw_inflate_zlib;
#ifdef HAVE_ISAL
extern const struct mw_inflate_ops mw_inflate_isal;
#define MW_INFLATE (&mw_inflate_isal)
#else
#define MW_INFLATE (&mw_inflate_zlib)
#endif

#endif
