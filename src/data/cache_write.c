/* cache_write.c: writes the cache of a data set: whole or not at all; see cache.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "data/cache_file.h"

/* Written in large pieces, so that the page cache holds the file in huge pages. */
#define PIECE_BYTES ((size_t)4 << 20)

struct mw_cache_source {
	struct mw_cache_stamp stamp;
};

struct mw_cache_source *mw_cache_source_new(const struct mw_data_request *req)
{
	struct mw_cache_source *s = malloc(sizeof(*s));
	if (s && !mw_cache_stat(req->path, &s->stamp)) {
		free(s);
		return NULL;
	}
	return s;
}

void mw_cache_source_free(struct mw_cache_source *s)
{
	free(s);
}

/* ---- a stream of bytes into a file, with the checksums of its blocks */

struct stream {
	int fd;
	char *piece;
	size_t n;         /* in piece */
	uint64_t written; /* before piece */
	uint64_t *sum, blocks;
};

static bool write_exactly(int fd, const char *p, size_t n, uint64_t at)
{
	while (n) {
		ssize_t w = pwrite(fd, p, n, (off_t)at);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return false;
		p += w;
		n -= (size_t)w;
		at += (uint64_t)w;
	}
	return true;
}

static bool flush(struct stream *s)
{
	for (size_t i = 0; i < s->n; i += MW_CACHE_BLOCK_BYTES) {
		size_t skip = s->written + i ? 0 : MW_CACHE_HEAD_BYTES;
		size_t n = s->n - i < MW_CACHE_BLOCK_BYTES ? s->n - i : MW_CACHE_BLOCK_BYTES;
		s->sum[s->blocks++] = mw_checksum(0, s->piece + i + skip, n - skip);
	}
	if (!write_exactly(s->fd, s->piece, s->n, s->written))
		return false;
	s->written += s->n;
	s->n = 0;
	return true;
}

/* n bytes; NULL: zeros. */
static bool put(struct stream *s, const void *bytes, uint64_t n)
{
	for (const char *p = bytes; n;) {
		size_t room = PIECE_BYTES - s->n, k = n < room ? (size_t)n : room;
		if (p)
			memcpy(s->piece + s->n, p, k);
		else
			memset(s->piece + s->n, 0, k);
		p = p ? p + k : NULL;
		s->n += k;
		n -= k;
		if (s->n == PIECE_BYTES && !flush(s))
			return false;
	}
	return true;
}

static bool put_up_to(struct stream *s, uint64_t at)
{
	return put(s, NULL, at - s->written - s->n);
}

/* ---- the file */

static bool put_all(struct stream *s, const struct mw_dataset *d, struct mw_cache_head *h)
{
	const void *array[MW_CACHE_ARRAYS] = { d->row_ptr, d->col, d->val, d->y, d->label_value,
		d->label_count };
	uint64_t bytes[MW_CACHE_ARRAYS] = { (d->rows + 1) * sizeof(*d->row_ptr), d->nnz * sizeof(*d->col),
		d->nnz * sizeof(*d->val), d->rows * sizeof(*d->y), d->classes * sizeof(*d->label_value),
		d->classes * sizeof(*d->label_count) };
	bool ok = true;
	for (int i = 0; i < MW_CACHE_ARRAYS && ok; i++)
		ok = put_up_to(s, h->at[i]) && put(s, array[i], bytes[i]);
	if (!ok || !put_up_to(s, h->bytes) || !flush(s))
		return false;
	h->content = mw_checksum(h->bytes, s->sum, s->blocks * sizeof(*s->sum));
	h->head = mw_cache_head_sum(h);
	return write_exactly(s->fd, (const char *)h, sizeof(*h), 0);
}

