/* probe.c: see probe.h. */
#include "mixing/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum { SETTLE = 12, FEWEST_BALANCED = 8 };
#define REACH      3.0 /* ages looked at, in guesses; 8 where the tail is fitted */
#define REACH_TAIL 8.0
/*
 * What is left of a segment at the next one's crossing is 2^-(this + 1). Its sign is random, so in a mean only its square
 * counts; the largest over starts of a fixed sequence sees it as it is.
 */
#define PERIOD       4.0
#define PERIOD_FIXED 6.0
#define PERIOD_AIMED \
	3.0 /* the closed loop wants many windows: 1 % too much at most, and none was seen in sim */
#define TAIL_FLOOR 1e-10
#define GAP_MOST   0.5 /* guesses between two snapshots that are interpolated */

/* A set of columns, and the segment that is under way in it. */
struct set {
	float *pattern;      /* n_push x cols */
	double *base, *mass; /* cols: pi^T x before the injection; what the injection adds to it */
	double *origin;      /* n_push: native step of the injection, NAN: not yet */
	uint32_t n_snaps;
	double *when;
	float *snap;    /* [snapshot][rows][cols] */
	uint64_t grids; /* what mw_probe.grids was when it began */
};

struct mw_probe {
	const struct mw_protocol *p;
	struct mw_uses use;
	struct mw_tally *tally;
	struct mw_rng rng, pick;
	bool one_hot, fixed, aimed;
	uint32_t rows, cols, sets;
	double guess;
	uint32_t *push_at;    /* row -> index into use.push, or MW_NO_ROW */
	struct set *set, *at; /* at: the one that is being looked at */
	double *e;            /* rows x cols */
	uint64_t segments, dropped, settled;
	uint64_t grids; /* grids of ages so far: segments that began on an earlier one are of no use */
	uint64_t took
		[SETTLE]; /* ages at which the first segments were within the threshold, UINT64_MAX: never */
	/* balanced columns: spread over its start, summed over segments */
	double spread[MW_TALLY_GRID];
	uint64_t n_spread[MW_TALLY_GRID];
};

