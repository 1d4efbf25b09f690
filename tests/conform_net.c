/*
 * conform_net.c: nets in runs. Every protocol of the registry trains a perceptron and a small residual net, in both
 * engines, with momentum and with AMSGrad; what sim computes does not depend on its threads; a model file gives the
 * same scores as the run that wrote it; weight decay and running averages do what they say; no thread is left behind by
 * the libraries.
 */
#include "run_util.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>

#include "base/kernel.h"
#include "base/mem.h"
#include "mixing/linalg.h"
#include "model/gemm.h"
#include "model/net.h"
#include "run/model_file.h"

#define IMAGES "data=synth:images,rows=96,channels=2,size=8,classes=3,noise=0.3"

static const char *const nets[] = { "model=mlp:24 rate=0.01", "model=resnet8:width=4 rate=0.02" };
static const char *const optims[] = { "optimizer=sgd momentum=0.5", "optimizer=amsgrad rate=0.001" };

/*
 * A net that has learned anything beats the best constant prediction, whose loss is ln 3 for three classes that are as
 * frequent (the largest loss was .67 of it). AMSGrad's rate is PyTorch's default.
 *
 * Protocols with a long period of their own get a short one, so that they mix. A run of threads lasts milliseconds, so on few
 * processors one worker may finish before the others begin. All protocols must stand that, but a token then rests, and the
 * ring adds up what its groups have learned apart from each other (losses ten times as high): it takes turns.
 */
static void check_training(
	const struct mw_protocol_ops *p, const char *net, const char *optim, const char *engine)
{
	struct test_run t;
	uint32_t workers = !strcmp(p->name, "sequential") ? 1 : 3;
	bool threads = !strcmp(engine, "threads");
	run_open(&t, IMAGES " %s %s protocol=%s workers=%u engine=%s batch=4 epochs=16%s%s%s", net, optim,
		p->name, workers, engine, protocol_has_period(p) ? " mix-every=4" : "",
		threads ? " oversubscribe=yes bind=none" : "",
		threads && !strcmp(p->name, "token-ring") ? " activation=rr" : "");
	double before = run_loss(&t);
	run_whole(&t);
	double after = run_loss(&t);
	if (!(after < log(3)))
		fail_msg("%s, %s, %s, %s: the loss went from %g to %g", p->name, net, optim, engine, before,
			after);
	assert_int_equal(run_pushes(&t), t.run->total_steps * workers);
	run_close(&t);
}

static void every_protocol_trains(void **state)
{
	const struct mw_protocol_ops *p;
	(void)state;
	FOR_EACH_PROTOCOL(p)
	for (int i = 0; i < 8; i++)
		check_training(p, nets[i & 1], optims[i >> 1 & 1], i & 4 ? "threads" : "sim");
}

/* --- sim: the same bits by any number of threads ---------------------------------------------------------------------- */

static float *result(const char *options, size_t *dim)
{
	struct test_run t;
	run_open(&t, "%s", options);
	run_whole(&t);
	run_loss(&t);
	*dim = t.run->model->dim;
	float *x = malloc(*dim * sizeof(*x));
	assert_non_null(x);
	memcpy(x, t.run->average, *dim * sizeof(*x));
	run_close(&t);
	return x;
}

static void check_threads(const char *net, const char *rest)
{
	char options[400];
	size_t dim = 0;
	float *x[2];
	for (int i = 0; i < 2; i++) {
		snprintf(options, sizeof(options), "%s model=%s engine=sim workers=8 threads=%d %s", IMAGES,
			net, i + 1, rest);
		x[i] = result(options, &dim);
	}
	assert_memory_equal(x[0], x[1], dim * sizeof(float));
	free(x[0]);
	free(x[1]);
}

static void threads_do_not_matter(void **state)
{
	(void)state;
	check_threads("resnet20:width=8", "protocol=hogwild batch=4 rate=0.02 momentum=0.9 epochs=2");
	check_threads("resnet20", "protocol=async-ring batch=2 rate=0.02 epochs=1 eval-rows=32");
	check_threads("mlp:40", "protocol=sync-ps batch=3 rate=0.1 epochs=2");
}

