/*
 * conform_sim_step.c: equation (1) of theory.md with gradients in it: X_{t+1} = W_t (X_t - alpha U_t), or W_t X_t - alpha
 * U_t with --mix-order before, where U_t has the gradient at a view that was read when the worker's step began. A plain
 * loop in double on a quadratic without noise is compared with the sim engine after every event, for every protocol of
 * the registry.
 */
#include "run_util.h"

#include <math.h>

#define TOLERANCE 2e-6
#define RATE      0.05

struct loop {
	const struct mw_run *run;
	uint32_t rows, dim;
	double *x, *scratch; /* rows x dim */
	double *view;        /* workers x dim: what each one's gradient is computed at */
	uint64_t *step, *mixes, *clock;
	bool *begun;
	uint32_t token;
};

static const char *current;

static void *zeros(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	assert_non_null(p);
	return p;
}

static void read_view(struct loop *l, uint32_t w)
{
	memcpy(l->view + (size_t)w * l->dim, l->x + (size_t)l->run->protocol->view_row[w] * l->dim,
		l->dim * sizeof(double));
}

static void loop_init(struct loop *l, const struct mw_run *run)
{
	uint32_t n = run->n_workers;
	*l = (struct loop){ .run = run, .rows = run->protocol->rows, .dim = (uint32_t)run->model->dim };
	l->x = zeros((size_t)l->rows * l->dim, sizeof(double)); /* the model starts at the origin */
	l->scratch = zeros((size_t)l->rows * l->dim, sizeof(double));
	l->view = zeros((size_t)n * l->dim, sizeof(double));
	l->step = zeros(n, sizeof(uint64_t));
	l->mixes = zeros(n, sizeof(uint64_t));
	l->clock = zeros(n, sizeof(uint64_t));
	l->begun = zeros(n, sizeof(bool));
	for (uint32_t w = 0; w < n; w++)
		l->begun[w] = true;
}

static void loop_fini(struct loop *l)
{
	free(l->x);
	free(l->scratch);
	free(l->view);
	free(l->step);
	free(l->mixes);
	free(l->clock);
	free(l->begun);
}

static void push_row(struct loop *l, uint32_t w, uint32_t row)
{
	const struct mw_dataset *d = l->run->train;
	double *x = l->x + (size_t)row * l->dim, *v = l->view + (size_t)w * l->dim;
	for (uint32_t i = 0; i < l->dim; i++)
		x[i] -= RATE * (double)l->run->protocol->push_weight * (double)d->curvature[i] *
			(v[i] - (double)d->optimum[i]);
}

static void push(struct loop *l, uint32_t w)
{
	const struct mw_protocol *p = l->run->protocol;
	push_row(l, w, p->push_row[w]);
	if (p->push2_row)
		push_row(l, w, p->push2_row[w]);
}

/* The k-th plan of a slot, on its block of coordinates. */
static void mix(struct loop *l, uint32_t slot, uint32_t worker)
{
	const struct mw_run *run = l->run;
	uint64_t k = l->mixes[worker]++, blocks = run->n_blocks, b = k % blocks;
	const struct mw_plan *plan = mw_protocol_plan(run->protocol, slot, k, 0);
	uint32_t from = (uint32_t)(l->dim * b / blocks), to = (uint32_t)(l->dim * (b + 1) / blocks),
		 n = to - from;
	double *part = zeros((size_t)l->rows * n, sizeof(double));
	for (uint32_t r = 0; r < l->rows; r++)
		memcpy(part + (size_t)r * n, l->x + (size_t)r * l->dim + from, n * sizeof(double));
	mw_plan_apply(plan, run->opt->slack, part, n, l->scratch);
	for (uint32_t r = 0; r < l->rows; r++)
		memcpy(l->x + (size_t)r * l->dim + from, part + (size_t)r * n, n * sizeof(double));
	free(part);
}

static bool due(const struct loop *l, uint32_t w)
{
	const struct mw_protocol *p = l->run->protocol;
	if (!p->n_slots || !p->slot[w].n || (l->step[w] + 1) % (uint64_t)l->run->knobs.mix_every)
		return false;
	return p->due == MW_DUE_ALWAYS || (p->due == MW_DUE_TOKEN && l->token == w % p->groups);
}

static void mix_and_pass(struct loop *l, uint32_t w)
{
	uint32_t groups = l->run->protocol->groups;
	mix(l, w, w);
	l->token = groups ? (l->token + 1) % groups : 0;
}

/* Begin the next step if the gate is open: SSP fetches a view that is too old. */
static void begin(struct loop *l, uint32_t w)
{
	const struct mw_run *run = l->run;
	uint64_t slowest = UINT64_MAX, s = (uint64_t)run->ssp_bound;
	for (uint32_t i = 0; i < run->n_workers; i++)
		slowest = l->step[i] < slowest ? l->step[i] : slowest;
	l->begun[w] = run->ssp_bound < 0 || slowest + s >= l->step[w];
	if (!l->begun[w])
		return;
	if (run->protocol->due == MW_DUE_SSP && l->clock[w] + s < l->step[w]) {
		l->clock[w] = slowest;
		mix(l, w, w);
	}
	read_view(l, w);
}

