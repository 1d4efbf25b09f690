/*
 * evaluate.c: loss, accuracy, consensus distance and gradient norm of the virtual average pi^T X, while workers rest.
 * Work is cut into the same parts whatever the number of threads, and the parts are added up in order, so that a value
 * does not depend on who computed it.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "run/run.h"
#include "run/theory_impl.h"

#define EVAL_BATCH 256

struct scoring {
	const struct mw_dataset *data;
	const struct mw_rows *rows; /* NULL: all */
	uint64_t n;
	struct mw_score part[MW_EVAL_PARTS];
};

static void average_part(struct mw_run *run, struct mw_bench *bench, uint32_t part, void *arg)
{
	size_t dim = run->replicas.dim, from = dim * part / MW_EVAL_PARTS,
	       to = dim * (part + 1) / MW_EVAL_PARTS;
	double *spread = arg;
	(void)bench;
	if (run->protocol->versioned) {
		uint32_t held = mw_leash_acquire(&run->leash);
		memcpy(run->average + from, mw_leash_x(&run->leash, held) + from,
			(to - from) * sizeof(float));
		mw_leash_release(&run->leash, held);
		spread[part] = 0;
		return;
	}
	mw_replicas_average(&run->replicas, run->protocol->pi, from, to, run->average);
	spread[part] = mw_replicas_spread(&run->replicas, run->protocol, run->average, from, to);
}

/* --- statistics of the model ---------------------------------------------------------------------------------------- */

enum { STREAM_STATISTICS = 0x57a7 };

/* Batch number `part`: rows of a fixed order of the training rows. */
static void measure_part(struct mw_run *run, struct mw_bench *bench, uint32_t part, void *arg)
{
	const struct mw_model *m = run->model;
	uint64_t row[EVAL_BATCH];
	struct mw_batch b = { .data = run->train, .row = row, .n = *(const uint32_t *)arg };
	struct mw_perm order;
	if (part >= m->stat_batches)
		return;
	mw_perm_init(&order, run->rows.n, run->seed, STREAM_STATISTICS);
	for (uint32_t i = 0; i < b.n; i++)
		row[i] = mw_rows_at(&run->rows, mw_perm_at(&order, ((uint64_t)part * b.n + i) % run->rows.n));
	m->ops->measure(m, bench->work, &b, run->average, run->stats_part + part * m->n_stats);
}

/* Statistics that belong to run->average, for all scores from now on. */
static void measure(struct mw_run *run)
{
	const struct mw_model *m = run->model;
	uint32_t n = run->batch < EVAL_BATCH ? run->batch : EVAL_BATCH;
	if (!m->n_stats)
		return;
	if (n > run->rows.n)
		n = (uint32_t)run->rows.n;
	run->ops->parts(run, measure_part, &n);
	m->ops->combine(m, run->stats_part, m->stat_batches, run->stats);
	for (uint32_t i = 0; i < run->n_benches; i++)
		m->ops->use_stats(m, run->bench[i].work, run->stats);
}

/* --- scores --------------------------------------------------------------------------------------------------------- */

static uint64_t row_at(const struct scoring *s, uint64_t i)
{
	return s->rows ? mw_rows_at(s->rows, i) : i;
}

static void score_part(struct mw_run *run, struct mw_bench *bench, uint32_t part, void *arg)
{
	struct scoring *s = arg;
	uint64_t row[EVAL_BATCH];
	uint64_t i = s->n * part / MW_EVAL_PARTS, end = s->n * (part + 1) / MW_EVAL_PARTS;
	s->part[part] = (struct mw_score){ 0 };
	while (i < end) {
		struct mw_batch b = {
			.data = s->data == run->train ? bench->data : s->data, .row = row, .n = 0
		};
		while (b.n < EVAL_BATCH && i < end)
			row[b.n++] = row_at(s, i++);
		run->model->ops->score(run->model, bench->work, &b, run->average, &s->part[part]);
	}
}

static void score(struct mw_run *run, struct scoring *s, double *loss, double *accuracy)
{
	struct mw_score sum = { 0 };
	*loss = *accuracy = NAN;
	if (!s->n)
		return;
	run->ops->parts(run, score_part, s);
	for (uint32_t p = 0; p < MW_EVAL_PARTS; p++) {
		sum.loss += s->part[p].loss;
		sum.correct += s->part[p].correct;
		sum.n += s->part[p].n;
	}
	*loss = sum.loss / (double)sum.n;
	if (run->model->ops->penalty)
		*loss += run->model->ops->penalty(run->model, run->average);
	if (run->model->ops->classifies)
		*accuracy = (double)sum.correct / (double)sum.n;
}

