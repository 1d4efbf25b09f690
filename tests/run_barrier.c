/*
 * run_barrier.c: barriers that are hierarchical over NUMA nodes: with any map of threads to nodes nobody leaves before all have
 * come, what was written before is seen after, and a thread that will not come sets the others free.
 */
#include "run_util.h"

#include "base/shared.h"
#include "topo/machine.h"

enum { THREADS_MAX = 24 };

struct crowd {
	struct mw_barrier barrier;
	struct mw_layout *layout;
	uint32_t n, rounds;
	uint32_t wrong[THREADS_MAX]; /* each by its thread, read after the join */
	/* Not atomic on purpose: ThreadSanitizer then checks that the barrier orders them. */
	struct {
		uint32_t round;
	} MW_LINE_ALIGNED own[THREADS_MAX];
};

static uint32_t group(const struct crowd *c, uint32_t i)
{
	return i < c->layout->n_workers ? (uint32_t)c->layout->slot[i].node : 0;
}

static void meet(void *arg, uint32_t i)
{
	struct crowd *c = arg;
	for (uint32_t r = 1; r <= c->rounds; r++) {
		c->own[i].round = r;
		if (!mw_barrier_wait_in(&c->barrier, group(c, i)))
			c->wrong[i]++;
		for (uint32_t k = 0; k < c->n; k++)
			c->wrong[i] += c->own[k].round != r;
		if (!mw_barrier_wait_in(&c->barrier, group(c, i)))
			c->wrong[i]++;
	}
}

/* others: threads beside the workers, as the controller is. */
static void gather(
	struct crowd *c, const char *topology, const char *workers, uint32_t others, uint32_t spins)
{
	struct mw_err err = { 0 };
	struct mw_world world = { 0 };
	const struct mw_layout_request req = { .workers = workers,
		.bind = "spread",
		.controller_cpu = -1,
		.oversubscribe = true,
		.topology = topology };
	memset(c, 0, sizeof(*c));
	if (mw_layout_new_in(&req, &world, &c->layout, &err) ||
		mw_barrier_init_nodes(&c->barrier, c->layout, others, spins, &err))
		fail_msg("%s", err.msg);
	c->n = c->layout->n_workers + others;
	assert_in_range(c->n, 1, THREADS_MAX);
}

static void part(struct crowd *c)
{
	mw_barrier_fini(&c->barrier);
	mw_layout_free(c->layout);
}

static void test_maps(void **state)
{
	(void)state;
	static const struct {
		const char *topology, *workers;
		uint32_t nodes;
	} maps[] = { { "synthetic:core:1 pu:1", "1", 1 }, { "synthetic:numa:2 core:2 pu:1", "4", 2 },
		{ "synthetic:numa:2 core:4 pu:1", "3", 2 },
		{ "synthetic:pack:2 numa:2 core:2 pu:2", "11", 4 },
		{ "synthetic:pack:4 numa:2 core:1 pu:2", "16", 8 },
		{ "synthetic:pack:4 numa:4 core:1 pu:1", "16", 16 },
		{ "synthetic:numa:3 core:1 pu:1", "23", 3 } };
	static struct crowd c;
	for (size_t m = 0; m < sizeof(maps) / sizeof(*maps); m++)
		for (uint32_t others = 0; others < 2; others++) {
			gather(&c, maps[m].topology, maps[m].workers, others, m % 2 ? 20 : 300);
			assert_int_equal(c.barrier.n_groups, maps[m].nodes);
			c.rounds = run_long() ? 2000 : 60;
			on_threads(c.n, meet, &c);
			for (uint32_t i = 0; i < c.n; i++)
				assert_int_equal(c.wrong[i], 0);
			part(&c);
		}
}

/* No two threads of different nodes write one line. */
static void test_lines(void **state)
{
	(void)state;
	static struct crowd c;
	gather(&c, "synthetic:numa:4 core:2 pu:1", "8", 1, 20);
	assert_int_equal(c.barrier.group[0]->n, 3);
	for (uint32_t i = 0; i < 4; i++) {
		struct mw_barrier_group *g = c.barrier.group[i];
		assert_int_equal((uintptr_t)g % MW_LINE_BYTES, 0);
		assert_int_equal(sizeof(*g) % MW_LINE_BYTES, 0);
		assert_true((char *)&g->round - (char *)&g->arrived >= MW_LINE_BYTES);
		assert_true(!i || g->n == 2);
	}
	part(&c);
	/* what workers write in a run */
	assert_int_equal(sizeof(struct mw_counters) % MW_LINE_BYTES, 0);
	assert_int_equal(sizeof(struct mw_push) % MW_LINE_BYTES, 0);
	assert_int_equal(sizeof(struct mw_worker) % MW_LINE_BYTES, 0);
	assert_int_equal(sizeof(struct mw_replica) % MW_LINE_BYTES, 0);
	assert_int_equal(sizeof(struct mw_stripe) % MW_LINE_BYTES, 0);
	size_t stop = offsetof(struct mw_run, stop), train_s = offsetof(struct mw_run, train_s);
	assert_true(offsetof(struct mw_run, turn) % MW_LINE_BYTES == 0 && stop % MW_LINE_BYTES == 0);
	assert_true(train_s / MW_LINE_BYTES > stop / MW_LINE_BYTES);
	assert_true(offsetof(struct mw_run, token) / MW_LINE_BYTES >
		    offsetof(struct mw_run, turn) / MW_LINE_BYTES);
}

static void leave_one_out(void *arg, uint32_t i)
{
	struct crowd *c = arg;
	if (i == c->n - 1)
		mw_barrier_cancel(&c->barrier);
	else
		c->wrong[i] = mw_barrier_wait_in(&c->barrier, group(c, i));
}

static void test_cancel(void **state)
{
	(void)state;
	static struct crowd c;
	gather(&c, "synthetic:numa:3 core:2 pu:1", "6", 0, 20);
	on_threads(c.n, leave_one_out, &c);
	for (uint32_t i = 0; i < c.n; i++)
		assert_int_equal(c.wrong[i], 0);
	part(&c);
}

/* A run of rounds over eight nodes: the same bits as over one, since barriers order everything. */
static void test_run(void **state)
{
	(void)state;
	static const char *const topologies[] = { "synthetic:core:8~pu:1",
		"synthetic:pack:4~numa:2~core:1~pu:1" };
	static const char *const protocols[] = { "sync-ring", "sync-ps", "local-sgd" };
	for (int p = 0; p < 3; p++) {
		float *average[2];
		for (int i = 0; i < 2; i++) {
			struct test_run t;
			run_open(&t,
				"data=synth:quadratic,dim=300,rows=2000 workers=8 epochs=1 rate=0.01 "
				"protocol=%s topology=%s",
				protocols[p], topologies[i]);
			assert_int_equal(t.run->barrier.n_groups, i ? 8 : 1);
			run_whole(&t);
			run_loss(&t);
			average[i] = malloc(300 * sizeof(float));
			memcpy(average[i], t.run->average, 300 * sizeof(float));
			run_close(&t);
		}
		assert_memory_equal(average[0], average[1], 300 * sizeof(float));
		free(average[0]);
		free(average[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
