/*
 * run_steer.c: the closed loop of --target-tmix. In sim all is exact or nearly so; on real threads (the long form) workers
 * are paced by sleeping, so that the sampler can keep up on any machine.
 */
#include "run_util.h"

#include <math.h>
#include <stdlib.h>

#include "mixing/exact.h"
#include "run/control.h"
#include "run/tmix_of_run.h"

#define DATA "data=synth:quadratic,dim=24,noise=1,rows=400 batch=1 rate=0.01 epochs=1000000 "

/* --- periods that are no whole numbers ----------------------------------------------------------------------------- */

static void periods_alternate(void **state)
{
	struct mw_knobs whole = { .mix_every = 3 }, half = { .mix_every = 1, .mix_part = MW_MIX_PARTS / 2 };
	uint64_t n = 0;
	(void)state;
	for (uint64_t s = 0; s < 30; s++)
		assert_int_equal(mw_knobs_next_mix(&whole, s), s / 3 * 3 + 2);
	/* periods end after 1.5, 3, 4.5, 6 steps: the exchanges follow steps 1, 2, 4, 5, 7, 8, ... */
	for (uint64_t s = 0; s < 3000; s++) {
		uint64_t next = mw_knobs_next_mix(&half, s);
		assert_int_equal(next, s % 3 == 0 ? s + 1 : s);
		n += next == s;
	}
	assert_int_equal(n, 2000);
}

static void periods_have_their_mean(void **state)
{
	(void)state;
	for (uint32_t part = 1; part < MW_MIX_PARTS; part += 4099) {
		struct mw_knobs k = { .mix_every = 7, .mix_part = part };
		double period = 7 + (double)part / MW_MIX_PARTS;
		uint64_t last = UINT64_MAX, n = 0;
		for (uint64_t s = mw_knobs_next_mix(&k, 0); s < 100000; s = mw_knobs_next_mix(&k, s + 1)) {
			if (n++)
				assert_in_range(s - last, 7, 8);
			last = s;
		}
		assert_true(fabs((double)n - 100000 / period) <= 1);
	}
	struct mw_knobs far = { .mix_every = 1000, .mix_part = 1 }; /* 128-bit products: no wrap */
	assert_in_range(mw_knobs_next_mix(&far, UINT64_MAX / 4) - UINT64_MAX / 4, 0, 1000);
}

/* One exchange a period, after any of its steps alike, and all who ask are told the same. */
static void scattered(int64_t every, uint32_t part)
{
	struct mw_knobs k = { .mix_every = every, .mix_part = part };
	double longer = part / (double)MW_MIX_PARTS; /* share of periods with a step more */
	uint64_t n = 0, place[16] = { 0 }, begin = 0, end;
	for (; begin < 90000; begin = end, n++) {
		uint64_t at = mw_knobs_next_scattered(&k, begin, 7, 1);
		end = mw_knobs_next_mix(&k, begin) + 1;
		assert_in_range(at, begin, end - 1);
		for (uint64_t s = begin; s <= at; s++)
			assert_int_equal(mw_knobs_next_scattered(&k, s, 7, 1), at);
		assert_true(mw_knobs_next_scattered(&k, at + 1, 7, 1) >= end);
		place[at - begin]++;
	}
	for (int64_t p = 0; p <= every; p++) {
		double want = (double)n *
			      ((p < every ? (1 - longer) / (double)every : 0) + longer / (double)(every + 1));
		if (!(fabs((double)place[p] - want) <= 5 * sqrt(want) + 1))
			fail_msg("period %g, step %d: %g times, not %g", (double)every + longer, (int)p,
				(double)place[p], want);
	}
}

static void scattered_exchanges_are_one_a_period(void **state)
{
	(void)state;
	for (int64_t every = 1; every <= 9; every += 4) {
		scattered(every, 0);
		scattered(every, MW_MIX_PARTS / 3);
		scattered(every, MW_MIX_PARTS - 1);
	}
}

/* --- holding a target ---------------------------------------------------------------------------------------------- */

static void go_on(struct test_run *t, uint64_t end)
{
	struct mw_err err = { 0 };
	if (mw_control_begin(t->run, &err))
		fail_msg("%s", err.msg);
	run_until(t, end);
	mw_control_end(t->run);
}

static uint32_t windows(const struct test_run *t)
{
	uint32_t n = 0;
	while (mw_steer_at(t->run->steer, n))
		n++;
	return n;
}

/* Run until there are n windows, `chunk` native steps at a time. False: not within 60 s. */
static bool run_windows(struct test_run *t, uint32_t n, uint64_t chunk)
{
	double start = mw_now_s();
	bool all = t->run->protocol->clock == MW_CLOCK_EVENT && !run_in_turns(t);
	uint64_t step = all ? chunk / t->run->n_workers : chunk;
	for (uint64_t k = 1; windows(t) < n; k++) {
		if (mw_now_s() - start > 60)
			return false;
		go_on(t, k * step);
	}
	return true;
}

