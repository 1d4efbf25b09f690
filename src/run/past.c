/* past.c: run folders; see past.h. */
#include "run/past.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

/* Folders in folders: sweeps have two levels. */
#define DEPTH_MAX 6
#define RUNS_MAX  20000

static int no_memory(struct mw_err *err)
{
	MW_FAIL(err, RESOURCE, "out of memory for the runs");
}

static bool is_run(const char *folder)
{
	char *path = mw_strprintf("%s/run.json", folder);
	bool there = path && access(path, F_OK) == 0;
	free(path);
	return there;
}

/* Evaluations only; the last line may be cut short by a kill. */
static json_t *read_metrics(const char *folder)
{
	char *path = mw_strprintf("%s/metrics.jsonl", folder), *line = NULL;
	FILE *f = path ? fopen(path, "r") : NULL;
	json_t *list = json_array();
	size_t size = 0;
	ssize_t n;
	while (f && (n = getline(&line, &size, f)) > 0) {
		json_t *j = json_loadb(line, (size_t)n, 0, NULL);
		if (json_object_get(j, "train_loss") && !json_object_get(j, "event"))
			json_array_append(list, j);
		json_decref(j);
	}
	if (f)
		fclose(f);
	free(line);
	free(path);
	return list;
}

static int add_run(struct mw_pasts *p, const char *folder, struct mw_err *err)
{
	struct mw_past *grown = realloc(p->past, (p->n + 1) * sizeof(*grown));
	json_error_t problem;
	if (!grown)
		return no_memory(err);
	p->past = grown;
	if (p->n >= RUNS_MAX)
		MW_FAIL(err, USAGE, "more than %d runs", RUNS_MAX);
	struct mw_past *one = &grown[p->n++];
	char *path = mw_strprintf("%s/run.json", folder);
	*one = (struct mw_past){ .folder = mw_strdup(folder) };
	if (path)
		one->run = json_load_file(path, 0, &problem);
	int ret = !path || !one->folder ? no_memory(err)
		  : json_is_object(one->run)
			  ? 0
			  : mw_err_set(err, MW_EDATA, "%s:%d:%d: no run's description: %s", path,
				    problem.line, problem.column, one->run ? "not an object" : problem.text);
	free(path);
	one->metrics = read_metrics(folder);
	return ret;
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* In the order of versionsort, so that mix-every=10 follows mix-every=2. */
static int search(struct mw_pasts *p, const char *folder, int depth, struct mw_err *err)
{
	struct dirent **entry;
	struct stat about;
	if (is_run(folder))
		return add_run(p, folder, err);
	if (depth == DEPTH_MAX)
		return MW_OK;
	int n = scandir(folder, &entry, visible, versionsort), ret = 0;
	if (n < 0)
		MW_FAIL(err, DATA, "%s: can't be opened: %s", folder, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *path = mw_strprintf("%s/%s", folder, entry[i]->d_name);
		if (ret == 0 && path && stat(path, &about) == 0 && S_ISDIR(about.st_mode))
			ret = search(p, path, depth + 1, err);
		free(path);
		free(entry[i]);
	}
	free(entry);
	return ret;
}

/* Names: what follows the last '/' that all folders have in common. */
static int name_all(struct mw_pasts *p, struct mw_err *err)
{
	size_t common = strlen(p->past[0].folder);
	for (size_t i = 0; i < p->n; i++) {
		const char *a = p->past[0].folder, *b = p->past[i].folder;
		size_t k = 0;
		while (k < common && a[k] == b[k])
			k++;
		common = k;
	}
	if (p->n == 1 || common == strlen(p->past[0].folder))
		common = common ? common - 1 : 0;
	while (common && p->past[0].folder[common - 1] != '/')
		common--;
	for (size_t i = 0; i < p->n; i++) {
		const char *name = p->past[i].folder + common;
		p->past[i].name = mw_strdup(*name ? name : p->past[i].folder);
		if (!p->past[i].name)
			return no_memory(err);
	}
	return MW_OK;
}

int mw_pasts_load(const char *const *folder, size_t n, struct mw_pasts *out, struct mw_err *err)
{
	*out = (struct mw_pasts){ 0 };
	for (size_t i = 0; i < n; i++) {
		size_t before = out->n, length = strlen(folder[i]);
		char *path = mw_strdup(folder[i]);
		while (path && length > 1 && path[length - 1] == '/')
			path[--length] = 0;
		int ret = path ? search(out, path, 0, err) : no_memory(err);
		free(path);
		MW_TRY(ret);
		if (out->n == before)
			MW_FAIL(err, DATA, "%s: no run in this folder or below it (a run has a run.json)",
				folder[i]);
	}
	return out->n ? name_all(out, err) : MW_OK;
}

void mw_pasts_free(struct mw_pasts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->past[i].folder);
		free(p->past[i].name);
		json_decref(p->past[i].run);
		json_decref(p->past[i].metrics);
	}
	free(p->past);
	*p = (struct mw_pasts){ 0 };
}

json_t *mw_past_at(const json_t *j, const char *path)
{
	char part[64];
	json_t *at;
	do {
		size_t n = strcspn(path, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		j = at = json_object_get(j, part);
		path += n + (path[n] == '/');
	} while (*path && at);
	return at;
}

double mw_past_number(const json_t *j, const char *path)
{
	const json_t *v = mw_past_at(j, path);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *mw_past_text(const json_t *j, const char *path)
{
	return json_string_value(mw_past_at(j, path));
}

double mw_past_tmix(const struct mw_past *p)
{
	static const char *const estimates[] = { "summary/t_mix/trace/value", "summary/t_mix/probe/value",
		"summary/t_mix/passive/value" };
	double exact = mw_past_number(p->run, "summary/t_mix/exact/gradient_steps");
	const char *native = mw_past_text(p->run, "protocol/native_step");
	double workers = mw_past_number(p->run, "protocol/workers");
	double scale = native && !strcmp(native, "round") ? workers : 1;
	for (int i = 0; i < 3 && !isfinite(exact); i++)
		exact = scale * mw_past_number(p->run, estimates[i]);
	return exact;
}

double mw_past_steps_to(const struct mw_past *p, double target)
{
	size_t i;
	json_t *m;
	double before_loss = NAN, before_steps = 0;
	json_array_foreach(p->metrics, i, m)
	{
		double loss = mw_past_number(m, "val_loss"), steps = mw_past_number(m, "steps");
		loss = isfinite(loss) ? loss : mw_past_number(m, "train_loss");
		if (loss <= target && isfinite(before_loss) && before_loss > target) /* between two looks */
			return before_steps +
			       (steps - before_steps) * (before_loss - target) / (before_loss - loss);
		if (loss <= target)
			return steps;
		before_loss = loss;
		before_steps = steps;
	}
	return NAN;
}
