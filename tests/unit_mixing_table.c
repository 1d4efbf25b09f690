/* unit_mixing_table.c: table 1 of theory.md from the protocols' own plans, and a ring of 1,024 workers. */
#include "mixing_util.h"

static const uint32_t sizes[6] = { 2, 4, 8, 16, 32, 64 };

static void table_row(
	const char *name, const char *const *graph, struct mw_mixing_knobs k, const double (*want)[2])
{
	for (int i = 0; i < 6; i++)
		pair(name, graph ? graph[i] : NULL, sizes[i], k, want[i][0], want[i][1]);
}

static void same(const char *spec, const char **graph)
{
	for (int i = 0; i < 6; i++)
		graph[i] = spec;
}

static void table_sync(void **state)
{
	(void)state;
	const char *g[6];
	const char *torus[6] = { "torus:1x2", "torus:2x2", "torus:2x4", "torus:4x4", "torus:4x8",
		"torus:8x8" };
	table_row("sync-ps", NULL, KNOBS(),
		(const double[6][2]){ { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } });
	table_row("sync-ring", NULL, KNOBS(),
		(const double[6][2]){ { 1, 1 }, { 1, 1 }, { 4, 5 }, { 14, 18 }, { 54, 73 }, { 216, 292 } });
	table_row("sync-ring", NULL, KNOBS(.mix_every = 10),
		(const double[6][2]){
			{ 10, 10 }, { 10, 10 }, { 40, 50 }, { 140, 180 }, { 540, 730 }, { 2160, 2920 } });
	table_row("sync-ring", NULL, KNOBS(.slack = .1),
		(const double[6][2]){
			{ 5, 5 }, { 11, 13 }, { 36, 47 }, { 137, 184 }, { 541, 732 }, { 2159, 2918 } });
	table_row("sync-gossip", torus, KNOBS(),
		(const double[6][2]){ { 1, 1 }, { 2, 2 }, { 2, 3 }, { 2, 3 }, { 6, 8 }, { 6, 10 } });
	same("hypercube", g);
	table_row("sync-gossip", g, KNOBS(),
		(const double[6][2]){ { 1, 1 }, { 1, 1 }, { 1, 2 }, { 2, 3 }, { 2, 4 }, { 3, 5 } });
	same("exponential", g);
	table_row("sync-gossip", g, KNOBS(),
		(const double[6][2]){ { 1, 1 }, { 1, 1 }, { 1, 2 }, { 2, 3 }, { 2, 3 }, { 3, 4 } });
	const double onepeer[6][2] = { { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 5 }, { 6, 6 } };
	same("onepeer-exp", g);
	table_row("sync-gossip", g, KNOBS(), onepeer);
	same("onepeer-cube", g);
	table_row("sync-gossip", g, KNOBS(), onepeer);
}

static void table_server(void **state)
{
	(void)state;
	table_row("async-ps", NULL, TURN(),
		(const double[6][2]){ { 2, 2 }, { 4, 4 }, { 8, 8 }, { 16, 16 }, { 32, 32 }, { 64, 64 } });
	table_row("async-ps", NULL, KNOBS(),
		(const double[6][2]){ { 2, 2 }, { 5, 5 }, { 11, 11 }, { 22, 22 }, { 44, 44 }, { 89, 89 } });
}

/* Edges (0,1), (1,2), ... one after the other. */
static void table_in_order(void **state)
{
	(void)state;
	const double want[6][2] = { { 1, 1 }, { 4, 4 }, { 15, 21 }, { 86, 123 }, { 603, 823 },
		{ 4660, 6320 } };
	for (int i = 0; i < 6; i++) {
		uint32_t n = sizes[i], period = n > 2 ? n : 1;
		struct mw_plan *plan[64];
		double pi[64];
		for (uint32_t e = 0; e < n; e++) {
			pi[e] = 1. / n;
			if (e < period)
				plan[e] = average(e, (e + 1) % n);
		}
		is_time(sequence(plan, period, n, pi, NULL, 0, MW_NORM_L2), want[i][0], "in order");
		is_time(sequence(plan, period, n, pi, NULL, 0, MW_NORM_TV), want[i][1], "in order");
		for (uint32_t e = 0; e < period; e++)
			mw_plan_free(plan[e]);
	}
}

/*
 * The table's TV values are Monte Carlo too: 2000 replicas at n = 16 down to 200 at 64, on a grid of n/8 events above 16,
 * which rounds up; about 1 %. Ours: within 2 standard errors of both together.
 */
