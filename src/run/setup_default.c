/*
 * setup_default.c: --protocol auto. Several threads on one machine either share a replica (hogwild), and wait for the cache
 * lines that others wrote, or keep copies and merge what they added (cached), and wait for merges. Which is faster follows
 * from counts of the data; how rare merges may be, from the step size: see mw_choose_sharing and experiments/default.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/progress.h"
#include "run/setup_impl.h"
#include "run/theory.h"
#include "run/theory_impl.h"

/* Measured by experiments/default on two cores of an AMD EPYC; what matters is their ratio. */
#define LINE_NS         10.0   /* a step of one of two workers, for each line that the other writes too */
#define MERGE_NS        0.5    /* a merge, a parameter */
#define MERGE_BASE_NS   4000.0 /* and once */
#define SPARSE_VALUE_NS 1.7    /* a step, a parameter that it reads and writes at an index */
#define DENSE_VALUE_NS  0.08   /* a parameter and row of a dense batch */
/* Merging more rarely than costs this share of the time, or than every PERIOD_MAX steps, gains little and may cost loss. */
#define MERGE_SHARE 0.05
#define PERIOD_MAX  2048.0
/* Of the limit of stability; and what rounding a period up to whole steps may take of it. */
#define STABLE_SHARE 0.8
#define STABLE_WHOLE 0.85
/* Where the curvature isn't known: what others add unseen may be this share of an epoch. */
#define UNKNOWN_SPARSE (1 / 64.0)
#define UNKNOWN_DENSE  (1 / 256.0)
/*
 * A net's curvature times the rate, whatever the rate is: training makes the loss steeper until steps are about to overshoot,
 * which they do at 2 (J. Cohen and others, "Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability",
 * ICLR 2021).
 */
#define NET_STEP    2.0
#define LINE_FLOATS 16
#define HOT_LINES   16384 /* 1 MB: what the second-level cache of a core keeps */
#define SAMPLE_ROWS 8192
#define SMOOTH_WORK 3e7 /* operations: milliseconds */
/* All copies together may take this share of the machine's memory. */
#define MEMORY_SHARE 0.125

/* --- the rule ------------------------------------------------------------------------------------------------------ */

/*
 * The h = rate * curvature * steps between merges that takes this share of the limit of stability. Between two merges of its
 * own, a worker goes the share a = 1 - exp(-h) of the way from where it began to the optimum, and so do n - 1 others from
 * about the same place; all of it is added up: e(k+1) = e(k) - a e(k-n+1). That is stable for a < 2 sin(pi / (2 (2n - 1)))
 * (n = 2: 1, 3: 0.62, 8: 0.21, 64: 0.025).
 */
static double reach_limit(uint32_t n, double share)
{
	return -log(1 - share * 2 * sin(M_PI / (2 * (2 * (double)n - 1))));
}

/* Steps between merges are whole: up, where that stays clear of the limit. 1.9 steps as one would merge twice as often. */
static double whole_steps(const struct mw_sharing *s, double steps)
{
	double up = ceil(steps);
	bool clear = isfinite(s->curvature) && up * s->curvature <= reach_limit(s->workers, STABLE_WHOLE);
	return fmax(1, clear ? up : floor(steps));
}

/*
 * Do all of them, each waiting for others at every step, get no more done than one that doesn't wait? For sparse steps only:
 * how long a dense one takes isn't known well enough (classes, batches and nets compute more a parameter).
 */
static bool one_suffices(const struct mw_sharing *s, double step_ns, double wait_ns)
{
	return s->sparse && step_ns + wait_ns > s->workers * step_ns;
}

void mw_choose_sharing(const struct mw_sharing *s, struct mw_choice *c)
{
	double n = s->workers, merge_ns = MERGE_BASE_NS + MERGE_NS * s->dim;
	double step_ns = s->sparse ? SPARSE_VALUE_NS * s->touched : DENSE_VALUE_NS * s->touched * s->batch;
	double cheap = merge_ns / (MERGE_SHARE * step_ns);
	double unknown = s->epoch_steps * n / (n - 1) * (s->sparse ? UNKNOWN_SPARSE : UNKNOWN_DENSE);
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	c->steps_max =
		isfinite(s->curvature) ? reach_limit(s->workers, STABLE_SHARE) / s->curvature : unknown;
	double every = fmin(fmin(c->steps_max, cheap), fmin(PERIOD_MAX, s->epoch_steps / 8));
	every = whole_steps(s, every);
	c->shared_ns = LINE_NS * 2 * (n - 1) / n * s->lines * s->hot;
	c->merge_ns = merge_ns / every;
	bool room = (2 * n + 1) * s->dim * sizeof(float) < MEMORY_SHARE * memory;
	c->protocol = room && c->merge_ns < c->shared_ns ? "cached" : "hogwild";
	c->mix_every = !strcmp(c->protocol, "cached") ? (int64_t)every : 0;
	c->step_ns = step_ns;
	c->one = one_suffices(s, step_ns, fmin(c->merge_ns, c->shared_ns));
}

