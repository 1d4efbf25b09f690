/* unit_kernel.c: every kernel table against double arithmetic, and the exp and log family over the whole
 * float range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/approx.h"
#include "base/kernel.h"
#include "base/rng.h"
#include "base/shared.h"

enum { N = 67, D = 5000 };

static float a[N + 1], b[N + 1], w[D], got[D], want[D];
static uint32_t idx[N + 1];

static float rnd(struct mw_rng *r)
{
	return (float)(2 * mw_rng_uniform(r) - 1);
}

/* New numbers; idx strictly increasing, some neighbours. */
static void fill(uint64_t seed)
{
	struct mw_rng r;
	uint32_t at = 0;
	mw_rng_init(&r, seed, 0);
	for (int i = 0; i <= N; i++) {
		a[i] = rnd(&r);
		b[i] = rnd(&r);
		at += 1 + (uint32_t)mw_rng_below(&r, i % 3 ? 100 : 2);
		idx[i] = at;
	}
	for (int i = 0; i < D; i++)
		w[i] = rnd(&r);
	memcpy(want, w, sizeof(want));
	memcpy(got, w, sizeof(got));
}

static uint32_t bits(float x)
{
	return mw_float_bits(x);
}

static void assert_same(const float *x, const float *y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(bits(x[i]), bits(y[i]));
}

/* A sum of n products of numbers below 1 in float: n half ulps of the sum of their magnitudes. */
static void assert_sum(float x, double sum, double magnitude)
{
	assert_true(fabs((double)x - sum) <= (magnitude + 1e-30) * (N + 2) * 0x1p-24);
}

static const struct mw_kernels *tables[MW_ISA_COUNT];
static int n_tables;

static int find_tables(void **state)
{
	(void)state;
	for (int i = 0; i < MW_ISA_COUNT; i++)
		if (mw_kernels_of((enum mw_isa)i))
			tables[n_tables++] = mw_kernels_of((enum mw_isa)i);
	return 0;
}

static void dots(void **state)
{
	(void)state;
	for (int t = 0; t < n_tables; t++) {
		for (size_t n = 0; n <= N; n++) {
			double dense = 0, dense_abs = 0, sparse = 0, sparse_abs = 0;
			float compact[N + 1];
			fill(n);
			for (size_t i = 0; i < n; i++) {
				double p = (double)a[i] * (double)b[i], q = (double)w[idx[i]] * (double)b[i];
				dense += p;
				dense_abs += fabs(p);
				sparse += q;
				sparse_abs += fabs(q);
				compact[i] = w[idx[i]];
			}
			assert_sum(tables[t]->dot(a, b, n), dense, dense_abs);
			float z = tables[t]->dot_sparse(w, idx, b, n);
			assert_sum(z, sparse, sparse_abs);
			assert_int_equal(bits(z), bits(tables[t]->dot_compact(compact, b, n)));
		}
	}
}

/* What lies behind the row must not matter, not even when it is not finite. */
static void dots_stay_in_their_row(void **state)
{
	(void)state;
	for (int t = 0; t < n_tables; t++) {
		for (size_t n = 0; n < N; n++) {
			fill(n);
			float z = tables[t]->dot_sparse(w, idx, b, n), d = tables[t]->dot(a, b, n);
			a[n] = b[n] = NAN;
			w[idx[n]] = INFINITY;
			assert_int_equal(bits(z), bits(tables[t]->dot_sparse(w, idx, b, n)));
			assert_int_equal(bits(d), bits(tables[t]->dot(a, b, n)));
		}
	}
}

/* Updates round the product, then the sum: exact in float, the same in every table, and nothing else is
 * written. */
static void updates(void **state)
{
	(void)state;
	for (int t = 0; t < n_tables; t++) {
		for (size_t n = 0; n <= N; n++) {
			fill(n);
			for (size_t i = 0; i < n; i++) {
				volatile float p = 0.37f * b[i];
				want[idx[i]] += p;
			}
			tables[t]->axpy_sparse(0.37f, idx, b, got, n);
			assert_same(got, want, D);
			for (size_t i = 0; i < n; i++) {
				volatile float p = -1.7f * a[i];
				want[i + 1] += p;
			}
			tables[t]->axpy(-1.7f, a, got + 1, n);
			assert_same(got, want, D);
		}
	}
}

static void copies(void **state)
{
	(void)state;
	for (int t = 0; t < n_tables; t++) {
		for (size_t n = 0; n <= N; n++) {
			fill(n);
			memcpy(want + 3, w + 501, n * sizeof(float));
			tables[t]->view(w + 501, got + 3, n);
			assert_same(got, want, D);
			memcpy(want + 1001, a, n * sizeof(float));
			tables[t]->store(a, got + 1001, n);
			assert_same(got, want, D);
		}
	}
}

