/* unit_topo_bind.c: binding on this machine, read back from the kernel, and memory by node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/shared.h"
#include "topo/machine.h"

static struct mw_layout *make(const char *workers, const char *bind, bool arenas)
{
	const struct mw_layout_request req = {
		.workers = workers, .bind = bind, .controller_cpu = -1, .oversubscribe = true
	};
	const struct mw_world world = { .root = "", .always_arenas = arenas };
	struct mw_layout *l;
	struct mw_err err = { 0 };
	if (mw_layout_new_in(&req, &world, &l, &err))
		fail_msg("%s", err.msg);
	return l;
}

struct thread {
	const struct mw_layout *l;
	uint32_t worker;
	int bound, verified, cpu, n_cpus;
	bool noticed;
};

static void *bind_self(void *v)
{
	struct thread *t = v;
	cpu_set_t set;
	t->bound = mw_layout_bind_worker(t->l, t->worker, NULL);
	t->verified = mw_layout_verify_worker(t->l, t->worker);
	sched_getaffinity(0, sizeof(set), &set);
	t->n_cpus = CPU_COUNT(&set);
	t->cpu = sched_getcpu();
	CPU_ZERO(&set); /* someone else changes the mask: that must not go unseen */
	CPU_SET(t->cpu, &set);
	CPU_SET((t->cpu + 1) % 2, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_getaffinity(0, sizeof(set), &set);
	t->noticed = CPU_COUNT(&set) == 1 || !mw_layout_verify_worker(t->l, t->worker);
	return NULL;
}

static void test_bind_two(void **state)
{
	(void)state;
	struct mw_layout *l = make("2", "close", false);
	struct thread t[2] = { { .l = l, .worker = 0 }, { .l = l, .worker = 1 } };
	pthread_t id[2];
	assert_true(l->applied);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&id[i], NULL, bind_self, &t[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(t[i].bound, 0);
		assert_int_equal(t[i].verified, 1);
		assert_int_equal(t[i].n_cpus, 1);
		assert_int_equal(t[i].cpu, l->slot[i].pu_os);
		assert_true(t[i].noticed);
	}
	mw_layout_free(l);
}

/* A process that taskset left one PU to gets one worker there. */
static void *one_cpu(void *v)
{
	struct mw_layout **l = v;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	*l = make("auto", "close", false);
	assert_int_equal((*l)->slot[0].pu_os, sched_getcpu());
	return NULL;
}

static void test_affinity_is_obeyed(void **state)
{
	(void)state;
	struct mw_layout *l;
	pthread_t id;
	pthread_create(&id, NULL, one_cpu, &l);
	pthread_join(id, NULL);
	assert_int_equal(l->n_workers, 1);
	assert_int_equal(l->usable_pus, 1);
	if (l->machine_pus > 1)
		assert_non_null(strstr(l->notes, "The affinity mask (taskset, numactl, Slurm) leaves 1 of"));
	mw_layout_free(l);
}

static void test_controller_mask_is_restored(void **state)
{
	(void)state;
	cpu_set_t before, during, after;
	sched_getaffinity(0, sizeof(before), &before);
	struct mw_layout *l = make("1", "close", false);
	assert_int_equal(mw_layout_bind_controller(l, NULL), 0);
	sched_getaffinity(0, sizeof(during), &during);
	if (l->controller.pu_os >= 0) {
		assert_int_equal(CPU_COUNT(&during), 1);
		assert_true(CPU_ISSET(l->controller.pu_os, &during));
		assert_int_not_equal(l->controller.pu_os, l->slot[0].pu_os);
	}
	mw_layout_free(l);
	sched_getaffinity(0, sizeof(after), &after);
	assert_true(CPU_EQUAL(&before, &after));
}

