/* passive.c: see passive.h. */
#include "mixing/passive.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

enum { FEWEST = 100, PARTS = 8, PART_LEAST = 50 };
#define SINGULAR 1e-9 /* eigenvalues of C0 below this share of the largest are no direction */

struct mw_passive {
	uint32_t rows, coords, n, at; /* n snapshots, the next one goes to `at` */
	const double *pi;
	uint64_t stride;
	float *x;        /* ring: [snapshot][row][coordinate] */
	double *mean;    /* rows x coords: of z over time; then coords: of y */
	double *y_slope; /* coords: AR(1) coefficient of y */
	uint8_t *flat;   /* coords: the flatter half */
	double *z[2], *c0, *c1, *inverse, *a, *values;
	struct mix_space space;
	uint64_t epoch;
	double *u[2]; /* rows each: the slowest direction of a half */
	double rho, raw,
		lambda_y; /* as computed last: the corrected radius, the uncorrected one, and what was divided out */
};

int mw_passive_new(uint32_t rows, const double *pi, uint32_t coords, uint64_t stride, uint64_t epoch,
	struct mw_passive **out, struct mw_err *err)
{
	size_t cells = (size_t)rows * rows, floats = (size_t)rows * coords;
	*out = NULL;
	if (rows > MW_PASSIVE_ROWS_MAX)
		MW_FAIL(err, USAGE, "the passive estimator takes at most %d replicas, not %u",
			MW_PASSIVE_ROWS_MAX, rows);
	struct mw_passive *s = mw_alloc(sizeof(*s), "the passive estimator", err);
	*out = s;
	if (!s)
		return err->code;
	*s = (struct mw_passive){
		.rows = rows, .coords = coords, .pi = pi, .stride = stride, .epoch = epoch
	};
	s->x = mw_alloc_array(MW_PASSIVE_SNAPSHOTS * floats, sizeof(float), "snapshots", err);
	s->mean = mw_alloc_array(3 * floats + 2 * (size_t)coords + 4 * cells + 3 * rows, sizeof(double),
		"the passive estimator", err);
	s->flat = mw_alloc(coords, "the passive estimator", err);
	if (!s->x || !s->mean || !s->flat)
		return err->code;
	s->y_slope = s->mean + floats + coords;
	s->z[0] = s->y_slope + coords;
	s->z[1] = s->z[0] + floats;
	s->c0 = s->z[1] + floats;
	s->c1 = s->c0 + cells;
	s->inverse = s->c1 + cells;
	s->a = s->inverse + cells;
	s->values = s->a + cells;
	s->u[0] = s->values + rows;
	s->u[1] = s->u[0] + rows;
	return mix_space_init(&s->space, rows, pi, err);
}

void mw_passive_free(struct mw_passive *s)
{
	if (!s)
		return;
	mix_space_fini(&s->space);
	mw_free(s->x);
	mw_free(s->mean);
	mw_free(s->flat);
	mw_free(s);
}

uint64_t mw_passive_stride(const struct mw_passive *s)
{
	return s->stride;
}

void mw_passive_add(struct mw_passive *s, const float *x)
{
	size_t floats = (size_t)s->rows * s->coords;
	memcpy(s->x + s->at * floats, x, floats * sizeof(*x));
	s->at = (s->at + 1) % MW_PASSIVE_SNAPSHOTS;
	s->n += s->n < MW_PASSIVE_SNAPSHOTS;
}

void mw_passive_restart(struct mw_passive *s)
{
	s->n = s->at = 0;
}

/* The t-th snapshot that is kept, the oldest first. */
static const float *snapshot(const struct mw_passive *s, uint32_t t)
{
	uint32_t first = s->n < MW_PASSIVE_SNAPSHOTS ? 0 : s->at;
	return s->x + (size_t)((first + t) % MW_PASSIVE_SNAPSHOTS) * s->rows * s->coords;
}

static double average(const struct mw_passive *s, const float *x, uint32_t c)
{
	double y = 0;
	for (uint32_t i = 0; i < s->rows; i++)
		y += s->pi[i] * (double)x[(size_t)i * s->coords + c];
	return y;
}

/* Disagreement less its mean over time (a worker's own bias would look like a mode that never falls). */
static void disagreement(const struct mw_passive *s, uint32_t t, double *z)
{
	const float *x = snapshot(s, t);
	for (uint32_t c = 0; c < s->coords; c++) {
		double y = average(s, x, c);
		for (uint32_t i = 0; i < s->rows; i++) {
			size_t k = (size_t)i * s->coords + c;
			z[k] = (double)x[k] - y - s->mean[k];
		}
	}
}

static double square(const double *z, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += z[i] * z[i];
	return sum;
}

