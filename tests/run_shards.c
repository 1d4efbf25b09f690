/*
 * run_shards.c: rows that belong to one worker for good: who gets which labels, equal parts, both engines; and the options
 * that act on pictures before the gradient, on the gradient before the optimizer, and the rate of its step.
 */
#include "run_util.h"

#include <math.h>

#include "base/mem.h"

/* A data set of labels only. */
static struct mw_dataset labels_only(float *y, uint64_t rows, uint32_t classes)
{
	static char name[] = "test";
	for (uint64_t i = 0; i < rows;
		i++) /* all classes alike where classes divide rows, in a mixed order */
		y[i] = (float)((i * 7 + i / classes) % classes);
	if (classes == 2)
		for (uint64_t i = 0; i < rows; i++)
			y[i] = i % 2 ? 1 : -1;
	return (struct mw_dataset){
		.name = name, .kind = MW_X_DENSE, .rows = rows, .y = y, .classes = classes
	};
}

static void deal(struct mw_shards *s, const char *spec, const struct mw_dataset *d,
	const struct mw_rows *rows, uint64_t seed, uint32_t workers)
{
	struct mw_err err = { 0 };
	struct mw_rows all = { .n = d->rows };
	if (mw_shards_parse(spec, s, &err) || mw_shards_deal(s, d, rows ? rows : &all, seed, workers, &err))
		fail_msg("%s", err.msg);
}

static const char *const specs[] = { "iid", "label", "dirichlet:0.01", "dirichlet:0.3", "dirichlet:1000" };

/* Every row once, parts equal within one row, a function of the seed. */
static void parts_are_equal_and_disjoint(void **state)
{
	static float y[1003];
	static const uint32_t classes[] = { 10, 2, 3 }, workers[] = { 1, 3, 16, 1003 };
	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++)
		for (int c = 0; c < 3; c++)
			for (int k = 0; k < 4; k++) {
				struct mw_dataset d = labels_only(y, 1003, classes[c]);
				struct mw_shards s, again, other;
				static int count[1003];
				uint64_t differ = 0;
				deal(&s, specs[i], &d, NULL, 5, workers[k]);
				deal(&again, specs[i], &d, NULL, 5, workers[k]);
				deal(&other, specs[i], &d, NULL, 6, workers[k]);
				memset(count, 0, sizeof(count));
				for (uint32_t w = 0; w < workers[k]; w++) {
					assert_in_range(s.row[w].n, 1003 / workers[k], 1003 / workers[k] + 1);
					assert_int_equal(again.row[w].n, s.row[w].n);
					assert_memory_equal(again.row[w].idx, s.row[w].idx,
						s.row[w].n * sizeof(uint64_t));
					for (uint64_t r = 0; r < s.row[w].n; r++) {
						count[s.row[w].idx[r]]++;
						assert_true(!r || s.row[w].idx[r] > s.row[w].idx[r - 1]);
						differ += r < other.row[w].n &&
							  s.row[w].idx[r] != other.row[w].idx[r];
					}
				}
				for (int r = 0; r < 1003; r++)
					assert_int_equal(count[r], 1);
				assert_true(workers[k] == 1 ? !differ : differ > 100);
				mw_shards_fini(&s);
				mw_shards_fini(&again);
				mw_shards_fini(&other);
			}
}

/* A part of the rows: nothing else is dealt. */
static void validation_rows_stay_out(void **state)
{
	static float y[500];
	struct mw_dataset d = labels_only(y, 500, 5);
	struct mw_rows train, val;
	struct mw_err err;
	static bool is_val[500];
	(void)state;
	assert_int_equal(mw_rows_split(&d, 0.2, 3, &train, &val, &err), 0);
	for (uint64_t i = 0; i < val.n; i++)
		is_val[val.idx[i]] = true;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct mw_shards s;
		deal(&s, specs[i], &d, &train, 5, 4);
		for (int w = 0; w < 4; w++) {
			assert_int_equal(s.row[w].n, 100);
			for (int r = 0; r < 100; r++)
				assert_false(is_val[s.row[w].idx[r]]);
		}
		mw_shards_fini(&s);
	}
	mw_rows_fini(&train);
	mw_rows_fini(&val);
}

