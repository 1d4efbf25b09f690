/*
 * conform_sim_matrix.c: theory and run can't differ. With rate 0 a run is exchanges alone, so that after every event of
 * the sim engine its replicas X_t must be W_{t-1} ... W_0 X_0 with the matrices of the plans (theory.md 1), for every
 * protocol of the registry and every mixing knob. Which plan and which block of coordinates a random choice took is read
 * from the run: it must be one of the candidates, and all candidates must come up.
 */
#include "run_util.h"

#include <math.h>

#include "base/rng.h"

#define TOLERANCE 1e-6

struct oracle {
	const struct mw_run *run;
	uint32_t rows, dim;
	double *x0;       /* rows x dim */
	double *phi;      /* a product for each block: blocks x rows x rows */
	double *w, *next; /* rows x rows */
	uint64_t *step, *mixes, *ssp_clock;
	bool *begun;
	uint32_t token;
	uint8_t *plan_taken; /* [slot][choice] and [block]: has it come up? */
	uint8_t *block_taken;
	uint32_t choices_max, n_mixes;
};

static const char *current; /* options of the run, for messages */

/* --- the oracle ---------------------------------------------------------------------------------------------------- */

static void *zeros(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	assert_non_null(p);
	return p;
}

static void oracle_init(struct oracle *o, struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	uint32_t n = p->rows;
	*o = (struct oracle){ .run = run, .rows = n, .dim = (uint32_t)run->model->dim };
	for (uint32_t s = 0; s < p->n_slots; s++)
		o->choices_max = p->slot[s].n > o->choices_max ? p->slot[s].n : o->choices_max;
	o->x0 = zeros((size_t)n * o->dim, sizeof(double));
	o->phi = zeros((size_t)run->n_blocks * n * n, sizeof(double));
	o->w = zeros((size_t)n * n, sizeof(double));
	o->next = zeros((size_t)n * n, sizeof(double));
	o->step = zeros(run->n_workers, sizeof(uint64_t));
	o->mixes = zeros(run->n_workers, sizeof(uint64_t));
	o->ssp_clock = zeros(run->n_workers, sizeof(uint64_t));
	o->begun = zeros(run->n_workers, sizeof(bool));
	o->plan_taken = zeros((size_t)p->n_slots * o->choices_max, 1);
	o->block_taken = zeros(run->n_blocks, 1);
	for (uint32_t w = 0; w < run->n_workers; w++)
		o->begun[w] = true;
}

static void oracle_fini(struct oracle *o)
{
	free(o->x0);
	free(o->phi);
	free(o->w);
	free(o->next);
	free(o->step);
	free(o->mixes);
	free(o->ssp_clock);
	free(o->begun);
	free(o->plan_taken);
	free(o->block_taken);
}

/*
 * Distinct random replicas, also in rows that protocols start as copies: the product holds for any X_0. Done anew every
 * few events, before the replicas are so equal that no plan can be told from another.
 */
#define REFILL 8
static void fill(struct oracle *o, struct mw_run *run, uint64_t seed)
{
	struct mw_rng rng;
	mw_rng_init(&rng, 77, seed);
	memset(o->phi, 0, (size_t)run->n_blocks * o->rows * o->rows * sizeof(double));
	for (uint32_t i = 0; i < run->n_blocks * o->rows; i++)
		o->phi[(size_t)i * o->rows + i % o->rows] = 1;
	for (uint32_t r = 0; r < o->rows; r++)
		for (uint32_t j = 0; j < o->dim; j++) {
			run->replicas.row[r].x[j] = (float)(mw_rng_uniform(&rng) - 0.5);
			if (run->replicas.row[r].comp)
				run->replicas.row[r].comp[j] = 0;
		}
	/* read again: cold columns are one memory, and all rows have what the last one was given */
	for (uint32_t r = 0; r < o->rows; r++)
		for (uint32_t j = 0; j < o->dim; j++)
			o->x0[(size_t)r * o->dim + j] = (double)run->replicas.row[r].x[j];
}

static void block_range(const struct oracle *o, uint32_t b, uint32_t *from, uint32_t *to)
{
	*from = (uint32_t)((uint64_t)o->dim * b / o->run->n_blocks);
	*to = (uint32_t)((uint64_t)o->dim * (b + 1) / o->run->n_blocks);
}

