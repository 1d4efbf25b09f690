/* trace.c: see trace.h. */
#include "mixing/trace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum { OPEN = 12, PILOTS = 8 };
#define REACH 3 /* ages followed, in quenched times */

/* One product under way. */
struct start {
	double *e; /* rows x cols */
	uint64_t id, age;
	uint32_t next; /* grid point that comes next */
	bool open;
};

struct mw_products {
	const struct mw_protocol *p;
	struct mw_uses use;
	struct mw_tally *tally;
	struct mw_rng rng;
	uint32_t cols;
	double *memory, *scratch;
	struct start pilot, start[OPEN];
	uint64_t pilots, pilot_steps; /* finished, and the steps they took */
	uint64_t ids, wait, gap;      /* steps until the next start opens; their mean distance */
	bool measuring;
	uint64_t follow_first, follow_last; /* ages; 0: starts are opened here, not from outside */
};

/* --- which rows count ---------------------------------------------------------------------------------------------- */

static uint32_t distinct(const uint32_t *row, uint32_t n, uint32_t *out)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool seen = false;
		for (uint32_t j = 0; j < k && !seen; j++)
			seen = out[j] == row[i];
		if (!seen)
			out[k++] = row[i];
	}
	return k;
}

/* Is every row viewed and pushed to? */
static bool all_rows(const struct mw_uses *u, const struct mw_protocol *p)
{
	return u->n_view == p->rows && u->n_push == p->rows;
}

int mw_uses_init(struct mw_uses *u, const struct mw_protocol *p, struct mw_err *err)
{
	*u = (struct mw_uses){ 0 };
	u->view = mw_alloc_array(2 * ((size_t)p->workers + p->rows), sizeof(*u->view), "rows in use", err);
	if (!u->view)
		return err->code;
	u->push = u->view + p->workers + p->rows;
	u->n_view = distinct(p->view_row, p->workers, u->view);
	u->n_push = distinct(p->push_row, p->workers, u->push);
	u->kind = p->signed_plan ? MW_TALLY_USE : all_rows(u, p) ? MW_TALLY_GRAM : MW_TALLY_SQUARE;
	for (uint32_t i = 0; u->kind == MW_TALLY_GRAM && i < p->rows; i++)
		u->view[i] = u->push[i] = i;
	return 0;
}

void mw_uses_fini(struct mw_uses *u)
{
	mw_free(u->view);
	*u = (struct mw_uses){ 0 };
}

/* --- products ------------------------------------------------------------------------------------------------------ */

static void open_start(struct mw_products *s, struct start *x)
{
	for (uint32_t i = 0; i < s->p->rows; i++)
		for (uint32_t c = 0; c < s->cols; c++) {
			uint32_t row = s->use.push[c];
			x->e[(size_t)i * s->cols + c] = (i == row) - s->p->pi[row];
		}
	x->age = 0;
	x->next = 0;
	x->open = true;
}

static int allocate(struct mw_products *s, struct mw_err *err)
{
	size_t cells = (size_t)s->p->rows * s->cols;
	s->memory = mw_alloc_array((OPEN + 2) * cells, sizeof(double), "mixing products", err);
	if (!s->memory)
		return err->code;
	for (uint32_t i = 0; i < OPEN; i++)
		s->start[i].e = s->memory + i * cells;
	s->pilot.e = s->memory + OPEN * cells;
	s->scratch = s->pilot.e + cells;
	return 0;
}

int mw_products_new(
	const struct mw_protocol *p, bool fixed, uint64_t seed, struct mw_products **out, struct mw_err *err)
{
	*out = NULL;
	if (p->rows > MW_PRODUCTS_ROWS_MAX)
		MW_FAIL(err, USAGE, "products of %u rows are not followed (at most %d are)", p->rows,
			MW_PRODUCTS_ROWS_MAX);
	struct mw_products *s = mw_alloc(sizeof(*s), "mixing products", err);
	*out = s;
	if (!s)
		return err->code;
	s->p = p;
	mw_rng_init(&s->rng, seed, 0x7a5);
	MW_TRY(mw_uses_init(&s->use, p, err));
	s->cols = s->use.n_push;
	struct mw_tally_config c = { .kind = s->use.kind,
		.rows = p->rows,
		.cols = s->cols,
		.pi = p->pi,
		.n_view = s->use.n_view,
		.view = s->use.view,
		.fixed = fixed };
	MW_TRY(mw_tally_new(&c, &s->tally, err));
	MW_TRY(allocate(s, err));
	open_start(s, &s->pilot);
	return 0;
}

void mw_products_free(struct mw_products *s)
{
	if (!s)
		return;
	mw_uses_fini(&s->use);
	mw_tally_free(s->tally);
	mw_free(s->memory);
	mw_free(s);
}

void mw_products_mix(struct mw_products *s, const struct mw_plan *plan, double gamma)
{
	if (!plan)
		return;
	if (s->pilot.open)
		mw_plan_apply(plan, gamma, s->pilot.e, s->cols, s->scratch);
	for (uint32_t i = 0; i < OPEN; i++)
		if (s->start[i].open)
			mw_plan_apply(plan, gamma, s->start[i].e, s->cols, s->scratch);
}