/* --- what a run leaves behind ------------------------------------------------------------------------------------------ */

/* A new model from the file, on the same rows, scores what the run scored. */
static void file_scores_the_same(void **state)
{
	(void)state;
	for (int exchange = 0; exchange < 2; exchange++) {
		struct test_run t;
		struct mw_err err = { 0 };
		const char *path = temporary_path("model.safetensors");
		run_open(&t, IMAGES " model=resnet8:width=4 batch=8 epochs=4 rate=0.05 workers=1%s",
			exchange ? " bn-stats=exchange" : "");
		run_whole(&t);
		double loss = run_loss(&t);
		struct mw_model *m = t.run->model;
		assert_int_equal(exchange ? m->n_stats : 0, 0);
		assert_true(exchange == (m->dim > m->trained));
		json_t *about = json_pack("{ss}", "model", m->spec);
		assert_int_equal(mw_model_file_save(path, m, t.run->average, t.run->stats, about, &err), 0);
		json_decref(about);
		float *x = mw_alloc_array(m->dim, sizeof(float), "test", &err),
		      *stats = exchange ? NULL : mw_alloc_array(m->n_stats, sizeof(float), "test", &err);
		assert_int_equal(mw_model_file_load(path, m, x, stats, &err), 0);
		void *work = m->ops->work_new(m, 8, &err);
		m->ops->use_stats(m, work, stats);
		struct mw_score s = { 0 };
		for (uint64_t r = 0; r < t.run->train->rows; r++) {
			struct mw_batch b = { .data = t.run->train, .row = &r, .n = 1 };
			m->ops->score(m, work, &b, x, &s);
		}
		if (fabs(s.loss / (double)s.n - loss) > 1e-4 * (1 + loss))
			fail_msg("loss %g by the file, %g in the run", s.loss / (double)s.n, loss);
		m->ops->work_free(work);
		mw_free(x);
		mw_free(stats);
		run_close(&t);
	}
}

/* Statistics of all rows in batches are those of all rows at once: mean, and variance within plus between. */
static void statistics_combine(void **state)
{
	struct test_run t;
	struct mw_err err = { 0 };
	(void)state;
	run_open(&t, IMAGES " model=resnet8:width=4 batch=8 bn-batches=12 epochs=1 workers=1");
	run_loss(&t);
	struct mw_model *m = t.run->model;
	uint64_t all[96];
	for (uint64_t r = 0; r < 96; r++)
		all[r] = r;
	/* Only the first layer: those behind see values that were normalised by their own batch. */
	float *want = mw_alloc_array(m->n_stats, sizeof(float), "test", &err);
	void *work = m->ops->work_new(m, 96, &err);
	struct mw_batch b = { .data = t.run->train, .row = all, .n = 96 };
	m->ops->measure(m, work, &b, t.run->average, want);
	for (size_t j = 0; j < 8; j++)
		assert_true(
			fabs((double)t.run->stats[j] - (double)want[j]) < 1e-5 * (1 + fabs((double)want[j])));
	m->ops->work_free(work);
	mw_free(want);
	run_close(&t);
}

/* One worker: running averages follow r := 0.9 r + 0.1 batch, whatever the optimizer's rate. */
static void running_averages(void **state)
{
	static const char *const optim[] = { "optimizer=sgd rate=1e-30", "optimizer=amsgrad rate=1e-30",
		"optimizer=sgd momentum=0.9 rate=1e-30" };
	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct test_run t;
		run_open(&t,
			IMAGES
			" model=resnet8:width=4 bn-stats=exchange batch=96 order=file epochs=3 workers=1 %s",
			optim[k]);
		struct mw_model *m = t.run->model;
		uint64_t all[96];
		for (uint64_t r = 0; r < 96; r++)
			all[r] = r;
		struct mw_batch b = { .data = t.run->train, .row = all, .n = 96 };
		float *g = calloc(m->dim, sizeof(*g)), *x = calloc(m->dim, sizeof(*x));
		m->ops->init(m, t.run->seed, x);
		m->ops->grad(m, t.run->bench[0].work, &b, x, g);
		run_whole(&t);
		run_loss(&t);
		for (size_t j = m->trained; j < m->dim; j++) {
			double batch = (double)x[j] - (double)g[j] / 0.1; /* g = 0.1 (r - batch) */
			double want = batch + pow(0.9, 3) * ((double)x[j] - batch);
			if (fabs((double)t.run->average[j] - want) > 1e-4 * (1 + fabs(want)))
				fail_msg("%s, coordinate %zu: %g, not %g", optim[k], j,
					(double)t.run->average[j], want);
		}
		free(g);
		free(x);
		run_close(&t);
	}
}

