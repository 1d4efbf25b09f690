/* figure.c: see figure.h. */
#include "run/figure.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

struct mw_figure *mw_figure_new(const char *name, const char *title, const char *xlabel, const char *ylabel)
{
	struct mw_figure *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->name = mw_strdup(name);
	f->title = mw_strdup(title);
	f->xlabel = mw_strdup(xlabel);
	f->ylabel = mw_strdup(ylabel);
	if (f->name && f->title && f->xlabel && f->ylabel)
		return f;
	mw_figure_free(f);
	return NULL;
}

void mw_figure_free(struct mw_figure *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		free(f->series[i].name);
		free(f->series[i].x);
		free(f->series[i].y);
		free(f->series[i].low);
		free(f->series[i].high);
	}
	free(f->series);
	free(f->name);
	free(f->title);
	free(f->xlabel);
	free(f->ylabel);
	free(f->note);
	free(f);
}

size_t mw_figure_series(struct mw_figure *f, const char *name, enum mw_mark mark)
{
	struct mw_series *grown = realloc(f->series, (f->n + 1) * sizeof(*grown));
	char *copy = mw_strdup(name);
	if (!grown || !copy) {
		f->series = grown ? grown : f->series;
		free(copy);
		f->failed = true;
		return f->n ? f->n - 1 : 0;
	}
	f->series = grown;
	f->series[f->n] = (struct mw_series){ .name = copy, .mark = mark };
	return f->n++;
}

static bool grow(double **array, size_t room)
{
	double *grown = realloc(*array, room * sizeof(*grown));
	if (grown)
		*array = grown;
	return grown;
}

void mw_figure_add_bar(struct mw_figure *f, size_t series, double x, double y, double low, double high)
{
	struct mw_series *s = series < f->n ? &f->series[series] : NULL;
	if (s && s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 16;
		if (grow(&s->x, room) && grow(&s->y, room) && grow(&s->low, room) && grow(&s->high, room))
			s->room = room;
	}
	if (!s || s->n == s->room) {
		f->failed = true;
		return;
	}
	s->x[s->n] = x;
	s->y[s->n] = y;
	s->low[s->n] = low;
	s->high[s->n++] = high;
}

void mw_figure_add(struct mw_figure *f, size_t series, double x, double y)
{
	mw_figure_add_bar(f, series, x, y, y, y);
}

void mw_figure_note(struct mw_figure *f, const char *note)
{
	free(f->note);
	f->note = mw_strdup(note);
	f->failed = f->failed || !f->note;
}

bool mw_figure_shows(const struct mw_figure *f, double x, double y)
{
	return isfinite(x) && isfinite(y) && (!f->xlog || x > 0) && (!f->ylog || y > 0);
}

bool mw_figure_has_points(const struct mw_figure *f)
{
	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < f->series[i].n; k++)
			if (mw_figure_shows(f, f->series[i].x[k], f->series[i].y[k]))
				return true;
	return false;
}

const char *mw_figure_colour(size_t i)
{
	/* Okabe and Ito 2008, without the yellow, which is too light on white; a grey takes its place */
	static const char *const colours[] = { "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00",
		"#56B4E9", "#000000", "#7F7F7F" };
	return colours[i % (sizeof(colours) / sizeof(*colours))];
}
