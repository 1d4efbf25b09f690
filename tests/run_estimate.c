/*
 * run_estimate.c: estimators of the mixing time in runs: in sim each of them against its own exact target, in threads
 * against each other; and that a run which is watched is the same run.
 */
#include "run_util.h"

#include <math.h>

#include "mixing/exact.h"
#include "run/control.h"
#include "run/tmix_of_run.h"
#include "run/windows.h"

#define DATA "data=synth:quadratic,dim=24,noise=1,rows=400 batch=1 rate=0.01"

static void segment(struct test_run *t, uint64_t end)
{
	struct mw_err err = { 0 };
	if (mw_control_begin(t->run, &err))
		fail_msg("%s", err.msg);
	run_until(t, end);
	mw_control_end(t->run);
}

/* Native steps: pushes in all, or rounds. */
static void run_steps(struct test_run *t, uint64_t steps)
{
	bool round = t->run->protocol->clock == MW_CLOCK_ROUND;
	segment(t, round || run_in_turns(t) ? steps : steps / t->run->n_workers);
}

static double number(json_t *j, const char *name)
{
	json_t *v = json_object_get(j, name);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *why(json_t *j)
{
	const char *s = json_string_value(json_object_get(j, "reason"));
	return s ? s : "";
}

static void within(json_t *j, const char *name, double want, double times, double slack, const char *what)
{
	json_t *e = json_object_get(j, name);
	double value = number(e, "value"), error = number(e, "error");
	if (!(fabs(value - want) <= times * error + slack))
		fail_msg("%s by %s: %g +- %g, not %g (%s)", what, name, value, error, want, why(e));
}

static struct mw_mixing_result exact(const struct test_run *t)
{
	struct mw_mixing_result r = { 0 };
	struct mw_err err = { 0 };
	if (mw_tmix_exact(t->run, 2e9, &r, &err) || !r.mixes)
		fail_msg("%s %s", err.msg, r.reason);
	return r;
}

/* --- sim ----------------------------------------------------------------------------------------------------------- */

static void check_sim(const char *options, uint32_t steps)
{
	struct test_run t;
	run_open(&t, DATA " epochs=100000 engine=sim estimate=all %s", options);
	run_steps(&t, steps);
	struct mw_mixing_result r = exact(&t);
	json_t *j = mw_control_json(t.run);
	for (uint32_t k = 2; k < 4 && isnan(number(json_object_get(j, "probe"), "value")); k++) {
		run_steps(&t, k * steps); /* the grid was made finer, or the guess another one */
		json_decref(j);
		j = mw_control_json(t.run);
	}
	within(j, "trace", r.t_mix, 2, 0, options);
	within(j, "probe", r.t_mix, 2, 0, options);
	json_decref(j);
	run_close(&t);
}

static void sim_gives_the_exact_value(void **state)
{
	(void)state;
	check_sim("protocol=async-ps workers=8 activation=rr", 6000);
	check_sim("protocol=async-ps workers=8 activation=random", 20000);
	check_sim("protocol=sync-ring workers=8", 1500);
	check_sim("protocol=sync-ring workers=16", 4500);
	check_sim("protocol=async-ring workers=8 activation=rr", 8000);
	check_sim("protocol=async-ring workers=8 activation=random", 20000);
	check_sim("protocol=async-gossip graph=complete workers=16 activation=random", 30000);
	check_sim("protocol=numa groups=2 average-every=8 workers=4 activation=rr", 12000);
	check_sim("protocol=token-ring hop-every=4 workers=3 activation=rr", 16000);
	check_sim("protocol=cached merge-every=4 workers=4 activation=rr", 12000);
	check_sim("protocol=cached merge-every=4 hot=2000 data=synth:sparse,rows=400,features=9000,nnz=9 "
		  "workers=4 "
		  "activation=rr",
		12000);
	check_sim("protocol=ssp ssp-bound=2 workers=4 activation=random", 12000);
	check_sim("protocol=ssp ssp-bound=2 workers=4 activation=rr", 4000);
	check_sim("protocol=sync-ps workers=4", 1000);
	check_sim("protocol=local-sgd workers=4 mix-every=6", 2000);
}

static void sim_gives_it_with_knobs(void **state)
{
	(void)state;
	check_sim("protocol=sync-ring workers=8 slack=0.1", 12000);
	check_sim("protocol=sync-ring workers=8 mix-every=10", 13000);
	check_sim("protocol=sync-ring workers=8 mix-fraction=0.25", 4000);
	check_sim("protocol=async-ps workers=8 slack=0.1 activation=random", 40000);
	check_sim("protocol=async-ring workers=8 mix-fraction=0.25 activation=rr", 25000);
	check_sim("protocol=ssp ssp-bound=2 workers=4 activation=random slack=0.3", 20000);
	check_sim("protocol=async-ring workers=8 mix-order=before activation=random", 20000);
}

/* hogwild: a delay of 2 own steps among 4 in turn is one of 11 writes. */
static void sim_gives_delays(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t, DATA " epochs=1000 engine=sim estimate=all protocol=hogwild workers=4 "
			  "staleness=constant:2 activation=rr");
	run_steps(&t, 2000);
	json_t *j = mw_control_json(t.run);
	within(j, "trace", 12, 0, 0, "hogwild");
	assert_true(json_is_null(json_object_get(json_object_get(j, "probe"), "value")));
	json_decref(j);
	run_close(&t);
}