/* --- what the data say --------------------------------------------------------------------------------------------- */

struct touched {
	double values, lines; /* sums over the rows looked at */
	double rows;
};

/* Lines of the parameter array that row r touches, in increasing order, counted if count is there; features are in order. */
static void look_at_row(const struct mw_run *run, uint64_t r, struct touched *t, uint32_t *count)
{
	const struct mw_dataset *d = run->train;
	uint64_t width = run->model->width, last = UINT64_MAX;
	for (uint64_t o = d->row_ptr[r]; o < d->row_ptr[r + 1]; o++) {
		uint64_t from = d->col[o] * width / LINE_FLOATS,
			 to = (d->col[o] * width + width - 1) / LINE_FLOATS;
		t->values += (double)width;
		for (uint64_t line = from == last ? from + 1 : from; line <= to; line++) {
			t->lines++;
			if (count)
				count[line]++;
		}
		last = to;
	}
	t->rows++;
}

static int descending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x > y ? -1 : x < y;
}

/* The least count that the hottest HOT_LINES lines have all more than. */
static int hot_count(const uint32_t *count, size_t n, uint32_t *least, struct mw_err *err)
{
	uint32_t *sorted = mw_alloc_array(n, sizeof(*sorted), "the columns' popularity", err);
	if (!sorted)
		return err->code;
	memcpy(sorted, count, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), descending);
	*least = sorted[HOT_LINES];
	mw_free(sorted);
	return 0;
}

/* Half of the sample says which lines are hot, the other half what share of a row they are: one half alone would flatter. */
static int popularity(
	const struct mw_run *run, uint64_t stride, size_t n_lines, double *share, struct mw_err *err)
{
	const struct mw_dataset *d = run->train;
	uint64_t width = run->model->width, hot = 0, all = 0;
	struct touched ignored = { 0 };
	uint32_t least = 0;
	uint32_t *count = mw_alloc_array(n_lines, sizeof(*count), "the columns' popularity", err);
	if (!count)
		return err->code;
	for (uint64_t i = 0; i < run->rows.n; i += 2 * stride)
		look_at_row(run, mw_rows_at(&run->rows, i), &ignored, count);
	int code = hot_count(count, n_lines, &least, err);
	for (uint64_t i = stride; i < run->rows.n && !code; i += 2 * stride) {
		uint64_t r = mw_rows_at(&run->rows, i);
		for (uint64_t o = d->row_ptr[r]; o < d->row_ptr[r + 1]; o++, all++)
			hot += count[d->col[o] * width / LINE_FLOATS] > least;
	}
	*share = all ? (double)hot / (double)all : 0;
	mw_free(count);
	return code;
}

static int look_at_sparse(struct mw_run *run, struct mw_sharing *s, struct mw_err *err)
{
	uint64_t stride = run->rows.n > SAMPLE_ROWS ? run->rows.n / SAMPLE_ROWS : 1;
	size_t n_lines = run->model->dim / LINE_FLOATS + 1;
	struct touched t = { 0 };
	for (uint64_t i = 0; i < run->rows.n; i += stride)
		look_at_row(run, mw_rows_at(&run->rows, i), &t, NULL);
	double batch = run->opt->batch;
	s->touched = fmax(1, fmin(t.values / t.rows * batch, s->dim));
	s->lines = fmin(t.lines / t.rows * batch, (double)n_lines);
	return n_lines > HOT_LINES ? popularity(run, stride, n_lines, &s->hot, err) : 0;
}

/*
 * A step in units of 1 / curvature: of plain SGD on a linear model from the data. Optimizers with a scale of their own have
 * none there that one could name.
 */
static int look_at_steps(struct mw_run *run, struct mw_sharing *s, struct mw_err *err)
{
	double momentum = mw_theory_option(run, "momentum"), curvature = NAN;
	s->curvature = run->model->heavy ? NET_STEP : NAN;
	if (run->model->heavy || strcmp(run->optim->ops->name, "sgd"))
		return 0;
	MW_TRY(mw_typical_curvature(run, SMOOTH_WORK, &curvature, err));
	s->curvature = (double)mw_rate_begin(run->rate, run->opt->epochs) * curvature /
		       (1 - (momentum > 0 ? fmin(momentum, 0.999) : 0));
	return 0;
}

