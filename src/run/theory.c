/* theory.c: see theory.h. */
#include "run/theory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/theory_impl.h"
#include "run/tmix_of_run.h"

/* Operations: for L with --bound, for L of any run, and for t_mix in another norm than the run reports. */
#define WORK       2e9
#define WORK_CHEAP 3e7
#define WORK_TMIX  3e8
/* Rows whose own gradients give sigma^2, at most. */
enum { NOISE_ROWS = 2048 };

struct mw_theory {
	double l, limit, delta;      /* L, G, f(x_0) - f* */
	double noise, heterogeneity; /* sigma^2 of a batch, zeta^2: the largest seen */
	double sum; /* of |grad f|^2 over native steps, by the trapezoids between evaluations */
	double last;
	uint32_t n;
	double steps;   /* native, as of the last evaluation */
	double *g, *gi; /* dim: gradient of all, and of a worker's part */
};

/* --- which theorem ------------------------------------------------------------------------------------------------- */

static bool one_push_row(const struct mw_protocol *p)
{
	for (uint32_t w = 1; w < p->workers; w++)
		if (p->push_row[w] != p->push_row[0])
			return false;
	return true;
}

/* Writes that a view missed. Real threads: of the samples. */
static void delays(const struct mw_run *run, struct mw_bound_input *in)
{
	struct mw_err err = { 0 };
	struct mw_hist *h = mw_record_staleness(run, &err);
	bool once = run->pool_n == 1 && run->knobs.mix_every == 1 && !run->timeline &&
		    run->protocol->due != MW_DUE_SSP;
	in->lemma = MW_LEMMA_C4;
	in->tau_avg = h && h->n ? h->sum / (double)h->n : 0;
	in->tau_max = h ? (double)h->max : 0;
	/* a view that is used once: at most one use of every other worker misses a write; else those of tau_max steps */
	in->c_max = once ? 0 : in->tau_max;
	mw_free(h);
}

static double t_mix(const struct mw_run *run, enum mw_norm norm, struct mw_mixing_result *r)
{
	struct mw_err err = { 0 };
	if (mw_tmix_exact_norm(run, norm, WORK_TMIX, r, &err) || !r->mixes || r->bound)
		return NAN;
	return r->t_mix;
}

static const char *sgd_by_events(const struct mw_run *run, struct mw_bound_input *in)
{
	const struct mw_protocol *p = run->protocol;
	struct mw_mixing_result r = { 0 };
	bool gossip = p->ops->default_graph, before = run->opt->mix_order == MW_MIX_BEFORE,
	     turn = run->activation == MW_ACT_RR;
	in->theorem = MW_THEOREM_1B;
	in->share = mw_effective_share(run);
	in->n_eff = 1;
	if (one_push_row(p)) {
		delays(run, in);
		return NULL;
	}
	if (run->pool_n > 1)
		return "delayed pushes to replicas of their own are under no theorem here";
	if (gossip && before && !turn) {
		in->theorem = MW_THEOREM_1C;
		in->t_mix = t_mix(run, MW_NORM_L2, &r);
		return isnan(in->t_mix) ? "t_mix is not known exactly" : NULL;
	}
	if (before)
		return "exchange before gradient: theorem 1C wants pairwise gossip of random workers";
	if (!turn && (!gossip || run->knobs.mix_every > 1))
		return "workers' own counters make exchanges depend on each other: --activation rr has a "
		       "bound";
	in->lemma = turn ? MW_LEMMA_C2 : MW_LEMMA_C3;
	in->t_mix = t_mix(run, MW_NORM_TV, &r);
	if (p->signed_plan && isfinite(r.s1) && isfinite(r.s2) && r.s1 > 0) {
		in->a = 2 * r.s2; /* blocks of t_mix need weights that are not negative */
		in->b = 2 * r.s1 * r.s1;
	} else if (p->signed_plan) {
		return "the sums over signed plans are not known";
	}
	return isnan(in->t_mix) ? "t_mix is not known exactly" : NULL;
}

