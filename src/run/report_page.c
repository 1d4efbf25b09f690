/* report_page.c: see report_page.h. */
#include "run/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A page with more rows is no longer read. */
#define ROWS_MAX 400

static const char style[] =
	"body{font:16px/1.45 system-ui,sans-serif;color:#111;background:#fff;max-width:46rem;margin:0 auto;"
	"padding:.8rem;overflow-wrap:anywhere}"
	"h1{font-size:1.5rem;margin:.4rem 0}h2{font-size:1.15rem;margin:1.8rem 0 .3rem}"
	"figure{margin:0}svg.chart{width:100%;height:auto;display:block}"
	"svg text{font:15px system-ui,sans-serif;fill:#111}"
	".grid{stroke:#ddd;fill:none}.axis{stroke:#333;fill:none;stroke-width:1.5}"
	".line{fill:none;stroke-width:2}.bar,.mark{stroke-width:1.5}"
	".ylabel,.xlabel{font-size:.9rem;margin:.2rem 0;color:#333}.ylabel::before{content:'\\2191\\a0'}"
	".xlabel{text-align:right}.xlabel::after{content:'\\a0\\2192'}"
	".note{font-size:.9rem;margin:.3rem 0}"
	".legend{list-style:none;margin:.3rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem "
	"1rem;font-size:.9rem}"
	".legend svg{width:40px;height:14px;vertical-align:-2px;margin-right:.4rem}"
	".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}"
	"th,td{text-align:left;padding:.15rem .5rem;border-bottom:1px solid #ddd;vertical-align:top}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	".wide td,.wide th{white-space:nowrap}"
	"td.name{white-space:normal;min-width:14rem;overflow-wrap:normal}"
	".node,.core,.pu{border:1px solid "
	"#888;border-radius:4px;padding:.3rem;margin:.2rem;display:inline-block;"
	"vertical-align:top;font-size:.85rem}.node{border-width:2px}.core{background:#f4f4f4}"
	".pu{background:#fff;border-color:#0072B2}.pu b{color:#0072B2}"
	"code{font-size:.85rem}"
	"@media(max-width:520px){svg.chart text{font-size:21px}}"
	"@media "
	"print{body{max-width:none;font-size:10pt}section{break-inside:avoid}section.long{break-inside:auto}"
	"figure{max-width:11.5cm}.wide{overflow:visible}.wide table{font-size:6.5pt}.wide td,.wide "
	"th{white-space:normal;"
	"padding:.1rem .25rem}}";

void mw_report_head(const char *title, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
		out);
	mw_html_text(title, out);
	fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
	mw_html_text(title, out);
	fputs("</h1>\n", out);
}

void mw_report_foot(FILE *out)
{
	fputs("</body>\n</html>\n", out);
}

static void begin(const char *id, const char *title, bool is_long, FILE *out)
{
	fprintf(out, "<section id=\"%s\"%s>\n<h2>%s</h2>\n", id, is_long ? " class=\"long\"" : "", title);
}

static void end(FILE *out)
{
	fputs("</section>\n", out);
}

/* --- runs ---------------------------------------------------------------------------------------------------------- */

enum kind { TEXT, NUMBER };

static const struct {
	const char *title, *path;
	enum kind kind;
} column[] = {
	{ "protocol", "protocol/name", TEXT },
	{ "workers", "protocol/workers", NUMBER },
	{ "engine", "config/engine", TEXT },
	{ "model", "model", TEXT },
	{ "train loss", "summary/train_loss", NUMBER },
	{ "validation loss", "summary/val_loss", NUMBER },
	{ "test loss", "summary/test_loss", NUMBER },
	{ "test accuracy (share)", "summary/test_accuracy", NUMBER },
	{ "t_mix exact (native steps)", "summary/t_mix/exact/value", NUMBER },
	{ "t_mix trace", "summary/t_mix/trace/value", NUMBER },
	{ "t_mix probe", "summary/t_mix/probe/value", NUMBER },
	{ "t_mix passive", "summary/t_mix/passive/value", NUMBER },
	{ "mean staleness (updates)", "summary/staleness/mean", NUMBER },
	{ "epochs", "summary/epochs", NUMBER },
	{ "time (s)", "summary/seconds", NUMBER },
	{ "examples/s", "summary/examples_per_s", NUMBER },
	{ "ended by", "summary/stopped_by", TEXT },
};

