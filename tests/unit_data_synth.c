/* unit_data_synth.c: synthetic data: seeded, the same for any number of threads, with the properties promised. */
#include <math.h>

#include "data_util.h"

static struct mw_dataset *make(const char *spec, int threads)
{
	return load_ok(&(struct mw_data_request){ .path = spec, .threads = threads, .seed = 7 });
}

static void threads_dont_matter(void **state)
{
	static const char *const spec[] = { "synth:sparse,rows=1003,features=5000",
		"synth:sparse,rows=5,features=4,nnz=4",
		"synth:dense,rows=203,features=30,classes=3,noise=0.1",
		"synth:images,rows=57,channels=2,size=9,classes=4", "synth:regression,rows=101,features=20" };
	(void)state;
	for (size_t i = 0; i < sizeof(spec) / sizeof(spec[0]); i++) {
		struct mw_dataset *one = make(spec[i], 1);
		for (int threads = 2; threads <= 7; threads++) {
			struct mw_dataset *d = make(spec[i], threads);
			assert_same_data(one, d);
			mw_dataset_free(d);
		}
		mw_dataset_free(one);
	}
}

/* rows=R,skip=N are rows N.. of rows=N+R. */
static void skip_goes_on(void **state)
{
	struct mw_dataset *all = make("synth:sparse,rows=300,features=900,nnz=20", 2);
	struct mw_dataset *rest = make("synth:sparse,rows=100,features=900,nnz=20,skip=200", 2);
	struct mw_dataset *dense = make("synth:dense,rows=30,features=5", 2);
	struct mw_dataset *dense_rest = make("synth:dense,rows=10,features=5,skip=20", 1);
	(void)state;
	for (uint64_t r = 0; r < 100; r++) {
		uint64_t a = all->row_ptr[200 + r], n = all->row_ptr[201 + r] - a, b = rest->row_ptr[r];
		assert_int_equal(rest->row_ptr[r + 1] - b, n);
		assert_memory_equal(all->col + a, rest->col + b, n * sizeof(uint32_t));
		assert_memory_equal(all->val + a, rest->val + b, n * sizeof(float));
		assert_true(all->y[200 + r] == rest->y[r]);
	}
	assert_memory_equal(dense->x + 20 * dense->ld, dense_rest->x, 10 * dense->ld * sizeof(float));
	assert_memory_equal(dense->y + 20, dense_rest->y, 10 * sizeof(float));
	mw_dataset_free(all);
	mw_dataset_free(rest);
	mw_dataset_free(dense);
	mw_dataset_free(dense_rest);
}

static void seeds(void **state)
{
	struct mw_dataset *a = make("synth:dense,rows=10,features=4,seed=7", 1);
	struct mw_dataset *b = make("synth:dense,rows=10,features=4", 1); /* the request's seed is 7 too */
	struct mw_dataset *c = make("synth:dense,rows=10,features=4,seed=8", 1);
	(void)state;
	assert_same_data(a, b);
	assert_memory_not_equal(a->x, c->x, 10 * a->ld * sizeof(float));
	mw_dataset_free(a);
	mw_dataset_free(b);
	mw_dataset_free(c);
}

static void sparse_properties(void **state)
{
	struct mw_dataset *d = make("synth:sparse,rows=4000,features=20000,nnz=60", 0);
	uint32_t *count = calloc(20000, sizeof(*count));
	uint32_t top = 0;
	(void)state;
	assert_int_equal(d->features, 20000);
	assert_int_equal(d->classes, 2);
	for (uint64_t r = 0; r < d->rows; r++) {
		double squares = 0;
		assert_true(d->row_ptr[r + 1] - d->row_ptr[r] >= 4);
		for (uint64_t i = d->row_ptr[r]; i < d->row_ptr[r + 1]; i++) {
			assert_true(d->col[i] < 20000 && (i == d->row_ptr[r] || d->col[i] > d->col[i - 1]));
			assert_true(d->val[i] > 0);
			squares += (double)d->val[i] * (double)d->val[i];
			count[d->col[i]]++;
		}
		assert_true(fabs(squares - 1) < 1e-5);
		assert_true(fabsf(d->y[r]) == 1);
	}
	/* mean row length 60, its standard error 60 * .53 / sqrt(4000) = 0.5 */
	assert_true(fabs((double)d->nnz / 4000 - 60) < 2.5);
	for (uint32_t j = 0; j < 20000; j++)
		top = count[j] > top ? count[j] : top;
	/* the most popular feature is drawn with p = 1/11 / (H_20010 - H_10) = 0.0122, so in about half of the rows */
	assert_in_range(top, 1600, 2400);
	assert_int_equal(d->label_count[0] + d->label_count[1], 4000);
	free(count);
	mw_dataset_free(d);
}

