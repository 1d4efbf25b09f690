/* command.c: see command.h and mixwild.h. */
#include "run/command.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "registry.h"

#ifdef PACKAGE_VERSION
_Static_assert(
	__builtin_strcmp(PACKAGE_VERSION, MW_VERSION) == 0, "configure.ac and mixwild.h name one version");
#endif

#define FAMILIES 3

#define MW_COMMAND(n) extern const struct mw_command mw_command_##n;
#include "registry.def"

const struct mw_command *const mw_commands[] = {
#define MW_COMMAND(n) &mw_command_##n,
#include "registry.def"
	NULL,
};

static const struct {
	unsigned use;
	const char *name; /* of the family in owner strings, and of the option that chooses */
} families[FAMILIES] = {
	{ MW_USES_MODEL, "model" },
	{ MW_USES_OPTIM, "optimizer" },
	{ MW_USES_PROTOCOL, "protocol" },
};

/* What interrupt points to unless the caller sets another. Sync: never written. */
static int never;

const char *mw_version(void)
{
	return MW_VERSION;
}

const char *mw_command_name(size_t i)
{
	return i < sizeof(mw_commands) / sizeof(*mw_commands) && mw_commands[i] ? mw_commands[i]->name : NULL;
}

const char *mw_command_summary(size_t i)
{
	return mw_command_name(i) ? mw_commands[i]->summary : NULL;
}

static bool uses(const struct mw_command *command, const char *family)
{
	for (int i = 0; i < FAMILIES; i++)
		if (!strcmp(families[i].name, family))
			return command->uses & families[i].use;
	return false;
}

/* Is a name among the words of a list "a|b|c" (NULL: none)? */
static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = list; p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
		if (!strncmp(p, name, n) && (!p[n] || p[n] == '|'))
			return true;
	return false;
}

static bool has_own(const struct mw_command *c, const char *name)
{
	for (const struct mw_option *o = c->options; o && o->name; o++)
		if (*name && !strcmp(o->name, name))
			return true;
	return false;
}

/* The options of another command that this one takes: a table with the others left out. */
static int inherit(struct mw_job *job, struct mw_err *err)
{
	const struct mw_command *c = job->command;
	size_t n = 0, k = 0;
	while (c->inherits && c->inherits[n].name)
		n++;
	if (!n)
		return MW_OK;
	job->inherited = calloc(n + 1, sizeof(*job->inherited));
	if (!job->inherited)
		MW_FAIL(err, RESOURCE, "out of memory for the options of %s", c->name);
	for (size_t i = 0; i < n; i++)
		if (!has_own(c, c->inherits[i].name) && !in_list(c->inherits_not, c->inherits[i].name))
			job->inherited[k++] = c->inherits[i];
	return MW_OK;
}

/* Fill job->set with the command's own table and one group for each plug-in that it may choose. */
static int bind_options(struct mw_job *job, struct mw_err *err)
{
	size_t n_plugins, n = 0;
	const struct mw_plugin *plugin = mw_plugins(&n_plugins);
	struct mw_option_group *group = calloc(n_plugins + 2, sizeof(*group));
	job->options = calloc(1, job->command->option_size + 1);
	job->plugin_options = calloc(n_plugins, sizeof(*job->plugin_options));
	if (!group || !job->options || !job->plugin_options)
		goto memory;
	int taken = inherit(job, err);
	if (taken < 0) {
		free(group);
		return taken;
	}
	group[n++] = (struct mw_option_group){ "Options", NULL, job->command->options, job->options };
	if (job->inherited)
		group[n++] = (struct mw_option_group){ "Options of a run", NULL, job->inherited,
			(char *)job->options + job->command->inherits_at };
	for (size_t i = 0; i < n_plugins; i++) {
		if (!plugin[i].options || !uses(job->command, plugin[i].family))
			continue;
		job->plugin_options[i] = calloc(1, plugin[i].option_size + 1);
		if (!job->plugin_options[i])
			goto memory;
		group[n++] = (struct mw_option_group){ plugin[i].title, plugin[i].owner, plugin[i].options,
			job->plugin_options[i] };
	}
	int ret = mw_options_init(&job->set, group, n, err);
	free(group);
	return ret;
memory:
	free(group);
	MW_FAIL(err, RESOURCE, "out of memory for the options of %s", job->command->name);
}

