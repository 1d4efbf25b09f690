/*
 * sweep_file.c: a job file as a list of runs; see sweep.h. Like fio's: what [global] sets holds for every other section,
 * which may set it anew; each of these is a job, and a key with several values makes a run for each.
 */
#include "run/sweep.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/train_options.h"

/* More is a slip of the pen: grid lists multiply. */
#define RUNS_MAX 100000

/* The values that one key has in a section. */
struct axis {
	const char *key;
	struct mw_sweep_setting *value;
	size_t n;
	bool own; /* from the section itself, not from [global] */
};

struct axes {
	struct axis *axis;
	size_t n;
};

static int no_memory(struct mw_err *err)
{
	MW_FAIL(err, RESOURCE, "out of memory for the sweep");
}

static void free_setting(struct mw_sweep_setting *x)
{
	free(x->key);
	free(x->value);
	free(x->where);
}

static void free_settings(struct mw_sweep_setting *x, size_t n)
{
	for (size_t i = 0; x && i < n; i++)
		free_setting(&x[i]);
	free(x);
}

static int copy_setting(struct mw_sweep_setting *to, const struct mw_sweep_setting *from, struct mw_err *err)
{
	*to = (struct mw_sweep_setting){ mw_strdup(from->key), mw_strdup(from->value), mw_strdup(from->where),
		from->varies };
	return to->key && to->value && to->where ? MW_OK : no_memory(err);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static int append(struct axis *a, const char *value, const char *where, struct mw_err *err)
{
	for (size_t i = 0; i < a->n; i++)
		if (!strcmp(a->value[i].value, value))
			MW_FAIL(err, USAGE, "%s: %s has the value %s twice (see %s)", where, a->key, value,
				a->value[i].where);
	struct mw_sweep_setting *grown = realloc(a->value, (a->n + 1) * sizeof(*grown)), setting = {
		.key = (char *)a->key, .value = (char *)value, .where = (char *)where
	};
	if (!grown)
		return no_memory(err);
	a->value = grown;
	return copy_setting(&a->value[a->n++], &setting, err);
}

/* Whole numbers LOW..HIGH. True if the word is one. */
static bool is_range(const char *word, long *low, long *high)
{
	char *end, *last;
	if (!isdigit((unsigned char)*word))
		return false;
	*low = strtol(word, &end, 10);
	if (strncmp(end, "..", 2) || !isdigit((unsigned char)end[2]))
		return false;
	*high = strtol(end + 2, &last, 10);
	return !*last;
}

static int append_range(struct axis *a, long low, long high, const char *where, struct mw_err *err)
{
	char text[32];
	if (high < low || high - low >= RUNS_MAX)
		MW_FAIL(err, USAGE, "%s: %s = %ld..%ld: from a smaller number to a larger one, not so many",
			where, a->key, low, high);
	for (long i = low; i <= high; i++) {
		snprintf(text, sizeof(text), "%ld", i);
		MW_TRY(append(a, text, where, err));
	}
	return MW_OK;
}

/* geom:FIRST,LAST,N: N values in equal ratios; whole numbers if both ends are written so. */
static int append_geometric(struct axis *a, const char *word, const char *where, struct mw_err *err)
{
	double first, last;
	int n, used = 0;
	char text[32], before[32] = "";
	if (sscanf(word, "geom:%lf,%lf,%d%n", &first, &last, &n, &used) < 3 || word[used] || !(first > 0) ||
		!(last > 0) || !isfinite(first) || !isfinite(last) || n < 2 || n > 10000)
		MW_FAIL(err, USAGE,
			"%s: %s = %s: write geom:FIRST,LAST,N with two numbers above 0 and N of 2 or more",
			where, a->key, word);
	bool whole = !strpbrk(word + 5, ".eE-");
	for (int i = 0; i < n; i++) {
		double x = first * pow(last / first, (double)i / (n - 1));
		snprintf(text, sizeof(text), whole ? "%.0f" : "%.5g", x);
		if (strcmp(text, before))
			MW_TRY(append(a, text, where, err));
		memcpy(before, text, sizeof(text));
	}
	return MW_OK;
}

static int append_words(struct axis *a, const struct mw_ini_entry *e, const char *where, struct mw_err *err)
{
	char **words;
	long low, high;
	int ret = 0;
	MW_TRY(mw_ini_words(e->value, where, &words, err));
	if (!words[0])
		ret = mw_err_set(err, MW_EUSAGE, "%s: %s has no value", where, e->key);
	for (size_t i = 0; ret == 0 && words[i]; i++)
		if (is_range(words[i], &low, &high))
			ret = append_range(a, low, high, where, err);
		else if (!strncmp(words[i], "geom:", 5))
			ret = append_geometric(a, words[i], where, err);
		else
			ret = append(a, words[i], where, err);
	mw_ini_words_free(words);
	return ret;
}

/* --- keys of a job ------------------------------------------------------------------------------------------------ */

static void free_axes(struct axes *x)
{
	for (size_t i = 0; i < x->n; i++)
		free_settings(x->axis[i].value, x->axis[i].n);
	free(x->axis);
	*x = (struct axes){ 0 };
}

static struct axis *find_axis(const struct axes *x, const char *key)
{
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->axis[i].key, key))
			return &x->axis[i];
	return NULL;
}

