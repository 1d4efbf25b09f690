/* mem.c: see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/shared.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define ADVICE_COLLAPSE \
	25 /* MADV_COLLAPSE of Linux 6.1: older headers don't have it, older kernels refuse it */

/*
 * Large blocks come straight from the kernel: zero without being written, so that the thread that first uses a page
 * places it, and asked to be huge pages. AddressSanitizer knows only the allocator's blocks.
 */
#if defined(__SANITIZE_ADDRESS__)
#define MAP_LARGE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAP_LARGE 0
#endif
#endif
#ifndef MAP_LARGE
#define MAP_LARGE 1
#endif

/* In front of every block, on a line of its own. */
struct header {
	void *base;
	size_t mapped; /* bytes of the mapping; 0: from the allocator */
};

static struct header *header_of(void *p)
{
	return (struct header *)(void *)((char *)p - MW_LINE_BYTES);
}

static void *alloc_small(size_t size)
{
	_Static_assert(MW_READABLE_BYTES <= MW_LINE_BYTES, "a line in front, and one behind");
	char *base = aligned_alloc(MW_LINE_BYTES, size + 2 * MW_LINE_BYTES);
	if (!base)
		return NULL;
	memset(base, 0, size + MW_LINE_BYTES);
	*(struct header *)(void *)base = (struct header){ base, 0 };
	return base + MW_LINE_BYTES;
}

/* Sync: any thread, relaxed: a setting that blocks made later follow. */
static int thp_setting = MW_THP_MADVISE;

void mw_thp_set(enum mw_thp thp)
{
	__atomic_store_n(&thp_setting, (int)thp, __ATOMIC_RELAXED);
}

static enum mw_thp thp(void)
{
	return (enum mw_thp)__atomic_load_n(&thp_setting, __ATOMIC_RELAXED);
}

void mw_thp_advise(void *p, size_t bytes)
{
	if (thp() == MW_THP_OFF)
		madvise(p, bytes, MADV_NOHUGEPAGE);
	else if (bytes >= HUGE_PAGE_BYTES)
		madvise(p, bytes, MADV_HUGEPAGE); /* advice: a refusal costs speed only */
}

void mw_thp_collapse(void *p, size_t bytes)
{
	char *start = (char *)(((uintptr_t)p + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1));
	char *end = (char *)(((uintptr_t)p + bytes) & ~(HUGE_PAGE_BYTES - 1));
	if (thp() == MW_THP_ON && end > start)
		madvise(start, (size_t)(end - start), ADVICE_COLLAPSE);
}

bool mw_thp_used(uint64_t *all, uint64_t *huge)
{
	char line[128];
	unsigned long long kb;
	int found = 0;
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Anonymous: %llu", &kb) == 1) {
			*all = kb * 1024;
			found |= 1;
		}
		if (sscanf(line, "AnonHugePages: %llu", &kb) == 1) {
			*huge = kb * 1024;
			found |= 2;
		}
	}
	if (f)
		fclose(f);
	return found == 3;
}

static void *alloc_large(size_t size)
{
	size_t mapped = size + 2 * HUGE_PAGE_BYTES; /* nearly one of them is behind the block */
	char *base = mmap(
		NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	char *p = (char *)(((uintptr_t)base + HUGE_PAGE_BYTES + MW_LINE_BYTES) & ~(HUGE_PAGE_BYTES - 1));
	if (p < base + MW_LINE_BYTES)
		p += HUGE_PAGE_BYTES;
	mw_thp_advise(p, size);
	*header_of(p) = (struct header){ base, mapped };
	return p;
}

/* More than the machine has would only be found out when it is touched: ask before. */
static bool is_there(size_t bytes)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	return pages <= 0 || bytes / (size_t)page <= (size_t)pages;
}

static void *alloc(size_t bytes, bool large, const char *what, struct mw_err *err)
{
	size_t align = large ? HUGE_PAGE_BYTES : MW_LINE_BYTES, size = 0;
	void *p = NULL;
	if (bytes < SIZE_MAX - 4 * HUGE_PAGE_BYTES && is_there(bytes)) {
		size = bytes ? (bytes + align - 1) & ~(align - 1) : align;
		p = large ? alloc_large(size) : alloc_small(size);
	}
	if (!p)
		mw_err_set(err, MW_ERESOURCE, "out of memory: %s needs %.6g MB", what, (double)bytes / 1e6);
	return p;
}

void *mw_alloc(size_t bytes, const char *what, struct mw_err *err)
{
	return alloc(bytes, MAP_LARGE && bytes >= HUGE_PAGE_BYTES, what, err);
}

void *mw_alloc_pages(size_t bytes, const char *what, struct mw_err *err)
{
	return alloc(bytes, true, what, err);
}

void *mw_alloc_array(size_t n, size_t size, const char *what, struct mw_err *err)
{
	if (size && n > SIZE_MAX / size) {
		mw_err_set(err, MW_ERESOURCE,
			"%s: %zu elements of %zu bytes are more than an address space holds", what, n, size);
		return NULL;
	}
	return mw_alloc(n * size, what, err);
}

/* Give the pages of one mapping to another. */
static bool move_pages(void *to, void *from, size_t bytes)
{
	bytes = (bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
	return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

int mw_grow(void **p, size_t old, size_t bytes, const char *what, struct mw_err *err)
{
	void *q = mw_alloc(bytes, what, err);
	if (!q)
		return MW_ERESOURCE;
	if (old && (!header_of(*p)->mapped || !header_of(q)->mapped || !move_pages(q, *p, old)))
		memcpy(q, *p, old);
	mw_free(*p);
	*p = q;
	return 0;
}

void mw_free(void *p)
{
	if (!p)
		return;
	struct header h = *header_of(p);
	if (h.mapped)
		munmap(h.base, h.mapped);
	else
		free(h.base);
}

char *mw_strdup(const char *s)
{
	return s ? strdup(s) : NULL;
}

char *mw_strprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return s;
}