static void noise_gives_the_first_moment(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t, DATA " epochs=10000 engine=sim estimate=passive protocol=sync-ring workers=16");
	run_steps(&t, 3500);
	json_t *j = mw_control_json(t.run);
	within(j, "passive", 13.31, 2, 0.7, "ring 16");
	json_decref(j);
	run_close(&t);
}

/* What is extra is never seen by the model: the same parameters to the bit. */
static void watching_changes_nothing(void **state)
{
	static const char *const runs[] = { "protocol=async-ring workers=4 mix-fraction=0.5",
		"protocol=cached merge-every=3 workers=3", "protocol=sync-ring workers=4 slack=0.5",
		"protocol=async-ps workers=3 mix-precision=kahan",
		"protocol=token-ring hop-every=2 workers=3 mix-precision=double slack=0.5" };
	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		struct test_run a, b;
		run_open(&a, DATA " epochs=4 engine=sim %s", runs[i]);
		run_open(&b, DATA " epochs=4 engine=sim estimate=all %s", runs[i]);
		segment(&a, a.run->total_steps);
		segment(&b, b.run->total_steps);
		assert_null(a.run->control);
		for (uint32_t r = 0; r < a.run->replicas.n; r++)
			if (memcmp(a.run->replicas.row[r].x, b.run->replicas.row[r].x,
				    a.run->replicas.dim * sizeof(float)))
				fail_msg("%s: replica %u differs", runs[i], r);
		run_close(&a);
		run_close(&b);
	}
}

/* A schedule that changes: every stretch between evaluations has the value of its own knobs. */
static void stretches_have_their_own_value(void **state)
{
	static const double want[] = { 36, 4, 8 };
	struct test_run t;
	(void)state;
	run_open(&t, DATA " epochs=1000 engine=sim estimate=trace protocol=sync-ring workers=8 slack=0.1 "
			  "timeline=at\t2000\tsteps:slack=1;at\t4000\tsteps:slack=0.45");
	for (int i = 0; i < 3; i++) {
		segment(&t, 2000 * ((uint64_t)i + 1));
		run_loss(&t);
		json_t *j = mw_control_json(t.run);
		within(j, "trace", want[i], 2, 0, "a stretch");
		json_decref(j);
		mw_control_window(t.run);
	}
	assert_non_null(t.run->control->windows);
	t.run->t_mix = t.run->t_mix ? t.run->t_mix : json_object();
	mw_control_report(
		t.run); /* what is told at the end is the last stretch's, not of the 0 steps since */
	within(t.run->t_mix, "trace", want[2], 2, 0, "the last stretch");
	run_close(&t);
}

/* By hand: log2 t_mix = 1, 2, 3, 4 against decreases 4, 3, 1, 2 (times ln 2, which a correlation does not see). */
static void windows_are_correlated(void **state)
{
	static const double t_mix[] = { 2, 4, 8, 16 }, loss[] = { 6, 3, 2, 0 };
	struct mw_err err = { 0 };
	struct mw_windows *w;
	(void)state;
	assert_int_equal(mw_windows_new(&w, &err), 0);
	assert_true(isnan(mw_windows_pearson(w)));
	mw_windows_add(w, 0, NAN, 10);
	for (int i = 0; i < 4; i++)
		mw_windows_add(w, i + 1, t_mix[i], loss[i]);
	mw_windows_add(w, 5, NAN, -1); /* a stretch without a value counts for nothing */
	assert_true(fabs(mw_windows_pearson(w) - -0.8) < 1e-12);
	assert_true(fabs(mw_windows_spearman(w) - -0.8) < 1e-12);
	mw_windows_free(w);
}

/* --- threads ------------------------------------------------------------------------------------------------------- */

/*
 * Trace and probe watch the same run, so they must agree: within a fifth, and in the same windows (a machine that others use
 * too keeps some worker waiting now and then: what the estimators see then depends on when they look).
 */
