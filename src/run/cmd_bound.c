/* cmd_bound.c: `mixwild bound`: the convergence theorems with given constants. */
#include <math.h>
#include <string.h>

#include "mixing/bound.h"
#include "run/command.h"
#include "run/output.h"

struct options {
	double smoothness, gap, noise, heterogeneity, convexity, workers, n_eff, share, steps, t_mix, a, b,
		s1;
	double tau_avg, tau_max, c_max, clip, dim, eps, beta1, beta2, step;
	int algorithm, setting, lemma, format;
};

#define F(field) offsetof(struct options, field)

enum { SGD, AMSGRAD, RMSPROP };

static const struct mw_option table[] = {
	{ "algorithm", MW_OPT_CHOICE, F(algorithm), "sgd", 0, 0, "sgd|amsgrad|rmsprop", NULL,
		"SGD: theorem by --setting; AMSGrad: theorem 3 (without bias correction); RMSProp: theorem "
		"4." },
	{ "setting", MW_OPT_CHOICE, F(setting), "all", 0, 0, "all|entry|pair|convex", NULL,
		"SGD: all workers in every round (1A); one gradient a step, the same data for all (1B); "
		"pairwise gossip, one "
		"worker a step (1C); or convex objective (2)." },
	{ "lemma", MW_OPT_CHOICE, F(lemma), "auto", 0, 0, "auto|C1|C2|C3|C4|C5", NULL,
		"How t_mix becomes the constants A and B. 1B has a choice: C2 known schedule; C3 independent "
		"random schedule; "
		"C4 recorded delays." },
	{ "smoothness", MW_OPT_FLOAT, F(smoothness), "1", 0, 0, NULL, "L",
		"Lipschitz constant of the gradient." },
	{ "gap", MW_OPT_FLOAT, F(gap), "1", 0, 0, NULL, "DELTA",
		"f(x_0) - f*; --setting convex: |x_0 - x*|^2." },
	{ "noise", MW_OPT_FLOAT, F(noise), "1", 0, 0, NULL, "SIGMA2",
		"Variance of a stochastic gradient, over all coordinates." },
	{ "heterogeneity", MW_OPT_FLOAT, F(heterogeneity), "0", 0, 0, NULL, "ZETA2",
		"Mean squared distance of the workers' gradients from the whole one (convex: at the "
		"optimum)." },
	{ "convexity", MW_OPT_FLOAT, F(convexity), "0", 0, 0, NULL, "MU",
		"Strong convexity (--setting convex); may be 0." },
	{ "workers", MW_OPT_FLOAT, F(workers), "8", 1, 1e9, NULL, "N", "Number of workers." },
	{ "n-eff", MW_OPT_FLOAT, F(n_eff), "1", 1, 1e9, NULL, "N",
		"Gradients that a step averages (1B, 2): 1 for a server or one shared replica." },
	{ "share", MW_OPT_FLOAT, F(share), "1", 1e-9, 1, NULL, "C",
		"Effective step / step (1B): 1 for a server." },
	{ "steps", MW_OPT_FLOAT, F(steps), "1e4", 1, 1e18, NULL, "T", "Native steps of the run." },
	{ "tmix", MW_OPT_FLOAT, F(t_mix), "0", 0, 1e18, NULL, "T",
		"Mixing time in native steps; see mixwild tmix." },
	{ "A", MW_OPT_FLOAT, F(a), "0", 0, 1e30, NULL, "A",
		"Constants of the lemma, instead of --tmix: for example A = 2 S2" },
	{ "B", MW_OPT_FLOAT, F(b), "0", 0, 1e30, NULL, "B",
		"and B = 2 S1^2 of mixwild tmix, which are tighter." },
	{ "S1", MW_OPT_FLOAT, F(s1), "0", 0, 1e18, NULL, "S1",
		"AMSGrad, RMSProp: sum of d(k); 0: 2 tmix - 1." },
	{ "tau-avg", MW_OPT_FLOAT, F(tau_avg), "0", 0, 1e18, NULL, "T", "C4: mean observed delay." },
	{ "tau-max", MW_OPT_FLOAT, F(tau_max), "0", 0, 1e18, NULL, "T", "C4: largest observed delay." },
	{ "c-max", MW_OPT_FLOAT, F(c_max), "0", 0, 1e18, NULL, "C",
		"C4: most uses that miss one write; 0: workers - 1 (each view is used once)." },
	{ "clip", MW_OPT_FLOAT, F(clip), "1", 0, 1e30, NULL, "G",
		"AMSGrad, RMSProp: largest gradient coordinate." },
	{ "dim", MW_OPT_FLOAT, F(dim), "1", 1, 1e18, NULL, "D", "AMSGrad, RMSProp: number of parameters." },
	{ "eps", MW_OPT_FLOAT, F(eps), "1e-8", 0, 1e9, NULL, "E", "AMSGrad, RMSProp: epsilon." },
	{ "beta1", MW_OPT_FLOAT, F(beta1), "0.9", 0, 0.999999999, NULL, "B",
		"AMSGrad: decay of the mean gradient." },
	{ "beta2", MW_OPT_FLOAT, F(beta2), "0.999", 0, 0.999999999, NULL, "B", "Decay of the mean square." },
	{ "step", MW_OPT_FLOAT, F(step), "0", 0, 1e18, NULL, "ALPHA",
		"Step size; 0: the one that the bound suggests." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL, "Form of the result." },
	{ 0 },
};

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static void print_json(const struct mw_bound_result *r, FILE *f)
{
	mw_output_json(
		f, json_pack("{s:s,s:s,s:o,s:o,s:o,s:b,s:b,s:o,s:s,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o}}",
			   "theorem", r->name, "left_side", r->left_side, "bound", number(r->bound), "step",
			   number(r->step), "effective_step", number(r->effective_step), "tuned", r->tuned,
			   "admissible", r->admissible, "step_max", number(r->step_max), "condition",
			   r->condition, "A", number(r->a), "B", number(r->b), "S1", number(r->s1), "R",
			   number(r->r), "terms", "optimization", number(r->opt_term), "noise",
			   number(r->noise_term), "drift", number(r->drift_term), "constant",
			   number(r->constant_term)));
}

