/* scaling_calibrate.c: see scaling_calibrate.h. */
#include "run/scaling_calibrate.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/help.h"
#include "run/worker.h"

#define LINE_FLOATS 16 /* what caches hand on: 64 bytes */
#define ROWS_LOOKED 20000

/* --- from the data -------------------------------------------------------------------------------------------------- */

/* Rows first, first + stride, ... of those looked at. */
struct sample {
	const struct mw_run *run;
	uint64_t first, stride, rows;
};

/* The o-th element's column; the bias, where there is one, is an element more. */
static bool column_of(const struct mw_run *run, uint64_t row, uint64_t o, uint32_t *col)
{
	const struct mw_dataset *d = run->train;
	bool bias = o == d->row_ptr[row + 1];
	*col = bias ? (uint32_t)d->features : d->col[o];
	return !bias || run->model->linear->bias;
}

/* What rows touch: lines of one, the share of rows that touch the hottest line, and different lines of `every` rows. */
struct touched {
	double lines, q, of_every;
};

static void sum_up(struct touched *t, const uint32_t *seen, size_t n_lines, double rows, double every)
{
	*t = (struct touched){ 0 };
	for (size_t i = 0; i < n_lines && rows > 0; i++) {
		double p = seen[i] / rows;
		t->lines += p;
		t->q = fmax(t->q, p);
		t->of_every += p < 1 ? -expm1(every * log1p(-p)) : 1;
	}
}

/* place: where columns are, NULL: as in the data; those before `from` are left out. */
static int count_lines(const struct sample *s, const uint32_t *place, uint32_t from, double every,
	struct touched *t, struct mw_err *err)
{
	const uint64_t *at = s->run->train->row_ptr;
	size_t n_lines = s->run->model->dim / LINE_FLOATS + 1;
	uint64_t rows = 0;
	uint32_t *seen = mw_alloc_array(2 * n_lines, sizeof(*seen), "counts of lines", err),
		 *last = seen + n_lines, col;
	if (!seen)
		return err->code;
	for (uint64_t r = s->first; r < s->rows; r += s->stride, rows++)
		for (uint64_t o = at[r]; o <= at[r + 1]; o++) {
			if (!column_of(s->run, r, o, &col) || (place ? place[col] : col) < from)
				continue;
			size_t line = (place ? place[col] : col) / LINE_FLOATS;
			if (last[line] == r + 1)
				continue;
			last[line] = (uint32_t)(r + 1);
			seen[line]++;
		}
	sum_up(t, seen, n_lines, (double)rows, every);
	mw_free(seen);
	return 0;
}

/* place[col]: its rank by how many rows of the sample have it. */
static int rank_columns(const struct sample *s, uint32_t *place, struct mw_err *err)
{
	const uint64_t *at = s->run->train->row_ptr;
	uint32_t n = (uint32_t)s->run->model->dim, col;
	uint64_t *count = mw_alloc_array(n, sizeof(*count), "the columns' popularity", err);
	if (!count)
		return err->code;
	for (uint64_t r = s->first; r < s->rows; r += s->stride)
		for (uint64_t o = at[r]; o <= at[r + 1]; o++)
			if (column_of(s->run, r, o, &col))
				count[col]++;
	int code = mw_rank_by_count(count, n, s->rows, place, err);
	mw_free(count);
	return code;
}

/* Half of the rows say which columns are hot, the other half what is left of a row: one half alone would flatter. */
static int look_behind_hot(const struct mw_run *run, uint64_t rows, struct mw_scaling *s, struct mw_err *err)
{
	const struct sample rank = { run, 0, 2, rows }, look = { run, 1, 2, rows };
	uint32_t *place = mw_alloc_array(run->model->dim, sizeof(*place), "the columns' ranks", err);
	if (!place)
		return err->code;
	struct touched t = { 0 };
	int code = rank_columns(&rank, place, err);
	if (!code)
		code = count_lines(&look, place, s->hot_columns, 1, &t, err);
	s->cold_lines = t.lines;
	s->cold_q = t.q;
	mw_free(place);
	return code;
}

