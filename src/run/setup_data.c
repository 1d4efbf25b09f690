/* setup_data.c: the workers of a run, its data, who gets which rows, and what is trained on them. */
#include <string.h>

#include "base/mem.h"
#include "run/find.h"
#include "run/run.h"
#include "run/setup.h"
#include "run/setup_impl.h"
#include "run/train.h"

int mw_setup_layout(struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	struct mw_layout_request req = { .workers = o->workers,
		.bind = o->bind,
		.places = (enum mw_places)o->places,
		.no_smt = o->no_smt,
		.controller_cpu = o->controller_cpu,
		.oversubscribe = o->oversubscribe,
		.virtual_workers = o->engine == MW_ENGINE_SIM,
		.topology = o->topology,
		.mem = (enum mw_mem)o->mem,
		.mem_strict = o->mem_strict };
	mw_thp_set((enum mw_thp)o->thp);
	if (!strcmp(o->protocol, "sequential")) {
		if (strcmp(o->workers, "auto") && strcmp(o->workers, "1"))
			MW_FAIL(err, USAGE,
				"--protocol sequential has one worker; for %s choose hogwild or another "
				"protocol",
				o->workers);
		req.workers = "1";
	}
	mw_layout_free(run->layout);
	run->layout = NULL;
	MW_TRY(mw_layout_new(&req, &run->layout, err));
	run->n_workers = run->layout->n_workers;
	return 0;
}

/* Who gets which rows, and what is done to them. */
static int deal_data(struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	if (o->augment != MW_AUGMENT_NONE && run->train->kind != MW_X_IMAGE)
		MW_FAIL(err, USAGE,
			"--augment crop-flip moves images, but model %s on %s reads rows of numbers; take a "
			"net and IDX, "
			"CIFAR or synth:images",
			o->model, run->train->name);
	MW_TRY(mw_rows_split(run->train, o->val, run->seed, &run->rows, &run->val, err));
	return mw_shards_deal(&run->shards, run->train, &run->rows, run->seed, run->n_workers, err);
}

int mw_train_load(const struct mw_train_options *o, struct mw_dataset **train, struct mw_dataset **test,
	struct mw_err *err)
{
	const struct mw_model_ops *model = mw_model_find(o->model);
	struct mw_data_request req = { .path = o->data,
		.labels = o->labels,
		.label_kind = (enum mw_label_kind)(o->label_kind == 0   ? MW_LABEL_AUTO
						   : o->label_kind == 1 ? MW_LABEL_CLASS
									: MW_LABEL_REAL),
		.index_base = (enum mw_index_base)o->index_base,
		.features = (uint32_t)o->features,
		.seed = (uint64_t)o->seed,
		.coarse = o->coarse,
		.cache = (enum mw_cache_use)o->cache,
		.keep_bytes = model && model->images };
	if (!o->data)
		MW_FAIL(err, USAGE,
			"--data is missing: name a LIBSVM or IDX file, or try --data "
			"synth:sparse,rows=100000,features=1000");
	MW_TRY(mw_dataset_load(&req, train, err));
	if (!(*train)->rows)
		MW_FAIL(err, DATA, "%s: no examples in it", o->data);
	if (!o->test)
		return 0;
	req.path = o->test;
	req.labels = NULL;
	req.like = *train;
	return mw_dataset_load(&req, test, err);
}

int mw_setup_data(struct mw_run *run, struct mw_err *err)
{
	MW_TRY(mw_shards_parse(run->opt->shards, &run->shards, err));
	if (run->shards.kind != MW_SHARD_NONE && mw_options_is_set(&run->job->set, "data-place"))
		MW_FAIL(err, USAGE,
			"--shards gives each worker rows of its own, so --data-place has no say: leave it "
			"out");
	if (run->hooks && run->hooks->train) {
		run->train = run->hooks->train;
		run->test = run->hooks->test;
	} else {
		MW_TRY(mw_train_load(run->opt, &run->train, &run->test, err));
	}
	return deal_data(run, err);
}

const char *mw_default_model(const struct mw_dataset *d)
{
	if (d->kind == MW_X_QUADRATIC)
		return "quad";
	return d->classes == 0 ? "squared" : d->classes == 2 ? "logistic" : "softmax";
}

int mw_setup_model(struct mw_run *run, struct mw_err *err)
{
	const char *spec = run->opt->model;
	if (!strcmp(spec, "auto")) {
		spec = mw_default_model(run->train);
		MW_TRY(mw_job_choose(run->job, "model", spec, err));
	}
	MW_TRY(mw_model_new_spec(
		spec, mw_job_plugin_options(run->job, "model", spec), run->train, &run->model, err));
	const struct mw_optim_ops *optim = mw_optim_find(run->opt->optimizer);
	if (!optim)
		MW_FAIL(err, USAGE, "no optimizer '%s'; see mixwild list optimizers", run->opt->optimizer);
	return mw_optim_new(
		optim, mw_job_plugin_options(run->job, "optimizer", optim->name), &run->optim, err);
}
