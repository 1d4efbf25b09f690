/*
 * run_hot.c: cached --hot. Hot columns are merged as cached merges them, cold ones are one memory in all copies, and what is
 * written to files keeps the numbers that the data have.
 */
#include "run_util.h"

#include <math.h>

#include "run/checkpoint.h"
#include "run/model_file.h"
#include "run/setup_impl.h"

/* 6,000 columns are six pages: with one hot page, four are cold and the last one, with the bias, is private again. */
#define DATA    "data=synth:sparse,rows=300,features=6000,nnz=20 rate=0.5 seed=3"
#define HOT     1024
#define COLD_TO 5120

static float *copy_of(const float *x, size_t n)
{
	float *y = malloc(n * sizeof(*y));
	memcpy(y, x, n * sizeof(*y));
	return y;
}

/* The average in the order of the data as loaded; the caller frees it. */
static float *as_loaded(struct test_run *t, double *loss)
{
	*loss = run_loss(t);
	float *x = copy_of(t->run->average, t->run->model->dim);
	if (t->run->train->feature)
		mw_dataset_swap_features(t->run->train, t->run->model->width, true, t->run->average, x);
	return x;
}

/* --- columns ------------------------------------------------------------------------------------------------------- */

static void columns_are_numbered_by_popularity(void **state)
{
	(void)state;
	struct test_run plain, t;
	run_prepare(&plain, DATA " protocol=hogwild workers=1");
	run_prepare(
		&t, DATA " protocol=cached hot=0.5 workers=1 test=synth:sparse,rows=50,features=6000,nnz=20");
	const struct mw_dataset *a = plain.run->train, *b = t.run->train;
	uint64_t *count = calloc(a->features, sizeof(*count)), sum = 0;
	uint8_t *seen = calloc(a->features, 1);
	for (uint64_t i = 0; i < a->nnz; i++) {
		assert_int_equal(a->col[i], b->feature[b->col[i]]);
		assert_true(a->val[i] == b->val[i]);
		count[a->col[i]]++;
	}
	for (uint32_t c = 0; c < b->features; c++) {
		assert_int_equal(seen[b->feature[c]]++, 0);
		if (c)
			assert_true(count[b->feature[c]] <= count[b->feature[c - 1]]);
		sum += c < t.run->hot_columns ? count[b->feature[c]] : 0;
	}
	/* whole pages of them, and the fewest that hold half of the non-zeros */
	assert_int_equal(t.run->hot_columns % 1024, 0);
	assert_true((double)sum >= 0.5 * (double)a->nnz);
	assert_true(fabs(t.run->hot_share - (double)sum / (double)a->nnz) < 1e-12);
	uint64_t before = 0;
	for (uint32_t c = 0; c + 1024 < t.run->hot_columns; c++)
		before += count[b->feature[c]];
	assert_true((double)before < 0.5 * (double)a->nnz);
	free(count);
	free(seen);
	run_close(&plain);
	run_close(&t);
}

static void the_test_part_follows(void **state)
{
	(void)state;
	struct test_run plain, t;
	const char *test = "test=synth:sparse,rows=90,features=6000,nnz=20 epochs=2 workers=1";
	run_open(&plain, DATA " protocol=sequential %s", test);
	run_open(&t, DATA " protocol=cached hot=%d %s", HOT, test);
	run_whole(&plain);
	run_whole(&t);
	assert_true(run_loss(&plain) == run_loss(&t));
	assert_true(isfinite(plain.run->last.test_loss));
	assert_true(plain.run->last.test_loss == t.run->last.test_loss);
	run_close(&plain);
	run_close(&t);
}

/* --- one worker ------------------------------------------------------------------------------------------------------ */

static const char *const kinds[] = {
	"model=logistic",
	"model=logistic bias=no",
	"model=hinge optimizer=amsgrad rate=0.01",
	"model=logistic batch=4 l2=0.01",
	"model=softmax",
	"model=logistic tally=yes access=atomic",
};

