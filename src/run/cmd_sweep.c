/* cmd_sweep.c: `mixwild sweep JOB.ini`: many runs of `mixwild train` from one file. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/atomic_file.h"
#include "run/output.h"
#include "run/record.h"
#include "run/sweep.h"
#include "topo/layout.h"

struct options {
	char *out;
	int64_t jobs;
	bool dry_run, force;
	int format;
};

#define F(field) offsetof(struct options, field)

static const struct mw_option table[] = {
	{ "out", MW_OPT_STRING, F(out), NULL, 0, 0, NULL, "DIR",
		"The sweep's folder: a folder for each run, index.csv, a copy of the job file. Without it: "
		"out of "
		"[global], else runs/NAME for NAME.ini." },
	{ "jobs", MW_OPT_INT, F(jobs), "0", 0, 4096, NULL, "N",
		"Runs of the sim engine side by side; 0: as many as cores may be used. Runs of the threads "
		"engine "
		"are alone on the machine." },
	{ "dry-run", MW_OPT_BOOL, F(dry_run), "no", 0, 0, NULL, NULL,
		"Check everything, list the runs and what is done of them, and run nothing." },
	{ "force", MW_OPT_BOOL, F(force), "no", 0, 0, NULL, NULL,
		"Replace runs in the folder that had other options." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL,
		"Form of the table at the end (csv: what is in index.csv)." },
	{ 0 },
};

static int count_slots(int64_t jobs, uint32_t *slots, struct mw_err *err)
{
	struct mw_layout_request request = {
		.workers = "cores", .bind = "none", .places = MW_PLACES_PU, .controller_cpu = -1
	};
	struct mw_layout *layout;
	*slots = (uint32_t)jobs;
	if (jobs)
		return MW_OK;
	MW_TRY(mw_layout_new(&request, &layout, err));
	*slots = layout->usable_cores; /* what OpenMP's variables say is about threads of one run */
	mw_layout_free(layout);
	return MW_OK;
}

/* One sweep at a time in a folder. The lock ends with the process and with those that it has forked. */
static int lock_folder(struct mw_sweep *s, struct mw_err *err)
{
	char *path = mw_strprintf("%s/.lock", s->out);
	MW_TRY(mw_record_make_dirs(s->out, err));
	s->lock = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
	int problem = s->lock < 0 ? errno : flock(s->lock, LOCK_EX | LOCK_NB) ? errno : 0;
	free(path);
	if (problem == EWOULDBLOCK)
		MW_FAIL(err, USAGE, "%s: another sweep is at work in this folder", s->out);
	if (problem && s->lock < 0)
		MW_FAIL(err, RESOURCE, "%s can't be written: %s", s->out, strerror(problem));
	return MW_OK;
}

static int copy_job_file(const struct mw_sweep *s, struct mw_err *err)
{
	struct mw_atomic_file to;
	char block[4096], *path = mw_strprintf("%s/job.ini", s->out);
	FILE *from = fopen(s->path, "r");
	size_t n;
	int ret = !path || !from ? mw_err_set(err, MW_ERESOURCE, "%s can't be copied", s->path)
				 : mw_atomic_file_open(&to, path, err);
	if (ret == 0) {
		while ((n = fread(block, 1, sizeof(block), from)) > 0)
			fwrite(block, 1, n, to.file);
		ret = mw_atomic_file_commit(&to, err);
	}
	if (from)
		fclose(from);
	free(path);
	return ret;
}

/* --- what people see ----------------------------------------------------------------------------------------------- */

static void number(FILE *f, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	if (json_is_number(v))
		fprintf(f, " %12.6g", json_number_value(v));
	else
		fprintf(f, " %12s", "-");
}

static int widest(const json_t *rows)
{
	int width = 3;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const char *name = json_string_value(json_object_get(json_array_get(rows, i), "run"));
		width = (int)strlen(name) > width ? (int)strlen(name) : width;
	}
	return width;
}

static void print_text(const json_t *rows, FILE *f)
{
	static const char *const columns[] = { "train_loss", "val_loss", "test_accuracy", "tmix_exact" };
	int width = widest(rows);
	size_t i;
	json_t *r;
	fprintf(f, "%-*s %-11s", width, "run", "status");
	for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
		fprintf(f, " %*s", k == 2 ? 13 : 12, columns[k]);
	fputc('\n', f);
	json_array_foreach(rows, i, r)
	{
		const char *role = json_string_value(json_object_get(r, "role"));
		fprintf(f, "%-*s %-11s", width, json_string_value(json_object_get(r, "run")),
			json_string_value(json_object_get(r, "status")));
		for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++) {
			fputs(k == 2 ? " " : "", f);
			number(f, r, columns[k]);
		}
		fprintf(f, "%s\n", strcmp(role, "trial") ? "" : "  (rate tried)");
	}
}