/* 10 classes of 100 rows, sorted and cut: 5 workers have two labels each, 4 workers 2.5. */
static void label_gives_few_labels(void **state)
{
	static float y[1000];
	struct mw_dataset d = labels_only(y, 1000, 10);
	struct mw_shards s;
	uint64_t count[10];
	(void)state;
	deal(&s, "label", &d, NULL, 1, 5);
	for (uint32_t w = 0; w < 5; w++) {
		mw_shards_count(&s, &d, w, count);
		for (uint32_t c = 0; c < 10; c++)
			assert_int_equal(count[c], c / 2 == w ? 100 : 0);
	}
	assert_float_equal(mw_shards_distance(&s, &d), 0.8, 1e-6);
	mw_shards_fini(&s);
	deal(&s, "label", &d, NULL, 1, 4);
	mw_shards_count(&s, &d, 1, count);
	for (uint32_t c = 0; c < 10; c++)
		assert_int_equal(count[c], c == 2 ? 50 : c == 3 || c == 4 ? 100 : 0);
	mw_shards_fini(&s);
	/* real targets: the lowest to the first worker */
	for (int i = 0; i < 1000; i++)
		y[i] = (float)(i * 37 % 1000) / 10;
	d.classes = 0;
	deal(&s, "label", &d, NULL, 1, 4);
	for (int r = 0; r < 250; r++)
		assert_true(y[s.row[0].idx[r]] < 25 && y[s.row[3].idx[r]] >= 75);
	assert_true(isnan(mw_shards_distance(&s, &d)));
	mw_shards_fini(&s);
}

/*
 * Squares of a worker's shares, summed over classes: the mean of sum q^2 under a symmetric Dirichlet(alpha) of C classes is
 * (alpha + 1) / (C alpha + 1), and drawing n rows adds (1 - that) / n. All rows are dealt, so at the end classes run out and
 * the shares of a small alpha come out a little more alike than the law.
 */
static void dirichlet_follows_its_law(void **state)
{
	enum { ROWS = 60000, CLASSES = 10, WORKERS = 300 };
	static float y[ROWS];
	static const struct {
		const char *spec;
		double alpha;
	} laws[] = { { "dirichlet:0.1", 0.1 }, { "dirichlet:1", 1 }, { "dirichlet:10", 10 },
		{ "dirichlet:1000", 1000 } };
	struct mw_dataset d = labels_only(y, ROWS, CLASSES);
	double before = 1;
	(void)state;
	for (size_t i = 0; i < sizeof(laws) / sizeof(*laws); i++) {
		struct mw_shards s;
		double squares = 0, a = laws[i].alpha, law = (a + 1) / (CLASSES * a + 1);
		deal(&s, laws[i].spec, &d, NULL, 11, WORKERS);
		for (uint32_t w = 0; w < WORKERS; w++) {
			uint64_t count[CLASSES];
			mw_shards_count(&s, &d, w, count);
			for (int c = 0; c < CLASSES; c++)
				squares += pow((double)count[c] / (double)s.row[w].n, 2) / WORKERS;
		}
		law += (1 - law) / ((double)ROWS / WORKERS);
		printf("# %s: mean of squares %.4f, law %.4f\n", laws[i].spec, squares, law);
		assert_true(squares > 0.8 * law && squares < 1.1 * law);
		double distance = mw_shards_distance(&s, &d);
		assert_true(distance < before);
		before = distance;
		mw_shards_fini(&s);
	}
}

/* Classes of different sizes: with a large alpha every worker has them in these proportions. */
static void large_alpha_is_iid(void **state)
{
	static float y[9000];
	struct mw_dataset d = labels_only(y, 9000, 3);
	struct mw_shards s;
	uint64_t count[3];
	(void)state;
	for (int i = 0; i < 9000; i++)
		y[i] = i % 9 < 6 ? 0 : i % 9 < 8 ? 1 : 2;
	deal(&s, "dirichlet:1e6", &d, NULL, 2, 3);
	for (uint32_t w = 0; w < 3; w++) {
		mw_shards_count(&s, &d, w, count);
		assert_in_range(count[0], 2000 - 130, 2000 + 130);
		assert_in_range(count[2], 1000 / 3 - 90, 1000 / 3 + 90);
	}
	mw_shards_fini(&s);
}

