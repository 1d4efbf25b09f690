/* run_help.c: exchanges that several threads carry out together: the same bits as by one, every block once, and runs that learn. */
#include "run_util.h"

#include <math.h>

#include "base/rng.h"

#define FOUR_NODES "topology=synthetic:numa:4~core:1~pu:1 workers=4 oversubscribe=yes protocol=numa"

enum { DIM = 5 * MW_HELP_FLOATS + 777, THREADS = 4 };

struct party {
	struct mw_run *run;
	struct mw_exec_scratch scratch[THREADS];
	const struct mw_push *push;
	uint32_t left; /* Sync: openers that have not finished; relaxed */
	uint32_t openers, events;
};

static void take_part(void *arg, uint32_t i)
{
	struct party *p = arg;
	struct mw_run *run = p->run;
	if (i < p->openers) {
		for (uint32_t k = 0; k < p->events; k++)
			mw_help_plan(&run->help, &run->executor, &p->scratch[i], i, 0, 1, 0, DIM, p->push,
				p->push ? 1 : 0);
		__atomic_sub_fetch(&p->left, 1, __ATOMIC_RELAXED);
		return;
	}
	while (__atomic_load_n(&p->left, __ATOMIC_RELAXED))
		mw_help_join(&run->help, &run->executor, &p->scratch[i]);
}

static void fill(struct mw_run *run)
{
	struct mw_rng rng;
	mw_rng_init(&rng, 7, 1);
	for (uint32_t r = 0; r < run->replicas.n; r++)
		for (size_t j = 0; j < DIM; j++)
			run->replicas.row[r].x[j] = (float)mw_rng_below(&rng, 1000) / 8;
}

static void test_same_bits(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	float *want = malloc(4 * DIM * sizeof(float)), *delta = malloc(DIM * sizeof(float));
	run_prepare(&t, FOUR_NODES " data=synth:quadratic,dim=%d,rows=8", DIM);
	assert_true(t.run->helps);
	struct party p = { .run = t.run, .openers = 1, .events = 1 };
	struct mw_push push = { 2, 1, delta };
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(mw_exec_scratch_init(&p.scratch[i], &t.run->executor, &err), 0);
	for (size_t j = 0; j < DIM; j++)
		delta[j] = (float)(j % 17) / 4;
	for (int with_push = 0; with_push < 2; with_push++) {
		fill(t.run);
		p.push = with_push ? &push : NULL;
		mw_exec_plan(&t.run->executor, &p.scratch[0], 0, 0, 1, 0, DIM, p.push, with_push, false);
		for (int r = 0; r < 4; r++)
			memcpy(want + r * DIM, t.run->replicas.row[r].x, DIM * sizeof(float));
		for (int repeat = 0; repeat < 20; repeat++) {
			fill(t.run);
			p.left = 1;
			on_threads(THREADS, take_part, &p);
			for (int r = 0; r < 4; r++)
				assert_memory_equal(
					want + r * DIM, t.run->replicas.row[r].x, DIM * sizeof(float));
		}
	}
	/* several at once: all rows are the mean in the end, and the sum is kept */
	fill(t.run);
	double before = 0, after = 0;
	for (int r = 0; r < 4; r++)
		for (size_t j = 0; j < DIM; j++)
			before += t.run->replicas.row[r].x[j];
	p.push = NULL;
	p.openers = p.left = 1;
	p.events = 30;
	on_threads(THREADS, take_part, &p);
	for (int r = 0; r < 4; r++)
		for (size_t j = 0; j < DIM; j++)
			after += t.run->replicas.row[r].x[j];
	assert_true(fabs(after - before) < 1e-6 * before);
	assert_int_equal(t.run->help.state, MW_HELP_FREE);
	assert_int_equal(t.run->help.inside, 0);
	for (uint32_t i = 0; i < THREADS; i++)
		mw_exec_scratch_fini(&p.scratch[i]);
	run_close(&t);
	free(want);
	free(delta);
}

/* Openers that meet: an exchange that finds another one open helps, then does its own. */
static void test_openers_meet(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	run_prepare(&t, FOUR_NODES " access=atomic data=synth:quadratic,dim=%d,rows=8", DIM);
	assert_true(t.run->helps);
	struct party p = { .run = t.run, .openers = 3, .left = 3, .events = 8 };
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(mw_exec_scratch_init(&p.scratch[i], &t.run->executor, &err), 0);
	fill(t.run);
	double before = 0, after = 0;
	for (int r = 0; r < 4; r++)
		for (size_t j = 0; j < DIM; j++)
			before += t.run->replicas.row[r].x[j];
	on_threads(THREADS, take_part, &p);
	for (int r = 0; r < 4; r++)
		for (size_t j = 0; j < DIM; j++)
			after += t.run->replicas.row[r].x[j];
	assert_true(fabs(after - before) < 1e-5 * before); /* atomic adds lose nothing */
	for (uint32_t i = 0; i < THREADS; i++)
		mw_exec_scratch_fini(&p.scratch[i]);
	run_close(&t);
}

static void test_runs(void **state)
{
	(void)state;
	static const char *const accesses[] = { "racy", "atomic" };
	for (int i = 0; i < 2; i++) {
		struct test_run t;
		run_open(&t,
			FOUR_NODES
			" access=%s mix-every=2 epochs=1 rate=0.05 data=synth:quadratic,dim=%d,rows=200",
			accesses[i], DIM);
		assert_true(t.run->helps);
		double first = run_loss(&t);
		run_whole(&t);
		assert_true(run_loss(&t) < first);
		assert_int_equal(run_pushes(&t), 200);
		assert_int_equal(t.run->help.state, MW_HELP_FREE);
		run_close(&t);
	}
}

/* Who must not be helped: small models, locked rows, other protocols, sim, traces. */
static void test_who(void **state)
{
	(void)state;
	static const char *const alone[] = { "access=locked", "protocol=cached", "protocol=async-ring",
		"engine=sim", "estimate=trace", "protocol=sync-ring" };
	struct test_run t;
	for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++) {
		run_prepare(&t, FOUR_NODES " data=synth:quadratic,dim=%d,rows=8 %s", DIM, alone[i]);
		assert_false(t.run->helps);
		run_close(&t);
	}
	run_prepare(&t, FOUR_NODES " data=synth:quadratic,dim=1000,rows=8");
	assert_false(t.run->helps);
	run_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_openers_meet),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_who),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
