/* stale.c: see stale.h. */
#include "run/stale.h"

#include <string.h>

#include "base/option.h"
#include "run/record.h"
#include "run/run.h"
#include "run/worker_impl.h"

int mw_stale_parse(const char *text, struct mw_stale *out, struct mw_err *err)
{
	int64_t limit = 0;
	*out = (struct mw_stale){ MW_STALE_NONE, 0 };
	if (!strcmp(text, "none"))
		return 0;
	if (!strcmp(text, "scale")) {
		out->kind = MW_STALE_SCALE;
		return 0;
	}
	if (strncmp(text, "drop:", 5))
		MW_FAIL(err, USAGE, "--stale-policy: there is no '%s' (choose none, scale or drop:T)", text);
	MW_TRY(mw_parse_int(text + 5, "--stale-policy drop", &limit, err));
	if (limit < 0)
		MW_FAIL(err, USAGE, "--stale-policy %s: T is at least 0", text);
	*out = (struct mw_stale){ MW_STALE_DROP, (uint64_t)limit };
	return 0;
}

int mw_stale_check(const struct mw_run *run, struct mw_err *err)
{
	const char *policy = run->opt->stale_policy;
	if (run->stale.kind == MW_STALE_NONE)
		return 0;
	if (run->protocol->clock == MW_CLOCK_ROUND)
		MW_FAIL(err, USAGE,
			"--stale-policy %s: protocol %s works in rounds, whose updates are all of one age; "
			"choose a "
			"protocol without a barrier",
			policy, run->protocol->ops->name);
	if (run->opt->replay || mw_tracing(run))
		MW_FAIL(err, USAGE,
			"--stale-policy %s: a recorded run could not be repeated, since threads see "
			"staleness a "
			"little differently from the record; leave out --trace and --replay",
			policy);
	return 0;
}

/* An update with a step size that is smaller by this factor. */
static void scale(const struct mw_run *run, struct mw_delta *d, float factor)
{
	if (run->optim_at_push) {
		d->rate *= factor;
		return;
	}
	float *x = run->form == MW_FORM_ROW ? d->coef : d->d;
	size_t n = run->form == MW_FORM_ROW      ? d->n
		   : run->form == MW_FORM_SPARSE ? (size_t)d->n * run->model->width
						 : run->model->dim;
	for (size_t i = 0; i < n; i++)
		x[i] *= factor;
}

bool mw_stale_apply(struct mw_worker *w, struct mw_delta *d)
{
	const struct mw_run *run = w->run;
	uint64_t tau = mw_staleness_of(w, d);
	if (run->stale.kind == MW_STALE_DROP && tau > run->stale.limit) {
		w->dropped++;
		return false;
	}
	double factor = run->stale.kind == MW_STALE_SCALE ? 1 / (1 + (double)tau) : 1;
	w->factor_sum += factor;
	if (factor < 1)
		scale(run, d, (float)factor);
	return true;
}

json_t *mw_stale_json(const struct mw_run *run)
{
	double dropped = 0, factor = 0, pushes = 0;
	if (run->stale.kind == MW_STALE_NONE)
		return json_null();
	for (uint32_t i = 0; i < run->n_workers; i++) {
		dropped += (double)run->worker[i]->dropped;
		factor += run->worker[i]->factor_sum;
		pushes += (double)run->counters[i].pushes;
	}
	return json_pack("{ss sI so so}", "policy", run->opt->stale_policy, "dropped", (json_int_t)dropped,
		"dropped_share", mw_json_number(dropped / (dropped + pushes)), "mean_factor",
		mw_json_number(factor / pushes));
}