#define COLUMNS (sizeof(column) / sizeof(*column))

static void cell(const struct mw_past *p, size_t c, FILE *out)
{
	const char *text = mw_past_text(p->run, column[c].path);
	double v = mw_past_number(p->run, column[c].path);
	fprintf(out, "<td%s>", column[c].kind == NUMBER ? " class=\"n\"" : "");
	if (column[c].kind == TEXT && text)
		mw_html_text(text, out);
	else if (isfinite(v))
		fprintf(out, "%.5g", v);
	else
		fputs("&ndash;", out);
	fputs("</td>", out);
}

/* A column in which no run has anything is left out. */
static bool is_used(const struct mw_pasts *p, size_t c)
{
	for (size_t i = 0; i < p->n; i++)
		if (isfinite(mw_past_number(p->past[i].run, column[c].path)) ||
			mw_past_text(p->past[i].run, column[c].path))
			return true;
	return false;
}

void mw_report_runs(const struct mw_pasts *p, FILE *out)
{
	begin("runs", "Runs", true, out);
	fputs("<div class=\"wide\"><table>\n<tr><th>run</th>", out);
	for (size_t c = 0; c < COLUMNS; c++)
		if (is_used(p, c))
			fprintf(out, "<th%s>%s</th>", column[c].kind == NUMBER ? " class=\"n\"" : "",
				column[c].title);
	fputs("</tr>\n", out);
	for (size_t i = 0; i < p->n && i < ROWS_MAX; i++) {
		fputs("<tr><td class=\"name\">", out);
		mw_html_text(p->past[i].name, out);
		fputs("</td>", out);
		for (size_t c = 0; c < COLUMNS; c++)
			if (is_used(p, c))
				cell(&p->past[i], c, out);
		fputs("</tr>\n", out);
	}
	fputs("</table></div>\n", out);
	if (p->n > ROWS_MAX)
		fprintf(out, "<p class=\"note\">%zu more runs are not listed.</p>\n", p->n - ROWS_MAX);
	end(out);
}

/* --- layout -------------------------------------------------------------------------------------------------------- */

static int number_of(const json_t *worker, const char *key)
{
	const json_t *v = json_object_get(worker, key);
	return json_is_integer(v) ? (int)json_integer_value(v) : -1;
}

/* The workers of one hardware thread, and the thread itself if it has any. */
static void draw_pu(const json_t *workers, int pu, FILE *out)
{
	size_t w;
	json_t *worker;
	fprintf(out, "<span class=\"pu\">P#%d<br>", pu);
	json_array_foreach(workers, w, worker) if (number_of(worker, "pu_os") == pu)
		fprintf(out, "<b>w%zu</b> ", w);
	fputs("</span>", out);
}

static bool first_with(const json_t *workers, size_t at, const char *key, const char *within, int of)
{
	int value = number_of(json_array_get(workers, at), key);
	for (size_t i = 0; i < at; i++)
		if (number_of(json_array_get(workers, i), key) == value &&
			(!within || number_of(json_array_get(workers, i), within) == of))
			return false;
	return true;
}

static void draw_core(const json_t *workers, int core, FILE *out)
{
	size_t w;
	json_t *worker;
	fprintf(out, "<span class=\"core\">core %d<br>", core);
	json_array_foreach(workers, w, worker) if (number_of(worker, "core_logical") == core &&
						   first_with(workers, w, "pu_os", "core_logical", core))
		draw_pu(workers, number_of(worker, "pu_os"), out);
	fputs("</span>", out);
}

