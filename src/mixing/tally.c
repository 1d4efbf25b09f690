/* tally.c: see tally.h. */
#include "mixing/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

enum { FEWEST = 4 * MW_TALLY_BATCHES }; /* starts */
/*
 * Where the order is random, ages reach from 1 to this many crossings: fine enough for interpolation, and wide enough for
 * a value that moves during a run (each new grid begins with nothing).
 */
#define WIDE 2.5

struct mw_tally {
	struct mw_tally_config c;
	double threshold; /* of what is averaged */
	size_t cells;
	uint32_t n_ages;
	uint64_t age[MW_TALLY_GRID], stride;
	bool refined;
	uint64_t adjusted; /* starts when the grid was thought about last */
	double *sum;       /* [grid][batch][cells] */
	double *tv;        /* GRAM: [grid][rows] */
	uint64_t n[MW_TALLY_GRID][MW_TALLY_BATCHES];
	double worst[MW_TALLY_GRID]; /* the largest distance of one start */
	double *half[2], *work, *values, *projected;
	double pi2;
};

const char *mw_target_name(enum mw_target target)
{
	static const char *const names[MW_TARGETS] = { "t_ann", "t_sup", "t_inf", "t_1" };
	return names[target];
}

static bool gram(const struct mw_tally *t)
{
	return t->c.kind == MW_TALLY_GRAM;
}

static int allocate(struct mw_tally *t, struct mw_err *err)
{
	size_t rows = t->c.rows, points = (size_t)MW_TALLY_GRID * MW_TALLY_BATCHES;
	t->cells = gram(t) ? rows * rows : (size_t)t->c.n_view * t->c.cols;
	t->sum = mw_alloc_array(points * t->cells, sizeof(double), "sums of mixing products", err);
	t->tv = mw_alloc_array(MW_TALLY_GRID * rows, sizeof(double), "sums of mixing products", err);
	t->work = mw_alloc_array(
		4 * t->cells + rows * t->c.cols + rows, sizeof(double), "sums of mixing products", err);
	if (!t->sum || !t->tv || !t->work)
		return err->code;
	t->half[0] = t->work + t->cells;
	t->half[1] = t->half[0] + t->cells;
	t->projected = t->half[1] + t->cells;
	t->values = t->projected + rows * t->c.cols;
	return 0;
}

int mw_tally_new(const struct mw_tally_config *c, struct mw_tally **out, struct mw_err *err)
{
	struct mw_tally *t = mw_alloc(sizeof(*t), "sums of mixing products", err);
	*out = t;
	if (!t)
		return err->code;
	t->c = *c;
	double eps = c->eps > 0 ? c->eps : c->kind == MW_TALLY_USE ? 0.25 : 0.5;
	t->threshold = c->kind == MW_TALLY_USE ? eps * (1 + MIX_TOL) : eps * eps * (1 + 2 * MIX_TOL);
	for (uint32_t i = 0; gram(t) && i < c->rows; i++)
		t->pi2 += c->pi[i] * c->pi[i];
	return allocate(t, err);
}

void mw_tally_free(struct mw_tally *t)
{
	if (!t)
		return;
	mw_free(t->sum);
	mw_free(t->tv);
	mw_free(t->work);
	mw_free(t);
}

void mw_tally_grid(struct mw_tally *t, uint64_t first, uint64_t last)
{
	t->stride = (last - first) / MW_TALLY_GRID + 1;
	t->n_ages = 0;
	t->adjusted = 0;
	t->refined = first > 1;
	first = first > 1 ? first : t->stride;
	for (uint64_t a = first; t->n_ages < MW_TALLY_GRID && a < last + t->stride; a += t->stride)
		t->age[t->n_ages++] = a;
	memset(t->sum, 0, (size_t)MW_TALLY_GRID * MW_TALLY_BATCHES * t->cells * sizeof(double));
	memset(t->tv, 0, (size_t)MW_TALLY_GRID * t->c.rows * sizeof(double));
	memset(t->n, 0, sizeof(t->n));
	memset(t->worst, 0, sizeof(t->worst));
}

uint32_t mw_tally_ages(const struct mw_tally *t, const uint64_t **age)
{
	*age = t->age;
	return t->n_ages;
}

