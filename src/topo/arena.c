/*
 * arena.c: memory on one NUMA node, by jemalloc arenas whose extents are mapped and bound here.
 *
 * Two rules for the extent hooks of jemalloc 5: none of them unmaps (with retained extents it would join
 * neighbours of different arenas), and none allocates (the arena is locked), so that pages are bound by the
 * bare system call. Without jemalloc (sanitizers can't see into it) each block is a mapping of its own.
 */
#include "topo/machine.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
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
enum { MASK_BITS = 4096, WORD_BITS = 8 * (int)sizeof(unsigned long) };

struct mw_arena {
#ifdef HAVE_JEMALLOC
	extent_hooks_t hooks; /* first, so that a hook finds its arena */
	unsigned index;
#endif
	unsigned os;
	int refused; /* Sync: any thread, relaxed: only ever goes from 0 to an errno */
	struct mw_arena *next;
	unsigned long mask[MASK_BITS / WORD_BITS];
};

/* Sync: arenas_lock guards the list; arenas themselves are immutable but for `refused`. */
static struct mw_arena *arenas;
static pthread_mutex_t arenas_lock = PTHREAD_MUTEX_INITIALIZER;

static long mbind_call(void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits)
{
	return syscall(SYS_mbind, p, bytes, (long)mode, mask, bits, 0L);
}

long (*mw_arena_mbind)(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits) = mbind_call;

int mw_arena_refused(const struct mw_arena *a)
{
	return __atomic_load_n(&a->refused, __ATOMIC_RELAXED);
}

/* Bind fresh pages. A refusal leaves them to the first thread that touches them: kept for the notes, not an
 * error. */
static void bind_pages(struct mw_arena *a, void *p, size_t bytes)
{
	if (mw_arena_mbind(p, bytes, MPOL_BIND, a->mask, MASK_BITS + 1) < 0)
		__atomic_store_n(&a->refused, errno, __ATOMIC_RELAXED);
}

static void *map_pages(size_t bytes)
{
	void *p =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* A mapping on an address that is a multiple of align; what is too much on both sides is given back. */
static void *map_aligned(struct mw_arena *a, size_t bytes, size_t align)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), extra = align > page ? align : 0;
	if (bytes > SIZE_MAX - extra)
		return NULL;
	char *p = map_pages(bytes + extra);
	if (!p)
		return NULL;
	size_t before = extra ? -(uintptr_t)p & (align - 1) : 0, after = extra - before;
	if (before)
		munmap(p, before);
	if (after)
		munmap(p + before + bytes, after);
	bind_pages(a, p + before, bytes);
	return p + before;
}

static void *out_of_memory(size_t bytes, const char *what, const struct mw_arena *a, struct mw_err *err)
{
	mw_err_set(err, MW_ERESOURCE, "out of memory: %s needs %.1f MB on node P#%u", what,
		(double)bytes / 1e6, a->os);
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
	(void)hooks, (void)size, (void)index;
	return madvise((char *)p + offset, length, MADV_DONTNEED) != 0;
}

static bool hook_split(
	extent_hooks_t *hooks, void *p, size_t size, size_t a, size_t b, bool committed, unsigned index)
{
	(void)hooks, (void)p, (void)size, (void)a, (void)b, (void)committed, (void)index;
	return false;
}

static bool hook_merge(
	extent_hooks_t *hooks, void *a, size_t size_a, void *b, size_t size_b, bool committed, unsigned index)
{
	(void)hooks, (void)a, (void)size_a, (void)b, (void)size_b, (void)committed, (void)index;
	return false;
}

static int open_arena(struct mw_arena *a, struct mw_err *err)
{
	extent_hooks_t *hooks = &a->hooks;
	size_t size = sizeof(a->index);
	*hooks = (extent_hooks_t){
		.alloc = hook_alloc, .purge_forced = hook_purge, .split = hook_split, .merge = hook_merge
	};
	int e = mallctl("arenas.create", &a->index, &size, &hooks, sizeof(hooks));
	if (e)
		MW_FAIL(err, RESOURCE, "jemalloc cannot make an arena for node P#%u: %s", a->os, strerror(e));
	return 0;
}

