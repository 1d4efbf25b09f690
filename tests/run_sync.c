/*
 * run_sync.c: what barriers and gates promise. Workers that average everything every step are synchronous SGD with the
 * batches put together; shared optimizer state under a barrier is the sequential optimizer on the averaged gradient; sim
 * gives the same bits again, on any number of threads; and SSP keeps its bound, which sim reaches.
 */
#include "run_util.h"

#include <math.h>

#include "base/mem.h"
#include "run/lane.h"

static const char *const engines[] = { "sim", "threads" };

/* --- synchronous SGD, as a plain loop ------------------------------------------------------------------------------ */

struct plain {
	const struct mw_run *run;
	float *x, *g, *compact, *state;
	uint64_t *row;
	void *work;
	struct mw_order *order;
};

static void *zeros(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	assert_non_null(p);
	return p;
}

static void plain_init(struct plain *p, const struct mw_run *run)
{
	struct mw_err err = { 0 };
	uint32_t n = run->n_workers;
	*p = (struct plain){ .run = run };
	p->x = zeros(run->model->dim, sizeof(float));
	p->g = zeros(run->model->dim, sizeof(float));
	p->compact = zeros(run->model->dim, sizeof(float));
	p->state = zeros(run->model->dim * (run->optim->fields + 1), sizeof(float));
	p->row = zeros((size_t)n * run->batch, sizeof(uint64_t));
	p->order = zeros(n, sizeof(*p->order));
	p->work = run->model->ops->work_new(run->model, n * run->batch, &err);
	assert_non_null(p->work);
	run->model->ops->init(run->model, run->seed, p->x);
	for (uint32_t w = 0; w < n; w++)
		mw_order_init(&p->order[w], MW_ORDER_BLOCK, false, &run->rows, run->seed, w, n);
}

static void plain_fini(struct plain *p)
{
	p->run->model->ops->work_free(p->work);
	free(p->x);
	free(p->g);
	free(p->compact);
	free(p->state);
	free(p->row);
	free(p->order);
}

/* The gradient of all rows of a round, as one batch, into g. */
static void full_gradient(struct plain *p, uint32_t rows)
{
	const struct mw_model *m = p->run->model;
	struct mw_batch b = { .data = p->run->train, .row = p->row, .n = rows };
	const uint32_t *group;
	if (!m->sparse) {
		m->ops->grad(m, p->work, &b, p->x, p->g);
		return;
	}
	size_t n = m->ops->touch(m, p->work, &b, &group);
	float *xs = zeros(n * m->width, sizeof(float));
	for (size_t i = 0; i < n * m->width; i++)
		xs[i] = p->x[group[i / m->width] * m->width + i % m->width];
	m->ops->grad(m, p->work, &b, xs, p->compact);
	memset(p->g, 0, m->dim * sizeof(float));
	for (size_t i = 0; i < n * m->width; i++)
		p->g[group[i / m->width] * m->width + i % m->width] = p->compact[i];
	free(xs);
}

static void plain_round(struct plain *p, uint64_t t)
{
	const struct mw_run *run = p->run;
	uint32_t n = run->n_workers, b = run->batch;
	struct mw_step s = { .rate = mw_rate_at(run->rate, 0, run->opt->epochs, 0), .t = t };
	for (uint32_t w = 0; w < n; w++)
		mw_order_draw(&p->order[w], p->row + (size_t)w * b, b);
	full_gradient(p, n * b);
	mw_optim_dense(run->optim, &s, p->state, run->model->dim, p->x, p->g, p->g, run->model->dim);
	for (size_t i = 0; i < run->model->dim; i++)
		p->x[i] += p->g[i];
}

static void check_synchronous(const char *options, const char *engine, uint32_t workers)
{
	struct test_run t;
	struct plain p;
	run_open(&t, "engine=%s workers=%u%s %s", engine, workers,
		!strcmp(engine, "threads") ? " oversubscribe=yes" : "", options);
	plain_init(&p, t.run);
	for (uint64_t k = 0; k < t.run->total_steps; k++)
		plain_round(&p, k);
	run_whole(&t);
	run_loss(&t);
	assert_true(t.run->total_steps >= 20);
	for (size_t i = 0; i < t.run->model->dim; i++)
		if (!(fabs((double)t.run->average[i] - (double)p.x[i]) < 2e-5 * (1 + fabs((double)p.x[i]))))
			fail_msg("%s, %u workers on %s: x[%zu] = %.9g, synchronous SGD gives %.9g", options,
				workers, engine, i, (double)t.run->average[i], (double)p.x[i]);
	assert_true(t.run->last.consensus < 1e-5); /* all copies are the same after the last mix */
	plain_fini(&p);
	run_close(&t);
}

