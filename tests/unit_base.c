/* unit_base.c: errors, allocation, clock and random numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/shared.h"

static void first_error_wins(void **state)
{
	struct mw_err err = { 0 };
	(void)state;
	assert_int_equal(mw_err_set(&err, MW_EDATA, "%s:%d: bad", "a.txt", 3), MW_EDATA);
	assert_int_equal(mw_err_set(&err, MW_EUSAGE, "second"), MW_EUSAGE);
	assert_int_equal(err.code, MW_EDATA);
	assert_string_equal(err.msg, "a.txt:3: bad");
	assert_int_equal(mw_err_set(NULL, MW_EUSAGE, "nobody listens"), MW_EUSAGE);
}

static void long_messages_are_cut(void **state)
{
	struct mw_err err = { 0 };
	char text[3000];
	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	mw_err_set(&err, MW_EDATA, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

static void exit_codes(void **state)
{
	(void)state;
	assert_int_equal(mw_err_exit_code(MW_OK), 0);
	assert_int_equal(mw_err_exit_code(MW_EUSAGE), 2);
	assert_int_equal(mw_err_exit_code(MW_EDATA), 3);
	assert_int_equal(mw_err_exit_code(MW_ERESOURCE), 4);
	assert_int_equal(mw_err_exit_code(MW_EDIVERGED), 5);
	assert_int_equal(mw_err_exit_code(MW_EINTERNAL), 70);
	assert_int_equal(mw_err_exit_code(-99), 70);
	assert_string_equal(mw_err_name(MW_EDATA), "data error");
	assert_string_equal(mw_err_name(MW_OK), "ok");
}

static void memory_is_aligned_and_zero(void **state)
{
	static const size_t sizes[] = { 0, 1, 127, 128, 129, 100000, (size_t)3 << 20 };
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		unsigned char *p = mw_alloc(sizes[i], "test", NULL);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % MW_LINE_BYTES, 0);
		for (size_t j = 0; j < sizes[i]; j++)
			assert_int_equal(p[j], 0);
		mw_free(p);
	}
	mw_free(NULL);
}

/* Sanitizers end the process when memory runs out, unless they are told to return NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void memory_overflow_is_an_error(void **state)
{
	struct mw_err err = { 0 };
	(void)state;
	assert_null(mw_alloc_array(SIZE_MAX / 4, 8, "the matrix", &err));
	assert_int_equal(err.code, MW_ERESOURCE);
	assert_non_null(strstr(err.msg, "the matrix"));
	err = (struct mw_err){ 0 };
	assert_null(mw_alloc(SIZE_MAX - 1, "all", &err));
	assert_int_equal(err.code, MW_ERESOURCE);
}

static void strings(void **state)
{
	char *s = mw_strprintf("%s-%d", "a", 7), *t = mw_strdup(s);
	(void)state;
	assert_string_equal(t, "a-7");
	assert_ptr_not_equal(s, t);
	assert_null(mw_strdup(NULL));
	free(s);
	free(t);
}

static void clocks_agree(void **state)
{
	double t0 = mw_now_s(), rate = mw_ticks_per_s();
	uint64_t c0 = mw_ticks();
	(void)state;
	assert_true(mw_now_s() >= t0);
	assert_true(mw_ticks() >= c0);
	assert_true(rate > 1e6 && rate < 1e11);
	assert_true(mw_ticks_per_s() == rate);
}

/* splitmix64 of seed 1234567, as published with its reference implementation (Vigna; also Rosetta Code's test
 * vector). */
static void mix64_is_splitmix64(void **state)
{
	static const uint64_t expected[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
		4593380528125082431u, 16408922859458223821u };
	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		assert_true(mw_mix64(1234567 + (i + 1) * 0x9e3779b97f4a7c15u) == expected[i]);
}

/* Computed by tests/reference/base_rng.py; never to change, since seeds name runs. */
static void hash3_is_frozen(void **state)
{
	static const uint64_t v[][4] = {
		{ 0, 0, 0, 0xa02f6185e7c277de },
		{ 1, 0, 0, 0xffc2205540f0be14 },
		{ 0, 1, 0, 0x3bc42bbde620198a },
		{ 0, 0, 1, 0x1d27730456c5ebf9 },
		{ 1, 2, 3, 0xc41674fd2112163a },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, 0xed26c5e070cd2200 },
		{ 42, 7, 1000000, 0xafc516bfb870708b },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		assert_true(mw_hash3(v[i][0], v[i][1], v[i][2]) == v[i][3]);
}

/* First outputs from state {1, 2, 3, 4}: the test vector of the crate rand_xoshiro, made by the authors' C
 * code. */
static void stream_is_xoshiro256starstar(void **state)
{
	static const uint64_t expected[] = { 11520u, 0u, 1509978240u, 1215971899390074240u,
		1216172134540287360u, 607988272756665600u, 16172922978634559625u, 8476171486693032832u,
		10595114339597558777u, 2904607092377533576u };
	struct mw_rng rng = { { 1, 2, 3, 4 } };
	(void)state;
	for (size_t i = 0; i < 10; i++)
		assert_true(mw_rng_next(&rng) == expected[i]);
}

static void streams_repeat_and_differ(void **state)
{
	struct mw_rng a, b, c;
	unsigned equal = 0;
	(void)state;
	mw_rng_init(&a, 1, 2);
	mw_rng_init(&b, 1, 2);
	mw_rng_init(&c, 1, 3);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = mw_rng_next(&a);
		assert_true(x == mw_rng_next(&b));
		equal += x == mw_rng_next(&c);
	}
	assert_int_equal(equal, 0);
}

