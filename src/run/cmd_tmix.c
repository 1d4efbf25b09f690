/* cmd_tmix.c: `mixwild tmix`: the exact mixing time of a protocol, its conversions, and the inverse questions. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/cmd_tmix.h"
#include "run/find.h"

struct options {
	char *protocol, *graph, *staleness;
	int64_t workers, mix_every, seed, replicas;
	double slack, mix_fraction, eps, want, throughput, work;
	int mix_blocks, activation, norm, format;
	bool table;
};

#define F(field) offsetof(struct options, field)

static const struct mw_option table[] = {
	{ "protocol", MW_OPT_STRING, F(protocol), NULL, 0, 0, NULL, "NAME",
		"Which; see mixwild list protocols." },
	{ "workers", MW_OPT_INT, F(workers), "8", 1, 65536, NULL, "N", "Number of workers." },
	{ "graph", MW_OPT_STRING, F(graph), NULL, 0, 0, NULL, "SPEC",
		"Who talks to whom, for gossip; see mixwild list graphs." },
	{ "activation", MW_OPT_CHOICE, F(activation), "random", 0, 0, "rr|random|free", NULL,
		"Order of the workers' steps without a barrier: in turn, or uniformly at random. "
		"Free-running threads have no "
		"exact value; a run measures it." },
	{ "mix-every", MW_OPT_INT, F(mix_every), "0", 0, 1e9, NULL, "K",
		"Mix every K own steps (rounds under a barrier); 0: the protocol's own." },
	{ "slack", MW_OPT_FLOAT, F(slack), "1", 1e-12, 1, NULL, "G", "Mix with (1-G) I + G W." },
	{ "mix-fraction", MW_OPT_FLOAT, F(mix_fraction), "1", 1e-6, 1, NULL, "F",
		"Exchange this share of the coordinates at a time, in round(1/F) blocks." },
	{ "mix-blocks", MW_OPT_CHOICE, F(mix_blocks), "cyclic", 0, 0, "cyclic|random", NULL,
		"Which block is exchanged next." },
	{ "staleness", MW_OPT_STRING, F(staleness), "0", 0, 0, NULL, "T",
		"Protocols with one shared replica: T writes (or constant:T) come between a read and the "
		"write that used it. "
		"With n workers in turn, a run's --staleness constant:S makes T = n S." },
	{ "norm", MW_OPT_CHOICE, F(norm), "l2", 0, 0, "l2|tv", NULL,
		"Worst direction, threshold 1/2; or total variation of the worst row, threshold 1/4." },
	{ "eps", MW_OPT_FLOAT, F(eps), "0", 0, 0.999999, NULL, "E", "Threshold; 0: the norm's own." },
	{ "want-tmix", MW_OPT_FLOAT, F(want), "0", 0, 1e15, NULL, "T",
		"Also find the smallest slack, and the largest K of --mix-every, for which t_mix is at most "
		"T." },
	{ "throughput", MW_OPT_FLOAT, F(throughput), "0", 0, 1e15, NULL, "X",
		"Gradient steps per second of all workers together, to give t_mix in seconds too." },
	{ "table", MW_OPT_BOOL, F(table), "no", 0, 0, NULL, NULL,
		"Print t_mix of the main protocols for 2 to 64 workers." },
	{ "seed", MW_OPT_INT, F(seed), "1", 0, 9e15, NULL, "N", "Seed of the Monte Carlo." },
	{ "replicas", MW_OPT_INT, F(replicas), "0", 0, 1e7, NULL, "R",
		"Simulated products where the value needs Monte Carlo; 0: chosen by size." },
	{ "work", MW_OPT_FLOAT, F(work), "1e12", 0, 1e18, NULL, "OPS",
		"Give up beyond about this many floating-point operations; 0: never." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL, "Form of the result." },
	{ 0 },
};

#define OTHER_NORM_WORK 1e9 /* for the norm that was not asked for: below a second */