static const char *adaptive(const struct mw_run *run, struct mw_bound_input *in)
{
	struct mw_mixing_result r = { 0 };
	bool ams = !strcmp(run->optim->ops->name, "amsgrad"), round = run->protocol->clock == MW_CLOCK_ROUND;
	in->theorem = ams ? MW_THEOREM_3 : MW_THEOREM_4;
	in->beta1 = ams ? mw_theory_option(run, "beta1") : 0;
	in->beta2 = mw_theory_option(run, "beta2");
	in->eps = mw_theory_option(run, "eps");
	in->dim = (double)run->model->dim;
	if (run->optim->needs_x || (!ams && mw_theory_option(run, "momentum") > 0))
		return "theorems 3 and 4 know no weight decay, and theorem 4 no momentum";
	if (ams && mw_theory_option(run, "bias-correction") != 0)
		return "theorem 3 is for AMSGrad without bias correction: --no-bias-correction";
	if (!round && (run->state != MW_STATE_SHARED || !one_push_row(run->protocol)))
		return "theorems 3 and 4 want all workers in every round, or one state at the server "
		       "(--state shared)";
	if (round) {
		in->t_mix = t_mix(run, MW_NORM_L2, &r);
		return isnan(in->t_mix) ? "t_mix is not known exactly" : NULL;
	}
	delays(run, in);
	in->s1 = fmax(in->tau_max, 1);
	return NULL;
}

/* Everything but L, G, Delta, sigma^2, zeta^2 and T. Returns NULL, or why no theorem covers the run. */
static const char *choose(const struct mw_run *run, struct mw_bound_input *in)
{
	struct mw_mixing_result r = { 0 };
	const char *optim = run->optim->ops->name;
	*in = (struct mw_bound_input){ .workers = run->n_workers };
	if (run->steer || run->timeline)
		return "the knobs change during the run";
	if (!strcmp(optim, "amsgrad") || !strcmp(optim, "rmsprop"))
		return adaptive(run, in);
	if (!run->optim->plain)
		return "theorems 1A to 1C are for SGD without momentum or weight decay, 3 for amsgrad, 4 for "
		       "rmsprop";
	if (run->protocol->clock == MW_CLOCK_EVENT)
		return sgd_by_events(run, in);
	if (run->pool_n > 1)
		return "delayed pushes to replicas of their own are under no theorem here";
	/* exchange before gradient: the sums then begin at k = 0, and keep within (4/3) t_mix and 2 t_mix */
	in->theorem = MW_THEOREM_1A;
	in->t_mix = t_mix(run, MW_NORM_L2, &r);
	return isnan(in->t_mix) ? "t_mix is not known exactly" : NULL;
}

/* --- constants from gradients -------------------------------------------------------------------------------------- */

static double dot(const double *a, const double *b, size_t n)
{
	double s = 0;
	for (size_t i = 0; i < n; i++)
		s += a[i] * b[i];
	return s;
}

/* sigma^2 of one row of rows[lo..hi-1] about the mean gradient g of these rows. */
static double row_noise(
	struct mw_run *run, const struct mw_rows *rows, uint64_t lo, uint64_t hi, const double *g)
{
	uint64_t stride = (hi - lo) / NOISE_ROWS + 1;
	double sum = 0, n = 0;
	for (uint64_t i = lo; i < hi; i += stride, n++)
		sum += mw_gradient_square(run, mw_rows_at(rows, i));
	/* of a sample of rows the mean square, less that of the mean: not below what rounding leaves */
	return fmax(0, sum / n - dot(g, g, run->model->dim));
}

