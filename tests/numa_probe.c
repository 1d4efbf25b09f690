/*
 * numa_probe.c: run on a machine with several NUMA nodes (tests/numa-vm boots one): binds the workers of
 * several layouts, allocates on their nodes, and asks the kernel where threads run and where every page lies.
 * Usage: numa_probe NODES CPUS_PER_NODE. Exit status 0: all as it should be.
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "topo/arena.h"
#include "topo/layout.h"

enum { PAGE = 4096, BIG = (2 << 20) + 5, SMALL = 24 << 10, ROUNDS = 24, FRESH = 20 };

static const char *layout_name;
static int n_bad; /* Sync: any thread, relaxed: a count read after the threads have ended */

#define CHECK(ok, ...)                                                   \
	do {                                                             \
		if (!(ok)) {                                             \
			printf("FAIL %s: ", layout_name);                \
			printf(__VA_ARGS__);                             \
			puts("");                                        \
			__atomic_fetch_add(&n_bad, 1, __ATOMIC_RELAXED); \
		}                                                        \
	} while (0)

/* Pages of a touched block that are not on node os, by move_pages; *first says what the first of them has instead. */
static size_t strays(char *p, size_t bytes, int os, int *first)
{
	char *start = (char *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1));
	size_t n = ((size_t)(p - start) + bytes + PAGE - 1) / PAGE, bad = 0;
	void **page = malloc(n * sizeof(*page));
	int *status = malloc(n * sizeof(*status));
	for (size_t i = 0; i < n; i++)
		page[i] = start + i * PAGE;
	if (syscall(SYS_move_pages, 0, n, page, NULL, status, 0)) {
		*first = -errno;
		bad = n;
	}
	for (size_t i = 0; i < n && bad < n; i++)
		if (status[i] != os) {
			*first = bad ? *first : status[i];
			bad++;
		}
	free(page);
	free(status);
	return bad;
}

/* move_pages says -ENOENT or -EBUSY for a page that the kernel is just moving (compaction does): ask again. */
static size_t settled_strays(char *p, size_t bytes, int os, int *first)
{
	size_t bad;
	for (int i = 0;
		(bad = strays(p, bytes, os, first)) && (*first == -ENOENT || *first == -EBUSY) && i < 100;
		i++)
		usleep(10000);
	return bad;
}

static void check_block(const struct mw_layout *l, uint32_t node, size_t bytes, const char *who)
{
	char *p = mw_node_alloc(l, node, bytes, "block", NULL);
	CHECK(p, "%s: no memory on node %u", who, node);
	if (!p)
		return;
	CHECK(!p[0] && !p[bytes / 2] && !p[bytes - 1], "%s: memory is not zeroed", who);
	memset(p, 1, bytes);
	int os = l->node_os[node], first = 0, policy_node = -1;
	size_t bad = settled_strays(p, bytes, os, &first);
	CHECK(!bad, "%s: %zu pages of %zu bytes are not on node P#%d, the first is on %d", who, bad, bytes,
		os, first);
	long ret = syscall(SYS_get_mempolicy, &policy_node, NULL, 0UL, p, (long)(MPOL_F_NODE | MPOL_F_ADDR));
	CHECK(!ret && policy_node == os, "%s: get_mempolicy says %ld, node %d instead of %d", who, ret,
		policy_node, os);
	mw_node_free(l, p);
}

struct worker {
	const struct mw_layout *l;
	uint32_t w;
	pthread_t id;
};

static void *run(void *v)
{
	const struct worker *self = v;
	const struct mw_layout *l = self->l;
	const struct mw_slot *slot = &l->slot[self->w];
	struct mw_err err = { 0 };
	unsigned cpu, node;
	CHECK(!mw_layout_bind_worker(l, self->w, &err), "%s", err.msg);
	syscall(SYS_getcpu, &cpu, &node, NULL);
	CHECK((int)node == l->node_os[slot->node], "worker %u runs on node %u, not %d", self->w, node,
		l->node_os[slot->node]);
	/* own and foreign nodes, from every thread at once; sizes vary so that extents are split and joined
	 */
	for (uint32_t i = 0; i < ROUNDS; i++)
		check_block(l, (self->w + i) % l->n_nodes, 1 + (i * 7919u) % SMALL, "small");
	for (uint32_t i = 0; i < l->n_nodes; i++)
		check_block(l, i, BIG + i * PAGE, "big");
	CHECK(mw_layout_verify_worker(l, self->w), "worker %u is no longer where it was put", self->w);
	return NULL;
}

