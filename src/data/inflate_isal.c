/*
 * inflate_isal.c: gzip files by Intel's ISA-L, see inflate.h. The library gets the deflated data alone. Headers and trailers
 * are read here: the library's own reader of them does not know of several members, accepts flags that zlib refuses,
 * and wants a header in one piece.
 */
#include "data/inflate.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define CHUNK_BYTES (1u << 17)
/* The library counts in 32 bits. */
#define OUT_MAX ((size_t)1 << 30)
/* Whole bytes that the library may have taken from behind a member's data. */
#define BACK_BYTES 8

/* RFC 1952: the one method, and the flags that say what a header holds (1, "this is text", says nothing of it). */
#define METHOD_DEFLATE 8
enum { HEADER_CRC = 2, EXTRA = 4, NAME = 8, COMMENT = 16, RESERVED = 0xe0 };

struct stream {
	struct inflate_state state; /* next_in, avail_in: the rest of `in` */
	int fd;
	uint64_t at; /* bytes of the file read so far */
	bool inside; /* of a member's data */
	bool ended;
	uint32_t crc;   /* of the member's content so far, or of its header */
	uint32_t bytes; /* of the member's content so far, modulo 2^32 as in the trailer */
	const char *fault;
	/* One array to the compiler: next_in may step back into what is in front of the chunk. */
	unsigned char in[BACK_BYTES + CHUNK_BYTES];
};

static int damaged(struct stream *s, const char *fault)
{
	s->fault = fault;
	return MW_INFLATE_DAMAGED;
}

/* Is there input? 1, 0 at the end of the file, or negative. */
static int fill(struct stream *s)
{
	ssize_t r;
	if (s->state.avail_in)
		return 1;
	do
		r = pread(s->fd, s->in + BACK_BYTES, CHUNK_BYTES, (off_t)s->at);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return damaged(s, strerror(errno));
	s->at += (uint64_t)r;
	s->state.next_in = s->in + BACK_BYTES;
	s->state.avail_in = (uint32_t)r;
	return r > 0;
}

/* The next byte outside of deflated data, or negative. */
static int byte(struct stream *s)
{
	int ret = fill(s);
	if (ret <= 0)
		return ret < 0 ? ret : MW_INFLATE_CUT;
	s->state.avail_in--;
	return *s->state.next_in++;
}

static int header_byte(struct stream *s)
{
	int b = byte(s);
	unsigned char c = (unsigned char)b;
	if (b >= 0)
		s->crc = crc32_gzip_refl(s->crc, &c, 1);
	return b;
}

/* A number of n bytes, the least one first. */
static int number(struct stream *s, int n, uint32_t *value)
{
	*value = 0;
	for (int i = 0; i < n; i++) {
		int b = header_byte(s);
		MW_TRY(b);
		*value |= (uint32_t)b << (8 * i);
	}
	return 0;
}

static int skip_text(struct stream *s)
{
	int b;
	do
		b = header_byte(s);
	while (b > 0);
	return b;
}

/* Does a member begin here? gzread takes anything but its two bytes for the end, also the first of them alone. */
static int magic(struct stream *s)
{
	int b = 0;
	s->crc = 0;
	for (int i = 0; i < 2; i++) {
		b = header_byte(s);
		if (b != (i ? 0x8b : 0x1f))
			return b >= 0 || b == MW_INFLATE_CUT ? 0 : b;
	}
	return 1;
}

static int header_crc(struct stream *s)
{
	uint32_t want = s->crc & 0xffff, got;
	MW_TRY(number(s, 2, &got));
	return got == want ? 0 : damaged(s, "header crc mismatch");
}