/* At the average of the last evaluation: the gradient of all rows, sigma^2 and zeta^2. */
static void measure(struct mw_run *run, struct mw_theory *t)
{
	size_t dim = run->model->dim;
	bool own = mw_own_rows(run);
	double noise = 0, apart = 0;
	mw_gradient_mean(run, &run->rows, 0, run->rows.n, t->g);
	t->last = dot(t->g, t->g, dim);
	if (!own)
		noise = row_noise(run, &run->rows, 0, run->rows.n, t->g);
	for (uint32_t w = 0; own && w < run->n_workers; w++) {
		uint64_t lo, hi;
		const struct mw_rows *rows = mw_order_own(&run->worker[w]->order, &lo, &hi);
		mw_gradient_mean(run, rows, lo, hi, t->gi);
		noise = fmax(noise, row_noise(run, rows, lo, hi, t->gi));
		for (size_t i = 0; i < dim; i++)
			apart += (t->gi[i] - t->g[i]) * (t->gi[i] - t->g[i]) / run->n_workers;
	}
	t->noise = fmax(t->noise, noise / run->batch);
	t->heterogeneity = fmax(t->heterogeneity, apart);
}

/* f(x_0) - f*, at x_0. */
static double gap(const struct mw_run *run, const struct mw_theory *t, double loss)
{
	const struct mw_dataset *d = run->train;
	double sum = 0;
	if (d->kind != MW_X_QUADRATIC)
		return loss; /* losses and penalties are at least 0 */
	for (uint32_t i = 0; i < d->features; i++)
		sum += t->g[i] * t->g[i] / (2 * (double)d->curvature[i]);
	return sum;
}