static void groups(void **state)
{
	(void)state;
	static const uint32_t widths[] = { 1, 2, 3, 10, 19 };
	float compact[N * 19];
	for (int t = 0; t < n_tables; t++) {
		for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
			for (size_t n = 0; n <= N; n += k ? 13 : 1) {
				uint32_t width = widths[k];
				fill(n);
				for (size_t i = 0; i < n; i++)
					idx[i] = idx[i] % (D / width / N) + (uint32_t)i * (D / width / N);
				tables[t]->gather(w, idx, n, width, compact);
				for (size_t i = 0; i < n * width; i++) {
					size_t at = idx[i / width] * width + i % width;
					assert_int_equal(bits(compact[i]), bits(w[at]));
					compact[i] = 0.25f + (float)i;
					want[at] += 0.25f + (float)i;
				}
				tables[t]->scatter_add(compact, idx, n, width, got);
				assert_same(got, want, D);
			}
		}
	}
}

static void rows(void **state)
{
	(void)state;
	for (int t = 0; t < n_tables; t++) {
		for (uint32_t width = 1; width <= 37; width++) {
			size_t n = width * 7 % 31;
			float z[40], c[40];
			fill(width);
			for (size_t i = 0; i < n; i++)
				idx[i] = (uint32_t)(i * 4 + i % 3);
			for (uint32_t j = 0; j < width; j++) {
				z[j] = c[j] = a[j];
				for (size_t i = 0; i < n; i++)
					want[idx[i] * width + j] += b[i] * c[j];
			}
			tables[t]->rows_dot(w, idx, b, n, width, z);
			for (uint32_t j = 0; j < width; j++) {
				double sum = (double)a[j], magnitude = fabs(sum);
				for (size_t i = 0; i < n; i++) {
					double p = (double)b[i] * (double)w[idx[i] * width + j];
					sum += p;
					magnitude += fabs(p);
				}
				assert_sum(z[j], sum, magnitude);
			}
			tables[t]->rows_add(c, idx, b, n, width, got);
			for (int i = 0; i < D; i++)
				assert_float_equal(got[i], want[i], 1e-6f);
		}
	}
}

static void nonzeros(void **state)
{
	(void)state;
	for (int t = 0; t < n_tables; t++) {
		for (size_t n = 0; n <= N; n++) {
			uint32_t at[N + 16], found = 0;
			float val[N + 16];
			fill(n);
			for (size_t i = 0; i < n; i++)
				if (i % 3 == 0 || (i > 20 && i < 40))
					a[i] = i % 2 ? 0.0f : -0.0f;
			size_t count = tables[t]->nonzeros(a, n, at, val);
			for (size_t i = 0; i < n; i++) {
				if (a[i] == 0)
					continue;
				assert_int_equal(at[found], i);
				assert_int_equal(bits(val[found]), bits(a[i]));
				found++;
			}
			assert_int_equal(count, found);
		}
	}
}

static void softmax(void **state)
{
	(void)state;
	float first[40];
	for (int t = 0; t < n_tables; t++) {
		for (size_t n = 1; n < 40; n++) {
			float z[40];
			double sum = 0;
			fill(n);
			for (size_t i = 0; i < n; i++)
				z[i] = 200 * a[i];
			for (size_t i = 0; i < n; i++)
				sum += exp(200 * (double)a[i] - 200);
			float l = tables[t]->softmax(z, n);
			assert_true(fabs((double)l - (log(sum) + 200)) <= 2e-7 * fabs(log(sum) + 200) + 1e-6);
			for (size_t i = 0; i < n; i++) {
				double p = exp((double)(200 * a[i]) - 200) / sum;
				assert_true(fabs((double)z[i] - p) <= 1e-4 * p + 1e-37);
			}
			if (n == 39 && t == 0)
				memcpy(first, z, sizeof(first));
			if (n == 39)
				assert_same(first, z, n);
		}
	}
}

/* Units in the last place of the float nearest to y; denormals have the spacing 2^-149. */
static double ulps(float x, double y)
{
	if (isnan(x) && isnan(y))
		return 0;
	float f = (float)y;
	if (isinf(f) || isinf(x))
		return x == f ? 0 : INFINITY;
	int e;
	frexp(y, &e);
	return fabs((double)x - y) / ldexp(1, e - 24 < -149 ? -149 : e - 24);
}

static double ref_exp(double x)
{
	return exp(x);
}

static double ref_sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double ref_softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double worst_over_floats(float (*f)(float), double (*ref)(double), uint32_t stride)
{
	double worst = 0;
	for (uint64_t u = 0; u <= UINT32_MAX; u += stride) {
		float x = mw_bits_float((uint32_t)u);
		double e = ulps(f(x), ref((double)x));
		worst = e > worst ? e : worst;
	}
	return worst;
}

