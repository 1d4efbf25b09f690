/*
 * run_stale.c: --stale-policy against exact recurrences, in both engines: updates scaled by 1 / (1 + staleness), or not
 * applied when they miss more than T writes.
 */
#include "run_util.h"

#include <math.h>

static const char *const engines[] = { "sim", "threads" };

enum { DIM = 6, STEPS = 120 };
static const double rate = 0.02;

/* The factor of an update: 0 if it is dropped. limit < 0: scale. */
static double factor_of(uint64_t tau, int limit)
{
	return limit < 0 ? 1 / (1 + (double)tau) : tau > (uint64_t)limit ? 0 : 1;
}

static const char *policy_of(int limit)
{
	static char text[32];
	snprintf(text, sizeof(text), limit < 0 ? "scale" : "drop:%d", limit);
	return text;
}

static void gradient(const struct mw_dataset *d, const double *x, double *g)
{
	for (int i = 0; i < DIM; i++)
		g[i] = (double)d->curvature[i] * (x[i] - (double)d->optimum[i]);
}

static void same(const struct test_run *t, const double *want, const char *what)
{
	for (int i = 0; i < DIM; i++)
		if (!(fabs((double)t->run->average[i] - want[i]) < 2e-6))
			fail_msg("%s: x[%d] = %.9g, the recurrence gives %.9g", what, i,
				(double)t->run->average[i], want[i]);
}

/*
 * One worker whose updates land `delay` own steps late: step k sees the writes that have landed before it, and its update
 * lands at the end of step k + delay.
 */
static uint64_t delayed(const struct mw_dataset *d, uint32_t delay, int limit, double *x, uint64_t *dropped)
{
	double g[STEPS][DIM];
	uint64_t writes = 0, seen[STEPS];
	*dropped = 0;
	memset(x, 0, DIM * sizeof(*x));
	for (uint32_t k = 0; k < STEPS; k++) {
		gradient(d, x, g[k]);
		seen[k] = writes;
		if (k < delay)
			continue;
		double f = factor_of(writes - seen[k - delay], limit);
		for (int i = 0; i < DIM; i++)
			x[i] -= rate * f * g[k - delay][i];
		writes += f > 0;
		*dropped += f == 0;
	}
	return writes;
}

static void check_delayed(const char *engine, uint32_t delay, int limit)
{
	struct test_run t;
	double want[DIM];
	uint64_t dropped;
	run_open(&t,
		"data=synth:quadratic,dim=%d,cond=5,rows=100 protocol=hogwild workers=1 engine=%s rate=%g "
		"epochs=100 "
		"staleness=constant:%u stale-policy=%s",
		DIM, engine, rate, delay, policy_of(limit));
	uint64_t writes = delayed(t.run->train, delay, limit, want, &dropped);
	run_until(&t, STEPS);
	run_loss(&t);
	assert_int_equal(t.run->counters[0].pushes, writes);
	assert_int_equal(t.run->worker[0]->dropped, dropped);
	assert_true(limit < 0 || dropped > 0 || limit >= (int)delay);
	same(&t, want, engine);
	run_close(&t);
}

static void a_delayed_worker(void **state)
{
	(void)state;
	for (int e = 0; e < 2; e++) {
		check_delayed(engines[e], 0, -1);
		check_delayed(engines[e], 4, -1);
		check_delayed(engines[e], 4, 3);
		check_delayed(engines[e], 4, 0);
		check_delayed(engines[e], 4, 4);
	}
}

/* async-ps, workers in turn: a worker fetches the server's row after its own push, whether that was applied or not. */
static void in_turn(const struct mw_dataset *d, uint32_t n, int limit, double *x, uint64_t *dropped)
{
	double view[8][DIM] = { 0 }, g[DIM];
	uint64_t writes = 0, seen[8] = { 0 };
	*dropped = 0;
	memset(x, 0, DIM * sizeof(*x));
	for (uint32_t t = 0; t < STEPS; t++) {
		uint32_t w = t % n;
		double f = factor_of(writes - seen[w], limit);
		gradient(d, view[w], g);
		for (int i = 0; i < DIM; i++)
			x[i] -= rate * f * g[i];
		writes += f > 0;
		*dropped += f == 0;
		memcpy(view[w], x, sizeof(g));
		seen[w] = writes;
	}
}

static void check_in_turn(const char *engine, uint32_t n, int limit, const char *more)
{
	struct test_run t;
	double want[DIM];
	uint64_t dropped, counted = 0;
	run_open(&t,
		"data=synth:quadratic,dim=%d,cond=5,rows=120 protocol=async-ps workers=%u oversubscribe=yes "
		"engine=%s "
		"activation=rr rate=%g epochs=100 stale-policy=%s %s",
		DIM, n, engine, rate, policy_of(limit), more);
	in_turn(t.run->train, n, limit, want, &dropped);
	run_until(&t, STEPS);
	run_loss(&t);
	for (uint32_t w = 0; w < n; w++)
		counted += t.run->worker[w]->dropped;
	assert_int_equal(counted, dropped);
	assert_int_equal(run_pushes(&t), STEPS - dropped);
	same(&t, want, engine);
	run_close(&t);
}

