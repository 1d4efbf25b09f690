/*
 * conform_protocol.c: what every protocol must do, whatever it is combined with. The tests loop over the registry, so a
 * new protocol or optimizer is covered without a line here. Combinations are a pairwise covering set; the full product
 * with MW_LONG=1.
 */
#include "run_util.h"

#include <math.h>

#include "base/mem.h"

static const char *const accesses[] = { "racy", "atomic", "locked", "seqlock" };
static const char *const engines[] = { "sim", "threads" };
static const uint32_t worker_counts[] = { 2, 3, 5 };

/* Small sets on which a convex loss has to fall. eval-every and epochs only matter to the rate's shape. */
static const struct model_case {
	const char *name, *options;
} models[] = {
	{ "sparse logistic", "data=synth:sparse,rows=600,features=120,nnz=8 model=logistic batch=1" },
	{ "dense softmax", "data=synth:dense,rows=300,features=20,classes=4 model=softmax batch=3" },
	{ "dense logistic", "data=synth:dense,rows=300,features=37 model=logistic l2=0.001 batch=1" },
	{ "quad", "data=synth:quadratic,dim=40,cond=10,noise=0.01,rows=200 model=quad batch=2" },
};

/* Every optimizer of the registry at a rate that suits all models, and SGD with momentum. */
static const struct rate_case {
	const char *name, *rate;
} rates[] = { { "sgd", "0.05" }, { "adagrad", "0.05" } };

enum { N_MODELS = sizeof(models) / sizeof(models[0]), OPTIMS_MAX = 32, PROTOCOLS_MAX = 64 };

static char optims[OPTIMS_MAX][80];
static uint32_t n_optims, n_protocols;

static int list_cases(void **state)
{
	(void)state;
	for (; mw_protocols[n_protocols]; n_protocols++)
		;
	for (size_t i = 0; mw_optims[i]; i++) {
		const char *rate = "0.005";
		for (size_t k = 0; k < sizeof(rates) / sizeof(rates[0]); k++)
			if (!strcmp(mw_optims[i]->name, rates[k].name))
				rate = rates[k].rate;
		snprintf(optims[n_optims++], sizeof(optims[0]), "optimizer=%s rate=%s", mw_optims[i]->name,
			rate);
	}
	snprintf(optims[n_optims++], sizeof(optims[0]), "optimizer=sgd momentum=0.9 rate=0.005");
	return n_optims <= OPTIMS_MAX && n_protocols <= PROTOCOLS_MAX ? 0 : -1;
}

/* --- covering ------------------------------------------------------------------------------------------------------ */

enum { PROTOCOL, ACCESS, OPTIM, MODEL, ENGINE, WORKERS, FACTORS };

struct combination {
	uint32_t level[FACTORS];
};

typedef void combination_fn(const struct combination *c);

/* Pairs of levels that have been covered. */
struct cover {
	uint32_t levels[FACTORS];
	uint8_t *seen[FACTORS][FACTORS];
};

static uint32_t news(const struct cover *v, const struct combination *c, bool mark)
{
	uint32_t n = 0;
	for (int a = 0; a < FACTORS; a++)
		for (int b = a + 1; b < FACTORS; b++) {
			uint8_t *seen = &v->seen[a][b][c->level[a] * v->levels[b] + c->level[b]];
			n += !*seen;
			*seen |= mark;
		}
	return n;
}

static bool next(const struct cover *v, struct combination *c)
{
	for (int f = 0; f < FACTORS; f++) {
		if (++c->level[f] < v->levels[f])
			return true;
		c->level[f] = 0;
	}
	return false;
}

/* Greedy: again and again the combination with the most pairs that are new. */
static uint32_t run_covering(struct cover *v, combination_fn *fn)
{
	uint32_t n = 0;
	for (;;) {
		struct combination c = { { 0 } }, best = { { 0 } };
		uint32_t most = 0;
		do {
			uint32_t k = news(v, &c, false);
			if (k > most) {
				most = k;
				best = c;
			}
		} while (next(v, &c));
		if (!most)
			return n;
		news(v, &best, true);
		fn(&best);
		n++;
	}
}

static void for_combinations(uint32_t worker_levels, combination_fn *fn)
{
	struct cover v = { .levels = { n_protocols, 4, n_optims, N_MODELS, 2, worker_levels } };
	struct combination c = { { 0 } };
	if (run_long()) {
		do
			fn(&c);
		while (next(&v, &c));
		return;
	}
	for (int a = 0; a < FACTORS; a++)
		for (int b = a + 1; b < FACTORS; b++) {
			v.seen[a][b] = calloc(v.levels[a], v.levels[b]);
			assert_non_null(v.seen[a][b]);
		}
	uint32_t n = run_covering(&v, fn);
	assert_true(n >= n_protocols * n_optims); /* the two largest factors */
	for (int a = 0; a < FACTORS; a++)
		for (int b = a + 1; b < FACTORS; b++)
			free(v.seen[a][b]);
}

