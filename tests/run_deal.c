/* run_deal.c: rows that workers take from one pool (--deal dynamic): every row once an epoch, whoever does it. */
#include "run_util.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/checkpoint.h"

/* --- the dealer ------------------------------------------------------------------------------------------------------ */

static void takes_are_a_share_of_what_is_left(void **state)
{
	/* ceil(left / 8) but for rounding down: 100/8 = 12, 88/8 = 11, 77/8 = 9, ..., then one at a time */
	static const uint64_t sizes[] = { 12, 11, 9, 8, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct mw_dealer d = { .limit = 100, .step = 1, .most = 64, .epoch_units = 100, .workers = 2 };
	uint64_t from, to, at = 0;
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_true(mw_dealer_take(&d, &from, &to));
		assert_int_equal(from, at);
		assert_int_equal(to - from, sizes[i]);
		at = to;
	}
	assert_int_equal(at, 100);
	assert_false(mw_dealer_take(&d, &from, &to));
	d.limit = 10000; /* the next segment: at most so many at a time */
	assert_true(mw_dealer_take(&d, &from, &to));
	assert_int_equal(from, 100);
	assert_int_equal(to, 164);
	d = (struct mw_dealer){ .limit = 100, .step = 16, .most = 64, .epoch_units = 100, .workers = 2 };
	for (at = 0; mw_dealer_take(&d, &from, &to); at = to) /* whole batches, and a rest */
		assert_int_equal(to - from, 100 - at < 16 ? 4 : 16);
	assert_int_equal(at, 100);
}

/* Workers that draw from one dealer at once. */
enum { CROWD = 6, DRAW = 7 };
struct crowd {
	struct mw_order order[CROWD];
	uint32_t *seen; /* by row; relaxed */
};

static void draw_all(void *arg, uint32_t i)
{
	struct crowd *c = arg;
	uint64_t row[DRAW];
	uint32_t n;
	while ((n = mw_order_draw(&c->order[i], row, DRAW)) > 0)
		for (uint32_t k = 0; k < n; k++)
			__atomic_add_fetch(&c->seen[row[k]], 1, __ATOMIC_RELAXED);
}

static void check_crowd(enum mw_order_kind kind, uint64_t rows)
{
	struct mw_rows all = { .idx = NULL, .n = rows };
	uint64_t unit = mw_order_unit(kind, rows, CROWD), units = (rows + unit - 1) / unit;
	struct mw_dealer d = { .step = 1, .most = 64, .epoch_units = units, .workers = CROWD };
	struct crowd c = { .seen = calloc(rows, sizeof(uint32_t)) };
	assert_non_null(c.seen);
	for (uint32_t w = 0; w < CROWD; w++) {
		mw_order_init(&c.order[w], kind, false, &all, 5, w, CROWD);
		mw_order_deal(&c.order[w], &d);
	}
	for (uint32_t half = 1; half <= 6; half++) {
		d.limit = (half * units + 1) / 2;
		on_threads(CROWD, draw_all, &c);
		uint64_t sum = 0;
		for (uint64_t i = 0; i < rows; i++) {
			uint32_t least = half / 2, most = (half + 1) / 2;
			if (c.seen[i] < least || c.seen[i] > most)
				fail_msg("kind %d, %llu rows: row %llu came %u times in %u half epochs", kind,
					(unsigned long long)rows, (unsigned long long)i, c.seen[i], half);
			sum += c.seen[i];
		}
		if (half % 2 == 0)
			assert_int_equal(sum, half / 2 * rows);
	}
	free(c.seen);
}

static void every_row_once_an_epoch(void **state)
{
	static const uint64_t rows[] = { 1, 5, 64, 500, 4096, 5001 };
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			check_crowd((enum mw_order_kind)kind, rows[i]);
}