/* next := W phi_b, W the plan's matrix (NULL: I). */
static void product(struct oracle *o, const struct mw_plan *plan, uint32_t b)
{
	uint32_t n = o->rows;
	const double *phi = o->phi + (size_t)b * n * n;
	if (!plan) {
		memcpy(o->next, phi, (size_t)n * n * sizeof(double));
		return;
	}
	mw_plan_matrix(plan, o->run->opt->slack, n, o->w);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++) {
			double s = 0;
			for (uint32_t k = 0; k < n; k++)
				s += o->w[(size_t)i * n + k] * phi[(size_t)k * n + j];
			o->next[(size_t)i * n + j] = s;
		}
}

/* The largest distance of the run's replicas from M X_0 on block b. */
static double distance(const struct oracle *o, const double *m, uint32_t b)
{
	uint32_t n = o->rows, from, to;
	double worst = 0;
	block_range(o, b, &from, &to);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = from; j < to; j++) {
			bool cold = j >= o->run->replicas.cold_from && j < o->run->replicas.cold_to;
			double x = cold ? o->x0[(size_t)i * o->dim + j] : 0;
			for (uint32_t k = 0; k < n && !cold; k++)
				x += m[(size_t)i * n + k] * o->x0[(size_t)k * o->dim + j];
			worst = fmax(worst, fabs(x - (double)o->run->replicas.row[i].x[j]));
		}
	return worst;
}

static void apply(struct oracle *o, uint32_t slot, uint32_t choice, uint32_t block)
{
	size_t nn = (size_t)o->rows * o->rows;
	product(o, o->run->protocol->slot[slot].plan[choice], block);
	memcpy(o->phi + block * nn, o->next, nn * sizeof(double));
	o->plan_taken[slot * o->choices_max + choice] = 1;
	o->block_taken[block] = 1;
}

/* Is what the run did "this plan on this block, nothing elsewhere"? */
static bool explains(struct oracle *o, const struct mw_plan *plan, uint32_t block)
{
	for (uint32_t b = 0; b < o->run->n_blocks; b++) {
		product(o, b == block ? plan : NULL, b);
		if (distance(o, o->next, b) > TOLERANCE)
			return false;
	}
	return true;
}

/* The slot's next mix has happened: which of its plans, on which block? Without a choice, X_t is compared later. */
static void mixed(struct oracle *o, uint32_t slot, uint32_t worker)
{
	const struct mw_protocol *p = o->run->protocol;
	const struct mw_plan_list *list = &p->slot[slot];
	uint64_t k = o->mixes[worker]++;
	bool any_plan = p->pick == MW_PICK_RANDOM, any_block = o->run->opt->mix_blocks == MW_BLOCKS_RANDOM;
	uint32_t c0 = any_plan ? 0 : (uint32_t)(k % list->n), c1 = any_plan ? list->n : c0 + 1;
	uint32_t b0 = any_block ? 0 : (uint32_t)(k % o->run->n_blocks),
		 b1 = any_block ? o->run->n_blocks : b0 + 1;
	o->n_mixes++;
	if (!any_plan && !any_block) {
		apply(o, slot, c0, b0);
		return;
	}
	for (uint32_t c = c0; c < c1; c++)
		for (uint32_t b = b0; b < b1; b++)
			if (explains(o, list->plan[c], b)) {
				apply(o, slot, c, b);
				return;
			}
	fail_msg("%s: mix %llu of worker %u is none of its plans", current, (unsigned long long)k, worker);
}

/* --- events, in the order in which a step does them ------------------------------------------------------------------ */

static bool due(const struct oracle *o, uint32_t w)
{
	const struct mw_protocol *p = o->run->protocol;
	uint64_t every = (uint64_t)o->run->knobs.mix_every;
	if (!p->n_slots || !p->slot[w].n || (o->step[w] + 1) % every)
		return false;
	return p->due == MW_DUE_ALWAYS || (p->due == MW_DUE_TOKEN && o->token == w % p->groups);
}

static uint64_t slowest(const struct oracle *o)
{
	uint64_t min = UINT64_MAX;
	for (uint32_t w = 0; w < o->run->n_workers; w++)
		min = o->step[w] < min ? o->step[w] : min;
	return min;
}