uint64_t mw_tally_starts(const struct mw_tally *t)
{
	uint64_t most = 0;
	for (uint32_t g = 0; g < t->n_ages; g++) {
		uint64_t n = 0;
		for (uint32_t b = 0; b < MW_TALLY_BATCHES; b++)
			n += t->n[g][b];
		most = n > most ? n : most;
	}
	return most;
}

/* --- adding -------------------------------------------------------------------------------------------------------- */

/* Rows less their part along pi: what is left acts on ker pi^T alone. */
static void project(struct mw_tally *t, const double *e)
{
	size_t n = t->c.rows;
	for (size_t i = 0; i < n; i++) {
		double u = 0;
		for (size_t j = 0; j < n; j++)
			u += e[i * n + j] * t->c.pi[j];
		u /= t->pi2;
		for (size_t j = 0; j < n; j++)
			t->projected[i * n + j] = e[i * n + j] - u * t->c.pi[j];
	}
}

/* What one start contributes, into t->work; returns its own distance where that is wanted or cheap. */
static double measure(struct mw_tally *t, const double *e, bool distance)
{
	size_t n = t->c.rows, cols = t->c.cols;
	double most = 0;
	if (gram(t)) {
		project(t, e);
		mix_gram(t->c.rows, t->projected, t->work);
		if (!distance)
			return 0;
		memcpy(t->half[0], t->work, n * n * sizeof(double));
		return mix_eigen(t->c.rows, t->half[0], t->values, false) ? t->values[n - 1] : NAN;
	}
	for (uint32_t v = 0; v < t->c.n_view; v++)
		for (size_t c = 0; c < cols; c++) {
			double d = fabs(e[t->c.view[v] * cols + c]);
			d = t->c.kind == MW_TALLY_SQUARE ? d * d : d;
			t->work[v * cols + c] = d;
			most = fmax(most, d);
		}
	return most;
}

void mw_tally_add(struct mw_tally *t, uint64_t start, uint32_t g, const double *e)
{
	/* neighbours overlap, so several of them share a batch */
	uint32_t batch = (uint32_t)(start / MW_TALLY_NEIGHBOURS % MW_TALLY_BATCHES);
	double *sum = t->sum + ((size_t)g * MW_TALLY_BATCHES + batch) * t->cells;
	t->worst[g] = fmax(t->worst[g], measure(t, e, t->c.fixed));
	for (size_t i = 0; i < t->cells; i++)
		sum[i] += t->work[i];
	for (uint32_t i = 0; gram(t) && i < t->c.rows; i++)
		t->tv[(size_t)g * t->c.rows + i] += mix_tv(e + (size_t)i * t->c.rows, 1, t->c.rows);
	t->n[g][batch]++;
}

bool mw_tally_within(struct mw_tally *t, const double *e)
{
	return measure(t, e, true) <= t->threshold;
}

/* --- crossings ----------------------------------------------------------------------------------------------------- */

typedef double distance_fn(struct mw_tally *t, uint32_t g, uint32_t arg);

static double largest(struct mw_tally *t, uint32_t g, uint32_t arg)
{
	(void)arg;
	return t->worst[g];
}

static uint64_t added(const struct mw_tally *t, uint32_t g)
{
	uint64_t n = 0;
	for (uint32_t b = 0; b < MW_TALLY_BATCHES; b++)
		n += t->n[g][b];
	return n;
}

/* Grid points at which at least half as many starts were seen as anywhere: live snapshots can miss ages. */
static uint32_t seen_ages(const struct mw_tally *t, uint32_t *known)
{
	uint64_t most = mw_tally_starts(t);
	uint32_t n = 0;
	for (uint32_t g = 0; g < t->n_ages; g++)
		if (added(t, g) && 2 * added(t, g) >= most)
			known[n++] = g;
	return n;
}

/*
 * Where a distance that falls with age crosses the threshold: log-linear between the ages around it, which are found by
 * bisection; INFINITY: not within the grid.
 */
