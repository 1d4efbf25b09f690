/* bound.c: theorems 1A to 4 of theory.md section 5 as numbers; see bound.h. */
#include "mixing/bound.h"

#include <math.h>

/*
 * Every bound is opt/(alpha T) + noise alpha + drift alpha^2 + constant (theory.md 5.2, "tuned step"); theorem 2 with
 * mu > 0 replaces 1/T by min(1/T, (1 - alpha mu/2)^T).
 */
struct form {
	double opt, noise, drift, constant, steps, mu, share; /* share: effective step / step */
};

static double optimization(const struct form *f, double alpha)
{
	double decay = f->mu > 0 ? exp(f->steps * log1p(-alpha * f->mu / 2)) : 1;
	return f->opt / alpha * fmin(1 / f->steps, decay);
}

static double value(const struct form *f, double alpha)
{
	return optimization(f, alpha) + f->noise * alpha + f->drift * alpha * alpha + f->constant;
}

/* min(alpha_max, sqrt(a/(bT)), (a/(eT))^(1/3)): within a factor of the best, and the form that section 5.2 states. */
static double tuned_step(const struct form *f, double most)
{
	double step = most;
	if (f->noise > 0)
		step = fmin(step, sqrt(f->opt / (f->noise * f->steps)));
	if (f->drift > 0)
		step = fmin(step, cbrt(f->opt / (f->drift * f->steps)));
	if (!isfinite(step))
		step = 1;
	if (f->mu <= 0)
		return step;
	double best = step; /* the linear rate can admit better ones: look along the logarithm */
	for (double a = most; a > most * 1e-9; a /= 1.01)
		if (value(f, a) < value(f, best))
			best = a;
	return best;
}

static int need(bool fine, const char *name, const char *what, struct mw_err *err)
{
	if (fine)
		return MW_OK;
	MW_FAIL(err, USAGE, "theorem %s needs %s", name, what);
}

static enum mw_lemma lemma_of(const struct mw_bound_input *in)
{
	if (in->lemma != MW_LEMMA_AUTO)
		return in->lemma;
	return in->theorem == MW_THEOREM_1A   ? MW_LEMMA_C1
	       : in->theorem == MW_THEOREM_1C ? MW_LEMMA_C5
					      : MW_LEMMA_C2;
}

/* A and B from what is given: themselves, delays, or the mixing time. */
static int constants(const struct mw_bound_input *in, struct mw_bound_result *r, struct mw_err *err)
{
	enum mw_lemma l = lemma_of(in);
	double t = in->t_mix, tr = t / in->workers, c = in->c_max > 0 ? in->c_max : in->workers - 1;
	if (in->theorem != MW_THEOREM_1B && l != lemma_of(&(struct mw_bound_input){ .theorem = in->theorem }))
		MW_FAIL(err, USAGE,
			"theorem %s goes with its own lemma; lemmas C2, C3 and C4 are choices of theorem 1B",
			r->name);
	if (in->a > 0 && in->b > 0) {
		r->a = in->a;
		r->b = in->b;
		return MW_OK;
	}
	if (l == MW_LEMMA_C4) {
		MW_TRY(need(in->tau_max >= 0 && in->tau_avg >= 0 && c >= 0, r->name,
			"delays for lemma C4: tau_avg, tau_max and workers (or c_max)", err));
		r->a = 2 * in->tau_avg;
		r->b = 2 * in->tau_max * c;
		return MW_OK;
	}
	MW_TRY(need(t >= 1, r->name, "the mixing time (at least 1), or both constants A and B", err));
	r->a = l == MW_LEMMA_C3 ? 4 * t : l == MW_LEMMA_C5 ? 8. / 3 * tr : 8. / 3 * t;
	r->b = l == MW_LEMMA_C3 ? 24 * t * t : l == MW_LEMMA_C5 ? 8. / 3 * tr + 8 * tr * tr : 8 * t * t;
	return MW_OK;
}

/* With A and B from t_mix the theorems state a rounder, slightly smaller step: that one is used. */
static double round_step(const struct mw_bound_input *in, double per_t, double otherwise)
{
	bool given = in->a > 0 && in->b > 0;
	return given || in->t_mix < 1 ? otherwise : 1 / (per_t * in->smoothness * in->t_mix);
}

