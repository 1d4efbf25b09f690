/* steer.c: see steer.h. */
#include "run/steer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "mixing/exact.h"
#include "run/record.h"
#include "run/run.h"
#include "run/tmix_of_run.h"

enum { WINDOWS_MAX = 2048, CHANGE_SIZE = 48, TRIES = 8 };
/*
 * Share of the misfit that the n-th window mends: 1, 1/2, 1/3, ... at first, so that what the exact law does not know is
 * mended at once and then averaged; this much from then on, so that the loop can follow a system that changes.
 */
#define GAIN_LEAST  0.3
#define EXACT_WORK  1e9 /* operations that one exact value may cost */
#define GOOD_ENOUGH 0.005
#define PERIOD_MOST 1e9
#define SLACK_LEAST 1e-9
/* The exact law of free-running threads is not known: they may mix this much faster than in random order. */
#define ASSUMED_MARGIN 0.8

struct mw_steer {
	const struct mw_run *run;
	enum mw_actuator actuator;
	double target; /* native steps */
	double value;  /* of the actuator, as asked for last */
	bool scatters;
	char start[200];
	struct mw_timeline *timeline; /* the run's */
	/* Sync: entries asked for, by who looks at the probes, release; acquired by who publishes. */
	uint32_t asked;
	/* Sync: entries in effect, by who publishes, release (the worker at a barrier, else who asks); acquired by who asks. */
	uint32_t published;
	struct mw_steer_window window[WINDOWS_MAX];
	/* Sync: windows that are complete; stored by who looks at the probes, release; acquired in mw_steer_at. */
	uint32_t n;
	uint64_t begin; /* of the window under way; who looks at the probes */
};

static void set_knobs(enum mw_actuator a, double value, struct mw_knobs *k)
{
	if (a == MW_ACTUATE_SLACK) {
		k->slack = value;
		return;
	}
	k->mix_every = (int64_t)value;
	k->mix_part = (uint32_t)((value - floor(value)) * MW_MIX_PARTS);
}

static double bounded(enum mw_actuator a, double value)
{
	return a == MW_ACTUATE_SLACK ? fmin(fmax(value, SLACK_LEAST), 1) : fmin(fmax(value, 1), PERIOD_MOST);
}

/* --- feed-forward -------------------------------------------------------------------------------------------------- */

/* Exact t_mix at this value of the actuator; NAN: not known. Between two whole periods: in between. */
static int exact_at(struct mw_run *run, enum mw_actuator a, double value, double *t, struct mw_err *err)
{
	double part = a == MW_ACTUATE_PERIOD ? value - floor(value) : 0, at[2] = { NAN, NAN };
	struct mw_knobs start = run->knobs;
	int code = 0;
	for (int i = 0; i < 1 + (part > 0) && !code; i++) {
		struct mw_mixing_result r = { 0 };
		set_knobs(a, a == MW_ACTUATE_PERIOD ? floor(value) + i : value, &run->knobs);
		code = mw_tmix_exact(run, EXACT_WORK, &r, err);
		at[i] = !code && r.mixes && !r.bound ? r.t_mix : NAN;
	}
	run->knobs = start;
	*t = part > 0 ? at[0] + part * (at[1] - at[0]) : at[0];
	return code;
}

/* Secant steps on logarithms from x, where t is known. The x whose t came nearest; t_best NAN: extrapolated. */
static int search(struct mw_run *run, enum mw_actuator a, double target, double x, double t, double *best,
	double *t_best, struct mw_err *err)
{
	double slope = a == MW_ACTUATE_SLACK ? -1 : 1;
	*best = x;
	*t_best = t;
	for (int i = 0; i < TRIES && fabs(log(t / target)) > GOOD_ENOUGH; i++) {
		double next = bounded(a, x * exp(log(target / t) / slope)), t_next;
		MW_TRY(exact_at(run, a, next, &t_next, err));
		if (!isfinite(t_next)) { /* dearer than it is worth: trust the slope seen so far */
			*best = next;
			*t_best = NAN;
			return 0;
		}
		if (next == x)
			return 0;
		double seen = log(t_next / t) / log(next / x);
		/* whole numbers of steps make it jump: never trust a slope that is nearly flat or steep */
		slope = copysign(fmin(fmax(fabs(seen), 0.3), 3), slope);
		x = next;
		t = t_next;
		if (fabs(log(t / target)) < fabs(log(*t_best / target))) {
			*best = x;
			*t_best = t;
		}
	}
	return 0;
}

/* Neither in rounds, nor in turn, nor in an order that is drawn. */
static bool free_running(const struct mw_run *run)
{
	return run->protocol->clock == MW_CLOCK_EVENT && run->activation == MW_ACT_FREE && run->n_workers > 1;
}

