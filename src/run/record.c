/* record.c: see record.h. */
#include "run/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/mem.h"
#include "run/atomic_file.h"
#include "run/control.h"
#include "run/setup_impl.h"
#include "run/theory.h"

json_t *mw_json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

double mw_effective_share(const struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	double c = 0;
	for (uint32_t w = 0; w < p->workers; w++)
		c += p->pi[p->push_row[w]] * (double)p->push_weight;
	return p->clock == MW_CLOCK_ROUND ? c : c / p->workers;
}

double mw_lost_share(const struct mw_run *run)
{
	double pushes = 0, counted = 0;
	if (!run->opt->tally || run->protocol->versioned)
		return NAN;
	for (uint32_t i = 0; i < run->replicas.n; i++)
		counted += run->replicas.row[i].tally;
	for (uint32_t w = 0; w < run->n_workers; w++)
		pushes += (double)run->counters[w].pushes;
	return pushes > 0 ? 1 - counted / pushes : NAN;
}

struct mw_hist *mw_record_staleness(const struct mw_run *run, struct mw_err *err)
{
	struct mw_hist *h = mw_alloc(sizeof(*h), "the staleness histogram", err);
	for (uint32_t w = 0; h && w < run->n_workers; w++)
		if (run->worker[w] && (w == 0 || run->worker[w]->staleness != run->shared_staleness))
			mw_hist_merge(h, run->worker[w]->staleness);
	return h;
}

/* --- pieces of run.json ------------------------------------------------------------------------------------------- */

static json_t *machine_json(void)
{
	struct utsname u;
	char model[200] = "", line[400];
	FILE *f = fopen("/proc/cpuinfo", "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "model name", 10) && strchr(line, ':')) {
			snprintf(model, sizeof(model), "%s", strchr(line, ':') + 2);
			model[strcspn(model, "\n")] = 0;
			break;
		}
	if (f)
		fclose(f);
	uname(&u);
	return json_pack("{ss ss ss ss sI}", "host", u.nodename, "kernel", u.release, "architecture",
		u.machine, "cpu", model, "online_pus", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN));
}

/* Counts of labels are left out where there would be very many. */
#define SHARD_COUNTS_MAX 65536

static json_t *shards_json(const struct mw_run *run)
{
	const struct mw_shards *s = &run->shards;
	uint32_t classes = run->train->classes;
	json_t *list = json_array();
	uint64_t *count = classes && (uint64_t)s->n * classes <= SHARD_COUNTS_MAX
				  ? calloc(classes, sizeof(*count))
				  : NULL;
	for (uint32_t w = 0; w < s->n; w++) {
		json_t *one = json_pack("{sI}", "rows", (json_int_t)s->row[w].n);
		if (count) {
			json_t *labels = json_array();
			mw_shards_count(s, run->train, w, count);
			for (uint32_t c = 0; c < classes; c++)
				json_array_append_new(labels, json_integer((json_int_t)count[c]));
			json_object_set_new(one, "labels", labels);
		}
		json_array_append_new(list, one);
	}
	free(count);
	return json_pack("{so so}", "label_distance", mw_json_number(mw_shards_distance(s, run->train)),
		"workers", list);
}

static json_t *data_json(const struct mw_run *run)
{
	const struct mw_dataset *d = run->train;
	json_t *labels = json_array();
	for (uint32_t c = 0; c < d->classes && d->label_value; c++)
		json_array_append_new(labels, json_real(d->label_value[c]));
	json_t *j = json_pack("{ss ss sI sI sI sI sI so sI sf ss?}", "name", d->name, "format", d->format,
		"rows", (json_int_t)d->rows, "training_rows", (json_int_t)run->rows.n, "validation_rows",
		(json_int_t)run->val.n, "features", (json_int_t)d->features, "classes",
		(json_int_t)d->classes, "labels", labels, "nonzeros", (json_int_t)d->nnz, "load_s", d->load_s,
		"cache", d->cache_note);
	if (d->image_rows)
		json_object_set_new(j, "image",
			json_pack("[iii]", (int)d->channels, (int)d->image_rows, (int)d->image_cols));
	if (run->shards.row)
		json_object_set_new(j, "shards", shards_json(run));
	return j;
}

