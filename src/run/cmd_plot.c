/* cmd_plot.c: `mixwild plot`: one figure as a file, from runs or from a CSV file, by gnuplot. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "run/command.h"
#include "run/output.h"
#include "run/past.h"
#include "run/record.h"
#include "run/table.h"

#define RESAMPLES 2000
#define LEVEL     0.95

struct options {
	char *out, *x, *y, *by, *where, *low, *high;
	char *title, *xlabel, *ylabel;
	bool xlog, ylog, mean;
	int style, format;
	double target_loss;
};

#define F(field) offsetof(struct options, field)

static const struct mw_option table[] = {
	{ "out", MW_OPT_STRING, F(out), NULL, 0, 0, NULL, "FILE",
		"The figure: .svg, .png or .pdf; also -o. gnuplot's script (.gp) and data (.dat) are kept "
		"beside it. "
		"Without it no figure is made, and only the numbers are printed." },
	{ "x", MW_OPT_STRING, F(x), NULL, 0, 0, NULL, "COLUMN", "CSV file: the column along the x axis." },
	{ "y", MW_OPT_STRING, F(y), NULL, 0, 0, NULL, "COLUMN", "CSV file: the column along the y axis." },
	{ "by", MW_OPT_STRING, F(by), NULL, 0, 0, NULL, "COLUMN",
		"CSV file: a series for each value of this column." },
	{ "where", MW_OPT_STRING, F(where), NULL, 0, 0, NULL, "COLUMN=VALUE,...",
		"CSV file: only rows with these values." },
	{ "low", MW_OPT_STRING, F(low), NULL, 0, 0, NULL, "COLUMN", "CSV file: lower ends of error bars." },
	{ "high", MW_OPT_STRING, F(high), NULL, 0, 0, NULL, "COLUMN", "CSV file: upper ends of error bars." },
	{ "mean", MW_OPT_BOOL, F(mean), "no", 0, 0, NULL, NULL,
		"CSV file: rows of a series with the same x (seeds) become one point, their mean, with a bar "
		"from the "
		"least to the largest." },
	{ "style", MW_OPT_CHOICE, F(style), "both", 0, 0, "lines|points|both|bars", NULL,
		"CSV file: how series are drawn." },
	{ "xlog", MW_OPT_BOOL, F(xlog), "no", 0, 0, NULL, NULL, "A logarithmic x axis." },
	{ "ylog", MW_OPT_BOOL, F(ylog), "no", 0, 0, NULL, NULL, "A logarithmic y axis." },
	{ "title", MW_OPT_STRING, F(title), NULL, 0, 0, NULL, "TEXT", "Title of the figure." },
	{ "xlabel", MW_OPT_STRING, F(xlabel), NULL, 0, 0, NULL, "TEXT",
		"Label of the x axis, with its unit." },
	{ "ylabel", MW_OPT_STRING, F(ylabel), NULL, 0, 0, NULL, "TEXT",
		"Label of the y axis, with its unit." },
	{ "target-loss", MW_OPT_FLOAT, F(target_loss), "0", 0, 0, NULL, "LOSS",
		"tmix-target: the loss to be reached; 0: one that three runs in four reach." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL,
		"Form of the numbers printed." },
	{ 0 },
};

/* --- the figure ---------------------------------------------------------------------------------------------------- */

static int from_table(const struct mw_job *job, struct mw_figure **out, struct mw_err *err)
{
	const struct options *o = job->options;
	struct mw_table t;
	const char *path = job->positional[0];
	const struct mw_table_figure want = { o->x, o->y, o->by, o->where, o->low, o->high, o->mean,
		(enum mw_mark)o->style };
	if (job->n_positional > 1)
		MW_FAIL(err, USAGE, "'%s' is one too many: a figure of a CSV file has no runs",
			job->positional[1]);
	if (!o->x || !o->y)
		MW_FAIL(err, USAGE, "%s: which columns? Give --x and --y", path);
	int ret = mw_table_load(path, &t, err);
	if (ret == 0) {
		*out = mw_figure_new("plot", o->title ? o->title : path, o->x, o->y);
		ret = *out ? mw_table_plot(&t, &want, *out, err)
			   : mw_err_set(err, MW_ERESOURCE, "out of memory for the figure");
	}
	mw_table_free(&t);
	return ret;
}

