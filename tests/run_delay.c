/*
 * run_delay.c: constant staleness is the delayed gradient recurrence x_{t+1} = x_t - a g(x_{t-tau}), its stability limits
 * are those of theory (theory.md section 8), and the staleness that is observed is the one that was injected.
 */
#include "run_util.h"

#include <math.h>

#include "base/mem.h"

static const char *const engines[] = { "sim", "threads" };

/* --- the recurrence ------------------------------------------------------------------------------------------------ */

/* In double, on the data's own curvatures and optimum. */
static void recurrence(const struct mw_dataset *d, double rate, uint32_t tau, uint32_t steps, double *x)
{
	uint32_t dim = d->features;
	double *old = calloc((size_t)(steps + 1) * dim, sizeof(*old)); /* x_0 = 0, x_1, ... */
	assert_non_null(old);
	for (uint32_t t = 0; t < steps; t++)
		for (uint32_t i = 0; i < dim; i++) {
			double *now = &old[(size_t)t * dim + i], g = 0;
			if (t >= tau)
				g = (double)d->curvature[i] *
				    (now[-(ptrdiff_t)((size_t)tau * dim)] - (double)d->optimum[i]);
			now[dim] = now[0] - rate * g;
		}
	memcpy(x, old + (size_t)steps * dim, dim * sizeof(*x));
	free(old);
}

static void check_recurrence(const char *protocol, const char *engine, uint32_t tau, uint32_t steps)
{
	struct test_run t;
	double want[10];
	run_open(&t,
		"data=synth:quadratic,dim=10,cond=20,rows=100 protocol=%s workers=1 engine=%s rate=0.01 "
		"epochs=100 "
		"staleness=constant:%u",
		protocol, engine, tau);
	recurrence(t.run->train, 0.01, tau, steps, want);
	run_until(&t, steps);
	run_loss(&t);
	assert_int_equal(t.run->counters[0].pushes, steps > tau ? steps - tau : 0);
	for (uint32_t i = 0; i < 10; i++)
		if (!(fabs((double)t.run->average[i] - want[i]) < 1e-6))
			fail_msg("%s on %s, tau %u, %u steps: x[%u] = %.9g, the recurrence gives %.9g",
				protocol, engine, tau, steps, i, (double)t.run->average[i], want[i]);
	run_close(&t);
}

static void follows_the_recurrence(void **state)
{
	static const uint32_t delays[] = { 0, 1, 4, 8 }, lengths[] = { 1, 3, 9, 30, 200 };
	static const char *const protocols[] = { "sequential", "hogwild", "async-ps", "local-sgd" };
	(void)state;
	for (int e = 0; e < 2; e++)
		for (int p = 0; p < 4; p++)
			for (int d = 0; d < 4; d++)
				for (int l = 0; l < 5; l++)
					check_recurrence(protocols[p], engines[e], delays[d], lengths[l]);
}

/* What is on its way at the end is pushed, in order, and counted. */
static void flushes_the_rest(void **state)
{
	(void)state;
	for (int e = 0; e < 2; e++) {
		struct test_run t;
		run_open(&t,
			"data=synth:quadratic,dim=10,rows=100 protocol=hogwild workers=1 engine=%s rate=0.01 "
			"epochs=0.5 "
			"staleness=constant:8",
			engines[e]);
		assert_int_equal(t.run->total_steps, 50);
		run_until(&t, 50);
		assert_int_equal(run_pushes(&t), 42);
		t.run->ops->flush(t.run);
		assert_int_equal(run_pushes(&t), 50);
		assert_int_equal(t.run->worker[0]->flushed, 8);
		run_close(&t);
	}
}