static double crossing(struct mw_tally *t, distance_fn *d, uint32_t arg, double threshold)
{
	uint32_t known[MW_TALLY_GRID], n = seen_ages(t, known), lo = 0, hi = n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (d(t, known[mid], arg) <= threshold)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo == n)
		return INFINITY;
	double age = (double)t->age[known[lo]];
	if (!lo)
		return age > (double)t->stride ? NAN : age; /* ages that begin too late */
	double at = d(t, known[lo], arg), before = d(t, known[lo - 1], arg),
	       left = (double)t->age[known[lo - 1]];
	/* the largest of a fixed sequence falls in jumps: nothing is known between two ages */
	if (d == largest || !isfinite(before) || !(at > 0) || before <= at)
		return age;
	return left + log(before / threshold) / log(before / at) * (age - left);
}

/* The mean over the batches of the mask. False: there is none at this age. */
static bool mean(const struct mw_tally *t, uint32_t g, uint32_t mask, double *out)
{
	uint64_t n = 0;
	memset(out, 0, t->cells * sizeof(*out));
	for (uint32_t b = 0; b < MW_TALLY_BATCHES; b++) {
		const double *sum = t->sum + ((size_t)g * MW_TALLY_BATCHES + b) * t->cells;
		if (!(mask >> b & 1))
			continue;
		n += t->n[g][b];
		for (size_t i = 0; i < t->cells; i++)
			out[i] += sum[i];
	}
	for (size_t i = 0; n && i < t->cells; i++)
		out[i] /= (double)n;
	return n;
}

static double most(const struct mw_tally *t, const double *m, size_t *where)
{
	*where = 0;
	for (size_t i = 1; i < t->cells; i++)
		if (m[i] > m[*where])
			*where = i;
	return m[*where];
}

/* Largest eigenvalue (or entry) of the mean over the batches in `mask`. */
static double pooled(struct mw_tally *t, uint32_t g, uint32_t mask)
{
	size_t where;
	if (!mean(t, g, mask, t->half[0]))
		return INFINITY;
	if (!gram(t))
		return most(t, t->half[0], &where);
	return mix_eigen(t->c.rows, t->half[0], t->values, false) ? t->values[t->c.rows - 1] : INFINITY;
}

/* u^T M u of the upper triangle. */
static double form(size_t n, const double *m, const double *u)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		sum += m[i * n + i] * u[i] * u[i];
		for (size_t j = i + 1; j < n; j++)
			sum += 2 * m[i * n + j] * u[i] * u[j];
	}
	return sum;
}

/* The worst direction of one half, valued on the other. */
static double valued(struct mw_tally *t, uint32_t g, uint32_t mask)
{
	size_t n = t->c.rows, where;
	if (!mean(t, g, mask, t->half[0]) || !mean(t, g, ~mask, t->half[1]))
		return INFINITY;
	if (!gram(t)) {
		most(t, t->half[0], &where);
		return t->half[1][where];
	}
	if (!mix_eigen(t->c.rows, t->half[0], t->values, true))
		return INFINITY;
	return form(n, t->half[1], t->half[0] + (n - 1) * n);
}

static double split(struct mw_tally *t, uint32_t g, uint32_t arg)
{
	(void)arg;
	return (valued(t, g, 0x55) + valued(t, g, 0xaa)) / 2;
}

static double variation(struct mw_tally *t, uint32_t g, uint32_t arg)
{
	double worst = 0;
	uint64_t n = added(t, g);
	(void)arg;
	for (uint32_t i = 0; i < t->c.rows; i++)
		worst = fmax(worst, t->tv[(size_t)g * t->c.rows + i]);
	return n ? worst / (double)n : INFINITY;
}

/* Standard error of the pooled crossing, by leaving out each batch in turn. */
static double jackknife(struct mw_tally *t)
{
	double x[MW_TALLY_BATCHES], sum = 0, square = 0;
	for (uint32_t b = 0; b < MW_TALLY_BATCHES; b++) {
		x[b] = crossing(t, pooled, 0xffu & ~(1u << b), t->threshold);
		sum += x[b] / MW_TALLY_BATCHES;
	}
	for (uint32_t b = 0; b < MW_TALLY_BATCHES; b++)
		square += (x[b] - sum) * (x[b] - sum);
	return sqrt(square * (MW_TALLY_BATCHES - 1) / MW_TALLY_BATCHES);
}