/* Rows of three classes: 6,000 columns, the first ones more popular. */
static const char *three_classes(void)
{
	static char text[60000];
	size_t at = 0;
	for (unsigned r = 0; r < 150; r++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%u", r % 3);
		for (unsigned k = 1, c = r % 3; k < 20 && c < 5900;
			k++, c += 1 + (r * k * 7919 + k * k) % (5 * k * k))
			at += (size_t)snprintf(text + at, sizeof(text) - at, " %u:%g", c + 1, 1.0 / k);
		at += (size_t)snprintf(text + at, sizeof(text) - at, r ? "\n" : " 6000:0.1\n");
	}
	assert_in_range(at, 1000, sizeof(text) - 100);
	return temporary_file(text);
}

static void a_lone_worker_has_the_bits_of_a_sequential_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		for (int sim = 0; sim < 2; sim++) {
			struct test_run t;
			double loss[2];
			char more[300] = "engine=threads";
			if (sim)
				snprintf(more, sizeof(more), "engine=sim");
			if (strstr(kinds[i], "softmax"))
				snprintf(more + strlen(more), 250, " data=%s", three_classes());
			run_open(&t, DATA " epochs=3 %s %s workers=1 protocol=hogwild", kinds[i], more);
			run_whole(&t);
			float *want = as_loaded(&t, &loss[0]);
			size_t dim = t.run->model->dim;
			run_close(&t);
			run_open(&t, DATA " epochs=3 %s %s workers=1 protocol=cached hot=%d mix-every=7",
				kinds[i], more, HOT);
			assert_true(t.run->replicas.cold_to > t.run->replicas.cold_from);
			run_whole(&t);
			float *got = as_loaded(&t, &loss[1]);
			assert_true(loss[0] < 0.69 * 2);
			/* the penalty's sum has another order */
			if (fabs(loss[0] - loss[1]) > 1e-9 || memcmp(want, got, dim * sizeof(float)))
				fail_msg("%s %s: %.9g, not %.9g", kinds[i], more, loss[1], loss[0]);
			free(want);
			free(got);
			run_close(&t);
		}
}

/* --- several workers ------------------------------------------------------------------------------------------------- */

enum { WORKERS = 3, EVERY = 5, DIM = 6001 };

/* What should happen, with doubles: a server, a copy and a base a worker; cold coordinates are the server's. */
struct model {
	double server[DIM], copy[WORKERS][DIM], base[WORKERS][DIM];
};

static double *cell(struct model *m, uint32_t w, uint32_t j)
{
	return j >= HOT && j < COLD_TO ? &m->server[j] : &m->copy[w][j];
}

static double coefficient(struct model *m, uint32_t w, const struct mw_dataset *d, uint64_t row)
{
	double z = *cell(m, w, DIM - 1);
	for (uint64_t o = d->row_ptr[row]; o < d->row_ptr[row + 1]; o++)
		z += *cell(m, w, d->col[o]) * (double)d->val[o];
	double y = (double)d->y[row];
	return 0.5 * y / (1 + exp(y * z));
}

static void push(struct model *m, uint32_t w, const struct mw_dataset *d, uint64_t row, double a)
{
	*cell(m, w, DIM - 1) += a;
	for (uint64_t o = d->row_ptr[row]; o < d->row_ptr[row + 1]; o++)
		*cell(m, w, d->col[o]) += a * (double)d->val[o];
}

static void merge(struct model *m, uint32_t w)
{
	for (uint32_t j = 0; j < DIM; j++) {
		if (j >= HOT && j < COLD_TO)
			continue;
		m->server[j] += m->copy[w][j] - m->base[w][j];
		m->copy[w][j] = m->base[w][j] = m->server[j];
	}
}

static void compare(struct model *m, const struct test_run *t)
{
	const struct mw_replica *row = t->run->replicas.row;
	for (uint32_t j = 0; j < DIM; j++) {
		assert_true(fabs(m->server[j] - (double)row[0].x[j]) < 1e-5);
		for (uint32_t w = 0; w < WORKERS; w++)
			assert_true(fabs(*cell(m, w, j) - (double)row[1 + 2 * w].x[j]) < 1e-5);
	}
}