static double mean_from_second(const struct test_run *t)
{
	const struct mw_steer_window *w;
	double sum = 0;
	uint32_t n = 1;
	for (; (w = mw_steer_at(t->run->steer, n)); n++)
		sum += w->measured;
	return sum / (n - 1);
}

/* Every window from the second on is within 15 %, and their mean within 10; in sim, where nothing disturbs, within 10 and 5. */
static void holds(const char *options, double target, uint32_t n)
{
	struct test_run t;
	const struct mw_steer_window *w;
	run_open(&t, DATA "target-tmix=%g %s", target, options);
	if (!run_windows(&t, n, (uint64_t)(8 * 32 * target)))
		fail_msg("%s: %u windows in a minute", options, windows(&t));
	double mean = mean_from_second(&t), most = t.run->exclusive ? 0.1 : 0.15;
	for (uint32_t i = 1; (w = mw_steer_at(t.run->steer, i)); i++)
		if (!(fabs(w->measured / target - 1) <= most))
			fail_msg("%s: window %u: %g, not %g", options, i, w->measured, target);
	if (!(fabs(mean / target - 1) <= most - 0.05))
		fail_msg("%s: %g on average, not %g", options, mean, target);
	run_close(&t);
}

#define PACED_2 "workers=2 mix-every=32 straggler=uniform:0.0001,0.0004"
#define PACED_8 "workers=8 straggler=uniform:0.001,0.002"
#define EVEN_8  "workers=8 straggler=constant:0.001"

static void sim_holds_the_target(void **state)
{
	(void)state;
	holds("engine=sim protocol=sync-ring workers=8", 20, 4);
	holds("engine=sim protocol=sync-ring workers=8 target-actuator=slack", 20, 4);
	holds("engine=sim protocol=async-ring workers=8 target-actuator=slack", 40, 5);
	holds("engine=sim protocol=cached workers=4", 40, 5);
	holds("engine=sim protocol=numa groups=2 workers=4", 40, 8);
	if (!run_long())
		return;
	holds("engine=sim protocol=async-ring workers=8", 60, 8);
	holds("engine=sim protocol=cached workers=8", 100, 8);
	holds("engine=sim protocol=numa groups=2 workers=8", 100, 16);
	holds("engine=sim protocol=sync-ring workers=2 mix-every=32", 80, 6);
	holds("engine=sim protocol=async-ring workers=8 mix-fraction=0.25", 200, 4);
}

/* What the long form below does on real threads. Workers of one pace too: what their phases are they would be for ever. */
static void sim_holds_the_target_in_every_window(void **state)
{
	uint32_t n = run_long() ? 64 : 12;
	(void)state;
	holds("engine=sim protocol=sync-ring " PACED_2, 40, n);
	holds("engine=sim protocol=async-ring " PACED_2, 40, n);
	holds("engine=sim protocol=numa groups=2 " PACED_2, 40, n);
	holds("engine=sim protocol=cached " PACED_2, 40, n);
	holds("engine=sim protocol=sync-ring " EVEN_8, 40, run_long() ? 12 : 4);
	holds("engine=sim protocol=async-ring " PACED_8, 60, n);
	holds("engine=sim protocol=numa groups=2 " PACED_8, 60, n);
	holds("engine=sim protocol=numa groups=2 " EVEN_8, 60, n);
	holds("engine=sim protocol=cached " PACED_8, 80, n);
}

/* Between k = 1 (4 rounds) and k = 2 (8 rounds) of a ring of 8: alternating gives what is asked for. */
static void small_targets_are_met_between_whole_periods(void **state)
{
	(void)state;
	for (double target = 4; target <= 8; target += 2) {
		struct test_run t;
		run_open(&t, DATA "engine=sim protocol=sync-ring workers=8 target-tmix=%g", target);
		assert_true(fabs((double)t.run->knobs.mix_every +
				    t.run->knobs.mix_part / (double)MW_MIX_PARTS - target / 4) < 1e-4);
		assert_true(run_windows(&t, 3, 4000));
		for (uint32_t i = 0; i < 3; i++)
			assert_true(fabs(mw_steer_at(t.run->steer, i)->measured - target) <= 0.51);
		run_close(&t);
	}
}

/* Gradients: 8 a round. A whole period is exact from the first window on, and stays. */
static void units_are_converted(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t, DATA "engine=sim protocol=sync-ps workers=8 target-tmix=80 target-unit=gradients");
	assert_true(mw_steer_target(t.run->steer) == 10);
	assert_int_equal(t.run->knobs.mix_every, 10);
	assert_true(run_windows(&t, 3, 10000));
	for (uint32_t i = 0; i < 3; i++) {
		const struct mw_steer_window *w = mw_steer_at(t.run->steer, i);
		if (fabs(w->measured - 10) > 1e-9 || fabs(w->next - 10) > 1e-9)
			fail_msg("window %u: %g, next period %g", i, w->measured, w->next);
		assert_true(i == 0 || w->begin == mw_steer_at(t.run->steer, i - 1)->end);
	}
	run_close(&t);
}

