/* tune_trial.c: one run of a candidate: its options, its clock, and what is kept of it; see tune.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/tmix_of_run.h"
#include "run/tune.h"

/* Rows that a trial's evaluations look at, unless --eval-rows says; and about how many evaluations it makes. */
#define EVAL_ROWS   20000
#define EVALUATIONS 10
/* Operations that the exact mixing time of a candidate may cost, once: a second by Monte Carlo. */
#define TMIX_WORK 5e9

/* --- options -------------------------------------------------------------------------------------------------------- */

/* The shortest text that is read as this number: people see it in the winner's command line. */
static char *real_text(double v)
{
	char text[32];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	return mw_strdup(text);
}

/* A value of mw_job_config as mw_job_set takes it. */
static char *text_of(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_TRUE: return mw_strdup("yes");
	case JSON_FALSE: return mw_strdup("no");
	case JSON_INTEGER: return mw_strprintf("%lld", (long long)json_integer_value(value));
	case JSON_REAL: return real_text(json_real_value(value));
	case JSON_STRING: return mw_strdup(json_string_value(value));
	default: return NULL;
	}
}

static bool searched(const char *name)
{
	static const char *const own[] = { "workers", "bind", "protocol", "mix-every", "data-place", "budget",
		"eta", "repeats", "job", "format" };
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i], name))
			return true;
	return false;
}

void mw_tune_common_options(const struct mw_tune *t, mw_tune_option_fn *fn, void *arg)
{
	json_t *config = mw_job_config(t->job), *value;
	const char *name;
	json_object_foreach(config, name, value)
	{
		char *text = searched(name) || !mw_options_is_set(&t->job->set, name) ? NULL : text_of(value);
		if (text)
			fn(arg, name, text);
		free(text);
	}
	json_decref(config);
}

void mw_tune_own_options(const struct mw_tune *t, uint32_t candidate, mw_tune_option_fn *fn, void *arg)
{
	const struct mw_tune_candidate *c = &t->candidate[candidate];
	char number[32];
	snprintf(number, sizeof(number), "%u", c->workers);
	fn(arg, "protocol", c->protocol);
	fn(arg, "workers", number);
	fn(arg, "bind", c->bind);
	if (c->mix_every) {
		snprintf(number, sizeof(number), "%lld", (long long)c->mix_every);
		fn(arg, "mix-every", number);
	}
	if (strcmp(c->data_place, "shared"))
		fn(arg, "data-place", c->data_place);
}

const char *mw_tune_name(const struct mw_tune *t, uint32_t candidate, char *buf, size_t size)
{
	const struct mw_tune_candidate *c = &t->candidate[candidate];
	char period[32] = "";
	if (c->mix_every)
		snprintf(period, sizeof(period), " every %lld", (long long)c->mix_every);
	snprintf(buf, size, "%u worker%s %s%s %s %s", c->workers, c->workers == 1 ? "" : "s", c->protocol,
		period, c->bind, c->data_place);
	return buf;
}

struct setter {
	struct mw_job *job;
	struct mw_err *err;
};

static void set_option(void *arg, const char *name, const char *value)
{
	struct setter *s = arg;
	if (!s->err->code)
		mw_job_set(s->job, name, value, s->err);
}

/* --- what is kept of a run ------------------------------------------------------------------------------------------ */

struct trial {
	struct mw_tune *t;
	uint32_t candidate, rung;
	double seconds;
	double last_s, last_loss; /* the evaluation before */
	double reached_s;         /* NAN: not yet */
	double loss, rate;
	double target;
	struct mw_remote remote;
	bool done, diverged;
};

