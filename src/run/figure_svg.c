/*
 * figure_svg.c: figures as SVG inside a page; see figure.h. Coordinates are those of a 640 x 376 picture, which scales; labels
 * and names of series are text of the page, which wraps on a narrow screen.
 */
#include <math.h>
#include <string.h>

#include "run/figure.h"

#define LEFT     84.0
#define RIGHT    624.0
#define TOP      14.0
#define BOTTOM   344.0
#define HEIGHT   376.0
#define TICK_MAX 12
/* Polylines of more points than pixels only make the page heavy. */
#define POINTS_MAX 1200

struct axis {
	bool log;
	double min, max; /* of the logarithm, on a logarithmic axis */
	double tick[TICK_MAX * 4];
	size_t n;
};

void mw_html_text(const char *text, FILE *out)
{
	for (; text && *text; text++)
		switch (*text) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		case '"': fputs("&quot;", out); break;
		default:
			fputc((unsigned char)*text < 32 && *text != '\n' && *text != '\t' ? ' ' : *text, out);
		}
}

/* --- axes ---------------------------------------------------------------------------------------------------------- */

static double to_axis(const struct axis *a, double v)
{
	return a->log ? log10(v) : v;
}

static void stretch(struct axis *a, double v)
{
	v = to_axis(a, v);
	a->min = v < a->min ? v : a->min;
	a->max = v > a->max ? v : a->max;
}