static void take_means(struct mw_passive *s, uint32_t from, uint32_t to)
{
	size_t floats = (size_t)s->rows * s->coords;
	double *sum = s->z[1], *y_mean = s->mean + floats;
	memset(s->mean, 0, (floats + s->coords) * sizeof(double));
	memset(sum, 0, floats * sizeof(double));
	for (uint32_t t = from; t < to; t++) {
		disagreement(s, t, s->z[0]);
		for (size_t k = 0; k < floats; k++)
			sum[k] += s->z[0][k] / (to - from);
		for (uint32_t c = 0; c < s->coords; c++)
			y_mean[c] += average(s, snapshot(s, t), c) / (to - from);
	}
	memcpy(s->mean, sum, floats * sizeof(double));
}

/* AR(1) coefficient of the average on each coordinate; marks the flatter half; returns that of the half. */
static double take_slopes(struct mw_passive *s, uint32_t from, uint32_t to, uint32_t hop)
{
	const double *y_mean = s->mean + (size_t)s->rows * s->coords;
	double *num = s->z[0], *den = s->z[1], top = 0, bottom = 0;
	memset(num, 0, s->coords * sizeof(double));
	memset(den, 0, s->coords * sizeof(double));
	for (uint32_t c = 0; c < s->coords; c++) {
		for (uint32_t t = from + hop; t < to; t++) {
			double now = average(s, snapshot(s, t), c) - y_mean[c];
			double last = average(s, snapshot(s, t - hop), c) - y_mean[c];
			num[c] += now * last;
			den[c] += last * last;
		}
		s->y_slope[c] = den[c] > 0 ? num[c] / den[c] : 0;
	}
	for (uint32_t c = 0; c < s->coords; c++) {
		uint32_t above = 0;
		for (uint32_t k = 0; k < s->coords; k++)
			above += s->y_slope[k] > s->y_slope[c] || (s->y_slope[k] == s->y_slope[c] && k < c);
		s->flat[c] = above < (s->coords + 1) / 2;
		top += s->flat[c] ? num[c] : 0;
		bottom += s->flat[c] ? den[c] : 0;
	}
	return bottom > 0 ? top / bottom : NAN;
}

static void add_outer(const struct mw_passive *s, const double *u, const double *v, double *c)
{
	for (uint32_t i = 0; i < s->rows; i++)
		for (uint32_t j = 0; j < s->rows; j++)
			for (uint32_t k = 0; k < s->coords; k++)
				if (s->flat[k])
					c[(size_t)i * s->rows + j] +=
						u[(size_t)i * s->coords + k] * v[(size_t)j * s->coords + k];
}

static void correlate(struct mw_passive *s, uint32_t from, uint32_t to, uint32_t hop)
{
	size_t cells = (size_t)s->rows * s->rows;
	memset(s->c0, 0, 2 * cells * sizeof(double)); /* and c1 behind it */
	for (uint32_t t = from + hop; t < to; t++) {
		disagreement(s, t - hop, s->z[0]);
		disagreement(s, t, s->z[1]);
		add_outer(s, s->z[0], s->z[0], s->c0);
		add_outer(s, s->z[1], s->z[0], s->c1);
	}
}

/* Spectral radius of C1 C0^+, the inverse on the directions that there are (never along pi). */
static double radius(struct mw_passive *s)
{
	size_t n = s->rows;
	if (!mix_eigen(s->rows, s->c0, s->values, true))
		return NAN;
	memset(s->inverse, 0, n * n * sizeof(double));
	for (size_t k = 0; k < n; k++) {
		const double *v = s->c0 + k * n;
		if (!(s->values[k] > SINGULAR * s->values[n - 1]))
			continue;
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				s->inverse[i * n + j] += v[i] * v[j] / s->values[k];
	}
	mix_multiply(s->rows, s->c1, s->inverse, s->a);
	return mix_radius(&s->space, s->a);
}

static double time_of(const struct mw_passive *s, double rho, uint32_t hop)
{
	return rho > 0 && rho < 1 ? (double)s->stride * hop * M_LN2 / -log(rho) : NAN;
}

/* t_1 from snapshots [from, to), each compared with the one `hop` before; NAN: not identified. */
static double first_moment(struct mw_passive *s, uint32_t from, uint32_t to, uint32_t hop)
{
	take_means(s, from, to);
	s->lambda_y = fmin(take_slopes(s, from, to, hop), 1);
	correlate(s, from, to, hop);
	s->raw = radius(s);
	s->rho = s->lambda_y > 0 ? s->raw / s->lambda_y : NAN;
	return time_of(s, s->rho, hop);
}

/* v^T C v with the symmetric part of C. */
static double form(uint32_t n, const double *c, const double *v)
{
	double sum = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			sum += v[i] * c[(size_t)i * n + j] * v[j];
	return sum;
}