static int look(struct mw_run *run, struct mw_sharing *s, struct mw_err *err)
{
	double dim = (double)run->model->dim;
	*s = (struct mw_sharing){ .workers = run->n_workers,
		.dim = dim,
		.batch = run->opt->batch,
		.touched = dim,
		.lines = ceil(dim / LINE_FLOATS),
		.hot = fmin(1, HOT_LINES * LINE_FLOATS / dim),
		.epoch_steps = ceil((double)run->rows.n / ((double)run->opt->batch * run->n_workers)) };
	if (run->model->sparse && run->train->kind == MW_X_CSR) {
		s->sparse = true;
		s->hot = 1;
		MW_TRY(look_at_sparse(run, s, err));
	}
	return look_at_steps(run, s, err);
}

/* --- options that decide before the data do ------------------------------------------------------------------------ */

static const char *first_set(const struct mw_run *run, const char *const *names)
{
	for (; *names; names++)
		if (mw_options_is_set(&run->job->set, *names))
			return *names;
	return NULL;
}

int mw_protocol_of_options(struct mw_run *run, bool *known, struct mw_err *err)
{
	/* Knobs of an exchange; without one they would mean nothing. */
	static const char *const exchange[] = { "hot", "mix-every", "slack", "mix-fraction", "mix-blocks",
		"mix-order", "mix-form", "mix-precision", "mix-time", "target-tmix", NULL };
	*known = strcmp(run->opt->protocol, "auto") != 0;
	if (*known)
		return 0;
	if (run->opt->graph)
		MW_FAIL(err, USAGE, "--graph: name the protocol that it is for: sync-gossip or async-gossip");
	const char *name = first_set(run, exchange);
	if (!name)
		return 0;
	*known = true;
	snprintf(run->why, sizeof(run->why), "--%s is about exchanges", name);
	return mw_job_choose(run->job, "protocol", "cached", err);
}

/* What else is asked for says which it must be; NULL: nothing does. */
static const char *asked_for(const struct mw_run *run, char *why, size_t size)
{
	/* What is studied with these is one replica that all write. */
	static const char *const shared[] = { "staleness", "straggler", "stale-policy", "timeline", "access",
		"activation", "gate", "state", "tally", "trace", "replay", NULL };
	const char *name;
	if (run->n_workers == 1) {
		snprintf(why, size, "one worker");
		return "sequential";
	}
	if (run->opt->engine == MW_ENGINE_SIM) {
		snprintf(why, size, "virtual workers don't wait for cache lines");
		return "hogwild";
	}
	name = first_set(run, shared);
	if (!name && run->model->heavy && strcmp(run->model->ops->name, "mlp")) {
		snprintf(why, size, "a convolution takes far longer than its parameters' way between cores");
		return "hogwild";
	}
	if (name)
		snprintf(why, size, "--%s is about a shared replica", name);
	return name ? "hogwild" : NULL;
}

static void say_why(const struct mw_sharing *s, const struct mw_choice *c, char *why, size_t size)
{
	char most[80] = "";
	if (c->mix_every && isfinite(s->curvature))
		snprintf(most, sizeof(most), "; rate x curvature %.3g allows %.0f steps between merges",
			s->curvature, c->steps_max);
	snprintf(why, size,
		"a step touches %.3g %% of the parameters, %.3g %% of that hot, and takes %.0f ns: sharing "
		"adds %.0f, merging %.0f%s%s",
		100 * s->touched / s->dim, 100 * s->hot, c->step_ns, c->shared_ns, c->merge_ns, most,
		!c->one                              ? ""
		: !strcmp(c->protocol, "sequential") ? ", so several gain nothing"
						     : "; --workers 1 would do as well or better");
}

/*
 * May --workers auto become one? Not where somebody allotted the CPUs, workers have rows of their own, or their mixing is what is
 * asked about.
 */
static bool workers_are_free(const struct mw_run *run)
{
	return !strcmp(run->opt->workers, "auto") && !run->layout->allotted && !run->shards.row &&
	       run->opt->data_place != MW_DATA_SHARD && run->opt->estimate == MW_ESTIMATE_NONE;
}

int mw_default_protocol(struct mw_run *run, struct mw_err *err)
{
	struct mw_sharing s;
	struct mw_choice c = { .protocol = asked_for(run, run->why, sizeof(run->why)) };
	char every[32];
	if (!c.protocol) {
		MW_TRY(look(run, &s, err));
		mw_choose_sharing(&s, &c);
		if (c.one && workers_are_free(run)) {
			c.protocol = "sequential";
			c.mix_every = 0;
			MW_TRY(mw_options_set(&run->job->set, "workers", "1", NULL, err));
			MW_TRY(mw_setup_layout(run, err));
		}
		say_why(&s, &c, run->why, sizeof(run->why));
	}
	if (c.mix_every) {
		snprintf(every, sizeof(every), "%" PRId64, c.mix_every);
		MW_TRY(mw_options_set(&run->job->set, "mix-every", every, NULL, err));
		run->knobs.mix_every = c.mix_every;
	}
	return mw_job_choose(run->job, "protocol", c.protocol, err);
}
