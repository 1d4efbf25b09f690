/*
 * unit_optim_rules.c: every rule, in both layouts and for every instruction set, against the portable rule on one parameter
 * at a time, to the bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/kernel_tables.h"
#include "base/rng.h"
#include "optim/optim.h"
#include "optim/rules.h"

enum { DIM = 420, STEPS = 4, RECORD = 4 };
static const size_t lengths[] = { 0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 75, 140 };
static const uint32_t fields_of[] = {
#define MW_RULE(name, n) n,
	MW_RULES(MW_RULE)
#undef MW_RULE
};

static const struct mw_rule_table *table_of(int isa)
{
#ifdef MW_KERNEL_X86
	if (isa == MW_ISA_AVX2)
		return &mw_rules_avx2;
	if (isa == MW_ISA_AVX512)
		return &mw_rules_avx512;
#endif
	return isa == MW_ISA_PORTABLE ? &mw_rules_portable : NULL;
}

static const struct mw_coef coef = { .scale = 0.7f,
	.rate = 0.3f,
	.keep1 = 0.9f,
	.take1 = 0.1f,
	.keep2 = 0.7f,
	.take2 = 0.3f,
	.size = 0.31f,
	.root_scale = 1.3f,
	.eps = 1e-3f,
	.momentum = 0.8f,
	.couple = 0.05f,
	.shrink = 0.02f };

static float want_state[3 * DIM], x[DIM], g[DIM], delta[DIM], want[DIM];

static void draw_step(uint64_t seed, size_t n)
{
	struct mw_rng r;
	mw_rng_init(&r, seed, 7);
	for (size_t i = 0; i < n; i++) {
		g[i] = (float)(mw_rng_uniform(&r) - 0.5);
		x[i] = (float)(mw_rng_uniform(&r) - 0.5);
	}
}

/* Fields of parameter p: want_state[3 p ..]. */
static void expect(int rule, size_t p, bool decays, size_t i)
{
	mw_rules_portable.dense[rule](
		&coef, want_state + 3 * p, 1, decays ? x + i : NULL, g + i, want + i, 1);
}

static void same(
	const char *what, int isa, int rule, size_t n, const float *got, const float *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(got + i, expected + i, sizeof(*got)))
			fail_msg("rule %d, instruction set %d, n %zu: %s %zu is %a, not %a", rule, isa, n,
				what, i, (double)got[i], (double)expected[i]);
}

static void sparse_one(int isa, int rule, size_t n, uint32_t width, bool decays, bool in_place)
{
	static float state[RECORD * DIM + 16], expected[RECORD * DIM + 16];
	uint32_t group[DIM], f = fields_of[rule], record = MW_OPTIM_RECORD(f), groups = DIM / width;
	memset(state, 0, sizeof(state));
	memset(expected, 0, sizeof(expected));
	memset(want_state, 0, sizeof(want_state));
	for (int t = 0; t < STEPS; t++) {
		for (size_t i = 0; i < n; i++) /* distinct, in no order, others in each step */
			group[i] = (uint32_t)((i * 37 + (size_t)t * 11) % groups);
		draw_step((uint64_t)t, n * width);
		for (size_t i = 0; i < n * width; i++)
			expect(rule, group[i / width] * width + i % width, decays, i);
		memcpy(delta, g, sizeof(g));
		table_of(isa)->sparse[rule](
			&coef, state, group, n, width, decays ? x : NULL, in_place ? delta : g, delta);
		same("delta", isa, rule, n, delta, want, n * width);
		if (n * width < DIM) /* and nothing behind */
			assert_true(delta[n * width] == g[n * width]);
	}
	for (size_t p = 0; p < DIM; p++)
		memcpy(expected + p * record, want_state + 3 * p, f * sizeof(float));
	same("state", isa, rule, n, state, expected, RECORD * DIM + 16);
}

static void sparse(void **unused)
{
	(void)unused;
	for (int isa = 0; isa < MW_ISA_COUNT; isa++)
		for (int rule = 0; rule < MW_RULE_COUNT && mw_kernels_of((enum mw_isa)isa); rule++)
			for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++)
				for (int c = 0; c < 8; c++)
					sparse_one(isa, rule, lengths[l], c & 1 ? 3 : 1, c & 2, c & 4);
}

static void dense_one(int isa, int rule, size_t n, bool decays)
{
	static float state[3 * DIM], expected[3 * DIM];
	memset(state, 0, sizeof(state));
	memset(expected, 0, sizeof(expected));
	memset(want_state, 0, sizeof(want_state));
	for (int t = 0; t < STEPS; t++) {
		draw_step((uint64_t)t, n);
		for (size_t i = 0; i < n; i++)
			expect(rule, i, decays, i);
		table_of(isa)->dense[rule](&coef, state, DIM, decays ? x : NULL, g, delta, n);
		same("delta", isa, rule, n, delta, want, n);
	}
	for (size_t p = 0; p < n; p++)
		for (uint32_t f = 0; f < fields_of[rule]; f++)
			expected[f * DIM + p] = want_state[3 * p + f];
	same("state", isa, rule, n, state, expected, 3 * DIM);
}

static void dense(void **unused)
{
	(void)unused;
	for (int isa = 0; isa < MW_ISA_COUNT; isa++)
		for (int rule = 0; rule < MW_RULE_COUNT && mw_kernels_of((enum mw_isa)isa); rule++)
			for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
				dense_one(isa, rule, lengths[l], false);
				dense_one(isa, rule, lengths[l], true);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sparse), cmocka_unit_test(dense) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
