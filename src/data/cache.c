/* cache.c: finds, checks and maps the cache of a data set; see cache.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checksum.h"
#include "data/cache_file.h"
#include "data/labels.h"
#include "data/parallel.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* ---- the form of the file */

static const size_t element_bytes[MW_CACHE_ARRAYS] = { 8, 4, 4, 4, 8, 8 };

static void count_elements(const struct mw_cache_head *h, uint64_t n[MW_CACHE_ARRAYS])
{
	n[MW_CACHE_ROW_PTR] = h->rows + 1;
	n[MW_CACHE_COL] = n[MW_CACHE_VAL] = h->nnz;
	n[MW_CACHE_Y] = h->rows;
	n[MW_CACHE_LABEL_VALUE] = n[MW_CACHE_LABEL_COUNT] = h->classes;
}

bool mw_cache_layout(struct mw_cache_head *h)
{
	uint64_t n[MW_CACHE_ARRAYS], at = MW_CACHE_HEAD_BYTES;
	if (h->rows >= UINT64_MAX / 64 || h->nnz >= UINT64_MAX / 64 || h->classes > MW_CLASSES_MAX)
		return false;
	count_elements(h, n);
	for (int i = 0; i < MW_CACHE_ARRAYS; i++) {
		h->at[i] = at;
		at = (at + n[i] * element_bytes[i] + MW_CACHE_PAD + 63) & ~(uint64_t)63;
	}
	h->bytes = at;
	return at < INT64_MAX;
}

uint64_t mw_cache_head_sum(const struct mw_cache_head *h)
{
	return mw_checksum(0, h, offsetof(struct mw_cache_head, head));
}

/* ---- is the head one that we can use? NULL, or what is wrong with it */

static bool layout_holds(const struct mw_cache_head *h, uint64_t bytes)
{
	struct mw_cache_head want = *h;
	return mw_cache_layout(&want) && !memcmp(want.at, h->at, sizeof(h->at)) && want.bytes == h->bytes &&
	       bytes == h->bytes && h->rows && h->features && h->features < UINT32_MAX &&
	       h->index_base <= 1 && h->classes != 1;
}

static const char *judge_head(const struct mw_cache_head *h, uint64_t bytes)
{
	if (memcmp(h->magic, MW_CACHE_MAGIC, sizeof(h->magic)))
		return "is no cache file";
	if (h->byte_order != MW_CACHE_BYTE_ORDER)
		return "is of a machine with another byte order";
	if (h->version != MW_CACHE_VERSION || strncmp(h->program, MW_VERSION, sizeof(h->program)))
		return "was written by another version of mixwild";
	if (h->head != mw_cache_head_sum(h))
		return "is damaged (its head)";
	return layout_holds(h, bytes) ? NULL : "is damaged (its length)";
}

/* ---- is it of this source, as the source is now? */

static const char *judge_source(
	const struct mw_data_request *req, const struct mw_cache_head *h, struct mw_cache_stamp *fresh)
{
	struct mw_cache_stamp now;
	struct mw_cache_key key;
	*fresh = h->source;
	uint64_t sum = 0;
	mw_cache_make_key(req, &key);
	if (memcmp(&key, &h->key, sizeof(key)))
		return "was made with other options";
	if (!mw_cache_stat(req->path, &now) || now.size != h->source.size)
		return "is of an earlier state of the data file";
	if (mw_cache_same_times(&now, &h->source) && h->source.settled)
		return mw_cache_samples(req->path, now.size, &sum) && sum == h->source.samples
			       ? NULL
			       : "is of an earlier state of the data file";
	if (!mw_cache_whole(req->path, now.size, req->threads, &sum) || sum != h->source.all)
		return "is of an earlier state of the data file";
	/* The next start needn't read all of it again, if nothing happened meanwhile. */
	if (mw_cache_stat(req->path, fresh) && mw_cache_same_times(&now, fresh) && now.settled) {
		fresh->settled = 1;
		fresh->samples = h->source.samples;
		fresh->all = h->source.all;
	} else {
		*fresh = h->source;
	}
	return NULL;
}

/* ---- the content: checksums, and that no index or class leads out of an array */

struct content {
	const struct mw_cache_head *head;
	const char *map;
	uint64_t n[MW_CACHE_ARRAYS]; /* elements */
	uint64_t blocks;
	uint64_t *sum;         /* of each block */
	_Atomic uint64_t next; /* block to take; Sync: relaxed, hands out numbers only */
	_Atomic bool bad;      /* Sync: relaxed, read after the join */
};