static int by_row(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* An epoch of a worker's draws is its shard, in both engines and every order, and the next epoch's order is another. */
static void workers_draw_their_shards(void **state)
{
	static const char *const engines[] = { "engine=sim", "oversubscribe=yes" }, *const orders[] = {
		"block", "random", "file"
	};
	(void)state;
	for (int e = 0; e < 2; e++)
		for (int k = 0; k < 3; k++) {
			struct test_run t;
			run_open(&t,
				"data=synth:dense,rows=400,features=5,classes=4 workers=3 protocol=sync-ring "
				"shards=label "
				"val=0.1 rate=0.01 epochs=2 order=%s %s",
				orders[k], engines[e]);
			run_whole(&t);
			for (uint32_t w = 0; w < 3; w++) {
				struct mw_rows *r = &t.run->shards.row[w];
				struct mw_order o;
				uint64_t first[200], second[200];
				assert_int_equal(r->n, 120);
				mw_order_init(&o, (enum mw_order_kind)k, false, r,
					t.run->worker[w]->order.seed, 0, 1);
				mw_order_draw(&o, first, 120);
				mw_order_draw(&o, second, 120);
				assert_int_equal(
					memcmp(first, second, 120 * sizeof(*first)) == 0, k == MW_ORDER_FILE);
				/* the run's own order stands behind two epochs */
				uint64_t third[200], next[200];
				mw_order_draw(&o, third, 120);
				mw_order_draw(&t.run->worker[w]->order, next, 50);
				qsort(first, 120, sizeof(*first), by_row);
				assert_memory_equal(first, r->idx, 120 * sizeof(*first));
				for (int i = 0; i < 50; i++)
					assert_non_null(
						bsearch(&next[i], r->idx, 120, sizeof(*next), by_row));
			}
			assert_true(t.run->worker[0]->order.seed != t.run->worker[1]->order.seed);
			run_close(&t);
		}
}

static void shard_errors_say_what_to_do(void **state)
{
	static const struct {
		const char *options, *said;
	} bad[] = {
		{ "shards=lable", "expected none, iid, label or dirichlet:ALPHA" },
		{ "shards=dirichlet:0", "greater than 0" },
		{ "shards=dirichlet:x", "--shards dirichlet:ALPHA" },
		{ "shards=iid data-place=shard", "--data-place has no say" },
		{ "shards=iid workers=41", "there are only 40" },
		{ "shards=dirichlet:1 data=synth:regression,rows=40,features=3", "are no classes" },
		{ "shards=label data=synth:quadratic,dim=4,rows=40", "has no labels" },
		{ "augment=crop-flip", "--augment crop-flip moves images" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mw_err err;
		assert_int_equal(run_error(&err,
					 "data=synth:dense,rows=40,features=3 workers=2 engine=sim "
					 "protocol=hogwild %s",
					 bad[i].options),
			MW_EUSAGE);
		if (!strstr(err.msg, bad[i].said))
			fail_msg("%s: %s", bad[i].options, err.msg);
	}
}

/* One step of plain SGD with --clip goes as far as the norm allows, in the direction of the whole gradient. */
static void clipped_steps(void **state)
{
	static const char *const data[] = { "synth:dense,rows=64,features=20,classes=3",
		"synth:sparse,rows=64,features=40", "synth:quadratic,dim=30,rows=10" };
	(void)state;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			struct test_run whole, clipped;
			double norm = 0, limit;
			run_open(&whole, "data=%s batch=4 engine=sim protocol=sequential rate=0.5", data[i]);
			size_t dim = whole.run->model->dim;
			float *start = malloc(dim * sizeof(float));
			memcpy(start, whole.run->replicas.row[0].x, dim * sizeof(float));
			run_until(&whole, 1);
			run_loss(&whole);
			for (size_t j = 0; j < dim; j++)
				norm += pow(((double)whole.run->average[j] - (double)start[j]) / 0.5, 2);
			norm = sqrt(norm);
			limit = k ? 2 * norm : norm / 3;
			run_open(&clipped,
				"data=%s batch=4 engine=sim protocol=sequential rate=0.5 clip=%.9g", data[i],
				limit);
			assert_true(clipped.run->form != MW_FORM_ROW);
			run_until(&clipped, 1);
			run_loss(&clipped);
			for (size_t j = 0; j < dim; j++) {
				double want = ((double)whole.run->average[j] - (double)start[j]) *
					      (k ? 1 : limit / (norm + 1e-6));
				double got = (double)clipped.run->average[j] - (double)start[j];
				assert_true(fabs(got - want) <= 2e-6 * norm);
			}
			free(start);
			run_close(&whole);
			run_close(&clipped);
		}
}

/* The rate is taken every 64 rows of a worker: every step with batches of 64, every fourth with 16, the first 64 with 1. */
static void rates_follow_rows(void **state)
{
	static const struct {
		int batch, steps;
	} forms[] = { { 64, 1 }, { 100, 1 }, { 16, 4 }, { 1, 64 } };
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct test_run t;
		int batch = forms[i].batch, epoch = (640 + batch - 1) / batch;
		run_open(&t,
			"data=synth:quadratic,dim=1,cond=1,noise=0,rows=640 batch=%d engine=sim "
			"protocol=sequential "
			"rate=constant:0.5,warmup=1 epochs=1",
			batch);
		double x = (double)t.run->average[0] - (double)t.run->train->optimum[0];
		assert_int_equal(t.run->total_steps, epoch);
		for (int k = 0; k < epoch; k++) {
			int block = k / forms[i].steps * forms[i].steps;
			x -= 0.5 * block / epoch * x;
			run_until(&t, (uint64_t)k + 1);
			double got = (double)t.run->replicas.row[0].x[0] - (double)t.run->train->optimum[0];
			assert_true(fabs(got - x) < 1e-6);
		}
		run_close(&t);
	}
}