int mw_scaling_look(const struct mw_run *run, double every, struct mw_scaling *s, struct mw_err *err)
{
	const struct mw_dataset *d = run->train;
	const struct sample all = { run, 0, 1, d->rows < ROWS_LOOKED ? d->rows : ROWS_LOOKED };
	s->dim_lines = (double)(run->model->dim / LINE_FLOATS + 1);
	s->bytes = (double)d->nnz * 8 / (double)d->rows + 12;
	struct touched t = { 0 };
	MW_TRY(count_lines(&all, NULL, 0, every, &t, err));
	s->lines = t.lines;
	s->q = t.q;
	s->period_lines = t.of_every;
	return look_behind_hot(run, all.rows, s, err);
}

/* --- two threads ---------------------------------------------------------------------------------------------------- */

struct pair {
	struct mw_run *run;
	struct mw_barrier start;
	double seconds;
	float *x[2];    /* what each pushes to */
	double cost[2]; /* seconds an example, written by its thread before it ends */
	uint32_t n;     /* threads that work */
	/* Sync: whose move it is (latency, exchanges); release/acquire. */
	uint32_t turn MW_LINE_ALIGNED;
	uint32_t moves;
	void (*body)(struct pair *p, uint32_t i);
};

struct member {
	struct pair *pair;
	uint32_t i;
	pthread_t thread;
	struct mw_err err;
};

static void *member_main(void *arg)
{
	struct member *m = arg;
	mw_layout_bind_worker(m->pair->run->layout, m->i, &m->err);
	mw_barrier_wait(&m->pair->start);
	m->pair->body(m->pair, m->i);
	return NULL;
}

static int run_pair(struct pair *p, struct mw_err *err)
{
	struct member m[2] = { { .pair = p, .i = 0 }, { .pair = p, .i = 1 } };
	int code = 0;
	mw_barrier_init(&p->start, p->n, 2000);
	for (uint32_t i = 0; i < p->n && !code; i++)
		code = pthread_create(&m[i].thread, NULL, member_main, &m[i]);
	if (code)
		MW_FAIL(err, INTERNAL, "no thread could be created for the calibration: %s", strerror(code));
	for (uint32_t i = 0; i < p->n; i++)
		pthread_join(m[i].thread, NULL);
	for (uint32_t i = 0; i < p->n; i++)
		if (m[i].err.code)
			return mw_err_set(err, m[i].err.code, "%s", m[i].err.msg);
	return 0;
}

/* A worker that draws rows of its own order, and asks memory for what comes, as those of a run do. */
static void make_worker(struct mw_worker *w, struct mw_run *run, uint32_t i, uint32_t n)
{
	*w = (struct mw_worker){ .run = run, .data = run->train, .id = i };
	mw_order_init(&w->order, (enum mw_order_kind)run->opt->order, false, &run->rows, run->seed + 1, i, n);
}

/* The fused update path on rows in the run's order. */
static void update(struct pair *p, uint32_t i)
{
	struct mw_run *run = p->run;
	struct mw_worker w;
	struct mw_counters counters = { 0 };
	uint64_t done = 0;
	make_worker(&w, run, i, p->n);
	double start = mw_now_s(), now = start;
	for (; now < start + p->seconds; now = mw_now_s())
		for (int k = 0; k < 16; k++) {
			uint32_t n = mw_step_rows(&w);
			struct mw_burst b = { .data = run->train,
				.linear = run->model->linear,
				.x = p->x[i],
				.row = w.rows_buf + w.rows_at,
				.n = n,
				.ahead = w.rows_have - w.rows_at,
				.fetch = w.fetch,
				.fetch_lines = w.fetch_lines,
				.own = p->x[0] != p->x[1],
				.rate = 1e-4f,
				.weight = 1,
				.pushes = &counters.pushes,
				.examples = &counters.examples,
				.steps = &counters.steps };
			mw_burst_run(&b);
			w.rows_at += n;
			done += n;
		}
	p->cost[i] = (now - start) / (double)done;
}

static void wait_for_turn(struct pair *p, uint32_t i)
{
	while (__atomic_load_n(&p->turn, __ATOMIC_ACQUIRE) % 2 != i)
		mw_pause();
}

