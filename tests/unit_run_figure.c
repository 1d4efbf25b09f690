/* unit_run_figure.c: figures as SVG, tables from CSV, and what is read from run folders: exact values. */
#include "run_util.h"

#include <math.h>
#include <sys/stat.h>

#include "run/figure.h"
#include "run/past.h"
#include "run/table.h"

static char *html(const struct mw_figure *f)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	mw_figure_html(f, out);
	fclose(out);
	return text;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

/* The plot area is x 84..624, y 344..14. From 0 to 100 with 3 % of room at the upper end: 100 is at 84 + 540 / 1.03. */
static void points_are_where_they_belong(void **state)
{
	struct mw_figure *f = mw_figure_new("a", "title", "x (m)", "y (s)");
	(void)state;
	size_t s = mw_figure_series(f, "line", MW_MARK_LINES);
	mw_figure_add(f, s, 0, 0);
	mw_figure_add(f, s, 50, 100);
	mw_figure_add(f, s, NAN, 50); /* lifts the pen */
	mw_figure_add(f, s, 100, 25);
	char *text = html(f);
	has(text, "d=\"M84.0 344.0L346.1 23.6M608.3 263.9\"");
	has(text, ">20</text>");
	has(text, "x (m)");
	has(text, "y (s)");
	free(text);
	mw_figure_free(f);
}

/* Logarithmic: 1..100 with 3 % of two decades on both sides; 10 is in the middle. What is not positive is left out. */
static void logarithmic_axes(void **state)
{
	struct mw_figure *f = mw_figure_new("a", "title", "x", "y");
	(void)state;
	f->xlog = f->ylog = true;
	size_t s = mw_figure_series(f, "a<b", MW_MARK_LINES);
	mw_figure_add(f, s, 0, 1);
	assert_false(mw_figure_has_points(f));
	mw_figure_add(f, s, 1, 1);
	mw_figure_add(f, s, 10, 10);
	mw_figure_add(f, s, 100, 100);
	assert_true(mw_figure_has_points(f));
	char *text = html(f);
	has(text, "d=\"M99.3 334.7L354.0 179.0L608.7 23.3\"");
	has(text, ">50</text>");
	has(text, "a&lt;b");
	has(text, "x, logarithmic");
	free(text);
	mw_figure_free(f);
}

static void bars_start_at_zero(void **state)
{
	struct mw_figure *f = mw_figure_new("a", "title", "x", "y");
	(void)state;
	size_t s = mw_figure_series(f, "bars", MW_MARK_BARS);
	mw_figure_add(f, s, 0, 50);
	mw_figure_add(f, s, 1, 100);
	char *text = html(f);
	has(text, "344.0V23.6"); /* the higher one */
	has(text, "344.0V183.8");
	free(text);
	mw_figure_free(f);
}

static void tables_are_cut(void **state)
{
	struct mw_table t;
	struct mw_err err = { 0 };
	size_t column;
	(void)state;
	assert_int_equal(
		mw_table_load(temporary_file("a,b\r\n\"x, \"\"y\"\"\",1e3\r\n\n,\nz,nan-like"), &t, &err), 0);
	assert_int_equal(t.rows, 3);
	assert_int_equal(t.columns, 2);
	assert_string_equal(mw_table_cell(&t, 0, 0), "x, \"y\"");
	assert_true(mw_table_number(&t, 0, 1) == 1000);
	assert_true(isnan(mw_table_number(&t, 1, 1)));
	assert_true(isnan(mw_table_number(&t, 2, 1)));
	assert_int_equal(mw_table_column(&t, "b", &column, &err), 0);
	assert_int_equal(column, 1);
	assert_int_equal(mw_table_column(&t, "c", &column, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "it has: a, b"));
	mw_table_free(&t);
	err = (struct mw_err){ 0 };
	assert_int_equal(mw_table_load(temporary_file("a,b\n1,2\n1,2,3\n"), &t, &err), MW_EDATA);
	assert_non_null(strstr(err.msg, ":3: 3 cells, but the header has 2"));
	mw_table_free(&t);
	err = (struct mw_err){ 0 };
	assert_int_equal(mw_table_load(temporary_file(""), &t, &err), MW_EDATA);
	mw_table_free(&t);
}

static void tables_become_series(void **state)
{
	struct mw_table t;
	struct mw_err err = { 0 };
	struct mw_figure *f = mw_figure_new("a", "title", "x", "y");
	struct mw_table_figure want = { .x = "n", .y = "t", .by = "p", .where = "ok=1", .mean = true };
	(void)state;
	assert_int_equal(
		mw_table_load(
			temporary_file("p,n,t,ok\na,2,1,1\nb,2,5,1\nc,2,,1\na,2,3,1\na,4,9,1\na,2,99,0\n"),
			&t, &err),
		0);
	assert_int_equal(mw_table_plot(&t, &want, f, &err), 0);
	assert_int_equal(f->n, 2);
	assert_string_equal(f->series[0].name, "a");
	assert_int_equal(f->series[0].n, 2);
	assert_true(f->series[0].y[0] == 2 && f->series[0].low[0] == 1 && f->series[0].high[0] == 3);
	assert_true(f->series[0].x[1] == 4 && f->series[0].y[1] == 9);
	assert_int_equal(f->series[1].n, 1);
	want.where = "ok";
	assert_int_equal(mw_table_plot(&t, &want, f, &err), MW_EUSAGE);
	mw_table_free(&t);
	mw_figure_free(f);
}