#define DECAYED                                                                                       \
	IMAGES " model=resnet8:width=4 batch=96 order=file epochs=1 workers=1 rate=0.5 decay-all=%s " \
	       "weight-decay=%s"

/* A step of decay alone: w := (1 - rate decay) w where it applies, and nothing elsewhere. */
static void decay_where_it_belongs(void **state)
{
	(void)state;
	for (int all = 0; all < 2; all++) {
		float *with, *without;
		size_t dim;
		char options[400];
		snprintf(options, sizeof(options), DECAYED, all ? "yes" : "no", "0.2");
		with = result(options, &dim);
		snprintf(options, sizeof(options), DECAYED, all ? "yes" : "no", "0");
		without = result(options, &dim);
		struct test_run t;
		run_prepare(&t, "%s", options);
		float *x = calloc(dim, sizeof(*x));
		t.run->model->ops->init(t.run->model, t.run->seed, x);
		for (size_t s = 0; s < t.run->model->n_slices; s++) {
			const struct mw_slice *l = &t.run->model->slices[s];
			bool weight = l->ndim > 1;
			double d = (double)with[l->offset] - (double)without[l->offset];
			double want = weight || all ? -0.5 * 0.2 * (double)x[l->offset] : 0;
			if (fabs(d - want) > 1e-5 * (1 + fabs((double)x[l->offset])))
				fail_msg("%s moved by %g, not %g", l->name, d, want);
		}
		free(x);
		free(with);
		free(without);
		run_close(&t);
	}
}

/* --- threads ------------------------------------------------------------------------------------------------------------ */