static void draw_node(const json_t *workers, int node, FILE *out)
{
	size_t w;
	json_t *worker;
	fprintf(out, "<span class=\"node\">NUMA node %d<br>", node);
	json_array_foreach(workers, w, worker) if (number_of(worker, "node_os") == node &&
						   first_with(workers, w, "core_logical", "node_os", node))
		draw_core(workers, number_of(worker, "core_logical"), out);
	fputs("</span>", out);
}

static void draw_layout(const json_t *layout, FILE *out)
{
	const json_t *workers = json_object_get(layout, "workers");
	const char *bind = mw_past_text(layout, "bind"), *places = mw_past_text(layout, "places");
	size_t w;
	json_t *worker;
	bool bound = false;
	json_array_foreach(workers, w, worker) bound = bound || number_of(worker, "pu_os") >= 0;
	if (!bound) {
		fprintf(out,
			"<p>%zu worker%s, none bound to a hardware thread (virtual workers, or --bind "
			"none); "
			"%.0f of %.0f hardware threads could be used.</p>\n",
			json_array_size(workers), json_array_size(workers) == 1 ? "" : "s",
			mw_past_number(layout, "usable_pus"), mw_past_number(layout, "machine_pus"));
		return;
	}
	fprintf(out, "<p>%zu worker%s, bind %s, places %s; w: worker, P#: hardware thread.</p>\n<div>",
		json_array_size(workers), json_array_size(workers) == 1 ? "" : "s", bind ? bind : "?",
		places ? places : "?");
	json_array_foreach(workers, w, worker) if (first_with(workers, w, "node_os", NULL, 0))
		draw_node(workers, number_of(worker, "node_os"), out);
	fputs("</div>\n", out);
}

static bool layout_is_new(const struct mw_pasts *p, size_t at)
{
	const json_t *layout = json_object_get(p->past[at].run, "layout");
	for (size_t i = 0; i < at; i++)
		if (json_equal(layout, json_object_get(p->past[i].run, "layout")))
			return false;
	return json_is_object(layout);
}

void mw_report_layouts(const struct mw_pasts *p, FILE *out)
{
	begin("layout", "Who ran where", true, out);
	for (size_t i = 0; i < p->n; i++) {
		if (!layout_is_new(p, i))
			continue;
		size_t same = 0;
		const json_t *layout = json_object_get(p->past[i].run, "layout");
		for (size_t k = i; k < p->n; k++)
			same += json_equal(layout, json_object_get(p->past[k].run, "layout")) != 0;
		fputs("<p><b>", out);
		mw_html_text(p->past[i].name, out);
		fprintf(out, same > 1 ? "</b> and %zu more</p>\n" : "</b></p>\n", same - 1);
		draw_layout(layout, out);
	}
	end(out);
}

/* --- options ------------------------------------------------------------------------------------------------------- */

static void value(const json_t *v, FILE *out)
{
	if (json_is_string(v))
		mw_html_text(json_string_value(v), out);
	else if (json_is_number(v))
		fprintf(out, "%.10g", json_number_value(v));
	else
		fputs(json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "&ndash;", out);
}

static bool differs(const struct mw_pasts *p, const char *name)
{
	const json_t *first = json_object_get(json_object_get(p->past[0].run, "config"), name);
	for (size_t i = 1; i < p->n; i++) {
		const json_t *v = json_object_get(json_object_get(p->past[i].run, "config"), name);
		if (v != first && (!v || !first || !json_equal(v, first)))
			return true;
	}
	return false;
}

/* Options of any run, since plug-ins have options of their own. */
static json_t *all_options(const struct mw_pasts *p)
{
	json_t *all = json_object(), *v;
	const char *name;
	for (size_t i = 0; i < p->n; i++)
		json_object_foreach(json_object_get(p->past[i].run, "config"), name, v)
			json_object_set(all, name, v);
	return all;
}

