/*
 * run_replay.c: a recorded run performed again by sim gives the same parameters bit for bit where reads are whole versions;
 * a racy one says that it can't promise that. Checkpoints resume to the bit; timelines change knobs at the step they name.
 */
#include "run_util.h"

#include <math.h>

#include "base/mem.h"
#include "run/checkpoint.h"
#include "run/tensor_file.h"

/* Run `options` on racing threads with a trace, then replay it; the averages of both go to the caller (free). */
static void record_and_replay(
	const char *options, float **recorded, float **replayed, size_t *dim, struct mw_replay_report *report)
{
	struct test_run t;
	char path[300];
	snprintf(path, sizeof(path), "%s", temporary_path("trace"));
	run_open(&t, "%s trace=%s", options, path);
	run_whole(&t);
	run_loss(&t);
	struct mw_err err = { 0 };
	assert_int_equal(mw_record_trace(t.run, &err), 0);
	*dim = t.run->model->dim;
	*recorded = malloc(*dim * sizeof(float));
	memcpy(*recorded, t.run->average, *dim * sizeof(float));
	run_close(&t);

	run_open(&t, "%s engine=sim replay=%s", options, path);
	run_whole(&t);
	run_loss(&t);
	*report = t.run->replayed;
	*replayed = malloc(*dim * sizeof(float));
	memcpy(*replayed, t.run->average, *dim * sizeof(float));
	run_close(&t);
}

static const char *const whole_versions[] = {
	"protocol=async-ps access=seqlock",
	"protocol=async-ps access=locked mix-every=3",
	"protocol=ssp access=seqlock ssp-bound=2",
	"protocol=leashed",
	"protocol=hogwild access=locked",
	"protocol=async-ring access=locked",
	"protocol=async-gossip graph=complete access=locked slack=0.5",
	"protocol=async-ring access=locked mix-order=before mix-fraction=0.5",
	"protocol=cached access=locked merge-every=16",
	"protocol=token-ring access=locked hop-every=4",
};
static const char *const problems[] = {
	"data=synth:sparse,rows=600,features=80,nnz=10 rate=0.3",
	"data=synth:quadratic,dim=48,rows=400 rate=0.05 optimizer=amsgrad",
	"data=synth:dense,rows=300,features=20,classes=3 batch=4 rate=0.05 shards=label clip=0.5",
	("data=synth:images,rows=60,size=9,channels=1,classes=3 model=mlp:8 batch=4 rate=0.05 "
	 "augment=crop-flip"),
};

static void replay_gives_the_same_bits(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(whole_versions) / sizeof(*whole_versions); i++)
		for (size_t k = 0; k < sizeof(problems) / sizeof(*problems); k++) {
			char options[400];
			float *a, *b;
			size_t dim;
			struct mw_replay_report r;
			snprintf(options, sizeof(options), "%s %s workers=3 oversubscribe=yes epochs=2",
				whole_versions[i], problems[k]);
			record_and_replay(options, &a, &b, &dim, &r);
			if (r.misfit || r.left || r.ambiguous || memcmp(a, b, dim * sizeof(float)))
				fail_msg("%s: misfit %d, left %llu, ambiguous %llu, same %d", options,
					r.misfit, (unsigned long long)r.left, (unsigned long long)r.ambiguous,
					!memcmp(a, b, dim * sizeof(float)));
			assert_true(r.events > 0);
			free(a);
			free(b);
		}
}

static void racy_replay_performs_all_events(void **state)
{
	(void)state;
	float *a, *b;
	size_t dim;
	struct mw_replay_report r;
	record_and_replay("data=synth:sparse,rows=2000,features=40,nnz=10 rate=0.1 protocol=hogwild "
			  "access=racy workers=2 "
			  "oversubscribe=yes epochs=2",
		&a, &b, &dim, &r);
	assert_false(r.misfit);
	assert_int_equal(r.left, 0);
	assert_int_equal(r.events, 2 * 4000); /* a view and a push each */
	free(a);
	free(b);
}