uint32_t mw_probe_columns(const struct mw_protocol *p, uint32_t one_hot_max)
{
	struct mw_uses u;
	if (mw_uses_init(&u, p, NULL))
		return 0;
	uint32_t cols = u.n_push <= one_hot_max ? u.n_push : MW_PROBE_COLUMNS;
	mw_uses_fini(&u);
	return cols;
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static void make_grid(struct mw_probe *s)
{
	double reach = s->one_hot || s->use.kind != MW_TALLY_GRAM ? REACH : REACH_TAIL;
	mw_tally_grid(s->tally, 1, (uint64_t)fmax(4, ceil(reach * s->guess)));
	memset(s->spread, 0, sizeof(s->spread));
	memset(s->n_spread, 0, sizeof(s->n_spread));
	s->segments = 0;
	s->grids++;
}

static int allocate_set(const struct mw_probe *s, struct set *a, struct mw_err *err)
{
	size_t cells = (size_t)s->rows * s->cols, patterns = (size_t)s->use.n_push * s->cols;
	a->pattern = mw_alloc_array(patterns, sizeof(float), "probe columns", err);
	a->base = mw_alloc_array(2 * (size_t)s->cols + s->use.n_push, sizeof(double), "probe columns", err);
	a->snap =
		mw_alloc_array(MW_PROBE_SNAPSHOTS * cells, sizeof(float), "snapshots of probe columns", err);
	a->when = mw_alloc_array(MW_PROBE_SNAPSHOTS, sizeof(double), "snapshots of probe columns", err);
	if (!a->pattern || !a->base || !a->snap || !a->when)
		return err->code;
	a->mass = a->base + s->cols;
	a->origin = a->mass + s->cols;
	return 0;
}

static int allocate(struct mw_probe *s, struct mw_err *err)
{
	s->push_at = mw_alloc_array(s->rows, sizeof(*s->push_at), "probe columns", err);
	s->e = mw_alloc_array((size_t)s->rows * s->cols, sizeof(double), "probe columns", err);
	s->set = mw_alloc_array(s->sets, sizeof(*s->set), "probe columns", err);
	if (!s->push_at || !s->e || !s->set)
		return err->code;
	for (uint32_t i = 0; i < s->sets; i++)
		MW_TRY(allocate_set(s, &s->set[i], err));
	s->at = s->set;
	for (uint32_t i = 0; i < s->rows; i++)
		s->push_at[i] = MW_NO_ROW;
	for (uint32_t i = 0; i < s->use.n_push; i++)
		s->push_at[s->use.push[i]] = i;
	return 0;
}

int mw_probe_new(const struct mw_protocol *p, bool fixed, uint32_t one_hot_max, uint32_t sets, double guess,
	uint64_t seed, struct mw_probe **out, struct mw_err *err)
{
	struct mw_probe *s = mw_alloc(sizeof(*s), "probe columns", err);
	*out = s;
	if (!s)
		return err->code;
	s->p = p;
	s->fixed = fixed;
	s->rows = p->rows;
	s->sets = sets;
	s->guess = guess >= 1 ? guess : 1;
	mw_rng_init(&s->rng, seed, 0x9e0b);
	mw_rng_init(&s->pick, seed, 0x9e0c);
	MW_TRY(mw_uses_init(&s->use, p, err));
	s->one_hot = s->use.n_push <= one_hot_max;
	s->cols = s->one_hot ? s->use.n_push : MW_PROBE_COLUMNS;
	/* balanced columns use the tally's grid and thresholds only */
	struct mw_tally_config c = { .kind = s->one_hot ? s->use.kind : MW_TALLY_SQUARE,
		.rows = s->rows,
		.cols = s->one_hot ? s->cols : 1,
		.pi = p->pi,
		.n_view = s->one_hot ? s->use.n_view : 1,
		.view = s->use.view,
		.fixed = fixed };
	MW_TRY(mw_tally_new(&c, &s->tally, err));
	MW_TRY(allocate(s, err));
	make_grid(s);
	return 0;
}

void mw_probe_free(struct mw_probe *s)
{
	if (!s)
		return;
	mw_uses_fini(&s->use);
	mw_tally_free(s->tally);
	for (uint32_t i = 0; s->set && i < s->sets; i++) {
		mw_free(s->set[i].pattern);
		mw_free(s->set[i].base);
		mw_free(s->set[i].snap);
		mw_free(s->set[i].when);
	}
	mw_free(s->set);
	mw_free(s->push_at);
	mw_free(s->e);
	mw_free(s);
}

/* --- a segment ----------------------------------------------------------------------------------------------------- */

static float sign(struct mw_probe *s)
{
	return mw_rng_next(&s->rng) >> 63 ? 1 : -1;
}

/* Signs over the push rows, as many of each as can be; what is left of their pi-weighted sum is taken off all. */
static void balance(struct mw_probe *s, uint32_t c)
{
	uint32_t n = s->use.n_push;
	float *x = s->at->pattern + c;
	double sum = 0, weight = 0;
	float first = sign(s);
	for (uint32_t i = 0; i < n; i++)
		x[(size_t)i * s->cols] = i % 2 ? -first : first;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)mw_rng_below(&s->rng, i);
		float t = x[(size_t)(i - 1) * s->cols];
		x[(size_t)(i - 1) * s->cols] = x[(size_t)j * s->cols];
		x[(size_t)j * s->cols] = t;
	}
	for (uint32_t i = 0; i < n; i++) {
		sum += s->p->pi[s->use.push[i]] * (double)x[(size_t)i * s->cols];
		weight += s->p->pi[s->use.push[i]];
	}
	for (uint32_t i = 0; n > 1 && weight != 0 && i < n; i++)
		x[(size_t)i * s->cols] -= (float)(sum / weight);
}

void mw_probe_begin(struct mw_probe *s, uint32_t set, const float *x)
{
	s->at = &s->set[set];
	memset(s->at->pattern, 0, (size_t)s->use.n_push * s->cols * sizeof(float));
	memset(s->at->base, 0, 2 * s->cols * sizeof(double));
	for (uint32_t c = 0; c < s->cols; c++) {
		if (s->one_hot)
			s->at->pattern[(size_t)c * s->cols + c] = sign(s);
		else
			balance(s, c);
		for (uint32_t i = 0; i < s->rows; i++)
			s->at->base[c] += s->p->pi[i] * (double)x[(size_t)i * s->cols + c];
		for (uint32_t i = 0; i < s->use.n_push; i++)
			s->at->mass[c] +=
				s->p->pi[s->use.push[i]] * (double)s->at->pattern[(size_t)i * s->cols + c];
	}
	for (uint32_t i = 0; i < s->use.n_push; i++)
		s->at->origin[i] = NAN;
	s->at->n_snaps = 0;
	s->at->grids = s->grids;
}