static int refuse_key(const char *key, const char *where, struct mw_err *err)
{
	static const char *const own[] = { "force", "resume", "config" };
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(key, own[i]))
			MW_FAIL(err, USAGE,
				"%s: %s is not for job files: a sweep resumes by itself, and has --force",
				where, key);
	if (!strcmp(key, "out"))
		MW_FAIL(err, USAGE, "%s: out stands in [global], once: each run gets a folder in it", where);
	return MW_OK;
}

/* Add the entries of a section; a key that it repeats adds values, a key of [global] is set anew. */
static int add_section(struct axes *x, const struct mw_ini *ini, const struct mw_ini_section *section,
	bool global, struct mw_err *err)
{
	for (size_t i = 0; i < section->n; i++) {
		const struct mw_ini_entry *e = &section->entry[i];
		char *where = mw_strprintf("%s:%d", ini->path, e->line);
		int ret = where ? 0 : no_memory(err);
		bool skip = global && !strcmp(e->key, "out");
		if (ret == 0 && !skip)
			ret = refuse_key(e->key, where, err);
		struct axis *a = find_axis(x, e->key);
		if (ret == 0 && !skip && !a) {
			struct axis *grown = realloc(x->axis, (x->n + 1) * sizeof(*grown));
			ret = grown ? 0 : no_memory(err);
			if (grown) {
				x->axis = grown;
				a = &grown[x->n++];
				*a = (struct axis){ .key = e->key, .own = !global };
			}
		}
		if (ret == 0 && a && !global && !a->own) {
			free_settings(a->value, a->n);
			*a = (struct axis){ .key = e->key, .own = true };
		}
		if (ret == 0 && a)
			ret = append_words(a, e, where, err);
		free(where);
		MW_TRY(ret);
	}
	return MW_OK;
}

static bool is_grid(const struct axis *a)
{
	return a && a->n == 1 && !strncmp(a->value[0].value, "grid:", 5);
}

/* One run, or one search: the settings of all keys but rate (of a search) and seed (likewise). */
static int add_point(struct mw_sweep *s, const char *job, const struct axes *x, const size_t *at,
	const struct axis *grid, struct mw_err *err)
{
	static char one[] = "1", seed_key[] = "seed";
	const struct axis *seeds = find_axis(x, "seed");
	struct mw_sweep_setting default_seed = { .key = seed_key, .value = one, .where = (char *)s->path };
	struct mw_sweep_setting *list = calloc(x->n + 1, sizeof(*list));
	size_t n = 0;
	if (!list)
		return no_memory(err);
	for (size_t i = 0; i < x->n; i++) {
		const struct axis *a = &x->axis[i];
		if (grid && (a == grid || a == seeds))
			continue;
		list[n] = a->value[at[i]];
		list[n++].varies = a->n > 1;
	}
	int ret = grid ? mw_sweep_search_new(s, job, list, n, &grid->value[0],
				 seeds ? seeds->value : &default_seed, seeds ? seeds->n : 1, err)
		       : mw_sweep_add(s, job, list, n, NULL, NULL, NULL, err);
	free(list);
	return ret;
}

/* Keys that tell runs apart best stand first in the names; seeds are innermost. */
static void seed_last(struct axes *x)
{
	for (size_t i = 0; i + 1 < x->n; i++)
		if (!strcmp(x->axis[i].key, "seed")) {
			struct axis seed = x->axis[i];
			memmove(&x->axis[i], &x->axis[i + 1], (x->n - i - 1) * sizeof(seed));
			x->axis[x->n - 1] = seed;
			return;
		}
}