/* SSP: a fetch before the next step, if the view at hand is too old for it. Returns whether the gate is open. */
static bool begin(struct oracle *o, uint32_t w)
{
	const struct mw_run *run = o->run;
	uint64_t s = (uint64_t)run->ssp_bound;
	if (run->ssp_bound < 0)
		return true;
	if (slowest(o) + s < o->step[w])
		return false;
	if (run->protocol->due == MW_DUE_SSP && o->ssp_clock[w] + s < o->step[w]) {
		o->ssp_clock[w] = slowest(o);
		mixed(o, w, w);
	}
	return true;
}

/* One event of worker w: (begin, if a gate held it back,) push, mix, the next begin. */
static void event(struct oracle *o, uint32_t w)
{
	if (!o->begun[w])
		assert_true(begin(o, w));
	if (due(o, w)) {
		mixed(o, w, w);
		o->token = (o->token + 1) % (o->run->protocol->groups ? o->run->protocol->groups : 1);
	}
	o->step[w]++;
	o->begun[w] = begin(o, w);
}

static void round_event(struct oracle *o)
{
	uint64_t every = (uint64_t)o->run->knobs.mix_every;
	if ((o->step[0] + 1) % every == 0)
		mixed(o, 0, 0);
	o->step[0]++;
}

static void unchanged_elsewhere(struct oracle *o)
{
	for (uint32_t b = 0; b < o->run->n_blocks; b++) {
		double d = distance(o, o->phi + (size_t)b * o->rows * o->rows, b);
		if (d > TOLERANCE)
			fail_msg("%s: after step %llu of worker 0, X_t is off by %g on block %u", current,
				(unsigned long long)o->step[0], d, b);
	}
}

static void drive(struct oracle *o, struct test_run *t, uint32_t events)
{
	for (uint32_t i = 0; i < events; i++) {
		struct mw_run *run = t->run;
		uint64_t turn = run->turn;
		if (i % REFILL == 0)
			fill(o, run, i);
		run_until(t, i + 1);
		if (run->protocol->clock == MW_CLOCK_ROUND)
			round_event(o);
		else
			event(o, mw_turn_of(run, turn + run->sim_skipped));
		unchanged_elsewhere(o);
	}
}

/* --- runs ---------------------------------------------------------------------------------------------------------- */

static bool everything_came_up(const struct oracle *o)
{
	const struct mw_protocol *p = o->run->protocol;
	for (uint32_t s = 0; s < p->n_slots; s++)
		for (uint32_t c = 0; c < p->slot[s].n; c++)
			if (!o->plan_taken[s * o->choices_max + c])
				return false;
	for (uint32_t b = 0; b < o->run->n_blocks; b++)
		if (!o->block_taken[b])
			return false;
	return true;
}

/* SSP may come along without a fetch for a while. */
static bool has_plan(const struct mw_protocol *p)
{
	for (uint32_t s = 0; s < p->n_slots; s++)
		if (p->slot[s].n && p->due != MW_DUE_SSP)
			return true;
	return false;
}