const float *mw_probe_pattern(const struct mw_probe *s, uint32_t set, uint32_t row)
{
	uint32_t i = s->push_at[row];
	return i == MW_NO_ROW ? NULL : s->set[set].pattern + (size_t)i * s->cols;
}

void mw_probe_injected(struct mw_probe *s, uint32_t set, uint32_t row, double t)
{
	s->set[set].origin[s->push_at[row]] = t;
}

uint32_t mw_probe_ages(const struct mw_probe *s, const uint64_t **age)
{
	return mw_tally_ages(s->tally, age);
}

static uint64_t least_period(const struct mw_probe *s)
{
	const uint64_t *age;
	uint32_t n = mw_tally_ages(s->tally, &age);
	double guesses = s->fixed ? PERIOD_FIXED : s->aimed ? PERIOD_AIMED : PERIOD;
	uint64_t period = (uint64_t)ceil(guesses * s->guess);
	return period > age[n - 1] ? period : age[n - 1] + 1;
}

uint64_t mw_probe_period(struct mw_probe *s)
{
	/* random, so that no start time of a periodic sequence is left out */
	return least_period(s) + mw_rng_below(&s->rng, (uint64_t)ceil(s->guess) + s->p->workers);
}

double mw_probe_spacing(const struct mw_probe *s)
{
	return (double)least_period(s) / s->sets;
}

void mw_probe_snapshot(struct mw_probe *s, uint32_t set, double t, const float *x)
{
	s->at = &s->set[set];
	size_t cells = (size_t)s->rows * s->cols;
	if (s->at->n_snaps == MW_PROBE_SNAPSHOTS)
		return;
	s->at->when[s->at->n_snaps] = t;
	memcpy(s->at->snap + s->at->n_snaps++ * cells, x, cells * sizeof(*x));
}

static const float *snapshot(const struct mw_probe *s, uint32_t i)
{
	return s->at->snap + (size_t)i * s->rows * s->cols;
}

/* The snapshot nearest to native step t; NULL: none within the tolerance. */
static const float *nearest(const struct mw_probe *s, double t, double tolerance)
{
	double best = INFINITY;
	uint32_t at = 0;
	for (uint32_t i = 0; i < s->at->n_snaps; i++)
		if (fabs(s->at->when[i] - t) < best) {
			best = fabs(s->at->when[i] - t);
			at = i;
		}
	return best <= tolerance ? snapshot(s, at) : NULL;
}

/*
 * The state at native step t of a random order, from the snapshots around it (none from before the injection): the later
 * one with the probability `u` says, so that the mean over segments is linear between them. To leave out ages that were
 * not hit would be no fair choice: the sampler comes late when workers are late too, and those are the slow segments.
 * NULL: too far apart.
 */
static const float *between(const struct mw_probe *s, double from, double t, double u)
{
	uint32_t i = 0;
	while (i < s->at->n_snaps && s->at->when[i] < t)
		i++;
	if (i == s->at->n_snaps || !i || s->at->when[i - 1] < from)
		return NULL;
	double gap = s->at->when[i] - s->at->when[i - 1];
	if (gap > GAP_MOST * s->guess)
		return NULL;
	return snapshot(s, t - s->at->when[i - 1] > u * gap ? i : i - 1);
}

/* Injections do not happen at one moment: every one-hot column has an age of its own, others that of their mean. */
static double origin(const struct mw_probe *s, uint32_t c)
{
	double sum = 0;
	if (s->one_hot)
		return s->at->origin[c];
	for (uint32_t i = 0; i < s->use.n_push; i++)
		sum += s->at->origin[i];
	return sum / s->use.n_push;
}

static double average(const struct mw_probe *s, const float *x, uint32_t c)
{
	double y = 0;
	for (uint32_t i = 0; i < s->rows; i++)
		y += s->p->pi[i] * (double)x[(size_t)i * s->cols + c];
	return y;
}