int mw_theory_evaluated(struct mw_run *run, const struct mw_evaluation *e, struct mw_err *err)
{
	struct mw_theory *t = run->theory;
	if (!t)
		return 0;
	bool round = run->protocol->clock == MW_CLOCK_ROUND;
	double before = t->last, since = t->steps;
	measure(run, t);
	t->steps = round ? (double)e->steps / run->n_workers : (double)mw_total_pushes(run);
	t->sum += (before + t->last) / 2 * (t->steps - since);
	if (t->n++)
		return 0;
	t->delta = gap(run, t, e->train_loss);
	t->limit = mw_gradient_limit(run);
	return mw_smoothness(run, WORK, &t->l, err);
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

int mw_theory_new(struct mw_run *run, struct mw_err *err)
{
	if (!run->opt->bound)
		return 0;
	if (run->opt->eval_rows)
		MW_FAIL(err, USAGE, "--bound measures the gradient over all rows: leave out --eval-rows");
	if (run->opt->resume)
		MW_FAIL(err, USAGE,
			"--bound is about the gradients of a whole run: it can't begin in the middle "
			"(--resume)");
	struct mw_theory *t = run->theory = mw_alloc(sizeof(*t), "the bound", err);
	if (!t)
		return err->code;
	t->g = mw_alloc_array(2 * run->model->dim, sizeof(double), "gradients for the bound", err);
	if (!t->g)
		return err->code;
	t->gi = t->g + run->model->dim;
	return 0;
}

void mw_theory_free(struct mw_theory *t)
{
	if (t)
		mw_free(t->g);
	mw_free(t);
}

/* --- what is told -------------------------------------------------------------------------------------------------- */

static double step_of(const struct mw_run *run)
{
	return (double)mw_rate_begin(run->rate, run->opt->epochs);
}

/* Fill in the estimated constants and evaluate. Returns NULL, or why there is no bound (the step is checked all the same). */
static const char *evaluate(
	const struct mw_run *run, struct mw_bound_input *in, struct mw_bound_result *out, struct mw_err *err)
{
	const struct mw_theory *t = run->theory;
	const char *reason = choose(run, in);
	bool adapts = in->theorem == MW_THEOREM_3 || in->theorem == MW_THEOREM_4;
	if (reason)
		return reason;
	in->smoothness = t->l;
	in->gap = t->delta;
	in->noise = t->noise;
	in->heterogeneity = t->heterogeneity;
	in->clip = t->limit;
	in->steps = fmax(t->steps, 1);
	in->step = step_of(run);
	if (isnan(t->l))
		return "L is not known for this model";
	if (adapts && isnan(t->limit))
		return "this model's gradients have no limit G";
	if (mw_bound_evaluate(in, out, err))
		return err->msg;
	if (!mw_rate_is_constant(run->rate))
		return "the rate is not constant";
	return out->admissible ? NULL : "the step is larger than the theorem admits";
}

/* Theorem 3 bounds the gradient at z; |grad f(y)|^2 <= 2 |grad f(z)|^2 + 2 L^2 q^2 alpha^2 R^2. */
static double bound_at_average(const struct mw_bound_input *in, const struct mw_bound_result *r)
{
	double q = in->beta1 / (1 - in->beta1);
	if (in->theorem != MW_THEOREM_3)
		return r->bound;
	return 2 * r->bound + 2 * pow(in->smoothness * q * in->step * r->r, 2);
}

json_t *mw_theory_json(struct mw_run *run)
{
	const struct mw_theory *t = run->theory;
	struct mw_bound_input in;
	struct mw_bound_result r = { .step_max = NAN };
	struct mw_err err = { 0 };
	const char *reason = evaluate(run, &in, &r, &err);
	double bound = reason ? NAN : bound_at_average(&in, &r),
	       measured = t->steps > 0 ? t->sum / t->steps : NAN;
	bool lemma4 = !reason && in.lemma == MW_LEMMA_C4;
	return json_pack("{so so so so sf so so sf so sf sf sf so so so so}", "theorem",
		r.name ? json_string(r.name) : json_null(), "bound", mw_json_number(bound), "measured",
		mw_json_number(measured), "ratio", mw_json_number(measured / bound), "step", step_of(run),
		"step_max", mw_json_number(r.step_max), "admissible",
		r.name ? json_boolean(r.admissible) : json_null(), "steps", t->steps, "L",
		mw_json_number(t->l), "sigma2", t->noise, "zeta2", t->heterogeneity, "delta", t->delta,
		"t_mix", in.t_mix > 0 ? mw_json_number(in.t_mix) : json_null(), "tau_avg",
		lemma4 ? json_real(in.tau_avg) : json_null(), "tau_max",
		lemma4 ? json_real(in.tau_max) : json_null(), "reason",
		reason ? json_string(reason) : json_null());
}

static void print_bound(struct mw_run *run)
{
	json_t *j = mw_theory_json(run), *bound = json_object_get(j, "bound");
	if (json_is_number(bound))
		mw_say(run,
			"bound     mean |grad f|^2 %.4g measured, at most %.4g by theorem %s: ratio %.3g\n",
			json_number_value(json_object_get(j, "measured")), json_number_value(bound),
			json_string_value(json_object_get(j, "theorem")),
			json_number_value(json_object_get(j, "ratio")));
	else
		mw_say(run, "bound     none: %s\n", json_string_value(json_object_get(j, "reason")));
	json_decref(j);
}

void mw_theory_print(struct mw_run *run)
{
	struct mw_bound_input in;
	struct mw_bound_result r;
	struct mw_err err = { 0 };
	double l = run->theory ? run->theory->l : NAN;
	if (run->theory)
		print_bound(run);
	if (choose(run, &in) || in.theorem == MW_THEOREM_3 ||
		in.theorem == MW_THEOREM_4) /* any step is admitted */
		return;
	if (!run->theory && mw_smoothness(run, WORK_CHEAP, &l, &err))
		return;
	in.smoothness = l;
	in.gap = in.steps = 1; /* they have no part in the step */
	in.step = step_of(run);
	if (isnan(l) || mw_bound_evaluate(&in, &r, &err))
		return;
	double c = r.effective_step / r.step;
	mw_say(run, "step      alpha c %.3g; theorem %s admits %.3g (L %.3g, ", r.effective_step, r.name,
		r.step_max * c, l);
	if (in.lemma == MW_LEMMA_C4)
		mw_say(run, "delays %.3g on average, at most %.3g)\n", in.tau_avg, in.tau_max);
	else
		mw_say(run, "t_mix %.4g)\n", in.t_mix);
	if (!r.admissible)
		mw_say(run,
			"warning: the step is %.3g times what the theory covers; lower --rate to be sure\n",
			r.step / r.step_max);
}