static void averaging_every_step_is_synchronous_sgd(void **state)
{
	static const char *const protocols[] = { "protocol=sync-ps", "protocol=local-sgd period=1",
		"protocol=sync-gossip graph=complete", "protocol=local-sgd period=1 mix-form=separate",
		"protocol=local-sgd period=1 mix-precision=double" };
	static const char *const models[] = {
		"data=synth:quadratic,dim=30,noise=0.1,rows=300 batch=2 rate=0.02 epochs=1",
		"data=synth:dense,rows=300,features=20,classes=4 model=softmax batch=3 rate=0.1 epochs=2",
		"data=synth:sparse,rows=300,features=80,nnz=7 model=logistic batch=1 rate=0.2 epochs=1",
		"data=synth:sparse,rows=300,features=80,nnz=7 model=logistic l2=0.01 batch=4 rate=0.2",
	};
	static const uint32_t counts[] = { 1, 2, 3, 5 };
	char options[400];
	(void)state;
	for (int p = 0; p < 5; p++)
		for (int m = 0; m < 4; m++)
			for (int e = 0; e < 2; e++)
				for (int c = 0; c < 4; c++) {
					if (m == 3 && counts[c] != 1)
						continue; /* the penalty's sparse share is per touched coordinate, not per example */
					snprintf(options, sizeof(options), "epochs=2 %s %s", protocols[p],
						models[m]);
					check_synchronous(options, engines[e], counts[c]);
				}
}

static void shared_state_is_the_sequential_optimizer(void **state)
{
	/* eps: a gradient that is zero but for rounding must not become a step of the full rate */
	static const char *const optimizers[] = { "amsgrad eps=1e-3 rate=0.01", "sgd momentum=0.9 rate=0.01",
		"adam eps=1e-3 rate=0.01", "rmsprop eps=1e-3 rate=0.005", "adagrad eps=1e-3 rate=0.05" };
	static const char *const models[] = {
		"data=synth:quadratic,dim=30,noise=0.1,rows=300 batch=2 epochs=1",
		"data=synth:dense,rows=300,features=20,classes=4 model=softmax batch=3 epochs=2"
	};
	char options[400];
	(void)state;
	for (int o = 0; o < 5; o++)
		for (int m = 0; m < 2; m++)
			for (int e = 0; e < 2; e++)
				for (uint32_t n = 1; n <= 4; n++) {
					snprintf(options, sizeof(options),
						"protocol=sync-ps state=shared optimizer=%s %s",
						optimizers[o], models[m]);
					check_synchronous(options, engines[e], n);
				}
}

/* With a state per worker deltas are averaged instead: another trajectory, which must not be confused with it. */
static void own_state_is_another_trajectory(void **state)
{
	static const char *const kinds[] = { "worker", "shared" };
	float x[2][30];
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct test_run t;
		run_open(&t,
			"data=synth:quadratic,dim=30,noise=1,rows=300 protocol=sync-ps workers=3 engine=sim "
			"optimizer=amsgrad "
			"rate=0.01 epochs=1 state=%s",
			kinds[k]);
		run_whole(&t);
		run_loss(&t);
		memcpy(x[k], t.run->average, sizeof(x[k]));
		run_close(&t);
	}
	double worst = 0;
	for (int i = 0; i < 30; i++)
		worst = fmax(worst, fabs((double)x[0][i] - (double)x[1][i]));
	assert_true(worst > 1e-3);
}

/* --- reproducibility ----------------------------------------------------------------------------------------------- */

struct outcome {
	uint64_t bits, pushes, staleness_sum;
	double virtual_s;
};