static float *average_of(const char *options, const char *engine, size_t *dim)
{
	struct test_run t;
	run_open(&t,
		"data=synth:images,rows=120,size=10,channels=2,classes=3 model=mlp:12 batch=5 rate=0.05 "
		"epochs=2 workers=2 "
		"protocol=sync-ps %s %s",
		options, engine);
	run_whole(&t);
	run_loss(&t);
	*dim = t.run->model->dim;
	float *x = malloc(*dim * sizeof(float));
	memcpy(x, t.run->average, *dim * sizeof(float));
	run_close(&t);
	return x;
}

/* The pictures of a step are a function of seed, worker and own step: both engines and any number of threads see the same. */
static void augmentation_is_reproducible(void **state)
{
	static const char *const engines[] = { "engine=sim", "engine=sim threads=2", "oversubscribe=yes" };
	size_t dim;
	(void)state;
	float *want = average_of("augment=crop-flip", engines[0], &dim), *other;
	for (int i = 1; i < 3; i++) {
		other = average_of("augment=crop-flip", engines[i], &dim);
		assert_memory_equal(want, other, dim * sizeof(float));
		free(other);
	}
	other = average_of("augment=none", engines[0], &dim);
	assert_memory_not_equal(want, other, dim * sizeof(float));
	free(other);
	free(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_equal_and_disjoint),
		cmocka_unit_test(validation_rows_stay_out),
		cmocka_unit_test(label_gives_few_labels),
		cmocka_unit_test(dirichlet_follows_its_law),
		cmocka_unit_test(large_alpha_is_iid),
		cmocka_unit_test(workers_draw_their_shards),
		cmocka_unit_test(shard_errors_say_what_to_do),
		cmocka_unit_test(clipped_steps),
		cmocka_unit_test(rates_follow_rows),
		cmocka_unit_test(augmentation_is_reproducible),
	};
	return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