/* One worker alone draws what the permutation of each epoch says: that of a static order of one worker. */
static void one_worker_draws_the_static_order(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct mw_rows all = { .idx = NULL, .n = 1000 };
		struct mw_order a, b;
		uint64_t unit = mw_order_unit((enum mw_order_kind)kind, 1000, 1), want[3000], got[3000];
		uint64_t units = (1000 + unit - 1) / unit;
		struct mw_dealer d = {
			.limit = 3 * units, .step = 1, .most = 64, .epoch_units = units, .workers = 1
		};
		mw_order_init(&a, (enum mw_order_kind)kind, false, &all, 5, 0, 1);
		mw_order_init(&b, (enum mw_order_kind)kind, false, &all, 5, 0, 1);
		mw_order_deal(&b, &d);
		assert_int_equal(mw_order_draw(&a, want, 3000), 3000);
		assert_int_equal(mw_order_draw(&b, got, 3000), 3000);
		assert_memory_equal(want, got, sizeof(want));
		assert_int_equal(mw_order_draw(&b, got, 1), 0);
	}
}

/* --- runs ------------------------------------------------------------------------------------------------------------ */

#define ROWS 1000
#define DATA "data=synth:sparse,rows=1000,features=40,nnz=6 model=hinge rate=1e-5 order=%s batch=%d "

/*
 * With so small a step hinge's derivative is -y for good, so the parameters count how often each row was done: the sum
 * over rows of rate y x / batch, times the epochs. Atomic adds lose none.
 */
static void check_counted(struct test_run *t, double epochs, const char *text)
{
	const struct mw_dataset *d = t->run->train;
	double *want = calloc(t->run->model->dim, sizeof(*want));
	assert_non_null(want);
	for (uint64_t r = 0; r < d->rows; r++) {
		double a = epochs * 1e-5 * (double)d->y[r] / t->run->batch;
		want[d->features] += a;
		for (uint64_t o = d->row_ptr[r]; o < d->row_ptr[r + 1]; o++)
			want[d->col[o]] += a * (double)d->val[o];
	}
	run_loss(t);
	assert_int_equal(t->run->last.examples, (uint64_t)(epochs * ROWS));
	for (size_t j = 0; j < t->run->model->dim; j++) /* a missing row is 1e-5 / batch of the bias */
		if (fabs(want[j] - (double)t->run->average[j]) > 4e-7 + 1e-5 * fabs(want[j]))
			fail_msg(
				"%s: column %zu is %g, not %g", text, j, (double)t->run->average[j], want[j]);
	free(want);
}

static const char *const orders[] = { "block", "random", "file" };
static const char *const protocols[] = { "hogwild", "cached", "async-ps", "token-ring" };

static void runs_do_every_row(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++)
		for (int batch = 1; batch <= 4; batch += 3)
			for (int p = 0; p < 4; p++) {
				struct test_run t;
				run_open(&t,
					DATA "protocol=%s access=atomic workers=3 oversubscribe=yes epochs=4",
					orders[k], batch, protocols[p]);
				assert_non_null(t.run->dealer);
				for (uint64_t e = 1; e <= 4; e++) {
					run_until(&t, e * t.run->steps_per_epoch);
					assert_int_equal(run_pushes(&t) * (uint64_t)batch, e * ROWS);
				}
				t.run->ops->flush(t.run);
				check_counted(&t, 4, protocols[p]);
				run_close(&t);
			}
}

/* A batch that is not full at the end of an epoch waits for the next one. */
static void rests_are_kept(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t, DATA "protocol=hogwild access=atomic workers=3 oversubscribe=yes epochs=6", "block", 48);
	for (uint64_t e = 1; e <= 6; e++) {
		run_until(&t, e * t.run->steps_per_epoch);
		uint64_t done = run_pushes(&t) * 48, kept = 0;
		for (uint32_t w = 0; w < 3; w++)
			kept += t.run->worker[w]->drawn;
		assert_int_equal(done + kept, e * ROWS);
		assert_in_range(kept, 0, 3 * 47);
	}
	run_close(&t);
}

static void who_is_slow_does_less(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t,
		DATA "protocol=hogwild access=atomic workers=2 oversubscribe=yes epochs=2 deal=dynamic "
		     "straggler=worker:0.002/0",
		"random", 1);
	run_whole(&t);
	check_counted(&t, 2, "straggler");
	assert_true(t.run->counters[0].pushes < t.run->counters[1].pushes);
	/* the step size goes by what has been dealt, not by own steps */
	assert_true(t.run->worker[1]->step > t.run->total_steps);
	for (uint32_t w = 0; w < 2; w++)
		assert_in_range(mw_deal_clock(t.run->worker[w]), 0, t.run->total_steps);
	run_close(&t);
}

