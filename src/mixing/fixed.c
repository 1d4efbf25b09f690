/* fixed.c: the mixing time of one matrix W applied at every step: by its spectrum, or by squaring and binary lifting. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

#define MAX_SQUARINGS 44 /* 2^44 > MIX_MAX_STEPS */

/* lambda_j^k = exp(k log_mod[j]) at angle k arg[j]; j = 0 is the eigenvalue 1 that pi takes away. */
struct spectrum {
	uint32_t n;
	double *log_mod, *arg, *cosine, *sine;
	double *re, *im; /* scratch: lambda_j^k */
	double log_rho, s2f;
};

static double power(const void *context, double k)
{
	return exp(k * ((const struct spectrum *)context)->log_rho);
}

/* TV of a circulant: half the l1 norm of the inverse transform of the lambda_j^k, j > 0. */
static double circulant_tv(const void *context, double k)
{
	const struct spectrum *s = context;
	double sum = 0;
	for (uint64_t j = 1; j < s->n; j++) {
		double mod = exp(k * s->log_mod[j]);
		bool real = s->arg[j] == 0 || s->arg[j] == M_PI; /* the turn of M_PI is not quite a half */
		double odd = fmod(k, 2) != 0 ? -1 : 1;
		s->re[j] = mod * (!real ? cos(k * s->arg[j]) : s->arg[j] == 0 ? 1 : odd);
		s->im[j] = real ? 0 : mod * sin(k * s->arg[j]);
	}
	for (uint64_t m = 0; m < s->n; m++) {
		double c = 0;
		for (uint64_t j = 1, at = m; j < s->n; j++, at = at + m < s->n ? at + m : at + m - s->n)
			c += s->re[j] * s->cosine[at] - s->im[j] * s->sine[at];
		sum += fabs(c);
	}
	return sum / s->n / 2;
}

static bool is_uniform(const double *pi, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (fabs(pi[i] * n - 1) > 1e-9)
			return false;
	return true;
}

static bool is_circulant(const double *w, uint32_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (fabs(w[i * n + (i + j) % n] - w[j]) > 1e-14)
				return false;
	return true;
}

static bool is_symmetric(const double *w, uint32_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (fabs(w[i * n + j] - w[j * n + i]) > 1e-14)
				return false;
	return true;
}

static int spectrum_circulant(struct spectrum *s, const double *row, uint32_t n, struct mw_err *err)
{
	*s = (struct spectrum){ .n = n, .log_rho = -INFINITY };
	s->log_mod = mw_alloc_array(6 * (size_t)n, sizeof(double), "spectrum", err);
	if (!s->log_mod)
		return MW_ERESOURCE;
	s->arg = s->log_mod + n;
	s->cosine = s->arg + n;
	s->sine = s->cosine + n;
	s->re = s->sine + n;
	s->im = s->re + n;
	for (uint32_t m = 0; m < n; m++) {
		s->cosine[m] = cos(2 * M_PI * m / n);
		s->sine[m] = sin(2 * M_PI * m / n);
	}
	for (uint64_t j = 1; j < n; j++) {
		double re = 0, im = 0;
		for (uint64_t m = 0; m < n; m++)
			if (row[m] != 0) {
				re += row[m] * s->cosine[j * m % n];
				im -= row[m] * s->sine[j * m % n];
			}
		double mod = hypot(re, im);
		s->log_mod[j] = mod > 1e-15 ? log(mod) : -INFINITY;
		s->arg[j] = fabs(im) < 1e-15 ? (re < 0 ? M_PI : 0) : atan2(im, re);
		s->log_rho = fmax(s->log_rho, s->log_mod[j]);
		s->s2f += mod * mod / (1 - mod * mod) / n;
	}
	return MW_OK;
}

static double log_rho_symmetric(const struct mix_space *s, const double *e, double *s2f)
{
	memcpy(s->a, e, (size_t)s->n * s->n * sizeof(*e));
	if (!mix_eigen(s->n, s->a, s->b, false))
		return NAN;
	*s2f = 0;
	for (uint32_t i = 0; i < s->n; i++)
		*s2f += s->b[i] * s->b[i] / (1 - s->b[i] * s->b[i]) / s->n;
	double rho = fmax(fabs(s->b[0]), fabs(s->b[s->n - 1]));
	return rho > 1e-15 ? log(rho) : -INFINITY;
}

static void say_never(struct mw_mixing_result *r, const char *why)
{
	r->mixes = false;
	r->t_mix = NAN;
	snprintf(r->reason, sizeof(r->reason), "never mixes: %s", why);
}

static void say_swaps(struct mw_mixing_result *r)
{
	say_never(r, "W has a second eigenvalue of modulus 1 (disconnected, or rows that swap)");
}

/* Does W (deflated: E) never stretch a vector? Then d2 can't rise, and lifting finds the first crossing. */
static bool contracts(const struct mix_law *law, const struct mix_space *s, const double *e)
{
	return law->norm == MW_NORM_TV || mix_l2_within(s, e, 1 + 1e-12);
}

