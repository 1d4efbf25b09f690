/* unit_comm_plan.c: plans of every protocol against the matrices of the theory note and the rules all must
 * keep. */
#include "comm_util.h"

#include "base/rng.h"
#include "comm/protocol.h"

#define MW_PROTOCOL(name) extern const struct mw_protocol_ops mw_protocol_##name;
#include "registry.def"

#define MW_PROTOCOL(name) &mw_protocol_##name,
static const struct mw_protocol_ops *const protocols[] = {
#include "registry.def"
	NULL
};

static const struct mw_protocol_ops *ops_of(const char *name)
{
	for (size_t i = 0; protocols[i]; i++)
		if (!strcmp(protocols[i]->name, name))
			return protocols[i];
	fail_msg("no protocol %s", name);
	return NULL;
}

/* The protocol with options as text "name=value" (NULL: defaults), on this graph (NULL: its default). */
static struct mw_protocol *protocol_of(const char *name, const char *option, const char *value,
	struct mw_protocol_config *c, struct mw_graph **graph)
{
	const struct mw_protocol_ops *ops = ops_of(name);
	struct mw_err err = { 0 };
	struct mw_protocol *p;
	struct mw_options set;
	void *target = calloc(1, ops->option_size + 1);
	struct mw_option_group group = { "Protocol", NULL, ops->options, target };
	if (!c->graph && ops->default_graph)
		c->graph = *graph = graph_of(ops->default_graph, c->workers);
	assert_int_equal(mw_options_init(&set, &group, 1, &err), MW_OK);
	if (option)
		assert_int_equal(mw_options_set(&set, option, value, "test", &err), MW_OK);
	if (mw_protocol_new(ops, ops->options ? target : NULL, c, &p, &err) != MW_OK)
		fail_msg("%s, n = %u: %s", name, c->workers, err.msg);
	mw_options_fini(&set);
	free(target);
	return p;
}

static void check_plan(const struct mw_plan *plan, double gamma, uint32_t rows, const double *want)
{
	double *w = malloc(rows * rows * sizeof(*w));
	mw_plan_matrix(plan, gamma, rows, w);
	for (uint32_t k = 0; k < rows * rows; k++)
		if (fabs(w[k] - want[k]) > 1e-15)
			fail_msg("W[%u][%u] = %.17g, not %.17g", k / rows, k % rows, w[k], want[k]);
	free(w);
}

/* One protocol, its numbers of plans, and the matrix of one of them. */
static void check_protocol(const char *name, const char *option, const char *value, uint32_t workers,
	uint32_t slot, uint32_t choice, uint32_t rows, const double *want)
{
	const uint32_t node[4] = { 0, 1, 0, 1 };
	struct mw_protocol_config c = { .workers = workers, .nodes = 2, .worker_node = node };
	struct mw_graph *graph = NULL;
	struct mw_protocol *p = protocol_of(name, option, value, &c, &graph);
	assert_int_equal(p->rows, rows);
	assert_true(slot < p->n_slots && choice < p->slot[slot].n);
	check_plan(p->slot[slot].plan[choice], 1, rows, want);
	mw_protocol_free(p);
	mw_graph_free(graph);
}