/* Is the signal there? The class means of the training part must classify the rest. */
static void dense_can_be_learned(void **state)
{
	struct mw_dataset *d = make("synth:dense,rows=4000,features=50,classes=3", 0);
	double mean[3][50] = { { 0 } };
	int right = 0;
	(void)state;
	for (int r = 0; r < 2000; r++)
		for (int j = 0; j < 50; j++)
			mean[(int)d->y[r]][j] += (double)d->x[(size_t)r * d->ld + (size_t)j] / 667;
	for (int r = 2000; r < 4000; r++) {
		double best = 1e9;
		int c = -1;
		for (int k = 0; k < 3; k++) {
			double dist = 0;
			for (int j = 0; j < 50; j++)
				dist += pow((double)d->x[(size_t)r * d->ld + (size_t)j] - mean[k][j], 2);
			if (dist < best) {
				best = dist;
				c = k;
			}
		}
		right += c == (int)d->y[r];
	}
	/* two classes that are 4 apart: 97.7 %; three: at least 95.4 % less what the estimated means cost */
	assert_true(right > 1840);
	assert_int_equal(d->ld, 64);
	mw_dataset_free(d);
}

static void noise_flips_labels(void **state)
{
	struct mw_dataset *clean = make("synth:dense,rows=4000,features=3,noise=0", 0);
	struct mw_dataset *noisy = make("synth:dense,rows=4000,features=3,noise=0.25", 0);
	int flipped = 0;
	(void)state;
	assert_memory_equal(clean->x, noisy->x, 4000 * clean->ld * sizeof(float));
	for (int i = 0; i < 4000; i++)
		flipped += clean->y[i] != noisy->y[i];
	assert_in_range(flipped, 1000 - 110, 1000 + 110); /* 4 standard deviations */
	mw_dataset_free(clean);
	mw_dataset_free(noisy);
}

static void images(void **state)
{
	struct mw_dataset *d = make("synth:images,rows=40,channels=3,size=8,classes=5", 0);
	(void)state;
	assert_int_equal(d->features, 192);
	assert_int_equal(d->image_rows, 8);
	assert_int_equal(d->image_cols, 8);
	assert_int_equal(d->classes, 5);
	for (size_t i = 0; i < 40 * d->ld; i++)
		assert_true(d->x[i] >= 0 && d->x[i] <= 1);
	mw_dataset_free(d);
}

static void regression(void **state)
{
	struct mw_dataset *exact = make("synth:regression,rows=3000,features=2,noise=0", 0);
	struct mw_dataset *noisy = make("synth:regression,rows=3000,features=2,noise=0.5", 0);
	double squares = 0;
	const float *x = exact->x, *y = exact->y;
	size_t ld = exact->ld;
	/* the two weights from the first two rows; all other rows must follow them */
	double det = (double)x[0] * (double)x[ld + 1] - (double)x[1] * (double)x[ld];
	double w0 = ((double)y[0] * (double)x[ld + 1] - (double)x[1] * (double)y[1]) / det;
	double w1 = ((double)x[0] * (double)y[1] - (double)y[0] * (double)x[ld]) / det;
	(void)state;
	assert_int_equal(exact->classes, 0);
	for (size_t r = 0; r < 3000; r++) {
		assert_true(fabs(w0 * (double)x[r * ld] + w1 * (double)x[r * ld + 1] - (double)y[r]) < 1e-4);
		squares += pow((double)noisy->y[r] - (double)y[r], 2);
	}
	assert_true(fabs(sqrt(squares / 3000) - 0.5) < 0.03);
	mw_dataset_free(exact);
	mw_dataset_free(noisy);
}

