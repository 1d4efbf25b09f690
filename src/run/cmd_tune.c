/* cmd_tune.c: `mixwild tune`: the layout and the protocol that suit a problem on this machine, by short runs; see tune.h. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "run/output.h"
#include "run/tune.h"

/* A trial shorter than this says nothing. */
#define LEAST_S 0.05

#define F(field) offsetof(struct mw_tune_options, field)

static const struct mw_option tune_table[] = {
	MW_HEADING("What is searched (lists: a,b,c; auto: what fits the machine)"),
	{ "workers", MW_OPT_STRING, F(workers), "auto", 0, 0, NULL, "N,...", "Numbers of workers." },
	{ "bind", MW_OPT_STRING, F(bind), "auto", 0, 0, NULL, "HOW,...", "Places: close, spread, none." },
	{ "protocol", MW_OPT_STRING, F(protocol), "auto", 0, 0, NULL, "NAME,...",
		"Protocols, which say how many replicas there are: one for all (hogwild), one a NUMA node "
		"(numa), one a worker "
		"(cached)..." },
	{ "mix-every", MW_OPT_STRING, F(mix_every), "auto", 0, 0, NULL, "K,...",
		"Own steps between exchanges; 0: the protocol's own." },
	{ "data-place", MW_OPT_STRING, F(data_place), "auto", 0, 0, NULL, "WHERE,...",
		"Training data: shared, shard, replicate." },
	MW_HEADING("Search"),
	{ "budget", MW_OPT_FLOAT, F(budget), "60", DBL_MIN, 1e7, NULL, "SECONDS",
		"Training time of all runs together (evaluations come on top)." },
	{ "eta", MW_OPT_INT, F(eta), "3", 2, 16, NULL, "N",
		"From rung to rung the best 1/N go on, N times as long." },
	{ "repeats", MW_OPT_INT, F(repeats), "5", 1, MW_HALVING_REPEATS, NULL, "N",
		"Runs of a candidate in each rung but the first." },
	{ "job", MW_OPT_STRING, F(job), NULL, 0, 0, NULL, "FILE.ini",
		"Write the winner as a job file for mixwild sweep." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL, "Form of the result." },
	{ 0 },
};

static int prepare(struct mw_tune *t, struct mw_err *err)
{
	const struct mw_tune_options *o = t->opt;
	MW_TRY(mw_tune_candidates(t, err));
	t->facts = mw_alloc_array(t->n, sizeof(*t->facts), "the candidates", err);
	t->result = mw_alloc_array(t->n, sizeof(*t->result), "the candidates", err);
	t->rank = mw_alloc_array(t->n, sizeof(*t->rank), "the candidates", err);
	if (!t->facts || !t->result || !t->rank)
		return MW_ERESOURCE;
	t->null = fopen("/dev/null", "we");
	if (!t->null)
		MW_FAIL(err, RESOURCE, "/dev/null can't be opened");
	mw_halving_plan(t->n, (uint32_t)o->eta, (uint32_t)o->repeats, o->budget, LEAST_S, &t->plan);
	return mw_train_load(&o->train, &t->train, &t->test, err);
}

static void say_plan(const struct mw_tune *t)
{
	FILE *f = t->job->msg;
	if (!f)
		return;
	fprintf(f, "tune: %u candidates for %s; %.3g s in all:", t->n,
		t->to_loss ? "the soonest loss" : "the most examples a second", mw_halving_total_s(&t->plan));
	for (uint32_t r = 0; r < t->plan.rungs; r++)
		fprintf(f, "%s %u x %u of %.2g s", r ? "," : "", t->plan.n[r], t->plan.repeats[r],
			t->plan.seconds[r]);
	fprintf(f, "\n");
}

static int search(struct mw_tune *t, struct mw_err *err)
{
	say_plan(t);
	mw_tune_warm_up(t, t->plan.seconds[0] < 0.2 ? t->plan.seconds[0] : 0.2);
	mw_halving_run(&t->plan, mw_tune_trial, t, t->result, t->rank);
	uint32_t tried = 0;
	for (uint32_t c = 0; c < t->n; c++)
		tried += t->result[c].n && !t->facts[c].failed[0];
	if (!tried && t->first_err.code)
		return mw_err_set(err, t->first_err.code, "no candidate can be run; the first said: %.800s",
			t->first_err.msg);
	if (!tried && !t->stopped)
		MW_FAIL(err, DIVERGED, "all candidates diverged: lower --rate");
	mw_tune_report(t);
	return t->opt->job ? mw_tune_write_job(t, t->opt->job, err) : 0;
}

static int run(struct mw_job *job, struct mw_err *err)
{
	struct mw_tune t = { .job = job, .opt = job->options };
	t.to_loss = mw_options_is_set(&job->set, "target-loss");
	int code = prepare(&t, err);
	if (!code)
		code = search(&t, err);
	mw_dataset_free(t.train);
	mw_dataset_free(t.test);
	if (t.null)
		fclose(t.null);
	mw_free(t.candidate);
	mw_free(t.facts);
	mw_free(t.result);
	mw_free(t.rank);
	return code;
}

const struct mw_command mw_command_tune = {
	.name = "tune",
	.summary = "Find the workers, places, protocol and period that suit a problem on this machine",
	.uses = MW_USES_MODEL | MW_USES_OPTIM,
	.options = tune_table,
	.option_size = sizeof(struct mw_tune_options),
	.inherits = mw_train_option_table,
	.inherits_at = F(train),
	.inherits_not =
		"engine|threads|compute-time|push-time|mix-time|out|config|force|resume|trace|trace-every|"
		"trace-window|replay|bound|metrics-every|target-tmix|target-unit|target-actuator|target-"
		"accuracy|estimate|estimate-rate|tally|graph|timeline",
	.examples = "mixwild tune --data data/spam-train.svm.gz --rate 0.5 --target-loss 0.1 --job best.ini\n"
		    "mixwild tune --data synth:sparse,rows=200000,features=47236 --workers 1,2 --protocol "
		    "hogwild,cached\n",
	.run = run,
};