/* The matrices of theory.md 1.2, written out. */
static void test_matrices(void **state)
{
	const double t = 1. / 3, h = .5;
	(void)state;
	/* a */
	check_protocol("async-ps", NULL, NULL, 2, 0, 0, 3, (double[]){ 1, 0, 0, 1, 0, 0, 0, 0, 1 });
	check_protocol("async-ps", NULL, NULL, 2, 1, 0, 3, (double[]){ 1, 0, 0, 0, 1, 0, 1, 0, 0 });
	check_protocol("ssp", NULL, NULL, 2, 0, 0, 3, (double[]){ 1, 0, 0, 1, 0, 0, 0, 0, 1 });
	check_protocol("sync-ps", NULL, NULL, 2, 0, 0, 3, (double[]){ 1, 0, 0, 1, 0, 0, 1, 0, 0 });
	/* d, without the views: the engines hold these */
	check_protocol("numa", NULL, NULL, 4, 0, 0, 2, (double[]){ h, h, h, h });
	check_protocol("numa", NULL, NULL, 4, 1, 0, 2, (double[]){ h, h, h, h });
	/* e */
	check_protocol("sync-ring", NULL, NULL, 2, 0, 0, 2, (double[]){ t, 2 * t, 2 * t, t });
	check_protocol("sync-ring", NULL, NULL, 4, 0, 0, 4,
		(double[]){ t, t, 0, t, t, t, t, 0, 0, t, t, t, t, 0, t, t });
	check_protocol("sync-gossip", NULL, NULL, 3, 0, 0, 3, (double[]){ t, t, t, t, t, t, t, t, t });
	/* f: worker 0's edges are (0,1), (0,2); worker 2's (2,0), (2,1) */
	check_protocol("async-ring", NULL, NULL, 3, 0, 0, 3, (double[]){ h, h, 0, h, h, 0, 0, 0, 1 });
	check_protocol("async-ring", NULL, NULL, 3, 0, 1, 3, (double[]){ h, 0, h, 0, 1, 0, h, 0, h });
	check_protocol("async-gossip", NULL, NULL, 3, 2, 0, 3, (double[]){ h, 0, h, 0, 1, 0, h, 0, h });
	check_protocol("async-gossip", NULL, NULL, 3, 2, 1, 3, (double[]){ 1, 0, 0, 0, h, h, 0, h, h });
	/* g */
	check_protocol("local-sgd", "period", "5", 3, 0, 0, 3, (double[]){ t, t, t, t, t, t, t, t, t });
	/* h: rows T, w_1, s_1, w_2, s_2 */
	const double token_1[] = { 1, 1, -1, 0, 0, 1, 1, -1, 0, 0, 1, 1, -1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,
		1 };
	const double token_2[] = { 1, 0, 0, 1, -1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, -1, 1, 0, 0, 1,
		-1 };
	check_protocol("token-ring", NULL, NULL, 2, 0, 0, 5, token_1);
	check_protocol("token-ring", "groups", "2", 4, 3, 0, 5, token_2);
	check_protocol("cached", NULL, NULL, 2, 0, 0, 5, token_1);
	check_protocol("cached", NULL, NULL, 2, 1, 0, 5, token_2);
}

static void test_fields(void **state)
{
	static const struct {
		const char *name, *option, *value;
		double push_weight;
		int64_t mix_every;
		int64_t ssp_bound;
		enum mw_clock clock;
		enum mw_due due;
		uint32_t rows, n_slots, view_2, push_2;
		bool signed_plan, merge, versioned;
	} cases[] = {
		{ "hogwild", 0, 0, 1, 1, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 1, 0, 0, 0, 0, 0, 0 },
		{ "leashed", 0, 0, 1, 1, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 1, 0, 0, 0, 0, 0, 1 },
		{ "sync-ps", 0, 0, .25, 1, -1, MW_CLOCK_ROUND, MW_DUE_ALWAYS, 5, 1, 3, 0, 0, 0, 0 },
		{ "async-ps", 0, 0, 1, 1, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 5, 4, 3, 0, 0, 0, 0 },
		{ "ssp", "ssp-bound", "2", 1, 1, 2, MW_CLOCK_EVENT, MW_DUE_SSP, 5, 4, 3, 0, 0, 0, 0 },
		{ "local-sgd", "period", "7", 1, 7, -1, MW_CLOCK_ROUND, MW_DUE_ALWAYS, 4, 1, 2, 2, 0, 0, 0 },
		{ "cached", 0, 0, 1, 2048, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 9, 4, 5, 5, 1, 1, 0 },
		{ "sync-gossip", 0, 0, 1, 1, -1, MW_CLOCK_ROUND, MW_DUE_ALWAYS, 4, 1, 2, 2, 0, 0, 0 },
		{ "async-gossip", 0, 0, 1, 1, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 4, 4, 2, 2, 0, 0, 0 },
		{ "numa", "average-every", "9", 1, 9, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 2, 4, 0, 0, 0, 0,
			0 },
		{ "numa", "groups", "4", 1, 1024, -1, MW_CLOCK_EVENT, MW_DUE_ALWAYS, 4, 4, 2, 2, 0, 0, 0 },
		{ "token-ring", "groups", "2", 1, 64, -1, MW_CLOCK_EVENT, MW_DUE_TOKEN, 5, 4, 1, 1, 1, 1, 0 },
	};
	const uint32_t node[4] = { 0, 3, 0, 3 }; /* nodes 1, 2 have no worker and get no row */
	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct mw_protocol_config c = { .workers = 4, .nodes = 4, .worker_node = node };
		struct mw_graph *graph = NULL;
		struct mw_protocol *p =
			protocol_of(cases[k].name, cases[k].option, cases[k].value, &c, &graph);
		assert_near(p->push_weight, cases[k].push_weight, 0);
		assert_int_equal(p->mix_every, cases[k].mix_every);
		assert_int_equal(p->ssp_bound, cases[k].ssp_bound);
		assert_int_equal(p->clock, cases[k].clock);
		assert_int_equal(p->due, cases[k].due);
		assert_int_equal(p->rows, cases[k].rows);
		assert_int_equal(p->n_slots, cases[k].n_slots);
		assert_int_equal(p->view_row[2], cases[k].view_2);
		assert_int_equal(p->push_row[2], cases[k].push_2);
		assert_int_equal(p->signed_plan, cases[k].signed_plan);
		assert_int_equal(p->merge, cases[k].merge);
		assert_int_equal(p->versioned, cases[k].versioned);
		assert_int_equal(p->push2_row != NULL, !strcmp(cases[k].name, "ssp"));
		mw_protocol_free(p);
		mw_graph_free(graph);
	}
}

