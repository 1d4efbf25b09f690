/* periodic.c: the mixing time of a deterministic sequence of plans: row operations from every start (theory.md 2.3 b). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"

#define SUMS_WORK   1e9  /* S1 and S2 need d at every k from every start: only while that is this cheap */
#define RADIUS_ROWS 300u /* the spectral radius of a period's product is computed up to this size */

/* E = Phi - 1 pi^T on all columns, or on the push rows' columns in the use form; W E = W Phi - 1 pi^T. */
struct product {
	struct mix_law *law;
	struct mw_mixing_result *r;
	struct mix_space space;
	uint32_t cols;
	double *e, *saved, *scratch;
	double eval_cost;
};

static uint32_t most_rows(const struct mix_law *law)
{
	uint32_t most = 1;
	for (uint32_t k = 0; k < law->n_plans; k++)
		most = law->plan[k]->n_rows > most ? law->plan[k]->n_rows : most;
	return most;
}

static void product_fini(struct product *x)
{
	mix_space_fini(&x->space);
	mw_free(x->e);
	mw_free(x->saved);
	mw_free(x->scratch);
}

static int product_init(
	struct product *x, struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	double n = law->rows;
	*x = (struct product){ .law = law, .r = r, .cols = law->use_form ? law->n_use : law->rows };
	size_t cells = (size_t)law->rows * x->cols;
	x->eval_cost = law->use_form || law->norm == MW_NORM_TV ? n * x->cols : 12 * n * n * n + 2e4;
	MW_TRY(mix_space_init(&x->space, law->rows, law->pi, err));
	x->e = mw_alloc_array(cells, sizeof(double), "product of plans", err);
	x->saved = mw_alloc_array(cells, sizeof(double), "product of plans", err);
	x->scratch =
		mw_alloc_array((size_t)most_rows(law) * x->cols, sizeof(double), "product of plans", err);
	if (x->e && x->saved && x->scratch)
		return MW_OK;
	product_fini(x);
	return MW_ERESOURCE;
}

static void restart(struct product *x)
{
	const struct mix_law *law = x->law;
	if (!law->use_form) {
		mix_deflated_identity(&x->space, x->e);
		return;
	}
	for (uint32_t i = 0; i < law->rows; i++)
		for (uint32_t c = 0; c < x->cols; c++)
			x->e[(size_t)i * x->cols + c] = (i == law->push[c]) - law->pi[law->push[c]];
}

static size_t bytes(const struct product *x)
{
	return (size_t)x->law->rows * x->cols * sizeof(double);
}

static void apply(struct product *x, uint64_t event)
{
	const struct mix_law *law = x->law;
	const struct mix_event *e = &law->event[event % law->n_events];
	mw_plan_apply(law->plan[e->first], law->gamma, x->e, x->cols, x->scratch);
}

static double distance(const struct product *x)
{
	const struct mix_law *law = x->law;
	double worst = 0;
	if (!law->use_form)
		return mix_distance(law, &x->space, x->e);
	for (uint32_t v = 0; v < law->n_use; v++)
		for (uint32_t c = 0; c < x->cols; c++)
			worst = fmax(worst, fabs(x->e[(size_t)law->view[v] * x->cols + c]));
	return worst;
}

static bool within(const struct product *x)
{
	if (x->law->use_form)
		return distance(x) <= x->law->threshold;
	return mix_within(x->law, &x->space, x->e);
}

/* Native time of exchange e counted from the start of the sequence; e = -1 is the last one of the period before. */
static double time_of(const struct mix_law *law, int64_t e)
{
	int64_t n = law->n_events, turn = e >= 0 ? e / n : -((n - 1 - e) / n);
	return (double)turn * (double)law->period + (double)law->event[e - turn * n].t;
}

/*
 * Can d never rise? TV never does. The l2 norm does not where no column that counts has a sum over 1 (rows never do):
 * doubly stochastic plans, and with pi = e_0 plans that send no row's weight to two others.
 */