static void print_csv(const struct mw_bound_result *r, FILE *f)
{
	const double field[] = { r->bound, r->step, r->effective_step, r->step_max, r->admissible, r->a, r->b,
		r->s1, r->r, r->opt_term, r->noise_term, r->drift_term, r->constant_term };
	fprintf(f,
		"theorem,bound,step,effective_step,step_max,admissible,A,B,S1,R,optimization,noise,drift,"
		"constant\n%s",
		r->name);
	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		if (isfinite(field[i]))
			fprintf(f, ",%.12g", field[i]);
		else
			fputc(',', f);
	fputc('\n', f);
}

static void line(FILE *f, const char *name, double x, const char *note)
{
	if (!isnan(x))
		fprintf(f, "  %-18s %-16.10g %s\n", name, x, note);
}

static void print_text(const struct mw_bound_result *r, FILE *f)
{
	if (r->admissible)
		fprintf(f, "%s <= %.10g   (theorem %s)\n\n", r->left_side, r->bound, r->name);
	else
		fprintf(f, "no bound: the step is larger than theorem %s admits\n\n", r->name);
	line(f, "step", r->step, r->tuned ? "alpha, tuned" : "alpha, as given");
	line(f, "effective step", r->effective_step, "alpha c");
	line(f, "largest step", r->step_max, r->condition);
	line(f, "A", r->a, "noise constant of the consensus lemma");
	line(f, "B", r->b, "drift constant");
	line(f, "S1", r->s1, "sum of d(k)");
	line(f, "R", r->r, "every update is at most alpha R long");
	fprintf(f, "\nIts terms\n");
	line(f, "optimization", r->opt_term, "falls with 1/T");
	line(f, "noise", r->noise_term, "grows with alpha");
	line(f, "drift", r->drift_term, "grows with alpha^2: what weak consistency costs");
	line(f, "constant", r->constant_term, "does not depend on alpha");
}

static enum mw_theorem theorem_of(const struct options *o)
{
	static const enum mw_theorem sgd[] = { MW_THEOREM_1A, MW_THEOREM_1B, MW_THEOREM_1C, MW_THEOREM_2 };
	if (o->algorithm == AMSGRAD)
		return MW_THEOREM_3;
	return o->algorithm == RMSPROP ? MW_THEOREM_4 : sgd[o->setting];
}

static int run(struct mw_job *job, struct mw_err *err)
{
	static void (*const print[])(
		const struct mw_bound_result *, FILE *) = { print_text, print_json, print_csv };
	const struct options *o = job->options;
	struct mw_bound_result r;
	const struct mw_bound_input in = { .theorem = theorem_of(o),
		.lemma = (enum mw_lemma)o->lemma,
		.smoothness = o->smoothness,
		.gap = o->gap,
		.noise = o->noise,
		.heterogeneity = o->heterogeneity,
		.convexity = o->convexity,
		.workers = o->workers,
		.n_eff = o->n_eff,
		.share = o->share,
		.steps = o->steps,
		.t_mix = o->t_mix,
		.a = o->a,
		.b = o->b,
		.s1 = o->s1,
		.tau_avg = o->tau_avg,
		.tau_max = o->tau_max,
		.c_max = o->c_max,
		.clip = o->clip,
		.dim = o->dim,
		.eps = o->eps,
		.beta1 = o->beta1,
		.beta2 = o->beta2,
		.step = o->step };
	MW_TRY(mw_bound_evaluate(&in, &r, err));
	print[o->format](&r, job->out);
	return MW_OK;
}

const struct mw_command mw_command_bound = {
	.name = "bound",
	.summary = "Convergence bounds through the mixing time, the step they admit and the step that suits "
		   "them best",
	.uses = MW_NO_INTERRUPT,
	.options = table,
	.option_size = sizeof(struct options),
	.examples =
		"mixwild bound --tmix 4 --workers 8 --steps 1e4\n"
		"mixwild bound --setting entry --lemma C4 --tau-avg 7 --tau-max 76 --workers 8 --steps 1e4\n"
		"mixwild bound --algorithm amsgrad --tmix 8 --dim 10 --eps 0.1 --beta2 0.99 --steps 1e6 "
		"--step 1e-4\n",
	.run = run,
};