static bool increasing(const uint64_t *row_ptr, uint64_t n)
{
	bool ok = true;
	for (uint64_t i = 0; i < n; i++)
		ok &= row_ptr[i] <= row_ptr[i + 1];
	return ok;
}

/* As signed numbers, which every instruction set can compare by vectors; the top bit is turned over for that. */
static bool below(const uint32_t *x, uint64_t n, uint32_t limit)
{
	int32_t top = (int32_t)((limit - 1) ^ 0x80000000U), bad = 0;
	for (uint64_t i = 0; i < n; i++)
		bad |= (int32_t)(x[i] ^ 0x80000000U) > top;
	return !bad;
}

static bool finite_floats(const uint32_t *bits, uint64_t n)
{
	int32_t bad = 0;
	for (uint64_t i = 0; i < n; i++)
		bad |= (int32_t)(bits[i] & 0x7fffffffU) >= 0x7f800000;
	return !bad;
}

static bool labels_hold(const float *y, uint64_t n, uint64_t classes)
{
	bool ok = true;
	if (!classes)
		return finite_floats((const uint32_t *)(const void *)y, n);
	for (uint64_t i = 0; i < n; i++)
		ok &= classes == 2 ? y[i] == -1 || y[i] == 1
				   : y[i] >= 0 && y[i] < (float)classes && y[i] == (float)(uint32_t)y[i];
	return ok;
}

/* Elements from..to of one array. */
static bool array_holds(const struct content *c, int array, uint64_t from, uint64_t to)
{
	const struct mw_cache_head *h = c->head;
	const char *at = c->map + h->at[array] + from * element_bytes[array];
	uint64_t n = to - from;
	switch (array) {
	case MW_CACHE_ROW_PTR:
		return increasing((const uint64_t *)(const void *)at, to > h->rows ? n - 1 : n);
	case MW_CACHE_COL: return below((const uint32_t *)(const void *)at, n, (uint32_t)h->features);
	case MW_CACHE_VAL: return finite_floats((const uint32_t *)(const void *)at, n);
	case MW_CACHE_Y: return labels_hold((const float *)(const void *)at, n, h->classes);
	default: return true;
	}
}

/* The parts of the arrays that lie between two offsets, both multiples of every element's size. */
static bool block_holds(const struct content *c, uint64_t begin, uint64_t end)
{
	bool ok = true;
	for (int i = 0; i < MW_CACHE_ARRAYS; i++) {
		uint64_t at = c->head->at[i], stop = at + c->n[i] * element_bytes[i];
		uint64_t from = begin > at ? begin : at, to = end < stop ? end : stop;
		if (from < to)
			ok &= array_holds(c, i, (from - at) / element_bytes[i], (to - at) / element_bytes[i]);
	}
	return ok;
}

static void check_task(void *ctx, int thread)
{
	struct content *c = ctx;
	(void)thread;
	for (uint64_t i; (i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed)) < c->blocks;) {
		uint64_t begin = i ? i * MW_CACHE_BLOCK_BYTES : MW_CACHE_HEAD_BYTES,
			 end = (i + 1) * MW_CACHE_BLOCK_BYTES;
		if (end > c->head->bytes)
			end = c->head->bytes;
		c->sum[i] = mw_checksum(0, c->map + begin, (size_t)(end - begin));
		if (!block_holds(c, begin, end))
			atomic_store_explicit(&c->bad, true, memory_order_relaxed);
	}
}

static const char *judge_content(
	const struct mw_data_request *req, const struct mw_cache_head *h, const char *map)
{
	struct content c = { .head = h, .map = map };
	const uint64_t *row_ptr = (const uint64_t *)(const void *)(map + h->at[MW_CACHE_ROW_PTR]);
	bool whole;
	count_elements(h, c.n);
	c.blocks = (h->bytes + MW_CACHE_BLOCK_BYTES - 1) / MW_CACHE_BLOCK_BYTES;
	c.sum = calloc(c.blocks, sizeof(*c.sum));
	if (!c.sum)
		return "can't be checked: out of memory";
	mw_parallel_run(mw_parallel_threads(req->threads, c.blocks, 8), check_task, &c);
	whole = mw_checksum(h->bytes, c.sum, c.blocks * sizeof(*c.sum)) == h->content;
	free(c.sum);
	if (!whole)
		return "is damaged (its checksum)";
	return c.bad || row_ptr[0] || row_ptr[h->rows] != h->nnz ? "is damaged (an index out of bounds)"
								 : NULL;
}

/* ---- mapping */