void *mw_arena_alloc(struct mw_arena *a, size_t bytes, const char *what, struct mw_err *err)
{
	size_t align = alignment(bytes);
	if (bytes > SIZE_MAX / 2)
		return out_of_memory(bytes, what, a, err);
	/* no thread cache: it would mix nodes */
	int flags = MALLOCX_ARENA(a->index) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(align) | MALLOCX_ZERO;
	void *p = mallocx(bytes ? bytes : 1, flags);
	if (!p)
		return out_of_memory(bytes, what, a, err);
	if (align == HUGE_PAGE_BYTES)
		madvise(p, bytes, MADV_HUGEPAGE); /* advice: a refusal costs speed only */
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
	size_t size = (head + bytes + page - 1) & ~(page - 1);
	char *start = map_aligned(a, size, align);
	if (!start)
		return out_of_memory(bytes, what, a, err);
	if (align == HUGE_PAGE_BYTES)
		madvise(start + head, size - head, MADV_HUGEPAGE);
	*(struct mapping *)(void *)(start + head - MW_LINE_BYTES) = (struct mapping){ start, size };
	return start + head;
}

void mw_arena_free(void *p)
{
	if (!p)
		return;
	struct mapping mapping = *(struct mapping *)(void *)((char *)p - MW_LINE_BYTES);
	munmap(mapping.start, mapping.bytes);
}

#endif

/* Ask the kernel once, on a page that nobody needs, so that a refusal is known before work starts. */
static void try_binding(struct mw_arena *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = map_pages(page);
	if (!p)
		return;
	bind_pages(a, p, page);
	munmap(p, page);
}

struct mw_arena *mw_arena_get(unsigned os, struct mw_err *err)
{
	struct mw_arena *a;
	if (os >= MASK_BITS) {
		mw_err_set(err, MW_ERESOURCE, "node P#%u: nodes up to P#%d are known", os, MASK_BITS - 1);
		return NULL;
	}
	pthread_mutex_lock(&arenas_lock);
	for (a = arenas; a && a->os != os;)
		a = a->next;
	if (!a) {
		a = mw_alloc(sizeof(*a), "memory arena", err);
		if (a) {
			a->os = os;
			a->mask[os / WORD_BITS] = 1UL << (os % WORD_BITS);
		}
		if (a && open_arena(a, err) < 0) {
			mw_free(a);
			a = NULL;
		}
		if (a) {
			try_binding(a);
			a->next = arenas;
			arenas = a;
		}
	}
	pthread_mutex_unlock(&arenas_lock);
	return a;
}

int mw_layout_open_arenas(struct mw_layout *l, bool always, struct mw_err *err)
{
	struct mw_layout_priv *p = l->priv;
	int refused = 0;
	if (!always && (!l->applied || l->machine_nodes < 2))
		return 0;
	p->arena = mw_alloc_array(l->n_nodes, sizeof(struct mw_arena *), "arenas", err);
	if (!p->arena)
		return MW_ERESOURCE;
	for (uint32_t i = 0; i < l->n_nodes; i++) {
		p->arena[i] = mw_arena_get((unsigned)l->node_os[i], err);
		if (!p->arena[i])
			return MW_ERESOURCE;
		refused = refused ? refused : mw_arena_refused(p->arena[i]);
	}
	if (refused)
		fprintf(p->m.notes,
			"The kernel refuses to bind memory (mbind: %s; containers often do): pages go to the "
			"node "
			"that touches them first.\n",
			strerror(refused));
	return 0;
}

void *mw_node_alloc(
	const struct mw_layout *l, uint32_t node, size_t bytes, const char *what, struct mw_err *err)
{
	const struct mw_layout_priv *p = l->priv;
	assert(node < l->n_nodes);
	return p->arena ? mw_arena_alloc(p->arena[node], bytes, what, err) : mw_alloc(bytes, what, err);
}

void mw_node_free(const struct mw_layout *l, void *p)
{
	const struct mw_layout_priv *priv = l->priv;
	if (priv->arena)
		mw_arena_free(p);
	else
		mw_free(p);
}