static bool plan_contracts(const struct mix_law *law, const struct mw_plan *p, double *column)
{
	bool fine = mw_plan_is_stochastic(p);
	for (uint32_t a = 0; a < p->n_rows; a++) {
		column[p->row[a].dst] -= 1;
		for (uint32_t k = p->row[a].first; k < p->row[a].first + p->row[a].n; k++)
			column[p->src[k]] += p->weight[k];
	}
	for (uint32_t a = 0; a < p->n_rows; a++)
		for (uint32_t k = p->row[a].first; k < p->row[a].first + p->row[a].n; k++)
			fine &= column[p->src[k]] <= 1e-12 || fabs(law->pi[p->src[k]] - 1) < 1e-12;
	for (uint32_t a = 0; a < p->n_rows; a++) {
		column[p->row[a].dst] = 0;
		for (uint32_t k = p->row[a].first; k < p->row[a].first + p->row[a].n; k++)
			column[p->src[k]] = 0;
	}
	return fine;
}

static int never_rises(const struct mix_law *law, bool *fine, struct mw_err *err)
{
	double *column = mw_alloc_array(law->rows, sizeof(double), "column sums", err);
	if (!column)
		return MW_ERESOURCE;
	*fine = !law->use_form;
	for (uint32_t k = 0; *fine && law->norm == MW_NORM_L2 && k < law->n_plans; k++)
		*fine = plan_contracts(law, law->plan[k], column);
	mw_free(column);
	return MW_OK;
}

static bool spend_events(struct product *x, double events, double evals)
{
	return mix_spend(x->law, events * 6 * x->cols + evals * x->eval_cost, x->r);
}

/* From `done` exchanges after start a (not within yet): the number after which d is first within; 0: out of work. */
static uint64_t gallop(struct product *x, uint64_t a, uint64_t done)
{
	uint64_t stride = 1;
	for (;; stride *= 2) {
		memcpy(x->saved, x->e, bytes(x));
		for (uint64_t i = 0; i < stride; i++)
			apply(x, a + done + i);
		if (!spend_events(x, (double)stride, 1))
			return 0;
		if (within(x))
			break;
		done += stride;
	}
	while (stride > 1) {
		uint64_t half = stride / 2;
		memcpy(x->e, x->saved, bytes(x));
		for (uint64_t i = 0; i < half; i++)
			apply(x, a + done + i);
		if (!spend_events(x, (double)half, 1))
			return 0;
		if (!within(x)) {
			memcpy(x->saved, x->e, bytes(x));
			done += half;
			stride -= half;
		} else {
			stride = half;
		}
	}
	return done + 1;
}

/* Start right after exchange a - 1. Only windows longer than `best` matter; the longest failing one plus 1. */
static double longest(struct product *x, uint64_t a, double best)
{
	double origin = time_of(x->law, (int64_t)a - 1);
	uint64_t done = 0;
	restart(x);
	while (time_of(x->law, (int64_t)(a + done)) - origin <= best)
		apply(x, a + done++);
	if (!spend_events(x, (double)done, 1))
		return NAN;
	if (done && within(x))
		return best;
	uint64_t count = gallop(x, a, done);
	return count ? time_of(x->law, (int64_t)(a + count - 1)) - origin : NAN;
}

/* The same for a d that may rise: every exchange is looked at, until d has stayed within for a whole period. */
static double longest_failing(struct product *x, uint64_t a)
{
	const struct mix_law *law = x->law;
	double origin = time_of(law, (int64_t)a - 1), t = time_of(law, (int64_t)a) - origin;
	uint64_t last = 0;
	restart(x);
	for (uint64_t done = 1; done <= last + law->n_events + 1; done++) {
		apply(x, a + done - 1);
		if (!spend_events(x, 1, 1))
			return NAN;
		if (within(x))
			continue;
		last = done;
		t = time_of(law, (int64_t)(a + done)) - origin;
	}
	return t;
}

static int find(struct product *x, uint32_t starts, struct mw_err *err)
{
	struct mix_law *law = x->law;
	double best = 0;
	bool falls;
	MW_TRY(never_rises(law, &falls, err));
	for (uint32_t a = 0; a < starts && !isnan(best); a++) {
		double t = falls ? longest(x, a, best) : longest_failing(x, a);
		best = isnan(t) || t > best ? t : best;
	}
	/* All starts are alike in exchanges; with gaps between sweeps they may differ in time. */
	if (law->turning && !isnan(best)) {
		double origin = time_of(law, -1);
		uint64_t count = 0;
		while (time_of(law, (int64_t)count) - origin < best)
			count++;
		for (int64_t a = 1; a < law->n_events; a++)
			best = fmax(best, time_of(law, a + (int64_t)count) - time_of(law, a - 1));
	}
	x->r->t_mix = best;
	x->r->mixes = isfinite(best);
	return MW_OK;
}

