/* run_util.c: see run_util.h. */
#include "run_util.h"

#include <pthread.h>
#include <unistd.h>

#include "base/mem.h"

static void set_options(struct mw_job *job, const char *options)
{
	struct mw_err err = { 0 };
	char *text = strdup(options), *save = NULL;
	for (char *o = strtok_r(text, " ", &save); o; o = strtok_r(NULL, " ", &save)) {
		char *value = strchr(o, '=');
		assert_non_null(value);
		*value++ = 0;
		for (char *c = value; (c = strchr(c, '~'));)
			*c = ' ';
		if (mw_job_set(job, o, value, &err))
			fail_msg("%s: %s", options, err.msg);
	}
	free(text);
}

static int make(struct test_run *t, const char *options, struct mw_err *err)
{
	*t = (struct test_run){ 0 };
	if (mw_job_new("train", &t->job, err))
		return err->code;
	mw_job_set_msg(t->job, NULL);
	set_options(t->job, options);
	return mw_run_new(t->job, &t->run, err);
}

#define FORMATTED(text, format)                                                          \
	char text[2000];                                                                 \
	va_list ap;                                                                      \
	va_start(ap, format);                                                            \
	assert_in_range(vsnprintf(text, sizeof(text), format, ap), 0, sizeof(text) - 1); \
	va_end(ap)

void run_prepare(struct test_run *t, const char *format, ...)
{
	struct mw_err err = { 0 };
	FORMATTED(options, format);
	if (make(t, options, &err))
		fail_msg("%s: %s", options, err.msg);
}

void run_start(struct test_run *t)
{
	struct mw_err err = { 0 };
	if (t->run->ops->start(t->run, &err))
		fail_msg("start: %s", err.msg);
}

void run_open(struct test_run *t, const char *format, ...)
{
	struct mw_err err = { 0 };
	FORMATTED(options, format);
	if (make(t, options, &err) || t->run->ops->start(t->run, &err))
		fail_msg("%s: %s", options, err.msg);
}

int run_error(struct mw_err *err, const char *format, ...)
{
	struct test_run t;
	FORMATTED(options, format);
	*err = (struct mw_err){ 0 };
	int code = make(&t, options, err);
	run_close(&t);
	return code;
}

void run_close(struct test_run *t)
{
	mw_run_free(t->run);
	mw_job_free(t->job);
	*t = (struct test_run){ 0 };
}

bool run_in_turns(const struct test_run *t)
{
	return t->run->protocol->clock == MW_CLOCK_EVENT && t->run->activation != MW_ACT_FREE;
}

void run_until(struct test_run *t, uint64_t end)
{
	t->run->segment_end = end;
	t->run->ops->segment(t->run);
}

void run_whole(struct test_run *t)
{
	run_until(t, t->run->total_steps * (run_in_turns(t) ? t->run->n_workers : 1));
	t->run->ops->flush(t->run);
}

double run_loss(struct test_run *t)
{
	struct mw_err err = { 0 };
	if (mw_evaluate(t->run, &t->run->last, &err))
		fail_msg("%s", err.msg);
	return t->run->last.train_loss;
}

uint64_t run_pushes(const struct test_run *t)
{
	uint64_t n = 0;
	for (uint32_t w = 0; w < t->run->n_workers; w++)
		n += t->run->counters[w].pushes;
	return n;
}

struct mw_hist *run_staleness(const struct test_run *t)
{
	struct mw_err err = { 0 };
	struct mw_hist *h = mw_record_staleness(t->run, &err);
	assert_non_null(h);
	return h;
}

bool run_long(void)
{
	const char *v = getenv("MW_LONG");
	return v && *v && strcmp(v, "0");
}

/* --- protocols ----------------------------------------------------------------------------------------------------- */

/* The protocol for one worker, with its defaults. */
static struct mw_protocol *for_one(const struct mw_protocol_ops *ops, struct mw_graph **graph)
{
	struct mw_err err = { 0 };
	struct mw_protocol *p = NULL;
	*graph = NULL;
	if (ops->default_graph && mw_graph_new(ops->default_graph, 1, graph, &err))
		fail_msg("%s", err.msg);
	struct mw_protocol_config c = { .workers = 1, .nodes = 1, .graph = *graph };
	if (mw_protocol_new(ops, NULL, &c, &p, &err))
		fail_msg("%s", err.msg);
	return p;
}

#define ASK(type, expression)                         \
	struct mw_graph *graph;                       \
	struct mw_protocol *p = for_one(ops, &graph); \
	type answer = expression;                     \
	mw_protocol_free(p);                          \
	mw_graph_free(graph);                         \
	return answer

bool protocol_has_period(const struct mw_protocol_ops *ops)
{
	ASK(bool, p->mix_every > 1 && p->n_slots);
}

bool protocol_takes_access(const struct mw_protocol_ops *ops)
{
	ASK(bool, !p->versioned);
}

bool protocol_has_plans(const struct mw_protocol_ops *ops)
{
	ASK(bool, p->n_slots > 0);
}

/* ssp exchanges when its bound says so, not by steps, and refuses what would change that. */
bool protocol_takes_knobs(const struct mw_protocol_ops *ops, const char *knobs)
{
	if (!strstr(knobs, "mix-every") && !strstr(knobs, "mix-order"))
		return true;
	ASK(bool, p->due != MW_DUE_SSP);
}

enum mw_clock protocol_clock(const struct mw_protocol_ops *ops)
{
	ASK(enum mw_clock, p->clock);
}

/* --- threads ------------------------------------------------------------------------------------------------------- */

struct call {
	void (*fn)(void *arg, uint32_t i);
	void *arg;
	uint32_t i;
};

static void *run_call(void *p)
{
	struct call *c = p;
	c->fn(c->arg, c->i);
	return NULL;
}

void on_threads(uint32_t n, void (*fn)(void *arg, uint32_t i), void *arg)
{
	pthread_t *thread = calloc(n, sizeof(*thread));
	struct call *call = calloc(n, sizeof(*call));
	assert_true(thread && call);
	for (uint32_t i = 0; i < n; i++) {
		call[i] = (struct call){ fn, arg, i };
		assert_int_equal(pthread_create(&thread[i], NULL, run_call, &call[i]), 0);
	}
	for (uint32_t i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	free(call);
}

/* --- files --------------------------------------------------------------------------------------------------------- */

static char folder[300];

static void remove_folder(void)
{
	char command[400];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		fprintf(stderr, "%s is left over\n", folder);
}

const char *temporary_path(const char *name)
{
	static char path[8][600];
	static unsigned turn;
	const char *tmp = getenv("TMPDIR");
	if (!*folder) {
		snprintf(folder, sizeof(folder), "%.200s/mixwild-test-XXXXXX", tmp ? tmp : "/tmp");
		assert_non_null(mkdtemp(folder));
		atexit(remove_folder);
	}
	turn = (turn + 1) % 8;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
	return path[turn];
}

const char *temporary_file(const char *text)
{
	static unsigned number;
	char name[40];
	snprintf(name, sizeof(name), "file-%u", number++);
	const char *path = temporary_path(name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
	return path;
}
