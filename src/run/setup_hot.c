/*
 * setup_hot.c: cached --hot. The columns are renumbered by popularity, so that the hot ones come first and the cold ones can be one
 * memory in all copies; files keep the order of the features as they were loaded.
 */
#include <string.h>

#include "base/mem.h"
#include "run/model_file.h"
#include "run/setup_impl.h"
#include "run/train.h"

int mw_setup_hot(struct mw_run *run, struct mw_err *err)
{
	double hot = run->protocol->hot;
	if (hot == 0)
		return 0;
	if (run->train->kind != MW_X_CSR)
		MW_FAIL(err, USAGE,
			"--hot: every example of %s has all columns, so none is more popular than another: "
			"leave it out",
			run->train->name);
	if (run->hooks && run->hooks->train)
		MW_FAIL(err, USAGE,
			"--hot renumbers the columns of the data, which several runs share here: compare by "
			"`mixwild sweep`");
	if (run->opt->access > 1 + MW_ACCESS_ATOMIC)
		MW_FAIL(err, USAGE,
			"--hot: the cold columns are written in place by all workers, whose copies have no "
			"lock in "
			"common: --access racy or atomic");
	if (run->opt->mix_fraction < 1)
		MW_FAIL(err, USAGE,
			"--hot and --mix-fraction both say which coordinates are exchanged: choose one");
	MW_TRY(mw_dataset_by_popularity(run->train, run->test, hot < 1 ? hot : 0, &run->hot_columns, err));
	if (hot >= 1)
		run->hot_columns = hot < run->train->features ? (uint32_t)hot : run->train->features;
	return 0;
}

int mw_setup_cold(struct mw_run *run, struct mw_err *err)
{
	const struct mw_dataset *d = run->train;
	uint32_t width = run->model->width;
	uint64_t hot = 0;
	if (!run->hot_columns)
		return 0;
	MW_TRY(mw_replicas_share(&run->replicas, run->protocol, (size_t)run->hot_columns * width,
		(size_t)d->features * width, err));
	run->hot_columns = run->replicas.n_mapped ? (uint32_t)(run->replicas.cold_from / width) : d->features;
	for (uint64_t i = 0; i < d->nnz; i++)
		hot += d->col[i] < run->hot_columns;
	run->hot_share = d->nnz ? (double)hot / (double)d->nnz : 1;
	return 0;
}

int mw_setup_init(struct mw_run *run, struct mw_err *err)
{
	size_t dim = run->model->dim;
	MW_TRY(mw_model_file_load(run->opt->init, run->model, run->average, NULL, err));
	if (!run->train->feature)
		return 0;
	float *x = mw_alloc_array(dim, sizeof(*x), "the first model", err);
	if (!x)
		return err->code;
	memcpy(x, run->average, dim * sizeof(*x));
	mw_dataset_swap_features(run->train, run->model->width, false, x, run->average);
	mw_free(x);
	return 0;
}

int mw_setup_save(struct mw_run *run, const char *path, const json_t *about, struct mw_err *err)
{
	size_t dim = run->model->dim;
	if (!run->train->feature)
		return mw_model_file_save(path, run->model, run->average, run->stats, about, err);
	float *x = mw_alloc_array(dim, sizeof(*x), "the model to be written", err);
	if (!x)
		return err->code;
	memcpy(x, run->average, dim * sizeof(*x));
	mw_dataset_swap_features(run->train, run->model->width, true, run->average, x);
	int code = mw_model_file_save(path, run->model, x, run->stats, about, err);
	mw_free(x);
	return code;
}