/* Free workers push nearly in turn, the exact law has them at random: the start is a third off, the rest is not. */
static void feedback_mends_what_feed_forward_does_not_know(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t, DATA "engine=sim protocol=async-ps workers=8 target-tmix=40");
	assert_true(run_windows(&t, 6, 20000));
	assert_true(mw_steer_at(t.run->steer, 0)->measured < 0.8 * 40);
	assert_true(fabs(mean_from_second(&t) / 40 - 1) <= 0.15);
	run_close(&t);
}

static void what_means_nothing_is_refused(void **state)
{
	struct mw_err err;
	(void)state;
	assert_int_equal(
		run_error(&err, DATA "engine=sim protocol=sync-ring workers=8 target-tmix=3"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "any target from 4 on"));
	assert_int_equal(
		run_error(&err, DATA "engine=sim protocol=hogwild workers=8 target-tmix=30"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "exchanges nothing"));
	assert_int_equal(run_error(&err, DATA "engine=sim protocol=ssp workers=8 target-tmix=30"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "slack"));
	assert_int_equal(
		run_error(&err, DATA "engine=sim protocol=sync-ring workers=8 target-tmix=30 estimate=trace"),
		MW_EUSAGE);
	assert_non_null(strstr(err.msg, "probe"));
	assert_int_equal(run_error(&err, DATA "engine=sim protocol=sync-ring workers=8 target-tmix=30 "
					      "timeline=at~1~epochs:slack=0.5"),
		MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--timeline"));
}

/* Real threads, paced by sleep, with windows of a few seconds each; in the short form only that the loop turns. */
static void two_threads_hold_the_target(void **state)
{
	(void)state;
	holds("oversubscribe=yes protocol=sync-ring workers=2 mix-every=32 straggler=constant:0.0001", 40, 2);
}

/* One set alone begins no segment before the largest age of the one before; several have more in the same native steps. */
static void sets_have_segments_at_the_same_time(void **state)
{
	struct test_run t;
	const uint64_t *age;
	uint64_t steps = 6000;
	(void)state;
	run_open(&t, DATA "oversubscribe=yes protocol=async-ring workers=2 mix-every=32 "
			  "straggler=constant:0.0001 target-tmix=40");
	const struct mw_control *c = t.run->control;
	assert_int_equal(c->sets, MW_CONTROL_SETS);
	uint32_t n = mw_probe_ages(c->probe[0], &age);
	uint64_t alone = 2 * steps / age[n - 1] + 1;
	go_on(&t, steps);
	if (!(c->ended > alone && c->missed < c->ended / 2))
		fail_msg("%llu segments, %llu missed; one set alone: %llu", (unsigned long long)c->ended,
			(unsigned long long)c->missed, (unsigned long long)alone);
	run_close(&t);
}

static void two_threads_hold_sync_ring(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=sync-ring " PACED_2, 40, 8);
}

static void two_threads_hold_async_ring(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=async-ring " PACED_2, 40, 8);
}

static void two_threads_hold_numa(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=numa groups=2 " PACED_2, 40, 8);
}

static void two_threads_hold_cached(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=cached " PACED_2, 40, 8);
}

static void sync_ring_holds_the_target(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=sync-ring " EVEN_8, 40, 4);
}

static void async_ring_holds_the_target(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=async-ring " PACED_8, 60, 5);
}

static void cached_holds_the_target(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=cached " PACED_8, 80, 5);
}

static void numa_holds_the_target(void **state)
{
	(void)state;
	if (run_long())
		holds("oversubscribe=yes protocol=numa groups=2 " PACED_8, 60, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periods_alternate),
		cmocka_unit_test(periods_have_their_mean),
		cmocka_unit_test(scattered_exchanges_are_one_a_period),
		cmocka_unit_test(sim_holds_the_target),
		cmocka_unit_test(sim_holds_the_target_in_every_window),
		cmocka_unit_test(small_targets_are_met_between_whole_periods),
		cmocka_unit_test(units_are_converted),
		cmocka_unit_test(feedback_mends_what_feed_forward_does_not_know),
		cmocka_unit_test(what_means_nothing_is_refused),
		cmocka_unit_test(two_threads_hold_the_target),
		cmocka_unit_test(sets_have_segments_at_the_same_time),
		cmocka_unit_test(two_threads_hold_sync_ring),
		cmocka_unit_test(two_threads_hold_async_ring),
		cmocka_unit_test(two_threads_hold_numa),
		cmocka_unit_test(two_threads_hold_cached),
		cmocka_unit_test(sync_ring_holds_the_target),
		cmocka_unit_test(async_ring_holds_the_target),
		cmocka_unit_test(cached_holds_the_target),
		cmocka_unit_test(numa_holds_the_target),
	};
	if (getenv("MW_ONLY")) /* a pattern: the long ones take a minute each */
		cmocka_set_test_filter(getenv("MW_ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