/* When the target was crossed, between two evaluations: the loss falls about exponentially. */
static double crossing(double s0, double loss0, double s1, double loss1, double target)
{
	double share = loss0 > target && loss1 > 0 && target > 0 ? log(loss0 / target) / log(loss0 / loss1)
		       : loss0 > loss1                           ? (loss0 - target) / (loss0 - loss1)
								 : 1;
	return s0 + (s1 - s0) * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static void evaluated(struct mw_run *run, const struct mw_evaluation *e, void *arg)
{
	struct trial *r = arg;
	double loss = run->val.n ? e->val_loss : e->train_loss;
	if (r->t->to_loss && isnan(r->reached_s) && loss <= r->target)
		r->reached_s = isnan(r->last_loss) || loss >= r->last_loss
				       ? e->seconds
				       : crossing(r->last_s, r->last_loss, e->seconds, loss, r->target);
	r->last_s = e->seconds;
	r->last_loss = r->loss = loss;
}

static void keep_mixing_time(struct mw_tune_facts *f, struct mw_run *run)
{
	struct mw_mixing_result m = { 0 };
	struct mw_err err = { 0 };
	f->mix_every = run->protocol->n_slots ? run->knobs.mix_every : 0;
	if (mw_tmix_exact(run, TMIX_WORK, &m, &err) == 0 && m.mixes) {
		f->t_mix = m.gradient_steps;
		return;
	}
	f->t_mix = NAN;
	snprintf(f->t_mix_reason, sizeof(f->t_mix_reason), "%.119s", err.code ? err.msg : m.reason);
	char *option = strstr(f->t_mix_reason, " (--work)"); /* tune has none */
	if (option)
		*option = '\0';
}

static void done(struct mw_run *run, void *arg)
{
	struct trial *r = arg;
	struct mw_tune_facts *f = &r->t->facts[r->candidate];
	const struct mw_evaluation *e = &run->last;
	struct mw_err err = { 0 };
	r->done = strcmp(run->stopped_by, "signal") != 0;
	r->diverged = run->diverged;
	if (!r->done)
		return;
	struct mw_hist *h = mw_record_staleness(run, &err);
	double rate = r->rate = e->seconds > 0 ? (double)e->examples / e->seconds : 0;
	if (!f->n || f->rung != r->rung) {
		struct mw_tune_facts before = *f;
		*f = (struct mw_tune_facts){
			.rung = r->rung, .mix_every = before.mix_every, .t_mix = before.t_mix
		};
		memcpy(f->t_mix_reason, before.t_mix_reason, sizeof(f->t_mix_reason));
		if (!before.n) /* it is the same in all rungs */
			keep_mixing_time(f, run);
	}
	f->n++;
	f->examples_per_s += rate;
	f->loss += r->loss;
	f->epochs += e->epoch;
	f->n_reached += !isnan(r->reached_s);
	if (h && h->n) {
		f->staleness_mean += h->sum / (double)h->n;
		f->staleness_p99 += (double)mw_hist_quantile(h, 0.99);
	}
	mw_free(h);
	r->t->fastest = rate > r->t->fastest ? rate : r->t->fastest;
	if (!isnan(r->reached_s) && (r->t->soonest <= 0 || r->reached_s < r->t->soonest))
		r->t->soonest = r->reached_s;
}

/* --- the run -------------------------------------------------------------------------------------------------------- */

static void draw_progress(const struct mw_tune *t, const struct trial *r)
{
	uint32_t all = 0;
	char name[100];
	if (!t->job->live)
		return;
	for (uint32_t k = 0; k < t->plan.rungs; k++)
		all += t->plan.n[k] * t->plan.repeats[k];
	fprintf(t->job->msg, "\r\033[Ktune: rung %u of %u, run %u of %u: %.60s", r->rung + 1, t->plan.rungs,
		t->n_trials, all, mw_tune_name(t, r->candidate, name, sizeof(name)));
	fflush(t->job->msg);
}

static void set_defaults(struct mw_tune *t, const struct trial *r, struct setter *s)
{
	char text[40];
	if (!mw_options_is_set(&t->job->set, "eval-rows")) {
		snprintf(text, sizeof(text), "%d", EVAL_ROWS);
		set_option(s, "eval-rows", text);
	}
	if (!mw_options_is_set(&t->job->set, "eval-every")) {
		double span = t->soonest > 0 && 2 * t->soonest < r->seconds ? 2 * t->soonest : r->seconds;
		double epochs = t->fastest * span / (double)t->train->rows / EVALUATIONS;
		snprintf(text, sizeof(text), "%.6g", !t->to_loss ? 0 : epochs > 0 ? epochs : 1);
		set_option(s, "eval-every", text);
	}
	if (!mw_options_is_set(&t->job->set, "epochs")) /* the clock ends a trial */
		set_option(s, "epochs", "1000000");
}

static int run_it(struct mw_tune *t, struct trial *r, struct mw_err *err)
{
	struct mw_train_hooks hooks = { t->train, t->test, r->seconds, evaluated, done, r };
	struct mw_job *job = NULL;
	MW_TRY(mw_job_new("train", &job, err));
	struct setter s = { job, err };
	mw_job_set_msg(job, NULL);
	mw_job_set_out(job, t->null);
	mw_job_set_interrupt(job, t->job->interrupt);
	mw_tune_common_options(t, set_option, &s);
	mw_tune_own_options(t, r->candidate, set_option, &s);
	set_defaults(t, r, &s);
	mw_remote_open(&r->remote);
	t->remote_refused = r->remote.refused;
	if (!err->code)
		mw_train(job, &hooks, err);
	if (r->done)
		t->facts[r->candidate].remote += mw_remote_share(&r->remote);
	mw_remote_close(&r->remote);
	mw_job_free(job);
	return err->code;
}

void mw_tune_warm_up(struct mw_tune *t, double seconds)
{
	struct trial r = { .t = t,
		.seconds = seconds,
		.last_loss = NAN,
		.reached_s = NAN,
		.target = t->opt->train.target_loss };
	struct mw_err err = { 0 };
	run_it(t, &r, &err); /* what is wrong will be found again */
	t->facts[0] = (struct mw_tune_facts){ 0 };
	t->soonest = 0;
}

int mw_tune_trial(void *arg, uint32_t candidate, uint32_t rung, double seconds, struct mw_trial_score *score)
{
	struct mw_tune *t = arg;
	struct trial r = { .t = t,
		.candidate = candidate,
		.rung = rung,
		.seconds = seconds,
		.last_loss = NAN,
		.reached_s = NAN,
		.target = t->opt->train.target_loss };
	struct mw_tune_facts *f = &t->facts[candidate];
	struct mw_err err = { 0 };
	*score = (struct mw_trial_score){ INFINITY, INFINITY };
	if (f->failed[0])
		return 0;
	t->n_trials++;
	draw_progress(t, &r);
	int code = run_it(t, &r, &err);
	if (__atomic_load_n(t->job->interrupt, __ATOMIC_RELAXED)) {
		t->stopped = true;
		return -1;
	}
	if (code && !r.diverged) {
		snprintf(f->failed, sizeof(f->failed), "%.199s", err.msg);
		if (!t->first_err.code)
			t->first_err = err;
		return 0;
	}
	if (r.diverged) {
		snprintf(f->failed, sizeof(f->failed), "the loss diverged");
		return 0;
	}
	if (t->to_loss)
		*score = (struct mw_trial_score){ isnan(r.reached_s) ? INFINITY : r.reached_s, r.loss };
	else
		score->first = r.rate > 0 ? 1e6 / r.rate : INFINITY;
	return 0;
}
