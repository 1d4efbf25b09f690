/* option.c: setting, parsing and checking options; see option.h. */
#include "base/option_impl.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LABEL_BYTES 400

bool mw_option_next(const struct mw_options *o, struct mw_option_walk *walk)
{
	for (; walk->next_group < o->n_groups; walk->next_group++, walk->next_entry = 0) {
		walk->group = &o->groups[walk->next_group];
		walk->opt = walk->group->table ? &walk->group->table[walk->next_entry] : NULL;
		if (!walk->opt || !walk->opt->name)
			continue;
		walk->field = (char *)walk->group->target + walk->opt->offset;
		walk->was_set = o->was_set ? &o->was_set[walk->next_flat] : NULL;
		walk->next_entry++;
		walk->next_flat++;
		return true;
	}
	return false;
}

/* The next option of this name. */
static bool next_named(const struct mw_options *o, const char *name, struct mw_option_walk *walk)
{
	while (mw_option_next(o, walk))
		if (walk->opt->type != MW_OPT_HEADING && !strcmp(walk->opt->name, name))
			return true;
	return false;
}

static const struct mw_option *find(const struct mw_options *o, const char *name)
{
	struct mw_option_walk walk = { 0 };
	return next_named(o, name, &walk) ? walk.opt : NULL;
}

bool mw_option_owned(const struct mw_option_group *group, const char *const *owners, size_t n)
{
	if (!group->owner)
		return true;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(group->owner, owners[i]))
			return true;
	return false;
}

void mw_option_range(const struct mw_option *opt, bool brief, char *text, size_t size)
{
	double limit = brief ? 1e9 : opt->type == MW_OPT_INT ? 9e18 : DBL_MAX / 2;
	bool low = opt->min > -limit, high = opt->max < limit;
	text[0] = 0;
	if ((opt->type != MW_OPT_INT && opt->type != MW_OPT_FLOAT) || opt->min >= opt->max)
		return;
	bool above = opt->min > 0 && opt->min <= DBL_MIN;
	if (above && high)
		snprintf(text, size, "above 0, at most %.15g", opt->max);
	else if (above)
		snprintf(text, size, "above 0");
	else if (low && high)
		snprintf(text, size, "%.15g..%.15g", opt->min, opt->max);
	else if (low)
		snprintf(text, size, "at least %.15g", opt->min);
	else if (high)
		snprintf(text, size, "at most %.15g", opt->max);
}

size_t mw_option_choice(const char *choices, int i, const char **first)
{
	for (; i > 0; i--) {
		choices = strchr(choices, '|');
		if (!choices)
			return 0;
		choices++;
	}
	*first = choices;
	return strcspn(choices, "|");
}

static int check_range(
	const struct mw_option *opt, double value, const char *text, const char *label, struct mw_err *err)
{
	char range[100];
	if (opt->min >= opt->max || (value >= opt->min && value <= opt->max))
		return MW_OK;
	mw_option_range(opt, false, range, sizeof(range));
	MW_FAIL(err, USAGE, "%s: %s is out of range (%s)", label, text, range);
}

static int set_int(
	const struct mw_option *opt, int64_t *field, const char *text, const char *label, struct mw_err *err)
{
	int64_t value;
	MW_TRY(mw_parse_int(text, label, &value, err));
	MW_TRY(check_range(opt, (double)value, text, label, err));
	*field = value;
	return MW_OK;
}

static int set_float(
	const struct mw_option *opt, double *field, const char *text, const char *label, struct mw_err *err)
{
	double value;
	MW_TRY(mw_parse_float(text, label, &value, err));
	MW_TRY(check_range(opt, value, text, label, err));
	*field = value;
	return MW_OK;
}

static int set_bool(bool *field, const char *text, const char *label, struct mw_err *err)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true", "0", "1" };
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(text, words[i])) {
			*field = i % 2;
			return MW_OK;
		}
	MW_FAIL(err, USAGE, "%s: '%s' is neither yes nor no", label, text);
}