static void check_run(uint32_t events, bool all, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void check_run(uint32_t events, bool all, const char *format, ...)
{
	char text[1000];
	struct test_run t;
	struct oracle o;
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	current = text;
	run_prepare(&t, "engine=sim rate=0 epochs=1000 data=synth:quadratic,dim=21,rows=100 %s", text);
	assert_true(t.run->protocol->clock == MW_CLOCK_ROUND || t.run->activation != MW_ACT_FREE);
	oracle_init(&o, t.run);
	assert_int_equal(t.run->replicas.cold_to > t.run->replicas.cold_from, strstr(text, "hot=") != NULL);
	run_start(&t);
	drive(&o, &t, events);
	if (has_plan(t.run->protocol) && !o.n_mixes)
		fail_msg("%s: nothing was mixed in %u events", text, events);
	if (all && !everything_came_up(&o))
		fail_msg("%s: some plan or block never came up in %u events", text, events);
	oracle_fini(&o);
	run_close(&t);
}

static bool has_option(const struct mw_protocol_ops *p, const char *name)
{
	for (const struct mw_option *o = p->options; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

/* All protocols whose replicas are rows; those with a period of their own get a short one, those with groups two. */
static void check_protocols(uint32_t workers, uint32_t events, const char *knobs)
{
	const struct mw_protocol_ops *p;
	FOR_EACH_PROTOCOL(p)
	{
		if (!protocol_takes_access(p) || !protocol_has_plans(p) || !protocol_takes_knobs(p, knobs))
			continue;
		bool period = protocol_has_period(p) && !strstr(knobs, "mix-every");
		check_run(events, false, "protocol=%s workers=%u %s %s%s%s", p->name, workers, knobs,
			strstr(knobs, "activation") ? "" : "activation=random", period ? " mix-every=2" : "",
			has_option(p, "groups") && workers > 1 ? " groups=2" : "");
	}
}

static void plain(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 5; n++) {
		check_protocols(n, 25, "");
		check_protocols(n, 25, "activation=rr");
	}
	check_protocols(8, 40, "");
}

static void nothing_to_mix(void **state)
{
	const struct mw_protocol_ops *p;
	(void)state;
	FOR_EACH_PROTOCOL(p)
	if (protocol_takes_access(p) && !protocol_has_plans(p))
		check_run(10, false, "protocol=%s workers=1 activation=rr", p->name);
	check_run(10, false, "protocol=hogwild workers=3 activation=random");
}

static void frequency(void **state)
{
	(void)state;
	check_protocols(3, 30, "mix-every=3");
	check_protocols(4, 60, "mix-every=4 activation=rr");
}

static void slack(void **state)
{
	(void)state;
	check_protocols(3, 24, "slack=0.5");
	check_protocols(4, 24, "slack=0.1 activation=rr");
	check_protocols(4, 24, "slack=1e-3");
}

static void fraction(void **state)
{
	(void)state;
	check_protocols(3, 24, "mix-fraction=0.25");
	check_protocols(4, 24, "mix-fraction=0.34 mix-blocks=random");
	check_protocols(
		2, 24, "mix-fraction=0.05 mix-blocks=random activation=rr"); /* about a coordinate each */
	check_run(60, true, "protocol=sync-ring workers=3 mix-fraction=0.2 mix-blocks=random");
	check_run(60, true, "protocol=sync-ring workers=3 mix-fraction=0.2");
}

static void forms(void **state)
{
	static const char *const kinds[] = { "mix-form=separate", "mix-form=convex", "mix-order=before",
		"mix-precision=kahan", "mix-precision=double",
		"mix-precision=kahan mix-form=separate slack=0.3",
		"mix-precision=double mix-order=before slack=0.3 mix-fraction=0.5",
		"mix-form=convex slack=0.3",
		"mix-every=2 slack=0.7 mix-fraction=0.34 mix-blocks=random mix-order=before" };
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		check_protocols(3, 20, kinds[i]);
}

static void graphs(void **state)
{
	static const char *const specs[] = { "ring", "torus", "hypercube", "complete", "star", "exponential",
		"onepeer-exp", "onepeer-cube", "regular:3,seed=5" };
	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		check_run(12, true, "protocol=sync-gossip workers=8 graph=%s", specs[i]);
		check_run(30, false, "protocol=async-gossip workers=8 graph=%s activation=random", specs[i]);
		check_run(30, false, "protocol=async-gossip workers=8 graph=%s activation=rr", specs[i]);
	}
	/* every edge is chosen by both of its ends */
	check_run(200, true, "protocol=async-gossip workers=4 graph=complete activation=random");
	check_run(40, true, "protocol=async-gossip workers=4 graph=complete activation=rr");
	check_run(60, true, "protocol=async-ring workers=4 activation=random pair-order=cyclic");
}

static void groups(void **state)
{
	(void)state;
	check_run(30, true, "protocol=numa workers=5 groups=2 mix-every=2 activation=rr");
	check_run(30, true, "protocol=numa workers=6 groups=3 mix-every=1 activation=random slack=0.4");
	check_run(30, true, "protocol=token-ring workers=5 groups=2 mix-every=1 activation=rr");
	check_run(60, true, "protocol=token-ring workers=6 groups=3 mix-every=2 activation=random");
}

/* cached --hot: on the hot columns the plans' product, on the cold ones nothing. */
static void hot(void **state)
{
	static const char *const knobs[] = { "", "slack=0.4", "mix-precision=kahan",
		"mix-precision=double slack=0.3", "mix-order=before", "mix-form=separate" };
	(void)state;
	for (size_t i = 0; i < sizeof(knobs) / sizeof(knobs[0]); i++)
		check_run(24, true,
			"data=synth:sparse,rows=90,features=4000,nnz=9 protocol=cached hot=900 workers=3 "
			"mix-every=2 "
			"activation=%s %s",
			i % 2 ? "rr" : "random", knobs[i]);
}

/* Gates change the order of events: workers ahead wait, their turn passes. */
static void gates(void **state)
{
	(void)state;
	for (int s = 0; s <= 3; s++) {
		check_run(60, true, "protocol=ssp ssp-bound=%d workers=3 activation=random", s);
		check_run(60, false, "protocol=async-ps gate=ssp:%d workers=4 activation=random", s);
		check_run(60, false, "protocol=async-ring gate=ssp:%d workers=4 activation=random", s);
	}
	check_run(60, false, "protocol=cached gate=barrier workers=3 mix-every=2 activation=random");
}

/* --activation free: with fixed durations the order of events is known: by (time, worker). */
struct finish {
	double time;
	uint32_t worker;
};

static int earlier(const void *pa, const void *pb)
{
	const struct finish *a = pa, *b = pb;
	return a->time != b->time ? (a->time < b->time ? -1 : 1)
				  : (a->worker > b->worker) - (a->worker < b->worker);
}

static void check_free(const struct mw_protocol_ops *p)
{
	enum { WORKERS = 4, STEPS = 4 };
	static const double duration[WORKERS] = { 1, 1.375, 0.8125, 2.25 };
	struct finish order[WORKERS * STEPS];
	struct test_run t;
	struct oracle o;
	current = p->name;
	run_prepare(&t,
		"engine=sim rate=0 epochs=1000 data=synth:quadratic,dim=21,rows=100 protocol=%s workers=4 "
		"mix-every=1 "
		"compute-time=worker:1/1.375/0.8125/2.25 slack=0.5%s%s",
		p->name, has_option(p, "pair-order") ? " pair-order=cyclic" : "",
		has_option(p, "groups") ? " groups=2" : "");
	oracle_init(&o, t.run);
	fill(&o, t.run, 0);
	run_start(&t);
	for (uint32_t i = 0; i < WORKERS * STEPS; i++)
		order[i] = (struct finish){ (i / WORKERS + 1) * duration[i % WORKERS], i % WORKERS };
	qsort(order, WORKERS * STEPS, sizeof(*order), earlier);
	run_until(&t, STEPS);
	for (uint32_t i = 0; i < WORKERS * STEPS; i++)
		event(&o, order[i].worker);
	unchanged_elsewhere(&o);
	oracle_fini(&o);
	run_close(&t);
}

static void free_running(void **state)
{
	const struct mw_protocol_ops *p;
	(void)state;
	FOR_EACH_PROTOCOL(p)
	if (protocol_has_plans(p) && protocol_clock(p) == MW_CLOCK_EVENT && !has_option(p, "ssp-bound"))
		check_free(p);
}

/* More coordinates than the executor's block, blocks that cut it anywhere. */
static void long_rows(void **state)
{
	(void)state;
	const struct mw_protocol_ops *p;
	FOR_EACH_PROTOCOL(p)
	if (protocol_takes_access(p) && protocol_has_plans(p))
		check_run(24, false,
			"protocol=%s workers=3 activation=random%s mix-fraction=0.34 "
			"data=synth:quadratic,dim=1000,rows=10",
			p->name, protocol_takes_knobs(p, "mix-every") ? " mix-every=1" : "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(nothing_to_mix),
		cmocka_unit_test(frequency),
		cmocka_unit_test(slack),
		cmocka_unit_test(fraction),
		cmocka_unit_test(forms),
		cmocka_unit_test(graphs),
		cmocka_unit_test(groups),
		cmocka_unit_test(hot),
		cmocka_unit_test(gates),
		cmocka_unit_test(free_running),
		cmocka_unit_test(long_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