static void check_threads(const char *options, uint64_t steps)
{
	struct test_run t;
	run_open(&t, DATA " epochs=1000000 estimate=all oversubscribe=yes %s", options);
	json_t *j = NULL, *probe = NULL, *trace = NULL;
	/* where others keep the sampler from a CPU there are fewer segments in as many steps */
	for (uint32_t k = 1; k <= 4; k++) {
		json_decref(j);
		run_steps(&t, k * steps);
		j = mw_control_json(t.run);
		probe = json_object_get(j, "probe");
		trace = json_object_get(j, "trace");
		json_t *same = json_object_get(trace, "same_windows");
		if (same) /* rounds are all alike */
			trace = same;
		if (number(trace, "n") >= 32 && number(probe, "n") >= 32)
			break;
	}
	double a = number(trace, "value"), b = number(probe, "value");
	if (!(fabs(a - b) <= 0.2 * a && number(trace, "n") >= 32 && number(probe, "n") >= 32))
		fail_msg("%s: %g +- %g by trace from %g starts (%s), %g +- %g by probe from %g segments (%s)",
			options, a, number(trace, "error"), number(trace, "n"), why(trace), b,
			number(probe, "error"), number(probe, "n"), why(probe));
	json_decref(j);
	run_close(&t);
}

static void threads_agree(void **state)
{
	(void)state;
	check_threads("protocol=async-ring workers=2 mix-every=32 straggler=uniform:0.0001,0.0003", 60000);
	check_threads("protocol=async-ps workers=2 mix-every=32 straggler=uniform:0.0001,0.0003", 60000);
	check_threads("protocol=sync-ring workers=2 mix-every=32 straggler=constant:0.0001", 20000);
	check_threads("protocol=async-ring workers=8 straggler=uniform:0.001,0.002", 48000);
	check_threads("protocol=async-ps workers=8 straggler=uniform:0.001,0.002", 16000);
	check_threads("protocol=sync-ring workers=8 straggler=constant:0.001", 12000);
}

/*
 * Steps that follow each other at once, thousands between two wakings of the sampler: workers take the snapshots. Two workers
 * that average every 8th own step have mixed with the first of these after an injection. Of t native steps in a row each may be
 * it for one eighth of the phases, so 3 phases in 4 take 6 at least; and among 16 one worker has 8 of its own. Snapshots
 * and injections are off by one step at most.
 */
static void fast_steps_have_a_value(void **state)
{
	struct test_run t;
	struct mw_estimate e = { 0 };
	double start = mw_now_s();
	uint64_t step = 0;
	(void)state;
	run_open(&t, DATA " epochs=1000000 protocol=async-ring workers=2 mix-every=8 oversubscribe=yes "
			  "estimate=probe estimate-share=0.05");
	const struct mw_control *c = t.run->control;
	do {
		segment(&t, step += 400000);
		mw_probe_estimate(c->probe[0], &e);
	} while (!e.identified && mw_now_s() - start < 60);
	if (!(e.identified && e.value >= 5 && e.value <= 17))
		fail_msg("%g +- %g from %llu segments, %llu missed (%s)", e.value, e.error,
			(unsigned long long)c->ended, (unsigned long long)c->missed, e.reason);
	assert_true(c->workers_s > 0);
	run_close(&t);
}

/* --- what it costs ------------------------------------------------------------------------------------------------- */

/* On threads no more than a hundredth of the parameters are columns, unless that is asked for or is less than signs take. */
static void columns_are_few(void **state)
{
	static const struct {
		uint32_t dim, workers, columns;
		const char *options;
	} want[] = {
		{ 24, 8, 8, "" },
		{ 1200, 12, 12, "" },
		{ 1199, 12, 8, "" }, /* 11 at most */
		{ 1200, 12, 12, "probe-columns=one-hot" },
		{ 1200, 12, 8, "probe-columns=signs" },
		{ 100, 12, 12, "probe-columns=one-hot" },
		{ 1199, 12, 12, "engine=sim" },
		{ 1199, 12, 8, "engine=sim probe-columns=signs" },
		{ 4800, 12, 4 * 12, "mix-fraction=0.25" },
		{ 4799, 12, 4 * 8, "mix-fraction=0.25" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct test_run t;
		run_prepare(&t,
			"data=synth:quadratic,dim=%u,noise=1,rows=40 epochs=1 protocol=async-ring workers=%u "
			"oversubscribe=yes estimate=probe %s",
			want[i].dim, want[i].workers, want[i].options);
		assert_int_equal(t.run->model->dim, want[i].dim);
		if (mw_control_columns(t.run) != want[i].columns)
			fail_msg("%u parameters, %u workers %s: %u columns, not %u", want[i].dim,
				want[i].workers, want[i].options, mw_control_columns(t.run), want[i].columns);
		run_close(&t);
	}
}

/* Sampling keeps to --estimate-share, what the workers do for it too: steps follow each other at once here, so that it could always be at work. */
static void the_sampler_keeps_to_its_share(void **state)
{
	static const double share[] = { 0.001, 0.02 };
	uint64_t segments[2];
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct test_run t;
		run_open(&t,
			DATA " epochs=1000000 protocol=async-ring workers=2 oversubscribe=yes estimate=probe "
			     "estimate-share=%g",
			share[i]);
		double start = mw_now_s();
		uint64_t step = 0;
		do /* the first segments' cost is not known before: long enough for that to be little */
			segment(&t, step += 400000);
		while (t.run->control->process_s < 2 && mw_now_s() - start < 60);
		const struct mw_control *c = t.run->control;
		double took = c->sampler_s + c->workers_s;
		if (!(took <= 1.25 * share[i] * c->process_s + 0.02))
			fail_msg("%g s of %g s: more than a share of %g", took, c->process_s, share[i]);
		segments[i] = c->request;
		run_close(&t);
	}
	assert_true(segments[0] < segments[1]);
}

