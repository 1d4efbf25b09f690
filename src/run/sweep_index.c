/* sweep_index.c: the results of a sweep as one table, index.csv; see sweep.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/atomic_file.h"
#include "run/output.h"
#include "run/past.h"
#include "run/sweep.h"

/* Column, and where it stands in run.json ('/' parts members). */
static const struct {
	const char *column, *path;
} result[] = {
	{ "train_loss", "summary/train_loss" },
	{ "train_accuracy", "summary/train_accuracy" },
	{ "val_loss", "summary/val_loss" },
	{ "val_accuracy", "summary/val_accuracy" },
	{ "test_loss", "summary/test_loss" },
	{ "test_accuracy", "summary/test_accuracy" },
	{ "grad_norm", "summary/grad_norm" },
	{ "consensus_distance", "summary/consensus_distance" },
	{ "epochs_done", "summary/epochs" },
	{ "examples", "summary/examples" },
	{ "train_seconds", "summary/seconds" },
	{ "virtual_seconds", "summary/virtual_seconds" },
	{ "examples_per_s", "summary/examples_per_s" },
	{ "native_step", "protocol/native_step" },
	{ "c", "protocol/c" },
	{ "effective_step", "protocol/effective_step" },
	{ "staleness_mean", "summary/staleness/mean" },
	{ "staleness_p50", "summary/staleness/p50" },
	{ "staleness_p99", "summary/staleness/p99" },
	{ "staleness_max", "summary/staleness/max" },
	{ "tmix_exact", "summary/t_mix/exact/value" },
	{ "tmix_exact_gradient_steps", "summary/t_mix/exact/gradient_steps" },
	{ "tmix_norm", "summary/t_mix/exact/norm" },
	{ "tmix_unit", "summary/t_mix/exact/unit" },
	{ "tmix_trace", "summary/t_mix/trace/value" },
	{ "tmix_trace_error", "summary/t_mix/trace/error" },
	{ "tmix_probe", "summary/t_mix/probe/value" },
	{ "tmix_probe_error", "summary/t_mix/probe/error" },
	{ "tmix_passive", "summary/t_mix/passive/value" },
	{ "tmix_passive_error", "summary/t_mix/passive/error" },
	{ "dropped", "summary/stale_policy/dropped" },
	{ "lost_share", "summary/lost_share" },
	{ "stopped_by", "summary/stopped_by" },
};

/* What is there; null where it is nothing, or no single value. */
static json_t *value(const json_t *run, const char *path)
{
	json_t *j = mw_past_at(run, path);
	return j && !json_is_object(j) && !json_is_array(j) ? json_incref(j) : json_null();
}

/* Numbers as numbers, so that JSON and CSV readers see their type. */
static json_t *typed(const char *text)
{
	char *end;
	double x = text ? strtod(text, &end) : 0;
	if (!text)
		return json_null();
	if (!*text || *end || !isfinite(x))
		return json_string(text);
	return x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x);
}

/* Every key that any run sets. */
static json_t *all_keys(const struct mw_sweep *s)
{
	json_t *keys = json_object();
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->run[i]->n_settings; k++)
			json_object_set_new(keys, s->run[i]->setting[k].key, json_true());
	return keys;
}

static json_t *row(const struct mw_sweep *s, const struct mw_sweep_run *r, json_t *keys)
{
	static const char *const states[] = { "waiting", "running", "done", "diverged", "failed",
		"interrupted" };
	json_t *run = r->state == MW_SWEEP_DONE || r->state == MW_SWEEP_DIVERGED ? mw_sweep_read(s, r) : NULL;
	json_t *j = json_object(), *unused;
	const char *key;
	json_object_set_new(j, "run", json_string(r->name));
	json_object_set_new(j, "job", json_string(r->job));
	json_object_set_new(j, "status", json_string(states[r->state]));
	json_object_set_new(j, "role", json_string(r->trial ? "trial" : "final"));
	json_object_foreach(keys, key, unused) json_object_set_new(j, key, typed(mw_sweep_value(r, key)));
	for (size_t i = 0; i < sizeof(result) / sizeof(*result); i++)
		json_object_set_new(j, result[i].column, value(run, result[i].path));
	json_object_set_new(j, "error", r->error.code ? json_string(r->error.msg) : json_null());
	json_decref(run);
	return j;
}

json_t *mw_sweep_table(const struct mw_sweep *s)
{
	json_t *table = json_array(), *keys = all_keys(s);
	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(table, row(s, s->run[i], keys));
	json_decref(keys);
	return table;
}

static void csv_value(const json_t *v, FILE *f)
{
	if (json_is_string(v))
		mw_output_csv(f, json_string_value(v));
	else if (json_is_integer(v))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		fprintf(f, "%.10g", json_real_value(v));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "true" : "false", f);
}

void mw_sweep_csv(const json_t *table, FILE *f)
{
	size_t i;
	json_t *r, *value;
	const char *name, *comma = "";
	json_object_foreach(json_array_get(table, 0), name, value)
	{
		fputs(comma, f);
		for (const char *c = name; *c; c++)
			fputc(*c == '-' ? '_' : *c, f);
		comma = ",";
	}
	fputc('\n', f);
	json_array_foreach(table, i, r)
	{
		comma = "";
		json_object_foreach(r, name, value)
		{
			fputs(comma, f);
			csv_value(value, f);
			comma = ",";
		}
		fputc('\n', f);
	}
}

int mw_sweep_index(const struct mw_sweep *s, struct mw_err *err)
{
	struct mw_atomic_file f;
	char *path = mw_strprintf("%s/index.csv", s->out);
	if (!path)
		MW_FAIL(err, RESOURCE, "out of memory for index.csv");
	int ret = mw_atomic_file_open(&f, path, err);
	free(path);
	MW_TRY(ret);
	json_t *table = mw_sweep_table(s);
	mw_sweep_csv(table, f.file);
	json_decref(table);
	return mw_atomic_file_commit(&f, err);
}
