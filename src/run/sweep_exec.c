/* sweep_exec.c: the runs of a sweep, each in a process of its own; see sweep.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/sweep.h"

#define POLL_NS   5000000
#define REDRAW_S  0.5
#define NAME_COLS 48

/* --- the child ----------------------------------------------------------------------------------------------------- */

/* Sync: written by the child's signal handler (relaxed), polled by its run (relaxed). */
static int child_interrupt;

static void on_child_stop(int number)
{
	if (__atomic_exchange_n(&child_interrupt, number, __ATOMIC_RELAXED))
		_exit(128 + number); /* asked twice */
}

/*
 * The parent passes a signal on itself, so the child leaves the terminal's process group: it would get Ctrl-C twice. It
 * ends with the parent, however that ends.
 */
static void settle_child(pid_t parent)
{
	struct sigaction action = { .sa_handler = on_child_stop, .sa_flags = SA_RESTART };
	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	setpgid(0, 0);
	if (getppid() != parent)
		_exit(128 + SIGTERM);
}

static int run_job(const struct mw_sweep *s, const struct mw_sweep_run *r, FILE *log, struct mw_err *err)
{
	struct mw_job *job = NULL;
	int ret = mw_sweep_job(s, r, &job, err);
	if (ret == 0)
		ret = mw_options_set(&job->set, r->resumes ? "resume" : "force", "yes", NULL, err);
	if (ret == 0) {
		mw_job_set_out(job, log);
		mw_job_set_msg(job, log);
		mw_job_set_interrupt(job, &child_interrupt);
		ret = mw_job_run(job, err);
	}
	mw_job_free(job);
	return ret;
}

static FILE *open_log(const struct mw_sweep *s, const struct mw_sweep_run *r)
{
	char *folder = mw_sweep_folder(s, r), *path = mw_strprintf("%s/log.txt", folder);
	struct mw_err err = { 0 };
	FILE *f = NULL;
	if (path && mw_record_make_dirs(folder, &err) == 0)
		f = fopen(path, r->resumes ? "a" : "w");
	free(path);
	free(folder);
	return f;
}

/* Never returns: it is no business of this process what the program would do after the sweep. */
static void child(const struct mw_sweep *s, const struct mw_sweep_run *r, pid_t parent, int error_fd)
{
	struct mw_err err = { 0 };
	settle_child(parent);
	FILE *log = open_log(s, r);
	if (!log)
		mw_err_set(&err, MW_ERESOURCE, "%s/%s/log.txt can't be written: %s", s->out, r->name,
			strerror(errno));
	else if (run_job(s, r, log, &err) < 0)
		fprintf(log, "error: %s\n", err.msg);
	if (log)
		fclose(log);
	if (err.code && write(error_fd, err.msg, strlen(err.msg)) < 0)
		_exit(mw_err_exit_code(MW_ERESOURCE));
	int number = __atomic_load_n(&child_interrupt, __ATOMIC_RELAXED);
	_exit(err.code ? mw_err_exit_code(err.code) : number ? 128 + number : 0);
}

/* --- the parent ---------------------------------------------------------------------------------------------------- */

static int launch(struct mw_sweep *s, struct mw_sweep_run *r, struct mw_err *err)
{
	int fd[2];
	pid_t parent = getpid();
	if (pipe(fd))
		MW_FAIL(err, RESOURCE, "no pipe for a run: %s", strerror(errno));
	fflush(NULL); /* or the child would write what stands in the buffers once more */
	r->pid = fork();
	if (r->pid == 0) {
		close(fd[0]);
		child(s, r, parent, fd[1]);
	}
	int problem = errno;
	close(fd[1]);
	if (r->pid < 0) {
		close(fd[0]);
		MW_FAIL(err, RESOURCE, "no process for a run: %s", strerror(problem));
	}
	r->error_fd = fd[0];
	r->started_s = mw_now_s();
	r->state = MW_SWEEP_RUNNING;
	return MW_OK;
}