int mw_job_new(const char *command, struct mw_job **out, struct mw_err *err)
{
	const struct mw_command *const *c = mw_commands;
	*out = NULL;
	while (*c && strcmp((*c)->name, command))
		c++;
	if (!*c)
		return mw_plugin_unknown("command", command, err);
	struct mw_job *job = calloc(1, sizeof(*job));
	if (!job)
		MW_FAIL(err, RESOURCE, "out of memory for a job");
	job->command = *c;
	job->interrupt = &never;
	mw_job_set_out(job, stdout);
	mw_job_set_msg(job, stderr);
	int ret = bind_options(job, err);
	if (ret < 0)
		mw_job_free(job);
	else
		*out = job;
	return ret;
}

void mw_job_free(struct mw_job *job)
{
	size_t n;
	if (!job)
		return;
	mw_plugins(&n);
	mw_options_fini(&job->set);
	for (size_t i = 0; job->plugin_options && i < n; i++)
		free(job->plugin_options[i]);
	free(job->plugin_options);
	free(job->options);
	free(job->inherited);
	free(job->command_line);
	free(job);
}

void mw_job_set_out(struct mw_job *job, FILE *f)
{
	assert(f);
	job->out = f;
}

void mw_job_set_msg(struct mw_job *job, FILE *f)
{
	int fd = f ? fileno(f) : -1;
	job->msg = f;
	job->live = fd >= 0 && isatty(fd);
}

void mw_job_set_interrupt(struct mw_job *job, int *interrupt)
{
	job->interrupt = interrupt ? interrupt : &never;
}

bool mw_job_interruptible(const struct mw_job *job)
{
	return !(job->command->uses & MW_NO_INTERRUPT);
}

void *mw_job_plugin_options(const struct mw_job *job, const char *family, const char *name)
{
	size_t n;
	const struct mw_plugin *p = mw_plugin_find(family, name);
	return p ? job->plugin_options[p - mw_plugins(&n)] : NULL;
}

static const char *string_in(const struct mw_option *table, const void *target, const char *name)
{
	for (const struct mw_option *o = table; o && o->name; o++)
		if (o->type == MW_OPT_STRING && !strcmp(o->name, name))
			return *(char *const *)(const void *)((const char *)target + o->offset);
	return NULL;
}

/* The value of a STRING option of the command's own or inherited table; NULL if there is none. */
static const char *own_string(const struct mw_job *job, const char *name)
{
	const char *value = string_in(job->command->options, job->options, name);
	return value ? value
		     : string_in(
			       job->inherited, (const char *)job->options + job->command->inherits_at, name);
}

/* Append the owner strings of a family's plug-ins (auto), or of the one that is chosen; an error for unknown
 * names. */
static int add_chosen(
	const struct mw_job *job, const char *family, const char **owner, size_t *n, struct mw_err *err)
{
	size_t n_plugins;
	const struct mw_plugin *plugin = mw_plugins(&n_plugins), *one;
	const char *name = uses(job->command, family) ? own_string(job, family) : NULL;
	if (!name)
		return MW_OK;
	if (strcmp(name, "auto")) {
		one = mw_plugin_find(family, name);
		if (!one)
			return mw_plugin_unknown(family, name, err);
		owner[(*n)++] = one->owner;
		return MW_OK;
	}
	for (size_t i = 0; i < n_plugins; i++)
		if (!strcmp(plugin[i].family, family))
			owner[(*n)++] = plugin[i].owner;
	return MW_OK;
}

/* Owner strings of all chosen plug-ins; free() the array. */
static int chosen(const struct mw_job *job, const char ***owner, size_t *n, struct mw_err *err)
{
	size_t n_plugins;
	mw_plugins(&n_plugins);
	*n = 0;
	*owner = calloc(n_plugins + 1, sizeof(**owner));
	if (!*owner)
		MW_FAIL(err, RESOURCE, "out of memory for the options");
	for (int i = 0; i < FAMILIES; i++) {
		int ret = add_chosen(job, families[i].name, *owner, n, err);
		if (ret < 0) {
			free(*owner);
			*owner = NULL;
			return ret;
		}
	}
	return MW_OK;
}

int mw_job_check(const struct mw_job *job, struct mw_err *err)
{
	const char **owner;
	size_t n;
	MW_TRY(chosen(job, &owner, &n, err));
	int ret = mw_options_check(&job->set, owner, n, err);
	free(owner);
	return ret;
}