static double whole(double t)
{
	return ceil(t * (1 - MIX_TOL));
}

/* t_mix is an integer, the next one; where the error leaves two of them open, the value is between. */
static void round_up(struct mw_estimate *out, double t, double error)
{
	double low = whole(fmax(t - error, 1)), high = whole(t + error);
	out->value = (low + high) / 2;
	out->error = fmax(error, (high - low) / 2);
}

/* Between two ages of a fixed sequence it may be any step. */
static void between_ages(const struct mw_tally *t, struct mw_estimate *out)
{
	out->error = (double)(t->stride - 1) / 2;
	out->value = out->sup - out->error;
}

/* Where few starts went so far, leaving out some of them may leave no crossing at all. */
static void tell_crossing(struct mw_tally *t, double crossed, struct mw_estimate *out)
{
	double error = hypot(jackknife(t), (out->pooled - out->split) / 2);
	out->identified = isfinite(error);
	if (out->identified)
		round_up(out, crossed, error);
	else
		snprintf(out->reason, sizeof(out->reason),
			"some of the starts mix at step %.4g, others within none that was followed: run "
			"longer",
			crossed);
}

void mw_tally_aim(struct mw_tally *t, double expected)
{
	if (t->c.fixed)
		mw_tally_grid(
			t, expected >= 4 ? (uint64_t)(expected / 2) : 1, (uint64_t)ceil(1.8 * expected) + 1);
	else
		mw_tally_grid(t, 1, (uint64_t)ceil(WIDE * expected) + 1);
}

bool mw_tally_adjust(struct mw_tally *t)
{
	uint64_t n = mw_tally_starts(t), last = t->age[t->n_ages - 1];
	if (n < FEWEST || n == t->adjusted || n % FEWEST)
		return false;
	t->adjusted = n;
	double c =
		t->c.fixed ? crossing(t, largest, 0, t->threshold) : crossing(t, pooled, 0xff, t->threshold);
	if (!isfinite(c)) { /* too short, or beginning too late */
		mw_tally_grid(t, 1, isnan(c) ? last : 2 * last);
		return true;
	}
	/* means are smooth between ages, fixed sequences jump */
	if (t->refined || t->stride == 1 || c < 2 * (double)t->stride ||
		(!t->c.fixed && (double)t->stride < 0.08 * c))
		return false;
	double tv = gram(t) ? crossing(t, variation, 0, 0.25) : 0, most_tv = isfinite(tv) ? 1.2 * tv : 0;
	if (t->c.fixed)
		mw_tally_grid(t, (uint64_t)(0.6 * c), (uint64_t)ceil(fmax(1.4 * c, most_tv)));
	else
		mw_tally_grid(t, 1, (uint64_t)ceil(fmax(WIDE * c, most_tv)));
	t->refined = true;
	return true;
}

void mw_tally_estimate(struct mw_tally *t, struct mw_estimate *out)
{
	*out = mw_estimate_none(t->c.fixed ? MW_TARGET_SUP : MW_TARGET_ANN, mw_tally_starts(t));
	if (out->n < FEWEST) {
		snprintf(out->reason, sizeof(out->reason), "%llu starts were seen, %d are needed: run longer",
			(unsigned long long)out->n, FEWEST);
		return;
	}
	out->pooled = crossing(t, pooled, 0xff, t->threshold);
	out->split = crossing(t, split, 0, t->threshold);
	out->tv = gram(t) ? whole(crossing(t, variation, 0, 0.25 * (1 + MIX_TOL))) : NAN;
	out->sup = t->c.fixed ? whole(crossing(t, largest, 0, t->threshold)) : NAN;
	double crossed = t->c.fixed ? out->sup : (out->pooled + out->split) / 2;
	out->identified = isfinite(crossed);
	if (!out->identified)
		snprintf(out->reason, sizeof(out->reason),
			isnan(crossed) ? "mixed before step %llu, where ages begin"
				       : "not mixed within %llu steps, the longest that was followed",
			(unsigned long long)t->age[isnan(crossed) ? 0 : t->n_ages - 1]);
	else if (t->c.fixed)
		between_ages(t, out);
	else
		tell_crossing(t, crossed, out);
}
