/* past_figures.c: the figures of runs that are over; see past.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"
#include "base/stats.h"
#include "run/past.h"

/* Curves that one figure can hold before nobody can tell them apart. */
#define CURVES_MAX 8
#define RESAMPLES  2000
#define LEVEL      0.95

typedef int figure_fn(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err);

static int made(struct mw_figure *f, struct mw_figure **out, struct mw_err *err)
{
	*out = NULL;
	if (f && !f->failed && !mw_figure_has_points(f)) {
		mw_figure_free(f);
		return MW_OK;
	}
	if (!f || f->failed) {
		mw_figure_free(f);
		MW_FAIL(err, RESOURCE, "out of memory for the figures");
	}
	*out = f;
	return MW_OK;
}

/* --- which runs are drawn ------------------------------------------------------------------------------------------ */

static int by_tmix(const void *a, const void *b)
{
	double x = mw_past_tmix(*(const struct mw_past *const *)a),
	       y = mw_past_tmix(*(const struct mw_past *const *)b);
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x > y) - (x < y);
}

/* At most CURVES_MAX runs, evenly over t_mix if there are more. Returns how many. */
static size_t choose(const struct mw_pasts *p, const struct mw_past **chosen)
{
	const struct mw_past **all = calloc(p->n, sizeof(*all));
	size_t n = p->n < CURVES_MAX ? p->n : CURVES_MAX;
	if (!all)
		return 0;
	for (size_t i = 0; i < p->n; i++)
		all[i] = &p->past[i];
	if (p->n > n)
		qsort(all, p->n, sizeof(*all), by_tmix);
	for (size_t i = 0; i < n; i++)
		chosen[i] = all[n > 1 ? i * (p->n - 1) / (n - 1) : 0];
	free(all);
	return n;
}

static void note_choice(const struct mw_pasts *p, size_t n, struct mw_figure *f)
{
	char note[160];
	if (n >= p->n || !f)
		return;
	snprintf(note, sizeof(note), "%zu of %zu runs are drawn, evenly spaced in the order of their t_mix.",
		n, p->n);
	mw_figure_note(f, note);
}

/* --- loss ---------------------------------------------------------------------------------------------------------- */

static void add_curve(struct mw_figure *f, const struct mw_past *p, const char *suffix, const char *x,
	const char *y, enum mw_mark mark)
{
	char *name = mw_strprintf("%s%s", p->name, suffix);
	size_t series = mw_figure_series(f, name ? name : "", mark), i;
	json_t *m;
	free(name);
	json_array_foreach(p->metrics, i, m)
		mw_figure_add(f, series, mw_past_number(m, x), mw_past_number(m, y));
}

static bool has(const struct mw_past *p, const char *what)
{
	size_t i;
	json_t *m;
	json_array_foreach(p->metrics, i, m) if (isfinite(mw_past_number(m, what))) return true;
	return false;
}

static int loss(const struct mw_pasts *p, const char *name, const char *title, const char *x,
	const char *xlabel, struct mw_figure **out, struct mw_err *err)
{
	const struct mw_past *run[CURVES_MAX];
	size_t n = choose(p, run);
	struct mw_figure *f = mw_figure_new(name, title, xlabel, "loss (mean over examples, dimensionless)");
	note_choice(p, n, f);
	for (size_t i = 0; f && i < n; i++) {
		add_curve(f, run[i], " (train)", x, "train_loss", MW_MARK_LINES);
		if (has(run[i], "val_loss") && n <= 2)
			add_curve(f, run[i], " (validation)", x, "val_loss", MW_MARK_LINES);
		if (has(run[i], "test_loss") && n <= 2)
			add_curve(f, run[i], " (test)", x, "test_loss", MW_MARK_LINES);
	}
	double least = INFINITY, most = 0;
	for (size_t s = 0; f && s < f->n; s++)
		for (size_t k = 0; k < f->series[s].n; k++) {
			double y = f->series[s].y[k];
			least = y < least ? y : least;
			most = isfinite(y) && y > most ? y : most;
		}
	if (f)
		f->ylog = least > 0 && most > 20 * least;
	return made(f, out, err);
}

static int loss_steps(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	(void)target;
	return loss(p, "loss-steps", "Loss against gradient steps", "steps",
		"gradient steps (of all workers)", out, err);
}

static int loss_epochs(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	(void)target;
	return loss(p, "loss-epochs", "Loss against epochs", "epoch",
		"epochs (passes over the training rows)", out, err);
}