static int set_string(char **field, const char *text, struct mw_err *err)
{
	char *copy = mw_strdup(text);
	if (!copy)
		MW_FAIL(err, RESOURCE, "out of memory for the options");
	free(*field);
	*field = copy;
	return MW_OK;
}

static int set_choice(
	const struct mw_option *opt, int *field, const char *text, const char *label, struct mw_err *err)
{
	enum { MOST = 64, LENGTH = 64 };
	char words[MOST][LENGTH];
	const char *names[MOST], *first;
	int n = 0;
	for (size_t l; n < MOST && (l = mw_option_choice(opt->choices, n, &first)); n++) {
		snprintf(words[n], LENGTH, "%.*s", (int)l, first);
		names[n] = words[n];
		if (!strcmp(text, words[n])) {
			*field = n;
			return MW_OK;
		}
	}
	const char *nearest = mw_nearest(text, names, (size_t)n);
	MW_FAIL(err, USAGE, "%s: there is no '%s' (choose from %s)%s%s%s", label, text, opt->choices,
		nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int set_field(
	const struct mw_option *opt, void *field, const char *text, const char *label, struct mw_err *err)
{
	switch (opt->type) {
	case MW_OPT_BOOL: return set_bool(field, text, label, err);
	case MW_OPT_INT: return set_int(opt, field, text, label, err);
	case MW_OPT_FLOAT: return set_float(opt, field, text, label, err);
	case MW_OPT_STRING: return set_string(field, text, err);
	case MW_OPT_CHOICE: return set_choice(opt, field, text, label, err);
	case MW_OPT_HEADING: break;
	}
	return MW_OK;
}

static void assert_names(const struct mw_options *o)
{
	struct mw_option_walk a = { 0 };
	while (mw_option_next(o, &a)) {
		struct mw_option_walk b = a;
		while (a.opt->type != MW_OPT_HEADING && next_named(o, a.opt->name, &b)) {
			assert(a.group->owner && b.group->owner && a.group != b.group &&
				"names of options are unique");
			assert(a.opt->type == b.opt->type && "options of one name have one type");
		}
	}
}

static int set_defaults(struct mw_options *o, struct mw_err *err)
{
	struct mw_option_walk walk = { 0 };
	while (mw_option_next(o, &walk)) {
		char label[LABEL_BYTES];
		if (walk.opt->type == MW_OPT_HEADING || !walk.opt->def)
			continue;
		snprintf(label, sizeof(label), "default of --%s", walk.opt->name);
		MW_TRY(set_field(walk.opt, walk.field, walk.opt->def, label, err));
	}
	return MW_OK;
}

int mw_options_init(
	struct mw_options *o, const struct mw_option_group *groups, size_t n_groups, struct mw_err *err)
{
	struct mw_option_walk walk = { 0 };
	memset(o, 0, sizeof(*o));
	o->groups = calloc(n_groups + 1, sizeof(*groups));
	if (!o->groups)
		MW_FAIL(err, RESOURCE, "out of memory for the options");
	if (n_groups)
		memcpy(o->groups, groups, n_groups * sizeof(*groups));
	o->n_groups = n_groups;
	while (mw_option_next(o, &walk))
		;
	o->was_set = calloc(walk.next_flat + 1, 1);
	if (!o->was_set) {
		mw_options_fini(o);
		MW_FAIL(err, RESOURCE, "out of memory for the options");
	}
	assert_names(o);
	int ret = set_defaults(o, err);
	if (ret < 0)
		mw_options_fini(o);
	return ret;
}

void mw_options_fini(struct mw_options *o)
{
	struct mw_option_walk walk = { 0 };
	while (mw_option_next(o, &walk))
		if (walk.opt->type == MW_OPT_STRING) {
			free(*(char **)walk.field);
			*(char **)walk.field = NULL;
		}
	free(o->groups);
	free(o->was_set);
	memset(o, 0, sizeof(*o));
}

static int fail_unknown(const struct mw_options *o, const char *name, const char *where, struct mw_err *err)
{
	struct mw_option_walk walk = { 0 };
	size_t n = 0;
	while (mw_option_next(o, &walk))
		;
	const char **names = calloc(walk.next_flat + 1, sizeof(*names)), *nearest = NULL;
	memset(&walk, 0, sizeof(walk));
	while (names && mw_option_next(o, &walk))
		if (walk.opt->type != MW_OPT_HEADING)
			names[n++] = walk.opt->name;
	if (names)
		nearest = mw_nearest(name, names, n);
	free(names);
	const char *dashes = where ? "" : "--";
	if (nearest)
		MW_FAIL(err, USAGE, "%s%sunknown option %s%s; did you mean %s%s?", where ? where : "",
			where ? ": " : "", dashes, name, dashes, nearest);
	MW_FAIL(err, USAGE, "%s%sunknown option %s%s", where ? where : "", where ? ": " : "", dashes, name);
}

int mw_options_set(
	struct mw_options *o, const char *name, const char *value, const char *where, struct mw_err *err)
{
	struct mw_option_walk walk = { 0 };
	bool found = false;
	if (where && !strcmp(where, "option"))
		where = NULL;
	while (next_named(o, name, &walk)) {
		char label[LABEL_BYTES];
		snprintf(label, sizeof(label), "%s%s%s%s%s%s", where ? where : "option --",
			where ? ": option " : "", name, walk.group->owner ? " (" : "",
			walk.group->owner ? walk.group->owner : "", walk.group->owner ? ")" : "");
		MW_TRY(set_field(walk.opt, walk.field, value, label, err));
		*walk.was_set = MW_SET_USER;
		found = true;
	}
	return found ? MW_OK : fail_unknown(o, name, where, err);
}

/* Does the field hold its default? */
static bool has_default(const struct mw_option *opt, const void *field)
{
	union {
		bool b;
		int64_t i;
		double f;
		char *s;
		int choice;
	} def = { 0 };
	bool equal = false;
	if (opt->def && set_field(opt, &def, opt->def, opt->name, NULL) < 0)
		return false;
	switch (opt->type) {
	case MW_OPT_BOOL: equal = def.b == *(const bool *)field; break;
	case MW_OPT_INT: equal = def.i == *(const int64_t *)field; break;
	case MW_OPT_FLOAT: equal = def.f == *(const double *)field; break;
	case MW_OPT_CHOICE: equal = def.choice == *(const int *)field; break;
	case MW_OPT_STRING: {
		const char *s = *(char *const *)field;
		equal = s && def.s ? !strcmp(s, def.s) : s == def.s;
		free(def.s);
		break;
	}
	case MW_OPT_HEADING: break;
	}
	return equal;
}

void mw_option_forget_default(struct mw_options *o, const char *name)
{
	struct mw_option_walk walk = { 0 };
	bool all = true;
	while (next_named(o, name, &walk))
		all = all && has_default(walk.opt, walk.field);
	memset(&walk, 0, sizeof(walk));
	while (all && next_named(o, name, &walk))
		*walk.was_set = MW_SET_NOT;
}

/* The value of option `name`: what stands after '=', or else the next argument. */
static int take_value(const char *name, const char *after, int argc, char **argv, int *i, const char **value,
	struct mw_err *err)
{
	if (after) {
		*value = after;
		return MW_OK;
	}
	if (*i + 1 >= argc)
		MW_FAIL(err, USAGE, "option --%s needs a value", name);
	*value = argv[++*i];
	if (!strncmp(*value, "--", 2))
		MW_FAIL(err, USAGE,
			"option --%s needs a value, but '%s' follows (write --%s=%s if that is the value)",
			name, *value, name, *value);
	return MW_OK;
}

/* One argument that begins with "--". */
static int parse_long(struct mw_options *o, int argc, char **argv, int *i, struct mw_err *err)
{
	char name[LABEL_BYTES];
	const char *arg = argv[*i] + 2, *after = strchr(arg, '='), *value = NULL;
	snprintf(name, sizeof(name), "%.*s", (int)(after ? after - arg : (ptrdiff_t)strlen(arg)), arg);
	if (after)
		after++;
	const struct mw_option *opt = find(o, name);
	if (!opt && !strncmp(name, "no-", 3)) {
		opt = find(o, name + 3);
		if (opt && opt->type == MW_OPT_BOOL) {
			if (after)
				MW_FAIL(err, USAGE, "option --%s takes no value (write --%s=%s)", name,
					name + 3, after);
			return mw_options_set(o, name + 3, "no", NULL, err);
		}
		opt = NULL;
	}
	if (!opt)
		return fail_unknown(o, name, NULL, err);
	if (opt->type == MW_OPT_BOOL) {
		const char *next = *i + 1 < argc ? argv[*i + 1] : "";
		if (!after && (!strcmp(next, "on") ||
				      !strcmp(next, "off"))) /* no argument of a command is called so */
			after = argv[++*i];
		return mw_options_set(o, name, after ? after : "yes", NULL, err);
	}
	MW_TRY(take_value(name, after, argc, argv, i, &value, err));
	return mw_options_set(o, name, value, NULL, err);
}

int mw_options_parse(struct mw_options *o, int argc, char **argv, int first, const char **positional, int max,
	bool *help, struct mw_err *err)
{
	bool ended = false;
	int n = 0;
	*help = false;
	for (int i = first; i < argc; i++) {
		const char *arg = argv[i];
		if (ended || arg[0] != '-' || !arg[1]) {
			if (n >= max)
				MW_FAIL(err, USAGE, "argument '%s' is one too many", arg);
			positional[n++] = arg;
		} else if (!strcmp(arg, "--")) {
			ended = true;
		} else if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
			*help = true;
			return 0;
		} else if (!strcmp(arg, "-o") && find(o, "out")) {
			const char *value = NULL;
			MW_TRY(take_value("out", NULL, argc, argv, &i, &value, err));
			MW_TRY(mw_options_set(o, "out", value, NULL, err));
		} else if (arg[1] != '-') {
			MW_FAIL(err, USAGE, "unknown option %s (names of options begin with two dashes)",
				arg);
		} else {
			MW_TRY(parse_long(o, argc, argv, &i, err));
		}
	}
	return n;
}

bool mw_options_is_set(const struct mw_options *o, const char *name)
{
	struct mw_option_walk walk = { 0 };
	return next_named(o, name, &walk) && *walk.was_set;
}

/* The chosen owner of the same family ("optimizer sgd" for "optimizer adam"), or NULL. */
static const char *same_family(const char *owner, const char *const *owners, size_t n)
{
	size_t length = strcspn(owner, " ");
	for (size_t i = 0; i < n; i++)
		if (!strncmp(owner, owners[i], length + 1))
			return owners[i];
	return NULL;
}

static int fail_not_chosen(
	const struct mw_options *o, const char *name, const char *const *owners, size_t n, struct mw_err *err)
{
	struct mw_option_walk walk = { 0 };
	char who[500] = "";
	const char *chosen = NULL;
	while (next_named(o, name, &walk)) {
		size_t used = strlen(who);
		snprintf(who + used, sizeof(who) - used, "%s%s", used ? ", " : "", walk.group->owner);
		if (!chosen)
			chosen = same_family(walk.group->owner, owners, n);
	}
	MW_FAIL(err, USAGE, "option --%s belongs to %s, but %s%s", name, who,
		chosen ? chosen : "none of these", " is chosen");
}

int mw_options_check(const struct mw_options *o, const char *const *owners, size_t n, struct mw_err *err)
{
	struct mw_option_walk walk = { 0 };
	while (mw_option_next(o, &walk)) {
		struct mw_option_walk same = { 0 };
		bool usable = *walk.was_set != MW_SET_USER;
		while (!usable && next_named(o, walk.opt->name, &same))
			usable = mw_option_owned(same.group, owners, n);
		if (!usable)
			return fail_not_chosen(o, walk.opt->name, owners, n, err);
	}
	return MW_OK;
}

void mw_options_settle(struct mw_options *o)
{
	struct mw_option_walk walk = { 0 };
	while (mw_option_next(o, &walk))
		if (*walk.was_set)
			*walk.was_set = MW_SET_BEFORE;
}