static void quadratic(void **state)
{
	struct mw_dataset *d = make("synth:quadratic,dim=5,cond=10000,rows=12,noise=0.25", 1);
	static const double curvature[] = { 1e-4, 1e-3, 1e-2, 1e-1, 1 };
	(void)state;
	assert_int_equal(d->kind, MW_X_QUADRATIC);
	assert_int_equal(d->rows, 12);
	assert_int_equal(d->features, 5);
	assert_true(d->noise == 0.25f);
	for (int i = 0; i < 5; i++)
		assert_true(fabs((double)d->curvature[i] / curvature[i] - 1) < 1e-6);
	mw_dataset_free(d);
	d = make("synth:quadratic,dim=1", 1);
	assert_true(d->curvature[0] == 1 && d->noise == 0 && d->rows == 1000);
	mw_dataset_free(d);
}

static void wrong_specs(void **state)
{
	static const char example[] = "synth:sparse,rows=20000,features=5000,nnz=50";
	static const struct {
		const char *spec, *message;
	} t[] = {
		{ "synth:sparse,row=3,features=3", ": no key 'row' for synth:sparse; did you mean 'rows'?; "
						   "it has rows, features, nnz, noise, seed, skip" },
		{ "synth:quadratic,features=3", ": no key 'features' for synth:quadratic; it has rows, dim, "
						"noise, cond, seed, skip" },
		{ "synth:sparse,rows=3,features=3,nnz=4", ": nnz=4 is more than features=3; take fewer" },
		{ "synth:sparse,rows=0,features=3", ": rows=0 is out of range; it must be from 1 to 1e+12" },
		{ "synth:dense,rows=2,rows=2", ": the key 'rows' stands there twice" },
		{ "synth:dense,rows", ": expected key=value, found 'rows'; an example: "
				      "synth:dense,rows=10000,features=100,classes=2" },
		{ "synth:quadratic",
			": dim= is missing; an example: synth:quadratic,dim=100,cond=10,noise=0.1" },
	};
	char want[400];
	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		load_fails(
			&(struct mw_data_request){ .path = t[i].spec }, MW_EUSAGE, t[i].spec, t[i].message);
	snprintf(want, sizeof(want),
		": no synthetic data 'dens' (did you mean 'dense'?); the kinds are sparse, dense, "
		"images, regression, quadratic, as in %s",
		example);
	load_fails(&(struct mw_data_request){ .path = "synth:dens" }, MW_EUSAGE, "synth:dens", want);
}

static void like_and_width(void **state)
{
	struct mw_dataset *train = make("synth:dense,rows=9,features=4,classes=3", 1);
	const char *wide = "synth:dense,rows=9,features=5,classes=3", *two = "synth:dense,rows=9,features=4";
	(void)state;
	load_fails(&(struct mw_data_request){ .path = wide, .like = train }, MW_EUSAGE, wide,
		": 5 features, but the training set has 4; make them equal");
	load_fails(&(struct mw_data_request){ .path = two, .like = train }, MW_EUSAGE, two,
		": 2 classes, but the training set has 3; make them equal");
	mw_dataset_free(train);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_dont_matter),
		cmocka_unit_test(skip_goes_on),
		cmocka_unit_test(seeds),
		cmocka_unit_test(sparse_properties),
		cmocka_unit_test(dense_can_be_learned),
		cmocka_unit_test(noise_flips_labels),
		cmocka_unit_test(images),
		cmocka_unit_test(regression),
		cmocka_unit_test(quadratic),
		cmocka_unit_test(wrong_specs),
		cmocka_unit_test(like_and_width),
	};
	return cmocka_run_group_tests_name("data synth", tests, NULL, NULL);
}
