/* windows.c: see windows.h. */
#include "run/windows.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/stats.h"
#include "run/record.h"

#define LEVEL     0.95
#define RESAMPLES 1000

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

static double correlation(enum mw_correlation kind, const struct mw_windows *w)
{
	double work[MW_CORRELATION_WORK(MW_WINDOWS_MAX)];
	return mw_correlation(kind, w->t_mix, w->decrease, w->n, work);
}

double mw_windows_pearson(const struct mw_windows *w)
{
	return correlation(MW_PEARSON_LOG_X, w);
}

double mw_windows_spearman(const struct mw_windows *w)
{
	return correlation(MW_SPEARMAN, w);
}

/* As if stretches were independent of each other. */
static json_t *interval(enum mw_correlation kind, const struct mw_windows *w)
{
	struct mw_interval r;
	struct mw_err err = { 0 };
	if (mw_correlation_bootstrap(kind, w->t_mix, w->decrease, w->n, LEVEL, RESAMPLES, 0, &r, &err) ||
		isnan(r.low))
		return json_null();
	return json_pack("[f, f]", r.low, r.high);
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
	json_object_set_new(j, "pearson_95", interval(MW_PEARSON_LOG_X, w));
	json_object_set_new(j, "spearman_95", interval(MW_SPEARMAN, w));
	json_object_set_new(j, "t_mix", t);
	json_object_set_new(j, "decrease_per_step", d);
	return j;
}