static json_t *protocol_json(const struct mw_run *run)
{
	static const char *const forms[] = { "row", "sparse", "dense" };
	static const char *const accesses[] = { "racy", "atomic", "locked", "seqlock" };
	const struct mw_protocol *p = run->protocol;
	double c = mw_effective_share(run);
	json_t *j = json_pack("{ss ss? ss? sI sI ss ss ss sI sI sf sf sf sb}", "name", p->ops->name,
		"expands", p->ops->expands, "chosen_by", *run->why ? run->why : NULL, "workers",
		(json_int_t)p->workers, "replicas", (json_int_t)p->rows, "access",
		p->versioned ? "versions" : accesses[run->access], "native_step",
		p->clock == MW_CLOCK_ROUND ? "round" : "event", "gradient_form", forms[run->form],
		"mix_every", (json_int_t)(p->n_slots ? run->knobs.mix_every : 0), "ssp_bound",
		(json_int_t)run->ssp_bound, "push_weight", (double)p->push_weight, "c", c, "effective_step",
		c * (double)mw_rate_begin(run->rate, run->opt->epochs), "bursts", run->bursts);
	json_object_set_new(j, "deal", json_string(mw_deal_name(run)));
	if (run->hot_columns) {
		json_object_set_new(j, "hot_columns", json_integer(run->hot_columns));
		json_object_set_new(j, "hot_share", json_real(run->hot_share));
	}
	return j;
}

/* Workers whose mask was found changed after training. */
static uint32_t strayed(const struct mw_run *run)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < run->n_workers; w++)
		n += run->worker[w] && run->worker[w]->strayed;
	return n;
}

static json_t *workers_json(const struct mw_run *run)
{
	json_t *list = json_array();
	double ticks = mw_ticks_per_s();
	for (uint32_t w = 0; w < run->n_workers; w++) {
		const struct mw_worker *x = run->worker[w];
		json_t *j = json_pack("{sI sI sI sI sI sf}", "worker", (json_int_t)w, "steps",
			(json_int_t)x->counters->steps, "pushes", (json_int_t)x->counters->pushes, "flushed",
			(json_int_t)x->flushed, "dropped", (json_int_t)x->dropped, "wait_s", x->wait_s);
		json_object_set_new(j, "mean_skew",
			run->exclusive || !x->latency_n
				? json_null()
				: json_real((double)x->skew_sum / (double)x->latency_n));
		json_object_set_new(j, "staleness",
			run->shared_staleness
				? json_pack("{sf sf sI}", "n", x->staleness_n, "mean",
					  x->staleness_n > 0 ? x->staleness_sum / x->staleness_n : 0.0, "max",
					  (json_int_t)x->staleness_max)
				: mw_hist_json(x->staleness, 0));
		json_object_set_new(j, "view_to_push_ns",
			run->exclusive || !x->latency_n
				? json_null()
				: json_real(x->staleness_s / (double)x->latency_n / ticks * 1e9));
		json_array_append_new(list, j);
	}
	return list;
}

/* What an evaluation line and the summary have in common. */
json_t *mw_record_evaluation(const struct mw_run *run, const struct mw_evaluation *e)
{
	json_t *j = json_object();
	json_object_set_new(j, "train_loss", mw_json_number(e->train_loss));
	json_object_set_new(j, "train_accuracy", mw_json_number(e->train_accuracy));
	json_object_set_new(j, "val_loss", mw_json_number(e->val_loss));
	json_object_set_new(j, "val_accuracy", mw_json_number(e->val_accuracy));
	json_object_set_new(j, "test_loss", mw_json_number(e->test_loss));
	json_object_set_new(j, "test_accuracy", mw_json_number(e->test_accuracy));
	json_object_set_new(j, "grad_norm", mw_json_number(e->grad_norm));
	json_object_set_new(j, "consensus_distance", mw_json_number(e->consensus));
	json_object_set_new(j, "examples", json_integer((json_int_t)e->examples));
	json_object_set_new(j, "seconds", json_real(e->seconds));
	json_object_set_new(j, "virtual_seconds", run->exclusive ? json_real(run->virtual_s) : json_null());
	json_object_set_new(
		j, "examples_per_s", mw_json_number(e->seconds > 0 ? (double)e->examples / e->seconds : NAN));
	return j;
}