static struct outcome sim_outcome(const char *protocol, const char *more)
{
	struct outcome o = { 0 };
	struct test_run t;
	/* 600 parameters: enough that gradients go to other threads */
	run_open(&t,
		"engine=sim data=synth:dense,rows=120,features=100,classes=6 model=softmax batch=2 rate=0.05 "
		"epochs=2 protocol=%s "
		"workers=%d %s",
		protocol, strcmp(protocol, "sequential") ? 5 : 1, more);
	run_whole(&t);
	double loss = run_loss(&t);
	for (size_t i = 0; i < t.run->model->dim; i++) {
		uint32_t word;
		memcpy(&word, &t.run->average[i], sizeof(word));
		o.bits = (o.bits ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	}
	uint64_t word;
	memcpy(&word, &loss, sizeof(word));
	o.bits ^= word;
	struct mw_hist *h = run_staleness(&t);
	o.staleness_sum = (uint64_t)h->sum;
	mw_free(h);
	o.pushes = run_pushes(&t);
	o.virtual_s = t.run->virtual_s;
	run_close(&t);
	return o;
}

static void check_same(const char *protocol, const char *what, struct outcome a, struct outcome b)
{
	if (a.bits != b.bits || a.pushes != b.pushes || a.staleness_sum != b.staleness_sum ||
		a.virtual_s != b.virtual_s)
		fail_msg("%s: %s changes what sim does", protocol, what);
}

static void sim_is_reproducible(void **state)
{
	const struct mw_protocol_ops *p;
	(void)state;
	FOR_EACH_PROTOCOL(p)
	{
		const char *knobs = protocol_has_period(p) ? "mix-every=2" : "";
		char many[300], delayed[200];
		struct outcome first = sim_outcome(p->name, knobs);
		check_same(p->name, "another try", first, sim_outcome(p->name, knobs));
		snprintf(many, sizeof(many), "%s threads=3", knobs);
		check_same(p->name, "--threads 3", first, sim_outcome(p->name, many));
		snprintf(delayed, sizeof(delayed), "%s staleness=uniform:0,3 straggler=geometric:2", knobs);
		snprintf(many, sizeof(many), "%s threads=2", delayed);
		check_same(p->name, "--threads 2 with delays", sim_outcome(p->name, delayed),
			sim_outcome(p->name, many));
		snprintf(many, sizeof(many), "%s seed=2", knobs);
		assert_true(first.bits != sim_outcome(p->name, many).bits);
		if (protocol_clock(p) == MW_CLOCK_EVENT) {
			snprintf(delayed, sizeof(delayed), "%s activation=random", knobs);
			snprintf(many, sizeof(many), "%s threads=2", delayed);
			check_same(p->name, "--threads 2 in turns", sim_outcome(p->name, delayed),
				sim_outcome(p->name, many));
		}
	}
}

/* lane.c's short cut is the phases of worker.c, to the bit: parameters, counters, losses, staleness. */
static void fast_rows_change_nothing(void **state)
{
	static const char *const cases[] = { "model=logistic bias=yes workers=7",
		"model=hinge bias=no workers=40", "model=squared bias=yes rate=0.01 workers=1",
		"model=logistic bias=no workers=3 activation=random",
		"model=logistic bias=yes workers=600 straggler=only:3,0.01",
		"model=sigmoid-squared straggler=geometric:2 workers=20 order=random" };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct test_run t[2];
		float loss[2];
		uint64_t sum[2];
		for (int slow = 0; slow < 2; slow++) {
			run_open(&t[slow],
				"engine=sim protocol=hogwild data=synth:sparse,rows=300,features=60,nnz=9 "
				"rate=0.1 "
				"epochs=3 push-time=uniform:0,0.001 %s",
				cases[i]);
			assert_non_null(t[slow].run->lanes);
			if (slow)
				mw_lanes_free(t[slow].run);
			run_whole(&t[slow]);
			loss[slow] = t[slow].run->counters[0].loss;
			struct mw_hist *h = run_staleness(&t[slow]);
			sum[slow] = (uint64_t)h->sum2;
			mw_free(h);
		}
		assert_memory_equal(t[0].run->replicas.row[0].x, t[1].run->replicas.row[0].x,
			t[0].run->model->dim * sizeof(float));
		assert_true(loss[0] == loss[1] && sum[0] == sum[1] && run_pushes(&t[0]) == run_pushes(&t[1]));
		assert_true(t[0].run->virtual_s == t[1].run->virtual_s);
		run_close(&t[0]);
		run_close(&t[1]);
	}
}