static void test_pairs_vector(void **state)
{
	const double want[] = { 3. / 8, 3. / 8, 1. / 4, 1. / 4, 1. / 4, 1. / 2, 3. / 8, 3. / 8, 1. / 4 };
	const uint32_t pair[3][2] = { { 0, 1 }, { 1, 2 }, { 0, 2 } };
	const double half[2] = { .5, .5 };
	double phi[9] = { 1, 0, 0, 0, 1, 0, 0, 0, 1 }, scratch[6];
	(void)state;
	for (int e = 0; e < 3; e++) {
		struct mw_plan *plan;
		assert_int_equal(mw_plan_new(2, 4, &plan, NULL), MW_OK);
		mw_plan_add_row(plan, pair[e][0], 2, pair[e], half);
		mw_plan_add_row(plan, pair[e][1], 2, pair[e], half);
		mw_plan_apply(plan, 1, phi, 3, scratch);
		mw_plan_free(plan);
	}
	for (int k = 0; k < 9; k++)
		assert_near(phi[k], want[k], 0);
}

static void test_slack(void **state)
{
	struct mw_protocol_config c = { .workers = 2 };
	struct mw_graph *graph = NULL;
	struct mw_protocol *p = protocol_of("async-ps", NULL, NULL, &c, &graph);
	(void)state;
	check_plan(p->slot[1].plan[0], .25, 3, (double[]){ 1, 0, 0, 0, 1, 0, .25, 0, .75 });
	check_plan(p->slot[1].plan[0], 0, 3, (double[]){ 1, 0, 0, 0, 1, 0, 0, 0, 1 });
	mw_protocol_free(p);
	p = protocol_of("sync-ring", NULL, NULL, &c, &graph);
	check_plan(p->slot[0].plan[0], .3, 2, (double[]){ .8, .2, .2, .8 });
	mw_protocol_free(p);
	mw_graph_free(graph);
}

/* Rules that every plan keeps: rows sum to 1, pi is a left fixed vector, apply equals the matrix product. */
static void check_rules(const struct mw_protocol *p, const struct mw_plan *plan)
{
	uint32_t n = p->rows, cols = 3;
	double *w = malloc(n * n * sizeof(*w)), *phi = malloc(n * cols * sizeof(*phi));
	double *was = malloc(n * cols * sizeof(*was)),
	       *scratch = malloc((plan->n_rows + 1) * cols * sizeof(*scratch));
	struct mw_rng rng;
	mw_rng_init(&rng, 5, n);
	assert_true(mw_plan_row_sum_error(plan) <= 1e-14 * n);
	assert_int_equal(mw_plan_is_stochastic(plan), !p->signed_plan);
	for (double gamma = 1; gamma > .2; gamma -= .7) {
		mw_plan_matrix(plan, gamma, n, w);
		for (uint32_t j = 0; j < n; j++) {
			double s = 0;
			for (uint32_t i = 0; i < n; i++)
				s += p->pi[i] * w[i * n + j];
			assert_near(s, p->pi[j], 1e-13);
		}
		for (uint32_t k = 0; k < n * cols; k++)
			was[k] = phi[k] = mw_rng_normal(&rng);
		mw_plan_apply(plan, gamma, phi, cols, scratch);
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < cols; j++) {
				double s = 0;
				for (uint32_t k = 0; k < n; k++)
					s += w[i * n + k] * was[k * cols + j];
				assert_near(phi[i * cols + j], s, 1e-13);
			}
	}
	free(w);
	free(phi);
	free(was);
	free(scratch);
}