/*
 * The direction u in which C1 is the largest against C0 (symmetric parts), of what `correlate` has left; returns
 * u^T C1 u / u^T C0 u. Destroys C0. NAN: none.
 */
static double slowest(struct mw_passive *s, double *u)
{
	uint32_t n = s->rows, m = 0;
	double *v = s->inverse; /* rows: eigenvectors of C0 over the roots of their eigenvalues */
	if (!mix_eigen(n, s->c0, s->values, true))
		return NAN;
	for (uint32_t k = 0; k < n; k++)
		if (s->values[k] > SINGULAR * s->values[n - 1]) {
			for (uint32_t i = 0; i < n; i++)
				v[(size_t)m * n + i] = s->c0[(size_t)k * n + i] / sqrt(s->values[k]);
			m++;
		}
	for (uint32_t k = 0; k < m; k++)
		for (uint32_t l = 0; l < m; l++) {
			double sum = 0;
			for (uint32_t i = 0; i < n; i++)
				for (uint32_t j = 0; j < n; j++)
					sum += v[(size_t)k * n + i] * v[(size_t)l * n + j] *
					       (s->c1[(size_t)i * n + j] + s->c1[(size_t)j * n + i]) / 2;
			s->a[(size_t)k * m + l] = sum;
		}
	if (!m || !mix_eigen(m, s->a, s->values, true))
		return NAN;
	memset(u, 0, n * sizeof(*u));
	for (uint32_t k = 0; k < m; k++)
		for (uint32_t i = 0; i < n; i++)
			u[i] += s->a[(size_t)(m - 1) * m + k] * v[(size_t)k * n + i];
	return s->values[m - 1];
}

/*
 * The slowest of several directions that are nearly as slow is chosen by chance too, so its radius is too large. By how
 * much at most shows where it is chosen on one half of the snapshots and valued on the other. Returns the logarithm of the
 * ratio, at least 0. All of it is luck where many directions are alike, since a wrong one of them is worth the same.
 */
static double optimism(struct mw_passive *s)
{
	uint32_t half = s->n / 2;
	double chosen, valued = 0;
	take_means(s, 0, s->n);
	take_slopes(s, 0, s->n, 1);
	correlate(s, 0, half, 1);
	if (isnan(slowest(s, s->u[0])))
		return 0;
	correlate(s, half, s->n, 1);
	valued += form(s->rows, s->c1, s->u[0]) / form(s->rows, s->c0, s->u[0]) / 2;
	if (isnan(slowest(s, s->u[1])))
		return 0;
	correlate(s, 0, half, 1);
	valued += form(s->rows, s->c1, s->u[1]) / form(s->rows, s->c0, s->u[1]) / 2;
	correlate(s, 0, s->n, 1);
	chosen = slowest(s, s->u[0]);
	return valued > 0 && chosen > valued ? log(chosen / valued) : 0;
}

/* By what factor a quarter of the snapshots gives a larger radius, as a logarithm. */
static double by_quarters(struct mw_passive *s)
{
	double sum = 0;
	take_means(s, 0, s->n);
	take_slopes(s, 0, s->n, 1); /* which coordinates are flat */
	correlate(s, 0, s->n, 1);
	double all = radius(s);
	for (uint32_t k = 0; k < 4; k++) {
		take_means(s, k * (s->n / 4), (k + 1) * (s->n / 4));
		correlate(s, k * (s->n / 4), (k + 1) * (s->n / 4), 1);
		sum += log(radius(s) / all) / 4;
	}
	return isfinite(sum) ? sum : 0;
}

/*
 * What to take off the logarithm of the radius. A third of the most where one direction stands out: half of the snapshots miss
 * it by about what they flatter it, and all of them flatter it half as much. Where directions are alike there is more luck,
 * and quarters show it: twice what they have more (found on copies of a server and complete graphs), another third of the
 * most at most. Where quarters have less it is what is lost by taking off means, which goes with the number: all of them lose
 * a fourth as much.
 */
static double surplus(struct mw_passive *s, double most)
{
	double more = by_quarters(s);
	return most / 3 + (more < 0 ? more / 3 : fmin(2 * more, most / 3));
}

/* Mean square disagreement of [from, to) with the mean of all taken off. */
static double energy(struct mw_passive *s, uint32_t from, uint32_t to)
{
	double sum = 0;
	for (uint32_t t = from; t < to; t++) {
		disagreement(s, t, s->z[0]);
		sum += square(s->z[0], (size_t)s->rows * s->coords);
	}
	return sum / (to - from);
}

static bool stationary(struct mw_passive *s)
{
	take_means(s, 0, s->n);
	double ratio = energy(s, 0, s->n / 2) / energy(s, s->n / 2, s->n);
	return ratio > 0.5 && ratio < 2;
}

