/* checkpoint.c: see checkpoint.h. */
#include "run/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/optimize.h"
#include "run/record.h"
#include "run/tensor_file.h"

struct tensors {
	struct mw_tensor *t;
	size_t n;
	float *residual; /* what replica floats lack of the Kahan or double value, row by row */
	float *packed;   /* states whose records have a gap: without it, one after the other */
};

static void add(struct tensors *ts, float *data, size_t rows, size_t cols, const char *name, uint32_t i)
{
	struct mw_tensor *t = &ts->t[ts->n++];
	snprintf(t->name, sizeof(t->name), "%s.%u", name, i);
	t->shape[0] = rows > 1 ? rows : cols;
	t->shape[1] = cols;
	t->ndim = rows > 1 ? 2 : 1;
	t->data = data;
}

/* Every optimizer's state, in the order of the file. */
static float *state_at(const struct mw_run *run, uint32_t i)
{
	return i < run->n_workers ? run->worker[i]->state : run->shared_state;
}

static bool has_gaps(const struct mw_run *run)
{
	return mw_state_floats(run) > run->model->dim * run->optim->fields;
}

static int collect_states(struct mw_run *run, struct tensors *ts, struct mw_err *err)
{
	size_t dim = run->model->dim, fields = run->optim->fields;
	uint32_t n = 0;
	for (uint32_t i = 0; i <= run->n_workers; i++)
		n += state_at(run, i) != NULL;
	if (n && has_gaps(run)) {
		ts->packed = mw_alloc_array(dim * fields * n, sizeof(float), "the checkpoint", err);
		if (!ts->packed)
			return err->code;
	}
	float *packed = ts->packed;
	for (uint32_t i = 0; i <= run->n_workers; i++) {
		float *state = state_at(run, i);
		if (!state)
			continue;
		bool shared = i == run->n_workers;
		add(ts, packed ? packed : state, fields, dim, shared ? "shared_state" : "state",
			shared ? 0 : i);
		packed = packed ? packed + dim * fields : NULL;
	}
	return 0;
}

/* Everything that is floats. */
static int collect(struct mw_run *run, struct tensors *ts, struct mw_err *err)
{
	size_t dim = run->model->dim;
	bool wide = run->opt->mix_precision != MW_PRECISION_FLOAT;
	*ts = (struct tensors){ 0 };
	ts->t = mw_alloc_array(
		2 * (size_t)run->replicas.n + run->n_workers + 2, sizeof(*ts->t), "the checkpoint", err);
	if (!ts->t)
		return err->code;
	if (wide) {
		ts->residual = mw_alloc_array(dim * run->replicas.n, sizeof(float), "the checkpoint", err);
		if (!ts->residual)
			return err->code;
	}
	if (run->protocol->versioned) {
		uint32_t held = mw_leash_acquire(&run->leash);
		add(ts, run->leash.version[held].x, 1, dim, "replica", 0);
		mw_leash_release(&run->leash, held); /* workers rest: nobody recycles it */
	}
	for (uint32_t i = 0; i < run->replicas.n && !run->protocol->versioned; i++) {
		add(ts, run->replicas.row[i].x, 1, dim, "replica", i);
		if (wide)
			add(ts, ts->residual + dim * i, 1, dim, "residual", i);
	}
	return collect_states(run, ts, err);
}

static void free_tensors(struct tensors *ts)
{
	mw_free(ts->t);
	mw_free(ts->residual);
	mw_free(ts->packed);
}

/* Between the states and their packed form, if they have one. */
static void move_states(struct mw_run *run, float *packed, bool out)
{
	uint32_t fields = run->optim->fields, record = MW_OPTIM_RECORD(fields);
	for (uint32_t i = 0; packed && i <= run->n_workers; i++) {
		float *state = state_at(run, i);
		for (size_t p = 0; state && p < run->model->dim; p++, packed += fields)
			memcpy(out ? packed : state + p * record, out ? state + p * record : packed,
				fields * sizeof(float));
	}
}

static void residuals_out(struct mw_run *run, float *out)
{
	size_t dim = run->model->dim;
	for (uint32_t i = 0; out && i < run->replicas.n; i++) {
		const struct mw_replica *r = &run->replicas.row[i];
		for (size_t j = 0; j < dim; j++)
			out[dim * i + j] = r->comp ? r->comp[j] : (float)(r->wide[j] - (double)r->x[j]);
	}
}

static void residuals_in(struct mw_run *run, const float *in)
{
	size_t dim = run->model->dim;
	for (uint32_t i = 0; in && i < run->replicas.n; i++) {
		struct mw_replica *r = &run->replicas.row[i];
		for (size_t j = 0; j < dim; j++)
			if (r->comp)
				r->comp[j] = in[dim * i + j];
			else
				r->wide[j] = (double)r->x[j] + (double)in[dim * i + j];
	}
}