static void run_layout(
	const char *workers, const char *bind, enum mw_places places, uint32_t n, uint32_t n_nodes)
{
	struct mw_layout_request req = {
		.workers = workers, .bind = bind, .places = places, .controller_cpu = -1, .mem_strict = true
	};
	struct mw_layout *l;
	struct mw_err err = { 0 };
	char name[64];
	snprintf(name, sizeof(name), "%s workers, %s, places %d", workers, bind, (int)places);
	layout_name = name;
	int before = n_bad;
	CHECK(!mw_layout_new(&req, &l, &err), "%s", err.msg);
	if (!l)
		return;
	CHECK(l->applied && l->n_workers == n && l->n_nodes == n_nodes,
		"%u workers on %u nodes, want %u on %u", l->n_workers, l->n_nodes, n, n_nodes);
	CHECK(!l->notes || !strstr(l->notes, "refuses"), "%s", l->notes);
	struct worker *worker = calloc(l->n_workers, sizeof(*worker));
	for (uint32_t w = 0; w < l->n_workers; w++) {
		worker[w] = (struct worker){ .l = l, .w = w };
		pthread_create(&worker[w].id, NULL, run, &worker[w]);
	}
	for (uint32_t w = 0; w < l->n_workers; w++)
		pthread_join(worker[w].id, NULL);
	free(worker);
	mw_layout_free(l);
	printf("%s %s: threads and pages are on their nodes\n", n_bad == before ? "ok" : "FAIL", name);
}

/* A process that may use the CPUs of the last node only. */
static void run_restricted(int nodes, int cpus)
{
	cpu_set_t all, set;
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&set);
	for (int i = 0; i < cpus; i++)
		CPU_SET((nodes - 1) * cpus + i, &set);
	sched_setaffinity(0, sizeof(set), &set);
	run_layout("auto", "spread", MW_PLACES_NUMA, (uint32_t)cpus, 1);
	sched_setaffinity(0, sizeof(all), &all);
}

/* --- a neighbour that is busy while a mapping is bound --- */

static long (*real_mbind)(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags);
static char *neighbour;       /* its lowest page, just mapped and not touched yet; NULL: none */
static int near_cpu, far_cpu; /* of the first node, of the last one */
static size_t n_early;        /* pages that were there before their mapping was bound */

static void bind_to_cpu(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* What a thread of another node may do at this moment. Binding doesn't move pages that are there already. */
static long touch_and_mbind(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags)
{
	static unsigned char there[1 << 16];
	if (neighbour) {
		bind_to_cpu(far_cpu);
		*neighbour = 1;
		neighbour = NULL;
		bind_to_cpu(near_cpu);
	}
	if (bytes / PAGE <= sizeof(there) && !mincore(p, bytes, there))
		for (size_t i = 0; i < bytes / PAGE; i++)
			n_early += there[i] & 1;
	return real_mbind(p, bytes, mode, mask, bits, flags);
}

/* An arena's first extent of node 0, mapped where a mapping of somebody else's was made just before. */
static void check_fresh(unsigned i)
{
	/* no two policies are the same, so each has an arena of its own */
	struct mw_mem_policy policy = { .mode = MPOL_BIND, .os = 1000 + i, .nodes = { 1 } };
	struct mw_arena *a = mw_arena_get(&policy, NULL);
	size_t bytes = (7 << 18) - 64, bad; /* most of an extent */
	int first = 0;
	neighbour = mmap(NULL, (2 << 20) + 7 * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise(neighbour, bytes, MADV_HUGEPAGE); /* as mappings of arenas are */
	char *p = a ? mw_arena_alloc(a, bytes, "block", NULL) : NULL;
	CHECK(p, "no memory");
	if (!p)
		return;
	memset(p, 1, bytes);
	bad = settled_strays(p, bytes, 0, &first);
	CHECK(!bad, "arena %u: %zu pages are not on node P#0, the first is on %d", i, bad, first);
	CHECK(!mw_arena_refused(a), "arena %u: refused: %s", i, strerror(mw_arena_refused(a)));
	mw_arena_free(p);
}

static void run_neighbours(int nodes, int cpus)
{
	int before = n_bad;
	cpu_set_t all;
	layout_name = "fresh arenas beside a neighbour";
	near_cpu = 0, far_cpu = nodes * cpus - 1;
	sched_getaffinity(0, sizeof(all), &all);
	bind_to_cpu(near_cpu);
	real_mbind = mw_arena_mbind;
	mw_arena_mbind = touch_and_mbind;
	for (unsigned i = 0; i < FRESH; i++)
		check_fresh(i);
	mw_arena_mbind = real_mbind;
	sched_setaffinity(0, sizeof(all), &all);
	CHECK(!n_early, "%zu pages were there before their mapping was bound", n_early);
	printf("%s %s\n", n_bad == before ? "ok" : "FAIL", layout_name);
}

int main(int argc, char **argv)
{
	int nodes = argc > 1 ? atoi(argv[1]) : 0, cpus = argc > 2 ? atoi(argv[2]) : 0;
	char two[16];
	if (nodes < 2 || cpus < 1) {
		fprintf(stderr, "usage: numa_probe NODES CPUS_PER_NODE (at least two nodes)\n");
		return 2;
	}
	snprintf(two, sizeof(two), "%d", nodes);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_layout("auto", "close", MW_PLACES_PU, (uint32_t)(nodes * cpus), (uint32_t)nodes);
	run_layout("auto", "spread", MW_PLACES_NUMA, (uint32_t)(nodes * cpus), (uint32_t)nodes);
	run_layout(two, "spread", MW_PLACES_CORE, (uint32_t)nodes, (uint32_t)nodes);
	run_layout("1", "close", MW_PLACES_PU, 1, 1);
	run_restricted(nodes, cpus);
	run_neighbours(nodes, cpus);
	printf("%s: %d failures\n", n_bad ? "FAIL" : "ok", n_bad);
	return n_bad != 0;
}