static int thread_count(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* The libraries work in the workers' threads: no others, during a run and after it. */
static void no_other_threads(void **state)
{
	struct test_run t;
	(void)state;
	run_open(&t, IMAGES " model=resnet8 batch=16 epochs=1 workers=2 oversubscribe=yes bind=none");
	int during = thread_count();
	run_whole(&t);
	assert_int_equal(thread_count(), during);
	run_loss(&t);
	assert_int_equal(thread_count(), during);
	run_close(&t);
	assert_int_equal(thread_count(), during - 2);
}

static void *compute(void *threads)
{
	enum { N = 320 };
	int *n = threads;
	const char *why;
	const struct mw_gemm *blas = mw_gemm_blas(&why);
	double *a = calloc(3 * N * N, sizeof(*a)), *b = a + N * N, *c = b + N * N;
	float *f = calloc(3 * N * N, sizeof(*f));
	assert_non_null(a);
	assert_non_null(f);
	for (int i = 0; i < N; i++)
		a[i * N + i] = b[i * N + i] = i + 1;
	mix_multiply(N, a, b, c);
	mix_gram(N, a, c);
	assert_true(mix_eigen(N, a, b, false));
	if (blas)
		blas->multiply(false, false, N, N, N, f, N, f + N * N, N, false, f + 2 * N * N, N);
	*n = thread_count();
	free(f);
	free(a);
	return NULL;
}

/* Nor for a thread that comes after another: OpenBLAS's OpenMP flavour asks each anew how many it may have. */
static void libraries_start_no_threads(void **state)
{
	pthread_t thread;
	int before = thread_count(), during = 0;
	(void)state;
	compute(&during);
	assert_int_equal(during, before);
	assert_int_equal(pthread_create(&thread, NULL, compute, &during), 0);
	pthread_join(thread, NULL);
	assert_int_equal(during, before + 1);
}

/* --- what is refused ------------------------------------------------------------------------------------------------------ */

static void refused(const char *options, int code, const char *text)
{
	struct mw_err err;
	int got = run_error(&err, "%s workers=1", options);
	if (got != code || !strstr(err.msg, text))
		fail_msg("%s: code %d, \"%s\"", options, got, err.msg);
}

#define CALLERS IMAGES " model=mlp:8 engine=sim batch=2 workers=%u threads=%u dense=%s"

/*
 * As many threads as OpenBLAS has buffers for, and one more: refused before a worker exists. Other kernels have no limit. Where
 * a build has portable kernels alone (sanitized for threads), no worker count makes OpenBLAS welcome.
 */
static void callers_are_limited(void **state)
{
	struct test_run t;
	struct mw_err err;
	const char *why;
	const struct mw_gemm *blas = mw_gemm_blas(&why);
	char text[300];
	(void)state;
	if (!blas || !blas->callers_max)
		skip();
	uint32_t most = blas->callers_max;
	if (mw_isa_detect() == MW_ISA_PORTABLE) {
		assert_int_equal(run_error(&err, CALLERS, 2u, 2u, "blas"), MW_EUSAGE);
		return;
	}
	run_prepare(&t, CALLERS, most, most, "blas");
	assert_int_equal(t.run->model->callers_max, most);
	run_close(&t);
	snprintf(text, sizeof(text), "this OpenBLAS serves %u", most);
	assert_int_equal(run_error(&err, CALLERS, most + 1, most + 1, "blas"), MW_ERESOURCE);
	assert_non_null(strstr(err.msg, text));
	run_prepare(&t, CALLERS, most + 1, most + 1, "own");
	assert_int_equal(t.run->model->callers_max, 0);
	run_close(&t);
}

static void refusals(void **state)
{
	(void)state;
	refused(IMAGES " model=mlp:", 0, "");
	refused(IMAGES " model=mlp:0", MW_EUSAGE, "expected the widths");
	refused(IMAGES " model=mlp:12,", MW_EUSAGE, "expected the widths");
	refused(IMAGES " model=mlp:-3", MW_EUSAGE, "expected the widths");
	refused(IMAGES " model=mlp:99999999999999999999", MW_EUSAGE, "expected the widths");
	refused(IMAGES " model=resnet:n=0", MW_EUSAGE, "n is a number from 1 to 50");
	refused(IMAGES " model=resnet:n=", MW_EUSAGE, "n is a number");
	refused(IMAGES " model=resnet:width=2x", MW_EUSAGE, "width is a number");
	refused(IMAGES " model=resnet:depth=3", MW_EUSAGE, "expected n=BLOCKS");
	refused(IMAGES " model=lenet5:3", MW_EUSAGE, "takes nothing after a ':'");
	refused(IMAGES " model=softmax:3", MW_EUSAGE, "takes nothing after a ':'");
	refused(IMAGES " model=resnet8 conv=blas isa=portable", MW_EUSAGE, "portable kernels");
	refused(IMAGES " model=mlp dense=blas isa=portable", MW_EUSAGE, "portable kernels");
	refused("data=synth:images,rows=9,size=3 model=lenet5", MW_EDATA, "too small");
	refused("data=synth:dense,rows=9,features=7 model=resnet8", MW_EDATA, "without a shape");
	refused("data=synth:quadratic,dim=7 model=mlp", MW_EDATA, "quad");
	assert_int_equal(mw_isa_select("auto", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_protocol_trains),
		cmocka_unit_test(threads_do_not_matter),
		cmocka_unit_test(file_scores_the_same),
		cmocka_unit_test(statistics_combine),
		cmocka_unit_test(running_averages),
		cmocka_unit_test(decay_where_it_belongs),
		cmocka_unit_test(no_other_threads),
		cmocka_unit_test(libraries_start_no_threads),
		cmocka_unit_test(callers_are_limited),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