/* Standard error, from contiguous parts: they are noisier than the whole by the root of their number. */
static double noise(struct mw_passive *s)
{
	double sum = 0, squares = 0;
	uint32_t n = 0, parts = s->n / PART_LEAST < PARTS ? s->n / PART_LEAST : PARTS;
	for (uint32_t k = 0; k < parts; k++) {
		double t = first_moment(s, s->n * k / parts, s->n * (k + 1) / parts, 1);
		if (isnan(t))
			continue;
		sum += t;
		squares += t * t;
		n++;
	}
	return n > 1 ? sqrt(fmax(squares / n - sum * sum / n / n, 0) / (n - 1)) : INFINITY;
}

/*
 * Two biases are taken off the value, and what is not sure of them goes into its error: that of a largest eigenvalue (a third
 * of what it may be at most in the error); and what the average's own autocorrelation says too much of curvature (half of
 * what it changes in the error). In an epoch every row comes once, so the noise of an epoch sums to nothing and the average
 * comes back to where it began, at an apparent rate of 3 over the epoch's length, curvature or not. If that explains all of
 * the correction, half of it is taken back. A third part of the error is the model's: half of what every other snapshot says
 * otherwise.
 */
static void correct(struct mw_passive *s, double twice, struct mw_estimate *out)
{
	double rho = s->rho, raw = s->raw, gone = 1 - s->lambda_y;
	double epochs = s->epoch ? fmin(1, 3 * (double)s->stride / (double)s->epoch / fmax(gone, 1e-12)) : 0;
	double chance = noise(s), most = optimism(s), o = exp(-surplus(s, most));
	double corrected = time_of(s, rho * o, 1), as_seen = time_of(s, raw * o, 1);
	double curvature = (corrected - as_seen) / 2;
	if (!isfinite(chance) || !isfinite(corrected) || !isfinite(as_seen)) {
		out->error = out->value;
		return;
	}
	double luck = (time_of(s, rho, 1) - time_of(s, rho * exp(-most), 1)) / 3,
	       misfit = (twice - time_of(s, rho, 1)) / 2;
	out->value = corrected - epochs * curvature;
	out->error = hypot(hypot(chance, luck), hypot(curvature, misfit));
}

/*
 * Over twice the stride the radius must be the square. It is not where exchanges follow each other in an order of their
 * own (workers in turn): one matrix per stride does not describe them.
 */
static void check_hop(double twice, struct mw_estimate *out)
{
	out->identified = twice > 0.7 * out->value && twice < 1.4 * out->value;
	if (!out->identified)
		snprintf(out->reason, sizeof(out->reason),
			"not identified: %.3g steps by neighbouring snapshots, %.3g by every other one: no "
			"single matrix fits",
			out->value, twice);
}

void mw_passive_estimate(struct mw_passive *s, struct mw_estimate *out)
{
	*out = mw_estimate_none(MW_TARGET_FIRST, s->n);
	if (s->n < FEWEST || (size_t)s->n * s->coords < 40 * (size_t)s->rows) {
		snprintf(out->reason, sizeof(out->reason),
			"%u snapshots of %u coordinates are too few for %u replicas", s->n, s->coords,
			s->rows);
		return;
	}
	if (!stationary(s)) {
		snprintf(out->reason, sizeof(out->reason),
			"disagreement is not stationary: the run is still on its way");
		return;
	}
	double twice = first_moment(s, 0, s->n, 2);
	out->value = first_moment(s, 0, s->n, 1);
	out->identified = isfinite(out->value);
	if (!out->identified)
		snprintf(out->reason, sizeof(out->reason),
			"not identified: disagreement does not fall faster than the average moves (curvature "
			"hides mixing)");
	else
		check_hop(twice, out);
	if (out->identified)
		correct(s, twice, out);
}

double mw_passive_s2f(struct mw_passive *s, uint32_t gradients)
{
	double noise = 0;
	for (uint32_t i = 1; i < s->rows; i++)
		if (fabs(s->pi[i] - s->pi[0]) > 1e-12)
			return NAN;
	if (s->n < FEWEST)
		return NAN;
	take_means(s, 0, s->n);
	for (uint32_t t = 1; t < s->n; t++)
		for (uint32_t c = 0; c < s->coords; c++) {
			double d = average(s, snapshot(s, t), c) - average(s, snapshot(s, t - 1), c);
			noise += d * d / (s->n - 1);
		}
	/* y moves by (1/n) of the sum of `gradients` updates a step: |d y|^2 = stride gradients alpha^2 sigma^2 / n^2 */
	noise *= (double)s->rows * s->rows / (double)s->stride / gradients;
	return energy(s, 0, s->n) / s->rows / noise;
}