static void table_pairs(void **state)
{
	(void)state;
	const double l2_ring[] = { 1, 5, 23, 154, 1171, 9245 }, l2_all[] = { 1, 4, 9, 21, 43, 87 };
	const double tv_ring[] = { 1, 5, 31, 211, 1588, 12512 }, tv_all[] = { 1, 5, 17, 48, 120, 280 };
	for (int i = 0; i < 6; i++) {
		uint32_t n = sizes[i];
		double grid = n <= 16 ? 1 : n / 8, share = n <= 16 ? .005 : .01;
		is_time(of("async-ring", NULL, n, L2()), l2_ring[i], "async-ring");
		is_time(of("async-gossip", "complete", n, L2()), l2_all[i], "complete");
		struct mw_mixing_result r = of("async-ring", NULL, n, TV());
		if (fabs(r.t_mix - tv_ring[i]) > 2 * hypot(r.error, share / 2 * tv_ring[i]) + grid)
			fail_msg("ring %u: %g +- %g, not %g", n, r.t_mix, r.error, tv_ring[i]);
		r = of("async-gossip", "complete", n, TV());
		if (fabs(r.t_mix - tv_all[i]) > 2 * hypot(r.error, share / 2 * tv_all[i]) + grid)
			fail_msg("complete %u: %g +- %g, not %g", n, r.t_mix, r.error, tv_all[i]);
	}
}

/* ln2/(2 pi^2) n^3 = 0.0351 n^3 for a large ring; the gaps of this one are 4e-8. */
static void large_ring(void **state)
{
	(void)state;
	struct mw_mixing_result r = of("async-ring", NULL, 1024, L2());
	assert_true(r.mixes && r.exact);
	assert_near(r.t_mix / (1024. * 1024 * 1024), M_LN2 / (2 * M_PI * M_PI), 2e-5);
	assert_true(r.s1 <= 2 * r.t_mix && r.s2 <= 4. / 3 * r.t_mix);
}

/*
 * What slack makes it mix in 10^9 events: d2(k)^2 falls by 1 - g l_1 / n a step for a large ring, l_1 = (2 pi / n)^2, so g =
 * n^3 ln 2 / (2 pi^2) / 10^9 up to 1 / n. Which period does is beyond any simulation, and that is said at once.
 */
static void large_ring_inverse(void **state)
{
	(void)state;
	struct made m = make("async-ring", NULL, 1024, true);
	struct mw_mixing_knobs k = L2(.work = 1e12);
	struct mw_mixing_result at;
	struct mw_err err = { 0 };
	double gamma, about = pow(1024, 3) * M_LN2 / (2 * M_PI * M_PI) / 1e9;
	int64_t every;
	assert_int_equal(mw_mixing_need_slack(m.p, &k, 1e9, &gamma, &at, &err), MW_OK);
	assert_near(gamma, about, about / 1024);
	is_time(at, 1e9, "ring 1024");
	k.slack = gamma * (1 - 1e-8);
	assert_true(solve(m.p, k).t_mix > 1e9);
	k.slack = 0;
	assert_int_equal(mw_mixing_need_period(m.p, &k, 1e9, &every, &at, &err), MW_OK);
	assert_int_equal(every, 0);
	assert_true(!at.mixes && strstr(at.reason, "--work"));
	drop(&m);
}

/* A circulant too: rho = 1/3 + 2/3 cos(2 pi / n), so t_mix is of one formula, with slack and period as well. */
static void large_ring_of_rounds(void **state)
{
	(void)state;
	struct made m = make("sync-ring", NULL, 1024, true);
	struct mw_mixing_knobs k = L2();
	struct mw_mixing_result at;
	struct mw_err err = { 0 };
	double s = sin(M_PI / 1024), one = ceil(M_LN2 / -log1p(-4. / 3 * s * s)), gamma;
	int64_t every;
	is_time(solve(m.p, k), one, "ring of rounds");
	assert_int_equal(mw_mixing_need_slack(m.p, &k, 1e6, &gamma, &at, &err), MW_OK);
	assert_near(gamma, -expm1(-M_LN2 / 1e6) / (4. / 3 * s * s), 3e-9 * gamma);
	is_time(at, 1e6, "ring of rounds");
	assert_int_equal(mw_mixing_need_period(m.p, &k, 1e6, &every, &at, &err), MW_OK);
	assert_int_equal(every, (int64_t)(1e6 / one));
	is_time(at, (double)every * one, "ring of rounds");
	drop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_sync),
		cmocka_unit_test(table_server),
		cmocka_unit_test(table_in_order),
		cmocka_unit_test(table_pairs),
		cmocka_unit_test(large_ring),
		cmocka_unit_test(large_ring_inverse),
		cmocka_unit_test(large_ring_of_rounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