/* The options of a combination; protocols with a long period of their own get a short one, so that they mix. */
static void describe(const struct combination *c, uint32_t workers, char *text, size_t size)
{
	const struct mw_protocol_ops *p = mw_protocols[c->level[PROTOCOL]];
	bool threads = c->level[ENGINE] == 1;
	int n = snprintf(text, size, "protocol=%s workers=%u engine=%s %s %s%s", p->name, workers,
		engines[c->level[ENGINE]], models[c->level[MODEL]].options, optims[c->level[OPTIM]],
		protocol_has_period(p) ? " mix-every=3" : "");
	if (protocol_takes_access(p) && threads)
		n += snprintf(text + n, size - (size_t)n, " access=%s", accesses[c->level[ACCESS]]);
	if (threads)
		n += snprintf(text + n, size - (size_t)n, " oversubscribe=yes sample-every=%s",
			strstr(models[c->level[MODEL]].options, "batch=1")
				? "64"
				: "1"); /* bursts go between the samples */
	assert_true(n > 0 && (size_t)n < size);
}

/* --- one worker ---------------------------------------------------------------------------------------------------- */

/* The parameters after the sequential protocol has run, made once for each optimizer and model. */
static float *sequential[OPTIMS_MAX][N_MODELS];
static size_t sequential_dim[N_MODELS];

static float *average_copy(const struct mw_run *run)
{
	float *x = malloc(run->model->dim * sizeof(*x));
	assert_non_null(x);
	memcpy(x, run->average, run->model->dim * sizeof(*x));
	return x;
}

static const float *sequential_result(const struct combination *c)
{
	uint32_t o = c->level[OPTIM], m = c->level[MODEL];
	struct test_run t;
	if (sequential[o][m])
		return sequential[o][m];
	run_open(&t, "protocol=sequential workers=1 engine=sim epochs=1.5 %s %s", models[m].options,
		optims[o]);
	run_whole(&t);
	run_loss(&t);
	sequential[o][m] = average_copy(t.run);
	sequential_dim[m] = t.run->model->dim;
	run_close(&t);
	return sequential[o][m];
}

static void one_worker(const struct combination *c)
{
	char text[1000];
	struct test_run t;
	const float *want = sequential_result(c);
	describe(c, 1, text, sizeof(text));
	run_open(&t, "%s epochs=1.5", text);
	run_whole(&t);
	run_loss(&t);
	assert_int_equal(t.run->model->dim, sequential_dim[c->level[MODEL]]);
	assert_int_equal(run_pushes(&t), t.run->total_steps);
	for (size_t i = 0; i < t.run->model->dim; i++)
		if (memcmp(&t.run->average[i], &want[i], sizeof(float)))
			fail_msg("%s: parameter %zu is %.9g, %.9g in the sequential run", text, i,
				(double)t.run->average[i], (double)want[i]);
	run_close(&t);
}

static void one_worker_is_sequential(void **state)
{
	(void)state;
	for_combinations(1, one_worker);
	for (uint32_t o = 0; o < n_optims; o++)
		for (uint32_t m = 0; m < N_MODELS; m++) {
			free(sequential[o][m]);
			sequential[o][m] = NULL;
		}
}

/* Without this the comparison above would hold of a path that nothing takes. */
static void fused_paths_are_taken(void **state)
{
	static const struct {
		const char *options;
		bool fused;
	} cases[] = {
		{ "data=synth:sparse,rows=300,features=60,nnz=9 model=logistic", true },
		{ "data=synth:sparse,rows=300,features=60,nnz=9 model=logistic optimizer=amsgrad", true },
		{ "data=synth:dense,rows=300,features=20 model=logistic", true },
		{ "data=synth:sparse,rows=300,features=60,nnz=9 model=logistic batch=2", false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_run t;
		run_open(&t, "protocol=hogwild workers=1 epochs=1 %s", cases[i].options);
		assert_int_equal(t.run->bursts, cases[i].fused);
		run_close(&t);
	}
}

/* A loss that isn't finite ends a run, even if no step of it is sampled. */
static void fused_runs_notice_divergence(void **state)
{
	static const char *const cases[] = { "data=synth:dense,rows=2000,features=20",
		"data=synth:sparse,rows=2000,features=60,nnz=9",
		"data=synth:sparse,rows=2000,features=60,nnz=9 optimizer=amsgrad" };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct test_run t;
		run_open(&t, "protocol=hogwild workers=1 model=squared rate=1e30 epochs=20 sample-every=0 %s",
			cases[i]);
		assert_true(t.run->bursts);
		run_whole(&t);
		assert_int_equal(t.run->diverged, 1);
		assert_true(run_pushes(&t) < t.run->total_steps / 2);
		run_close(&t);
	}
}