int tmix_subject_init(struct tmix_subject *s, const char *protocol, const void *options, const char *graph,
	uint32_t workers, enum mw_activation activation, struct mw_err *err)
{
	const struct mw_protocol_ops *ops = mw_protocol_find(protocol);
	*s = (struct tmix_subject){ 0 };
	if (!ops)
		MW_FAIL(err, USAGE, "no protocol '%s'; see mixwild list protocols", protocol);
	if (graph && !ops->default_graph)
		MW_FAIL(err, USAGE, "--graph: protocol %s takes no graph; sync-gossip and async-gossip do",
			ops->name);
	if (ops->default_graph)
		MW_TRY(mw_graph_new(graph ? graph : ops->default_graph, workers, &s->graph, err));
	struct mw_protocol_config c = {
		.workers = workers, .nodes = 1, .graph = s->graph, .random_edges = activation != MW_ACT_RR
	};
	return mw_protocol_new(ops, options, &c, &s->p, err);
}

void tmix_subject_fini(struct tmix_subject *s)
{
	mw_protocol_free(s->p);
	mw_graph_free(s->graph);
}

json_t *tmix_number(double x)
{
	if (!isfinite(x))
		return json_null();
	return x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x);
}

static double seconds(const struct options *o, const struct mw_mixing_result *r)
{
	return o->throughput > 0 ? r->gradient_steps / o->throughput : NAN;
}

/* The answer to all that is asked about one protocol. */
struct answer {
	const struct options *o;
	const struct mw_protocol *p;
	const char *graph;
	struct mw_mixing_result r, other;
	struct mw_mixing_view view;
	double slack;
	int64_t every;
	struct mw_mixing_result at_slack, at_every;
};

/* --- json and csv ----------------------------------------------------------------------------------------------- */

static json_t *result_json(const struct answer *a, const struct mw_mixing_result *r)
{
	return json_pack(
		"{s:o,s:s,s:f,s:s,s:o,s:b,s:b,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o}}",
		"t_mix", tmix_number(r->t_mix), "norm", mw_norm_name(r), "eps", r->eps, "unit",
		mw_unit_name(r->unit), "error", tmix_number(r->mixes ? r->error : NAN), "exact", r->exact,
		"bound", r->bound, "method", r->method, "reason", r->reason, "gradient_steps",
		tmix_number(r->gradient_steps), "rounds", tmix_number(r->gradient_steps / a->p->workers),
		"seconds", tmix_number(seconds(a->o, r)), "lambda2", tmix_number(r->lambda2), "S1",
		tmix_number(r->s1), "S2", tmix_number(r->s2), "S2F", tmix_number(r->s2f), "targets", "t_ann",
		tmix_number(r->t_mix), "t_inf", tmix_number(r->t_inf), "t_1", tmix_number(r->t_1), "t_q",
		tmix_number(r->t_q));
}

/* Why what was wanted has no value; NULL: it has. */
static const char *missing(bool none, const struct mw_mixing_result *at)
{
	return !none ? NULL : at->mixes ? "none will do: even 1 takes longer" : at->reason;
}

static void print_json(const struct answer *a, FILE *f)
{
	static const char *const activation[] = { "rr", "random", "free" };
	json_t *root = result_json(a, &a->r);
	json_object_set_new(root, "protocol", json_string(a->p->ops->name));
	json_object_set_new(root, "graph", a->graph ? json_string(a->graph) : json_null());
	json_object_set_new(root, "workers", json_integer(a->p->workers));
	json_object_set_new(root, "activation", json_string(activation[a->o->activation]));
	json_object_set_new(root, "columns", json_string(a->p->hot > 0 ? "hot" : "all"));
	json_object_set_new(root, "t_mix_view",
		json_pack("{s:o,s:b}", "value", tmix_number(a->view.t_mix), "bound", a->view.bound));
	json_object_set_new(root, "other_norm", result_json(a, &a->other));
	if (a->o->want > 0)
		json_object_set_new(root, "needed",
			json_pack("{s:o,s:o,s:s?,s:o,s:o,s:s?}", "slack", tmix_number(a->slack),
				"t_mix_at_slack", tmix_number(isnan(a->slack) ? NAN : a->at_slack.t_mix),
				"slack_reason", missing(isnan(a->slack), &a->at_slack), "mix_every",
				a->every ? json_integer(a->every) : json_null(), "t_mix_at_mix_every",
				tmix_number(a->every ? a->at_every.t_mix : NAN), "mix_every_reason",
				missing(!a->every, &a->at_every)));
	mw_output_json(f, root);
}

