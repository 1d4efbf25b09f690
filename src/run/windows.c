/* windows.c: see windows.h. */
#include "run/windows.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "run/record.h"

struct mw_windows {
	uint32_t n;
	bool begun;
	double step, loss; /* at the last call */
	double t_mix[MW_WINDOWS_MAX], decrease[MW_WINDOWS_MAX];
};

int mw_windows_new(struct mw_windows **out, struct mw_err *err)
{
	*out = mw_alloc(sizeof(**out), "the windows of the run", err);
	return *out ? 0 : err->code;
}

void mw_windows_free(struct mw_windows *w)
{
	mw_free(w);
}

void mw_windows_add(struct mw_windows *w, double step, double t_mix, double loss)
{
	if (w->begun && t_mix > 0 && isfinite(loss) && step > w->step && w->n < MW_WINDOWS_MAX) {
		w->t_mix[w->n] = t_mix;
		w->decrease[w->n++] = (w->loss - loss) / (step - w->step);
	}
	w->begun = true;
	w->step = step;
	w->loss = loss;
}

static double correlation(const double *x, const double *y, uint32_t n)
{
	double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
	for (uint32_t i = 0; i < n; i++) {
		mx += x[i] / n;
		my += y[i] / n;
	}
	for (uint32_t i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		yy += (y[i] - my) * (y[i] - my);
		xy += (x[i] - mx) * (y[i] - my);
	}
	return n >= 3 && xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

double mw_windows_pearson(const struct mw_windows *w)
{
	double x[MW_WINDOWS_MAX];
	for (uint32_t i = 0; i < w->n; i++)
		x[i] = log(w->t_mix[i]);
	return correlation(x, w->decrease, w->n);
}

/* Ties get the mean of their ranks. */
static void ranks(const double *x, uint32_t n, double *rank)
{
	for (uint32_t i = 0; i < n; i++) {
		rank[i] = 0.5;
		for (uint32_t j = 0; j < n; j++)
			rank[i] += x[j] < x[i] ? 1 : x[j] == x[i] ? 0.5 : 0;
	}
}

double mw_windows_spearman(const struct mw_windows *w)
{
	double x[MW_WINDOWS_MAX], y[MW_WINDOWS_MAX];
	ranks(w->t_mix, w->n, x);
	ranks(w->decrease, w->n, y);
	return correlation(x, y, w->n);
}

json_t *mw_windows_json(const struct mw_windows *w)
{
	json_t *j = json_object(), *t = json_array(), *d = json_array();
	for (uint32_t i = 0; i < w->n; i++) {
		json_array_append_new(t, json_real(w->t_mix[i]));
		json_array_append_new(d, json_real(w->decrease[i]));
	}
	json_object_set_new(j, "windows", json_integer((json_int_t)w->n));
	json_object_set_new(j, "pearson", mw_json_number(mw_windows_pearson(w)));
	json_object_set_new(j, "spearman", mw_json_number(mw_windows_spearman(w)));
	json_object_set_new(j, "t_mix", t);
	json_object_set_new(j, "decrease_per_step", d);
	return j;
}