int mw_job_choose(struct mw_job *job, const char *family, const char *name, struct mw_err *err)
{
	MW_TRY(mw_options_set(&job->set, family, name, NULL, err));
	return mw_job_check(job, err);
}

json_t *mw_job_config(const struct mw_job *job)
{
	const char **owner;
	size_t n;
	if (chosen(job, &owner, &n, NULL) < 0)
		return NULL;
	json_t *config = mw_options_json(&job->set, owner, n);
	free(owner);
	return config;
}

static int check_positionals(const struct mw_job *job, struct mw_err *err)
{
	const struct mw_command *c = job->command;
	if (job->n_positional < c->min_positionals)
		MW_FAIL(err, USAGE, "%s missing: mixwild %s [OPTION]... %s",
			job->n_positional ? "an argument is" : "arguments are", c->name, c->positionals);
	return MW_OK;
}

void mw_shell_quote(FILE *f, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+./:,@%";
	if (*word && word[strspn(word, plain)] == 0) {
		fputs(word, f);
		return;
	}
	fputc('\'', f);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	fputc('\'', f);
}

static int record_command_line(struct mw_job *job, int argc, char **argv, int first, struct mw_err *err)
{
	size_t size;
	FILE *f = open_memstream(&job->command_line, &size);
	if (!f)
		MW_FAIL(err, RESOURCE, "out of memory for the command line");
	fprintf(f, "mixwild %s", job->command->name);
	for (int i = first; i < argc; i++) {
		fputc(' ', f);
		mw_shell_quote(f, argv[i]);
	}
	if (fclose(f))
		MW_FAIL(err, RESOURCE, "out of memory for the command line");
	return MW_OK;
}

static int parse_words(struct mw_job *job, int argc, char **argv, int first, bool *help, struct mw_err *err)
{
	int n = mw_options_parse(
		&job->set, argc, argv, first, job->positional, job->command->max_positionals, help, err);
	MW_TRY(n);
	job->n_positional = n;
	return MW_OK;
}

/* Options that say where one run left its files: whoever repeats it must not write into them. */
static const char *const of_one_run[] = { "out", "trace", "force", "resume", "config", NULL };

/*
 * The file's options come before those of the command line. What the file says has to make sense with its own
 * choice of plug-ins; the command line may then choose others.
 */
static int load_config(struct mw_job *job, const char *path, struct mw_err *err)
{
	char *copy = strdup(path); /* loading may replace the option that holds it */
	if (!copy)
		MW_FAIL(err, RESOURCE, "out of memory for the options");
	mw_options_settle(&job->set);
	int ret = mw_options_load_json(&job->set, copy, of_one_run, err);
	free(copy);
	MW_TRY(ret);
	MW_TRY(mw_job_check(job, err));
	mw_options_settle(&job->set);
	return MW_OK;
}

int mw_job_parse(struct mw_job *job, int argc, char **argv, int first, bool *help, struct mw_err *err)
{
	assert(job->command->max_positionals <= MW_POSITIONALS_MAX && !job->command_line);
	MW_TRY(record_command_line(job, argc, argv, first, err));
	MW_TRY(parse_words(job, argc, argv, first, help, err));
	if (*help)
		return MW_OK;
	const char *config = own_string(job, "config");
	if (config) {
		MW_TRY(load_config(job, config, err));
		MW_TRY(parse_words(job, argc, argv, first, help, err));
	}
	MW_TRY(mw_job_check(job, err));
	return check_positionals(job, err);
}

int mw_job_set(struct mw_job *job, const char *name, const char *value, struct mw_err *err)
{
	return mw_options_set(&job->set, name, value, NULL, err);
}

int mw_job_load(struct mw_job *job, const char *path, struct mw_err *err)
{
	return mw_options_load_json(&job->set, path, of_one_run, err);
}

int mw_job_run(struct mw_job *job, struct mw_err *err)
{
	MW_TRY(mw_job_check(job, err));
	MW_TRY(check_positionals(job, err));
	MW_TRY(job->command->run(job, err));
	errno = 0;
	if (fflush(job->out) || ferror(job->out))
		MW_FAIL(err, RESOURCE, "results can't be written: %s",
			errno ? strerror(errno) : "an earlier write failed");
	return MW_OK;
}