/* Without --estimate there is nothing of it: no column, no record, no thread. */
static void nothing_is_there_unless_asked_for(void **state)
{
	const struct mw_protocol_ops *ops;
	(void)state;
	FOR_EACH_PROTOCOL(ops)
	{
		struct test_run t;
		run_open(&t, DATA " epochs=1 oversubscribe=yes protocol=%s workers=%d", ops->name,
			!strcmp(ops->name, "sequential") ? 1 : 3);
		assert_null(t.run->control);
		assert_int_equal(t.run->probe_columns, 0);
		segment(&t, t.run->total_steps);
		for (uint32_t w = 0; w < t.run->n_workers; w++)
			assert_true(!t.run->worker[w]->recorder || !t.run->worker[w]->recorder->first);
		run_close(&t);
	}
}

/* Every protocol under every access mode: runs that end, with a value or a reason. */
static void every_protocol_can_be_watched(void **state)
{
	static const char *const accesses[] = { "racy", "atomic", "locked", "seqlock" };
	const struct mw_protocol_ops *ops;
	(void)state;
	FOR_EACH_PROTOCOL(ops)
	for (int a = 0; a < 4; a++) {
		struct test_run t;
		bool one = !strcmp(ops->name, "sequential");
		if (a && !protocol_takes_access(ops))
			continue;
		run_open(&t, DATA " epochs=1 estimate=all oversubscribe=yes protocol=%s workers=%d%s%s%s",
			ops->name, one ? 1 : 3, protocol_takes_access(ops) ? " access=" : "",
			protocol_takes_access(ops) ? accesses[a] : "",
			!protocol_has_plans(ops)    ? ""
			: !strcmp(ops->name, "ssp") ? " mix-fraction=0.5"
						    : " mix-every=3 mix-fraction=0.5");
		segment(&t, t.run->total_steps / 2);
		segment(&t, t.run->total_steps);
		run_whole(&t);
		json_t *j = mw_control_json(t.run), *e;
		const char *name;
		json_object_foreach(j, name, e) if (!isfinite(number(e, "value")) && !*why(e))
			fail_msg("%s, %s: neither a value by %s nor a reason", ops->name, accesses[a], name);
		json_decref(j);
		run_close(&t);
	}
}

static void combinations_that_clash_are_refused(void **state)
{
	struct mw_err err;
	(void)state;
	assert_int_equal(
		run_error(&err, DATA " estimate=trace trace=%s protocol=async-ps workers=2 oversubscribe=yes",
			temporary_path("t.bin")),
		MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--trace"));
	assert_int_equal(run_error(&err,
				 DATA " estimate=probe trace=%s protocol=async-ring workers=2 access=locked "
				      "oversubscribe=yes",
				 temporary_path("t.bin")),
		MW_EUSAGE);
	assert_non_null(strstr(err.msg, "versions"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_gives_the_exact_value),
		cmocka_unit_test(sim_gives_it_with_knobs),
		cmocka_unit_test(sim_gives_delays),
		cmocka_unit_test(noise_gives_the_first_moment),
		cmocka_unit_test(watching_changes_nothing),
		cmocka_unit_test(stretches_have_their_own_value),
		cmocka_unit_test(windows_are_correlated),
		cmocka_unit_test(threads_agree),
		cmocka_unit_test(fast_steps_have_a_value),
		cmocka_unit_test(columns_are_few),
		cmocka_unit_test(the_sampler_keeps_to_its_share),
		cmocka_unit_test(nothing_is_there_unless_asked_for),
		cmocka_unit_test(every_protocol_can_be_watched),
		cmocka_unit_test(combinations_that_clash_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