static void hot_columns_wait_for_merges_and_cold_ones_do_not(void **state)
{
	(void)state;
	static struct model m;
	struct test_run t;
	struct mw_order order[WORKERS];
	uint64_t row[WORKERS];
	double a[WORKERS];
	run_open(&t, DATA " protocol=cached hot=%d workers=%d engine=sim activation=rr mix-every=%d epochs=9",
		HOT, WORKERS, EVERY);
	struct mw_run *run = t.run;
	const struct mw_dataset *d = run->train;
	assert_int_equal(run->model->dim, DIM);
	assert_int_equal(run->replicas.cold_from, HOT);
	assert_int_equal(run->replicas.cold_to, COLD_TO);
	for (uint32_t w = 0; w < WORKERS; w++) {
		mw_order_init(&order[w], (enum mw_order_kind)run->opt->order, false, &run->rows, run->seed, w,
			WORKERS);
		mw_order_draw(&order[w], &row[w], 1);
		a[w] = coefficient(&m, w, d, row[w]);
	}
	uint32_t stale = 0;
	for (uint32_t k = 0; k < 600; k++) {
		uint32_t w = k % WORKERS;
		run_until(&t, k + 1);
		push(&m, w, d, row[w], a[w]);
		if ((k / WORKERS + 1) % EVERY == 0)
			merge(&m, w);
		mw_order_draw(&order[w], &row[w], 1);
		a[w] = coefficient(&m, w, d, row[w]); /* its view is taken when its last step has ended */
		compare(&m, &t);
		stale += m.server[0] != m.copy[w][0];
	}
	assert_in_range(stale, 300, 599); /* copies did differ meanwhile */
	run_close(&t);
}

/*
 * A gradient that doesn't depend on the parameters (hinge, margins far below 1), so that what all pushes add up to is known
 * whatever their order is: none may be lost by compare-and-swap on cold columns and locked merges of hot ones.
 */
static void threads_lose_nothing(void **state)
{
	(void)state;
	static double want[DIM];
	for (int i = 0; i < 2; i++) {
		struct test_run t;
		run_open(&t,
			DATA " rate=1e-4 model=hinge epochs=40 protocol=cached hot=%d mix-every=3 "
			     "access=atomic order=random "
			     "workers=3 oversubscribe=yes %s",
			HOT, i ? "batch=2" : "");
		const struct mw_dataset *d = t.run->train;
		memset(want, 0, sizeof(want));
		for (uint64_t r = 0; r < d->rows; r++) {
			double a = 40 * 1e-4 * (double)d->y[r] / (i ? 2 : 1);
			want[DIM - 1] += a;
			for (uint64_t o = d->row_ptr[r]; o < d->row_ptr[r + 1]; o++)
				want[d->col[o]] += a * (double)d->val[o];
		}
		run_whole(&t);
		run_loss(&t);
		double most = 0;
		for (uint32_t j = 0; j < DIM; j++) {
			most = fmax(most, fabs(want[j]));
			/* a lost update is 1e-4 of the bias, and some 2e-5 of a column */
			if (fabs(want[j] - (double)t.run->average[j]) > 2e-6 + 5e-5 * fabs(want[j]))
				fail_msg("column %u: %g, not %g", j, (double)t.run->average[j], want[j]);
		}
		assert_true(most > 1e-2);
		run_close(&t);
	}
}

static void racy_threads_train(void **state)
{
	(void)state;
	struct test_run t;
	run_open(&t, DATA " protocol=cached hot=%d workers=3 oversubscribe=yes epochs=6 mix-every=8", HOT);
	assert_true(t.run->bursts);
	assert_int_equal(t.run->access, MW_ACCESS_RACY);
	run_whole(&t);
	assert_true(run_loss(&t) < 0.6);
	for (uint32_t i = 1; i < t.run->replicas.n; i++)
		assert_memory_equal(t.run->replicas.row[0].x + HOT, t.run->replicas.row[i].x + HOT,
			(COLD_TO - HOT) * sizeof(float));
	run_close(&t);
}

/* --- files ----------------------------------------------------------------------------------------------------------- */