/* The first k <= last with d(E^k) within the threshold, one by one: for a d2 that may rise first. */
static double scan(struct mix_law *law, const struct mix_space *s, const double *e, double last,
	double **work, struct mw_mixing_result *r)
{
	double *a = work[0], *b = work[1], cost = 3.0 * law->rows * law->rows * law->rows;
	memcpy(a, e, (size_t)law->rows * law->rows * sizeof(*e));
	for (double k = 1; k < last; k++) {
		if (mix_within(law, s, a))
			return k;
		if (!mix_spend(law, cost, r))
			return NAN;
		mix_multiply(law->rows, e, a, b);
		memcpy(a, b, (size_t)law->rows * law->rows * sizeof(*e));
	}
	return last;
}

/* theory.md 2.3 (a). p[j] = E^(2^j); the answer's binary digits from the top. */
static double lift(
	struct mix_law *law, const struct mix_space *s, double **p, uint32_t top, double *acc, double *tmp)
{
	size_t bytes = (size_t)law->rows * law->rows * sizeof(double);
	double t = ldexp(1, (int)top - 1);
	if (!top)
		return 1;
	memcpy(acc, p[top - 1], bytes);
	for (int j = (int)top - 2; j >= 0; j--) {
		mix_multiply(law->rows, p[j], acc, tmp);
		if (!mix_within(law, s, tmp)) {
			memcpy(acc, tmp, bytes);
			t += ldexp(1, j);
		}
	}
	return t + 1;
}

static int by_squaring(struct mix_law *law, const struct mix_space *s, const double *e,
	struct mw_mixing_result *r, struct mw_err *err)
{
	double *p[MAX_SQUARINGS + 2] = { 0 }, *work[2] = { 0 };
	size_t cells = (size_t)law->rows * law->rows;
	double cost = 3.0 * law->rows * cells;
	uint32_t top = 0;
	int ret = MW_ERESOURCE;
	for (int i = 0; i < 2; i++)
		if (!(work[i] = mw_alloc_array(cells, sizeof(double), "powers of W", err)))
			goto out;
	for (;; top++) {
		if (!(p[top] = mw_alloc_array(cells, sizeof(double), "powers of W", err)))
			goto out;
		if (top)
			mix_multiply(law->rows, p[top - 1], p[top - 1], p[top]);
		else
			memcpy(p[0], e, cells * sizeof(*e));
		if (mix_within(law, s, p[top]))
			break;
		if (top == MAX_SQUARINGS) {
			say_never(r, "powers of W stay apart (disconnected, or rows that swap)");
			ret = MW_OK;
			goto out;
		}
		if (!mix_spend(law, 2 * cost, r)) {
			ret = MW_OK;
			goto out;
		}
	}
	r->t_mix = lift(law, s, p, top, work[0], work[1]);
	if (!contracts(law, s, e))
		r->t_mix = scan(law, s, e, r->t_mix, work, r);
	r->mixes = isfinite(r->t_mix);
	ret = MW_OK;
out:
	for (uint32_t i = 0; i <= top && i <= MAX_SQUARINGS; i++)
		mw_free(p[i]);
	mw_free(work[0]);
	mw_free(work[1]);
	return ret;
}

/* S1, S2 power by power, until d has become geometric; then the rest in closed form. */
static int sums_by_powers(struct mix_law *law, const struct mix_space *s, const double *e,
	struct mw_mixing_result *r, struct mw_err *err)
{
	size_t cells = (size_t)law->rows * law->rows;
	double *a = mw_alloc_array(2 * cells, sizeof(double), "powers of W", err), *b = a + cells;
	double last = 0, ratio = 0, s1 = 0, s2 = 0;
	int steady = 0;
	if (!a)
		return MW_ERESOURCE;
	memcpy(a, e, cells * sizeof(*e));
	for (double k = 1; mix_spend(law, 6.0 * law->rows * cells, r); k++) {
		double d = mix_distance(law, s, a), now = last > 0 ? d / last : 0;
		s1 += d;
		s2 += d * d;
		steady = fabs(now - ratio) < 1e-11 && now < 1 ? steady + 1 : 0;
		if (d < 1e-14 || steady >= 50) {
			if (d >= 1e-14) {
				s1 += d * now / (1 - now);
				s2 += d * d * now * now / (1 - now * now);
			}
			r->s1 = s1;
			r->s2 = s2;
			break;
		}
		last = d;
		ratio = now;
		mix_multiply(law->rows, e, a, b);
		memcpy(a, b, cells * sizeof(*e));
	}
	mw_free(a);
	return MW_OK;
}