static void accuracy(void **state)
{
	(void)state;
	uint32_t stride = getenv("MW_LONG") ? 61 : 4099; /* prime: all exponents, all low bits */
	double e = worst_over_floats(mw_exp, ref_exp, stride), l = worst_over_floats(mw_log, log, stride);
	double s = worst_over_floats(mw_sigmoid, ref_sigmoid, stride);
	double p = worst_over_floats(mw_softplus, ref_softplus, stride);
	print_message("# worst ulps: exp %.3f log %.3f sigmoid %.3f softplus %.3f\n", e, l, s, p);
	assert_true(e <= 1);
	assert_true(l <= 1);
	assert_true(s <= 2.5);
	assert_true(p <= 2.5);
	for (int t = 0; t < n_tables; t++) {
		for (float z = -120; z < 120; z += 0.37f) {
			assert_int_equal(bits(tables[t]->sigmoid(z)), bits(mw_sigmoid(z)));
			assert_int_equal(bits(tables[t]->softplus(z)), bits(mw_softplus(z)));
		}
	}
}

static void special_values(void **state)
{
	(void)state;
	assert_true(mw_exp(0) == 1.0f);
	assert_true(mw_exp(INFINITY) == INFINITY);
	assert_true(mw_exp(-INFINITY) == 0.0f);
	assert_true(isnan(mw_exp(NAN)));
	assert_true(mw_log(1) == 0.0f);
	assert_true(mw_log(0) == -INFINITY);
	assert_true(isnan(mw_log(-1)));
	assert_true(mw_log(INFINITY) == INFINITY);
	assert_true(mw_sigmoid(0) == 0.5f);
	assert_true(mw_sigmoid(200) == 1.0f);
	assert_true(mw_sigmoid(-200) == 0.0f);
	assert_true(mw_softplus(200) == 200.0f);
	assert_true(isnan(mw_softplus(NAN)));
}

static void sine_and_cosine(void **state)
{
	(void)state;
	const double turn = 2 * acos(-1) / (1 << 24);
	for (uint32_t u = 0; u < 1 << 24; u += 97) {
		float s, c;
		mw_sincos_phase(u, &s, &c);
		assert_true(fabs((double)s - sin(turn * u)) < 1.3e-7);
		assert_true(fabs((double)c - cos(turn * u)) < 1.3e-7);
	}
}

/* Mean, variance, fourth moment and correlation of a pair: within 5 standard errors of 0, 1, 3, 0. */
static void normals(void **state)
{
	(void)state;
	enum { COUNT = 200000 };
	double sum = 0, sum2 = 0, sum4 = 0, cross = 0;
	for (uint64_t i = 0; i < COUNT; i++) {
		float x, y;
		mw_normal_pair(mw_hash3(7, 1, i), &x, &y);
		sum += (double)x + (double)y;
		sum2 += (double)(x * x) + (double)(y * y);
		sum4 += (double)(x * x * x * x) + (double)(y * y * y * y);
		cross += (double)(x * y);
	}
	double n = 2.0 * COUNT;
	assert_true(fabs(sum / n) < 5 / sqrt(n));
	assert_true(fabs(sum2 / n - 1) < 5 * sqrt(2 / n));
	assert_true(fabs(sum4 / n - 3) < 5 * sqrt(96 / n));
	assert_true(fabs(cross / COUNT) < 5 / sqrt(COUNT));
}

static void selection(void **state)
{
	(void)state;
	struct mw_err err = { 0 };
	assert_int_equal(mw_isa_select("portable", &err), 0);
	assert_string_equal(mw_kernels()->name, "portable");
	assert_int_equal(mw_isa_select("avx3", &err), MW_EUSAGE);
	assert_string_equal(err.msg, "unknown instruction set 'avx3': use auto, portable, avx2 or avx512");
	err.code = 0;
	assert_int_equal(mw_isa_select("auto", &err), 0);
	assert_int_equal(mw_kernels()->isa, mw_isa_detect());
	static const char *const names[] = { "portable", "avx2", "avx512" };
	for (int i = 0; i < MW_ISA_COUNT; i++) {
		bool have = mw_kernels_of((enum mw_isa)i) != NULL;
		err.code = 0;
		assert_int_equal(mw_isa_select(names[i], &err), have ? 0 : MW_ERESOURCE);
		if (have)
			assert_string_equal(mw_kernels()->name, names[i]);
	}
#ifdef MW_STRICT_ATOMICS
	assert_int_equal(mw_isa_detect(), MW_ISA_PORTABLE);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dots),
		cmocka_unit_test(dots_stay_in_their_row),
		cmocka_unit_test(updates),
		cmocka_unit_test(copies),
		cmocka_unit_test(groups),
		cmocka_unit_test(rows),
		cmocka_unit_test(nonzeros),
		cmocka_unit_test(softmax),
		cmocka_unit_test(accuracy),
		cmocka_unit_test(special_values),
		cmocka_unit_test(sine_and_cosine),
		cmocka_unit_test(normals),
		cmocka_unit_test(selection),
	};
	return cmocka_run_group_tests_name("kernel", tests, find_tables, NULL);
}