static int theorem_1a(
	const struct mw_bound_input *in, struct form *f, struct mw_bound_result *r, struct mw_err *err)
{
	double l = in->smoothness;
	MW_TRY(need(in->workers >= 1, r->name, "the number of workers", err));
	MW_TRY(constants(in, r, err));
	f->opt = 2 * in->gap;
	f->noise = l * in->noise / in->workers;
	f->drift = 2 * l * l * (r->a * in->noise + 2 * r->b * in->heterogeneity);
	r->step_max = round_step(in, 6, fmin(1 / l, 1 / (2 * l * sqrt(r->b))));
	r->condition = "alpha <= 1/L and 4 alpha^2 L^2 B <= 1 (from t_mix: alpha <= 1/(6 L t_mix))";
	return MW_OK;
}

static int theorem_1b(
	const struct mw_bound_input *in, struct form *f, struct mw_bound_result *r, struct mw_err *err)
{
	double l = in->smoothness, c = in->share > 0 ? in->share : 1, t = INFINITY;
	enum mw_lemma lemma = lemma_of(in);
	MW_TRY(need(
		in->n_eff >= 1, r->name, "n_eff, at least 1 (1 for a server or one shared replica)", err));
	MW_TRY(need(in->heterogeneity == 0, r->name, "homogeneous data (zeta^2 = 0); see theorems 1A and 1C",
		err));
	MW_TRY(constants(in, r, err));
	f->share = c;
	f->opt = 3 * in->gap / c;
	f->noise = 1.5 * l * c * in->noise / in->n_eff;
	f->drift = 2 * l * l * r->a * in->noise;
	if (r->b > 0)
		t = 1 / (l * sqrt(8 * r->b));
	if (lemma != MW_LEMMA_C4)
		t = round_step(in, lemma == MW_LEMMA_C3 ? 14 : 8, t);
	r->step_max = fmin(t, 1 / (l * c));
	r->condition = "alpha c <= 1/L and 8 alpha^2 L^2 B <= 1 (from t_mix: alpha <= 1/(8 L t_mix), C3: "
		       "1/(14 L t_mix))";
	return MW_OK;
}

/*
 * Lemma C5 takes the worker i_t and the matrix W_t independent. In real AD-PSGD the averaged edge ends at the worker that
 * acts. That is covered: the exchange comes first, X_{t+1} = W_t X_t - alpha e_i g^T, so the update of step s is carried
 * on by Phi(t,s+1) = W_{t-1} ... W_{s+1} only, which is independent of (i_s, W_s) as long as the pairs (i_t, W_t) are
 * independent over time; and the mean of e_i g^T given X_s needs only that i_s is uniform and independent of X_s. The
 * proof uses W_s with U_s nowhere else.
 */
static int theorem_1c(
	const struct mw_bound_input *in, struct form *f, struct mw_bound_result *r, struct mw_err *err)
{
	double l = in->smoothness, n = in->workers, z = 3 * in->heterogeneity;
	MW_TRY(need(n >= 1, r->name, "the number of workers", err));
	MW_TRY(constants(in, r, err));
	f->opt = 6 * in->gap * n;
	f->noise = 3 * l / n * (in->noise + z);
	f->drift = 5 * l * l * (r->a * in->noise + r->b * z);
	r->step_max = fmin(n / (12 * l), 1 / (l * sqrt(12 * r->b)));
	r->condition = "alpha/n <= 1/(12 L) and 12 alpha^2 L^2 B <= 1";
	return MW_OK;
}

static int theorem_2(
	const struct mw_bound_input *in, struct form *f, struct mw_bound_result *r, struct mw_err *err)
{
	double l = in->smoothness, t = in->t_mix;
	MW_TRY(need(
		in->n_eff >= 1, r->name, "n_eff, at least 1 (the number of workers under a barrier)", err));
	MW_TRY(need(t >= 1, r->name, "the mixing time, at least 1", err));
	MW_TRY(need(in->convexity >= 0 && in->convexity <= l, r->name, "mu between 0 and L", err));
	f->opt = 2 * in->gap;
	f->noise = 2 * in->noise / in->n_eff;
	f->drift = 10 * l * (8. / 3 * t * in->noise + 33.6 * t * t * in->heterogeneity);
	f->mu = in->convexity;
	r->step_max = 1 / (26 * l * t);
	r->condition = "alpha <= 1/(26 L t_mix)";
	r->left_side = "E f(weighted mean of y) - f*";
	return MW_OK;
}

