/* main.c: the mixwild program: a shell around the jobs of libmixwild. */
#include "mixwild.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/about.h"
#include "cli/mask.h"

/* Sync: written by the signal handler (relaxed), polled by the running job (relaxed), read here after it. */
static int interrupt;
/* Sync: written by the signal handler of this thread's writes only. */
static volatile sig_atomic_t pipe_broken;

/* Signals that on_stop is installed for. Sync: written before it is installed for the first time, then constant. */
static int handled[2], n_handled;

static void on_stop(int number)
{
	__atomic_store_n(&interrupt, number, __ATOMIC_RELAXED);
	/* whoever asks a second time doesn't want to wait for the saving */
	for (int i = 0; i < n_handled; i++)
		signal(handled[i], SIG_DFL);
}

static void on_pipe(int number)
{
	(void)number;
	pipe_broken = 1;
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/*
 * A program that is started with a closed standard stream would get its first data file as that stream, and
 * print into it. Occupy the closed ones; what is written to standard output then still fails.
 */
static void occupy_closed_streams(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
			open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) != fd)
			abort();
}

/* Width of the help text. */
static int columns(void)
{
	struct winsize size;
	const char *set = getenv("COLUMNS");
	int n = set ? atoi(set) : 0;
	if (n <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		n = size.ws_col;
	return n <= 0 ? 80 : n > 110 ? 110 : n;
}

/* Print the error once, as `mixwild COMMAND: message`; command may be NULL. Returns the exit status. */
static int fail(const char *command, const struct mw_err *err)
{
	const char *space = command ? " " : "";
	command = command ? command : "";
	fprintf(stderr, "mixwild%s%s: %s\n", space, command, err->msg);
	if (err->code == MW_EUSAGE)
		fprintf(stderr, "try 'mixwild%s%s --help'\n", space, command);
	return mw_err_exit_code(err->code);
}

static int fail_usage(const char *message, const char *what)
{
	struct mw_err err = { .code = MW_EUSAGE };
	snprintf(err.msg, sizeof(err.msg), "%s%s", message, what);
	return fail(NULL, &err);
}

/* Standard output has to have taken everything: 0, or the exit status. */
static int finish_output(void)
{
	struct mw_err err = { .code = MW_ERESOURCE };
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	if (pipe_broken) /* the reader has seen enough: what a filter would end with */
		return 128 + SIGPIPE;
	snprintf(err.msg, sizeof(err.msg), "standard output can't be written: %s",
		errno ? strerror(errno) : "an earlier write failed");
	return fail(NULL, &err);
}

/* What the parent wants to be ignored (a script's background job: Ctrl-C) stays ignored. */
static void handle_stops(void)
{
	static const int numbers[] = { SIGINT, SIGTERM };
	for (int i = 0; i < 2; i++) {
		struct sigaction old;
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			handled[n_handled++] = numbers[i];
	}
	for (int i = 0; i < n_handled; i++)
		handle(handled[i], on_stop);
}

/* Run the job, with Ctrl-C and termination as a wish that it ends soon, in good order. */
static int run(struct mw_job *job, const char *command)
{
	struct mw_err err = { 0 };
	if (mw_job_interruptible(job)) {
		mw_job_set_interrupt(job, &interrupt);
		handle_stops();
	}
	int ret = mw_job_run(job, &err);
	if (ret < 0 && pipe_broken && ferror(stdout))
		return 128 + SIGPIPE;
	if (ret < 0)
		return fail(command, &err);
	int number = __atomic_load_n(&interrupt, __ATOMIC_RELAXED);
	return number ? 128 + number : 0;
}

static int command(int argc, char **argv)
{
	struct mw_err err = { 0 };
	struct mw_job *job = NULL;
	const char *name = argv[1];
	bool help = false;
	int status;
	if (mw_job_new(name, &job, &err) < 0)
		return fail(NULL, &err);
	if (mw_job_parse(job, argc, argv, 2, &help, &err) < 0) {
		status = fail(name, &err);
	} else if (help) {
		mw_job_help(job, stdout, columns());
		status = finish_output();
	} else {
		status = run(job, name);
	}
	mw_job_free(job);
	return status;
}

/* A manual page: of the program, or of one command. */
static int man(const char *name)
{
	struct mw_err err = { 0 };
	struct mw_job *job = NULL;
	if (!name) {
		cli_man(stdout);
		return finish_output();
	}
	if (mw_job_new(name, &job, &err) < 0)
		return fail(NULL, &err);
	mw_job_man(job, stdout);
	mw_job_free(job);
	return finish_output();
}

int main(int argc, char **argv)
{
	cli_restore_mask();
	occupy_closed_streams();
	handle(SIGPIPE, on_pipe);
	if (argc < 2)
		return fail_usage("a command is missing", "");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_help(stdout);
		return finish_output();
	}
	if (!strcmp(argv[1], "--version")) {
		printf("mixwild %s\n", mw_version());
		return finish_output();
	}
	if (!strcmp(argv[1], "--man"))
		return man(argc > 2 ? argv[2] : NULL);
	if (argv[1][0] == '-')
		return fail_usage("unknown option before the command: ", argv[1]);
	return command(argc, argv);
}
