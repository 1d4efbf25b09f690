/* cache_source.c: is a source file still what it was, and where does its cache lie? */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "data/cache_file.h"
#include "data/parallel.h"

#define SAMPLES      16
#define SAMPLE_BYTES 4096
/* Coarser than the clock of any file system that is in use (FAT: 2 s). */
#define SETTLED_S 3

void mw_cache_note(struct mw_dataset *d, const char *fmt, ...)
{
	char *note = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&note, fmt, ap) < 0)
		note = NULL;
	va_end(ap);
	free(d->cache_note);
	d->cache_note = note;
}

/* ---- what was asked */

void mw_cache_make_key(const struct mw_data_request *req, struct mw_cache_key *key)
{
	const struct mw_dataset *like = req->like;
	*key = (struct mw_cache_key){
		.index_base = req->index_base, .features = req->features, .label_kind = req->label_kind
	};
	if (!like)
		return;
	key->like = 1;
	key->like_libsvm = like->format && !strcmp(like->format, "libsvm");
	key->like_base = like->index_base;
	key->like_features = like->features;
	key->like_classes = like->classes;
	if (like->classes)
		key->like_labels =
			mw_checksum(0, like->label_value, like->classes * sizeof(*like->label_value));
}

/* ---- the state of the source */

bool mw_cache_stat(const char *path, struct mw_cache_stamp *s)
{
	struct stat st;
	struct timespec now;
	int64_t last;
	if (stat(path, &st) < 0 || clock_gettime(CLOCK_REALTIME, &now) < 0)
		return false;
	*s = (struct mw_cache_stamp){ .size = (uint64_t)st.st_size,
		.mtime_s = st.st_mtim.tv_sec,
		.mtime_ns = st.st_mtim.tv_nsec,
		.ctime_s = st.st_ctim.tv_sec,
		.ctime_ns = st.st_ctim.tv_nsec,
		.inode = st.st_ino,
		.device = st.st_dev };
	last = s->mtime_s > s->ctime_s ? s->mtime_s : s->ctime_s;
	s->settled = now.tv_sec - last >= SETTLED_S;
	return true;
}

bool mw_cache_same_times(const struct mw_cache_stamp *a, const struct mw_cache_stamp *b)
{
	return a->size == b->size && a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns &&
	       a->ctime_s == b->ctime_s && a->ctime_ns == b->ctime_ns && a->inode == b->inode &&
	       a->device == b->device;
}

static bool read_exactly(int fd, void *buf, size_t n, uint64_t at)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = pread(fd, (char *)buf + got, n - got, (off_t)(at + got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		got += (size_t)r;
	}
	return true;
}

static int open_source(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool mw_cache_samples(const char *path, uint64_t size, uint64_t *sum)
{
	char block[SAMPLE_BYTES];
	uint64_t n = size < SAMPLE_BYTES ? size : SAMPLE_BYTES, last = size - n;
	int fd = open_source(path);
	bool ok = fd >= 0;
	*sum = size;
	for (uint64_t i = 0; ok && i < SAMPLES; i++) {
		ok = read_exactly(fd, block, (size_t)n, last / (SAMPLES - 1) * i);
		*sum = mw_checksum(*sum, block, (size_t)n);
	}
	ok = ok && read_exactly(fd, block, (size_t)n, last);
	*sum = mw_checksum(*sum, block, (size_t)n);
	if (fd >= 0)
		close(fd);
	return ok;
}

struct whole {
	int fd;
	uint64_t size, blocks;
	uint64_t *sum;         /* of each block */
	_Atomic uint64_t next; /* block to take; Sync: relaxed, hands out numbers only */
	_Atomic bool failed;   /* Sync: relaxed, read after the join */
};

static void whole_task(void *ctx, int thread)
{
	struct whole *w = ctx;
	char *buf = malloc(MW_CACHE_BLOCK_BYTES);
	(void)thread;
	for (uint64_t i; (i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < w->blocks;) {
		uint64_t at = i * MW_CACHE_BLOCK_BYTES,
			 n = w->size - at < MW_CACHE_BLOCK_BYTES ? w->size - at : MW_CACHE_BLOCK_BYTES;
		if (!buf || !read_exactly(w->fd, buf, (size_t)n, at)) {
			atomic_store_explicit(&w->failed, true, memory_order_relaxed);
			break;
		}
		w->sum[i] = mw_checksum(0, buf, (size_t)n);
	}
	free(buf);
}

bool mw_cache_whole(const char *path, uint64_t size, int threads, uint64_t *sum)
{
	struct whole w = { .fd = open_source(path), .size = size };
	w.blocks = (size + MW_CACHE_BLOCK_BYTES - 1) / MW_CACHE_BLOCK_BYTES;
	w.sum = calloc(w.blocks + 1, sizeof(*w.sum));
	w.failed = w.fd < 0 || !w.sum;
	if (!w.failed)
		mw_parallel_run(mw_parallel_threads(threads, w.blocks, 2), whole_task, &w);
	if (!w.failed)
		*sum = mw_checksum(size, w.sum, w.blocks * sizeof(*w.sum));
	if (w.fd >= 0)
		close(w.fd);
	free(w.sum);
	return !w.failed;
}

/* ---- where the cache lies */

static char *user_folder(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	if (xdg && xdg[0] == '/')
		return mw_strprintf("%s/mixwild", xdg);
	return home && home[0] == '/' ? mw_strprintf("%s/.cache/mixwild", home) : NULL;
}

void mw_cache_paths(const char *source, const struct mw_cache_key *key, char *path[MW_CACHE_PLACES])
{
	unsigned long long sum = mw_checksum(MW_CACHE_VERSION, key, sizeof(*key));
	char *real = realpath(source, NULL), *folder = user_folder();
	const char *slash = real ? strrchr(real, '/') : NULL;
	path[0] = path[1] = NULL;
	if (real)
		path[0] = mw_strprintf("%s.%016llx.mwcache", real, sum);
	/* There, files of all folders lie together. */
	if (slash && folder)
		path[1] = mw_strprintf("%s/%.100s.%016llx.mwcache", folder, slash + 1,
			(unsigned long long)mw_checksum(sum, real, strlen(real)));
	free(folder);
	free(real);
}