/* At a multiple of a huge page, so that the kernel can map it by huge pages. */
static char *map_file(int fd, size_t bytes)
{
	size_t reserved = bytes + HUGE_PAGE_BYTES;
	char *base = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at;
	size_t before, used = (bytes + MW_CACHE_HEAD_BYTES - 1) / MW_CACHE_HEAD_BYTES * MW_CACHE_HEAD_BYTES;
	if (base == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)base + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1));
	before = (size_t)(at - base);
	if (mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		munmap(base, reserved);
		return NULL;
	}
	madvise(at, bytes,
		MADV_HUGEPAGE); /* advice only, as is what follows: the rest of the reservation goes */
	if (before)
		munmap(base, before);
	if (reserved - before > used)
		munmap(at + used, reserved - before - used);
	return at;
}

static void fill(struct mw_dataset *d, const struct mw_cache_head *h, char *map)
{
	d->kind = MW_X_CSR;
	d->rows = h->rows;
	d->nnz = h->nnz;
	d->features = (uint32_t)h->features;
	d->classes = (uint32_t)h->classes;
	d->index_base = (uint32_t)h->index_base;
	d->file_bytes = h->text_bytes;
	d->map = map;
	d->map_bytes = (size_t)h->bytes;
	d->row_ptr = (uint64_t *)(void *)(map + h->at[MW_CACHE_ROW_PTR]);
	d->col = (uint32_t *)(void *)(map + h->at[MW_CACHE_COL]);
	d->val = (float *)(void *)(map + h->at[MW_CACHE_VAL]);
	d->y = (float *)(void *)(map + h->at[MW_CACHE_Y]);
	if (!d->classes)
		return;
	d->label_value = (double *)(void *)(map + h->at[MW_CACHE_LABEL_VALUE]);
	d->label_count = (uint64_t *)(void *)(map + h->at[MW_CACHE_LABEL_COUNT]);
}

/* Of ourselves, of root, or of who made the data: others could give us wrong data in a folder that all may write to. */
static bool owner_is_trusted(const char *source, const struct stat *cache)
{
	struct stat st;
	return cache->st_uid == geteuid() || cache->st_uid == 0 ||
	       (stat(source, &st) == 0 && cache->st_uid == st.st_uid);
}

/* The same source with other times: note them. Only the head changes, which nobody maps for longer than to read it. */
static void refresh(const char *path, struct mw_cache_head *h, const struct mw_cache_stamp *fresh)
{
	int fd;
	if (!memcmp(&h->source, fresh, sizeof(*fresh)))
		return;
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	h->source = *fresh;
	h->head = mw_cache_head_sum(h);
	if (fd < 0)
		return;
	if (pwrite(fd, h, sizeof(*h), 0) < 0)
		errno = 0; /* then the next start checks again */
	close(fd);
}

static const char *use(const struct mw_data_request *req, const char *path, int fd, struct mw_dataset *d)
{
	struct mw_cache_stamp fresh;
	struct mw_cache_head h;
	struct stat st;
	const char *wrong;
	char *map;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || pread(fd, &h, sizeof(h), 0) != sizeof(h))
		return "is no cache file";
	if (!owner_is_trusted(req->path, &st))
		return "belongs to another user";
	wrong = judge_head(&h, (uint64_t)st.st_size);
	if (!wrong)
		wrong = judge_source(req, &h, &fresh);
	if (wrong)
		return wrong;
	map = map_file(fd, (size_t)h.bytes);
	if (!map)
		return "can't be mapped";
	wrong = judge_content(req, &h, map);
	if (wrong) {
		munmap(map, (size_t)h.bytes);
		return wrong;
	}
	fill(d, &h, map);
	if (req->cache == MW_CACHE_ON)
		refresh(path, &h, &fresh);
	return NULL;
}

bool mw_cache_load(const struct mw_data_request *req, struct mw_dataset *d)
{
	struct mw_cache_key key;
	char *path[MW_CACHE_PLACES];
	mw_cache_make_key(req, &key);
	mw_cache_paths(req->path, &key, path);
	for (int i = 0; i < MW_CACHE_PLACES; i++) {
		int fd = path[i] && !d->map ? open(path[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
					    : -1;
		if (fd >= 0) {
			const char *wrong = use(req, path[i], fd, d);
			mw_cache_note(d, "%s: %s%s%s", wrong ? "not used" : "used", path[i], wrong ? " " : "",
				wrong ? wrong : "");
			close(fd);
		}
		free(path[i]);
	}
	return d->map != NULL;
}