/* What the child's status and message say; results themselves are in its folder. */
static void conclude(struct mw_sweep *s, struct mw_sweep_run *r, int status)
{
	struct mw_err problem = { 0 };
	char text[sizeof(r->error.msg)];
	ssize_t n = read(r->error_fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	close(r->error_fd);
	r->error_fd = -1;
	r->seconds = mw_now_s() - r->started_s;
	r->pid = 0;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (code == 0 || code == mw_err_exit_code(MW_EDIVERGED)) {
		if (mw_sweep_look(s, r, &problem) < 0 || r->state == MW_SWEEP_WAITING) {
			r->state = MW_SWEEP_FAILED;
			mw_err_set(&r->error, MW_EINTERNAL, "%s",
				problem.code ? problem.msg : "it ended without a result");
		}
	} else if (code > 128) {
		r->state = MW_SWEEP_INTERRUPTED;
	} else {
		r->state = MW_SWEEP_FAILED;
		if (WIFSIGNALED(status))
			mw_err_set(&r->error, MW_EINTERNAL, "it was ended by signal %d (%s)",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
		else
			mw_err_set(&r->error,
				code == 2   ? MW_EUSAGE
				: code == 3 ? MW_EDATA
					    : MW_ERESOURCE,
				"%s", *text ? text : "it failed without a message");
	}
}

static size_t count(const struct mw_sweep *s, enum mw_sweep_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		n += s->run[i]->state == state;
	return n;
}

/* One line about a run that has ended. */
static void tell(struct mw_sweep *s, const struct mw_sweep_run *r)
{
	static const char *const words[] = { "", "", "done", "diverged", "FAILED", "interrupted" };
	char time[32];
	if (!s->msg)
		return;
	mw_sweep_clear(s);
	mw_format_duration(r->seconds, time, sizeof(time));
	fprintf(s->msg, "[%zu/%zu] %s: %s in %s%s%s\n",
		s->n - count(s, MW_SWEEP_WAITING) - count(s, MW_SWEEP_RUNNING), s->n, r->name,
		words[r->state], time, r->state == MW_SWEEP_FAILED ? ": " : "",
		r->state == MW_SWEEP_FAILED ? r->error.msg : "");
}

static bool interrupted(const struct mw_sweep *s)
{
	return __atomic_load_n(s->interrupt, __ATOMIC_RELAXED) != 0;
}

/* Start what fits, in order: nothing overtakes a run that waits for the whole machine. */
static int start_some(struct mw_sweep *s, struct mw_err *err)
{
	uint32_t used = 0;
	bool exclusive = false;
	for (size_t i = 0; i < s->n; i++)
		if (s->run[i]->state == MW_SWEEP_RUNNING) {
			used += s->run[i]->cores;
			exclusive = exclusive || s->run[i]->exclusive;
		}
	for (size_t i = 0; i < s->n && !exclusive && !interrupted(s); i++) {
		struct mw_sweep_run *r = s->run[i];
		if (r->state != MW_SWEEP_WAITING)
			continue;
		if (used && (r->exclusive || used + r->cores > s->slots))
			break;
		MW_TRY(launch(s, r, err));
		used += r->cores;
		exclusive = r->exclusive;
	}
	return MW_OK;
}

/* Collect those that have ended; true if there were any. */
static bool collect(struct mw_sweep *s)
{
	bool any = false;
	for (size_t i = 0; i < s->n; i++) {
		struct mw_sweep_run *r = s->run[i];
		int status;
		if (r->state != MW_SWEEP_RUNNING)
			continue;
		pid_t got = waitpid(r->pid, &status, WNOHANG);
		if (got == 0 || (got < 0 && errno == EINTR))
			continue;
		conclude(s, r, got < 0 ? 0 : status); /* nobody tells: its folder does */
		tell(s, r);
		any = true;
	}
	return any;
}

static void stop_children(const struct mw_sweep *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->run[i]->state == MW_SWEEP_RUNNING)
			kill(s->run[i]->pid, SIGTERM);
}

/* Runs that a search has added since. */
static int look_at_new(struct mw_sweep *s, size_t from, struct mw_err *err)
{
	for (size_t i = from; i < s->n; i++)
		MW_TRY(mw_sweep_look(s, s->run[i], err));
	return MW_OK;
}

/* Searches go on until they have nothing more to add that is done already. */
static int advance(struct mw_sweep *s, struct mw_err *err)
{
	size_t before;
	do {
		before = s->n;
		MW_TRY(mw_sweep_search_advance(s, err));
		MW_TRY(look_at_new(s, before, err));
	} while (s->n > before);
	return MW_OK;
}

static void pause_a_little(void)
{
	struct timespec t = { .tv_nsec = POLL_NS };
	nanosleep(&t, NULL);
}

int mw_sweep_execute(struct mw_sweep *s, struct mw_err *err)
{
	bool stopping = false;
	int ret = advance(s, err);
	while (ret == 0 || count(s, MW_SWEEP_RUNNING)) {
		if (ret == 0)
			ret = start_some(s, err);
		if (!stopping && (ret < 0 || interrupted(s))) {
			stop_children(s);
			stopping = true;
		}
		if (!count(s, MW_SWEEP_RUNNING))
			break;
		mw_sweep_draw(s);
		pause_a_little();
		if (!collect(s) || ret < 0)
			continue;
		ret = interrupted(s) ? 0 : advance(s, err);
		if (ret == 0)
			ret = mw_sweep_index(s, err);
	}
	mw_sweep_clear(s);
	return ret;
}

/* --- progress ------------------------------------------------------------------------------------------------------ */

/* Mean wall clock of a run of this job, or of any; 0: none has ended yet. */
static double mean_seconds(const struct mw_sweep *s, const char *job)
{
	double sum = 0, n = 0, sum_all = 0, n_all = 0;
	for (size_t i = 0; i < s->n; i++) {
		if (!(s->run[i]->seconds > 0))
			continue;
		sum_all += s->run[i]->seconds;
		n_all++;
		if (!strcmp(s->run[i]->job, job)) {
			sum += s->run[i]->seconds;
			n++;
		}
	}
	return n > 0 ? sum / n : n_all > 0 ? sum_all / n_all : 0;
}

/* Seconds until all that is known of is done; 0: nobody knows. */
static double remaining(const struct mw_sweep *s)
{
	double total = 0, now = mw_now_s(), mean = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct mw_sweep_run *r = s->run[i];
		if (r->state != MW_SWEEP_WAITING && r->state != MW_SWEEP_RUNNING)
			continue;
		mean = mean_seconds(s, r->job);
		double left = r->state == MW_SWEEP_RUNNING ? mean - (now - r->started_s) : mean;
		uint32_t beside = r->exclusive || r->cores >= s->slots ? 1 : s->slots / r->cores;
		total += left > 0 ? left / beside : 0;
	}
	return total + mean * (double)mw_sweep_search_pending(s) / s->slots;
}

void mw_sweep_draw(struct mw_sweep *s)
{
	double now = mw_now_s();
	const char *name = "";
	if (!s->live || now - s->drawn_s < REDRAW_S)
		return;
	for (size_t i = 0; i < s->n && !*name; i++)
		if (s->run[i]->state == MW_SWEEP_RUNNING)
			name = s->run[i]->name;
	size_t running = count(s, MW_SWEEP_RUNNING), waiting = count(s, MW_SWEEP_WAITING);
	char eta[32] = "?";
	double left = remaining(s);
	if (left > 0)
		mw_format_duration(left, eta, sizeof(eta));
	fprintf(s->msg, "\r\033[K%zu/%zu runs done, %zu running (%.*s%s)  ETA %s", s->n - running - waiting,
		s->n + mw_sweep_search_pending(s), running, NAME_COLS, name, running > 1 ? ", ..." : "", eta);
	fflush(s->msg);
	s->drawn = true;
	s->drawn_s = now;
}

void mw_sweep_clear(struct mw_sweep *s)
{
	if (!s->drawn)
		return;
	fprintf(s->msg, "\r\033[K");
	fflush(s->msg);
	s->drawn = false;
}