/* A schedule that falls lets several deltas come due together: all are pushed, in the order of their issue. */
static void falling_delays(void **state)
{
	(void)state;
	for (int e = 0; e < 2; e++) {
		struct test_run t;
		/* 4 for two steps, then 0: at step 4 the deltas of steps 0 and 4 are pushed */
		run_open(&t,
			"data=synth:quadratic,dim=10,rows=100 protocol=hogwild workers=1 engine=%s rate=0.01 "
			"epochs=1 "
			"sample-every=1 staleness=square:4,0,period=4",
			engines[e]);
		for (uint64_t step = 1; step < 10; step++) {
			run_until(&t, step);
			/* issued at steps 0 1 4 5: due at 4 5 8 9; at 2 3 6 7: at once */
			uint64_t want = 0;
			for (uint64_t k = 0; k < step; k++)
				want += k + (k % 4 < 2 ? 4 : 0) < step;
			assert_int_equal(run_pushes(&t), want);
		}
		run_close(&t);
	}
}

/* --- stability ----------------------------------------------------------------------------------------------------- */

/* alpha L at which delayed gradient descent on a quadratic turns unstable */
static double limit(uint32_t tau)
{
	return 2 * sin(M_PI / (2 * (2 * (double)tau + 1)));
}

/* The ratio of the losses at the end and after the start, at alpha = share * limit / L. */
static double growth(uint32_t tau, double share)
{
	struct test_run t;
	run_prepare(&t,
		"data=synth:quadratic,dim=1,rows=1 protocol=sequential engine=sim staleness=constant:%u",
		tau);
	double curvature = (double)t.run->train->curvature[0];
	run_close(&t);
	run_open(&t,
		"data=synth:quadratic,dim=1,rows=1 protocol=sequential engine=sim staleness=constant:%u "
		"rate=%.9g epochs=1e9",
		tau, share * limit(tau) / curvature);
	double before = run_loss(&t);
	run_until(&t, 100 * (uint64_t)(2 * tau + 1) * (2 * tau + 1) + 2000);
	double after = run_loss(&t);
	run_close(&t);
	assert_true(before > 0);
	return isfinite(after) ? after / before : INFINITY;
}

static void turns_unstable_at_the_limit(void **state)
{
	/* theory.md section 8 */
	static const struct {
		uint32_t tau;
		double limit;
	} known[] = { { 1, 1 }, { 3, .445042 }, { 7, .209057 }, { 15, .101298 }, { 31, .049861 } };
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t tau = known[i].tau;
		assert_true(fabs(limit(tau) - known[i].limit) < 5e-6); /* five or six digits are given */
		double below = growth(tau, 0.98), above = growth(tau, 1.02);
		if (!(below < 1e-3))
			fail_msg("tau %u, 2 %% below the limit: the loss grew by %g", tau, below);
		if (!(above > 1e3))
			fail_msg("tau %u, 2 %% above the limit: the loss changed by %g only", tau, above);
	}
}

/* --- staleness as observed ----------------------------------------------------------------------------------------- */

static void injected_is_observed(void **state)
{
	static const uint32_t delays[] = { 0, 1, 4, 8, 100 };
	static const char *const protocols[] = { "sequential", "hogwild", "async-ps" };
	enum { STEPS = 500 };
	(void)state;
	for (int e = 0; e < 2; e++)
		for (int p = 0; p < 3; p++)
			for (int d = 0; d < 5; d++) {
				struct test_run t;
				uint32_t tau = delays[d];
				run_open(&t,
					"data=synth:quadratic,dim=10,rows=500 protocol=%s workers=1 "
					"engine=%s rate=0.001 epochs=1 "
					"sample-every=1 staleness=constant:%u",
					protocols[p], engines[e], tau);
				run_whole(&t);
				struct mw_hist *h = run_staleness(&t);
				assert_int_equal(h->n, STEPS);
				assert_int_equal(h->max, tau);
				for (uint32_t k = 0; k < tau; k++) /* the first views miss less */
					assert_int_equal(h->count[k], 1);
				assert_int_equal(h->count[tau], STEPS - tau);
				mw_free(h);
				run_close(&t);
			}
}