static void workers_in_turn(void **state)
{
	(void)state;
	for (int e = 0; e < 2; e++) {
		check_in_turn(engines[e], 3, -1, "");
		check_in_turn(engines[e], 4, 1, "");
		check_in_turn(engines[e], 4, 2, "");
		check_in_turn(engines[e], 3, 9, "");
	}
	/* an optimizer whose state is at the server acts after the policy: plain SGD with a momentum of almost nothing */
	check_in_turn("sim", 3, -1, "momentum=1e-12 state=shared");
}

/* Sparse rows, whose update is a row and one coefficient. Logistic loss on the data in their order. */
static void rows_are_scaled(void **state)
{
	struct test_run t;
	enum { DELAY = 3, N = 60 };
	(void)state;
	run_open(&t,
		"data=synth:sparse,rows=100,features=30,nnz=5 model=logistic l2=0 order=file "
		"protocol=hogwild workers=1 "
		"engine=sim rate=0.5 epochs=10 staleness=constant:%d stale-policy=scale",
		DELAY);
	assert_int_equal(t.run->form, MW_FORM_ROW);
	const struct mw_dataset *d = t.run->train;
	double x[31] = { 0 }, coef[N];
	for (uint32_t k = 0; k < N; k++) {
		double z = x[30];
		for (uint64_t o = d->row_ptr[k]; o < d->row_ptr[k + 1]; o++)
			z += (double)d->val[o] * x[d->col[o]];
		coef[k] = 0.5 * (double)d->y[k] / (1 + exp((double)d->y[k] * z));
		if (k < DELAY)
			continue;
		uint32_t i = k - DELAY;
		double c = coef[i] / (1 + (double)(i < DELAY ? i : DELAY));
		for (uint64_t o = d->row_ptr[i]; o < d->row_ptr[i + 1]; o++)
			x[d->col[o]] += c * (double)d->val[o];
		x[30] += c;
	}
	run_until(&t, N);
	run_loss(&t);
	for (int i = 0; i < 31; i++)
		assert_true(fabs((double)t.run->average[i] - x[i]) < 1e-5);
	run_close(&t);
}

/* Every step is either a push or dropped, whatever the form of the update and the kind of exchange. */
static void nothing_is_lost_count_of(void **state)
{
	static const char *const runs[] = {
		"data=synth:quadratic,dim=8,rows=200 protocol=async-ring",
		"data=synth:sparse,rows=200,features=50,nnz=5 protocol=async-ring",
		"data=synth:sparse,rows=200,features=50,nnz=5 protocol=leashed",
		"data=synth:sparse,rows=200,features=50,nnz=5 protocol=hogwild momentum=0.5",
		"data=synth:quadratic,dim=8,rows=200 protocol=async-ps optimizer=amsgrad",
	};
	(void)state;
	for (int e = 0; e < 2; e++)
		for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
			struct test_run t;
			uint64_t dropped = 0, steps = 0;
			run_open(&t,
				"%s workers=4 oversubscribe=yes engine=%s epochs=4 rate=0.01 "
				"stale-policy=drop:2",
				runs[i], engines[e]);
			run_whole(&t);
			for (uint32_t w = 0; w < 4; w++) {
				dropped += t.run->worker[w]->dropped;
				steps += t.run->counters[w].steps;
			}
			assert_int_equal(run_pushes(&t) + dropped, steps);
			assert_true(e || dropped > 0); /* free virtual workers: staleness about 3 */
			run_close(&t);
		}
}

static void what_is_refused(void **state)
{
	struct mw_err err = { 0 };
	(void)state;
	assert_int_equal(run_error(&err, "data=synth:quadratic,dim=4 stale-policy=drop"), MW_EUSAGE);
	err = (struct mw_err){ 0 };
	assert_int_equal(run_error(&err, "data=synth:quadratic,dim=4 stale-policy=drop:-1"), MW_EUSAGE);
	err = (struct mw_err){ 0 };
	assert_int_equal(run_error(&err, "data=synth:quadratic,dim=4 engine=sim protocol=sync-ring workers=4 "
					 "stale-policy=scale"),
		MW_EUSAGE);
	assert_non_null(strstr(err.msg, "works in rounds"));
	err = (struct mw_err){ 0 };
	assert_int_equal(run_error(&err, "data=synth:quadratic,dim=4 workers=1 trace=x stale-policy=scale"),
		MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--trace"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_delayed_worker),
		cmocka_unit_test(workers_in_turn),
		cmocka_unit_test(rows_are_scaled),
		cmocka_unit_test(nothing_is_lost_count_of),
		cmocka_unit_test(what_is_refused),
	};
	return cmocka_run_group_tests_name("run_stale", tests, NULL, NULL);
}
