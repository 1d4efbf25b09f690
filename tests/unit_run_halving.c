/* unit_run_halving.c: successive halving with a made-up objective and clock: who is tried when, for how long, and who wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

#include "run/halving.h"

enum { N = 13, CALLS_MAX = 400 };

struct fake {
	double value[N];
	double noise[MW_HALVING_REPEATS]; /* added to the k-th trial of a candidate in a rung */
	uint32_t tried[N][MW_HALVING_RUNGS];
	struct {
		uint32_t candidate, rung;
		double seconds;
	} call[CALLS_MAX];
	uint32_t n_calls, stop_at;
	double clock;
};

static int trial(void *arg, uint32_t c, uint32_t rung, double seconds, struct mw_trial_score *score)
{
	struct fake *f = arg;
	if (f->stop_at && f->n_calls == f->stop_at)
		return -1;
	assert_true(f->n_calls < CALLS_MAX);
	f->call[f->n_calls].candidate = c;
	f->call[f->n_calls].rung = rung;
	f->call[f->n_calls++].seconds = seconds;
	f->clock += seconds;
	uint32_t k = f->tried[c][rung]++;
	*score = (struct mw_trial_score){ f->value[c] + f->noise[k], 0 };
	return 0;
}

static void test_plan(void **state)
{
	(void)state;
	struct mw_halving_plan p;
	mw_halving_plan(13, 3, 5, 100, 0.01, &p);
	assert_int_equal(p.rungs, 3);
	assert_int_equal(p.n[0], 13);
	assert_int_equal(p.n[1], 5);
	assert_int_equal(p.n[2], 2);
	assert_int_equal(p.repeats[0], 1);
	assert_int_equal(p.repeats[1], 5);
	assert_true(fabs(p.seconds[1] / p.seconds[0] - 3) < 1e-12 &&
		    fabs(p.seconds[2] / p.seconds[1] - 3) < 1e-12);
	assert_true(fabs(mw_halving_total_s(&p) - 100) < 1e-9);
	/* (13 * 1 + 5 * 5 * 3 + 2 * 5 * 9) * first = 178 first = 100 */
	assert_true(fabs(p.seconds[0] - 100.0 / 178) < 1e-12);
	mw_halving_plan(13, 3, 5, 100, 2, &p); /* too short to mean anything: longer */
	assert_true(p.seconds[0] == 2 && mw_halving_total_s(&p) == 356);
	mw_halving_plan(1, 3, 5, 10, 0, &p);
	assert_int_equal(p.rungs, 1);
	assert_int_equal(p.repeats[0], 5);
	assert_true(p.seconds[0] == 2);
	mw_halving_plan(1000000, 2, 1, 10, 0, &p);
	assert_true(p.rungs <= MW_HALVING_RUNGS);
}

static void test_the_best_wins(void **state)
{
	(void)state;
	struct fake f = { .noise = { 0.1, -0.1, 0.3, 0, -0.2 } };
	struct mw_halving_plan p;
	struct mw_halving_result result[N];
	uint32_t rank[N];
	for (uint32_t c = 0; c < N; c++)
		f.value[c] = 1 + (c * 5) % N; /* 1 6 11 3 8 13 5 10 2 7 12 4 9 */
	mw_halving_plan(N, 3, 5, 100, 0, &p);
	assert_int_equal(mw_halving_run(&p, trial, &f, result, rank), 0);
	assert_true(fabs(f.clock - 100) < 1e-9);
	assert_int_equal(f.n_calls, 13 + 25 + 10);
	/* the second rung: the five best, in order, five times in turn */
	static const uint32_t five[] = { 0, 8, 3, 11, 6 };
	for (uint32_t i = 0; i < 25; i++) {
		assert_int_equal(f.call[13 + i].candidate, five[i % 5]);
		assert_int_equal(f.call[13 + i].rung, 1);
		assert_true(f.call[13 + i].seconds == p.seconds[1]);
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(f.call[38 + i].candidate, five[i % 2]);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(rank[i], five[i]);
	assert_int_equal(result[0].rung, 2);
	assert_int_equal(result[0].n, 5);
	assert_true(fabs(result[0].median.first - 1) < 1e-12);
	assert_true(fabs(result[0].best.first - 0.8) < 1e-12);
	assert_true(fabs(result[0].worst.first - 1.3) < 1e-12);
	assert_int_equal(result[11].rung, 1);
	assert_int_equal(result[5].rung, 0);
	assert_int_equal(rank[N - 1], 5);
}

/* What can't be run is last; where nothing is reached the second number decides; ties keep their order. */
static int special(void *arg, uint32_t c, uint32_t rung, double seconds, struct mw_trial_score *score)
{
	static const struct mw_trial_score scores[] = { { INFINITY, INFINITY }, { INFINITY, 0.5 },
		{ INFINITY, 0.3 }, { 7, 9 }, { 7, 9 } };
	(void)arg, (void)rung, (void)seconds;
	*score = scores[c];
	return 0;
}

static void test_order(void **state)
{
	(void)state;
	struct mw_halving_plan p;
	struct mw_halving_result result[5];
	uint32_t rank[5];
	static const uint32_t want[] = { 3, 4, 2, 1, 0 };
	mw_halving_plan(5, 16, 2, 1, 0, &p);
	assert_int_equal(mw_halving_run(&p, special, NULL, result, rank), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rank[i], want[i]);
}

static void test_even_median(void **state)
{
	(void)state;
	struct fake f = { .value = { 1 }, .noise = { 3, 0, 2, 1 } };
	struct mw_halving_plan p;
	struct mw_halving_result result;
	uint32_t rank;
	mw_halving_plan(1, 2, 4, 1, 0, &p);
	mw_halving_run(&p, trial, &f, &result, &rank);
	assert_true(result.median.first == 3); /* of 1 2 3 4 the worse of the middle two */
}

/* Ctrl-C at any moment: a ranking of what was tried to the end, nothing else. */
static void test_stopped(void **state)
{
	(void)state;
	for (uint32_t stop = 1; stop < 48; stop++) {
		struct fake f = { .stop_at = stop };
		struct mw_halving_plan p;
		struct mw_halving_result result[N];
		uint32_t rank[N], tried = 0;
		for (uint32_t c = 0; c < N; c++)
			f.value[c] = 1 + (c * 5) % N;
		mw_halving_plan(N, 3, 5, 100, 0, &p);
		assert_int_equal(mw_halving_run(&p, trial, &f, result, rank), -1);
		assert_int_equal(f.n_calls, stop);
		for (uint32_t c = 0; c < N; c++)
			tried += result[c].n > 0;
		assert_int_equal(tried, stop < N ? stop : N);
		assert_int_equal(rank[0], 0);
		for (uint32_t i = tried; i < N; i++)
			assert_int_equal(result[rank[i]].n, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_the_best_wins),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_even_median),
		cmocka_unit_test(test_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