static void test_unknown_cpu_is_an_error(void **state)
{
	(void)state;
	struct mw_layout *l = make("1", "close", false);
	struct mw_layout_priv *p = l->priv;
	struct mw_err err = { 0 };
	hwloc_bitmap_only(p->place[0], 4000); /* as if the CPU had gone since */
	assert_int_equal(mw_layout_bind_worker(l, 0, &err), MW_ERESOURCE);
	assert_non_null(strstr(err.msg, "worker 0 cannot be bound to P# 4000"));
	/* the kernel drops CPUs that aren't there: what it made of the mask must be noticed */
	hwloc_bitmap_set(p->place[0], (unsigned)l->slot[0].pu_os);
	memset(&err, 0, sizeof(err));
	cpu_set_t before;
	sched_getaffinity(0, sizeof(before), &before);
	assert_int_equal(mw_layout_bind_worker(l, 0, &err), MW_ERESOURCE);
	assert_non_null(strstr(err.msg, "reads back as P#"));
	sched_setaffinity(0, sizeof(before), &before);
	mw_layout_free(l);
}

static void check_memory(bool arenas)
{
	static const size_t sizes[] = { 0, 1, 127, 128, 4096, 100000, (2u << 20) - 1, 2u << 20,
		(5u << 20) + 3 };
	struct mw_layout *l = make("auto", "close", arenas);
	for (int round = 0; round < 3; round++) /* memory that was used before comes back zeroed */
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct mw_err err = { 0 };
			unsigned char *p = mw_node_alloc(l, 0, sizes[i], "test block", &err);
			assert_non_null(p);
			assert_int_equal((uintptr_t)p % MW_LINE_BYTES, 0);
			for (size_t k = 0; k < sizes[i]; k++)
				if (p[k])
					fail_msg("byte %zu of %zu is not zero", k, sizes[i]);
			memset(p, 0xa5, sizes[i]);
			mw_node_free(l, p);
		}
	mw_node_free(l, NULL);
	struct mw_err err = { 0 };
	assert_null(mw_node_alloc(l, 0, SIZE_MAX - 64, "giant block", &err));
	assert_int_equal(err.code, MW_ERESOURCE);
	assert_non_null(strstr(err.msg, "giant block"));
	mw_layout_free(l);
}

static void test_plain_memory(void **state)
{
	(void)state;
	check_memory(false);
}

static void test_arena_memory(void **state)
{
	(void)state;
	check_memory(true);
}

/* The kernel itself is asked for the policy of the pages and where they are. */
static void test_pages_are_bound(void **state)
{
	(void)state;
	struct mw_layout *l = make("1", "close", true);
	int policy = -1, node = -1;
	unsigned long mask[64] = { 0 };
	size_t bytes = 3u << 20;
	char *p = mw_node_alloc(l, 0, bytes, "bound block", NULL);
	assert_non_null(p);
	memset(p, 1, bytes);
	if (mw_arena_refused(((struct mw_layout_priv *)l->priv)->arena[0]) ||
		syscall(SYS_get_mempolicy, &policy, mask, 4096UL, p + bytes / 2, (long)MPOL_F_ADDR)) {
		mw_node_free(l, p);
		mw_layout_free(l);
		skip(); /* a container without mbind */
	}
	assert_int_equal(policy, MPOL_PREFERRED);
	assert_int_equal(mask[l->node_os[0] / 64], 1UL << l->node_os[0] % 64);
	assert_int_equal(
		syscall(SYS_get_mempolicy, &node, NULL, 0UL, p, (long)(MPOL_F_NODE | MPOL_F_ADDR)), 0);
	assert_int_equal(node, l->node_os[0]);
	mw_node_free(l, p);
	mw_layout_free(l);
}

enum { N_THREADS = 4, N_BLOCKS = 16 };