static void print(const struct mw_sweep *s, int format, FILE *f)
{
	json_t *rows = mw_sweep_table(s);
	if (format == 1) {
		mw_output_json(f, rows);
		return;
	}
	if (format == 2)
		mw_sweep_csv(rows, f);
	else
		print_text(rows, f);
	json_decref(rows);
}

static void print_dry(const struct mw_sweep *s, FILE *f)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct mw_sweep_run *r = s->run[i];
		const char *what = r->state == MW_SWEEP_DONE       ? "done"
				   : r->state == MW_SWEEP_DIVERGED ? "done (diverged)"
				   : r->resumes                    ? "to be resumed"
								   : "to be run";
		fprintf(f, "%s/%s: %s, %s\n", s->out, r->name, r->exclusive ? "threads" : "sim", what);
	}
	for (size_t i = 0; i < s->n_searches; i++)
		if (!s->search[i]->chosen)
			fprintf(f,
				"%s: [%s] then the best rate with %zu more seeds, after more rates if it is "
				"the first or "
				"last of the grid\n",
				s->search[i]->where, s->search[i]->job, s->search[i]->n_seeds - 1);
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static int look_at_all(struct mw_sweep *s, struct mw_err *err)
{
	for (size_t i = 0; i < s->n; i++)
		MW_TRY(mw_sweep_look(s, s->run[i], err));
	return MW_OK;
}

/* The first failure is the command's, once all others have had their turn. */
static int check_failures(const struct mw_sweep *s, struct mw_err *err)
{
	size_t failed = 0;
	const struct mw_sweep_run *first = NULL;
	for (size_t i = 0; i < s->n; i++)
		if (s->run[i]->state == MW_SWEEP_FAILED) {
			first = first ? first : s->run[i];
			failed++;
		}
	if (!failed)
		return MW_OK;
	return mw_err_set(err, first->error.code, "%zu of %zu runs failed; the first, %s/%s: %s", failed,
		s->n, s->out, first->name, first->error.msg);
}

static int execute(struct mw_sweep *s, const struct mw_job *job, struct mw_err *err)
{
	const struct options *o = job->options;
	MW_TRY(lock_folder(s, err));
	MW_TRY(look_at_all(s, err));
	MW_TRY(copy_job_file(s, err));
	if (s->msg)
		fprintf(s->msg, "%zu runs into %s, %u at a time\n", s->n, s->out, s->slots);
	MW_TRY(mw_sweep_execute(s, err));
	MW_TRY(mw_sweep_index(s, err));
	print(s, o->format, job->out);
	if (s->msg && __atomic_load_n(s->interrupt, __ATOMIC_RELAXED))
		fprintf(s->msg, "interrupted: the same command goes on\n");
	else if (s->msg)
		fprintf(s->msg, "results   %s/index.csv\n", s->out);
	return check_failures(s, err);
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct options *o = job->options;
	struct mw_sweep s = {
		.force = o->force, .msg = job->msg, .live = job->live, .interrupt = job->interrupt, .lock = -1
	};
	int ret = mw_sweep_load(&s, job->positional[0], o->out, err);
	if (ret == 0)
		ret = count_slots(o->jobs, &s.slots, err);
	if (ret == 0 && o->dry_run)
		ret = look_at_all(&s, err);
	if (ret == 0 && o->dry_run)
		print_dry(&s, job->out);
	else if (ret == 0)
		ret = execute(&s, job, err);
	mw_sweep_fini(&s);
	return ret;
}

const struct mw_command mw_command_sweep = {
	.name = "sweep",
	.summary =
		"Many runs of train from one job file: products of values, seeds, searched rates; resumable",
	.positionals = "JOB.ini",
	.min_positionals = 1,
	.max_positionals = 1,
	.options = table,
	.option_size = sizeof(struct options),
	.examples = "mixwild sweep experiments/frequency/job.ini --dry-run\n"
		    "mixwild sweep experiments/frequency/job.ini --out runs/frequency\n",
	.run = run,
};
