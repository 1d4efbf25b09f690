/*
 * unit_mixing_trace.c: products followed through a sequence of exchanges give back the exact mixing time of that
 * sequence, and delays the quantile that theory.md 4a defines. Sequences are made here, not by a run.
 */
#include "mixing_util.h"

#include <math.h>

#include "base/rng.h"
#include "mixing/trace.h"

struct drive {
	struct made m;
	struct mw_products *s;
	struct mw_rng rng;
	bool turns;
	uint64_t every, t, step[64], mixes[64];
	uint32_t token;
};

static void open_drive(
	struct drive *d, const char *name, const char *graph, uint32_t n, bool turns, uint64_t every)
{
	struct mw_err err = { 0 };
	*d = (struct drive){ .turns = turns, .every = every };
	d->m = make(name, graph, n, !turns);
	mw_rng_init(&d->rng, 7, n);
	bool fixed = turns || d->m.p->clock == MW_CLOCK_ROUND;
	assert_int_equal(mw_products_new(d->m.p, fixed, 3, &d->s, &err), 0);
}

static void close_drive(struct drive *d)
{
	mw_products_free(d->s);
	drop(&d->m);
}

/* One native step: a push and, when it is due, the exchange of a worker or a round. */
static void native_step(struct drive *d)
{
	const struct mw_protocol *p = d->m.p;
	bool round = p->clock == MW_CLOCK_ROUND;
	uint32_t w = round ? 0 : (uint32_t)(d->turns ? d->t % p->workers : mw_rng_below(&d->rng, p->workers));
	d->t++;
	if (++d->step[w] % d->every == 0 && (p->due != MW_DUE_TOKEN || w % p->groups == d->token)) {
		mw_products_mix(d->s, mw_protocol_plan(p, w, d->mixes[w]++, mw_rng_next(&d->rng)), 1);
		d->token = p->due == MW_DUE_TOKEN ? (d->token + 1) % p->groups : 0;
	}
	mw_products_step(d->s);
}

static struct mw_estimate drive(
	const char *name, const char *graph, uint32_t n, bool turns, uint64_t every, uint32_t steps)
{
	struct drive d;
	struct mw_estimate e;
	open_drive(&d, name, graph, n, turns, every);
	for (uint32_t i = 0; i < steps; i++)
		native_step(&d);
	mw_products_estimate(d.s, &e);
	close_drive(&d);
	if (!e.identified)
		fail_msg("%s: %s", name, e.reason);
	return e;
}

/* No randomness: the value is the integer itself. */
static void fixed_sequences_are_exact(void **state)
{
	(void)state;
	static const struct {
		const char *name, *graph;
		uint32_t n;
		uint64_t every;
		double want;
	} cases[] = {
		{ "async-ps", NULL, 4, 1, 4 },
		{ "async-ps", NULL, 8, 1, 8 },
		{ "sync-ring", NULL, 8, 1, 4 },
		{ "sync-ring", NULL, 16, 1, 14 },
		{ "sync-gossip", "onepeer-exp", 8, 1, 3 },
		{ "sync-ring", NULL, 8, 10, 40 },
		{ "cached", NULL, 4, 4, 31 },
		{ "cached", NULL, 2, 4, 15 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mw_estimate e =
			drive(cases[i].name, cases[i].graph, cases[i].n, true, cases[i].every, 12000);
		if (e.value != cases[i].want || e.error != 0 || e.target != MW_TARGET_SUP)
			fail_msg("%s n %u every %d: %g +- %g, not %g", cases[i].name, cases[i].n,
				(int)cases[i].every, e.value, e.error, cases[i].want);
	}
	/* what the exact part says of the same order */
	struct mw_estimate e = drive("async-ring", NULL, 8, true, 1, 12000);
	assert_true(e.value == of("async-ring", NULL, 8, L2_TURN()).t_mix);
	e = drive("token-ring", NULL, 3, true, 4, 12000);
	assert_true(e.value == of("token-ring", NULL, 3, TURN(.mix_every = 4, .norm = MW_NORM_TV)).t_mix);
}

static void close_to(struct mw_estimate e, double want, double share, const char *what)
{
	if (!(fabs(e.value - want) <= e.error + share * want) || e.target != MW_TARGET_ANN)
		fail_msg("%s: %g +- %g, not %g", what, e.value, e.error, want);
}

static void random_sequences_are_close(void **state)
{
	(void)state;
	close_to(drive("async-ps", NULL, 8, false, 1, 20000), 11, 0.01, "async-ps 8");
	close_to(drive("async-ring", NULL, 8, false, 1, 30000), 23, 0.02, "async-ring 8");
	struct mw_estimate e = drive("async-gossip", "complete", 16, false, 1, 20000);
	close_to(e, 21, 0.02, "pair gossip 16");
	assert_true(e.pooled >= e.split); /* they bracket */
	assert_true(e.quenched > e.value);
	e.value = e.tv;
	close_to(e, 48, 0.05, "pair gossip 16 in total variation");
}

/* Time is counted in steps, so a long wait makes the grid coarse at first and fine around the crossing later. */
static void long_times_are_refined(void **state)
{
	(void)state;
	struct mw_estimate e = drive("sync-ring", NULL, 16, true, 10, 30000);
	if (!(fabs(e.value - 140) <= e.error) || e.error > 1)
		fail_msg("%g +- %g, not 140", e.value, e.error);
}

static void too_little_is_said(void **state)
{
	struct drive d;
	struct mw_estimate e;
	(void)state;
	open_drive(&d, "sync-ring", NULL, 16, true, 1);
	mw_products_estimate(d.s, &e);
	assert_false(e.identified);
	for (int i = 0; i < 30; i++)
		native_step(&d);
	mw_products_estimate(d.s, &e);
	assert_false(e.identified);
	assert_true(isnan(e.value) && *e.reason);
	for (int i = 0; i < 4000; i++) /* a break loses products under way, not what was learnt */
		i % 100 ? native_step(&d) : mw_products_break(d.s);
	mw_products_estimate(d.s, &e);
	assert_true(e.identified && e.value == 14);
	close_drive(&d);
}

/* theory.md section 8: writers 1,2,1,3,2,3,1 see delays 0,1,1,3,2,1,3; t_mix 4 both ways. */
static void delays_give_their_quantile(void **state)
{
	static const uint64_t value[] = { 0, 1, 2, 3 }, count[] = { 100, 300, 100, 200 };
	struct mw_estimate e;
	(void)state;
	mw_delays_estimate(value, count, 4, &e);
	assert_true(e.identified && e.value == 4 && e.sup == 4 && e.n == 700);
	static const uint64_t constant[] = { 5 }, times[] = { 1000 };
	mw_delays_estimate(constant, times, 1, &e);
	assert_true(e.value == 6 && e.error == 0);
	mw_delays_estimate(constant, times, 0, &e);
	assert_false(e.identified);
	/* geometric: async-ps with random workers, n = 8: 11 */
	uint64_t v[200], c[200];
	for (int i = 0; i < 200; i++) {
		v[i] = (uint64_t)i;
		c[i] = (uint64_t)llround(1e6 * pow(7.0 / 8, i) / 8);
	}
	mw_delays_estimate(v, c, 200, &e);
	assert_true(e.value == 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_sequences_are_exact),
		cmocka_unit_test(random_sequences_are_close),
		cmocka_unit_test(long_times_are_refined),
		cmocka_unit_test(too_little_is_said),
		cmocka_unit_test(delays_give_their_quantile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
