/* unit_mixing_limits.c: mixing times that do not exist, refused knobs, and any number of workers. */
#include "mixing_util.h"

static void no_value(void **state)
{
	(void)state;
	char path[64], spec[80];
	write_temporary(path, "0 1\n2 3\n");
	snprintf(spec, sizeof(spec), "edges:%s", path);
	for (int norm = 0; norm < 2; norm++) {
		struct mw_mixing_result r = of("sync-gossip", spec, 4, KNOBS(.norm = (enum mw_norm)norm));
		assert_false(r.mixes);
		assert_non_null(strstr(r.reason, "not connected"));
		assert_false(of("async-gossip", spec, 4, KNOBS(.norm = (enum mw_norm)norm)).mixes);
	}
	unlink(path);
	struct mw_mixing_result r =
		of("async-ring", NULL, 4, (struct mw_mixing_knobs){ .activation = MW_ACT_FREE });
	assert_false(r.mixes);
	assert_non_null(strstr(r.reason, "free-running"));
	r = of("async-ring", NULL, 64, TV(.work = 1e6));
	assert_false(r.mixes);
	assert_non_null(strstr(r.reason, "operations"));
	assert_true(r.lambda2 > 0); /* what is known is given all the same */
}

static void errors(void **state)
{
	(void)state;
	const struct {
		const char *protocol, *part;
		struct mw_mixing_knobs k;
	} bad[] = {
		{ "hogwild", "no exchange", L2(.slack = .5) },
		{ "hogwild", "no exchange", L2(.mix_every = 5) },
		{ "async-ps", "constant delay", L2(.delay = 3) },
		{ "sync-ring", "slack", L2(.slack = 1.5) },
		{ "sync-ring", "fraction", L2(.mix_fraction = 2) },
		{ "sync-ring", "eps", L2(.eps = 1) },
		{ "sync-ring", "mix-every", L2(.mix_every = -1) },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct made m = make(bad[i].protocol, NULL, 4, true);
		struct mw_mixing_result r;
		struct mw_err err = { 0 };
		assert_int_equal(mw_mixing_exact(m.p, &bad[i].k, &r, &err), MW_EUSAGE);
		assert_non_null(strstr(err.msg, bad[i].part));
		drop(&m);
	}
}

/* Any number of workers: no crash, and l2 <= TV for normal W (F5). */
static void any_size(void **state)
{
	(void)state;
	const char *const name[] = { "sync-ps", "async-ps", "local-sgd", "cached", "sync-ring", "async-ring",
		"token-ring", "numa", "hogwild", "ssp" };
	for (uint32_t n = 1; n <= 7; n++)
		for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
			for (int act = MW_ACT_RR; act <= MW_ACT_RANDOM; act++) {
				bool own = strcmp(name[i], "hogwild") && strcmp(name[i], "ssp");
				struct mw_mixing_knobs k = { .activation = (enum mw_activation)act,
					.norm = MW_NORM_TV,
					.seed = 1,
					.replicas = 100,
					.mix_every = own ? 2 : 0 };
				struct mw_mixing_result r = of(name[i], NULL, n, k);
				if (!r.mixes || r.t_mix < 1)
					fail_msg("%s, n = %u: %s", name[i], n, r.reason);
			}
}

static void view_is(
	const char *name, const char *graph, uint32_t n, struct mw_mixing_knobs k, double want, bool bound)
{
	struct made m = make(name, graph, n, k.activation != MW_ACT_RR);
	struct mw_mixing_result r = solve(m.p, k);
	struct mw_mixing_view v;
	struct mw_err err = { 0 };
	assert_int_equal(mw_mixing_view(m.p, &k, &r, &v, &err), 0);
	if (fabs(v.t_mix - want) > 1e-9 || v.bound != bound)
		fail_msg("%s of %u: %g%s, not %g", name, n, v.t_mix, v.bound ? " at most" : "", want);
	drop(&m);
}

/* A view that none but its worker changes adds nothing; one read from a shared row is n - 1 steps older, or random. */
static void views(void **state)
{
	(void)state;
	view_is("sync-ring", NULL, 8, L2(), 4, false);
	view_is("async-ps", NULL, 8, L2(), 11, false);
	view_is("async-ps", NULL, 8, L2_TURN(), 8, false);
	view_is("hogwild", NULL, 8, L2_TURN(), 8, false); /* as copies of a server: tau + 1 */
	view_is("hogwild", NULL, 8, L2(), 11, false);     /* P(tau >= k) = (7/8)^k <= 1/4 */
	view_is("hogwild", NULL, 8, L2(.delay = 5), 6, false);
	view_is("hogwild", NULL, 1, L2(), 1, false);
	view_is("async-ring", NULL, 8, L2_TURN(), 21 + 8, true);
	view_is("async-ring", NULL, 64, L2(), 9309,
		true); /* all distances followed, not the last ones alone */
	/* complete graph: d(k)^2 = r^k, r = 1 - 1/15; the mean over a is a sum of two geometric series, q = 1 - 1/16 */
	double q = 1 - 1. / 16, r = 1 - 1. / 15, k = 1;
	while ((pow(r, k) - pow(q, k)) / (r - q) / 16 + pow(q, k) > 0.25)
		k++;
	view_is("async-gossip", "complete", 16, L2(), k, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_value),
		cmocka_unit_test(errors),
		cmocka_unit_test(any_size),
		cmocka_unit_test(views),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
