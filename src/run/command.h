/*
 * command.h: a subcommand as a library job. `mixwild SUBCOMMAND` is a thin shell (src/cli) around this: an
 * option table, the option tables of the plug-ins that it can choose, and a function that runs. What callers
 * of the library see of it is in mixwild.h: mw_job_new, parse, set, load, help, man, run and free.
 */
#ifndef MW_RUN_COMMAND_H
#define MW_RUN_COMMAND_H

#include <stdio.h>

#include "../include/mixwild.h"
#include "base/option.h"

/*
 * mw_command.uses. A command that uses a family has an option (STRING) of the family's name in its own table:
 * "model", "optimizer", "protocol". Its value chooses the plug-in. NULL chooses none; "auto" leaves it to the
 * run, so that options all plug-ins of the family are let through until the run calls mw_job_choose.
 */
enum {
	MW_USES_MODEL = 1,
	MW_USES_OPTIM = 2,
	MW_USES_PROTOCOL = 4,
	MW_NO_INTERRUPT =
		8, /* run() is short and doesn't look at job->interrupt: signals end the process at once */
};

#define MW_POSITIONALS_MAX 256

struct mw_command {
	const char *name, *summary;
	const char *positionals; /* "FILE", "MODEL DATA", "[WHAT]" or NULL */
	int min_positionals, max_positionals;
	unsigned uses; /* MW_USES_*: the families whose tables are added; MW_NO_INTERRUPT */
	const struct mw_option *options;
	size_t option_size;
	/*
	 * Options of another command that this one takes too (NULL: none), all but those whose names its own table has and
	 * those in inherits_not ("out|resume"); they fill a struct at options + inherits_at.
	 */
	const struct mw_option *inherits;
	size_t inherits_at;
	const char *inherits_not;
	const char *examples; /* a few command lines, each ended by a newline, for --help and the man page */
	int (*run)(struct mw_job *job, struct mw_err *err);
};

struct mw_job {
	const struct mw_command *command;
	void *options; /* struct filled by command->options */
	struct mw_options set;
	struct mw_option *inherited; /* the part of command->inherits that is taken; owned */
	/* Option structs of every plug-in of the families used, indexed as mw_plugins; see
	 * mw_job_plugin_options. */
	void **plugin_options;
	const char *positional[MW_POSITIONALS_MAX];
	int n_positional;
	FILE *out;          /* results; stdout unless the caller sets another */
	FILE *msg;          /* progress and messages; stderr unless set; NULL: none */
	bool live;          /* msg is a terminal: a progress line may be drawn */
	char *command_line; /* as typed (quoted for a shell), for run.json; NULL unless mw_job_parse was
			       called */
	/*
	 * Sync: number of the signal that asks the run to stop, 0 for none. Written by a signal handler or
	 * another thread (relaxed), polled by the run (relaxed). Never NULL.
	 */
	int *interrupt;
};

/*
 * The option struct of a plug-in ("model", "logistic"; "mlp:256,128" is mlp's) of this job; NULL if its table
 * is empty or the command doesn't use the family.
 */
void *mw_job_plugin_options(const struct mw_job *job, const char *family, const char *name);

/*
 * What "auto" stands for is known now: sets the option `family` to `name` and checks again that options were
 * only set for plug-ins that are chosen (USAGE).
 */
int mw_job_choose(struct mw_job *job, const char *family, const char *name, struct mw_err *err);

/* Are options set only for plug-ins that are chosen, and are these known (USAGE)? mw_job_run asks it first. */
int mw_job_check(const struct mw_job *job, struct mw_err *err);

/*
 * The configuration as resolved: own options and those of the chosen plug-ins. Owned by the caller; NULL if a
 * plug-in's name is unknown (mw_job_parse has checked) or memory is short.
 */
json_t *mw_job_config(const struct mw_job *job);

/* A word as a shell would need it. */
void mw_shell_quote(FILE *f, const char *word);

/* All commands of registry.def, NULL-terminated. */
extern const struct mw_command *const mw_commands[];

#endif
