/*
 * figure.h: a figure as data: series over two axes, each with its unit. The report draws it as SVG into its page, `mixwild
 * plot` has gnuplot draw it. Colours are Okabe and Ito's, which colour-blind people can tell apart; series differ in dashes
 * and marks too, for print in grey.
 */
#ifndef MW_RUN_FIGURE_H
#define MW_RUN_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum mw_mark { MW_MARK_LINES, MW_MARK_POINTS, MW_MARK_BOTH, MW_MARK_BARS };

struct mw_series {
	char *name;
	enum mw_mark mark;
	double *x, *y, *low, *high; /* low, high: ends of an error bar; equal to y: none */
	size_t n, room;
};

struct mw_figure {
	char *name; /* "loss-steps": of files, and of the section of a report */
	char *title, *xlabel, *ylabel;
	char *note; /* a sentence below; NULL: none */
	bool xlog, ylog;
	struct mw_series *series;
	size_t n;
	bool failed; /* out of memory at some time: what is drawn would not be whole */
};

/* NULL when out of memory. Labels name the unit, "native steps (rounds)". */
struct mw_figure *mw_figure_new(const char *name, const char *title, const char *xlabel, const char *ylabel);
void mw_figure_free(struct mw_figure *f);
/* A new series; its index for add. */
size_t mw_figure_series(struct mw_figure *f, const char *name, enum mw_mark mark);
/* A point; what is not finite, or not above 0 on a logarithmic axis, is left out when it is drawn. */
void mw_figure_add(struct mw_figure *f, size_t series, double x, double y);
void mw_figure_add_bar(struct mw_figure *f, size_t series, double x, double y, double low, double high);
/* Replace the note (copied). */
void mw_figure_note(struct mw_figure *f, const char *note);
/* Can the axes show this point? */
bool mw_figure_shows(const struct mw_figure *f, double x, double y);
/* Is there any point to be drawn? */
bool mw_figure_has_points(const struct mw_figure *f);

/* "#0072B2" and so on, repeating after eight. */
const char *mw_figure_colour(size_t i);

/* The figure as a <figure> element of a page, with its labels, legend and note; write errors are left in out. */
void mw_figure_html(const struct mw_figure *f, FILE *out);
/* Text for HTML or SVG: < > & " escaped. */
void mw_html_text(const char *text, FILE *out);

/*
 * Write BASE.dat, BASE.gp and, by gnuplot, the file `path` (BASE and .svg, .png or .pdf). USAGE: another ending; RESOURCE:
 * there is no gnuplot (the message names the package; script and data are written all the same), it fails, or files can't
 * be written.
 */
int mw_figure_gnuplot(const struct mw_figure *f, const char *path, struct mw_err *err);

#endif