static void pass_turn(struct pair *p)
{
	__atomic_store_n(&p->turn, p->turn + 1, __ATOMIC_RELEASE);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* A word that goes to and fro; the median of many short stretches, since one that is interrupted says nothing. */
static void ping(struct pair *p, uint32_t i)
{
	enum { STRETCHES = 50 };
	double took[STRETCHES];
	for (int k = 0; k < STRETCHES; k++) {
		double start = mw_now_s();
		for (uint32_t m = 0; m < p->moves / STRETCHES; m++) {
			wait_for_turn(p, i);
			pass_turn(p);
		}
		took[k] = (mw_now_s() - start) / (2.0 * (p->moves / STRETCHES));
	}
	qsort(took, STRETCHES, sizeof(*took), by_value);
	p->cost[i] = took[STRETCHES / 2];
}

/* Long exchanges of numa: who waits helps, as in runs. */
static bool shared_out(const struct mw_run *run)
{
	return run->helps && run->replicas.dim >= MW_HELP_LEAST;
}

static void help_until_turn(struct pair *p, uint32_t i, struct mw_exec_scratch *scratch)
{
	struct mw_run *run = p->run;
	for (; __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE) % 2 != i; mw_pause())
		if (shared_out(run) && mw_help_is_open(&run->help))
			mw_help_join(&run->help, &run->executor, scratch);
}

static void exchange_once(struct mw_run *run, struct mw_exec_scratch *scratch, uint32_t i)
{
	if (shared_out(run))
		mw_help_plan(&run->help, &run->executor, scratch, i, 0, 1, 0, run->replicas.dim, NULL, 0);
	else
		mw_exec_plan(&run->executor, scratch, i, 0, 1, 0, run->replicas.dim, NULL, 0, false);
}

/* Exchanges in turn, so that each finds its lines where the other left them; a helper's time is counted as the opener's. */
static void exchange(struct pair *p, uint32_t i)
{
	struct mw_run *run = p->run;
	struct mw_exec_scratch scratch;
	struct mw_err err = { 0 };
	double spent = 0;
	bool ready = mw_exec_scratch_init(&scratch, &run->executor, &err) == 0;
	for (uint32_t k = 0; k < p->moves; k++) {
		if (ready)
			help_until_turn(p, i, &scratch);
		else
			wait_for_turn(p, i);
		double start = mw_now_s();
		if (ready)
			exchange_once(run, &scratch, i);
		spent += mw_now_s() - start;
		pass_turn(p);
	}
	mw_exec_scratch_fini(&scratch);
	p->cost[i] = spent / p->moves * (shared_out(run) ? 2 : 1);
}

static double mean_cost(const struct pair *p)
{
	return p->n == 2 ? 2 / (1 / p->cost[0] + 1 / p->cost[1]) : p->cost[0];
}

static int measure(
	struct pair *p, void (*body)(struct pair *, uint32_t), uint32_t n, double *cost, struct mw_err *err)
{
	p->n = n;
	p->body = body;
	p->turn = 0;
	MW_TRY(run_pair(p, err));
	*cost = mean_cost(p);
	return 0;
}

int mw_scaling_calibrate(
	struct mw_run *cached, struct mw_run *numa, double seconds, struct mw_scaling *s, struct mw_err *err)
{
	struct pair p = { .run = cached, .seconds = seconds, .moves = 20000 };
	float *own = cached->replicas.row[1].x, *other = cached->replicas.row[3].x;
	p.x[0] = own;
	p.x[1] = other;
	MW_TRY(measure(&p, ping, 2, &s->latency, err));
	MW_TRY(measure(&p, update, 1, &s->t1, err));
	MW_TRY(measure(&p, update, 2, &s->t2, err));
	p.x[1] = own;
	MW_TRY(measure(&p, update, 2, &s->s2, err));
	p.moves = 100;
	MW_TRY(measure(&p, exchange, 2, &s->merge, err));
	p.run = numa;
	return measure(&p, exchange, 2, &s->mean, err);
}