/* E at this age, by columns. u in [0, 1): see between. */
static bool assemble(struct mw_probe *s, uint64_t age, double tolerance, double u)
{
	for (uint32_t c = 0; c < s->cols; c++) {
		double from = origin(s, c), at = from + (double)age, y = s->at->base[c] + s->at->mass[c],
		       scale = 1;
		const float *x = s->fixed ? NULL : between(s, from, at, u);
		if (!x)
			x = nearest(s, at, tolerance);
		if (!x || !isfinite(from))
			return false;
		/* Where updates can be lost the average moves; with signs (changes not yet merged) it can't be read at one moment. */
		if (!s->p->signed_plan)
			y = average(s, x, c);
		if (s->one_hot)
			scale = (double)s->at->pattern[(size_t)c * s->cols + c];
		for (uint32_t i = 0; i < s->rows; i++)
			s->e[(size_t)i * s->cols + c] = ((double)x[(size_t)i * s->cols + c] - y) / scale;
	}
	return true;
}

/* Mean square over view rows and columns, over what it was right after the injection. */
static double spread(const struct mw_probe *s)
{
	double now = 0, first = 0;
	for (uint32_t v = 0; v < s->use.n_view; v++)
		for (uint32_t c = 0; c < s->cols; c++) {
			const float *x = mw_probe_pattern(s, (uint32_t)(s->at - s->set), s->use.view[v]);
			double e = s->e[(size_t)s->use.view[v] * s->cols + c],
			       e0 = (x ? (double)x[c] : 0) - s->at->mass[c];
			now += e * e;
			first += e0 * e0;
		}
	return now / first;
}