/* Spectral radius of a period's product, per native step: the rate of the tail. */
static double log_rate(struct product *x)
{
	restart(x);
	for (uint32_t e = 0; e < x->law->n_events; e++)
		apply(x, e);
	return log(mix_radius(&x->space, x->e)) / (double)x->law->period;
}

/* most[k] := max(most[k], d of windows of k steps from start a), k = 1..n; returns the last d. */
static double add_curve(struct product *x, uint32_t a, double *most, uint64_t n)
{
	const struct mix_law *law = x->law;
	double origin = time_of(law, (int64_t)a - 1), d;
	restart(x);
	d = distance(x);
	for (uint64_t k = 1, done = 0; k <= n; k++) {
		while (time_of(law, (int64_t)(a + done)) - origin <= (double)k) {
			apply(x, a + done++);
			if (d > 1e-15)
				d = distance(x);
		}
		most[k] = fmax(most[k], d);
	}
	return d;
}

/* Up to n steps one by one; what is left falls by the same factor every period. */
static int sums(struct product *x, uint32_t starts, struct mw_err *err)
{
	const struct mix_law *law = x->law;
	struct mw_mixing_result *r = x->r;
	uint64_t n = (uint64_t)(r->t_mix * 30) + 2 * law->period, p = law->period;
	double share = (double)law->n_events / (double)law->period;
	if (starts * (double)n * share * x->eval_cost > SUMS_WORK)
		return MW_OK;
	double *most = mw_alloc_array(n + 1, sizeof(*most), "curve of distances", err), s1 = 0, s2 = 0;
	if (!most)
		return MW_ERESOURCE;
	for (uint32_t a = 0; a < starts; a++)
		add_curve(x, a, most, n);
	for (uint64_t k = 1; k <= n; k++) {
		s1 += most[k];
		s2 += most[k] * most[k];
	}
	if (most[n] > 1e-15) {
		double fall = most[n] / most[n - p];
		for (uint64_t k = n - p + 1; k <= n; k++) {
			s1 += most[k] * fall / (1 - fall);
			s2 += most[k] * most[k] * fall * fall / (1 - fall * fall);
		}
	}
	r->s1 = s1;
	r->s2 = s2;
	mw_free(most);
	return MW_OK;
}

static int run(struct product *x, struct mw_mixing_result *r, struct mw_err *err)
{
	struct mix_law *law = x->law;
	uint32_t starts = law->turning ? 1 : law->n_events;
	double rate = NAN;
	if (!law->use_form && law->rows <= RADIUS_ROWS) {
		rate = log_rate(x);
		if (rate * (double)law->period > -1e-13) {
			snprintf(r->reason, sizeof(r->reason),
				"never mixes: the sequence of plans keeps rows apart");
			return MW_OK;
		}
	}
	MW_TRY(find(x, starts, err));
	r->t_q = r->t_mix;
	if (!law->sums || !r->mixes)
		return MW_OK;
	if (!isnan(rate)) /* a radius of rounding errors only: nothing is left after a period */
		r->t_inf = r->t_1 = rate * (double)law->period < -20 ? 0 : M_LN2 / -rate;
	return sums(x, law->turning && law->every > 1 ? law->n_events : starts, err);
}

int mix_periodic(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	struct product x;
	r->method = "row operations from every start of the sequence";
	MW_TRY(product_init(&x, law, r, err));
	int ret = run(&x, r, err);
	product_fini(&x);
	return ret;
}

int mix_periodic_curve(struct mix_law *law, uint32_t n, double *d, struct mw_err *err)
{
	struct mw_mixing_result r = { 0 };
	struct product x;
	double *most = mw_alloc_array((size_t)n + 1, sizeof(*most), "curve of distances", err);
	if (!most)
		return MW_ERESOURCE;
	int ret = product_init(&x, law, &r, err);
	if (!ret) {
		for (uint32_t a = 0; a < law->n_events; a++)
			add_curve(&x, a, most, n);
		memcpy(d, most + 1, n * sizeof(*d));
		product_fini(&x);
	}
	mw_free(most);
	return ret;
}