static void csv_number(FILE *f, double x)
{
	if (isfinite(x))
		fprintf(f, ",%.10g", x);
	else
		fputc(',', f);
}

static void print_csv(const struct answer *a, FILE *f)
{
	const struct mw_mixing_result *both[2] = { &a->r, &a->other };
	fprintf(f, "protocol,graph,workers,norm,eps,t_mix,error,unit,gradient_steps,seconds,lambda2,S1,S2,t_"
		   "inf,t_1,t_q,"
		   "method,reason,t_mix_view,slack_needed,mix_every_needed\n");
	for (int i = 0; i < 2; i++) {
		const struct mw_mixing_result *r = both[i];
		mw_output_csv(f, a->p->ops->name);
		fputc(',', f);
		mw_output_csv(f, a->graph);
		fprintf(f, ",%" PRIu32 ",%s,%g", a->p->workers, mw_norm_name(r), r->eps);
		csv_number(f, r->t_mix);
		csv_number(f, r->mixes ? r->error : NAN);
		fprintf(f, ",%s", mw_unit_name(r->unit));
		const double rest[] = { r->gradient_steps, seconds(a->o, r), r->lambda2, r->s1, r->s2,
			r->t_inf, r->t_1, r->t_q };
		for (size_t k = 0; k < sizeof(rest) / sizeof(*rest); k++)
			csv_number(f, rest[k]);
		fputc(',', f);
		mw_output_csv(f, r->method);
		fputc(',', f);
		mw_output_csv(f, r->reason);
		csv_number(f, i ? NAN : a->view.t_mix);
		csv_number(f, !i && a->o->want > 0 ? a->slack : NAN);
		csv_number(f, !i && a->o->want > 0 && a->every ? (double)a->every : NAN);
		fputc('\n', f);
	}
}

/* --- text ------------------------------------------------------------------------------------------------------- */

static void print_value(FILE *f, const struct mw_mixing_result *r)
{
	if (!r->mixes) {
		fprintf(f, "t_mix (%s): none. %s\n", mw_norm_name(r), r->reason);
		return;
	}
	fprintf(f, "t_mix %s %.10g", r->bound ? "<=" : "=", r->t_mix);
	if (r->error > 0)
		fprintf(f, " +- %.2g", r->error);
	fprintf(f, " %s   (%s, threshold %g; %s", mw_unit_name(r->unit), mw_norm_name(r), r->eps, r->method);
	if (!r->exact)
		fprintf(f, ", %" PRIu32 " replicas", r->replicas);
	fprintf(f, ")\n");
}

static void print_field(FILE *f, const char *name, double x, const char *note)
{
	if (isfinite(x))
		fprintf(f, "  %-16s %-14.10g %s\n", name, x, note);
	else
		fprintf(f, "  %-16s %-14s %s\n", name, "-", note);
}

static void print_target(FILE *f, const char *estimator, const char *target, double x, const char *what)
{
	char value[32] = "-";
	if (isfinite(x))
		snprintf(value, sizeof(value), "%.6g", x);
	fprintf(f, "  %-9s %-6s %-10s %s\n", estimator, target, value, what);
}