/* A value from the spectrum of a normal W: d2(k) = rho^k; a circulant's TV from all eigenvalues. */
static void by_spectrum(const struct mix_law *law, struct spectrum *s, struct mw_mixing_result *r)
{
	mix_curve *d = law->norm == MW_NORM_TV ? circulant_tv : power;
	r->t_mix = mix_crossing(d, s, law->threshold);
	r->mixes = isfinite(r->t_mix);
	r->method = law->norm == MW_NORM_TV ? "spectrum of a circulant W" : "spectrum of a normal W";
	if (law->sums && law->norm == MW_NORM_TV)
		mix_series(d, s, 20.0 * s->n * s->n, &r->s1, &r->s2);
	if (law->sums && law->norm == MW_NORM_L2) {
		double rho = exp(s->log_rho);
		r->s1 = rho / -expm1(s->log_rho);
		r->s2 = rho * rho / -expm1(2 * s->log_rho);
	}
}

static void tell_spectrum(
	const struct mix_law *law, const struct spectrum *s, bool normal, struct mw_mixing_result *r)
{
	if (r->mixes && law->sums && !isnan(s->log_rho))
		r->t_inf = r->t_1 = r->lambda2 > 1e-12 ? M_LN2 / -s->log_rho : 0;
	r->s2f = r->mixes && normal ? s->s2f : NAN;
	r->t_q = r->t_mix;
}

static int with_space(struct mix_law *law, const double *w, const struct mix_space *sp, double *e,
	struct mw_mixing_result *r, struct mw_err *err)
{
	uint32_t n = law->rows;
	struct spectrum s = { .log_rho = NAN };
	bool uniform = is_uniform(law->pi, n), circulant = uniform && is_circulant(w, n);
	bool symmetric = uniform && is_symmetric(w, n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			e[(size_t)i * n + j] = w[(size_t)i * n + j] - law->pi[j];
	if (circulant)
		MW_TRY(spectrum_circulant(&s, w, n, err));
	else if (symmetric)
		s.log_rho = log_rho_symmetric(sp, e, &s.s2f);
	else if (law->sums)
		s.log_rho = log(mix_radius(sp, e));
	if (!law->sums || isnan(s.log_rho))
		r->lambda2 = NAN;
	else
		r->lambda2 = exp(s.log_rho);
	if (s.log_rho > -1e-14) {
		say_swaps(r);
	} else if (circulant || (symmetric && law->norm == MW_NORM_L2)) {
		by_spectrum(law, &s, r);
	} else {
		r->method = "deflated squaring and binary lifting";
		int ret = by_squaring(law, sp, e, r, err);
		if (!ret && r->mixes && law->sums)
			ret = sums_by_powers(law, sp, e, r, err);
		MW_TRY(ret);
	}
	mw_free(s.log_mod);
	tell_spectrum(law, &s, circulant || symmetric, r);
	return MW_OK;
}

/* The first row of a plan that is the same for every row but for a turn; false: it is none. O(sources). */
static bool circulant_plan(const struct mix_law *law, double *row)
{
	const struct mw_plan *p = law->plan[0];
	uint32_t n = law->rows;
	if (p->n_rows != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct mw_plan_row *r = &p->row[i], *first = &p->row[0];
		double sign = i ? -1 : 1, off = 0;
		for (uint32_t k = r->first; k < r->first + r->n; k++)
			row[(p->src[k] + n - r->dst) % n] += sign * law->gamma * p->weight[k];
		/* what is left of the first one must be nothing; then it is put back */
		for (uint32_t k = first->first; i && k < first->first + first->n; k++)
			off = fmax(off, fabs(row[(p->src[k] + n - first->dst) % n]));
		for (uint32_t k = r->first; k < r->first + r->n; k++) {
			double *at = &row[(p->src[k] + n - r->dst) % n];
			off = i ? fmax(off, fabs(*at)) : 0;
			*at += i ? law->gamma * p->weight[k] : 0;
		}
		if (off > 1e-14)
			return false;
	}
	row[0] += 1 - law->gamma;
	return true;
}

int mix_circulant(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err)
{
	struct spectrum s;
	double *row = mw_alloc_array(law->rows, sizeof(*row), "mixing matrix", err);
	*done = false;
	if (!row)
		return MW_ERESOURCE;
	if (!is_uniform(law->pi, law->rows) || !circulant_plan(law, row)) {
		mw_free(row);
		return MW_OK;
	}
	*done = true;
	int ret = spectrum_circulant(&s, row, law->rows, err);
	mw_free(row);
	if (ret)
		return ret;
	r->lambda2 = law->sums ? exp(s.log_rho) : NAN;
	if (s.log_rho > -1e-14)
		say_swaps(r);
	else
		by_spectrum(law, &s, r);
	mw_free(s.log_mod);
	tell_spectrum(law, &s, true, r);
	return MW_OK;
}

int mix_fixed(struct mix_law *law, const double *w, struct mw_mixing_result *r, struct mw_err *err)
{
	struct mix_space sp;
	double *e = mw_alloc_array((size_t)law->rows * law->rows, sizeof(double), "mixing matrix", err);
	int ret = MW_ERESOURCE;
	if (!e)
		return ret;
	ret = mix_space_init(&sp, law->rows, law->pi, err);
	if (!ret)
		ret = with_space(law, w, &sp, e, r, err);
	mix_space_fini(&sp);
	mw_free(e);
	return ret;
}
