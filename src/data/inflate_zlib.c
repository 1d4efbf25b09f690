/* inflate_zlib.c: gzip files by zlib, see inflate.h. */
#include "data/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* gzread takes an unsigned count and returns an int. */
#define READ_MAX        ((size_t)1 << 30)
#define GZ_BUFFER_BYTES (1u << 17)

static void *zlib_open(int fd, struct mw_err *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* gzclose closes it */
	gzFile gz = own < 0 || lseek(own, 0, SEEK_SET) < 0 ? NULL : gzdopen(own, "rb");
	if (!gz) {
		if (own >= 0)
			close(own);
		mw_err_set(err, MW_ERESOURCE, "no memory for zlib");
		return NULL;
	}
	gzbuffer(gz, GZ_BUFFER_BYTES);
	return gz;
}

static void zlib_close(void *stream)
{
	if (stream)
		gzclose(stream);
}

static int fault_of(gzFile gz, const char **fault)
{
	int code;
	const char *text = gzerror(gz, &code), *colon = strstr(text, ">: ");
	if (colon) /* zlib puts the descriptor's number in front */
		text = colon + 3;
	*fault = code == Z_ERRNO ? strerror(errno) : text;
	return code == Z_OK ? 0 : code == Z_BUF_ERROR ? MW_INFLATE_CUT : MW_INFLATE_DAMAGED;
}

static int64_t zlib_read(void *stream, void *buf, size_t n, const char **fault)
{
	size_t got = 0;
	while (got < n) {
		size_t want = n - got < READ_MAX ? n - got : READ_MAX;
		int r = gzread(stream, (char *)buf + got, (unsigned)want);
		if (r < 0)
			return fault_of(stream, fault);
		got += (size_t)r;
		if ((size_t)r < want) {
			/* a cut-off stream returns what there was, and says so here */
			MW_TRY(fault_of(stream, fault));
			break;
		}
	}
	return (int64_t)got;
}

static uint64_t zlib_used(const void *stream)
{
	z_off_t at = gzoffset((gzFile)(uintptr_t)stream);
	return at > 0 ? (uint64_t)at : 0;
}

const struct mw_inflate_ops mw_inflate_zlib = {
	.name = "zlib",
	.open = zlib_open,
	.close = zlib_close,
	.read = zlib_read,
	.used = zlib_used,
};