/* A server's copy is as old as its last renewal: every fourth step here. A view of what is pushed to misses nothing. */
static void a_copy_is_as_old_as_its_last_mix(void **state)
{
	static const char *const protocols[] = { "async-ps", "cached", "async-gossip" };
	(void)state;
	for (int p = 0; p < 3; p++)
		for (int e = 0; e < 2; e++) {
			struct test_run t;
			run_open(&t,
				"data=synth:quadratic,dim=10,rows=400 protocol=%s workers=1 engine=%s "
				"rate=0.001 epochs=1 "
				"sample-every=1 mix-every=4",
				protocols[p], engines[e]);
			run_whole(&t);
			struct mw_hist *h = run_staleness(&t);
			for (uint32_t k = 0; k < 4; k++)
				assert_int_equal(h->count[k], p == 0 ? 100 : k == 0 ? 400 : 0);
			mw_free(h);
			run_close(&t);
		}
}

/*
 * theory.md section 7: a worker that reads right after its write and uses each view once gives tau_avg = n - 1, whatever
 * the speeds: every write is missed by the n - 1 views in flight.
 */
static void mean_is_n_minus_1(void **state)
{
	static const uint32_t counts[] = { 2, 3, 8, 33 };
	static const char *const activations[] = { "rr", "random" };
	enum { EVENTS = 20000 };
	(void)state;
	for (int i = 0; i < 4; i++)
		for (int a = 0; a < 2; a++) {
			struct test_run t;
			double n = counts[i];
			run_open(&t,
				"data=synth:quadratic,dim=4,rows=500 protocol=async-ps workers=%u engine=sim "
				"rate=0.001 "
				"epochs=10000 activation=%s",
				counts[i], activations[a]);
			run_until(&t, EVENTS);
			struct mw_hist *h = run_staleness(&t);
			assert_int_equal(h->n, EVENTS);
			/* but for the views at both ends, of which each misses a round of writes or so */
			assert_true(fabs(h->sum / EVENTS - (n - 1)) <= 8 * n * n / EVENTS);
			if (a == 0) { /* worker k's first view misses k writes, then all miss n - 1 */
				assert_int_equal(h->max, counts[i] - 1);
				assert_int_equal(h->count[counts[i] - 1], EVENTS - (counts[i] - 1));
			}
			mw_free(h);
			run_close(&t);
		}
}

/*
 * The same on the virtual clock: equal workers, and one that is ten times slower. Idle time between a write and the next
 * read lowers it, by the share of time that views are not in flight; a server's copy is read at the end of the write.
 */
static void mean_on_the_virtual_clock(void **state)
{
	static const struct {
		const char *options;
		double mean;
	} cases[] = {
		{ "protocol=async-ps compute-time=uniform:0.5,1.5", 7 },
		{ "protocol=hogwild compute-time=uniform:0.5,1.5", 7 },
		{ "protocol=async-ps compute-time=uniform:0.5,1.5 straggler=only:3,9.0", 7 },
		{ "protocol=async-ps compute-time=uniform:0.5,1.5 mix-time=0.5", 7 },
		{ "protocol=numa groups=1 compute-time=uniform:0.5,1.5 mix-time=0.5",
			7 / 1.5 }, /* one replica */
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_run t;
		run_open(&t,
			"data=synth:quadratic,dim=4,rows=24000 workers=8 engine=sim rate=0.001 epochs=1 %s",
			cases[i].options);
		run_whole(&t);
		struct mw_hist *h = run_staleness(&t);
		/* Steps of a straggler after the others have ended find nothing missing: they are not of the process. */
		double mean = h->sum / (double)(h->n - t.run->worker[3]->staleness->count[0]);
		if (!(fabs(mean / cases[i].mean - 1) < 0.02))
			fail_msg("%s: mean staleness %g, not %g", cases[i].options, mean, cases[i].mean);
		mw_free(h);
		run_close(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_the_recurrence),
		cmocka_unit_test(flushes_the_rest),
		cmocka_unit_test(falling_delays),
		cmocka_unit_test(turns_unstable_at_the_limit),
		cmocka_unit_test(injected_is_observed),
		cmocka_unit_test(a_copy_is_as_old_as_its_last_mix),
		cmocka_unit_test(mean_is_n_minus_1),
		cmocka_unit_test(mean_on_the_virtual_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