/* The fastest that this actuator can do. */
static int check_reach(struct mw_run *run, struct mw_steer *s, struct mw_err *err)
{
	double least;
	MW_TRY(exact_at(run, s->actuator, 1, &least, err));
	if (!isfinite(least) || s->target >= least * (free_running(run) ? ASSUMED_MARGIN : 1))
		return 0;
	MW_FAIL(err, USAGE,
		"--target-tmix: %g %s can't be reached: with --%s 1 this protocol takes %g already, and the "
		"actuator can only slow it down: any target from %g on can be held",
		s->target, mw_steer_unit(s), mw_steer_actuator(s), least, least);
}

static int feed_forward(struct mw_run *run, struct mw_steer *s, struct mw_err *err)
{
	enum mw_actuator a = s->actuator;
	double base = a == MW_ACTUATE_SLACK ? run->knobs.slack : (double)run->knobs.mix_every, t, at;
	MW_TRY(check_reach(run, s, err));
	MW_TRY(exact_at(run, a, base, &t, err));
	s->value = base;
	if (!isfinite(t)) {
		snprintf(s->start, sizeof(s->start),
			"no exact value for this protocol: starts at %s %g as given", mw_steer_actuator(s),
			base);
		return 0;
	}
	MW_TRY(search(run, a, s->target, base, t, &s->value, &at, err));
	const char *law =
		free_running(run) ? " if pushes come in random order, and exchanges at even periods" : "";
	if (isfinite(at))
		snprintf(s->start, sizeof(s->start), "exactly %.4g at %s %.6g%s", at, mw_steer_actuator(s),
			s->value, law);
	else
		snprintf(s->start, sizeof(s->start),
			"starts at %s %.6g, in proportion to exact values of smaller ones%s",
			mw_steer_actuator(s), s->value, law);
	return 0;
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static int check_options(const struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	bool sim = o->engine == MW_ENGINE_SIM;
	if (!run->protocol->n_slots)
		MW_FAIL(err, USAGE, "--target-tmix: protocol %s exchanges nothing that could be steered",
			run->protocol->ops->name);
	if (o->target_actuator == MW_ACTUATE_PERIOD && run->protocol->due == MW_DUE_SSP)
		MW_FAIL(err, USAGE,
			"--target-tmix: protocol ssp fetches a view when its bound says so; steer it by "
			"--target-actuator slack");
	if (o->estimate != MW_ESTIMATE_PROBE && !(sim && o->estimate == MW_ESTIMATE_ALL))
		MW_FAIL(err, USAGE,
			"--target-tmix is steered by probe columns, the one estimate that is there while "
			"threads "
			"run: --estimate probe%s",
			sim ? " or all" : "");
	if (run->timeline)
		MW_FAIL(err, USAGE,
			"--target-tmix and --timeline both move the knobs: leave one of them out");
	if (o->replay || (o->trace && *o->trace) || o->resume)
		MW_FAIL(err, USAGE,
			"--target-tmix: a run whose knobs follow what was measured is not one that --trace, "
			"--replay or --resume can repeat");
	return 0;
}

/* All entries exist from the start, so that nobody has to be told of new ones; their time comes when they are published. */
static int make_timeline(struct mw_run *run, struct mw_steer *s, struct mw_err *err)
{
	struct mw_timeline *t = run->timeline = s->timeline = mw_alloc(sizeof(*t), "the closed loop", err);
	if (!t)
		return err->code;
	t->entry = mw_alloc_array(WINDOWS_MAX, sizeof(*t->entry), "the closed loop", err);
	if (!t->entry)
		return err->code;
	t->n = WINDOWS_MAX;
	for (uint32_t i = 0; i < t->n; i++) {
		t->entry[i] = (struct mw_timeline_entry){ .unit = MW_AT_SECONDS,
			.at = INFINITY,
			.step = UINT64_MAX,
			.applied_s = NAN,
			.knobs = run->knobs,
			.change = malloc(CHANGE_SIZE) };
		if (!t->entry[i].change)
			MW_FAIL(err, RESOURCE, "out of memory: the closed loop");
	}
	return 0;
}

int mw_steer_new(struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	if (o->target_tmix == 0)
		return 0;
	if (o->estimate == MW_ESTIMATE_NONE)
		MW_TRY(mw_options_set(&run->job->set, "estimate", "probe", NULL, err));
	MW_TRY(check_options(run, err));
	struct mw_steer *s = run->steer = mw_alloc(sizeof(*s), "the closed loop", err);
	if (!s)
		return err->code;
	bool round = run->protocol->clock == MW_CLOCK_ROUND;
	s->run = run;
	s->actuator = (enum mw_actuator)o->target_actuator;
	s->scatters = free_running(run);
	s->target = o->target_tmix / (round && o->target_unit == MW_TARGET_GRADIENTS ? run->n_workers : 1);
	if (s->target < 1)
		MW_FAIL(err, USAGE, "--target-tmix %g: less than one native step (%s) of this protocol",
			o->target_tmix, round ? "a round" : "a push");
	MW_TRY(feed_forward(run, s, err));
	set_knobs(s->actuator, s->value, &run->knobs);
	return make_timeline(run, s, err);
}

void mw_steer_free(struct mw_steer *s)
{
	mw_free(s);
}

/* --- feedback ------------------------------------------------------------------------------------------------------ */

static void ask(struct mw_steer *s, double value)
{
	uint32_t i = s->asked;
	struct mw_timeline_entry *e = &s->timeline->entry[i];
	set_knobs(s->actuator, value, &e->knobs);
	snprintf(e->change, CHANGE_SIZE, "%s=%.6g", mw_steer_actuator(s), value);
	s->value = value;
	__atomic_store_n(&s->asked, i + 1, __ATOMIC_RELEASE); /* read by mw_steer_publish */
	if (s->run->exclusive || s->run->protocol->clock == MW_CLOCK_EVENT)
		mw_steer_publish(s, 0); /* each worker at its own next step */
}

void mw_steer_window(struct mw_steer *s, double measured, double error, uint64_t step)
{
	double misfit = log(measured / s->target), sign = s->actuator == MW_ACTUATE_SLACK ? 1 : -1;
	double gain = fmax(1.0 / (s->n + 1), GAIN_LEAST);
	double next = bounded(s->actuator, s->value * exp(sign * gain * misfit));
	if (s->n == WINDOWS_MAX) /* the actuator stays where it is */
		return;
	/* what may be chance is left alone */
	if (fabs(misfit) <= error / measured)
		next = s->value;
	s->window[s->n] = (struct mw_steer_window){ .measured = measured,
		.error = error,
		.value = s->value,
		.next = next,
		.begin = s->begin,
		.end = step };
	s->begin = step;
	if (next != s->value)
		ask(s, next);
	__atomic_store_n(&s->n, s->n + 1, __ATOMIC_RELEASE); /* read by mw_steer_at */
}

bool mw_steer_pending(const struct mw_steer *s)
{
	return __atomic_load_n(&s->published, __ATOMIC_ACQUIRE) != s->asked;
}

void mw_steer_publish(struct mw_steer *s, uint64_t step)
{
	uint32_t asked = __atomic_load_n(&s->asked, __ATOMIC_ACQUIRE), i = s->published;
	for (; i < asked; i++)
		__atomic_store_n(
			&s->timeline->entry[i].step, step, __ATOMIC_RELEASE); /* see mw_timeline_next */
	if (i != s->published)
		__atomic_store_n(&s->published, i, __ATOMIC_RELEASE); /* read by mw_steer_pending */
}

/* --- what is told -------------------------------------------------------------------------------------------------- */

bool mw_steer_scatters(const struct mw_steer *s)
{
	return s->scatters;
}

double mw_steer_target(const struct mw_steer *s)
{
	return s->target;
}

const char *mw_steer_actuator(const struct mw_steer *s)
{
	return s->actuator == MW_ACTUATE_SLACK ? "slack" : "mix-every";
}

const char *mw_steer_unit(const struct mw_steer *s)
{
	return mw_unit_name(s->run->protocol->clock == MW_CLOCK_ROUND ? MW_UNIT_ROUND : MW_UNIT_EVENT);
}

const char *mw_steer_start(const struct mw_steer *s)
{
	return s->start;
}

const struct mw_steer_window *mw_steer_at(const struct mw_steer *s, uint32_t i)
{
	return i < __atomic_load_n(&s->n, __ATOMIC_ACQUIRE) ? &s->window[i] : NULL;
}

json_t *mw_steer_window_json(const struct mw_steer *s, const struct mw_steer_window *w)
{
	return json_pack("{sf ss sf sf ss sf sf s[II]}", "target", s->target, "unit", mw_steer_unit(s),
		"measured", w->measured, "error", w->error, "actuator", mw_steer_actuator(s), "value",
		w->value, "next", w->next, "steps", (json_int_t)w->begin, (json_int_t)w->end);
}

json_t *mw_steer_json(const struct mw_steer *s)
{
	json_t *windows = json_array();
	const struct mw_steer_window *w;
	double sum = 0;
	uint32_t n = 0;
	for (; (w = mw_steer_at(s, n)); n++) {
		json_array_append_new(windows, mw_steer_window_json(s, w));
		sum += n ? w->measured : 0;
	}
	return json_pack("{sf ss so ss sf ss so}", "target", s->target, "unit", mw_steer_unit(s),
		"mean_from_second", mw_json_number(n > 1 ? sum / (n - 1) : NAN), "actuator",
		mw_steer_actuator(s), "value", s->value, "start", s->start, "windows", windows);
}