/* Pearson's chi-square of `count` against a uniform law. */
static double chi_square(const uint64_t *count, size_t n, double total)
{
	double sum = 0, mean = total / (double)n;
	for (size_t i = 0; i < n; i++)
		sum += ((double)count[i] - mean) * ((double)count[i] - mean) / mean;
	return sum;
}

/* The seeds are fixed, so nothing here is left to chance; the limit for 9 degrees of freedom is the 99.9 %
 * point. */
static void below_and_uniform_are_uniform(void **state)
{
	enum { N = 100000 };
	uint64_t below[10] = { 0 }, uniform[10] = { 0 }, hash[10] = { 0 };
	struct mw_rng rng;
	(void)state;
	mw_rng_init(&rng, 5, 0);
	for (uint64_t i = 0; i < N; i++) {
		double u = mw_rng_uniform(&rng);
		assert_true(u >= 0 && u < 1);
		uniform[(int)(u * 10)]++;
		below[mw_rng_below(&rng, 10)]++;
		hash[(int)(mw_u01(mw_hash3(3, 1, i)) * 10)]++;
	}
	assert_true(chi_square(below, 10, N) < 27.88);
	assert_true(chi_square(uniform, 10, N) < 27.88);
	assert_true(chi_square(hash, 10, N) < 27.88);
	assert_int_equal(mw_rng_below(&rng, 1), 0);
	assert_true(mw_u01(UINT64_MAX) < 1);
	assert_true(mw_u01(0) == 0);
}

/* Mean 0, variance 1, fourth moment 3: within 4 standard errors. */
static void normal_moments(void **state)
{
	enum { N = 100000 };
	double m1 = 0, m2 = 0, m4 = 0;
	struct mw_rng rng;
	(void)state;
	mw_rng_init(&rng, 7, 1);
	for (int i = 0; i < N; i++) {
		double z = mw_rng_normal(&rng);
		m1 += z / N;
		m2 += z * z / N;
		m4 += z * z * z * z / N;
	}
	assert_true(fabs(m1) < 4 / sqrt(N));
	assert_true(fabs(m2 - 1) < 4 * sqrt(2. / N));
	assert_true(fabs(m4 - 3) < 4 * sqrt(96. / N));
}

static void perm_is_a_bijection(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 3, 5, 63, 64, 65, 1000 };
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (uint64_t seed = 0; seed < 20; seed++) {
			unsigned char seen[1000] = { 0 };
			struct mw_perm perm;
			mw_perm_init(&perm, sizes[i], seed, 9);
			for (uint64_t j = 0; j < sizes[i]; j++) {
				uint64_t x = mw_perm_at(&perm, j);
				assert_true(x < sizes[i]);
				assert_int_equal(seen[x]++, 0);
			}
		}
}

/* Over seeds, every value is as likely at every position; limit: the 99.99 % point for n - 1 degrees of
 * freedom. */
static void uniform_positions(uint64_t n, uint64_t seeds, double limit)
{
	uint64_t *count = calloc(n * n, sizeof(*count));
	for (uint64_t seed = 0; seed < seeds; seed++) {
		struct mw_perm perm;
		mw_perm_init(&perm, n, seed, 4);
		for (uint64_t j = 0; j < n; j++)
			count[j * n + mw_perm_at(&perm, j)]++;
	}
	for (uint64_t j = 0; j < n; j++)
		assert_true(chi_square(count + j * n, n, (double)seeds) < limit);
	free(count);
}

static void perm_is_uniform(void **state)
{
	(void)state;
	uniform_positions(3, 20000, 19.3);
	uniform_positions(5, 20000, 24.2);
	uniform_positions(10, 20000, 34.2);
	uniform_positions(65, 10000, 115.);
	uniform_positions(300, 3000, 398.7);
}

/* Computed by tests/reference/base_rng.py. */
static void perm_is_frozen(void **state)
{
	static const uint64_t small[10] = { 0, 7, 1, 5, 9, 2, 6, 8, 3, 4 };
	static const uint64_t large[10] = { 38, 259, 49, 257, 51, 149, 121, 258, 101, 17 };
	struct mw_perm perm;
	(void)state;
	mw_perm_init(&perm, 10, 1, 2);
	for (uint64_t j = 0; j < 10; j++)
		assert_int_equal(mw_perm_at(&perm, j), small[j]);
	mw_perm_init(&perm, 300, 1, 2);
	for (uint64_t j = 0; j < 10; j++)
		assert_int_equal(mw_perm_at(&perm, j), large[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_error_wins),
		cmocka_unit_test(long_messages_are_cut),
		cmocka_unit_test(exit_codes),
		cmocka_unit_test(memory_is_aligned_and_zero),
		cmocka_unit_test(memory_overflow_is_an_error),
		cmocka_unit_test(strings),
		cmocka_unit_test(clocks_agree),
		cmocka_unit_test(mix64_is_splitmix64),
		cmocka_unit_test(hash3_is_frozen),
		cmocka_unit_test(stream_is_xoshiro256starstar),
		cmocka_unit_test(streams_repeat_and_differ),
		cmocka_unit_test(below_and_uniform_are_uniform),
		cmocka_unit_test(normal_moments),
		cmocka_unit_test(perm_is_a_bijection),
		cmocka_unit_test(perm_is_uniform),
		cmocka_unit_test(perm_is_frozen),
	};
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
