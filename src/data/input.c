/* input.c: see input.h. */
#include "data/input.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_kind(const char *path, const struct stat *st, struct mw_err *err)
{
	if (S_ISDIR(st->st_mode))
		MW_FAIL(err, DATA, "%s: is a directory; give a data file in it", path);
	if (!S_ISREG(st->st_mode))
		MW_FAIL(err, DATA,
			"%s: is not a regular file; save the data to a file first (it is read more than "
			"once)",
			path);
	if (!st->st_size)
		MW_FAIL(err, DATA, "%s: the file is empty", path);
	return 0;
}

static int fail_changed(const struct mw_input *in, struct mw_err *err)
{
	MW_FAIL(err, DATA, "%s: the file changed while it was read; load it again when it is complete",
		in->path);
}

int mw_input_open(struct mw_input *in, const char *path, struct mw_err *err)
{
	struct stat st;
	unsigned char magic[2] = { 0, 0 };
	int ret;
	*in = (struct mw_input){ .path = path };
	/* O_NONBLOCK: opening a FIFO must not wait for a writer only to be refused. */
	in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in->fd < 0)
		MW_FAIL(err, DATA, "%s: cannot open: %s", path, strerror(errno));
	if (fstat(in->fd, &st) < 0) {
		ret = mw_err_set(err, MW_EDATA, "%s: cannot stat: %s", path, strerror(errno));
		goto out;
	}
	ret = check_kind(path, &st, err);
	if (ret < 0)
		goto out;
	in->size = (uint64_t)st.st_size;
	in->mtime = st.st_mtim;
	if (pread(in->fd, magic, 2, 0) < 0) {
		ret = mw_err_set(err, MW_EDATA, "%s: cannot read: %s", path, strerror(errno));
		goto out;
	}
	in->gzip = magic[0] == 0x1f && magic[1] == 0x8b;
	in->inflate = MW_INFLATE;
	if (!in->gzip)
		in->inflate = &mw_inflate_zlib; /* hands it on as it is */
out:
	if (ret < 0)
		mw_input_close(in);
	return ret;
}

void mw_input_close(struct mw_input *in)
{
	if (in->inflate)
		in->inflate->close(in->stream);
	if (in->path && in->fd >= 0)
		close(in->fd);
	*in = (struct mw_input){ .fd = -1 };
}

int mw_input_read_at(const struct mw_input *in, void *buf, size_t n, uint64_t at, struct mw_err *err)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = pread(in->fd, (char *)buf + got, n - got, (off_t)(at + got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			MW_FAIL(err, DATA, "%s: cannot read: %s", in->path, strerror(errno));
		if (!r)
			return fail_changed(in, err);
		got += (size_t)r;
	}
	return 0;
}

int mw_input_unchanged(const struct mw_input *in, struct mw_err *err)
{
	struct stat st;
	if (fstat(in->fd, &st) < 0)
		MW_FAIL(err, DATA, "%s: cannot stat: %s", in->path, strerror(errno));
	if ((uint64_t)st.st_size != in->size || st.st_mtim.tv_sec != in->mtime.tv_sec ||
		st.st_mtim.tv_nsec != in->mtime.tv_nsec)
		return fail_changed(in, err);
	return 0;
}

double mw_input_progress(const struct mw_input *in)
{
	return in->stream ? fmin(1, (double)in->inflate->used(in->stream) / (double)in->size) : 0;
}

int64_t mw_input_read(struct mw_input *in, void *buf, size_t n, struct mw_err *err)
{
	const char *fault = NULL;
	int64_t got;
	if (in->ended)
		return 0;
	if (!in->stream)
		in->stream = in->inflate->open(in->fd, err);
	if (!in->stream)
		return MW_ERESOURCE;
	got = in->inflate->read(in->stream, buf, n, &fault);
	if (got == MW_INFLATE_CUT)
		MW_FAIL(err, DATA, "%s: the gzip file ends too early; it is cut off: fetch it again",
			in->path);
	if (got < 0)
		MW_FAIL(err, DATA, "%s: the gzip file is damaged (%s); fetch it again", in->path, fault);
	in->ended = (uint64_t)got < n;
	return got;
}

int64_t mw_input_head(const char *path, unsigned char *head, size_t n, bool *gzip, struct mw_err *err)
{
	struct mw_input in;
	int64_t got;
	MW_TRY(mw_input_open(&in, path, err));
	*gzip = in.gzip;
	got = mw_input_read(&in, head, n, err);
	mw_input_close(&in);
	return got;
}