static void event(struct loop *l, uint32_t w)
{
	bool before = l->run->opt->mix_order == MW_MIX_BEFORE;
	if (!l->begun[w])
		begin(l, w);
	bool mixes = due(l, w);
	if (mixes && before)
		mix_and_pass(l, w);
	push(l, w);
	if (mixes && !before)
		mix_and_pass(l, w);
	l->step[w]++;
	begin(l, w);
}

static void round_of_all(struct loop *l)
{
	bool before = l->run->opt->mix_order == MW_MIX_BEFORE;
	bool mixes = (l->step[0] + 1) % (uint64_t)l->run->knobs.mix_every == 0;
	for (uint32_t w = 0; w < l->run->n_workers; w++)
		read_view(l, w);
	if (mixes && before)
		mix(l, 0, 0);
	for (uint32_t w = 0; w < l->run->n_workers; w++)
		push(l, w);
	if (mixes && !before)
		mix(l, 0, 0);
	l->step[0]++;
}

static void compare(const struct loop *l, uint32_t events)
{
	for (uint32_t r = 0; r < l->rows; r++)
		for (uint32_t i = 0; i < l->dim; i++) {
			double got = (double)l->run->replicas.row[r].x[i],
			       want = l->x[(size_t)r * l->dim + i];
			if (!(fabs(got - want) < TOLERANCE * (1 + fabs(want))))
				fail_msg("%s: after %u events x[%u][%u] = %.9g, the plain loop gives %.9g",
					current, events, r, i, got, want);
		}
}

static bool has_option(const struct mw_protocol_ops *p, const char *name)
{
	for (const struct mw_option *o = p->options; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

static void check(const struct mw_protocol_ops *p, uint32_t workers, uint32_t events, const char *knobs)
{
	char text[600];
	struct test_run t;
	struct loop l;
	bool period = protocol_has_period(p) && !strstr(knobs, "mix-every");
	snprintf(text, sizeof(text),
		"engine=sim rate=%g epochs=1000 data=synth:quadratic,dim=21,rows=100,cond=5 protocol=%s "
		"workers=%u %s%s%s%s",
		RATE, p->name, workers, knobs, period ? " mix-every=2" : "",
		has_option(p, "pair-order") ? " pair-order=cyclic" : "",
		has_option(p, "groups") && workers > 1 ? " groups=2" : "");
	current = text;
	run_open(&t, "%s", text);
	loop_init(&l, t.run);
	for (uint32_t i = 0; i < events; i++) {
		uint64_t turn = t.run->turn;
		run_until(&t, i + 1);
		if (t.run->protocol->clock == MW_CLOCK_ROUND)
			round_of_all(&l);
		else
			event(&l, mw_turn_of(t.run, turn + t.run->sim_skipped));
		compare(&l, i + 1);
	}
	loop_fini(&l);
	run_close(&t);
}

/* Every protocol whose replicas are rows, with and without plans. */
static void check_all(uint32_t workers, const char *activation, const char *knobs)
{
	const struct mw_protocol_ops *p;
	char text[300];
	snprintf(text, sizeof(text), "activation=%s %s", activation, knobs);
	FOR_EACH_PROTOCOL(p)
	{
		bool alone = !strcmp(p->name, "sequential");
		if (!protocol_takes_access(p) || (*knobs && !protocol_has_plans(p)) ||
			!protocol_takes_knobs(p, knobs))
			continue;
		check(p, alone ? 1 : workers, 40, text);
	}
}

static void plain(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 5; n++) {
		check_all(n, "random", "");
		check_all(n, "rr", "");
	}
}

static void knobs(void **state)
{
	static const char *const kinds[] = { "mix-order=before", "mix-form=separate", "mix-form=convex",
		"mix-precision=kahan", "mix-precision=double", "mix-precision=double mix-order=before",
		"slack=0.3", "slack=0.3 mix-order=before", "mix-every=3", "mix-every=3 mix-order=before",
		"mix-fraction=0.34", "mix-fraction=0.34 mix-order=before",
		"mix-fraction=0.34 slack=0.3 mix-every=2 mix-form=separate",
		"mix-fraction=0.1 mix-precision=double slack=0.7" };
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		check_all(3, "random", kinds[i]);
		check_all(4, "rr", kinds[i]);
	}
}

static void gates(void **state)
{
	char text[100];
	(void)state;
	for (int s = 0; s <= 3; s++) {
		const struct mw_protocol_ops *p;
		snprintf(text, sizeof(text), "activation=random gate=ssp:%d", s);
		FOR_EACH_PROTOCOL(p)
		if (protocol_takes_access(p) && protocol_clock(p) == MW_CLOCK_EVENT &&
			strcmp(p->name, "sequential"))
			check(p, 3, 60, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(knobs),
		cmocka_unit_test(gates),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