static void models_are_written_and_read_as_loaded(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	double loss, ignored;
	char path[300];
	snprintf(path, sizeof(path), "%s", temporary_path("model.safetensors"));
	run_open(&t, DATA " protocol=cached hot=%d workers=2 engine=sim epochs=4", HOT);
	run_whole(&t);
	float *want = as_loaded(&t, &loss), *got = calloc(DIM, sizeof(*got));
	json_t *about = json_object();
	assert_int_equal(mw_setup_save(t.run, path, about, &err), 0);
	json_decref(about);
	assert_int_equal(mw_model_file_load(path, t.run->model, got, NULL, &err), 0);
	assert_memory_equal(want, got, DIM * sizeof(float));
	run_close(&t);
	static const char *const others[] = { "protocol=cached hot=1024 workers=2",
		"protocol=hogwild workers=1" };
	for (int i = 0; i < 2; i++) {
		run_open(&t, DATA " %s engine=sim init=%s", others[i], path);
		free(got);
		got = as_loaded(&t, &ignored);
		assert_memory_equal(want, got, DIM * sizeof(float));
		assert_true(fabs(ignored - loss) < 1e-12);
		run_close(&t);
	}
	free(want);
	free(got);
}

static void a_resumed_run_has_the_same_bits(void **state)
{
	(void)state;
	static const char options[] = DATA " protocol=cached workers=1 engine=sim epochs=4 mix-every=7";
	struct test_run t;
	struct mw_err err = { 0 };
	char dir[300];
	run_open(&t, "%s hot=%d", options, HOT);
	run_whole(&t);
	run_loss(&t);
	float *want = copy_of(t.run->average, DIM);
	uint64_t half = t.run->total_steps / 2 - 3; /* between two merges */
	run_close(&t);
	run_open(&t, "%s hot=%d", options, HOT);
	snprintf(dir, sizeof(dir), "%s", temporary_path("."));
	t.run->run_dir = strdup(dir);
	run_until(&t, half);
	assert_int_equal(mw_checkpoint_save(t.run, &err), 0);
	run_close(&t);
	run_open(&t, "%s", options); /* columns in another order */
	t.run->run_dir = strdup(dir);
	assert_int_equal(mw_checkpoint_load(t.run, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--hot 1024"));
	run_close(&t);
	run_open(&t, "%s hot=%d", options, HOT);
	t.run->run_dir = strdup(dir);
	err = (struct mw_err){ 0 };
	assert_int_equal(mw_checkpoint_load(t.run, &err), 0);
	run_whole(&t);
	run_loss(&t);
	assert_memory_equal(want, t.run->average, DIM * sizeof(float));
	free(want);
	run_close(&t);
}

/* --- options --------------------------------------------------------------------------------------------------------- */

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	static const char *const bad[][2] = {
		{ "data=synth:dense,rows=50,features=9", "has all columns" },
		{ DATA " access=locked", "--access racy or atomic" },
		{ DATA " access=seqlock", "--access racy or atomic" },
		{ DATA " mix-fraction=0.5", "--mix-fraction" },
	};
	struct mw_err err;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(
			run_error(&err, "%s protocol=cached hot=100 workers=2 oversubscribe=yes", bad[i][0]),
			MW_EUSAGE);
		if (!strstr(err.msg, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], err.msg);
	}
}

static void auto_takes_the_option_for_cached(void **state)
{
	(void)state;
	struct test_run t;
	run_prepare(&t, DATA " hot=500 workers=2 oversubscribe=yes l2=0.1");
	assert_string_equal(t.run->protocol->ops->name, "cached");
	assert_int_equal(t.run->hot_columns, HOT); /* a page of them */
	run_close(&t);
	run_prepare(&t, DATA " protocol=cached hot=5500 workers=2 oversubscribe=yes");
	assert_int_equal(t.run->hot_columns, 6000); /* no whole page is left: a plain copy of all */
	assert_int_equal(t.run->replicas.n_mapped, 0);
	run_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_numbered_by_popularity),
		cmocka_unit_test(the_test_part_follows),
		cmocka_unit_test(a_lone_worker_has_the_bits_of_a_sequential_run),
		cmocka_unit_test(hot_columns_wait_for_merges_and_cold_ones_do_not),
		cmocka_unit_test(threads_lose_nothing),
		cmocka_unit_test(racy_threads_train),
		cmocka_unit_test(models_are_written_and_read_as_loaded),
		cmocka_unit_test(a_resumed_run_has_the_same_bits),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(auto_takes_the_option_for_cached),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