static void print_targets(FILE *f, const struct mw_mixing_result *r)
{
	fprintf(f,
		"\nWhat a run's estimators aim at (%s, in %s; they differ, so compare each with its own):\n",
		mw_norm_name(r), mw_unit_name(r->unit));
	fprintf(f, "  %-9s %-6s %-10s %s\n", "estimator", "target", "exact", "which is");
	print_target(f, "trace", "t_ann", r->t_mix,
		"annealed: mean over randomness inside the worst case; this t_mix");
	print_target(f, "probe", "t_ann", r->t_mix, "the same, from one-hot columns");
	print_target(f, "probe", "t_inf", r->t_inf, "tail alone: ln 2 / rate, from a few balanced columns");
	print_target(f, "passive", "t_1", r->t_1, "first moment: ln 2 / rate of the mean product");
	print_target(f, "renewal", "t_q", r->t_q, "quenched: worst case inside the mean; an upper value");
}

static void print_needed(const struct answer *a, FILE *f)
{
	fprintf(f, "\nFor t_mix <= %g %s:\n", a->o->want, mw_unit_name(a->r.unit));
	if (isnan(a->slack))
		fprintf(f, "  --slack: %s\n", missing(true, &a->at_slack));
	else
		fprintf(f, "  --slack %.10g gives %.10g\n", a->slack, a->at_slack.t_mix);
	if (!a->every)
		fprintf(f, "  --mix-every: %s\n", missing(true, &a->at_every));
	else
		fprintf(f, "  --mix-every %" PRId64 " gives %.10g\n", a->every, a->at_every.t_mix);
}

static void print_text(const struct answer *a, FILE *f)
{
	static const char *const activation[] = { "workers in turn", "workers at random",
		"free-running workers" };
	const struct mw_mixing_result *r = &a->r;
	print_value(f, r);
	fprintf(f, "  %s%s%s, %" PRIu32 " workers, %s\n\n", a->p->ops->name, a->graph ? " on " : "",
		a->graph ? a->graph : "", a->p->workers,
		a->p->clock == MW_CLOCK_ROUND ? "in rounds (a barrier)" : activation[a->o->activation]);
	if (a->p->hot > 0)
		fprintf(f, "  of the hot columns; the others are one replica, as hogwild's\n\n");
	if (r->mixes) {
		print_field(f, "t_mix_view", a->view.t_mix,
			a->view.bound ? "at most: views held while a gradient is computed count too"
				      : "views held while a gradient is computed count too");
		print_field(f, "gradient steps", r->gradient_steps, "of all workers together");
		print_field(f, "rounds", r->gradient_steps / a->p->workers, "gradient steps / workers");
		if (a->o->throughput > 0)
			print_field(f, "seconds", seconds(a->o, r), "at the given throughput");
		print_field(
			f, "lambda2", r->lambda2, "second eigenvalue modulus of W (of its mean, if random)");
		print_field(f, "S1", r->s1, "sum of d(k), k >= 1");
		print_field(f, "S2", r->s2, "sum of d(k)^2");
		if (isfinite(r->s2f))
			print_field(f, "S2F", r->s2f, "the same, averaged over modes");
	}
	fputc('\n', f);
	print_value(f, &a->other);
	if (r->mixes)
		print_targets(f, r);
	if (a->o->want > 0 && r->mixes)
		print_needed(a, f);
	fprintf(f, "\nTimes of protocols compare in gradient steps only: native steps differ in order, not "
		   "in scale.\n");
}

/* --- run -------------------------------------------------------------------------------------------------------- */

/* "T" or "constant:T" */
static int parse_delay(const char *text, uint64_t *delay, struct mw_err *err)
{
	int64_t t;
	if (!strncmp(text, "constant:", 9))
		text += 9;
	MW_TRY(mw_parse_int(text, "--staleness", &t, err));
	if (t < 0 || t > 1000000000)
		MW_FAIL(err, USAGE, "--staleness %" PRId64 " is out of range: 0 to 1e9 writes", t);
	*delay = (uint64_t)t;
	return MW_OK;
}