/* 1, 2 or 5 times a power of ten, so that about `want` ticks fit. */
static double nice_step(double span, int want)
{
	double raw = span / want, power = pow(10, floor(log10(raw))), m = raw / power;
	return power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

static void linear_ticks(struct axis *a)
{
	double step = nice_step(a->max - a->min, 6);
	for (double v = ceil(a->min / step - 1e-9) * step; v <= a->max + step * 1e-9 && a->n < TICK_MAX * 2;
		v += step)
		a->tick[a->n++] = fabs(v) < step * 1e-9 ? 0 : v;
}

/* Decades, with 2 and 5 between them where there are few. */
static void log_ticks(struct axis *a)
{
	double span = a->max - a->min;
	static const double within[] = { 1, 2, 5 };
	int every = (int)ceil(span / 8);
	for (int d = (int)floor(a->min); d <= (int)ceil(a->max); d++)
		for (int i = 0; i < (span < 2.5 ? 3 : 1); i++) {
			double v = d + log10(within[i]);
			if (v >= a->min - 1e-9 && v <= a->max + 1e-9 && a->n < TICK_MAX * 2 &&
				(every < 2 || d % every == 0))
				a->tick[a->n++] = v;
		}
	if (a->n < 2) { /* less than two of them: round numbers instead */
		struct axis plain = { .min = pow(10, a->min), .max = pow(10, a->max) };
		linear_ticks(&plain);
		a->n = 0;
		for (size_t i = 0; i < plain.n; i++)
			if (plain.tick[i] > 0)
				a->tick[a->n++] = log10(plain.tick[i]);
	}
}

static void finish_axis(struct axis *a, bool from_zero)
{
	if (!(a->min <= a->max)) {
		a->min = 0;
		a->max = 1;
	}
	if (from_zero && !a->log && a->min > 0 && a->min < 0.5 * a->max)
		a->min = 0;
	double span = a->max - a->min, pad = span > 0 ? 0.03 * span : a->log ? 0.5 : fabs(a->max) * 0.1 + 0.1;
	bool zero = !a->log && a->min == 0;
	a->min -= zero ? 0 : pad;
	a->max += pad;
	a->n = 0;
	if (a->log)
		log_ticks(a);
	else
		linear_ticks(a);
}

static void make_axes(const struct mw_figure *f, struct axis *x, struct axis *y)
{
	bool bars = false;
	*x = (struct axis){ .log = f->xlog, .min = INFINITY, .max = -INFINITY };
	*y = (struct axis){ .log = f->ylog, .min = INFINITY, .max = -INFINITY };
	for (size_t i = 0; i < f->n; i++) {
		const struct mw_series *s = &f->series[i];
		bars = bars || s->mark == MW_MARK_BARS;
		for (size_t k = 0; k < s->n; k++) {
			if (!mw_figure_shows(f, s->x[k], s->y[k]))
				continue;
			stretch(x, s->x[k]);
			stretch(y, s->y[k]);
			if (mw_figure_shows(f, s->x[k], s->low[k]))
				stretch(y, s->low[k]);
			if (mw_figure_shows(f, s->x[k], s->high[k]))
				stretch(y, s->high[k]);
		}
	}
	if (bars && !y->log)
		y->min = 0;
	finish_axis(x, true);
	finish_axis(y, true);
}

static double px(const struct axis *a, double v)
{
	return LEFT + (RIGHT - LEFT) * (to_axis(a, v) - a->min) / (a->max - a->min);
}

static double py(const struct axis *a, double v)
{
	return BOTTOM - (BOTTOM - TOP) * (to_axis(a, v) - a->min) / (a->max - a->min);
}

/* "0.001", "20k", "3e+07": short, and never a long tail of digits. */
static void tick_text(double v, char *text, size_t size)
{
	double a = fabs(v);
	if (a >= 1e4 && a < 1e6)
		snprintf(text, size, "%.4gk", v / 1e3);
	else if (a >= 1e6 && a < 1e9)
		snprintf(text, size, "%.4gM", v / 1e6);
	else
		snprintf(text, size, "%.4g", v);
}

static void draw_axes(const struct axis *x, const struct axis *y, FILE *out)
{
	char text[32];
	for (size_t i = 0; i < x->n; i++) {
		double v = x->log ? pow(10, x->tick[i]) : x->tick[i], at = px(x, v);
		tick_text(v, text, sizeof(text));
		fprintf(out,
			"<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
			"text-anchor=\"middle\">%s</text>\n",
			at, TOP, BOTTOM, at, BOTTOM + 22, text);
	}
	for (size_t i = 0; i < y->n; i++) {
		double v = y->log ? pow(10, y->tick[i]) : y->tick[i], at = py(y, v);
		tick_text(v, text, sizeof(text));
		fprintf(out,
			"<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
			"text-anchor=\"end\">%s</text>\n",
			LEFT, at, RIGHT, LEFT - 7, at + 5, text);
	}
	fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", LEFT, TOP, BOTTOM, RIGHT);
}

/* --- series -------------------------------------------------------------------------------------------------------- */

static const char *const dashes[] = { "", "7 3", "2 3", "9 3 2 3", "5 5", "12 3", "1 2", "4 2 1 2" };

static const char *dash(size_t i)
{
	return dashes[(i + i / 8) % (sizeof(dashes) / sizeof(*dashes))];
}

static void draw_line(
	const struct mw_figure *f, size_t i, const struct axis *x, const struct axis *y, FILE *out)
{
	const struct mw_series *s = &f->series[i];
	size_t every = s->n / POINTS_MAX + 1;
	bool pen = false;
	fprintf(out, "<path class=\"line\" stroke=\"%s\"", mw_figure_colour(i));
	if (*dash(i))
		fprintf(out, " stroke-dasharray=\"%s\"", dash(i));
	fputs(" d=\"", out);
	for (size_t k = 0; k < s->n; k++) {
		if (k % every && k + 1 < s->n)
			continue;
		if (!mw_figure_shows(f, s->x[k], s->y[k])) {
			pen = false;
			continue;
		}
		fprintf(out, "%c%.1f %.1f", pen ? 'L' : 'M', px(x, s->x[k]), py(y, s->y[k]));
		pen = true;
	}
	fputs("\"/>\n", out);
}

/* Eight marks of different outline. */
static void draw_mark(size_t i, double x, double y, FILE *out)
{
	static const char *const shapes[] = { "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "m-4 -4h8v8h-8z",
		"m0 -5l5 9h-10z", "m0 -5l5 5l-5 5l-5 -5z", "m0 5l5 -9h-10z", "m-4 -4l8 8m0 -8l-8 8",
		"m-5 0h10m-5 -5v10", "m-3 -5h6v10h-6z" };
	size_t n = sizeof(shapes) / sizeof(*shapes), shape = (i + 3 * (i / n)) % n;
	fprintf(out, "<path class=\"mark\" stroke=\"%s\" fill=\"%s\" d=\"M%.1f %.1f%s\"/>",
		mw_figure_colour(i), shape == 5 || shape == 6 ? "none" : mw_figure_colour(i), x, y,
		shapes[shape]);
}

static void draw_points(
	const struct mw_figure *f, size_t i, const struct axis *x, const struct axis *y, FILE *out)
{
	const struct mw_series *s = &f->series[i];
	size_t every = s->n / POINTS_MAX + 1;
	for (size_t k = 0; k < s->n; k += every) {
		if (!mw_figure_shows(f, s->x[k], s->y[k]))
			continue;
		double at = px(x, s->x[k]);
		if (s->low[k] < s->high[k] && mw_figure_shows(f, s->x[k], s->low[k]) &&
			mw_figure_shows(f, s->x[k], s->high[k]))
			fprintf(out, "<path class=\"bar\" stroke=\"%s\" d=\"M%.1f %.1fV%.1f\"/>",
				mw_figure_colour(i), at, py(y, s->low[k]), py(y, s->high[k]));
		draw_mark(i, at, py(y, s->y[k]), out);
	}
	fputc('\n', out);
}

/* A histogram's bars stand over their value; each is as wide as the way to the next one. */
static void draw_bars(
	const struct mw_figure *f, size_t i, const struct axis *x, const struct axis *y, FILE *out)
{
	const struct mw_series *s = &f->series[i];
	double width = 26;
	for (size_t k = 0; k + 1 < s->n; k++) {
		double gap = fabs(px(x, s->x[k + 1]) - px(x, s->x[k])) * 0.8;
		if (gap > 0 && gap < width)
			width = gap;
	}
	width = (width < 1.5 ? 1.5 : width) / (double)f->n;
	for (size_t k = 0; k < s->n; k++) {
		if (!mw_figure_shows(f, s->x[k], s->y[k]))
			continue;
		double at = px(x, s->x[k]) + width * ((double)i - 0.5 * (double)f->n), top = py(y, s->y[k]);
		fprintf(out, "<path fill=\"%s\" d=\"M%.1f %.1fV%.1fh%.1fV%.1fz\"/>", mw_figure_colour(i), at,
			BOTTOM, top, width, BOTTOM);
	}
	fputc('\n', out);
}

/* The names of the series, each with what it looks like. */
static void write_legend(const struct mw_figure *f, FILE *out)
{
	fputs("<ul class=\"legend\">\n", out);
	for (size_t i = 0; i < f->n; i++) {
		enum mw_mark mark = f->series[i].mark;
		fputs("<li><svg viewBox=\"0 0 40 14\" aria-hidden=\"true\">", out);
		if (mark == MW_MARK_BARS)
			fprintf(out, "<path fill=\"%s\" d=\"M6 2h26v10h-26z\"/>", mw_figure_colour(i));
		if (mark == MW_MARK_LINES || mark == MW_MARK_BOTH)
			fprintf(out,
				"<path class=\"line\" stroke=\"%s\" stroke-dasharray=\"%s\" d=\"M1 7h38\"/>",
				mw_figure_colour(i), *dash(i) ? dash(i) : "none");
		if (mark == MW_MARK_POINTS || mark == MW_MARK_BOTH)
			draw_mark(i, 20, 7, out);
		fputs("</svg>", out);
		mw_html_text(f->series[i].name, out);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

static void write_label(const char *kind, const char *text, const char *scale, FILE *out)
{
	fprintf(out, "<p class=\"%s\">", kind);
	mw_html_text(text, out);
	fprintf(out, "%s</p>\n", scale);
}

void mw_figure_html(const struct mw_figure *f, FILE *out)
{
	struct axis x, y;
	make_axes(f, &x, &y);
	fputs("<figure>\n", out);
	write_label("ylabel", f->ylabel, f->ylog ? ", logarithmic" : "", out);
	fprintf(out,
		"<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 %.0f\" "
		"role=\"img\" "
		"aria-label=\"",
		HEIGHT);
	mw_html_text(f->title, out);
	fputs("\">\n", out);
	draw_axes(&x, &y, out);
	for (size_t i = 0; i < f->n; i++) {
		enum mw_mark mark = f->series[i].mark;
		if (mark == MW_MARK_BARS)
			draw_bars(f, i, &x, &y, out);
		if (mark == MW_MARK_LINES || mark == MW_MARK_BOTH)
			draw_line(f, i, &x, &y, out);
		if (mark == MW_MARK_POINTS || mark == MW_MARK_BOTH)
			draw_points(f, i, &x, &y, out);
	}
	fputs("</svg>\n", out);
	write_label("xlabel", f->xlabel, f->xlog ? ", logarithmic" : "", out);
	write_legend(f, out);
	if (f->note)
		write_label("note", f->note, "", out);
	fputs("</figure>\n", out);
}