static int from_runs(const struct mw_job *job, struct mw_figure **out, struct mw_err *err)
{
	const struct options *o = job->options;
	static const char *const of_tables[] = { "x", "y", "by", "where", "low", "high", "mean", "style" };
	struct mw_pasts p = { 0 };
	for (size_t i = 0; i < sizeof(of_tables) / sizeof(*of_tables); i++)
		if (mw_options_is_set(&job->set, of_tables[i]))
			MW_FAIL(err, USAGE, "--%s is for figures of a CSV file, and %s is none (name.csv)",
				of_tables[i], job->positional[0]);
	bool given = mw_options_is_set(&job->set, "target-loss");
	if (job->n_positional < 2) /* an unknown name is the likelier slip */
		MW_TRY(mw_past_figure(&p, job->positional[0], NAN, out, err));
	if (job->n_positional < 2)
		MW_FAIL(err, USAGE, "%s of which runs? Name their folders", job->positional[0]);
	int ret = mw_pasts_load(job->positional + 1, (size_t)job->n_positional - 1, &p, err);
	if (ret == 0)
		ret = mw_past_figure(&p, job->positional[0], given ? o->target_loss : NAN, out, err);
	if (ret == 0 && !*out)
		ret = mw_err_set(err, MW_EDATA, "these runs have nothing to show in %s", job->positional[0]);
	mw_pasts_free(&p);
	return ret;
}

static int relabel(char **label, const char *to, struct mw_err *err)
{
	char *copy = to ? mw_strdup(to) : *label;
	if (!copy)
		MW_FAIL(err, RESOURCE, "out of memory for the figure");
	if (to)
		free(*label);
	*label = copy;
	return MW_OK;
}

/* --- numbers ------------------------------------------------------------------------------------------------------- */

/* d log y / d log x between the two points with the largest x. */
static double last_slope(const struct mw_series *s)
{
	size_t a = SIZE_MAX, b = SIZE_MAX;
	for (size_t k = 0; k < s->n; k++)
		if (b == SIZE_MAX || s->x[k] > s->x[b]) {
			a = b;
			b = k;
		} else if (a == SIZE_MAX || s->x[k] > s->x[a]) {
			a = k;
		}
	if (a == SIZE_MAX || !(s->x[a] > 0) || !(s->y[a] > 0) || !(s->y[b] > 0) || !(s->x[b] > s->x[a]))
		return NAN;
	return log(s->y[b] / s->y[a]) / log(s->x[b] / s->x[a]);
}

static json_t *interval(const struct mw_interval *v)
{
	return json_pack("{so so so}", "value", mw_json_number(v->value), "low", mw_json_number(v->low),
		"high", mw_json_number(v->high));
}

static int series_json(const struct mw_series *s, json_t **out, struct mw_err *err)
{
	struct mw_interval rank, log_x;
	uint32_t n = (uint32_t)s->n;
	MW_TRY(mw_correlation_bootstrap(MW_SPEARMAN, s->x, s->y, n, LEVEL, RESAMPLES, 1, &rank, err));
	MW_TRY(mw_correlation_bootstrap(MW_PEARSON_LOG_X, s->x, s->y, n, LEVEL, RESAMPLES, 1, &log_x, err));
	*out = json_pack("{ss sI so so so}", "series", s->name, "points", (json_int_t)n, "spearman",
		interval(&rank), "pearson_log_x", interval(&log_x), "last_slope",
		mw_json_number(last_slope(s)));
	return MW_OK;
}

static int numbers(const struct mw_figure *f, json_t **out, struct mw_err *err)
{
	*out = json_array();
	for (size_t i = 0; i < f->n; i++) {
		json_t *j = NULL;
		MW_TRY(series_json(&f->series[i], &j, err));
		json_array_append_new(*out, j);
	}
	return MW_OK;
}

static void cell(FILE *out, const json_t *j, const char *a, const char *b)
{
	const json_t *v = b ? json_object_get(json_object_get(j, a), b) : json_object_get(j, a);
	if (json_is_number(v))
		fprintf(out, ",%.10g", json_number_value(v));
	else
		fputc(',', out);
}