static void check_wiring(const struct mw_protocol *p)
{
	double pi = 0;
	for (uint32_t r = 0; r < p->rows; r++) {
		pi += p->pi[r];
		assert_true(p->row_worker[r] == MW_NO_ROW || p->row_worker[r] < p->workers);
		assert_true(p->row_owner[r] == MW_NO_ROW || p->row_owner[r] < p->workers);
	}
	assert_near(pi, 1, 1e-13);
	for (uint32_t w = 0; w < p->workers; w++)
		assert_true(p->view_row[w] < p->rows && p->push_row[w] < p->rows);
	assert_int_equal(p->n_slots, !p->n_slots ? 0 : p->clock == MW_CLOCK_ROUND ? 1 : p->workers);
	for (uint32_t s = 0; s < p->n_slots; s++)
		for (uint32_t k = 0; k < p->slot[s].n; k++) {
			bool owned = false;
			for (uint32_t a = 0; a < p->n_all; a++)
				owned = owned || p->all[a] == p->slot[s].plan[k];
			assert_true(owned);
			assert_ptr_equal(mw_protocol_plan(p, s, p->pick == MW_PICK_CYCLIC ? k : 0, 0),
				p->slot[s].plan[p->pick == MW_PICK_CYCLIC ? k : 0]);
		}
	if (p->clock == MW_CLOCK_ROUND)
		assert_true(p->slot[0].n >= 1);
}

static void check_all_plans(const struct mw_protocol_ops *ops, const struct mw_protocol_config *c)
{
	struct mw_err err = { 0 };
	struct mw_protocol *p;
	if (mw_protocol_new(ops, NULL, c, &p, &err) != MW_OK)
		fail_msg("%s, n = %u: %s", ops->name, c->workers, err.msg);
	check_wiring(p);
	for (uint32_t k = 0; k < p->n_all; k++)
		check_rules(p, p->all[k]);
	mw_protocol_free(p);
}

static void test_every_protocol(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 5, 8, 16 };
	uint32_t node[16];
	(void)state;
	for (int w = 0; w < 16; w++)
		node[w] = (uint32_t)(w * 3 % 4);
	for (size_t i = 0; protocols[i]; i++)
		for (size_t s = 0; s < 6; s++)
			for (int random = 0; random < 2; random++) {
				const struct mw_protocol_ops *ops = protocols[i];
				uint32_t n = sizes[s];
				struct mw_protocol_config c = {
					.workers = n, .nodes = 4, .worker_node = node, .random_edges = random
				};
				if (!ops->default_graph && (n == 1 || strcmp(ops->name, "sequential")))
					check_all_plans(ops, &c);
				for (size_t k = 0; ops->default_graph && k < N_GRAPH_CASES; k++) {
					if (!graph_case_allows(&graph_cases[k], n) || (ops->expands && k > 0))
						continue;
					struct mw_graph *g = graph_of(graph_cases[k].spec, n);
					c.graph = g;
					check_all_plans(ops, &c);
					mw_graph_free(g);
				}
			}
}

/* With one worker: what it views gets its whole delta, and no plan changes rows that are equal. */
static void test_one_worker(void **state)
{
	(void)state;
	for (size_t i = 0; protocols[i]; i++) {
		struct mw_protocol_config c = { .workers = 1, .nodes = 1 };
		struct mw_graph *graph = NULL;
		struct mw_protocol *p = protocol_of(protocols[i]->name, NULL, NULL, &c, &graph);
		double phi[3] = { 0 }, scratch[3];
		phi[p->push_row[0]] += p->push_weight;
		if (p->push2_row)
			phi[p->push2_row[0]] += p->push_weight;
		if (p->n_slots && p->slot[0].n)
			mw_plan_apply(p->slot[0].plan[0], 1, phi, 1, scratch);
		if (p->n_slots)
			assert_true(p->slot[0].n <= 1);
		for (uint32_t r = 0; r < p->rows; r++)
			assert_near(phi[r], 1, 0);
		mw_protocol_free(p);
		mw_graph_free(graph);
	}
}

static void test_one_peer_period(void **state)
{
	struct mw_graph *g = graph_of("onepeer-exp", 8);
	struct mw_protocol_config c = { .workers = 8, .graph = g };
	struct mw_protocol *p = protocol_of("sync-gossip", NULL, NULL, &c, NULL);
	(void)state;
	assert_int_equal(p->slot[0].n, 3);
	for (uint32_t k = 0; k < 6; k++) {
		const struct mw_plan *plan = mw_protocol_plan(p, 0, k, 0);
		assert_int_equal(plan->row[0].n, 2);
		assert_int_equal(plan->src[1], 1u << (k % 3));
	}
	mw_protocol_free(p);
	mw_graph_free(g);
}