static int loss_seconds(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	(void)target;
	return loss(p, "loss-seconds", "Loss against time", "seconds",
		"seconds (training clock; sim: of the simulation)", out, err);
}

static int loss_virtual(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	(void)target;
	return loss(p, "loss-virtual-seconds", "Loss against virtual time (sim)", "virtual_seconds",
		"virtual seconds (as if every worker had a core)", out, err);
}

/* --- mixing time --------------------------------------------------------------------------------------------------- */

static void add_estimate(struct mw_figure *f, const struct mw_past *p, const char *estimator, bool many)
{
	char path[64], error[64];
	size_t i, series = 0, have = 0;
	json_t *m;
	snprintf(path, sizeof(path), "t_mix/%s/value", estimator);
	snprintf(error, sizeof(error), "t_mix/%s/error", estimator);
	json_array_foreach(p->metrics, i, m)
	{
		double y = mw_past_number(m, path), e = mw_past_number(m, error);
		if (!isfinite(y))
			continue;
		if (!have++) {
			char *name = mw_strprintf("%s%s%s", many ? p->name : "", many ? ": " : "", estimator);
			series = mw_figure_series(f, name ? name : "", MW_MARK_BOTH);
			free(name);
		}
		e = isfinite(e) ? e : 0;
		mw_figure_add_bar(f, series, mw_past_number(m, "steps"), y, y - e, y + e);
	}
}

static void add_exact(struct mw_figure *f, const struct mw_past *p, bool many)
{
	double y = mw_past_number(p->run, "summary/t_mix/exact/value");
	size_t n = json_array_size(p->metrics);
	if (!isfinite(y) || !n)
		return;
	char *name = mw_strprintf("%s%sexact", many ? p->name : "", many ? ": " : "");
	size_t series = mw_figure_series(f, name ? name : "", MW_MARK_LINES);
	free(name);
	mw_figure_add(f, series, 0, y);
	mw_figure_add(f, series, mw_past_number(json_array_get(p->metrics, n - 1), "steps"), y);
}

static int tmix(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	static const char *const estimators[] = { "trace", "probe", "passive" };
	const struct mw_past *run[CURVES_MAX];
	size_t n = choose(p, run), before;
	(void)target;
	struct mw_figure *f = mw_figure_new("tmix", "Mixing time during the run",
		"gradient steps (of all workers)", "t_mix (native steps: events, or rounds under a barrier)");
	note_choice(p, n, f);
	for (size_t i = 0; f && i < n && f->n < CURVES_MAX; i++) {
		before = f->n;
		for (int k = 0; k < 3; k++)
			add_estimate(f, run[i], estimators[k], p->n > 1);
		if (f->n > before)
			add_exact(f, run[i], p->n > 1);
	}
	return made(f, out, err);
}

