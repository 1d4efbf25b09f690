/* tmix_of_run.c: see tmix_of_run.h. */
#include "run/tmix_of_run.h"

#include <math.h>
#include <stdio.h>

#include "mixing/exact.h"
#include "run/find.h"
#include "run/record.h"

/* Floating-point operations that the exact value may cost at the end of a run: about a second. */
#define WORK 2e9

/* A constant injected staleness is part of the protocol; another schedule has no exact law here. */
static double constant_delay(const struct mw_run *run)
{
	return mw_sched_fixed(run->staleness);
}

static struct mw_mixing_knobs knobs_of(const struct mw_run *run, enum mw_norm norm, double work)
{
	double delay = constant_delay(run);
	bool plans = run->protocol->n_slots > 0;
	bool periodic = plans && run->protocol->due != MW_DUE_SSP;
	return (struct mw_mixing_knobs){ .mix_every = periodic ? run->knobs.mix_every : 0,
		.slack = plans ? run->knobs.slack : 0,
		.mix_fraction = plans ? run->opt->mix_fraction : 0,
		.random_blocks = run->opt->mix_blocks == MW_BLOCKS_RANDOM,
		/* free-running threads are not iid random: the value names the law that it assumes */
		.activation = run->activation == MW_ACT_RR ? MW_ACT_RR : MW_ACT_RANDOM,
		.norm = norm,
		.seed = run->seed,
		.work = work,
		.delay = isfinite(delay) ? (uint64_t)delay : 0 };
}

static enum mw_norm norm_of(const struct mw_run *run)
{
	return run->protocol->signed_plan ? MW_NORM_TV : MW_NORM_L2;
}

int mw_tmix_exact(const struct mw_run *run, double work, struct mw_mixing_result *r, struct mw_err *err)
{
	struct mw_mixing_knobs k = knobs_of(run, norm_of(run), work);
	return mw_mixing_exact(run->protocol, &k, r, err);
}

int mw_tmix_view(const struct mw_run *run, double work, const struct mw_mixing_result *r,
	struct mw_mixing_view *v, struct mw_err *err)
{
	struct mw_mixing_knobs k = knobs_of(run, norm_of(run), work);
	return mw_mixing_view(run->protocol, &k, r, v, err);
}

int mw_tmix_exact_norm(const struct mw_run *run, enum mw_norm norm, double work, struct mw_mixing_result *r,
	struct mw_err *err)
{
	struct mw_mixing_knobs k = knobs_of(run, norm, work);
	k.sums = true;
	return mw_mixing_exact(run->protocol, &k, r, err);
}

/* cached --hot: the other columns are hogwild's one replica; NAN: no value. */
static double cold_tmix(const struct mw_run *run)
{
	struct mw_mixing_knobs k = knobs_of(run, MW_NORM_L2, WORK);
	struct mw_protocol_config c = { .workers = run->n_workers };
	struct mw_mixing_result r = { 0 };
	struct mw_protocol *p;
	struct mw_err err = { 0 };
	k.mix_every = 0;
	k.slack = k.mix_fraction = 0;
	if (mw_protocol_new(mw_protocol_find("hogwild"), NULL, &c, &p, &err))
		return NAN;
	int code = mw_mixing_exact(p, &k, &r, &err);
	mw_protocol_free(p);
	return code || !r.mixes ? NAN : r.t_mix;
}

void mw_tmix_of_run(struct mw_run *run)
{
	struct mw_mixing_result r = { 0 };
	struct mw_mixing_view v = { .t_mix = NAN };
	struct mw_err err = { 0 };
	json_t *j = json_object();
	double delay = constant_delay(run);
	/* A delay counts own steps: with several workers it is no fixed number of writes to the shared buffer. */
	const char *none = !isfinite(delay) || (delay > 0 && run->n_workers > 1)
				   ? "the injected staleness is no constant number of writes"
			   : run->steer ? "the knobs moved during the run (--target-tmix)"
					: NULL;
	if (none || mw_tmix_exact(run, WORK, &r, &err) || mw_tmix_view(run, WORK, &r, &v, &err)) {
		json_object_set_new(
			j, "exact", json_pack("{sn ss}", "value", "reason", none ? none : err.msg));
	} else {
		json_t *e = json_object();
		json_object_set_new(e, "value", r.mixes ? mw_json_number(r.t_mix) : json_null());
		json_object_set_new(e, "view", mw_json_number(v.t_mix));
		json_object_set_new(e, "view_bound", json_boolean(v.bound));
		json_object_set_new(e, "target", json_string("t_ann"));
		json_object_set_new(e, "norm", json_string(mw_norm_name(&r)));
		json_object_set_new(e, "unit", json_string(mw_unit_name(r.unit)));
		json_object_set_new(e, "error", mw_json_number(r.error));
		json_object_set_new(e, "gradient_steps", mw_json_number(r.gradient_steps));
		json_object_set_new(e, "activation",
			json_string(run->protocol->clock == MW_CLOCK_ROUND ? "rounds"
				    : run->activation == MW_ACT_RR         ? "rr"
									   : "random"));
		json_object_set_new(e, "assumed",
			json_boolean(run->activation == MW_ACT_FREE &&
				     run->protocol->clock == MW_CLOCK_EVENT && run->n_workers > 1));
		json_object_set_new(e, "reason", *r.reason ? json_string(r.reason) : json_null());
		if (run->hot_columns) /* value and estimates are of the hot ones */
			json_object_set_new(e, "cold_columns", mw_json_number(cold_tmix(run)));
		json_object_set_new(j, "exact", e);
	}
	json_object_set_new(j, "trace", json_null());
	json_object_set_new(j, "probe", json_null());
	json_object_set_new(j, "passive", json_null());
	run->t_mix = j;
}

void mw_tmix_print(struct mw_run *run)
{
	json_t *e = json_object_get(run->t_mix, "exact");
	json_t *value = json_object_get(e, "value");
	if (!json_is_number(value)) {
		fprintf(run->job->msg, "t_mix     no exact value: %s\n",
			json_string_value(json_object_get(e, "reason")));
		return;
	}
	json_t *cold = json_object_get(e, "cold_columns");
	fprintf(run->job->msg, "t_mix     %g %s exact (%s%s%s)", json_number_value(value),
		json_string_value(json_object_get(e, "unit")), json_string_value(json_object_get(e, "norm")),
		json_is_true(json_object_get(e, "assumed")) ? ", if pushes come in random order" : "",
		run->opt->slack < 1 || run->n_blocks > 1 ? ", with the knobs of this run" : "");
	if (json_is_number(cold))
		fprintf(run->job->msg, " of the hot columns, %g of the others", json_number_value(cold));
	fprintf(run->job->msg, "\n");
}