/* Look at long products now and then only: one look costs more than one step. */
static bool worth_a_look(uint64_t age)
{
	return age < 64 || age % (age / 32) == 0;
}

static void step_pilot(struct mw_products *s)
{
	struct start *x = &s->pilot;
	x->age++;
	if (!worth_a_look(x->age) || !mw_tally_within(s->tally, x->e))
		return;
	s->pilots++;
	s->pilot_steps += x->age;
	open_start(s, x);
	if (s->measuring || s->pilots < PILOTS)
		return;
	double quenched = (double)s->pilot_steps / (double)s->pilots;
	mw_tally_grid(s->tally, 1, (uint64_t)ceil(REACH * quenched));
	s->gap = (uint64_t)ceil(quenched / 2);
	s->measuring = true;
}

static void step_start(struct mw_products *s, struct start *x)
{
	const uint64_t *age;
	uint32_t n = mw_tally_ages(s->tally, &age);
	x->age++;
	if (x->age < age[x->next])
		return;
	mw_tally_add(s->tally, x->id, x->next, x->e);
	x->open = ++x->next < n;
}

void mw_products_follow(struct mw_products *s, uint64_t first, uint64_t last)
{
	s->pilot.open = false;
	if (s->follow_first == first && s->follow_last == last)
		return;
	s->follow_first = first;
	s->follow_last = last;
	s->measuring = true;
	mw_tally_grid(s->tally, first, last);
	mw_products_break(s);
}

void mw_products_start(struct mw_products *s)
{
	for (uint32_t i = 0; i < OPEN; i++)
		if (!s->start[i].open) {
			s->start[i].id = s->ids++;
			open_start(s, &s->start[i]);
			return;
		}
}

static void step_following(struct mw_products *s)
{
	for (uint32_t i = 0; i < OPEN; i++)
		if (s->start[i].open)
			step_start(s, &s->start[i]);
}

void mw_products_step(struct mw_products *s)
{
	if (s->follow_last) {
		step_following(s);
		return;
	}
	step_pilot(s);
	if (!s->measuring)
		return;
	struct start *unused = NULL;
	bool refined = false;
	for (uint32_t i = 0; i < OPEN; i++) {
		if (s->start[i].open) {
			step_start(s, &s->start[i]);
			refined |= !s->start[i].open && mw_tally_adjust(s->tally);
		}
		if (!s->start[i].open)
			unused = &s->start[i];
	}
	for (uint32_t i = 0; refined && i < OPEN; i++)
		s->start[i].open = false;
	if (s->wait) {
		s->wait--;
	} else if (unused) {
		unused->id = s->ids++;
		open_start(s, unused);
		/* random, so that no start time of a periodic sequence is left out */
		s->wait = mw_rng_below(&s->rng, 2 * s->gap);
	}
}

void mw_products_break(struct mw_products *s)
{
	for (uint32_t i = 0; i < OPEN; i++)
		s->start[i].open = false;
	if (!s->follow_last)
		open_start(s, &s->pilot);
}

void mw_products_restart(struct mw_products *s)
{
	mw_products_break(s);
	s->pilots = s->pilot_steps = s->wait = 0;
	s->measuring = false;
}

void mw_products_estimate(struct mw_products *s, struct mw_estimate *out)
{
	*out = mw_estimate_none(MW_TARGET_ANN, s->pilots);
	if (s->measuring)
		mw_tally_estimate(s->tally, out);
	out->quenched = s->pilots ? (double)s->pilot_steps / (double)s->pilots : NAN;
	if (s->measuring)
		return;
	snprintf(out->reason, sizeof(out->reason),
		s->pilots ? "the run mixed %llu times only: run longer"
			  : "the run has not mixed once in %llu steps",
		(unsigned long long)(s->pilots ? s->pilots : s->pilot.age));
}

/* --- delays -------------------------------------------------------------------------------------------------------- */

/* The smallest k with P(tau >= k) <= tail. */
static double quantile(const uint64_t *value, const uint64_t *count, uint32_t n, double total, double tail)
{
	double above = 0;
	for (uint32_t i = n; i-- > 0;) {
		above += (double)count[i];
		if (above > tail * total)
			return (double)value[i] + 1;
	}
	return 1;
}

void mw_delays_estimate(const uint64_t *value, const uint64_t *count, uint32_t n, struct mw_estimate *out)
{
	double total = 0;
	for (uint32_t i = 0; i < n; i++)
		total += (double)count[i];
	*out = mw_estimate_none(MW_TARGET_ANN, (uint64_t)total);
	if (total < 100) {
		snprintf(out->reason, sizeof(out->reason), "%.0f delays were seen, 100 are needed", total);
		return;
	}
	double se = sqrt(0.25 * 0.75 / total); /* of the share, by which the quantile is moved both ways */
	out->value = out->pooled = out->tv = quantile(value, count, n, total, 0.25);
	out->error =
		(quantile(value, count, n, total, 0.25 - se) - quantile(value, count, n, total, 0.25 + se)) /
		2;
	out->sup = quantile(value, count, n, total, 0);
	out->identified = true;
}