static void print_csv(const json_t *all, FILE *out)
{
	size_t i;
	json_t *j;
	fputs("series,points,spearman,spearman_low,spearman_high,pearson_log_x,pearson_log_x_low,"
	      "pearson_log_x_high,last_slope\n",
		out);
	json_array_foreach(all, i, j)
	{
		mw_output_csv(out, json_string_value(json_object_get(j, "series")));
		cell(out, j, "points", NULL);
		for (int k = 0; k < 2; k++) {
			const char *of = k ? "pearson_log_x" : "spearman";
			cell(out, j, of, "value");
			cell(out, j, of, "low");
			cell(out, j, of, "high");
		}
		cell(out, j, "last_slope", NULL);
		fputc('\n', out);
	}
}

static void print_one(FILE *out, const char *what, const json_t *v)
{
	double value = mw_past_number(v, "value"), low = mw_past_number(v, "low");
	if (isfinite(value))
		fprintf(out, ", %s %.3f", what, value);
	if (isfinite(low))
		fprintf(out, " [%.3f, %.3f]", low, mw_past_number(v, "high"));
}

static void print_text(const json_t *all, FILE *out)
{
	size_t i;
	json_t *j;
	json_array_foreach(all, i, j)
	{
		fprintf(out, "%s: %lld points", json_string_value(json_object_get(j, "series")),
			(long long)json_integer_value(json_object_get(j, "points")));
		print_one(out, "Spearman", json_object_get(j, "spearman"));
		print_one(out, "Pearson of log x", json_object_get(j, "pearson_log_x"));
		double slope = mw_past_number(j, "last_slope");
		if (isfinite(slope))
			fprintf(out, ", last slope (log y over log x) %.3f", slope);
		fputc('\n', out);
	}
}

static int print(const struct mw_figure *f, int format, FILE *out, struct mw_err *err)
{
	json_t *all = NULL;
	int ret = numbers(f, &all, err);
	if (ret == 0 && format == 1)
		mw_output_json(out, json_incref(all));
	else if (ret == 0 && format == 2)
		print_csv(all, out);
	else if (ret == 0)
		print_text(all, out);
	json_decref(all);
	return ret;
}

static bool is_csv(const char *name)
{
	size_t n = strlen(name);
	return n > 4 && !strcmp(name + n - 4, ".csv");
}

static int finish(const struct mw_job *job, struct mw_figure *f, struct mw_err *err)
{
	const struct options *o = job->options;
	f->xlog = f->xlog || o->xlog;
	f->ylog = f->ylog || o->ylog;
	MW_TRY(relabel(&f->title, o->title, err));
	MW_TRY(relabel(&f->xlabel, o->xlabel, err));
	MW_TRY(relabel(&f->ylabel, o->ylabel, err));
	MW_TRY(print(f, o->format, job->out, err));
	if (f->note && job->msg)
		fprintf(job->msg, "%s\n", f->note);
	return o->out ? mw_figure_gnuplot(f, o->out, err) : MW_OK;
}

static int run(struct mw_job *job, struct mw_err *err)
{
	struct mw_figure *f = NULL;
	int ret = is_csv(job->positional[0]) ? from_table(job, &f, err) : from_runs(job, &f, err);
	if (ret == 0)
		ret = finish(job, f, err);
	mw_figure_free(f);
	return ret;
}

const struct mw_command mw_command_plot = {
	.name = "plot",
	.summary =
		"One figure as SVG, PNG or PDF, from runs or from a CSV file, with gnuplot's script and data",
	.positionals = "FIGURE RUN...|FILE.csv",
	.min_positionals = 1,
	.max_positionals = MW_POSITIONALS_MAX,
	.uses = MW_NO_INTERRUPT,
	.options = table,
	.option_size = sizeof(struct options),
	.examples = "mixwild plot loss-epochs runs/a runs/b --out loss.svg\n"
		    "mixwild plot runs/frequency/index.csv --x tmix_exact --y train_loss --by job --mean "
		    "--xlog --out "
		    "frequency.pdf\n",
	.run = run,
};
