/* unit_topo_memory.c: the policy of pages by --mem and --mem-strict, what is refused, and where pages are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/mempolicy.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/ranges.h"
#include "base/shared.h"
#include "topo/arena.h"
#include "topo/machine.h"

static int make(enum mw_mem mem, bool strict, const char *bind, struct mw_layout **l, struct mw_err *err)
{
	const struct mw_layout_request req = {
		.workers = "1", .bind = bind, .controller_cpu = -1, .mem = mem, .mem_strict = strict
	};
	const struct mw_world world = { .root = "", .always_arenas = true };
	return mw_layout_new_in(&req, &world, l, err);
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* The kernel's policy for a block: MPOL_*, or -1 where it doesn't tell. */
static int policy_of(void *p, unsigned long *first_nodes)
{
	int policy = -1;
	unsigned long mask[MW_NODE_WORDS] = { 0 };
	if (syscall(SYS_get_mempolicy, &policy, mask, (unsigned long)MW_NODE_BITS, p, (long)MPOL_F_ADDR))
		return -1;
	*first_nodes = mask[0];
	return policy;
}

static void test_policies(void **state)
{
	(void)state;
	static const struct {
		enum mw_mem mem;
		bool strict;
		int policy;
	} want[] = { { MW_MEM_NODE, false, MPOL_PREFERRED }, { MW_MEM_NODE, true, MPOL_BIND },
		{ MW_MEM_INTERLEAVE, false, MPOL_INTERLEAVE }, { MW_MEM_FIRST_TOUCH, false, MPOL_DEFAULT } };
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct mw_layout *l;
		struct mw_err err = { 0 };
		unsigned long nodes = 0;
		if (make(want[i].mem, want[i].strict, "close", &l, &err)) {
			assert_true(want[i].strict); /* a container without mbind says so */
			assert_non_null(strstr(err.msg, "refuses to bind memory"));
			continue;
		}
		assert_true(l->mem_applied);
		char *p = mw_node_alloc(l, 0, 3u << 20, "block", &err);
		assert_non_null(p);
		int policy = policy_of(p, &nodes);
		if (l->mem == want[i].mem && policy >= 0) {
			assert_int_equal(policy, want[i].policy);
			assert_true(policy == MPOL_DEFAULT || nodes == 1UL << l->node_os[0]);
		}
		mw_node_free(l, p);
		mw_layout_free(l);
	}
}

/* First touch: pages are there before anybody writes, and the thread is where it was before. */
static void test_first_touch(void **state)
{
	(void)state;
	struct mw_layout *l;
	struct mw_err err = { 0 };
	cpu_set_t before, after;
	sched_getaffinity(0, sizeof(before), &before);
	assert_int_equal(make(MW_MEM_FIRST_TOUCH, false, "close", &l, &err), 0);
	for (int round = 0; round < 3; round++) {
		struct mw_pages pages = { 0 };
		size_t bytes = 40 * page_bytes();
		char *p = mw_node_alloc(l, 0, bytes, "block", &err);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(p[i], 0);
		mw_pages_look(&pages, p, bytes);
		if (!pages.refused) {
			assert_in_range(pages.seen, 40, 41);
			assert_int_equal(pages.untouched, 0);
		}
		memset(p, 1, bytes);
		mw_node_free(l, p);
	}
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	mw_layout_free(l);
}

static void note_cpu(void *arg)
{
	*(int *)arg = sched_getcpu();
}

static void test_on_node(void **state)
{
	(void)state;
	struct mw_layout *l;
	struct mw_err err = { 0 };
	cpu_set_t before, after;
	int cpu = -1;
	sched_getaffinity(0, sizeof(before), &before);
	assert_int_equal(make(MW_MEM_NODE, false, "close", &l, &err), 0);
	mw_layout_on_node(l, 0, note_cpu, &cpu);
	assert_true(CPU_ISSET(cpu, &before));
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
	mw_layout_free(l);
}

/* --- refusals ------------------------------------------------------------------------------------------------------- */

static long refuse(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags)
{
	(void)p, (void)bytes, (void)mode, (void)mask, (void)bits, (void)flags;
	errno = EPERM;
	return -1;
}