static void test_pick(void **state)
{
	static const struct {
		const char *order;
		bool random;
		enum mw_pick pick;
	} cases[] = { { "auto", false, MW_PICK_CYCLIC }, { "auto", true, MW_PICK_RANDOM },
		{ "random", false, MW_PICK_RANDOM }, { "cyclic", true, MW_PICK_CYCLIC } };
	(void)state;
	for (int k = 0; k < 4; k++) {
		struct mw_protocol_config c = { .workers = 5, .random_edges = cases[k].random };
		struct mw_graph *graph = NULL;
		struct mw_protocol *p = protocol_of("async-ring", "pair-order", cases[k].order, &c, &graph);
		assert_int_equal(p->pick, cases[k].pick);
		for (uint32_t w = 0; w < 5;
			w++) { /* first the next worker, then the one before; ends share plans */
			assert_int_equal(p->slot[w].n, 2);
			assert_ptr_equal(p->slot[w].plan[0], p->slot[(w + 1) % 5].plan[1]);
		}
		assert_int_equal(p->n_all, 5);
		assert_ptr_equal(mw_protocol_plan(p, 0, 0, UINT64_MAX),
			p->slot[0].plan[cases[k].pick == MW_PICK_RANDOM ? 1 : 0]);
		mw_protocol_free(p);
		mw_graph_free(graph);
	}
}

static void test_empty_lists(void **state)
{
	const uint32_t node[3] = { 1, 0, 1 };
	struct mw_protocol_config c = { .workers = 3, .nodes = 2, .worker_node = node };
	struct mw_protocol *p = protocol_of("numa", NULL, NULL, &c, NULL);
	(void)state;
	assert_int_equal(p->slot[0].n, 1);
	assert_int_equal(p->slot[1].n, 1);
	assert_null(mw_protocol_plan(p, 2, 0, 0));
	assert_int_equal(p->row_worker[0], 0); /* rows in order of first appearance */
	assert_int_equal(p->row_worker[1], 1);
	mw_protocol_free(p);
}

static void test_owners(void **state)
{
	struct mw_protocol_config c = { .workers = 3, .nodes = 1 };
	struct mw_graph *graph = NULL;
	(void)state;
	struct mw_protocol *p = protocol_of("cached", NULL, NULL, &c, &graph);
	const uint32_t cached[] = { MW_NO_ROW, 0, 0, 1, 1, 2, 2 };
	assert_memory_equal(p->row_owner, cached, sizeof(cached));
	mw_protocol_free(p);
	p = protocol_of("sync-ring", NULL, NULL, &c, &graph); /* under a barrier plans don't count */
	const uint32_t own[] = { 0, 1, 2 };
	assert_memory_equal(p->row_owner, own, sizeof(own));
	mw_protocol_free(p);
	p = protocol_of("async-ring", NULL, NULL, &c, &graph);
	const uint32_t none[] = { MW_NO_ROW, MW_NO_ROW, MW_NO_ROW };
	assert_memory_equal(p->row_owner, none, sizeof(none));
	mw_protocol_free(p);
	p = protocol_of("token-ring", "groups", "2", &c, &graph);
	const uint32_t token[] = { MW_NO_ROW, MW_NO_ROW, MW_NO_ROW, 1, 1 };
	assert_memory_equal(p->row_owner, token, sizeof(token));
	mw_protocol_free(p);
	mw_graph_free(graph);
}

static void check_refused(const char *name, struct mw_protocol_config c, int code, const char *part)
{
	struct mw_err err = { 0 };
	struct mw_protocol *p;
	assert_int_equal(mw_protocol_new(ops_of(name), NULL, &c, &p, &err), code);
	assert_null(p);
	if (!strstr(err.msg, part))
		fail_msg("\"%s\" lacks \"%s\"", err.msg, part);
}

static void test_errors(void **state)
{
	struct mw_graph *torus = graph_of("torus", 8);
	(void)state;
	check_refused(
		"sequential", (struct mw_protocol_config){ .workers = 2 }, MW_EUSAGE, "use --workers 1");
	check_refused("sync-ring", (struct mw_protocol_config){ .workers = 8, .graph = torus }, MW_EUSAGE,
		"--protocol sync-gossip --graph torus:2x4");
	check_refused("async-ring", (struct mw_protocol_config){ .workers = 8, .graph = torus }, MW_EUSAGE,
		"--protocol async-gossip --graph torus:2x4");
	check_refused("sync-gossip", (struct mw_protocol_config){ .workers = 8 }, MW_EINTERNAL, "a graph");
	check_refused("hogwild", (struct mw_protocol_config){ .workers = 0 }, MW_EUSAGE, "out of range");
	mw_graph_free(torus);
	mw_protocol_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrices),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_pairs_vector),
		cmocka_unit_test(test_slack),
		cmocka_unit_test(test_every_protocol),
		cmocka_unit_test(test_one_worker),
		cmocka_unit_test(test_one_peer_period),
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_empty_lists),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_errors),
	};
	return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
