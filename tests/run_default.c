/*
 * run_default.c: --protocol auto: what the rule says on both sides of its limits, that a run's recorded options repeat it, that
 * named protocols don't hear of it, and that the periods it allows keep a serial run's loss where longer ones lose it.
 */
#include "run_util.h"

#include <math.h>

#include "run/setup_impl.h"
#include "run/theory.h"

/* The sparse set of experiments/bench at rate 0.5, two workers. */
static const struct mw_sharing sparse = { .workers = 2,
	.sparse = true,
	.dim = 47236,
	.batch = 1,
	.touched = 75,
	.lines = 75,
	.hot = 1,
	.curvature = 0.0005,
	.epoch_steps = 100000 };

static struct mw_choice chosen(struct mw_sharing s)
{
	struct mw_choice c;
	mw_choose_sharing(&s, &c);
	return c;
}

#define CHOOSES(choice, name, every)                     \
	do {                                             \
		struct mw_choice got = choice;           \
		assert_string_equal(got.protocol, name); \
		assert_int_equal(got.mix_every, every);  \
	} while (0)

static void test_cost_decides(void **state)
{
	(void)state;
	struct mw_sharing s = sparse;
	/* 4000 + 0.5 * 47236 ns a merge in 5 % of 75 * 1.7 ns: 4332 steps, and no more than 2048 */
	CHOOSES(chosen(s), "cached", 2048);
	assert_float_equal(chosen(s).shared_ns, 750, 1e-9);
	assert_float_equal(chosen(s).merge_ns, 27618.0 / 2048, 1e-9);
	/* Columns of which no core keeps a line: 1.7 % of 750 ns is less than a merge's share, 1.9 % is more. */
	s.hot = 0.017;
	CHOOSES(chosen(s), "hogwild", 0);
	s.hot = 0.019;
	CHOOSES(chosen(s), "cached", 2048);
	/* a merge in 5 % of 300 * 1.7 ns: 1083.1 steps */
	s = sparse;
	s.touched = s.lines = 300;
	CHOOSES(chosen(s), "cached", 1084);
	/* Merging ever more parameters: 2048 steps at most between merges that take 0.5 ns each. */
	s = sparse;
	s.dim = 3e6;
	CHOOSES(chosen(s), "cached", 2048);
	s.dim = 3.1e6;
	CHOOSES(chosen(s), "hogwild", 0);
	/* An epoch of few steps has eight merges. */
	s = sparse;
	s.epoch_steps = 2100;
	CHOOSES(chosen(s), "cached", 263); /* 262.5 */
	/* Four parameters: one line that travels costs less than merging after every step. */
	s = (struct mw_sharing){ .workers = 2,
		.dim = 4,
		.batch = 1,
		.touched = 4,
		.lines = 1,
		.hot = 1,
		.curvature = 20,
		.epoch_steps = 1e6 };
	CHOOSES(chosen(s), "hogwild", 0);
}

/*
 * One worker suffices where several only wait for each other: 75 values take 127.5 ns, and sharing 75 lines 750 at two workers, 1312.5 at
 * eight, 1406.25 at sixteen, so that sixteen get more done in spite of it.
 */
static void test_one_suffices(void **state)
{
	(void)state;
	struct mw_sharing s = sparse;
	assert_false(chosen(s).one);
	s.curvature = 0.125; /* merging after 12 steps costs more than sharing */
	CHOOSES(chosen(s), "hogwild", 0);
	assert_true(chosen(s).one);
	s.workers = 8;
	assert_true(chosen(s).one);
	s.workers = 16;
	assert_false(chosen(s).one);
	s.workers = 2;
	s.hot = 0.16; /* 120 ns: two workers get a little more done */
	assert_false(chosen(s).one);
	s.hot = 0.18;
	assert_true(chosen(s).one);
	s.hot = 1;
	s.sparse = false; /* what a dense step takes isn't known well enough */
	assert_false(chosen(s).one);
}

/* Whole steps: 1.9 become 2, not one that merges twice as often; but not where that would come too close to the limit. */
static void test_whole_periods(void **state)
{
	(void)state;
	struct mw_sharing s = { .workers = 2,
		.dim = 7850,
		.batch = 16,
		.touched = 7850,
		.lines = 491,
		.hot = 1,
		.curvature = 0.847,
		.epoch_steps = 1875 };
	double limit = -log(1 - 0.8);
	assert_float_equal(chosen(s).steps_max, limit / 0.847, 1e-9);
	CHOOSES(chosen(s), "cached", 2);
	s.curvature = 0.94; /* 2 steps: a = 0.847 */
	CHOOSES(chosen(s), "cached", 2);
	s.curvature = 0.96; /* 2 steps: a = 0.853; and merging after each costs 7925 ns, sharing 4910 */
	CHOOSES(chosen(s), "hogwild", 0);
}