json_t *mw_record_summary(struct mw_run *run)
{
	const struct mw_evaluation *e = &run->last;
	struct mw_err err = { 0 };
	struct mw_hist *h = mw_record_staleness(run, &err);
	json_t *j = mw_record_evaluation(run, e);
	json_object_set_new(j, "epochs", json_real(e->epoch));
	json_object_set_new(j, "staleness", h ? mw_hist_json(h, 1) : json_null());
	json_object_set_new(j, "t_mix", run->t_mix ? json_incref(run->t_mix) : json_null());
	if (run->theory)
		json_object_set_new(j, "bound", mw_theory_json(run));
	json_object_set_new(j, "lost_share", mw_json_number(mw_lost_share(run)));
	json_object_set_new(j, "stale_policy", mw_stale_json(run));
	json_object_set_new(j, "stopped_by", run->stopped_by ? json_string(run->stopped_by) : json_null());
	mw_free(h);
	return j;
}

static json_t *run_json(struct mw_run *run, bool ended)
{
	char start[40];
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", gmtime(&run->started));
	json_t *j = json_object();
	json_object_set_new(j, "mixwild", json_string(mw_version()));
	json_object_set_new(
		j, "command", run->job->command_line ? json_string(run->job->command_line) : json_null());
	json_object_set_new(j, "started", json_string(start));
	json_object_set_new(j, "seed", json_integer((json_int_t)run->seed));
	json_object_set_new(j, "config", mw_job_config(run->job));
	json_object_set_new(j, "isa", json_string(mw_kernels()->name));
	json_object_set_new(j, "machine", machine_json());
	json_object_set_new(j, "layout", mw_layout_json(run->layout));
	json_object_set_new(j, "memory", mw_place_json(run));
	json_object_set_new(j, "data", data_json(run));
	json_object_set_new(j, "parameters", json_integer((json_int_t)run->model->dim));
	json_object_set_new(j, "model", json_string(run->model->spec));
	json_object_set_new(j, "math", run->model->math ? json_string(run->model->math) : json_null());
	json_object_set_new(j, "protocol", protocol_json(run));
	if (ended) {
		json_object_set_new(j, "workers", workers_json(run));
		json_object_set_new(j, "masks_changed", json_integer(strayed(run)));
		json_object_set_new(j, "summary", mw_record_summary(run));
	}
	return j;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

int mw_record_make_dirs(const char *path, struct mw_err *err)
{
	char *p = mw_strdup(path);
	int code = 0;
	if (!p)
		MW_FAIL(err, RESOURCE, "out of memory");
	for (char *s = p + 1; *s && !code; s++)
		if (*s == '/') {
			*s = 0;
			code = mkdir(p, 0777) && errno != EEXIST;
			*s = '/';
		}
	if (!code)
		code = mkdir(p, 0777) && errno != EEXIST;
	if (code)
		mw_err_set(err, MW_ERESOURCE, "--out %s: can't make the folder: %s", path, strerror(errno));
	free(p);
	return code ? MW_ERESOURCE : 0;
}

static int write_json(const char *dir, const char *name, json_t *j, struct mw_err *err)
{
	struct mw_atomic_file f;
	char *path = mw_strprintf("%s/%s", dir, name);
	int code = mw_atomic_file_open(&f, path, err);
	free(path);
	if (code == 0) {
		json_dumpf(j, f.file, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
		fputc('\n', f.file);
		code = mw_atomic_file_commit(&f, err);
	}
	json_decref(j);
	return code;
}

static int write_layout(struct mw_run *run, struct mw_err *err)
{
	struct mw_atomic_file f;
	char *path = mw_strprintf("%s/layout.txt", run->run_dir);
	int code = mw_atomic_file_open(&f, path, err);
	free(path);
	if (code)
		return code;
	mw_layout_print(run->layout, f.file);
	if (run->layout->applied && run->worker[0])
		fprintf(f.file, "masks: read back when workers had started: all as planned\n");
	if (run->n_evaluations && run->layout->applied)
		fprintf(f.file, "masks: read back after training: %u of %u as planned\n",
			run->n_workers - strayed(run), run->n_workers);
	mw_place_print(run, f.file);
	return mw_atomic_file_commit(&f, err);
}

int mw_record_start(struct mw_run *run, struct mw_err *err)
{
	const char *dir = run->opt->out;
	if (!dir)
		return 0;
	MW_TRY(mw_record_make_dirs(dir, err));
	run->run_dir = mw_strdup(dir);
	char *path = mw_strprintf("%s/metrics.jsonl", dir);
	if (!run->run_dir || !path)
		MW_FAIL(err, RESOURCE, "out of memory");
	if (!run->opt->force && !run->opt->resume && access(path, F_OK) == 0) {
		free(path);
		MW_FAIL(err, USAGE,
			"--out %s: there is a run in this folder already; choose another one, --resume to go "
			"on with it, or "
			"--force to replace it",
			dir);
	}
	run->metrics = fopen(path, run->opt->resume ? "a" : "w");
	free(path);
	if (!run->metrics)
		MW_FAIL(err, RESOURCE, "%s/metrics.jsonl: %s", dir, strerror(errno));
	return mw_record_layout(run, err);
}

int mw_record_layout(struct mw_run *run, struct mw_err *err)
{
	if (!run->run_dir)
		return 0;
	MW_TRY(write_layout(run, err));
	return write_json(run->run_dir, "run.json", run_json(run, false), err);
}

/* How the training images were turned into numbers. */
static json_t *image_about(const struct mw_dataset *d)
{
	json_t *mean = json_array(), *scale = json_array();
	for (uint32_t c = 0; c < d->channels && c < MW_CHANNELS_MAX; c++) {
		json_array_append_new(mean, json_real((double)d->pixel_mean[c]));
		json_array_append_new(scale, json_real((double)d->pixel_scale[c]));
	}
	return json_pack("{sI sI sI so so}", "rows", (json_int_t)d->image_rows, "cols",
		(json_int_t)d->image_cols, "channels", (json_int_t)d->channels, "mean", mean, "scale", scale);
}

/* What `mixwild predict` needs to use the parameters. */
static json_t *model_about(struct mw_run *run)
{
	json_t *labels = json_array(), *config = mw_job_config(run->job);
	const struct mw_dataset *d = run->train;
	for (uint32_t c = 0; c < d->classes && d->label_value; c++)
		json_array_append_new(labels, json_real(d->label_value[c]));
	json_t *j = json_pack("{ss ss so so sI sI sI sb}", "version", mw_version(), "model", run->model->spec,
		"config", config, "labels", labels, "classes", (json_int_t)d->classes, "features",
		(json_int_t)d->features, "index_base", (json_int_t)d->index_base, "dense",
		d->kind == MW_X_DENSE);
	if (d->kind == MW_X_IMAGE)
		json_object_set_new(j, "image", image_about(d));
	return j;
}

int mw_record_end(struct mw_run *run, struct mw_err *err)
{
	if (!run->run_dir)
		return 0;
	char *path = mw_strprintf("%s/model.safetensors", run->run_dir);
	json_t *about = model_about(run);
	int code = mw_setup_save(run, path, about, err);
	json_decref(about);
	free(path);
	MW_TRY(code);
	MW_TRY(write_layout(run, err));
	MW_TRY(write_json(run->run_dir, "run.json", run_json(run, true), err));
	if (run->metrics && fclose(run->metrics))
		code = mw_err_set(err, MW_ERESOURCE, "%s/metrics.jsonl can't be written: %s", run->run_dir,
			strerror(errno));
	run->metrics = NULL;
	return code;
}

int mw_record_trace(struct mw_run *run, struct mw_err *err)
{
	if (!mw_tracing(run))
		return 0;
	struct mw_recorder **r = mw_alloc_array(run->n_workers, sizeof(*r), "the trace", err);
	if (!r)
		return err->code;
	bool full = false, exact = run->protocol->versioned || run->access >= MW_ACCESS_LOCKED;
	for (uint32_t w = 0; w < run->n_workers; w++) {
		r[w] = run->worker[w]->recorder;
		full |= r[w]->full;
	}
	json_t *config = mw_job_config(run->job);
	json_t *header = json_pack("{ss ss sI sI sf so sb sb sb}", "mixwild", mw_version(), "protocol",
		run->protocol->ops->name, "workers", (json_int_t)run->n_workers, "rows",
		(json_int_t)run->protocol->rows, "ticks_per_s", mw_ticks_per_s(), "config", config, "windows",
		run->opt->trace_every > 0 || full, "versions", exact, "truncated", full);
	json_object_set_new(header, "ticks_invariant", json_boolean(mw_ticks_invariant()));
	int code = mw_trace_save(run->opt->trace, header, r, run->n_workers, err);
	json_decref(header);
	mw_free(r);
	return code;
}
