/*
 * arena.c: memory that goes where a policy says, by jemalloc arenas whose extents are mapped and placed here.
 *
 * Two rules for the extent hooks of jemalloc 5: none of them unmaps (with retained extents it would join
 * neighbours of different arenas), and none allocates (the arena is locked), so that pages are bound by the
 * bare system call. Without jemalloc (sanitizers can't see into it) each block is a mapping of its own.
 */
#include "topo/arena.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#include "base/mem.h"
#include "base/shared.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

struct mw_arena {
#ifdef HAVE_JEMALLOC
	extent_hooks_t hooks; /* first, so that a hook finds its arena */
	unsigned index;
#endif
	int refused; /* Sync: any thread, relaxed: only ever goes from 0 to an errno */
	struct mw_arena *next;
	struct mw_mem_policy policy;
};

/* Sync: arenas_lock guards the list; arenas themselves are immutable but for `refused`. */
static struct mw_arena *arenas;
static pthread_mutex_t arenas_lock = PTHREAD_MUTEX_INITIALIZER;

static long mbind_call(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags)
{
	return syscall(SYS_mbind, p, bytes, (long)mode, mask, bits, (long)flags);
}

long (*mw_arena_mbind)(void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits,
	unsigned flags) = mbind_call;

int mw_arena_refused(const struct mw_arena *a)
{
	return __atomic_load_n(&a->refused, __ATOMIC_RELAXED);
}

/* Touch every page from a CPU of the node: a page is where the thread runs that touches it first. */
static void touch_pages(const struct mw_arena *a, char *p, size_t bytes)
{
	unsigned long before[MW_CPU_WORDS];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(before), before);
	bool moved = n > 0 && !syscall(SYS_sched_setaffinity, 0, sizeof(a->policy.cpus), a->policy.cpus);
	for (size_t i = 0; i < bytes; i += page)
		*(volatile char *)(p + i) = 0;
	if (moved)
		syscall(SYS_sched_setaffinity, 0, (size_t)n, before);
}

/* Place fresh pages. A refusal leaves them to the first thread that touches them: kept for the notes, not an
 * error. */
static void place_pages(struct mw_arena *a, void *p, size_t bytes)
{
	mw_thp_advise(p, bytes);
	if (a->policy.mode == MPOL_INTERLEAVE && bytes < MW_HUGE_FROM)
		madvise(p, bytes, MADV_NOHUGEPAGE); /* one huge page is on one node */
	if (a->policy.mode == MPOL_DEFAULT)
		touch_pages(a, p, bytes);
	else if (mw_arena_mbind(p, bytes, a->policy.mode, a->policy.nodes, MW_NODE_BITS + 1, 0) < 0)
		__atomic_store_n(&a->refused, errno, __ATOMIC_RELAXED);
}

/* Not accessible yet. */
static char *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/*
 * A mapping on an address that is a multiple of align, between two pages that nobody may touch; what is too much on both
 * sides is given back. Without such pages the kernel joins a fresh mapping with neighbours of the same kind, and before it is
 * bound another thread's first touch beside it can fill a huge page that reaches into it, on that thread's node.
 */
static void *map_aligned(struct mw_arena *a, size_t bytes, size_t align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (bytes >= HUGE_PAGE_BYTES && align < HUGE_PAGE_BYTES)
		align = HUGE_PAGE_BYTES;
	size_t extra = align > page ? align : 0;
	if (bytes > SIZE_MAX - extra - 2 * page)
		return NULL;
	char *p = reserve(bytes + extra + 2 * page);
	if (!p)
		return NULL;
	size_t before = extra ? -(uintptr_t)(p + page) & (align - 1) : 0, after = extra - before;
	if (before)
		munmap(p, before);
	p += before + page;
	if (after)
		munmap(p + bytes + page, after);
	if (mprotect(p, bytes, PROT_READ | PROT_WRITE)) {
		munmap(p - page, bytes + 2 * page);
		return NULL;
	}
	place_pages(a, p, bytes);
	return p;
}

static void *out_of_memory(size_t bytes, const char *what, const struct mw_arena *a, struct mw_err *err)
{
	mw_err_set(err, MW_ERESOURCE, "out of memory: %s needs %.1f MB on node P#%u", what,
		(double)bytes / 1e6, a->policy.os);
	return NULL;
}

static size_t alignment(size_t bytes)
{
	return bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : MW_LINE_BYTES;
}

#ifdef HAVE_JEMALLOC

static void *hook_alloc(extent_hooks_t *hooks, void *wanted, size_t size, size_t align, bool *zero,
	bool *commit, unsigned index)
{
	(void)index;
	void *p = wanted ? NULL
			 : map_aligned((struct mw_arena *)(void *)hooks, size,
				   align); /* no address is promised */
	if (p)
		*zero = *commit = true;
	return p;
}

