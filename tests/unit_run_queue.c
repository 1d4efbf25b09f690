/* unit_run_queue.c: the simulator's event queue against a search through all events. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "run/event_queue.h"

enum way { SAME, UNIFORM, HEAVY, OFTEN_NONE, GROWING, WAYS };

/* How far ahead the next event of a worker is. */
static double way_ahead(enum way way, struct mw_rng *rng, uint64_t step)
{
	double u = mw_rng_uniform(rng);
	switch (way) {
	case SAME: return 0.125;
	case UNIFORM: return 0.0005 + 0.001 * u;
	case HEAVY: return 1e-3 * pow(u + 1e-12, -3);
	case OFTEN_NONE: return u < 0.7 ? 0 : u;
	default: return (double)step * u; /* the length of a day must follow */
	}
}

static void check_order(uint32_t workers, enum way way)
{
	struct mw_err err = { 0 };
	struct mw_event_queue q;
	struct mw_rng rng;
	double *time = calloc(workers, sizeof(*time));
	mw_rng_init(&rng, 7, workers * WAYS + way);
	assert_int_equal(mw_queue_init(&q, workers, &err), 0);
	for (uint32_t w = 0; w < workers; w++) {
		time[w] = way_ahead(way, &rng, 0);
		mw_queue_push(&q, (struct mw_sim_event){ .time = time[w], .worker = w, .finish = w % 3 }, 0);
	}
	for (uint64_t step = 0; step < 3000; step++) {
		struct mw_sim_event e = { 0 };
		uint32_t first = 0;
		for (uint32_t w = 1; w < workers; w++)
			first = time[w] < time[first] ? w : first;
		if (step % 7) /* without it too */
			mw_queue_look_ahead(&q);
		assert_true(mw_queue_pop(&q, &e));
		assert_int_equal(e.worker, first);
		assert_true(e.time == time[first]);
		assert_int_equal(e.finish, first % 3 != 0);
		if (step % 11 == 5 && workers > 2) { /* a worker that is parked has no event for a while */
			time[first] = INFINITY;
			continue;
		}
		for (uint32_t w = 0; w < workers; w++)
			if (w == first || (isinf(time[w]) && step % 11 == 9)) {
				time[w] = e.time + way_ahead(way, &rng, step);
				mw_queue_push(&q,
					(struct mw_sim_event){
						.time = time[w], .worker = w, .finish = w % 3 },
					e.time);
			}
	}
	mw_queue_fini(&q);
	free(time);
}

static void order(void **state)
{
	static const uint32_t workers[] = { 1, 2, 15, 16, 17, 100, 1000 };
	(void)state;
	for (size_t i = 0; i < sizeof(workers) / sizeof(*workers); i++)
		for (enum way way = 0; way < WAYS; way++)
			check_order(workers[i], way);
}

static void empties(void **state)
{
	struct mw_err err = { 0 };
	struct mw_event_queue q;
	struct mw_sim_event e;
	(void)state;
	assert_int_equal(mw_queue_init(&q, 3, &err), 0);
	assert_false(mw_queue_pop(&q, &e));
	for (uint32_t w = 0; w < 3; w++)
		mw_queue_push(&q, (struct mw_sim_event){ .time = 1e300 / (w + 1), .worker = w }, 0);
	for (uint32_t w = 3; w-- > 0;) {
		assert_true(mw_queue_pop(&q, &e));
		assert_int_equal(e.worker, w);
	}
	assert_false(mw_queue_pop(&q, &e));
	mw_queue_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(order), cmocka_unit_test(empties) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