static void different(const struct mw_pasts *p, json_t *all, FILE *out)
{
	const char *name;
	json_t *v;
	fputs("<p>What differs:</p>\n<div class=\"wide\"><table>\n<tr><th>run</th>", out);
	json_object_foreach(all, name, v) if (differs(p, name) && strcmp(name, "out"))
		fprintf(out, "<th>%s</th>", name);
	fputs("</tr>\n", out);
	for (size_t i = 0; i < p->n && i < ROWS_MAX; i++) {
		fputs("<tr><td class=\"name\">", out);
		mw_html_text(p->past[i].name, out);
		fputs("</td>", out);
		json_object_foreach(all, name, v)
		{
			if (!differs(p, name) || !strcmp(name, "out"))
				continue;
			fputs("<td>", out);
			value(json_object_get(json_object_get(p->past[i].run, "config"), name), out);
			fputs("</td>", out);
		}
		fputs("</tr>\n", out);
	}
	fputs("</table></div>\n", out);
}

void mw_report_options(const struct mw_pasts *p, FILE *out)
{
	json_t *all = all_options(p), *v;
	const char *name;
	begin("options", "Options", true, out);
	if (p->n > 1)
		different(p, all, out);
	fprintf(out, "<p>%s</p>\n<table>\n", p->n > 1 ? "What all runs have in common:" : "All of them:");
	json_object_foreach(all, name, v)
	{
		if (differs(p, name) || !strcmp(name, "out"))
			continue;
		fprintf(out, "<tr><td>%s</td><td>", name);
		value(v, out);
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	json_decref(all);
	end(out);
}

/* --- origins ------------------------------------------------------------------------------------------------------- */

/* Version and machine; seeds are options, and a sweep's runs have no command line of their own. */
static bool same_origin(const json_t *a, const json_t *b)
{
	static const char *const members[] = { "mixwild", "machine", "isa", "command" };
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		const json_t *x = json_object_get(a, members[i]), *y = json_object_get(b, members[i]);
		if (x != y && (!x || !y || !json_equal(x, y)))
			return false;
	}
	return true;
}

static const char *known(const char *text)
{
	return text ? text : "?";
}

static void write_origin(const struct mw_pasts *p, size_t at, FILE *out)
{
	const json_t *r = p->past[at].run;
	const char *first = known(mw_past_text(r, "started")), *last = first,
		   *command = mw_past_text(r, "command");
	size_t same = 0;
	for (size_t i = at; i < p->n; i++) {
		const char *t = known(mw_past_text(p->past[i].run, "started"));
		if (!same_origin(r, p->past[i].run))
			continue;
		same++;
		first = strcmp(t, first) < 0 ? t : first;
		last = strcmp(t, last) > 0 ? t : last;
	}
	fputs("<p><b>", out);
	mw_html_text(p->past[at].name, out);
	if (same > 1)
		fprintf(out, "</b> and %zu more, started %s to %s", same - 1, first, last);
	else
		fprintf(out, "</b>, seed %.0f, started %s", mw_past_number(r, "seed"), first);
	fprintf(out, "; mixwild %s; ", known(mw_past_text(r, "mixwild")));
	mw_html_text(known(mw_past_text(r, "machine/cpu")), out);
	fprintf(out, ", %.0f hardware threads, Linux %s, %s kernels", mw_past_number(r, "machine/online_pus"),
		known(mw_past_text(r, "machine/kernel")), known(mw_past_text(r, "isa")));
	if (command) {
		fputs("<br><code>", out);
		mw_html_text(command, out);
		fputs("</code>", out);
	}
	fputs("</p>\n", out);
}

void mw_report_origins(const struct mw_pasts *p, FILE *out)
{
	begin("origin", "Where this comes from", true, out);
	for (size_t i = 0; i < p->n && i < ROWS_MAX; i++) {
		size_t before = 0;
		while (before < i && !same_origin(p->past[before].run, p->past[i].run))
			before++;
		if (before == i)
			write_origin(p, i, out);
	}
	end(out);
}