static int header(struct stream *s)
{
	uint32_t method_flags, flags, n, skipped;
	int ret = magic(s);
	if (ret <= 0) {
		s->ended = ret == 0;
		return ret;
	}
	MW_TRY(number(s, 2, &method_flags));
	flags = method_flags >> 8;
	if ((method_flags & 0xff) != METHOD_DEFLATE)
		return damaged(s, "unknown compression method");
	if (flags & RESERVED)
		return damaged(s, "unknown header flags set");
	MW_TRY(number(s, 4, &skipped)); /* the time */
	MW_TRY(number(s, 2, &skipped)); /* the compressor's effort and system */
	if (flags & EXTRA) {
		MW_TRY(number(s, 2, &n));
		while (n--)
			MW_TRY(header_byte(s));
	}
	if (flags & NAME)
		MW_TRY(skip_text(s));
	if (flags & COMMENT)
		MW_TRY(skip_text(s));
	if (flags & HEADER_CRC)
		MW_TRY(header_crc(s));
	isal_inflate_reset(&s->state); /* leaves the input as it is */
	s->inside = true;
	s->crc = s->bytes = 0;
	return 0;
}

/*
 * The library reads ahead: what it holds beyond the data goes back in front of the rest of the input. (A later version that
 * gives it back itself holds nothing.)
 */
static void give_back(struct inflate_state *state)
{
	uint32_t n = (uint32_t)state->read_in_length / 8;
	uint64_t held = state->read_in >> (state->read_in_length % 8);
	state->next_in -= n;
	state->avail_in += n;
	for (uint32_t i = 0; i < n; i++)
		state->next_in[i] = (unsigned char)(held >> (8 * i));
	state->read_in_length = 0;
}

static int trailer(struct stream *s)
{
	uint32_t crc = s->crc, got;
	give_back(&s->state);
	s->inside = false;
	MW_TRY(number(s, 4, &got));
	if (got != crc)
		return damaged(s, "incorrect data check");
	MW_TRY(number(s, 4, &got));
	return got == s->bytes ? 0 : damaged(s, "incorrect length check");
}

static int failure(struct stream *s, int code)
{
	switch (code) {
	case ISAL_INVALID_BLOCK: return damaged(s, "invalid block");
	case ISAL_INVALID_SYMBOL: return damaged(s, "invalid code");
	case ISAL_INVALID_LOOKBACK: return damaged(s, "invalid distance too far back");
	default: return damaged(s, "invalid data");
	}
}

/* Inflate up to n bytes; *made: how many came out. */
static int data(struct stream *s, unsigned char *out, size_t n, size_t *made)
{
	struct inflate_state *state = &s->state;
	uint32_t had;
	int ret;
	MW_TRY(fill(s)); /* at the end of the file the library may still hold something */
	had = state->avail_in;
	state->next_out = out;
	state->avail_out = (uint32_t)(n < OUT_MAX ? n : OUT_MAX);
	ret = isal_inflate(state);
	*made = (size_t)(state->next_out - out);
	s->crc = crc32_gzip_refl(s->crc, out, *made);
	s->bytes += (uint32_t)*made;
	if (ret < 0)
		return failure(s, ret);
	if (state->block_state == ISAL_BLOCK_FINISH)
		return trailer(s);
	if (!*made && state->avail_in == had)
		return had ? damaged(s, "invalid data") : MW_INFLATE_CUT;
	return 0;
}

static int64_t isal_read(void *stream, void *buf, size_t n, const char **fault)
{
	struct stream *s = stream;
	size_t got = 0;
	while (got < n && !s->ended) {
		size_t made = 0;
		int ret = s->inside ? data(s, (unsigned char *)buf + got, n - got, &made) : header(s);
		if (ret < 0) {
			*fault = s->fault;
			return ret;
		}
		got += made;
	}
	return (int64_t)got;
}

static void *isal_open(int fd, struct mw_err *err)
{
	struct stream *s = mw_alloc(sizeof(*s), "inflating", err);
	if (!s)
		return NULL;
	isal_inflate_init(&s->state); /* for data without header and trailer */
	s->fd = fd;
	return s;
}

static uint64_t isal_used(const void *stream)
{
	const struct stream *s = stream;
	return s->at - s->state.avail_in - (uint32_t)s->state.read_in_length / 8;
}

const struct mw_inflate_ops mw_inflate_isal = {
	.name = "ISA-L",
	.open = isal_open,
	.close = mw_free,
	.read = isal_read,
	.used = isal_used,
};