/* --- several workers ----------------------------------------------------------------------------------------------- */

static void check_plans(const struct mw_run *run, const char *text)
{
	for (uint32_t k = 0; k < run->protocol->n_all; k++) {
		double error = mw_plan_row_sum_error(run->protocol->all[k]);
		if (error > 1e-12)
			fail_msg("%s: a row of plan %u sums to 1 only within %g", text, k, error);
	}
}

/* pi is a left fixed vector of every plan, and of what workers push all counts once (weight 1) or is averaged. */
static void check_pi(const struct mw_run *run, const char *text)
{
	const struct mw_protocol *p = run->protocol;
	double *w = calloc((size_t)p->rows * p->rows, sizeof(*w)), sum = 0;
	assert_non_null(w);
	for (uint32_t r = 0; r < p->rows; r++)
		sum += p->pi[r];
	if (fabs(sum - 1) > 1e-9)
		fail_msg("%s: pi sums to %g", text, sum);
	for (uint32_t k = 0; k < p->n_all; k++) {
		mw_plan_matrix(p->all[k], 1, p->rows, w);
		for (uint32_t j = 0; j < p->rows; j++) {
			double v = 0;
			for (uint32_t i = 0; i < p->rows; i++)
				v += p->pi[i] * w[(size_t)i * p->rows + j];
			if (fabs(v - p->pi[j]) > 1e-9)
				fail_msg("%s: plan %u moves pi[%u] from %g to %g", text, k, j, p->pi[j], v);
		}
	}
	free(w);
}

enum { EPOCHS = 3 };

/* All the same number of steps; or (dealt rows) every row once an epoch, but for the last batches that don't fill. */
static void check_counts(const struct test_run *t, const char *text)
{
	const struct mw_run *run = t->run;
	uint64_t most = run->dealer ? EPOCHS * run->rows.n / run->batch : run->total_steps * run->n_workers,
		 least = run->dealer && run->batch > 1 ? most - run->n_workers + 1 : most;
	if (run_pushes(t) < least || run_pushes(t) > most)
		fail_msg("%s: %llu pushes, not %llu to %llu", text, (unsigned long long)run_pushes(t),
			(unsigned long long)least, (unsigned long long)most);
	for (uint32_t w = 0; w < run->n_workers; w++) {
		if (!run->dealer)
			assert_int_equal(run->counters[w].steps, run->total_steps);
		assert_int_equal(run->counters[w].steps, run->worker[w]->step);
		assert_int_equal(run->counters[w].examples, run->counters[w].pushes * run->batch);
	}
}

static void check_staleness(const struct test_run *t, const char *text)
{
	const struct mw_run *run = t->run;
	uint64_t n = run->n_workers, bound = UINT64_MAX;
	struct mw_hist *h = run_staleness(t);
	if (run->ssp_bound >= 0)
		bound = (n - 1) * (2 * (uint64_t)run->ssp_bound + 1);
	if (run->protocol->clock == MW_CLOCK_ROUND)
		bound = (n - 1) * ((uint64_t)run->knobs.mix_every - 1);
	assert_true(h->n > 0);
	if (h->max > bound)
		fail_msg("%s: staleness %llu, the bound is %llu", text, (unsigned long long)h->max,
			(unsigned long long)bound);
	mw_free(h);
}

static void several_workers(const struct combination *c)
{
	char text[1000];
	struct test_run t;
	if (!strcmp(mw_protocols[c->level[PROTOCOL]]->name, "sequential"))
		return;
	describe(c, worker_counts[c->level[WORKERS]], text, sizeof(text));
	run_open(&t, "%s epochs=%d", text, EPOCHS);
	check_plans(t.run, text);
	check_pi(t.run, text);
	double before = run_loss(&t);
	run_whole(&t);
	double after = run_loss(&t);
	check_counts(&t, text);
	check_staleness(&t, text);
	/* A token waits for a worker without a CPU while the others go on and on, and then adds what they all found. */
	bool must_fall = t.run->protocol->due != MW_DUE_TOKEN || t.run->exclusive;
	if (!isfinite(after) || (must_fall && !(after < 0.98 * before)))
		fail_msg("%s: the loss went from %g to %g", text, before, after);
	run_close(&t);
}

static void several_workers_learn(void **state)
{
	(void)state;
	for_combinations(3, several_workers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_worker_is_sequential),
		cmocka_unit_test(fused_paths_are_taken),
		cmocka_unit_test(fused_runs_notice_divergence),
		cmocka_unit_test(several_workers_learn),
	};
	return cmocka_run_group_tests(tests, list_cases, NULL);
}