/* Virtual seconds: a round lasts as long as its slowest worker and the exchange, free workers as long as the last of them. */
static void the_virtual_clock(void **state)
{
	static const struct {
		const char *options;
		double seconds; /* for 8 own steps of each worker */
	} cases[] = {
		{ "protocol=sequential workers=1 compute-time=0.25", 2 },
		{ "protocol=sync-ps workers=3 compute-time=worker:1/4/2 mix-time=0.5", 8 * 4.5 },
		{ "protocol=local-sgd period=4 workers=3 compute-time=worker:1/4/2 mix-time=0.5",
			8 * 4 + 2 * 0.5 },
		{ "protocol=sync-ring workers=3 compute-time=1 straggler=only:1,square:2,0,period=4",
			8 + 4 * 2 },
		{ "protocol=hogwild workers=3 compute-time=worker:1/4/2", 32 },
		{ "protocol=async-ps workers=3 compute-time=worker:1/4/2 straggler=only:1,1.0 gate=ssp:1",
			40 },
		{ "protocol=hogwild workers=2 compute-time=worker:1/4 gate=barrier", 32 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_run t;
		run_open(&t, "engine=sim data=synth:quadratic,dim=4,rows=400 rate=0.001 epochs=10 %s",
			cases[i].options);
		run_until(&t, 8);
		if (!(fabs(t.run->virtual_s - cases[i].seconds) < 1e-9))
			fail_msg("%s: %g virtual seconds, not %g", cases[i].options, t.run->virtual_s,
				cases[i].seconds);
		run_close(&t);
	}
}

/* Under turns and barriers what a run does must not depend on when it is looked at (free workers meet at evaluations). */
static void evaluations_change_nothing(void **state)
{
	static const char *const more[] = { "activation=rr", "activation=random",
		"activation=random gate=ssp:1", "activation=random staleness=uniform:0,3" };
	const struct mw_protocol_ops *p;
	(void)state;
	FOR_EACH_PROTOCOL(p)
	for (int m = 0; m < 4; m++) {
		float x[2][20];
		if (protocol_clock(p) == MW_CLOCK_ROUND && strstr(more[m], "gate"))
			continue;
		for (int often = 0; often < 2; often++) {
			struct test_run t;
			run_open(&t,
				"engine=sim data=synth:quadratic,dim=20,rows=400,noise=0.1 rate=0.02 "
				"epochs=100 protocol=%s "
				"workers=%d %s %s",
				p->name, strcmp(p->name, "sequential") ? 4 : 1, more[m],
				protocol_has_period(p) ? "mix-every=2" : "");
			for (uint64_t end = often ? 1 : 150; end <= 150; end++) {
				run_until(&t, end);
				if (often && end % 10 == 0)
					run_loss(&t);
			}
			run_loss(&t);
			memcpy(x[often], t.run->average, sizeof(x[0]));
			run_close(&t);
		}
		if (memcmp(x[0], x[1], sizeof(x[0])))
			fail_msg("%s %s: evaluations change the run", p->name, more[m]);
	}
}

/* Threads in turn do the same updates as sim in turn: one at a time, in the order given. */
static void turns_are_the_same_on_threads(void **state)
{
	static const char *const activations[] = { "rr", "random" };
	const struct mw_protocol_ops *p;
	(void)state;
	FOR_EACH_PROTOCOL(p)
	{
		uint64_t pushes[2];
		if (protocol_clock(p) != MW_CLOCK_EVENT || !strcmp(p->name, "sequential"))
			continue;
		for (int a = 0; a < 2; a++) {
			for (int e = 0; e < 2; e++) {
				struct test_run t;
				run_open(&t,
					"data=synth:quadratic,dim=20,rows=120 workers=3 rate=0.01 epochs=1 "
					"protocol=%s activation=%s "
					"engine=%s %s",
					p->name, activations[a], engines[e],
					e ? "oversubscribe=yes sample-every=1" : "");
				run_whole(&t);
				pushes[e] = run_pushes(&t);
				run_close(&t);
			}
			assert_int_equal(pushes[0], pushes[1]);
			assert_int_equal(pushes[0], 120);
		}
	}
}

/* --- SSP ----------------------------------------------------------------------------------------------------------- */

static uint64_t ssp_bound(uint64_t n, uint64_t s)
{
	return (n - 1) * (2 * s + 1); /* theory.md 1.2 (i) */
}

static void ssp_keeps_its_bound(void **state)
{
	static const char *const more[] = { "", "straggler=only:0,geometric:0.0002", "access=seqlock",
		"activation=random", "activation=rr access=locked" };
	(void)state;
	for (uint32_t n = 2; n <= 5; n++)
		for (uint32_t s = 0; s <= 4; s += s ? 3 : 1)
			for (int m = 0; m < 5; m++) {
				struct test_run t;
				run_open(&t,
					"data=synth:quadratic,dim=20,rows=600 protocol=ssp ssp-bound=%u "
					"workers=%u rate=0.01 epochs=1 "
					"oversubscribe=yes sample-every=1 %s",
					s, n, more[m]);
				run_whole(&t);
				struct mw_hist *h = run_staleness(&t);
				assert_int_equal(h->n, t.run->total_steps * n);
				if (h->max > ssp_bound(n, s))
					fail_msg("n %u, s %u %s: staleness %llu is over %llu", n, s, more[m],
						(unsigned long long)h->max,
						(unsigned long long)ssp_bound(n, s));
				mw_free(h);
				run_close(&t);
			}
}

/* No worker ever leads the slowest by more than the bound: their clocks when the first one has to wait. */
static void gate_holds_the_lead(void **state)
{
	static const char *const gates[] = { "protocol=ssp ssp-bound=2", "protocol=hogwild gate=ssp:2",
		"protocol=async-ps gate=barrier" };
	static const uint64_t bound[] = { 2, 2, 0 };
	(void)state;
	for (int g = 0; g < 3; g++) {
		struct test_run t;
		run_open(&t,
			"data=synth:quadratic,dim=4,rows=4000 workers=4 engine=sim rate=0.001 epochs=1 "
			"activation=random %s",
			gates[g]);
		for (uint64_t e = 1; e <= 600; e++) {
			uint64_t min = UINT64_MAX, max = 0;
			run_until(&t, e);
			for (uint32_t w = 0; w < 4; w++) {
				uint64_t c = t.run->counters[w].steps;
				min = c < min ? c : min;
				max = c > max ? c : max;
			}
			assert_true(max - min <=
				    bound[g] + 1); /* a step may begin at a lead of `bound`, and end */
		}
		run_close(&t);
	}
}

/*
 * The schedule that reaches the bound: worker 0 takes its view at clock 0, hurries to clock s and is then slow, while the
 * others wait for nothing but finish clock 2s before it pushes.
 */
static void sim_reaches_the_bound(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 6; n++)
		for (uint32_t s = 0; s <= 4; s++) {
			char csv[2000] = "worker,delay\n";
			struct test_run t;
			for (uint32_t w = 0; w < n; w++)
				for (uint32_t k = 0; k <= 2 * s + 1; k++) {
					/* others: one slow step, so that worker 0 gets ahead; then quick ones */
					double d = w == 0 ? (k == s ? 1000 : 0.001) : k == 0 ? 1 : 0.001;
					snprintf(csv + strlen(csv), sizeof(csv) - strlen(csv), "%u,%g\n", w,
						d);
				}
			run_open(&t,
				"data=synth:quadratic,dim=4,rows=10000 protocol=ssp ssp-bound=%u workers=%u "
				"engine=sim rate=0.001 "
				"epochs=1 compute-time=file:%s",
				s, n, temporary_file(csv));
			run_until(&t, 40);
			struct mw_hist *h = run_staleness(&t);
			if (h->max != ssp_bound(n, s))
				fail_msg("n %u, s %u: staleness %llu, the bound is %llu", n, s,
					(unsigned long long)h->max, (unsigned long long)ssp_bound(n, s));
			assert_int_equal(t.run->worker[0]->staleness->max, h->max);
			mw_free(h);
			run_close(&t);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(averaging_every_step_is_synchronous_sgd),
		cmocka_unit_test(shared_state_is_the_sequential_optimizer),
		cmocka_unit_test(own_state_is_another_trajectory),
		cmocka_unit_test(sim_is_reproducible),
		cmocka_unit_test(fast_rows_change_nothing),
		cmocka_unit_test(the_virtual_clock),
		cmocka_unit_test(evaluations_change_nothing),
		cmocka_unit_test(turns_are_the_same_on_threads),
		cmocka_unit_test(ssp_keeps_its_bound),
		cmocka_unit_test(gate_holds_the_lead),
		cmocka_unit_test(sim_reaches_the_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
