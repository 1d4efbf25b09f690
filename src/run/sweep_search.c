/* sweep_search.c: rate = grid:LOW,HIGH,N[,FORM]: which rates are still to be tried, and which was the best; see sweep.h. */
#include "run/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The optimum may lie outside of the grid, but not for ever. */
#define EXTENSIONS_MAX 4

static int no_memory(struct mw_err *err)
{
	MW_FAIL(err, RESOURCE, "out of memory for the sweep");
}

static int parse(struct mw_sweep_search *x, const struct mw_sweep_setting *grid, struct mw_err *err)
{
	int n = 0, used = 0;
	const char *rest;
	if (sscanf(grid->value, "grid:%lf,%lf,%d%n", &x->low, &x->high, &n, &used) < 3 ||
		(grid->value[used] && grid->value[used] != ',') || !(x->low > 0) || !(x->high > x->low) ||
		!isfinite(x->high) || n < 2 || n > 100)
		MW_FAIL(err, USAGE,
			"%s: rate = %s: write grid:LOW,HIGH,N with 0 < LOW < HIGH and N of 2..100, and if "
			"wanted "
			",FORM with @ for the rate, for example grid:0.01,1,5,cosine:@",
			grid->where, grid->value);
	rest = grid->value[used] ? grid->value + used + 1 : "@";
	if (!strchr(rest, '@'))
		MW_FAIL(err, USAGE, "%s: rate = %s: the form '%s' has no @ where the rate belongs",
			grid->where, grid->value, rest);
	x->n = (uint32_t)n;
	x->ratio = pow(x->high / x->low, 1.0 / (n - 1));
	x->form = mw_strdup(rest);
	x->where = mw_strdup(grid->where);
	return x->form && x->where ? MW_OK : no_memory(err);
}

/* The rate as text, three digits: short names of folders. */
static char *rate_text(const struct mw_sweep_search *x, double rate)
{
	const char *at = strchr(x->form, '@');
	return mw_strprintf("%.*s%.3g%s", (int)(at - x->form), x->form, rate, at + 1);
}

static int add(struct mw_sweep *s, struct mw_sweep_search *x, double rate, size_t seed, bool trial,
	struct mw_err *err)
{
	static char key[] = "rate";
	struct mw_sweep_setting r = { key, rate_text(x, rate), x->where, true }, with = x->seed[seed];
	struct mw_sweep_run *run = NULL;
	if (!r.value)
		return no_memory(err);
	with.varies = x->n_seeds > 1;
	/* mw_sweep_add takes the last search to be the run's */
	struct mw_sweep_search *last = s->search[s->n_searches - 1];
	s->search[s->n_searches - 1] = x;
	int ret = mw_sweep_add(s, x->job, x->setting, x->n_settings, &r, &with, &run, err);
	s->search[s->n_searches - 1] = last;
	free(r.value);
	if (run) {
		run->rate = rate;
		run->trial = trial;
	}
	return ret;
}

static struct mw_sweep_setting *copy(const struct mw_sweep_setting *from, size_t n)
{
	struct mw_sweep_setting *to = calloc(n + 1, sizeof(*to));
	for (size_t i = 0; to && i < n; i++)
		to[i] = (struct mw_sweep_setting){ mw_strdup(from[i].key), mw_strdup(from[i].value),
			mw_strdup(from[i].where), from[i].varies };
	for (size_t i = 0; to && i < n; i++)
		if (!to[i].key || !to[i].value || !to[i].where)
			return NULL;
	return to;
}

int mw_sweep_search_new(struct mw_sweep *s, const char *job, const struct mw_sweep_setting *setting, size_t n,
	const struct mw_sweep_setting *grid, const struct mw_sweep_setting *seed, size_t n_seeds,
	struct mw_err *err)
{
	struct mw_sweep_search *x = calloc(1, sizeof(*x)), **grown = NULL;
	if (x)
		grown = realloc(s->search, (s->n_searches + 1) * sizeof(*grown));
	if (!grown) {
		free(x);
		return no_memory(err);
	}
	s->search = grown;
	s->search[s->n_searches++] = x;
	x->job = mw_strdup(job);
	x->setting = copy(setting, n);
	x->n_settings = n;
	x->seed = copy(seed, n_seeds);
	x->n_seeds = n_seeds;
	if (!x->job || !x->setting || !x->seed)
		return no_memory(err);
	MW_TRY(parse(x, grid, err));
	for (uint32_t i = 0; i < x->n; i++)
		MW_TRY(add(s, x, x->low * pow(x->ratio, i), 0, true, err));
	return MW_OK;
}

static void free_list(struct mw_sweep_setting *list, size_t n)
{
	for (size_t i = 0; list && i < n; i++) {
		free(list[i].key);
		free(list[i].value);
		free(list[i].where);
	}
	free(list);
}

void mw_sweep_search_free(struct mw_sweep_search *x)
{
	if (!x)
		return;
	free_list(x->setting, x->n_settings);
	free_list(x->seed, x->n_seeds);
	free(x->form);
	free(x->job);
	free(x->where);
	free(x);
}

/* Final validation loss; infinite where the run has diverged or failed. */
static double score(const struct mw_sweep *s, const struct mw_sweep_run *r)
{
	if (r->state != MW_SWEEP_DONE)
		return INFINITY;
	json_t *j = mw_sweep_read(s, r);
	json_t *loss = json_object_get(json_object_get(j, "summary"), "val_loss");
	double value = json_is_number(loss) ? json_number_value(loss) : INFINITY;
	json_decref(j);
	return value;
}

static bool ended(enum mw_sweep_state state)
{
	return state == MW_SWEEP_DONE || state == MW_SWEEP_DIVERGED || state == MW_SWEEP_FAILED;
}

/* The best trial when all are done; NULL: not all, or none of them is any good. */
static struct mw_sweep_run *best_of(const struct mw_sweep *s, const struct mw_sweep_search *x, bool *all)
{
	struct mw_sweep_run *best = NULL;
	double least = INFINITY;
	*all = true;
	for (size_t i = 0; i < s->n; i++) {
		if (s->run[i]->search != x)
			continue;
		*all = *all && ended(s->run[i]->state);
		double value = *all ? score(s, s->run[i]) : INFINITY;
		if (value < least) {
			least = value;
			best = s->run[i];
		}
	}
	return *all ? best : NULL;
}

static int advance(struct mw_sweep *s, struct mw_sweep_search *x, struct mw_err *err)
{
	bool all, low, high;
	struct mw_sweep_run *best = best_of(s, x, &all);
	if (!all)
		return MW_OK;
	low = best && best->rate < x->low * 1.0001;
	high = best && best->rate > x->high / 1.0001;
	if ((low || high) && x->extended < EXTENSIONS_MAX) {
		x->extended++;
		double rate = low ? (x->low /= x->ratio) : (x->high *= x->ratio);
		return add(s, x, rate, 0, true, err);
	}
	x->chosen = true;
	if (best)
		best->trial = false;
	for (size_t k = 1; best && k < x->n_seeds; k++)
		MW_TRY(add(s, x, best->rate, k, false, err));
	return MW_OK;
}

int mw_sweep_search_advance(struct mw_sweep *s, struct mw_err *err)
{
	for (size_t i = 0; i < s->n_searches; i++)
		if (!s->search[i]->chosen)
			MW_TRY(advance(s, s->search[i], err));
	return MW_OK;
}

size_t mw_sweep_search_pending(const struct mw_sweep *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n_searches; i++)
		if (!s->search[i]->chosen)
			n += s->search[i]->n_seeds - 1;
	return n;
}