static int solve(struct answer *a, const struct mw_mixing_knobs *k, struct mw_err *err)
{
	struct mw_mixing_knobs other = *k;
	other.norm = k->norm == MW_NORM_L2 ? MW_NORM_TV : MW_NORM_L2;
	other.eps = 0;
	if (!(other.work > 0 && other.work < OTHER_NORM_WORK))
		other.work = OTHER_NORM_WORK;
	MW_TRY(mw_mixing_exact(a->p, k, &a->r, err));
	MW_TRY(mw_mixing_exact(a->p, &other, &a->other, err));
	MW_TRY(mw_mixing_view(a->p, k, &a->r, &a->view, err));
	if (a->other.dear)
		snprintf(a->other.reason, sizeof(a->other.reason),
			"not computed, for speed; ask for it with --norm %s",
			other.norm == MW_NORM_TV ? "tv" : "l2");
	if (a->o->want <= 0)
		return MW_OK;
	if (!a->p->n_slots)
		MW_FAIL(err, USAGE,
			"--want-tmix: protocol %s exchanges nothing, so neither slack nor period changes "
			"t_mix",
			a->p->ops->name);
	a->slack = NAN;
	a->at_slack = a->at_every = a->r;
	if (!a->r.mixes)
		return MW_OK;
	MW_TRY(mw_mixing_need_slack(a->p, k, a->o->want, &a->slack, &a->at_slack, err));
	return mw_mixing_need_period(a->p, k, a->o->want, &a->every, &a->at_every, err);
}

static int run_one(struct mw_job *job, const struct options *o, struct mw_err *err)
{
	struct tmix_subject s;
	struct answer a = { .o = o };
	struct mw_mixing_knobs k = { .mix_every = o->mix_every,
		.slack = o->slack,
		.mix_fraction = o->mix_fraction,
		.random_blocks = o->mix_blocks == 1,
		.activation = (enum mw_activation)o->activation,
		.norm = (enum mw_norm)o->norm,
		.eps = o->eps,
		.seed = (uint64_t)o->seed,
		.replicas = (uint32_t)o->replicas,
		.work = o->work,
		.sums = true };
	MW_TRY(parse_delay(o->staleness, &k.delay, err));
	int ret = tmix_subject_init(&s, o->protocol, mw_job_plugin_options(job, "protocol", o->protocol),
		o->graph, (uint32_t)o->workers, k.activation, err);
	a.p = s.p;
	a.graph = s.graph ? s.graph->spec : NULL;
	if (!ret)
		ret = solve(&a, &k, err);
	if (!ret && o->format == MW_OUT_JSON)
		print_json(&a, job->out);
	else if (!ret && o->format == MW_OUT_CSV)
		print_csv(&a, job->out);
	else if (!ret)
		print_text(&a, job->out);
	tmix_subject_fini(&s);
	return ret;
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct options *o = job->options;
	if (o->table)
		return tmix_table(
			job->out, (enum mw_output)o->format, (uint64_t)o->seed, (uint32_t)o->replicas, err);
	if (!o->protocol)
		MW_FAIL(err, USAGE, "tmix: give --protocol NAME (see mixwild list protocols), or --table");
	return run_one(job, o, err);
}

const struct mw_command mw_command_tmix = {
	.name = "tmix",
	.summary = "The exact mixing time of a protocol: how long until every worker's step has reached all",
	.uses = MW_USES_PROTOCOL | MW_NO_INTERRUPT,
	.options = table,
	.option_size = sizeof(struct options),
	.examples = "mixwild tmix --protocol async-ring --workers 64\n"
		    "mixwild tmix --protocol sync-gossip --graph torus --workers 64 --norm tv --format json\n"
		    "mixwild tmix --protocol sync-ring --workers 16 --want-tmix 14000\n"
		    "mixwild tmix --table\n",
	.run = run,
};