/*
 * Gradient of the batch's mean loss plus penalty at run->average into bench->g: dim floats, or the touched groups' (sparse).
 * Returns how many floats.
 */
static size_t gradient(struct mw_run *run, const struct mw_batch *b, const uint32_t **group)
{
	const struct mw_model *m = run->model;
	struct mw_bench *bench = &run->bench[0];
	*group = NULL;
	if (!m->sparse) {
		m->ops->grad(m, bench->work, b, run->average, bench->g);
		return m->dim;
	}
	size_t n = m->ops->touch(m, bench->work, b, group) * m->width;
	for (size_t g = 0; g < n; g++)
		bench->x[g] = run->average[(size_t)(*group)[g / m->width] * m->width + g % m->width];
	m->ops->grad(m, bench->work, b, bench->x, bench->g);
	return n;
}

void mw_gradient_mean(struct mw_run *run, const struct mw_rows *rows, uint64_t lo, uint64_t hi, double *sum)
{
	const struct mw_model *m = run->model;
	const float *part = run->bench[0].g;
	const uint32_t *group;
	uint64_t row[EVAL_BATCH];
	double all = (double)(hi - lo);
	uint32_t most = mw_bench_batch(run) < EVAL_BATCH ? mw_bench_batch(run) : EVAL_BATCH;
	memset(sum, 0, m->dim * sizeof(*sum));
	while (lo < hi) {
		struct mw_batch b = { .data = run->train, .row = row, .n = 0 };
		while (b.n < most && lo < hi)
			row[b.n++] = mw_rows_at(rows, lo++);
		size_t n = gradient(run, &b, &group);
		for (size_t g = 0; g < n; g++)
			sum[group ? (size_t)group[g / m->width] * m->width + g % m->width : g] +=
				b.n / all * (double)part[g];
	}
}

double mw_gradient_square(struct mw_run *run, uint64_t row)
{
	struct mw_batch b = { .data = run->train, .row = &row, .n = 1 };
	const uint32_t *group;
	double square = 0;
	size_t n = gradient(run, &b, &group);
	for (size_t g = 0; g < n; g++)
		square += (double)run->bench[0].g[g] * (double)run->bench[0].g[g];
	return square;
}

/* Norm of the gradient of the whole objective: one pass on one thread, the sum in double. */
static int gradient_norm(struct mw_run *run, uint64_t n, double *norm, struct mw_err *err)
{
	double *sum = mw_alloc_array(run->model->dim, sizeof(*sum), "the full gradient", err), square = 0;
	if (!sum)
		return err->code;
	mw_gradient_mean(run, &run->rows, 0, n, sum);
	for (size_t g = 0; g < run->model->trained; g++)
		square += sum[g] * sum[g];
	mw_free(sum);
	*norm = sqrt(square);
	return 0;
}

int mw_evaluate(struct mw_run *run, struct mw_evaluation *e, struct mw_err *err)
{
	double spread[MW_EVAL_PARTS], total = 0;
	uint64_t rows = run->rows.n, limit = (uint64_t)run->opt->eval_rows;
	struct scoring s = {
		.data = run->train, .rows = &run->rows, .n = limit && limit < rows ? limit : rows
	};

	*e = (struct mw_evaluation){ .seconds = run->train_s, .grad_norm = NAN };
	for (uint32_t w = 0; w < run->n_workers; w++) {
		e->steps += run->counters[w].steps;
		e->examples += run->counters[w].examples;
	}
	e->epoch = (double)e->examples / (double)run->rows.n;
	run->ops->parts(run, average_part, spread);
	for (uint32_t p = 0; p < MW_EVAL_PARTS; p++)
		total += spread[p];
	e->consensus = sqrt(total / run->n_workers);
	measure(run);
	score(run, &s, &e->train_loss, &e->train_accuracy);
	struct scoring val = { .data = run->train, .rows = &run->val, .n = run->val.n };
	score(run, &val, &e->val_loss, &e->val_accuracy);
	struct scoring test = { .data = run->test, .n = run->test ? run->test->rows : 0 };
	score(run, &test, &e->test_loss, &e->test_accuracy);
	if (run->opt->grad_norm)
		MW_TRY(gradient_norm(run, s.n, &e->grad_norm, err));
	return 0;
}