/* The product of all lists; the last key changes fastest. */
static int add_product(struct mw_sweep *s, const char *job, struct axes *x, struct mw_err *err)
{
	seed_last(x);
	const struct axis *grid = find_axis(x, "rate"), *seeds = find_axis(x, "seed");
	size_t *at = calloc(x->n + 1, sizeof(*at)), i = 0;
	if (!at)
		return no_memory(err);
	grid = is_grid(grid) ? grid : NULL;
	int ret = 0;
	for (bool more = true; more && ret == 0;) {
		ret = s->n < RUNS_MAX ? add_point(s, job, x, at, grid, err)
				      : mw_err_set(err, MW_EUSAGE, "%s: [%s] makes more than %d runs",
						s->path, job, RUNS_MAX);
		more = false;
		for (i = x->n; i-- > 0 && !more;) {
			size_t n = grid && &x->axis[i] == seeds ? 1 : x->axis[i].n;
			more = ++at[i] < n;
			if (!more)
				at[i] = 0;
		}
	}
	free(at);
	return ret;
}

/* --- one run ------------------------------------------------------------------------------------------------------- */

/* Characters of values that a folder's name can't have, or that are a nuisance there. */
static void append_name(FILE *f, const char *value)
{
	for (size_t i = 0; value[i] && i < 80; i++)
		fputc(isalnum((unsigned char)value[i]) || strchr("._+-:=", value[i]) ? value[i] : '_', f);
}

static char *name_of(const struct mw_sweep *s, const struct mw_sweep_run *r)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	append_name(f, r->job);
	char before = '/';
	for (size_t i = 0; i < r->n_settings; i++)
		if (r->setting[i].varies) {
			fputc(before, f);
			fprintf(f, "%s=", r->setting[i].key);
			append_name(f, r->setting[i].value);
			before = ',';
		}
	fclose(f);
	for (size_t i = 0, same = 2; text && i < s->n; i++)
		if (!strcmp(s->run[i]->name, text)) { /* values that differ only in what was replaced */
			char *other = mw_strprintf("%s~%zu", text, same++);
			free(text);
			text = other;
			i = (size_t)-1;
		}
	return text;
}

static void free_run(struct mw_sweep_run *r)
{
	if (!r)
		return;
	free_settings(r->setting, r->n_settings);
	free(r->name);
	free(r->job);
	free(r);
}

char *mw_sweep_folder(const struct mw_sweep *s, const struct mw_sweep_run *r)
{
	return mw_strprintf("%s/%s", s->out, r->name);
}

const char *mw_sweep_value(const struct mw_sweep_run *r, const char *key)
{
	for (size_t i = 0; i < r->n_settings; i++)
		if (!strcmp(r->setting[i].key, key))
			return r->setting[i].value;
	return NULL;
}

/* {out} in a value stands for the run's folder. */
static char *expand(const char *value, const char *folder)
{
	const char *hole = strstr(value, "{out}");
	return hole ? mw_strprintf("%.*s%s%s", (int)(hole - value), value, folder, hole + 5)
		    : mw_strdup(value);
}

static int set_all(struct mw_job *job, const struct mw_sweep_run *r, const char *folder, struct mw_err *err)
{
	for (size_t i = 0; i < r->n_settings; i++) {
		const struct mw_sweep_setting *x = &r->setting[i];
		char *value = expand(x->value, folder);
		int ret = value ? mw_options_set(&job->set, x->key, value, x->where, err) : no_memory(err);
		free(value);
		MW_TRY(ret);
	}
	return mw_options_set(&job->set, "out", folder, NULL, err);
}

int mw_sweep_job(
	const struct mw_sweep *s, const struct mw_sweep_run *r, struct mw_job **out, struct mw_err *err)
{
	struct mw_err problem = { 0 };
	char *folder = mw_sweep_folder(s, r);
	int ret = folder ? mw_job_new("train", out, err) : no_memory(err);
	if (ret == 0)
		ret = set_all(*out, r, folder, err);
	if (ret == 0 && mw_job_check(*out, &problem) < 0)
		ret = mw_err_set(err, problem.code, "%s: [%s]: %s", s->path, r->job, problem.msg);
	free(folder);
	return ret;
}

static int check_run(struct mw_sweep *s, struct mw_sweep_run *r, struct mw_err *err)
{
	struct mw_job *job = NULL;
	int ret = mw_sweep_job(s, r, &job, err);
	if (ret == 0) {
		const struct mw_train_options *o = job->options;
		r->exclusive = o->engine == MW_ENGINE_THREADS;
		r->cores = r->exclusive ? 1 : (uint32_t)o->threads;
		if (!o->data)
			ret = mw_err_set(err, MW_EUSAGE, "%s: [%s] has no data", s->path, r->job);
		if (r->search && o->val <= 0 && ret == 0)
			ret = mw_err_set(err, MW_EUSAGE,
				"%s: rates are searched on the validation split: add val = 0.1, say",
				r->search->where);
	}
	mw_job_free(job);
	return ret;
}