static bool hook_purge(
	extent_hooks_t *hooks, void *p, size_t size, size_t offset, size_t length, unsigned index)
{
	(void)size, (void)index;
	if (((struct mw_arena *)(void *)hooks)->policy.mode == MPOL_DEFAULT)
		return true; /* a page given back would be placed anew, by anyone */
	return madvise((char *)p + offset, length, MADV_DONTNEED) != 0;
}

static bool hook_split(
	extent_hooks_t *hooks, void *p, size_t size, size_t a, size_t b, bool committed, unsigned index)
{
	(void)hooks, (void)p, (void)size, (void)a, (void)b, (void)committed, (void)index;
	return false;
}

static int open_arena(struct mw_arena *a, struct mw_err *err)
{
	extent_hooks_t *hooks = &a->hooks;
	size_t size = sizeof(a->index);
	*hooks = (extent_hooks_t){
		.alloc = hook_alloc, .purge_forced = hook_purge, .split = hook_split
	}; /* no merge: jemalloc 5.3.0 can take neighbours of different arenas, hence nodes, for one */
	int e = mallctl("arenas.create", &a->index, &size, &hooks, sizeof(hooks));
	if (e)
		MW_FAIL(err, RESOURCE, "jemalloc cannot make an arena for node P#%u: %s", a->policy.os,
			strerror(e));
	return 0;
}

void *mw_arena_alloc(struct mw_arena *a, size_t bytes, const char *what, struct mw_err *err)
{
	size_t align = alignment(bytes);
	if (bytes > SIZE_MAX / 2)
		return out_of_memory(bytes, what, a, err);
	/* no thread cache: it would mix nodes */
	int flags = MALLOCX_ARENA(a->index) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(align) | MALLOCX_ZERO;
	void *p = mallocx(bytes + MW_READABLE_BYTES, flags);
	if (!p)
		return out_of_memory(bytes, what, a, err);
	if (align == HUGE_PAGE_BYTES && a->policy.mode != MPOL_INTERLEAVE)
		mw_thp_advise(p, bytes); /* the extent may have been mapped under another setting */
	return p;
}

void mw_arena_free(void *p)
{
	if (p)
		dallocx(p, MALLOCX_TCACHE_NONE);
}

#else

/* The line before a block says what to unmap. */
struct mapping {
	void *start;
	size_t bytes;
};

static int open_arena(struct mw_arena *a, struct mw_err *err)
{
	(void)a, (void)err;
	return 0;
}

void *mw_arena_alloc(struct mw_arena *a, size_t bytes, const char *what, struct mw_err *err)
{
	size_t align = alignment(bytes), page = (size_t)sysconf(_SC_PAGESIZE),
	       head = align > page ? align : page;
	if (bytes > SIZE_MAX / 2)
		return out_of_memory(bytes, what, a, err);
	size_t size = (head + bytes + MW_READABLE_BYTES + page - 1) & ~(page - 1);
	char *start = map_aligned(a, size, align);
	if (!start)
		return out_of_memory(bytes, what, a, err);
	*(struct mapping *)(void *)(start + head - MW_LINE_BYTES) = (struct mapping){ start, size };
	return start + head;
}

void mw_arena_free(void *p)
{
	if (!p)
		return;
	struct mapping mapping = *(struct mapping *)(void *)((char *)p - MW_LINE_BYTES);
	size_t page = (size_t)sysconf(_SC_PAGESIZE); /* one in front, one behind */
	munmap((char *)mapping.start - page, mapping.bytes + 2 * page);
}

#endif

/* Ask the kernel once, on a page that nobody needs, so that a refusal is known before work starts. */
static void try_binding(struct mw_arena *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = a->policy.mode == MPOL_DEFAULT ? NULL : reserve(page);
	if (!p)
		return;
	place_pages(a, p, page);
	munmap(p, page);
}

static struct mw_arena *make_arena(const struct mw_mem_policy *policy, struct mw_err *err)
{
	struct mw_arena *a = mw_alloc(sizeof(*a), "memory arena", err);
	if (!a)
		return NULL;
	a->policy = *policy;
	if (open_arena(a, err) < 0) {
		mw_free(a);
		return NULL;
	}
	try_binding(a);
	return a;
}

struct mw_arena *mw_arena_get(const struct mw_mem_policy *policy, struct mw_err *err)
{
	struct mw_arena *a;
	pthread_mutex_lock(&arenas_lock);
	for (a = arenas; a && memcmp(&a->policy, policy, sizeof(*policy)) != 0;)
		a = a->next;
	if (!a && (a = make_arena(policy, err))) {
		a->next = arenas;
		arenas = a;
	}
	pthread_mutex_unlock(&arenas_lock);
	return a;
}