static json_t *about(const struct mw_run *run)
{
	json_t *list = json_array();
	for (uint32_t w = 0; w < run->n_workers; w++) {
		const struct mw_worker *x = run->worker[w];
		json_array_append_new(
			list, json_pack("{sI sI sI sI sI sI sI sf so*}", "step", (json_int_t)x->step, "mixes",
				      (json_int_t)x->mixes, "mix_step", (json_int_t)x->mix_step, "ssp_clock",
				      (json_int_t)x->ssp_clock, "pushes", (json_int_t)x->counters->pushes,
				      "examples", (json_int_t)x->counters->examples, "dropped",
				      (json_int_t)x->dropped, "factor_sum", x->factor_sum, "dealt",
				      run->dealer ? mw_deal_worker_json(x) : NULL));
	}
	return json_pack("{ss ss ss ss ss ss sI sI sI sI sI sI sf sf so so*}", "kind", "checkpoint",
		"protocol", run->protocol->ops->name, "model", run->model->spec, "optimizer",
		run->optim->ops->name, "shards", run->opt->shards, "deal", mw_deal_name(run), "workers",
		(json_int_t)run->n_workers, "batch", (json_int_t)run->batch, "seed", (json_int_t)run->seed,
		"hot", (json_int_t)run->hot_columns, "turn", (json_int_t)run->turn, "token",
		(json_int_t)run->token, "train_s", run->train_s, "virtual_s", run->virtual_s, "worker", list,
		"dealer", mw_deal_json(run));
}

static char *path_of(const struct mw_run *run)
{
	return mw_strprintf("%s/checkpoint.safetensors", run->run_dir);
}

int mw_checkpoint_save(struct mw_run *run, struct mw_err *err)
{
	struct tensors ts;
	if (!run->run_dir)
		return 0;
	char *path = path_of(run);
	json_t *j = about(run);
	int code = collect(run, &ts, err);
	if (code == 0) {
		residuals_out(run, ts.residual);
		move_states(run, ts.packed, true);
		code = mw_tensor_file_save(path, ts.t, ts.n, j, err);
	}
	free_tensors(&ts);
	json_decref(j);
	free(path);
	return code;
}

static int same_text(const json_t *j, const char *path, const char *key, const char *here, struct mw_err *err)
{
	const char *there = json_string_value(json_object_get(j, key));
	if (!there || strcmp(there, here))
		MW_FAIL(err, USAGE, "--resume: %s was made with %s %s, not %s", path, key,
			there ? there : "(none)", here);
	return 0;
}

static int same_number(const json_t *j, const char *path, const char *key, uint64_t here, struct mw_err *err)
{
	json_int_t there = json_integer_value(json_object_get(j, key));
	if (there != (json_int_t)here)
		MW_FAIL(err, USAGE, "--resume: %s was made with --%s %lld, not %llu", path, key,
			(long long)there, (unsigned long long)here);
	return 0;
}

static uint64_t member(const json_t *j, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(j, key));
}

static int restore_worker(struct mw_worker *w, const json_t *j, const char *path, struct mw_err *err)
{
	w->step = member(j, "step");
	w->mixes = member(j, "mixes");
	w->mix_step = member(j, "mix_step");
	w->ssp_clock = member(j, "ssp_clock");
	w->counters->steps = w->step;
	w->counters->pushes = member(j, "pushes");
	w->counters->examples = member(j, "examples");
	w->dropped = member(j, "dropped");
	w->factor_sum = json_number_value(json_object_get(j, "factor_sum"));
	w->rate_step = 0;
	if (w->run->exclusive)
		w->run->sim_pushes += w->counters->pushes;
	if (w->run->dealer)
		return mw_deal_worker_restore(w, json_object_get(j, "dealt"), path, err);
	mw_order_skip(&w->order, w->step * w->run->batch);
	return 0;
}

static int restore(struct mw_run *run, const char *path, const json_t *j, struct mw_err *err)
{
	MW_TRY(same_text(j, path, "protocol", run->protocol->ops->name, err));
	MW_TRY(same_text(j, path, "model", run->model->spec, err));
	MW_TRY(same_text(j, path, "optimizer", run->optim->ops->name, err));
	MW_TRY(same_text(j, path, "shards", run->opt->shards, err));
	MW_TRY(same_text(j, path, "deal", mw_deal_name(run), err));
	MW_TRY(same_number(j, path, "workers", run->n_workers, err));
	MW_TRY(same_number(j, path, "batch", run->batch, err));
	MW_TRY(same_number(j, path, "seed", run->seed, err));
	MW_TRY(same_number(j, path, "hot", run->hot_columns, err)); /* then columns are in this run's order */
	const json_t *list = json_object_get(j, "worker");
	if (json_array_size(list) != run->n_workers)
		MW_FAIL(err, DATA, "%s: its metadata is incomplete", path);
	struct tensors ts;
	int code = collect(run, &ts, err);
	if (code == 0)
		code = mw_tensor_file_load(path, ts.t, ts.n, err);
	if (code == 0) {
		residuals_in(run, ts.residual);
		move_states(run, ts.packed, false);
		if (run->dealer)
			mw_deal_restore(run, json_object_get(j, "dealer"));
		for (uint32_t w = 0; w < run->n_workers && code == 0; w++)
			code = restore_worker(run->worker[w], json_array_get(list, w), path, err);
		run->turn = member(j, "turn");
		run->token = (uint32_t)member(j, "token");
		run->train_s = json_number_value(json_object_get(j, "train_s"));
		run->virtual_s = json_number_value(json_object_get(j, "virtual_s"));
	}
	free_tensors(&ts);
	return code;
}

int mw_checkpoint_load(struct mw_run *run, struct mw_err *err)
{
	json_t *j = NULL;
	char *path = path_of(run);
	int code = mw_tensor_file_about(path, &j, err);
	if (code == 0)
		code = restore(run, path, j, err);
	json_decref(j);
	free(path);
	return code;
}
