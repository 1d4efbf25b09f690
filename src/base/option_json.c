/* option_json.c: options as a JSON object, out and in, with the line and column of what is wrong; see
 * option.h. */
#include "base/option_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *to_json(const struct mw_option *opt, const void *field)
{
	const char *first;
	size_t length;
	switch (opt->type) {
	case MW_OPT_BOOL: return json_boolean(*(const bool *)field);
	case MW_OPT_INT: return json_integer(*(const int64_t *)field);
	case MW_OPT_FLOAT: return json_real(*(const double *)field);
	case MW_OPT_STRING: return *(char *const *)field ? json_string(*(char *const *)field) : json_null();
	case MW_OPT_CHOICE:
		length = mw_option_choice(opt->choices, *(const int *)field, &first);
		return json_stringn(first, length);
	case MW_OPT_HEADING: break;
	}
	return NULL;
}

json_t *mw_options_json(const struct mw_options *o, const char *const *owners, size_t n)
{
	struct mw_option_walk walk = { 0 };
	json_t *root = json_object();
	while (mw_option_next(o, &walk))
		if (walk.opt->type != MW_OPT_HEADING && mw_option_owned(walk.group, owners, n))
			json_object_set_new(root, walk.opt->name, to_json(walk.opt, walk.field));
	return root;
}

/* A JSON text that is known to be valid, and a place in it. */
struct place {
	const char *path, *text;
	size_t size, at;
};

/* Skip the string whose opening quote is at p->at. */
static void skip_string(struct place *p)
{
	for (p->at++; p->at < p->size && p->text[p->at] != '"'; p->at++)
		if (p->text[p->at] == '\\')
			p->at++;
	p->at++;
}

/* Is the string from `from` to p->at (quotes included) this key, with a colon after it? */
static bool is_key(const struct place *p, size_t from, const char *key)
{
	size_t length = strlen(key), i = p->at;
	while (i < p->size && strchr(" \t\r\n", p->text[i]))
		i++;
	return i < p->size && p->text[i] == ':' && p->at - from == length + 2 &&
	       !memcmp(p->text + from + 1, key, length);
}

/* Move to a member's key in the object that begins at or after p->at; false (p unchanged) if it is not found.
 */
static bool find_key(struct place *p, const char *key)
{
	struct place q = *p;
	for (int depth = 0; q.at < q.size;) {
		char c = q.text[q.at];
		size_t from = q.at;
		if (c == '"')
			skip_string(&q);
		else
			q.at++;
		depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		if (c == '"' && depth == 1 && is_key(&q, from, key)) {
			p->at = from;
			return true;
		}
	}
	return false;
}

/* "FILE:LINE:COLUMN", columns counted in bytes from 1. */
static void describe(const struct place *p, char *text, size_t size)
{
	size_t line = 1, start = 0;
	for (size_t i = 0; i < p->at; i++)
		if (p->text[i] == '\n') {
			line++;
			start = i + 1;
		}
	snprintf(text, size, "%s:%zu:%zu", p->path, line, p->at - start + 1);
}

/* A string that is not set is null in a recorded configuration. */
static bool clear_string(struct mw_options *o, const char *name)
{
	struct mw_option_walk walk = { 0 };
	bool done = false;
	while (mw_option_next(o, &walk))
		if (walk.opt->type == MW_OPT_STRING && !strcmp(walk.opt->name, name)) {
			free(*(char **)walk.field);
			*(char **)walk.field = NULL;
			done = true;
		}
	return done;
}

static int set_one(
	struct mw_options *o, const char *name, const json_t *value, const char *where, struct mw_err *err)
{
	char number[40];
	if (json_is_null(value) && clear_string(o, name))
		return MW_OK;
	switch (json_typeof(value)) {
	case JSON_STRING: return mw_options_set(o, name, json_string_value(value), where, err);
	case JSON_TRUE: return mw_options_set(o, name, "yes", where, err);
	case JSON_FALSE: return mw_options_set(o, name, "no", where, err);
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		return mw_options_set(o, name, number, where, err);
	case JSON_REAL:
		snprintf(number, sizeof(number), "%.17g", json_real_value(value));
		return mw_options_set(o, name, number, where, err);
	default: MW_FAIL(err, USAGE, "%s: option %s can't be null, an array or an object", where, name);
	}
}

static bool is_one_of(const char *const *names, const char *name)
{
	while (names && *names)
		if (!strcmp(*names++, name))
			return true;
	return false;
}

/* Set all members of the root object, or of its member "config", a run's: those that aren't its own alone. */
static int set_members(
	struct mw_options *o, json_t *root, const char *const *own, struct place *p, struct mw_err *err)
{
	json_t *object = root, *config = json_object_get(root, "config"), *value;
	const char *name;
	void *next;
	if (json_is_object(config)) {
		object = config;
		json_object_foreach_safe(config, next, name, value) if (is_one_of(own, name))
			json_object_del(config, name);
		if (find_key(p, "config"))
			p->at += strlen("\"config\"");
	}
	if (!json_is_object(object))
		MW_FAIL(err, USAGE, "%s:1:1: must be an object {\"option\": value, ...}", p->path);
	json_object_foreach(object, name, value)
	{
		char where[300];
		struct place key = *p;
		find_key(&key, name);
		describe(&key, where, sizeof(where));
		MW_TRY(set_one(o, name, value, where, err));
		mw_option_forget_default(o, name);
	}
	return MW_OK;
}

/* The whole file; free() it. */
static int read_file(const char *path, char **text, size_t *size, struct mw_err *err)
{
	FILE *f = fopen(path, "rb"), *to = f ? open_memstream(text, size) : NULL;
	char block[4096];
	size_t n;
	if (!to) {
		int saved = errno;
		if (f)
			fclose(f);
		MW_FAIL(err, DATA, "%s: can't be opened: %s", path, strerror(saved));
	}
	while ((n = fread(block, 1, sizeof(block), f)) > 0)
		fwrite(block, 1, n, to);
	int failed = ferror(f) ? errno : 0;
	fclose(f);
	if (fclose(to) || failed) {
		free(*text);
		*text = NULL;
		MW_FAIL(err, DATA, "%s: can't be read: %s", path, strerror(failed ? failed : ENOMEM));
	}
	return MW_OK;
}

int mw_options_load_json(struct mw_options *o, const char *path, const char *const *own, struct mw_err *err)
{
	struct place p = { .path = path };
	char *text = NULL;
	json_error_t problem;
	MW_TRY(read_file(path, &text, &p.size, err));
	p.text = text;
	json_t *root = json_loadb(text, p.size, JSON_REJECT_DUPLICATES, &problem);
	int ret;
	if (root)
		ret = set_members(o, root, own, &p, err);
	else
		ret = mw_err_set(err, MW_EDATA, "%s:%d:%d: not valid JSON: %s", path, problem.line,
			problem.column, problem.text);
	json_decref(root);
	free(text);
	return ret;
}