static double tolerance(const struct mw_probe *s)
{
	const uint64_t *age;
	mw_tally_ages(s->tally, &age);
	return fmax((double)(age[1] - age[0]) / 2, 0.05 * s->guess);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/*
 * After the first segments the guess may be seen to be wrong: start again with a better one. What one segment takes by
 * itself is quenched, up to three times the annealed value where exchanges are random, so only a large misfit counts.
 */
static bool adapt(struct mw_probe *s, uint64_t age)
{
	if (s->settled >= SETTLE)
		return false;
	s->took[s->settled++] = age;
	qsort(s->took, s->settled, sizeof(*s->took), by_size);
	double middle = (double)s->took[s->settled / 2], most = s->fixed ? 1.3 : 2.6;
	bool never = s->settled >= 3 && s->took[0] == UINT64_MAX, done = s->settled == SETTLE;
	if (never || (done && s->took[s->settled / 2] == UINT64_MAX))
		s->guess *= 2;
	else if (s->one_hot && done &&
		 (middle > most * s->guess || (middle < 0.4 * s->guess && s->guess > 4)))
		s->guess = fmax(middle, 1);
	else
		return false;
	s->settled = 0;
	make_grid(s);
	return true;
}

bool mw_probe_end(struct mw_probe *s, uint32_t set)
{
	const uint64_t *age;
	uint32_t n = mw_tally_ages(s->tally, &age), within = n;
	uint32_t seen = 0;
	double u = mw_rng_uniform(&s->pick);
	s->at = &s->set[set];
	if (s->at->grids != s->grids)
		return false;
	for (uint32_t g = 0; g < n; g++)
		if (assemble(s, age[g], tolerance(s), u)) {
			seen++;
			if (within == n && (s->one_hot ? mw_tally_within(s->tally, s->e) : spread(s) <= 0.25))
				within = g;
		}
	if (2 * seen < n) {
		s->dropped++;
		return false;
	}
	if (adapt(s, within < n ? age[within] : UINT64_MAX))
		return true;
	for (uint32_t g = 0; g < n; g++) {
		if (!assemble(s, age[g], tolerance(s), u))
			continue;
		if (s->one_hot)
			/* segments of one set are independent: a batch each in turn, with those of other sets meanwhile */
			mw_tally_add(s->tally, MW_TALLY_NEIGHBOURS * (s->segments / s->sets), g, s->e);
		s->spread[g] += spread(s);
		s->n_spread[g]++;
	}
	s->segments++;
	if (s->one_hot && mw_tally_adjust(s->tally)) {
		s->segments = 0;
		s->grids++;
	}
	return true;
}

void mw_probe_restart(struct mw_probe *s)
{
	s->settled = s->dropped = 0;
	make_grid(s);
}

void mw_probe_aim(struct mw_probe *s, double expected)
{
	mw_probe_restart(s);
	s->guess = fmax(expected, 1);
	if (!s->one_hot)
		return;
	s->settled = SETTLE;
	s->aimed = true;
	make_grid(s);
	mw_tally_aim(s->tally, expected);
}

uint64_t mw_probe_segments(const struct mw_probe *s)
{
	return s->segments;
}

/* --- values -------------------------------------------------------------------------------------------------------- */

static void unknown(struct mw_estimate *out, const char *why)
{
	out->identified = false;
	out->value = out->error = NAN;
	snprintf(out->reason, sizeof(out->reason), "%s", why);
}

/* Least squares of a line through n points: its slope, and the standard error of it. */
static double fit(const double *x, const double *y, uint32_t n, double *error)
{
	double mx = 0, my = 0, xx = 0, xy = 0, left = 0;
	for (uint32_t i = 0; i < n; i++) {
		mx += x[i] / n;
		my += y[i] / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		xy += (x[i] - mx) * (y[i] - my);
	}
	double slope = xy / xx;
	for (uint32_t i = 0; i < n; i++)
		left += pow(y[i] - my - slope * (x[i] - mx), 2);
	*error = sqrt(left / (n - 2) / xx);
	return slope;
}

/*
 * ln F on age where F is in (TAIL_FLOOR, top): t_inf. Faster modes bend the beginning of the tail: what the later half of it
 * says otherwise is part of the error.
 */
static void fit_tail(const struct mw_probe *s, double top, struct mw_estimate *out)
{
	const uint64_t *age;
	uint32_t n = mw_tally_ages(s->tally, &age), m = 0;
	double x[MW_TALLY_GRID], y[MW_TALLY_GRID], error, late_error;
	for (uint32_t g = 0; g < n; g++) {
		double f = s->spread[g] / (double)s->n_spread[g];
		if (!s->n_spread[g] || !(f < top && f > TAIL_FLOOR))
			continue;
		x[m] = (double)age[g];
		y[m++] = log(f);
	}
	if (m < 4) {
		unknown(out, "the tail has fewer than 4 points: longer segments are needed");
		return;
	}
	double slope = fit(x, y, m, &error),
	       late = m < 6 ? slope : fit(x + m / 2, y + m / 2, m - m / 2, &late_error);
	if (!(slope < 0 && late < 0)) {
		unknown(out, "the tail does not fall");
		return;
	}
	out->value = 2 * M_LN2 / -slope;
	out->error = hypot(out->value * error / -slope, out->value - 2 * M_LN2 / -late);
	out->identified = true;
}

static void cross_spread(const struct mw_probe *s, struct mw_estimate *out)
{
	const uint64_t *age;
	uint32_t n = mw_tally_ages(s->tally, &age);
	for (uint32_t g = 0; g < n; g++) {
		double f = s->spread[g] / (double)s->n_spread[g];
		if (!s->n_spread[g] || f > 0.25)
			continue;
		out->value = (double)age[g];
		out->error = (double)age[0] / 2 + out->value / sqrt((double)s->segments * s->use.n_view);
		out->identified = true;
		return;
	}
	unknown(out, "not mixed within a segment");
}

void mw_probe_estimate(struct mw_probe *s, struct mw_estimate *out)
{
	*out = mw_estimate_none(s->use.kind == MW_TALLY_GRAM ? MW_TARGET_INF : MW_TARGET_ANN, s->segments);
	if (s->one_hot)
		mw_tally_estimate(s->tally, out);
	else if (s->segments < FEWEST_BALANCED)
		unknown(out, "fewer than 8 segments: run longer");
	else if (s->use.kind == MW_TALLY_GRAM)
		fit_tail(s, 0.5 / s->rows, out);
	else
		cross_spread(s, out);
	if (!out->identified && s->dropped > s->segments)
		snprintf(out->reason, sizeof(out->reason),
			"%llu segments had too few snapshots: the run is too fast for the sampler",
			(unsigned long long)s->dropped);
}