/* A run folder with hand-made files. */
static void make_run(const char *folder, const char *end, const char *tmix, const char *metrics)
{
	char path[600];
	FILE *f;
	assert_int_equal(mkdir(folder, 0777), 0);
	snprintf(path, sizeof(path), "%s/run.json", folder);
	f = fopen(path, "w");
	fprintf(f,
		"{\"protocol\": {\"native_step\": \"round\", \"workers\": 4}, \"summary\": {%s, \"t_mix\": "
		"%s}}",
		end, tmix);
	fclose(f);
	snprintf(path, sizeof(path), "%s/metrics.jsonl", folder);
	f = fopen(path, "w");
	fputs(metrics, f);
	fclose(f);
}

static void runs_are_read(void **state)
{
	char folder[3][500];
	const char *where[3];
	struct mw_pasts p;
	struct mw_err err = { 0 };
	struct mw_figure *f;
	(void)state;
	for (int i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof(name), "run%d", i);
		snprintf(folder[i], sizeof(folder[i]), "%s", temporary_path(name));
		where[i] = folder[i];
	}
	make_run(folder[0], "\"stopped_by\": \"epochs\", \"train_loss\": 0.2",
		"{\"exact\": {\"value\": 2, \"gradient_steps\": 8}}",
		"{\"train_loss\": 1, \"steps\": 0}\n{\"event\": \"timeline\"}\n{\"train_loss\": 0.2, "
		"\"steps\": 100}\n{\"train_lo");
	make_run(folder[1], "\"stopped_by\": \"epochs\", \"train_loss\": null",
		"{\"exact\": null, \"trace\": {\"value\": 5}}",
		"{\"train_loss\": 1, \"steps\": 0}\n{\"train_loss\": 0.4, \"steps\": 100}\n");
	make_run(folder[2], "\"stopped_by\": \"epochs\", \"train_loss\": 0.5, \"val_loss\": 0.3",
		"{\"exact\": {\"value\": 3, \"gradient_steps\": 12}}",
		"{\"train_loss\": 1, \"steps\": 0}\n{\"train_loss\": 0.5, \"steps\": 100, \"val_loss\": "
		"0.3}\n");
	assert_int_equal(mw_pasts_load(where, 3, &p, &err), 0);
	assert_int_equal(json_array_size(p.past[0].metrics), 2);
	assert_string_equal(p.past[0].name, "run0");
	assert_true(mw_past_tmix(&p.past[0]) == 8);
	assert_true(mw_past_tmix(&p.past[1]) == 20); /* rounds of 4 gradients */
	assert_true(fabs(mw_past_steps_to(&p.past[0], 0.6) - 50) < 1e-9);
	assert_true(isnan(mw_past_steps_to(&p.past[1], 0.3)));
	assert_true(fabs(mw_past_steps_to(&p.past[2], 0.3) - 100) <
		    1e-9); /* validation loss where there is one */
	/* least losses 0.2, 0.4, 0.3: three in four of three runs are all, 0.4: after 75, 100 and 100 * 0.6 / 0.7 steps */
	assert_int_equal(mw_past_figure(&p, "tmix-target", NAN, &f, &err), 0);
	assert_non_null(f);
	assert_int_equal(f->series[0].n, 3);
	assert_true(fabs(f->series[0].y[0] - 75) < 1e-9 && fabs(f->series[0].y[1] - 100) < 1e-9);
	assert_true(fabs(f->series[0].y[2] - 60 / 0.7) < 1e-9);
	has(f->note, "3 runs to loss 0.4. Spearman's rank correlation 1.000");
	mw_figure_free(f);
	/* t_mix 8, 20, 12; steps 93.75, never, 100 */
	assert_int_equal(mw_past_figure(&p, "tmix-target", 0.3, &f, &err), 0);
	assert_int_equal(f->series[0].n, 2);
	has(f->note, "2 runs to loss 0.3; 1 more never reach it");
	has(f->note, "Spearman's rank correlation 1.000");
	mw_figure_free(f);
	/* t_mix 8, 20, 12; last losses 0.2, none, 0.3 */
	assert_int_equal(mw_past_figure(&p, "tmix-loss", NAN, &f, &err), 0);
	assert_int_equal(f->series[0].n, 2);
	assert_true(f->series[0].y[0] == 0.2 && f->series[0].y[1] == 0.3);
	has(f->note, "2 runs; 1 more have none (diverged) and count as the worst");
	has(f->note, "Spearman's rank correlation 1.000");
	mw_figure_free(f);
	assert_int_equal(mw_past_figure(&p, "staleness", NAN, &f, &err), 0);
	assert_null(f);
	assert_int_equal(mw_past_figure(&p, "los-steps", NAN, &f, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "did you mean 'loss-steps'"));
	mw_pasts_free(&p);
	err = (struct mw_err){ 0 };
	assert_int_equal(mw_pasts_load((const char *[]){ "/proc/self/nowhere" }, 1, &p, &err), MW_EDATA);
	mw_pasts_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_where_they_belong),
		cmocka_unit_test(logarithmic_axes),
		cmocka_unit_test(bars_start_at_zero),
		cmocka_unit_test(tables_are_cut),
		cmocka_unit_test(tables_become_series),
		cmocka_unit_test(runs_are_read),
	};
	return cmocka_run_group_tests_name("unit_run_figure", tests, NULL, NULL);
}