static bool write_content(int fd, const struct mw_dataset *d, struct mw_cache_head *h)
{
	struct stream s = { .fd = fd, .piece = malloc(PIECE_BYTES) };
	bool ok;
	s.sum = calloc(h->bytes / MW_CACHE_BLOCK_BYTES + 1, sizeof(*s.sum));
	ok = s.piece && s.sum;
	if (!ok)
		errno = ENOMEM;
	/* A full disk is found before anything is written; a file system that can't tell is no obstacle. */
	if (ok && fallocate(fd, 0, 0, (off_t)h->bytes) < 0 &&
		(errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		ok = false;
	ok = ok && put_all(&s, d, h) && fsync(fd) == 0;
	free(s.piece);
	free(s.sum);
	return ok;
}

/* A file without a name, which a crash leaves no trace of; else one with a name of its own. */
static int open_nameless(const char *path, char *name)
{
	char *slash = strrchr(name, '/');
	int fd;
	*slash = 0;
	fd = open(slash == name ? "/" : name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
	*slash = '/';
	sprintf(name, "%s.%ld.tmp", path, (long)gettid()); /* two threads may write at once */
	if (fd < 0) {
		sprintf(name, "%s.XXXXXX", path);
		fd = mkostemp(name, O_CLOEXEC);
	}
	return fd;
}

static bool give_name(int fd, const char *temporary, const char *path)
{
	char proc[64];
	struct stat st;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) < 0)
		return false;
	if (!st.st_nlink) {
		unlink(temporary);
		if (linkat(AT_FDCWD, proc, AT_FDCWD, temporary, AT_SYMLINK_FOLLOW) < 0)
			return false;
	}
	if (fchmod(fd, 0644) == 0 && rename(temporary, path) == 0)
		return true;
	unlink(temporary);
	return false;
}

static bool write_file(const char *path, const struct mw_dataset *d, struct mw_cache_head *h)
{
	char *name = malloc(strlen(path) + 32);
	int fd, saved;
	bool ok;
	if (!name)
		return false;
	strcpy(name, path);
	fd = open_nameless(path, name);
	ok = fd >= 0 && write_content(fd, d, h);
	ok = ok && give_name(fd, name, path);
	saved = errno;
	if (fd >= 0 && !ok)
		unlink(name); /* if it has one */
	if (fd >= 0)
		close(fd);
	free(name);
	errno = saved;
	return ok;
}

/* ---- */

static void make_head(const struct mw_dataset *d, struct mw_cache_head *h)
{
	memcpy(h->magic, MW_CACHE_MAGIC, sizeof(h->magic));
	h->byte_order = MW_CACHE_BYTE_ORDER;
	h->version = MW_CACHE_VERSION;
	strncpy(h->program, MW_VERSION, sizeof(h->program) - 1);
	h->rows = d->rows;
	h->nnz = d->nnz;
	h->features = d->features;
	h->classes = d->classes;
	h->index_base = d->index_base;
	h->text_bytes = d->file_bytes;
}

/* The source's checksums, if it is still what it was before it was read. */
static bool stamp_source(
	const struct mw_data_request *req, const struct mw_cache_source *before, struct mw_cache_stamp *s)
{
	struct mw_cache_stamp now;
	*s = before->stamp;
	return mw_cache_samples(req->path, s->size, &s->samples) &&
	       mw_cache_whole(req->path, s->size, req->threads, &s->all) && mw_cache_stat(req->path, &now) &&
	       mw_cache_same_times(&now, s);
}

static void make_user_folder(const char *path)
{
	char *folder = mw_strdup(path);
	char *slash = folder ? strrchr(folder, '/') : NULL, *parent;
	if (slash) {
		*slash = 0;
		parent = strrchr(folder, '/');
		if (parent && parent != folder) {
			*parent = 0;
			mkdir(folder, 0700);
			*parent = '/';
		}
		mkdir(folder, 0700);
	}
	free(folder);
}

void mw_cache_store(
	const struct mw_data_request *req, const struct mw_cache_source *before, struct mw_dataset *d)
{
	struct mw_cache_head h;
	char *path[MW_CACHE_PLACES];
	bool done = false;
	memset(&h, 0, sizeof(h)); /* padding too: it is part of the checksum */
	mw_cache_make_key(req, &h.key);
	make_head(d, &h);
	if (!before || !mw_cache_layout(&h) || !stamp_source(req, before, &h.source)) {
		mw_cache_note(d, "not written: the data file changes");
		return;
	}
	mw_cache_paths(req->path, &h.key, path);
	for (int i = 0; i < MW_CACHE_PLACES; i++) {
		if (path[i] && !done) {
			if (i)
				make_user_folder(path[i]);
			done = write_file(path[i], d, &h);
			mw_cache_note(
				d, done ? "written: %s" : "not written: %s: %s", path[i], strerror(errno));
		}
		free(path[i]);
	}
}