static void replay_refuses_another_run(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	char path[300];
	const char *options = "data=synth:quadratic,dim=8,rows=100 rate=0.05 protocol=leashed workers=2 "
			      "oversubscribe=yes epochs=1";
	snprintf(path, sizeof(path), "%s", temporary_path("trace"));
	run_open(&t, "%s trace=%s", options, path);
	run_whole(&t);
	assert_int_equal(mw_record_trace(t.run, &err), 0);
	run_close(&t);
	assert_int_equal(run_error(&err, "%s engine=sim replay=%s seed=7", options, path), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--seed"));
	err = (struct mw_err){ 0 };
	assert_int_equal(run_error(&err, "%s replay=%s", options, path), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--engine sim"));
	err = (struct mw_err){ 0 };
	assert_int_equal(run_error(&err, "%s engine=sim replay=%s", options,
				 temporary_file("MWTRACE1garbage-follows-here")),
		MW_EDATA);
}

/* Cut or bend a trace anywhere: an error or a refusal, never a crash. */
static void damaged_traces_are_refused(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	struct mw_rng rng;
	char path[300];
	run_open(&t,
		"data=synth:quadratic,dim=4,rows=40 rate=0.05 protocol=async-ps access=locked workers=2 "
		"oversubscribe=yes "
		"epochs=1 trace=%s",
		temporary_path("trace"));
	snprintf(path, sizeof(path), "%s", t.run->opt->trace);
	run_whole(&t);
	assert_int_equal(mw_record_trace(t.run, &err), 0);
	run_close(&t);
	FILE *f = fopen(path, "rb");
	unsigned char bytes[1 << 16];
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	assert_true(n > 1000 && n < sizeof(bytes));
	mw_rng_init(&rng, 1, 2);
	for (int i = 0; i < 300; i++) {
		unsigned char bent[1 << 16];
		size_t m = i % 2 ? n : mw_rng_below(&rng, n);
		struct mw_trace *trace = NULL;
		memcpy(bent, bytes, n);
		for (int k = 0; k < 3 && m; k++)
			bent[mw_rng_below(&rng, m)] ^= (unsigned char)(1 + mw_rng_below(&rng, 255));
		f = fopen(path, "wb");
		fwrite(bent, 1, m, f);
		fclose(f);
		err = (struct mw_err){ 0 };
		struct mw_event e;
		struct mw_touch touch[MW_TOUCH_MAX];
		if (mw_trace_load(path, &trace, &err) == 0)
			for (uint32_t w = 0; w < trace->n_workers; w++)
				for (uint64_t at = 0; mw_trace_next(trace, w, &at, &e, touch);)
					assert_true(e.kind < MW_EVENT_KINDS);
		else
			assert_true(err.code == MW_EDATA && *err.msg);
		mw_trace_free(trace);
	}
}

/* --- checkpoints ---------------------------------------------------------------------------------------------------- */

static const char *const resumable[] = {
	"protocol=sequential",
	"protocol=sequential optimizer=amsgrad",
	"protocol=sync-ps workers=3",
	"protocol=sync-ring workers=3 optimizer=sgd momentum=0.9 mix-every=5",
	"protocol=sync-ring workers=3 shards=dirichlet:0.5 clip=0.1 optimizer=amsgrad weight-decay=0.1",
	"protocol=sync-ps workers=3 data=synth:images,rows=90,size=8,classes=3 model=mlp:8 augment=crop-flip",
	("protocol=sync-ring workers=2 data=synth:images,rows=40,channels=2,size=8,classes=3 "
	 "model=resnet8:width=4 augment=crop-flip momentum=0.9 nesterov=yes weight-decay=1e-3 bn-batches=4"),
	("protocol=local-sgd workers=2 data=synth:images,rows=40,channels=2,size=8,classes=3 "
	 "model=resnet8:width=4,shortcut=conv bn-stats=exchange optimizer=rmsprop momentum=0.5 rate=0.01"),
	"protocol=local-sgd workers=2 period=7 mix-precision=kahan slack=0.1",
	"protocol=sync-gossip graph=complete workers=3 mix-precision=double slack=0.3",
	"protocol=sync-ps workers=2 model=mlp:9,5 optimizer=amsgrad rate=0.01",
	"protocol=sequential data=synth:sparse,rows=200,features=60,nnz=9 model=logistic optimizer=amsgrad",
	"protocol=sequential data=synth:sparse,rows=200,features=60,nnz=9 model=logistic optimizer=adam",
	("protocol=sequential state=shared data=synth:sparse,rows=200,features=60,nnz=9 model=logistic "
	 "optimizer=amsgrad"),
};

static void resumed_runs_are_the_same_to_the_bit(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(resumable) / sizeof(*resumable); i++)
		for (int sim = 0; sim < 2; sim++) {
			const char *base =
				"data=synth:dense,rows=200,features=12,classes=3 batch=2 rate=0.05 epochs=4";
			const char *engine = sim ? "engine=sim" : "oversubscribe=yes";
			struct test_run t;
			struct mw_err err = { 0 };
			char dir[300];
			run_open(&t, "%s %s %s", base, resumable[i], engine);
			run_whole(&t);
			run_loss(&t);
			size_t dim = t.run->model->dim;
			float *want = malloc(dim * sizeof(float));
			memcpy(want, t.run->average, dim * sizeof(float));
			uint64_t half = t.run->total_steps / 2 - 3; /* inside an epoch and a period */
			run_close(&t);

			run_open(&t, "%s %s %s", base, resumable[i], engine);
			snprintf(dir, sizeof(dir), "%s", temporary_path("."));
			t.run->run_dir = strdup(dir);
			run_until(&t, half);
			assert_int_equal(mw_checkpoint_save(t.run, &err), 0);
			run_close(&t);

			run_open(&t, "%s %s %s", base, resumable[i], engine);
			t.run->run_dir = strdup(dir);
			assert_int_equal(mw_checkpoint_load(t.run, &err), 0);
			assert_int_equal(t.run->worker[0]->step, half);
			run_whole(&t);
			run_loss(&t);
			if (memcmp(want, t.run->average, dim * sizeof(float)))
				fail_msg("%s %s: resumed run differs", resumable[i], engine);
			run_close(&t);
			free(want);
		}
}

/* In memory a record of three fields has a gap; in the file it has none. */
static void sparse_states_are_saved_without_gaps(void **state)
{
	(void)state;
	static float saved[3 * 61];
	struct mw_tensor t = { .name = "state.1", .shape = { 3, 61 }, .ndim = 2, .data = saved };
	struct test_run r;
	struct mw_err err = { 0 };
	char path[300];
	run_open(&r, "protocol=sync-ps workers=2 data=synth:sparse,rows=200,features=60,nnz=9 model=logistic "
		     "batch=2 "
		     "optimizer=amsgrad engine=sim");
	snprintf(path, sizeof(path), "%s", temporary_path("."));
	r.run->run_dir = strdup(path);
	run_until(&r, 20);
	assert_int_equal(mw_checkpoint_save(r.run, &err), 0);
	snprintf(path, sizeof(path), "%s/checkpoint.safetensors", r.run->run_dir);
	if (mw_tensor_file_load(path, &t, 1, &err) < 0)
		fail_msg("%s", err.msg);
	int seen = 0;
	for (int p = 0; p < 61; p++)
		for (int f = 0; f < 3; f++) {
			assert_true(saved[3 * p + f] == r.run->worker[1]->state[4 * p + f]);
			seen += saved[3 * p + f] != 0;
		}
	assert_in_range(seen, 100, 183);
	run_close(&r);
}

static void checkpoints_of_other_runs_are_refused(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	char dir[300];
	run_open(&t, "data=synth:quadratic,dim=8,rows=50 rate=0.1 protocol=sync-ring workers=2 engine=sim "
		     "epochs=1");
	snprintf(dir, sizeof(dir), "%s", temporary_path("."));
	t.run->run_dir = strdup(dir);
	assert_int_equal(mw_checkpoint_save(t.run, &err), 0);
	run_close(&t);
	run_open(&t, "data=synth:quadratic,dim=8,rows=50 rate=0.1 protocol=sync-ring workers=3 engine=sim "
		     "epochs=1");
	t.run->run_dir = strdup(dir);
	assert_int_equal(mw_checkpoint_load(t.run, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--workers 2"));
	run_close(&t);
	err = (struct mw_err){ 0 };
	run_open(&t, "data=synth:quadratic,dim=8,rows=50 rate=0.1 protocol=sync-ring workers=2 engine=sim "
		     "epochs=1 shards=iid");
	t.run->run_dir = strdup(dir);
	assert_int_equal(mw_checkpoint_load(t.run, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "shards none, not iid"));
	run_close(&t);
	err = (struct mw_err){ 0 };
	run_open(&t, "data=synth:quadratic,dim=9,rows=50 rate=0.1 protocol=sync-ring workers=2 engine=sim "
		     "epochs=1");
	t.run->run_dir = strdup(dir);
	assert_int_equal(mw_checkpoint_load(t.run, &err), MW_EDATA);
	run_close(&t);
}

/* --- timelines ------------------------------------------------------------------------------------------------------ */

/*
 * On f = x^2/2 with one worker: x_{t+1} = x_t - a(t) x_{t - tau(t)}, where deltas on their way when tau changes still come
 * tau steps after they were made.
 */
static void timeline_follows_the_recurrence(void **state)
{
	(void)state;
	struct test_run t;
	run_open(&t, "data=synth:quadratic,dim=1,cond=1,noise=0,rows=20 protocol=sequential engine=sim "
		     "epochs=3 rate=0.2 "
		     "timeline=at~1~epochs:staleness=2;at~40~steps:rate=0.1;at~40~steps:staleness=0");
	double x = (double)t.run->average[0] - (double)t.run->train->optimum[0], pending[80] = { 0 };
	run_whole(&t);
	for (int s = 0; s < 60; s++) {
		int tau = s >= 20 && s < 40 ? 2 : 0;
		pending[s + tau] += (s >= 40 ? 0.1 : 0.2) * x;
		x -= pending[s];
	}
	run_loss(&t);
	double got = (double)t.run->average[0] - (double)t.run->train->optimum[0];
	assert_true(fabs(got - x) < 1e-6);
	run_close(&t);
}

static void timeline_changes_every_worker_at_its_step(void **state)
{
	(void)state;
	static const char *const engines[] = { "engine=sim", "oversubscribe=yes" };
	for (int i = 0; i < 2; i++) {
		struct test_run t;
		run_open(&t,
			"data=synth:quadratic,dim=8,rows=300 protocol=sync-ring workers=3 rate=0.01 epochs=1 "
			"%s "
			"timeline=at~30~steps:mix-every=10;at~0.5~epochs:slack=0.5",
			engines[i]);
		run_whole(&t);
		for (uint32_t w = 0; w < 3; w++) {
			assert_int_equal(t.run->worker[w]->mixes, 30 + 7);
			assert_int_equal(t.run->worker[w]->knobs->mix_every, 10);
			assert_true(t.run->worker[w]->knobs->slack == 0.5);
		}
		run_close(&t);
	}
}

static void timeline_errors_say_what_to_do(void **state)
{
	(void)state;
	static const struct {
		const char *timeline, *said;
	} bad[] = {
		{ "at~2~epoch:mix-evry=3", "did you mean mix-every" },
		{ "at~2~fortnights:mix-every=3", "epochs, steps" },
		{ "mix-every=3", "expected 'at TIME" },
		{ "at~2~epochs:mix-every=0", "at least 1" },
		{ "at~2~epochs:slack=2", "at most 1" },
		{ "at~2~epochs:mix-every=3;at~1~epochs:mix-every=4", "order them" },
		{ "at~2~epochs:staleness=heavy:4,shape=1", "max=N" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mw_err err = { 0 };
		assert_int_equal(run_error(&err,
					 "data=synth:quadratic,dim=8,rows=300 protocol=sync-ring workers=3 "
					 "engine=sim timeline=%s",
					 bad[i].timeline),
			MW_EUSAGE);
		if (!strstr(err.msg, bad[i].said))
			fail_msg("%s: %s", bad[i].timeline, err.msg);
	}
	struct mw_err err = { 0 };
	assert_int_equal(run_error(&err, "data=synth:quadratic,dim=8,rows=300 protocol=hogwild engine=sim "
					 "timeline=at~1~epochs:slack=0.5"),
		MW_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_gives_the_same_bits),
		cmocka_unit_test(racy_replay_performs_all_events),
		cmocka_unit_test(replay_refuses_another_run),
		cmocka_unit_test(damaged_traces_are_refused),
		cmocka_unit_test(resumed_runs_are_the_same_to_the_bit),
		cmocka_unit_test(sparse_states_are_saved_without_gaps),
		cmocka_unit_test(checkpoints_of_other_runs_are_refused),
		cmocka_unit_test(timeline_follows_the_recurrence),
		cmocka_unit_test(timeline_changes_every_worker_at_its_step),
		cmocka_unit_test(timeline_errors_say_what_to_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
