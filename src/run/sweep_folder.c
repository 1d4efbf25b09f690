/* sweep_folder.c: what a run's folder says about it: done, to be resumed, or another run's; see sweep.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/sweep.h"

json_t *mw_sweep_read(const struct mw_sweep *s, const struct mw_sweep_run *r)
{
	char *folder = mw_sweep_folder(s, r), *path = mw_strprintf("%s/run.json", folder ? folder : "");
	json_t *j = path ? json_load_file(path, 0, NULL) : NULL;
	free(path);
	free(folder);
	return j;
}

/* Members that say nothing about what is computed. */
static bool ignored(const char *name)
{
	static const char *const names[] = { "out", "force", "resume", "config" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Equal, where "auto" stands for what the run has chosen. */
static bool same(const json_t *wanted, const json_t *recorded)
{
	if (json_is_number(wanted) && json_is_number(recorded)) {
		double a = json_number_value(wanted), b = json_number_value(recorded);
		double size = a < 0 ? -a : a, gap = a < b ? b - a : a - b;
		return gap <= 1e-9 * size; /* recorded with ten digits */
	}
	return json_equal(wanted, recorded) ||
	       (json_is_string(wanted) && !strcmp(json_string_value(wanted), "auto"));
}

static bool is_text(const json_t *config, const char *name, const char *text)
{
	const char *s = json_string_value(json_object_get(config, name));
	return s && !strcmp(s, text);
}

/* USAGE if the folder's run had other options than this one. */
static int compare(
	const struct mw_sweep *s, const struct mw_sweep_run *r, json_t *recorded, struct mw_err *err)
{
	struct mw_job *job = NULL;
	const char *name;
	json_t *value, *wanted = NULL;
	int ret = mw_sweep_job(s, r, &job, err);
	if (ret == 0)
		wanted = mw_job_config(job);
	/* --protocol auto chooses a period with the protocol. */
	bool chosen = is_text(wanted, "protocol", "auto") &&
		      json_integer_value(json_object_get(wanted, "mix-every")) == 0;
	json_object_foreach(wanted, name, value)
	{
		json_t *there = json_object_get(recorded, name);
		if (ret < 0 || !there || ignored(name) || same(value, there) ||
			(chosen && !strcmp(name, "mix-every")))
			continue;
		char *a = json_dumps(there, JSON_ENCODE_ANY), *b = json_dumps(value, JSON_ENCODE_ANY);
		ret = mw_err_set(err, MW_EUSAGE,
			"%s/%s holds a run with other options (%s was %s, now it is %s): choose another "
			"--out, "
			"or --force to replace such runs",
			s->out, r->name, name, a ? a : "?", b ? b : "?");
		free(a);
		free(b);
	}
	json_decref(wanted);
	mw_job_free(job);
	return ret;
}

static bool has_checkpoint(const struct mw_sweep *s, const struct mw_sweep_run *r)
{
	char *folder = mw_sweep_folder(s, r), *path = mw_strprintf("%s/checkpoint.safetensors", folder);
	bool there = path && access(path, R_OK) == 0;
	free(path);
	free(folder);
	return there;
}

int mw_sweep_look(const struct mw_sweep *s, struct mw_sweep_run *r, struct mw_err *err)
{
	json_t *j = mw_sweep_read(s, r), *summary = json_object_get(j, "summary");
	const char *stopped = json_string_value(json_object_get(summary, "stopped_by"));
	r->state = MW_SWEEP_WAITING;
	r->resumes = false;
	int ret = j ? compare(s, r, json_object_get(j, "config"), err) : MW_OK;
	if (ret < 0 && s->force) {
		*err = (struct mw_err){ 0 };
		ret = MW_OK;
	} else if (ret == 0 && stopped && !strcmp(stopped, "diverged")) {
		r->state = MW_SWEEP_DIVERGED;
	} else if (ret == 0 && stopped && strcmp(stopped, "signal")) {
		r->state = MW_SWEEP_DONE;
	} else if (ret == 0 && j) {
		r->resumes = has_checkpoint(s, r);
	}
	json_decref(j);
	return ret;
}
