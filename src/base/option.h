/*
 * option.h: option tables. A table describes the fields of a struct; from it come flags, --help, man pages,
 * job files, range checks and the recorded configuration. Every plug-in (model, protocol, optimizer...)
 * carries its own table.
 */
#ifndef MW_BASE_OPTION_H
#define MW_BASE_OPTION_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>

#include "base/err.h"

enum mw_option_type {
	MW_OPT_BOOL,    /* bool field; --name, --no-name, --name=yes|no|on|off|true|false|1|0 */
	MW_OPT_INT,     /* int64_t field; accepts 10k, 2M, 1e6 where exact */
	MW_OPT_FLOAT,   /* double field; finite */
	MW_OPT_STRING,  /* char * field, owned by the struct; NULL when def is NULL and it is not set */
	MW_OPT_CHOICE,  /* int field: index into choices, "a|b|c"; error names all choices and the nearest */
	MW_OPT_HEADING, /* no field: --help starts a new heading here; see MW_HEADING */
};

/* An entry of a long table that gives the options after it a heading of their own in --help and the man page.
 */
#define MW_HEADING(text)                                           \
	{                                                          \
		.name = "", .type = MW_OPT_HEADING, .help = (text) \
	}

struct mw_option {
	const char *name; /* without dashes; NULL ends a table */
	enum mw_option_type type;
	size_t offset;
	const char *def;     /* default as text; NULL: 0, false, NULL */
	double min, max;     /* INT, FLOAT: inclusive range when min < max (both 0: any); may be infinite;
				DBL_MIN: above 0 */
	const char *choices; /* CHOICE only */
	const char *metavar; /* what --help shows after the name, for example N or FILE; NULL: by type, or the
				choices */
	const char *help;    /* one or more sentences; wrapped by --help */
};

/*
 * One table bound to the struct it fills. A name may stand in several groups when all of them have an owner
 * (amsgrad and adam both have beta1): they have the same type (asserted), setting it sets every one, and a
 * value has to suit them all. Names of groups without owner are unique (asserted).
 */
struct mw_option_group {
	const char *title; /* heading in --help: "Data", "Protocol local-sgd" */
	const char
		*owner; /* NULL, or the plug-in it belongs to, "protocol local-sgd"; see mw_options_check */
	const struct mw_option *table;
	void *target;
};

enum {
	MW_SET_NOT = 0, /* has its default */
	MW_SET_USER,    /* set by parse, set or load */
	MW_SET_BEFORE,  /* the same, but mw_options_check passes over it: see mw_options_settle */
};

/* A list of groups. */
struct mw_options {
	struct mw_option_group *groups;
	size_t n_groups;
	char *was_set; /* one MW_SET byte per table entry in group order */
};

/* Copy the group list and write defaults into every target. Targets must be zeroed and outlive the set. */
int mw_options_init(
	struct mw_options *o, const struct mw_option_group *groups, size_t n_groups, struct mw_err *err);
/* Free the list and every STRING field of the targets. */
void mw_options_fini(struct mw_options *o);

/*
 * Set one option from text. `where` (NULL or "option": the command line; else a place such as "run.json:3:5")
 * is put into messages. Unknown: nearest name.
 */
int mw_options_set(
	struct mw_options *o, const char *name, const char *value, const char *where, struct mw_err *err);
/*
 * Parse argv[first..argc): --name value, --name=value, --flag, --no-flag, -o value for --out, "--" ends options. What is no
 * option is put into positional[] (borrowed pointers; at most max of them, else a usage error); returns the
 * number of positionals or a negative code. --help (-h) sets *help and parsing stops with 0.
 */
int mw_options_parse(struct mw_options *o, int argc, char **argv, int first, const char **positional, int max,
	bool *help, struct mw_err *err);
/*
 * Was it set by the user (parse, set, load)? A default in a loaded file doesn't count: a recorded configuration, which has
 * every option, means what the command line meant that it was recorded from.
 */
bool mw_options_is_set(const struct mw_options *o, const char *name);
/* An option set by the user that stands only in groups whose owner is not in owners[0..n) is a usage error.
 */
int mw_options_check(const struct mw_options *o, const char *const *owners, size_t n, struct mw_err *err);
/*
 * What has been set so far was checked: later checks pass over it. So a configuration file may hold options
 * of the plug-ins that it names, and the command line may still choose other plug-ins.
 */
void mw_options_settle(struct mw_options *o);

/* A JSON object of every option as resolved (groups without owner, and those with an owner in owners[0..n)).
 */
json_t *mw_options_json(const struct mw_options *o, const char *const *owners, size_t n);
/*
 * Set options from a JSON object {name: value}; a whole run.json is accepted too (its "config" member is
 * used, but not for the names in `own`, NULL-terminated, which are that run's alone; NULL: none are). null stands for a
 * STRING that is not set. Messages name file, line and column. DATA: no such file,
 * not JSON; USAGE: as mw_options_set.
 */
int mw_options_load_json(struct mw_options *o, const char *path, const char *const *own, struct mw_err *err);

/* The help text, wrapped to `columns`; defaults and ranges are shown. */
void mw_options_help(const struct mw_options *o, FILE *f, int columns);
/* The OPTIONS section of a man page (roff). */
void mw_options_man(const struct mw_options *o, FILE *f);

/* The candidate with the smallest edit distance (at most a third of the length), or NULL. */
const char *mw_nearest(const char *name, const char *const *candidates, size_t n);

/* Numbers from text, whole string or error. Suffixes k, M, G (1000s). `what` is put into messages. */
int mw_parse_int(const char *text, const char *what, int64_t *out, struct mw_err *err);
int mw_parse_float(const char *text, const char *what, double *out, struct mw_err *err);

#endif