static void test_refused(void **state)
{
	(void)state;
	struct mw_layout *l;
	struct mw_err err = { 0 };
	long (*real)(void *, size_t, int, const unsigned long *, unsigned long, unsigned) = mw_arena_mbind;
	assert_int_equal(make(MW_MEM_NODE, true, "none", &l, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--mem-strict: nothing is bound"));
	assert_int_equal(make(MW_MEM_NODE, false, "close", &l, &err), 0);
	mw_arena_mbind = refuse;
	char *p = mw_alloc_pages(10 * page_bytes(), "block", NULL);
	memset(&err, 0, sizeof(err));
	l->mem = MW_MEM_NODE;
	assert_int_equal(mw_node_bind(l, 0, p, 10 * page_bytes(), &err), 0); /* no error */
	l->mem_strict = true;
	assert_int_equal(mw_node_bind(l, 0, p, 10 * page_bytes(), &err), MW_ERESOURCE);
	assert_non_null(strstr(err.msg, "can't be bound to node P#"));
	mw_arena_mbind = real;
	mw_free(p);
	mw_layout_free(l);
}

/* --- a neighbour ---------------------------------------------------------------------------------------------------- */

static char *neighbour; /* its lowest page, not touched yet; NULL: none */
static size_t n_bound, n_early;

/* What another thread may do between a mapping and its binding, which leaves pages that are there already where they are. */
static long touch_beside(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags)
{
	static unsigned char there[1 << 16];
	(void)mode, (void)mask, (void)bits, (void)flags;
	if (neighbour)
		*neighbour = 1;
	neighbour = NULL;
	size_t pages = bytes / page_bytes();
	assert_true(pages <= sizeof(there));
	assert_int_equal(mincore(p, bytes, there), 0);
	for (size_t i = 0; i < pages; i++)
		n_early += there[i] & 1;
	n_bound++;
	return 0;
}

/* Mappings of ours beside one of somebody else's: a huge page of theirs doesn't reach into ours. */
static void test_neighbour(void **state)
{
	(void)state;
	enum { EXTENTS = 12 };
	struct mw_mem_policy policy = { .mode = MPOL_BIND, .os = 77, .nodes = { 1 } };
	size_t bytes = ((size_t)2 << 20) + 5 * page_bytes();
	char *mapped[EXTENTS];
	void *block[EXTENTS];
	long (*real)(void *, size_t, int, const unsigned long *, unsigned long, unsigned) = mw_arena_mbind;
	mw_arena_mbind = touch_beside;
	struct mw_arena *a = mw_arena_get(&policy, NULL);
	assert_non_null(a);
	for (size_t i = 0; i < EXTENTS; i++) {
		mapped[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert_true(mapped[i] != MAP_FAILED);
		madvise(mapped[i], bytes, MADV_HUGEPAGE);
		neighbour = mapped[i];
		block[i] = mw_arena_alloc(a, (i + 2) * bytes, "block", NULL);
		assert_non_null(block[i]);
	}
	mw_arena_mbind = real;
	neighbour = NULL;
	assert_true(n_bound >= 3); /* extents grow, so not each block has one of its own */
	assert_int_equal(n_early, 0);
	for (size_t i = 0; i < EXTENTS; i++) {
		mw_arena_free(block[i]);
		munmap(mapped[i], bytes);
	}
}

/* --- where pages are ------------------------------------------------------------------------------------------------ */

static void test_pages(void **state)
{
	(void)state;
	struct mw_pages pages = { 0 };
	char text[200];
	size_t page = page_bytes();
	assert_string_equal(mw_pages_text(&pages, text, sizeof(text)), "none");
	char *p = mw_alloc_pages(20 * page, "block", NULL);
	assert_non_null(p);
	mw_thp_advise(p, 20 * page);
	p[3 * page] = p[4 * page] = p[19 * page] = 1;
	mw_pages_look(&pages, p, 20 * page);
	if (pages.refused) {
		mw_free(p);
		skip(); /* a container without move_pages */
	}
	assert_int_equal(pages.seen, 20);
	assert_in_range(pages.untouched, 0, 17); /* fewer where pages are larger than asked for */
	assert_int_equal(pages.n_nodes, 1);
	assert_int_equal(pages.on[0] + pages.untouched, 20);
	assert_int_equal(mw_pages_strays(&pages, pages.os[0]), 0);
	assert_int_equal(mw_pages_strays(&pages, pages.os[0] + 1), pages.on[0]);
	mw_free(p);
}

static void test_pages_text(void **state)
{
	(void)state;
	struct mw_pages pages = { .seen = 10, .untouched = 2, .n_nodes = 2, .os = { 0, 5 }, .on = { 6, 2 } };
	char text[200];
	assert_string_equal(mw_pages_text(&pages, text, sizeof(text)), "P#0 75% P#5 25%");
	assert_int_equal(mw_pages_strays(&pages, 0), 2);
	assert_int_equal(mw_pages_strays(&pages, 5), 6);
	pages = (struct mw_pages){ .seen = 1000001, .n_nodes = 2, .os = { 0, 1 }, .on = { 1000000, 1 } };
	/* one stray page must not be rounded away */
	assert_string_equal(mw_pages_text(&pages, text, sizeof(text)), "P#0 100.000% P#1 0.00%");
	pages = (struct mw_pages){ .seen = 4, .untouched = 4 };
	assert_string_equal(mw_pages_text(&pages, text, sizeof(text)), "not touched yet");
	pages = (struct mw_pages){ .refused = EPERM };
	assert_string_equal(mw_pages_text(&pages, text, sizeof(text)),
		"the kernel doesn't tell (Operation not permitted)");
}

/* --- behind a block -------------------------------------------------------------------------------------------------- */

/* The kernel reads for us, and says EFAULT where a load would end the program. */
static void is_readable(const char *p, int fd[2])
{
	char away[MW_READABLE_BYTES];
	if (syscall(SYS_write, fd[1], p, (size_t)MW_READABLE_BYTES) != MW_READABLE_BYTES)
		fail_msg("%s", strerror(errno));
	assert_int_equal(read(fd[0], away, sizeof(away)), sizeof(away));
}

/* Is what lies behind the block its own? (Else it is there by luck.) Mappings of their own are not asked. */
static void has_room(char *p, size_t bytes, bool of_node)
{
#ifndef HAVE_JEMALLOC
	if (of_node)
		return;
#endif
	size_t before = of_node ? 0 : MW_LINE_BYTES;
	if (of_node || bytes < 1 << 20)
		assert_true(malloc_usable_size(p - before) >= before + bytes + MW_READABLE_BYTES);
}

static void test_readable_behind(void **state)
{
	(void)state;
	static const size_t sizes[] = { 1, 4096 - MW_LINE_BYTES, 4096, 12288, 1 << 20, 2 << 20, 3 << 20 };
	enum { SIZES = sizeof(sizes) / sizeof(*sizes), TIMES = 20 };
	struct mw_layout *l;
	struct mw_err err = { 0 };
	char *p[SIZES][TIMES][2];
	int fd[2];
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(make(MW_MEM_NODE, false, "close", &l, &err), 0);
	for (size_t i = 0; i < SIZES; i++)
		for (size_t k = 0; k < TIMES; k++) {
			p[i][k][0] = mw_alloc(sizes[i], "block", &err);
			p[i][k][1] = mw_node_alloc(l, 0, sizes[i], "block", &err);
			for (int j = 0; j < 2; j++) {
				assert_non_null(p[i][k][j]);
				is_readable(p[i][k][j] + sizes[i], fd);
				has_room(p[i][k][j], sizes[i], j);
			}
		}
	for (size_t i = 0; i < SIZES * TIMES; i++) {
		mw_free(p[i / TIMES][i % TIMES][0]);
		mw_node_free(l, p[i / TIMES][i % TIMES][1]);
	}
	mw_layout_free(l);
	close(fd[0]);
	close(fd[1]);
}

/* --- huge pages ----------------------------------------------------------------------------------------------------- */

static uint64_t huge_now(void)
{
	uint64_t all = 0, huge = 0;
	return mw_thp_used(&all, &huge) ? huge : 0;
}

static void test_huge_pages(void **state)
{
	(void)state;
	enum { BYTES = 8 << 20 };
	uint64_t before = huge_now(), none, made;
	mw_thp_set(MW_THP_OFF);
	char *p = mw_alloc_pages(BYTES, "block", NULL);
	memset(p, 1, BYTES);
	mw_thp_collapse(p, BYTES);
	none = huge_now();
	mw_free(p);
	mw_thp_set(MW_THP_ON);
	p = mw_alloc_pages(BYTES, "block", NULL);
	memset(p, 1, BYTES);
	mw_thp_collapse(p, BYTES);
	made = huge_now();
	mw_free(p);
	mw_thp_set(MW_THP_MADVISE);
	assert_true(none <= before);
	if (made < before + BYTES / 2)
		skip(); /* a kernel without huge pages, or with none to give */
}

/* --- ranges --------------------------------------------------------------------------------------------------------- */

static void test_ranges(void **state)
{
	(void)state;
	static const struct {
		uint32_t n, v[12];
		const char *text;
	} want[] = { { 0, { 0 }, "" }, { 1, { 7 }, "7" }, { 2, { 3, 4 }, "3-4" }, { 2, { 3, 5 }, "3,5" },
		{ 4, { 0, 2, 4, 6 }, "0-6:2" }, { 6, { 0, 1, 2, 3, 8, 9 }, "0-3,8-9" },
		{ 5, { 1, 3, 4, 5, 6 }, "1,3-6" }, { 7, { 0, 1, 2, 8, 10, 12, 40 }, "0-2,8-12:2,40" } };
	char text[64], small[12];
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		assert_string_equal(mw_ranges_text(want[i].v, want[i].n, text, sizeof(text)), want[i].text);
	uint32_t apart[] = { 1, 10, 100, 1000, 1001 };
	assert_string_equal(mw_ranges_text(apart, 5, small, sizeof(small)), "1,10,...");
	assert_string_equal(mw_ranges_text(apart, 2, small, 6), "1,10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_first_touch),
		cmocka_unit_test(test_on_node),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_pages_text),
		cmocka_unit_test(test_readable_behind),
		cmocka_unit_test(test_huge_pages),
		cmocka_unit_test(test_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
