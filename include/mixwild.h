/*
 * mixwild.h: the C API of libmixwild. A job is one subcommand of the mixwild program as a call: made by name,
 * configured by the same options, run in this process.
 *
 *	struct mw_err err = { 0 };
 *	struct mw_job *job = NULL;
 *	if (mw_job_new("tmix", &job, &err) == 0 && mw_job_set(job, "protocol", "async-ps", &err) == 0 &&
 *	    mw_job_set(job, "workers", "8", &err) == 0)
 *		mw_job_run(job, &err);
 *	if (err.code)
 *		fprintf(stderr, "%s\n", err.msg);
 *	mw_job_free(job);
 *
 * Functions that can fail return 0 (MW_OK) or a negative MW_E code and fill *err; err may be NULL. The first
 * error wins: a struct mw_err that holds one is left alone, so a chain of calls may share it. Clear it with
 * `err = (struct mw_err){0}`.
 *
 * Threads: different jobs may be used by different threads at the same time; one job by one thread at a time,
 * except for the interrupt word. mw_job_run makes threads of its own and has joined them when it returns.
 *
 * The library never exits and never prints, except to the two streams of a job. Numbers are read and written
 * with the decimal point of the LC_NUMERIC locale "C", which must be in force (it is, unless setlocale was
 * called).
 */
#ifndef MIXWILD_H
#define MIXWILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MW_API __attribute__((visibility("default")))
#else
#define MW_API
#endif

/* The version of this header; mw_version() is that of the library that is linked. */
#define MW_VERSION "0.1.0"

/* What went wrong. Values are stable. */
enum mw_error_code {
	MW_OK = 0,
	MW_EUSAGE = -1,    /* options or arguments that can't be: exit status 2 */
	MW_EDATA = -2,     /* a file that is missing, unreadable or wrong: 3 */
	MW_ERESOURCE = -3, /* memory, CPUs or other resources of the machine: 4 */
	MW_EDIVERGED = -4, /* the training loss is no finite number any more: 5 */
	MW_EINTERNAL = -5  /* a fault of mixwild: 70 */
};

/* One error. Zeroed: none. */
struct mw_err {
	int code;       /* MW_OK or a negative MW_E code */
	char msg[1000]; /* what was wrong, where, and what to do; no final newline */
};

/* The name of a code: "usage error", "data error" and so on; "ok" for MW_OK. Static text. Thread-safe. */
MW_API const char *mw_err_name(int code);

/* The exit status that the mixwild program gives a code: 0, 2, 3, 4, 5 or 70. Thread-safe. */
MW_API int mw_err_exit_code(int code);

/* The version of the library, "MAJOR.MINOR.PATCH". Static text. Thread-safe. */
MW_API const char *mw_version(void);

/* Name and one-line summary of command i = 0, 1, ...; NULL after the last one. Static text. Thread-safe. */
MW_API const char *mw_command_name(size_t i);
MW_API const char *mw_command_summary(size_t i);

/* One configured command. */
struct mw_job;

/*
 * Make a job of a command ("train", "tmix", ...) with every option at its default. Results go to stdout and
 * progress to stderr until others are set. *out is owned by the caller: mw_job_free. Errors: MW_EUSAGE (no
 * such command; the message names the nearest), MW_ERESOURCE.
 */
MW_API int mw_job_new(const char *command, struct mw_job **out, struct mw_err *err);

/* Free a job and all that it owns; its streams are not closed. NULL is fine. */
MW_API void mw_job_free(struct mw_job *job);

/*
 * Options and arguments as typed: argv[first..argc), read as `mixwild COMMAND` reads them (--name value,
 * --name=value,
 * --flag, --no-flag; "--" ends the options). If the command has an option --config FILE, the options in that
 * file are set first, so that the command line overrides it. Ends with the checks that mw_job_run makes. The
 * strings of arguments that are no options are borrowed until mw_job_free. If --help or -h is met, *help
 * becomes true, the rest is not looked at and 0 is returned. At most once a job. Errors: MW_EUSAGE; MW_EDATA
 * for a --config file that can't be read; MW_ERESOURCE.
 */
MW_API int mw_job_parse(struct mw_job *job, int argc, char **argv, int first, bool *help, struct mw_err *err);

/*
 * Set one option from text; the strings are copied. Flags take "yes" and "no".
 * Errors: MW_EUSAGE (no such option: the message names the nearest; no such value; out of range),
 * MW_ERESOURCE.
 */
MW_API int mw_job_set(struct mw_job *job, const char *name, const char *value, struct mw_err *err);

/*
 * Set options from a JSON file: an object {"name": value, ...}, or a run.json, whose "config" member is used
 * but for out, trace, force, resume and config: a run that is repeated does not write into the first one's files.
 * Errors, with line and column: MW_EDATA (no such file, not JSON), MW_EUSAGE (as mw_job_set), MW_ERESOURCE.
 */
MW_API int mw_job_load(struct mw_job *job, const char *path, struct mw_err *err);

/* Write the job's help to f, wrapped to `columns` (at least 40); write errors are left in f (ferror). */
MW_API void mw_job_help(const struct mw_job *job, FILE *f, int columns);

/* Write the job's manual page, section 1, to f as roff; write errors are left in f (ferror). */
MW_API void mw_job_man(const struct mw_job *job, FILE *f);

/* Where results go. Borrowed until mw_job_free; must not be NULL. open_memstream gives them as a string. */
MW_API void mw_job_set_out(struct mw_job *job, FILE *f);

/* Where progress and messages go. Borrowed until mw_job_free; NULL: nowhere. A progress line is drawn on
 * terminals only. */
MW_API void mw_job_set_msg(struct mw_job *job, FILE *f);

/*
 * A word that asks the run to stop: when it is found to be a signal's number instead of 0, the run stops at
 * the next safe point, saves what it has, and returns. It may be written (in one relaxed atomic store) by
 * another thread or a signal handler at any time. Borrowed until mw_job_free.
 */
MW_API void mw_job_set_interrupt(struct mw_job *job, int *interrupt);

/* Does this command look at the interrupt word? Short ones don't: leave them to the signal's default action.
 */
MW_API bool mw_job_interruptible(const struct mw_job *job);

/*
 * Run. Blocks until the work is done, has failed, or was interrupted (which is no error). Results are
 * flushed. Errors: any; MW_ERESOURCE too when results can't be written. A job is run at most once.
 */
MW_API int mw_job_run(struct mw_job *job, struct mw_err *err);

#ifdef __cplusplus
}
#endif

#endif
