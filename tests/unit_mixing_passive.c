/*
 * unit_mixing_passive.c: noise in replicas that are mixed gives t_1 back (theory.md 4c), with and without curvature, and
 * what can't be known is said to be unknown.
 */
#include "mixing_util.h"

#include <math.h>

#include "base/rng.h"
#include "mixing/passive.h"

enum { COORDS = 32 };

struct noise {
	const char *protocol;
	uint32_t n, steps, stride;
	double curvature; /* alpha h: each step multiplies by 1 - this */
	double bias;      /* of every worker, constant */
	double drift;     /* noise grows by this factor a step */
};

static struct mw_passive *play(const struct noise *c, struct made *m)
{
	struct mw_err err = { 0 };
	struct mw_passive *s;
	struct mw_rng rng;
	*m = make(c->protocol, NULL, c->n, true);
	const struct mw_protocol *p = m->p;
	size_t cells = (size_t)p->rows * COORDS;
	double *x = calloc(2 * cells, sizeof(*x)), *bias = calloc(cells, sizeof(*bias)), scale = 1;
	float *view = calloc(cells, sizeof(*view));
	assert_true(x && bias && view);
	mw_rng_init(&rng, 3, c->n);
	for (size_t i = 0; i < cells; i++)
		bias[i] = c->bias * mw_rng_normal(&rng);
	assert_int_equal(mw_passive_new(p->rows, p->pi, COORDS, c->stride, 0, &s, &err), 0);
	for (uint32_t t = 0; t < c->steps + 300; t++) {
		bool round = p->clock == MW_CLOCK_ROUND;
		uint32_t w = round ? 0 : (uint32_t)mw_rng_below(&rng, p->workers);
		for (uint32_t k = 0; k < (round ? p->workers : 1); k++) {
			uint32_t from = p->view_row[w + k], to = p->push_row[w + k];
			for (uint32_t j = 0; j < COORDS; j++)
				x[to * COORDS + j] -= c->curvature * x[from * COORDS + j] +
						      scale * 0.1 * mw_rng_normal(&rng) +
						      bias[from * COORDS + j];
		}
		scale *= 1 + c->drift;
		mw_plan_apply(mw_protocol_plan(p, w, t, mw_rng_next(&rng)), 1, x, COORDS, x + cells);
		for (size_t i = 0; i < cells; i++)
			view[i] = (float)x[i];
		if (t >= 300 && t % c->stride == 0)
			mw_passive_add(s, view);
	}
	free(x);
	free(bias);
	free(view);
	return s;
}

/* protocol, n, steps, stride, and other members by name */
#define NOISE(p, n_, s_, h, ...) \
	((struct noise){ .protocol = p, .n = n_, .steps = s_, .stride = h, __VA_ARGS__ })

static struct mw_estimate measure(struct noise c)
{
	struct made m;
	struct mw_estimate e;
	struct mw_passive *s = play(&c, &m);
	mw_passive_estimate(s, &e);
	mw_passive_free(s);
	drop(&m);
	return e;
}

static void is_close(struct mw_estimate e, double want, const char *what)
{
	if (!e.identified || !(fabs(e.value - want) <= 2 * e.error + 0.05 * want) ||
		e.target != MW_TARGET_FIRST)
		fail_msg("%s: %g +- %g, not %g (%s)", what, e.value, e.error, want, e.reason);
}

static void noise_alone(void **state)
{
	(void)state;
	is_close(measure(NOISE("sync-ring", 8, 1000, 1)), 3.19, "ring 8");
	is_close(measure(NOISE("sync-ring", 16, 3000, 3)), 13.31, "ring 16");
	is_close(measure(NOISE("async-ring", 8, 6000, 6)), 18.6, "random edges, ring 8");
	is_close(measure(NOISE("async-ps", 8, 3000, 3)), 5.19, "async-ps 8");
}

static void curvature_is_divided_out(void **state)
{
	(void)state;
	is_close(measure(NOISE("sync-ring", 16, 3000, 3, .curvature = 0.02)), 13.31, "alpha h = 0.02");
	is_close(measure(NOISE("sync-ring", 16, 3000, 3, .curvature = 0.1)), 13.31, "alpha h = 0.1");
	is_close(measure(NOISE("sync-ring", 8, 1000, 1, .curvature = 0.02, .bias = 0.3)), 3.19,
		"with worker bias");
}

static void what_is_unknown_is_said(void **state)
{
	(void)state;
	struct mw_estimate e = measure(NOISE("sync-ring", 8, 50, 1));
	assert_false(e.identified);
	assert_non_null(strstr(e.reason, "too few"));
	e = measure(NOISE("sync-ring", 8, 1000, 1, .curvature = 0.02, .drift = 0.002));
	assert_false(e.identified);
	assert_non_null(strstr(e.reason, "stationary"));
}

/* theory.md 4c: S2F of rings of 8 and 16 is .511 and 1.472. */
static void disagreement_gives_s2f(void **state)
{
	static const double want[] = { 0.511, 1.472 };
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct made m;
		struct mw_passive *s = play(&NOISE("sync-ring", i ? 16 : 8, 1000, 1), &m);
		double got = mw_passive_s2f(s, m.p->workers);
		if (!(fabs(got / want[i] - 1) < 0.06))
			fail_msg("S2F %g, not %g", got, want[i]);
		mw_passive_free(s);
		drop(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_alone),
		cmocka_unit_test(curvature_is_divided_out),
		cmocka_unit_test(what_is_unknown_is_said),
		cmocka_unit_test(disagreement_gives_s2f),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
