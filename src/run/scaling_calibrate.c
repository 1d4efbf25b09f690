/* scaling_calibrate.c: see scaling_calibrate.h. */
#include "run/scaling_calibrate.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define LINE_FLOATS 16 /* what caches hand on: 64 bytes */
#define ROWS_LOOKED 20000
#define BLOCK_ROWS  64

/* --- from the data -------------------------------------------------------------------------------------------------- */

void mw_scaling_look(const struct mw_run *run, struct mw_scaling *s, struct mw_err *err)
{
	const struct mw_dataset *d = run->train;
	size_t lines = run->model->dim / LINE_FLOATS + 1;
	uint64_t rows = d->rows < ROWS_LOOKED ? d->rows : ROWS_LOOKED, touched = 0, hottest = 0;
	uint32_t *seen = mw_alloc_array(lines, sizeof(*seen), "counts of lines", err), *last = NULL;
	if (seen)
		last = mw_alloc_array(lines, sizeof(*last), "counts of lines", err);
	for (uint64_t r = 0; last && r < rows; r++)
		for (uint64_t o = d->row_ptr[r]; o <= d->row_ptr[r + 1]; o++) {
			/* the bias, where there is one, is an element more */
			bool bias = o == d->row_ptr[r + 1];
			if (bias && !run->model->linear->bias)
				continue;
			size_t line = (bias ? d->features : d->col[o]) / LINE_FLOATS;
			if (last[line] == r + 1)
				continue;
			last[line] = (uint32_t)(r + 1);
			touched++;
			hottest = ++seen[line] > hottest ? seen[line] : hottest;
		}
	s->lines = (double)touched / (double)rows;
	s->q = (double)hottest / (double)rows;
	s->dim_lines = (double)lines;
	s->bytes = (double)d->nnz * 8 / (double)d->rows + 12;
	mw_free(seen);
	mw_free(last);
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

/* The fused update path on rows in the run's order. */
static void update(struct pair *p, uint32_t i)
{
	struct mw_run *run = p->run;
	struct mw_order order;
	struct mw_counters counters = { 0 };
	uint64_t rows[BLOCK_ROWS], done = 0;
	mw_order_init(&order, (enum mw_order_kind)run->opt->order, false, &run->rows, run->seed + 1, i, 2);
	double start = mw_now_s(), now = start;
	for (; now < start + p->seconds; now = mw_now_s(), done += 16 * BLOCK_ROWS)
		for (int k = 0; k < 16; k++) {
			mw_order_draw(&order, rows, BLOCK_ROWS);
			struct mw_burst b = { .data = run->train,
				.linear = run->model->linear,
				.x = p->x[i],
				.row = rows,
				.n = BLOCK_ROWS,
				.ahead = BLOCK_ROWS,
				.own = p->x[0] != p->x[1],
				.rate = 1e-4f,
				.weight = 1,
				.pushes = &counters.pushes,
				.examples = &counters.examples,
				.steps = &counters.steps };
			mw_burst_run(&b);
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

/* Exchanges in turn, so that each finds its lines where the other left them; only its own time counts. */
static void exchange(struct pair *p, uint32_t i)
{
	struct mw_run *run = p->run;
	struct mw_exec_scratch scratch;
	struct mw_err err = { 0 };
	double spent = 0;
	bool ready = mw_exec_scratch_init(&scratch, &run->executor, &err) == 0;
	for (uint32_t k = 0; k < p->moves; k++) {
		wait_for_turn(p, i);
		double start = mw_now_s();
		if (ready)
			mw_exec_plan(&run->executor, &scratch, i, 0, 1, 0, run->replicas.dim, NULL, 0, false);
		spent += mw_now_s() - start;
		pass_turn(p);
	}
	mw_exec_scratch_fini(&scratch);
	p->cost[i] = spent / p->moves;
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