/* |s m| <= R for any gradients within G: from eps, or from v >= (1 - b2) g^2 and Cauchy-Schwarz on m (5.4). */
static double update_bound(const struct mw_bound_input *in, double b1)
{
	double most = in->clip / in->eps, b2 = in->beta2;
	if (b1 * b1 < b2)
		most = fmin(most, fmax(1 / sqrt(1 - b2), (1 - b1) / sqrt((1 - b2) * (1 - b1 * b1 / b2))));
	return sqrt(in->dim) * most;
}

static int adaptive(
	const struct mw_bound_input *in, struct form *f, struct mw_bound_result *r, struct mw_err *err)
{
	bool ams = in->theorem == MW_THEOREM_3;
	double l = in->smoothness, g = in->clip, e = in->eps, b1 = ams ? in->beta1 : 0, q = b1 / (1 - b1),
	       d = in->dim;
	MW_TRY(need(g > 0 && d >= 1 && e > 0, r->name, "G > 0, dim >= 1 and eps > 0", err));
	MW_TRY(need(b1 >= 0 && b1 < 1 && in->beta2 >= 0 && in->beta2 < 1, r->name,
		"beta1 and beta2 in [0, 1)", err));
	MW_TRY(need(in->s1 > 0 || in->t_mix >= 1, r->name, "S1 or the mixing time", err));
	MW_TRY(need(in->heterogeneity == 0, r->name, "homogeneous data (zeta^2 = 0)", err));
	double c0 = sqrt(1 - in->beta2) * g / e, scale = 2 * (g + e),
	       s = (r->s1 = in->s1 > 0 ? in->s1 : 2 * in->t_mix - 1) + q;
	if (!ams)
		MW_TRY(need(c0 <= 0.5, r->name, "sqrt(1 - beta2) G / eps <= 1/2: raise beta2 or eps", err));
	r->r = update_bound(in, b1);
	f->opt = scale * in->gap;
	f->drift = scale * l * l * r->r * r->r * s * s / (2 * e);
	f->noise = scale * l * r->r * r->r / (ams ? 1 : 2);
	f->constant = scale * c0 * in->noise / e;
	if (ams) {
		f->noise += scale * l * q * q * g * g * d / (e * e * in->steps);
		f->constant = scale * g * g * d / (e * (1 - b1) * in->steps);
	}
	r->step_max = INFINITY;
	r->condition = ams ? "any alpha" : "any alpha; sqrt(1 - beta2) G / eps <= 1/2";
	if (ams)
		r->left_side = "(1/T) sum E|grad f(z)|^2";
	return MW_OK;
}

static const char *const names[] = { "1A", "1B", "1C", "2", "3", "4" };

int mw_bound_evaluate(const struct mw_bound_input *in, struct mw_bound_result *out, struct mw_err *err)
{
	static int (*const theorem[])(const struct mw_bound_input *, struct form *, struct mw_bound_result *,
		struct mw_err *) = { theorem_1a, theorem_1b, theorem_1c, theorem_2, adaptive, adaptive };
	struct form f = { .steps = in->steps, .share = 1 };
	*out = (struct mw_bound_result){
		.a = NAN, .b = NAN, .s1 = NAN, .r = NAN, .name = names[in->theorem]
	};
	out->left_side = "(1/T) sum E|grad f(y)|^2";
	MW_TRY(need(in->smoothness > 0 && isfinite(in->smoothness), out->name, "a smoothness L > 0", err));
	MW_TRY(need(in->gap > 0 && in->steps >= 1, out->name, "Delta > 0 and T >= 1", err));
	MW_TRY(need(
		in->noise >= 0 && in->heterogeneity >= 0, out->name, "sigma^2 >= 0 and zeta^2 >= 0", err));
	MW_TRY(need(in->step >= 0, out->name, "a step > 0", err));
	MW_TRY(theorem[in->theorem](in, &f, out, err));
	out->tuned = in->step == 0;
	out->step = out->tuned ? tuned_step(&f, out->step_max) : in->step;
	out->effective_step = out->step * (in->theorem == MW_THEOREM_1C ? 1 / in->workers : f.share);
	out->admissible = out->step <= out->step_max * (1 + 1e-12);
	out->opt_term = optimization(&f, out->step);
	out->noise_term = f.noise * out->step;
	out->drift_term = f.drift * out->step * out->step;
	out->constant_term = f.constant;
	out->bound = out->admissible ? value(&f, out->step) : NAN;
	return MW_OK;
}

double mw_bound_delay_limit(double tau)
{
	return 2 * sin(M_PI / (2 * (2 * tau + 1)));
}