/* Periods of 3 and more workers: 0.8 of where e(k+1) = e(k) - a e(k-n+1), a = 1 - exp(-curvature * period), begins to grow. */
static void test_step_size_decides(void **state)
{
	(void)state;
	struct mw_sharing s = sparse;
	s.curvature = 0.00125;
	assert_float_equal(chosen(s).steps_max, -log(1 - 0.8) / 0.00125, 1e-9);
	CHOOSES(chosen(s), "cached", 1288); /* 1287.55 */
	s.curvature = 0.125;                /* 12 steps: merging would cost more than sharing */
	CHOOSES(chosen(s), "hogwild", 0);
	s.curvature = 0.00125;
	s.workers = 3;
	assert_float_equal(chosen(s).steps_max, -log(1 - 0.8 * 0.6180339887) / 0.00125, 1e-3);
	s.workers = 8;
	assert_float_equal(chosen(s).steps_max, -log(1 - 0.8 * 0.2090569265) / 0.00125, 1e-3);
	CHOOSES(chosen(s), "cached", 147); /* 146.6 */
	s.workers = 64;                    /* 16 steps: merging would cost more than sharing */
	CHOOSES(chosen(s), "hogwild", 0);
	/* not known: of an epoch's rows, others may add 1/64 unseen; of dense ones 1/256 */
	s = sparse;
	s.curvature = NAN;
	assert_float_equal(chosen(s).steps_max, 2 * 100000 / 64.0, 1e-9);
	s.workers = 5;
	assert_float_equal(chosen(s).steps_max, 1.25 * 100000 / 64.0, 1e-9);
	s.sparse = false;
	assert_float_equal(chosen(s).steps_max, 1.25 * 100000 / 256.0, 1e-9);
}

#define TWO "workers=2 oversubscribe=yes "

static void picks(const char *options, const char *protocol, int64_t every)
{
	struct test_run t;
	run_prepare(&t, "%s", options);
	if (strcmp(t.run->protocol->ops->name, protocol) || (every >= 0 && t.run->knobs.mix_every != every))
		fail_msg("%s: %s every %lld (%s)", options, t.run->protocol->ops->name,
			(long long)t.run->knobs.mix_every, t.run->why);
	assert_true(*t.run->why);
	run_close(&t);
}

/* Of auto workers one may be left, if nothing is asked about several; the recorded options repeat that. */
static void test_leaves_one(void **state)
{
	(void)state;
#define WAITS "data=synth:sparse,rows=20000,features=2000,nnz=20 rate=1 epochs=1 " /* and a bias */
	struct test_run t;
	unsetenv("OMP_NUM_THREADS");
	unsetenv("SLURM_CPUS_PER_TASK");
	run_prepare(&t, WAITS TWO);
	assert_string_equal(t.run->protocol->ops->name, "hogwild");
	assert_int_equal(t.run->n_workers, 2);
	assert_non_null(strstr(t.run->why, "--workers 1 would do as well"));
	run_close(&t);
	run_prepare(&t, WAITS);
	assert_string_equal(t.run->protocol->ops->name, "sequential");
	assert_int_equal(t.run->n_workers, 1);
	assert_int_equal(t.run->layout->n_workers, 1);
	json_t *config = mw_job_config(t.job);
	assert_string_equal(json_string_value(json_object_get(config, "workers")), "1");
	assert_string_equal(json_string_value(json_object_get(config, "protocol")), "sequential");
	json_decref(config);
	run_start(&t);
	run_whole(&t);
	assert_int_equal(run_pushes(&t), 20000);
	run_close(&t);
	uint32_t cpus;
	run_prepare(&t, WAITS "protocol=hogwild");
	cpus = t.run->n_workers;
	run_close(&t);
	run_prepare(&t, WAITS "estimate=trace");
	assert_int_equal(t.run->n_workers, cpus);
	run_close(&t);
	run_prepare(&t, WAITS "data-place=shard");
	assert_int_equal(t.run->n_workers, cpus);
	run_close(&t);
	setenv("OMP_NUM_THREADS", "2", 1); /* who allots CPUs wants them used */
	run_prepare(&t, WAITS);
	assert_int_equal(t.run->n_workers, cpus < 2 ? cpus : 2);
	run_close(&t);
	unsetenv("OMP_NUM_THREADS");
}