int mw_sweep_add(struct mw_sweep *s, const char *job, const struct mw_sweep_setting *setting, size_t n,
	const struct mw_sweep_setting *rate, const struct mw_sweep_setting *seed, struct mw_sweep_run **out,
	struct mw_err *err)
{
	struct mw_sweep_run *r = calloc(1, sizeof(*r)),
			    **grown = realloc(s->run, (s->n + 1) * sizeof(*grown));
	if (grown)
		s->run = grown;
	if (!r || !grown) {
		free(r);
		return no_memory(err);
	}
	*r = (struct mw_sweep_run){ .job = mw_strdup(job),
		.setting = calloc(n + 2, sizeof(*setting)),
		.search = rate ? s->search[s->n_searches - 1] : NULL,
		.error_fd = -1 };
	int ret = r->job && r->setting ? 0 : no_memory(err);
	for (size_t i = 0; i < n && ret == 0; i++)
		ret = copy_setting(&r->setting[r->n_settings++], &setting[i], err);
	if (ret == 0 && rate)
		ret = copy_setting(&r->setting[r->n_settings++], rate, err);
	if (ret == 0 && seed)
		ret = copy_setting(&r->setting[r->n_settings++], seed, err);
	if (ret == 0) {
		r->name = name_of(s, r);
		ret = r->name ? 0 : no_memory(err);
	}
	if (ret < 0) {
		free_run(r);
		return ret;
	}
	s->run[s->n++] = r;
	if (out)
		*out = r;
	return check_run(s, r, err);
}

/* --- the file ------------------------------------------------------------------------------------------------------ */

/* --out, else out of [global], else runs/NAME of NAME.ini. */
static char *folder_of(const struct mw_ini *ini, const char *out)
{
	for (size_t i = 0; !out && i < ini->n; i++)
		for (size_t k = 0; !strcmp(ini->section[i].name, "global") && k < ini->section[i].n; k++)
			if (!strcmp(ini->section[i].entry[k].key, "out"))
				out = ini->section[i].entry[k].value;
	if (out)
		return mw_strdup(out);
	const char *slash = strrchr(ini->path, '/'), *name = slash ? slash + 1 : ini->path;
	const char *dot = strrchr(name, '.');
	return mw_strprintf(
		"runs/%.*s", (int)(dot && dot > name ? dot - name : (ptrdiff_t)strlen(name)), name);
}

static int add_job(struct mw_sweep *s, const struct mw_ini *ini, const struct mw_ini_section *section,
	struct mw_err *err)
{
	struct axes x = { 0 };
	int ret = 0;
	for (size_t i = 0; ret == 0 && i < ini->n; i++)
		if (!strcmp(ini->section[i].name, "global"))
			ret = add_section(&x, ini, &ini->section[i], true, err);
	if (ret == 0)
		ret = add_section(&x, ini, section, false, err);
	if (ret == 0)
		ret = add_product(s, section->name, &x, err);
	free_axes(&x);
	return ret;
}

int mw_sweep_load(struct mw_sweep *s, const char *path, const char *out, struct mw_err *err)
{
	struct mw_ini ini;
	s->path = path;
	s->lock = -1;
	int ret = mw_ini_load(path, &ini, err);
	if (ret == 0) {
		s->out = folder_of(&ini, out);
		ret = s->out ? 0 : no_memory(err);
	}
	for (size_t i = 0; ret == 0 && i < ini.n; i++)
		if (strcmp(ini.section[i].name, "global"))
			ret = add_job(s, &ini, &ini.section[i], err);
	if (ret == 0 && !s->n)
		ret = mw_err_set(err, MW_EUSAGE,
			"%s: there is no job: [global] is what all have in common, every other section is a "
			"job",
			path);
	mw_ini_free(&ini);
	return ret;
}

void mw_sweep_fini(struct mw_sweep *s)
{
	for (size_t i = 0; i < s->n; i++)
		free_run(s->run[i]);
	for (size_t i = 0; i < s->n_searches; i++)
		mw_sweep_search_free(s->search[i]);
	free(s->run);
	free(s->search);
	free(s->out);
	if (s->lock >= 0)
		close(s->lock);
	*s = (struct mw_sweep){ .lock = -1 };
}