static void stop_soon(void *arg, uint32_t i)
{
	struct test_run *t = arg;
	if (i == 0) {
		run_until(t, t->run->total_steps);
	} else {
		while (mw_total_pushes(t->run) * t->run->batch <
			700) /* somewhere in the first epoch, mostly */
			;
		__atomic_store_n(&t->run->stop, 1, __ATOMIC_RELAXED);
	}
}

/* Stopped anywhere, saved, loaded, trained to the end: every row as often as without. */
static void a_resumed_run_does_the_rest(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++)
		for (int batch = 1; batch <= 4; batch += 3) {
			struct test_run t;
			struct mw_err err = { 0 };
			for (int again = 0; again < 2; again++) {
				run_open(&t,
					DATA
					"protocol=hogwild access=atomic workers=3 oversubscribe=yes epochs=4",
					orders[k], batch);
				t.run->run_dir = strdup(temporary_path("."));
				if (again && mw_checkpoint_load(t.run, &err))
					fail_msg("%s", err.msg);
				if (again) {
					run_whole(&t);
					check_counted(&t, 4, orders[k]);
				} else {
					on_threads(2, stop_soon, &t);
					assert_int_equal(mw_checkpoint_save(t.run, &err), 0);
				}
				run_close(&t);
			}
		}
}

/* A checkpoint of the other kind says so. */
static void kinds_do_not_mix(void **state)
{
	struct test_run t;
	struct mw_err err = { 0 };
	(void)state;
	run_open(&t, DATA "protocol=hogwild workers=2 oversubscribe=yes deal=static", "block", 1);
	assert_null(t.run->dealer);
	t.run->run_dir = strdup(temporary_path("."));
	assert_int_equal(mw_checkpoint_save(t.run, &err), 0);
	run_close(&t);
	run_open(&t, DATA "protocol=hogwild workers=2 oversubscribe=yes", "block", 1);
	t.run->run_dir = strdup(temporary_path("."));
	assert_int_equal(mw_checkpoint_load(t.run, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "was made with deal static, not dynamic"));
	run_close(&t);
}

/* --- options --------------------------------------------------------------------------------------------------------- */

static void what_prescribes_rows_or_steps_is_static(void **state)
{
	static const char *const cases[][2] = {
		{ "protocol=hogwild engine=sim", "--engine sim" },
		{ "protocol=sync-ring", "a barrier" },
		{ "protocol=hogwild gate=ssp:3", "a gate" },
		{ "protocol=hogwild activation=rr", "--activation" },
		{ "protocol=hogwild shards=iid", "--shards" },
		{ "protocol=hogwild data-place=shard", "--data-place shard" },
		{ "protocol=hogwild timeline=at~1~epochs:~rate=1", "--timeline" },
		{ "protocol=hogwild batch=600", "fewer rows" },
	};
	struct test_run t;
	struct mw_err err;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_prepare(&t, DATA "workers=2 oversubscribe=yes %s", "block", 1, cases[i][0]);
		assert_null(t.run->dealer);
		run_close(&t);
		assert_int_equal(run_error(&err, DATA "workers=2 oversubscribe=yes deal=dynamic %s", "block",
					 1, cases[i][0]),
			MW_EUSAGE);
		if (!strstr(err.msg, cases[i][1]) || !strstr(err.msg, "--deal static"))
			fail_msg("%s: %s", cases[i][0], err.msg);
	}
	run_prepare(&t, DATA "workers=1 deal=dynamic", "block", 1); /* nobody to share with */
	assert_null(t.run->dealer);
	run_close(&t);
	run_prepare(&t, DATA "workers=2 oversubscribe=yes protocol=hogwild straggler=0.001", "block", 1);
	assert_null(t.run->dealer); /* who paces workers wants them so */
	run_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_are_a_share_of_what_is_left),
		cmocka_unit_test(every_row_once_an_epoch),
		cmocka_unit_test(one_worker_draws_the_static_order),
		cmocka_unit_test(runs_do_every_row),
		cmocka_unit_test(rests_are_kept),
		cmocka_unit_test(who_is_slow_does_less),
		cmocka_unit_test(a_resumed_run_does_the_rest),
		cmocka_unit_test(kinds_do_not_mix),
		cmocka_unit_test(what_prescribes_rows_or_steps_is_static),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