static void test_data_decide(void **state)
{
	(void)state;
	picks(TWO "data=synth:sparse,rows=20000,features=2000,nnz=20 rate=0.001", "cached", 1250);
	picks(TWO "data=synth:sparse,rows=2000,features=20000000,nnz=4", "hogwild", -1);
	picks(TWO "data=synth:dense,rows=4000,features=100 rate=0.01", "cached", 250);
	picks(TWO "data=synth:quadratic,dim=4,rows=10", "hogwild", -1);
	/* a net at any rate: a merge after every step of 92,000 parameters (of 4,000: what a merge takes at least is more) */
	picks(TWO "data=synth:dense,rows=4000,features=100 model=mlp:256,256 rate=1e-6", "cached", 1);
	picks(TWO "data=synth:dense,rows=4000,features=100 model=mlp:256,256 optimizer=adam", "cached", 1);
	picks(TWO "data=synth:dense,rows=4000,features=100 model=mlp:32,16", "hogwild", -1);
	/* options that leave no choice */
	picks("workers=1 data=synth:sparse,rows=2000,features=2000,nnz=20", "sequential", -1);
	picks("workers=4 engine=sim data=synth:sparse,rows=2000,features=2000,nnz=20", "hogwild", -1);
	picks(TWO "mix-every=7 data=synth:sparse,rows=2000,features=2000,nnz=20", "cached", 7);
	picks(TWO "staleness=constant:2 data=synth:sparse,rows=2000,features=2000,nnz=20", "hogwild", -1);
	struct mw_err err;
	assert_int_equal(run_error(&err, TWO "graph=ring data=synth:quadratic,dim=4,rows=10"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "name the protocol"));
}

/* What was chosen is in the options; taken from there, nothing is chosen. Other protocols keep their own period. */
static void test_repeats(void **state)
{
	(void)state;
	static const char data[] = TWO "data=synth:sparse,rows=20000,features=2000,nnz=20 rate=0.001";
	struct test_run t;
	run_prepare(&t, "%s", data);
	json_t *first = mw_job_config(t.job);
	int64_t every = t.run->knobs.mix_every;
	run_close(&t);
	assert_string_equal(json_string_value(json_object_get(first, "protocol")), "cached");
	assert_int_equal(json_integer_value(json_object_get(first, "mix-every")), every);
	run_prepare(&t, "%s protocol=cached mix-every=%lld", data, (long long)every);
	json_t *again = mw_job_config(t.job);
	assert_true(json_equal(first, again));
	assert_string_equal(t.run->why, "");
	run_close(&t);
	json_decref(first);
	json_decref(again);
	run_prepare(&t, "%s protocol=cached", data);
	assert_int_equal(t.run->knobs.mix_every, 2048);
	assert_string_equal(t.run->why, "");
	run_close(&t);
}

static double loss_of(const char *options)
{
	struct test_run t;
	run_open(&t, "%s", options);
	run_whole(&t);
	double loss = run_loss(&t);
	run_close(&t);
	return loss;
}

/* The same bits by another name. */
static void test_names_same_run(void **state)
{
	(void)state;
#define SMALL "data=synth:sparse,rows=500,features=100,nnz=8 epochs=3 "
	assert_true(loss_of(SMALL "workers=1") == loss_of(SMALL "workers=1 protocol=sequential"));
	assert_true(loss_of(SMALL "workers=5 engine=sim") ==
		    loss_of(SMALL "workers=5 engine=sim protocol=hogwild"));
}

/* Eight workers: the period that the rule allows, and one beyond the limit of stability. */
static void test_keeps_loss(void **state)
{
	(void)state;
#define ROWS "data=synth:dense,rows=20000,features=64 rate=0.01 epochs=4 eval-rows=4000 "
	struct test_run t;
	struct mw_sharing s = {
		.workers = 8, .dim = 65, .batch = 1, .touched = 65, .lines = 5, .hot = 1, .epoch_steps = 1e9
	};
	double l;
	struct mw_err err = { 0 };
	run_prepare(&t, ROWS "protocol=sequential workers=1");
	assert_int_equal(mw_typical_curvature(t.run, 1e9, &l, &err), 0);
	run_close(&t);
	assert_float_equal(l, 0.25, 0.02); /* columns of variance 1, nearly independent, and the bias */
	s.curvature = 0.01 * l;
	struct mw_choice c = chosen(s);
	assert_string_equal(c.protocol, "cached");
	assert_in_range(c.mix_every, 60, 80);
	double serial = loss_of(ROWS "protocol=sequential workers=1");
	char rule[400];
	snprintf(rule, sizeof(rule), ROWS "protocol=cached workers=8 engine=sim mix-every=%lld",
		(long long)c.mix_every);
	double at_rule = loss_of(rule);
	double beyond = loss_of(ROWS "protocol=cached workers=8 engine=sim mix-every=1024");
	if (fabs(at_rule / serial - 1) > 0.01 || beyond < 1.5 * serial)
		fail_msg("serial %g, every %lld steps %g, every 1024 %g", serial, (long long)c.mix_every,
			at_rule, beyond);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost_decides),
		cmocka_unit_test(test_step_size_decides),
		cmocka_unit_test(test_one_suffices),
		cmocka_unit_test(test_whole_periods),
		cmocka_unit_test(test_leaves_one),
		cmocka_unit_test(test_data_decide),
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_names_same_run),
		cmocka_unit_test(test_keeps_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