static void *allocate(void *v)
{
	const struct mw_layout *l = v;
	unsigned char *block[N_BLOCKS] = { NULL };
	size_t size[N_BLOCKS] = { 0 }, bad = 0;
	for (unsigned i = 0; i < 600; i++) {
		unsigned k = i % N_BLOCKS;
		for (size_t b = 0; b < size[k]; b += 61)
			bad += block[k][b] != (unsigned char)k;
		mw_node_free(l, block[k]);
		size[k] = (i * 7919u) % 60000 + 1;
		block[k] = mw_node_alloc(l, 0, size[k], "block", NULL);
		bad += !block[k] || block[k][0] || block[k][size[k] - 1];
		memset(block[k], (int)k, size[k]);
	}
	for (unsigned k = 0; k < N_BLOCKS; k++)
		mw_node_free(l, block[k]);
	return (void *)bad; /* the number of wrong bytes */
}

static void test_concurrent_memory(void **state)
{
	(void)state;
	for (int arenas = 0; arenas < 2; arenas++) {
		struct mw_layout *l = make("1", "close", arenas);
		pthread_t id[N_THREADS];
		for (int i = 0; i < N_THREADS; i++)
			assert_int_equal(pthread_create(&id[i], NULL, allocate, l), 0);
		for (int i = 0; i < N_THREADS; i++) {
			void *bad;
			pthread_join(id[i], &bad);
			assert_null(bad);
		}
		mw_layout_free(l);
	}
}

static struct mw_arena *arena_of(unsigned os)
{
	struct mw_mem_policy policy;
	memset(&policy, 0, sizeof(policy));
	policy.mode = MPOL_PREFERRED;
	policy.os = os;
	policy.nodes[os / 64] = 1UL << os % 64;
	return mw_arena_get(&policy, NULL);
}

static void *get_arena(void *v)
{
	(void)v;
	return arena_of(0);
}

static void test_one_arena_a_node(void **state)
{
	(void)state;
	pthread_t id[N_THREADS];
	void *arena[N_THREADS];
	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&id[i], NULL, get_arena, NULL);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(id[i], &arena[i]);
	for (int i = 0; i < N_THREADS; i++)
		assert_ptr_equal(arena[i], arena[0]);
}

static int n_refusals; /* Sync: one thread */

static long refuse(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags)
{
	(void)p, (void)bytes, (void)mode, (void)mask, (void)bits, (void)flags;
	n_refusals++;
	errno = EPERM;
	return -1;
}

/* A node that no machine here has, so that no other arena is spoilt. A refusal is told once and costs nothing
 * but the place of the pages. */
static void test_refused_mbind(void **state)
{
	(void)state;
	long (*real)(void *, size_t, int, const unsigned long *, unsigned long, unsigned) = mw_arena_mbind;
	mw_arena_mbind = refuse;
	struct mw_layout *l = make("1", "close", false);
	struct mw_arena *a = arena_of(77);
	assert_non_null(a);
	assert_int_equal(mw_arena_refused(a), EPERM);
	assert_true(n_refusals >= 1);
	l->node_os[0] = 77;
	assert_int_equal(mw_layout_open_arenas(l, true, NULL), 0);
	for (int i = 0; i < 50; i++) {
		char *p = mw_node_alloc(l, 0, 1u << 20, "block", NULL);
		assert_non_null(p);
		memset(p, 1, 1u << 20);
		mw_node_free(l, p);
	}
	struct mw_layout_priv *priv = l->priv;
	fflush(priv->m.notes);
	const char *note = strstr(
		priv->m.notes_text, "The kernel refuses to bind memory (mbind: Operation not permitted");
	assert_non_null(note);
	assert_null(strstr(note + 1, "The kernel refuses"));
	mw_layout_free(l);
	mw_arena_mbind = real;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bind_two),
		cmocka_unit_test(test_affinity_is_obeyed),
		cmocka_unit_test(test_controller_mask_is_restored),
		cmocka_unit_test(test_unknown_cpu_is_an_error),
		cmocka_unit_test(test_plain_memory),
		cmocka_unit_test(test_arena_memory),
		cmocka_unit_test(test_pages_are_bound),
		cmocka_unit_test(test_concurrent_memory),
		cmocka_unit_test(test_one_arena_a_node),
		cmocka_unit_test(test_refused_mbind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