static void describe(const char *what, const struct mw_interval *v, char *text, size_t size)
{
	size_t used = strlen(text);
	if (isfinite(v->value) && isfinite(v->low))
		snprintf(text + used, size - used, "%s %.3f [%.3f, %.3f]", what, v->value, v->low, v->high);
	else if (isfinite(v->value))
		snprintf(text + used, size - used, "%s %.3f (too few runs for an interval)", what, v->value);
	else
		snprintf(text + used, size - used, "%s: none", what);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The loss that three runs in four reach: one that all reach is reached before they differ. NAN: no losses. */
static double common_target(const struct mw_pasts *p)
{
	double *best = calloc(p->n + 1, sizeof(*best));
	uint32_t n = 0;
	for (size_t i = 0; best && i < p->n; i++) {
		size_t k;
		json_t *m;
		double least = INFINITY;
		const char *end = mw_past_text(p->past[i].run, "summary/stopped_by");
		json_array_foreach(p->past[i].metrics, k, m)
		{
			double v = mw_past_number(m, "val_loss");
			v = isfinite(v) ? v : mw_past_number(m, "train_loss");
			least = v < least ? v : least;
		}
		if (end && strcmp(end, "diverged") && isfinite(least))
			best[n++] = least;
	}
	if (n)
		qsort(best, n, sizeof(*best), by_value);
	double target = n ? best[(3 * (size_t)n + 3) / 4 - 1] : NAN;
	free(best);
	return target;
}

/* What has no y (a run that never reaches the loss, or diverged) is the largest by rank. */
#define NEVER 1e300

/* A point a run: its t_mix against what y_of says of it. */
struct against {
	const char *name, *title, *y_label;
	double (*y_of)(const struct mw_past *p, double target);
	double target;
	const char *missing, *pearson; /* runs without y do what; what is correlated with log t_mix */
};

static int note_correlation(struct mw_figure *f, const struct against *a, const double *x, const double *y,
	uint32_t n, struct mw_err *err)
{
	char note[500];
	struct mw_interval s, l;
	const struct mw_series *v = &f->series[0];
	MW_TRY(mw_correlation_bootstrap(MW_SPEARMAN, x, y, n, LEVEL, RESAMPLES, 1, &s, err));
	MW_TRY(mw_correlation_bootstrap(
		MW_PEARSON_LOG_X, v->x, v->y, (uint32_t)v->n, LEVEL, RESAMPLES, 1, &l, err));
	snprintf(note, sizeof(note), "%zu runs", v->n);
	if (isfinite(a->target))
		snprintf(note + strlen(note), sizeof(note) - strlen(note), " to loss %.5g", a->target);
	if (n > v->n)
		snprintf(note + strlen(note), sizeof(note) - strlen(note), "; %zu more %s in the ranks",
			n - v->n, a->missing);
	snprintf(note + strlen(note), sizeof(note) - strlen(note), ". ");
	describe("Spearman's rank correlation", &s, note, sizeof(note));
	snprintf(note + strlen(note), sizeof(note) - strlen(note), "; ");
	describe(a->pearson, &l, note, sizeof(note));
	snprintf(note + strlen(note), sizeof(note) - strlen(note), "; brackets: 95 %% bootstrap interval.");
	mw_figure_note(f, note);
	return MW_OK;
}

static int tmix_against(
	const struct mw_pasts *p, const struct against *a, struct mw_figure **out, struct mw_err *err)
{
	uint32_t n = 0;
	int ret = 0;
	*out = NULL;
	if (p->n < 3)
		return MW_OK;
	double *x = calloc(2 * p->n, sizeof(*x)), *y = x + p->n;
	struct mw_figure *f = mw_figure_new(a->name, a->title, "t_mix (gradient steps)", a->y_label);
	size_t series = f ? mw_figure_series(f, "a run", MW_MARK_POINTS) : 0;
	for (size_t i = 0; x && f && i < p->n; i++) {
		double t = mw_past_tmix(&p->past[i]), value = a->y_of(&p->past[i], a->target);
		if (!isfinite(t) || t <= 0)
			continue;
		x[n] = t;
		y[n++] = isfinite(value) ? value : NEVER;
		if (isfinite(value))
			mw_figure_add(f, series, t, value);
	}
	if (x && f && !f->failed && n >= 3)
		ret = note_correlation(f, a, x, y, n, err);
	free(x);
	if (ret < 0) {
		mw_figure_free(f);
		return ret;
	}
	if (f) {
		f->xlog = true;
		f->failed = f->failed || !x;
	}
	return made(f, out, err);
}

static int tmix_target(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	struct against a = { .name = "tmix-target",
		.title = "Mixing time against steps to the target loss",
		.y_label = "gradient steps to the target (of all workers)",
		.y_of = mw_past_steps_to,
		.target = isfinite(target) ? target : common_target(p),
		.missing = "never reach it and count as the slowest",
		.pearson = "Pearson's of log t_mix and steps" };
	int ret = tmix_against(p, &a, out, err);
	if (*out)
		(*out)->ylog = true;
	return ret;
}

static double final_loss(const struct mw_past *p, double target)
{
	const char *end = mw_past_text(p->run, "summary/stopped_by");
	double v = mw_past_number(p->run, "summary/val_loss");
	(void)target;
	if (end && !strcmp(end, "diverged"))
		return NAN;
	return isfinite(v) ? v : mw_past_number(p->run, "summary/train_loss");
}

static int tmix_loss(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	static const struct against a = { .name = "tmix-loss",
		.title = "Mixing time against the loss at the end",
		.y_label = "last loss (validation where there is one, else training)",
		.y_of = final_loss,
		.target = NAN,
		.missing = "have none (diverged) and count as the worst",
		.pearson = "Pearson's of log t_mix and last loss" };
	(void)target;
	return tmix_against(p, &a, out, err);
}

/* --- staleness, consensus, bound ----------------------------------------------------------------------------------- */

/* Shares by octave: 0, 1, 2-3, 4-7... are drawn at their lower ends; single values while they are few. */
static void add_histogram(struct mw_figure *f, const struct mw_past *p, bool octaves)
{
	const json_t *list =
		json_object_get(json_object_get(json_object_get(p->run, "summary"), "staleness"), "buckets");
	double n = mw_past_number(p->run, "summary/staleness/n"), share[66] = { 0 };
	size_t i, series;
	json_t *b;
	if (!json_array_size(list) || !(n > 0))
		return;
	series = mw_figure_series(f, p->name, MW_MARK_BARS);
	json_array_foreach(list, i, b)
	{
		double v = json_number_value(json_array_get(b, 0)),
		       c = json_number_value(json_array_get(b, 1));
		if (octaves)
			share[v < 1 ? 0 : 1 + (int)floor(log2(v))] += 100 * c / n;
		else
			mw_figure_add(f, series, v, 100 * c / n);
	}
	for (int o = 0; octaves && o < 66; o++)
		if (share[o] > 0)
			mw_figure_add(f, series, o ? ldexp(1, o - 1) : 0.5, share[o]);
}

static int staleness(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	const struct mw_past *run[CURVES_MAX];
	size_t n = choose(p, run);
	double most = 0;
	(void)target;
	for (size_t i = 0; i < n; i++) {
		double v = mw_past_number(run[i]->run, "summary/staleness/max");
		most = v > most ? v : most;
	}
	bool octaves = most > 40;
	struct mw_figure *f = mw_figure_new("staleness", "Staleness of the updates",
		octaves ? "staleness (updates missing at use; lower ends of octaves, 0.5 stands for 0)"
			: "staleness (updates missing at use)",
		"share of the updates (%)");
	n = n > 4 ? 4 : n; /* bars stand side by side */
	note_choice(p, n, f);
	for (size_t i = 0; f && i < n; i++)
		add_histogram(f, run[i], octaves);
	if (f)
		f->xlog = octaves;
	return made(f, out, err);
}

static int consensus(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	const struct mw_past *run[CURVES_MAX];
	size_t n = choose(p, run);
	bool any = false;
	(void)target;
	struct mw_figure *f = mw_figure_new("consensus", "Consensus distance",
		"gradient steps (of all workers)", "RMS distance from the average (parameter units)");
	note_choice(p, n, f);
	for (size_t i = 0; f && i < n; i++)
		add_curve(f, run[i], "", "steps", "consensus_distance", MW_MARK_LINES);
	for (size_t s = 0; f && s < f->n; s++)
		for (size_t k = 0; k < f->series[s].n; k++)
			any = any || f->series[s].y[k] > 0;
	if (f && !any) { /* one replica: there is nothing to see */
		mw_figure_free(f);
		*out = NULL;
		return MW_OK;
	}
	return made(f, out, err);
}

static int bound(const struct mw_pasts *p, double target, struct mw_figure **out, struct mw_err *err)
{
	const struct mw_past *run[CURVES_MAX];
	size_t n = choose(p, run);
	bool any = false;
	(void)target;
	struct mw_figure *f = mw_figure_new("bound", "The theory's bound against what was measured",
		"gradient steps (of all workers)", "mean of |grad f|^2 over the steps so far");
	for (size_t i = 0; f && i < n; i++)
		if (has(run[i], "bound/bound")) {
			any = true;
			add_curve(f, run[i], ": bound", "steps", "bound/bound", MW_MARK_LINES);
			add_curve(f, run[i], ": measured", "steps", "bound/measured", MW_MARK_LINES);
		}
	if (f)
		f->ylog = true;
	if (f && !any) {
		mw_figure_free(f);
		*out = NULL;
		return MW_OK;
	}
	return made(f, out, err);
}

/* --- by name ------------------------------------------------------------------------------------------------------- */

const char *const mw_past_figures[] = { "loss-steps", "loss-epochs", "loss-seconds", "loss-virtual-seconds",
	"tmix", "tmix-loss", "tmix-target", "bound", "consensus", "staleness", NULL };

int mw_past_figure(
	const struct mw_pasts *p, const char *name, double target, struct mw_figure **out, struct mw_err *err)
{
	static figure_fn *const make[] = { loss_steps, loss_epochs, loss_seconds, loss_virtual, tmix,
		tmix_loss, tmix_target, bound, consensus, staleness };
	*out = NULL;
	for (size_t i = 0; mw_past_figures[i]; i++)
		if (!strcmp(mw_past_figures[i], name))
			return make[i](p, target, out, err);
	const char *nearest =
		mw_nearest(name, mw_past_figures, sizeof(mw_past_figures) / sizeof(*mw_past_figures) - 1);
	MW_FAIL(err, USAGE,
		"there is no figure '%s' (there are: loss-steps, loss-epochs, loss-seconds, "
		"loss-virtual-seconds, "
		"tmix, tmix-loss, tmix-target, bound, consensus, staleness; or a CSV file)%s%s%s",
		name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}
