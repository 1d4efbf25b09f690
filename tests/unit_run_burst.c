/* unit_run_burst.c: the fused path on dense rows against the kernels one after the other, to the bit, for every instruction set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/kernel_tables.h"
#include "base/rng.h"
#include "model/link.h"
#include "run/burst.h"

enum { ROWS = 70, LD = 208, STEPS = 64 };
static const uint32_t widths[] = { 1, 3, 8, 15, 16, 17, 31, 63, 64, 65, 100, 200 };
static const float rate = 0.05f;

static float rows[ROWS * LD] __attribute__((aligned(64))), labels[ROWS];
static float x[LD] __attribute__((aligned(64))), want[LD];

static mw_burst_fn *burst_of(enum mw_isa isa)
{
#ifdef MW_KERNEL_X86
	if (isa == MW_ISA_AVX2)
		return mw_burst_avx2;
	if (isa == MW_ISA_AVX512)
		return mw_burst_avx512;
#endif
	return isa == MW_ISA_PORTABLE ? mw_burst_portable : NULL;
}

static void fill(uint32_t n)
{
	struct mw_rng r;
	mw_rng_init(&r, n, 1);
	memset(rows, 0, sizeof(rows));
	for (int i = 0; i < ROWS; i++) {
		for (uint32_t j = 0; j < n; j++)
			rows[i * LD + (int)j] = (float)(mw_rng_uniform(&r) - 0.5);
		labels[i] = i % 3 ? 1 : -1;
	}
	for (int j = 0; j < LD; j++)
		x[j] = want[j] = (float)(mw_rng_uniform(&r) - 0.5);
}

/* Gradient, optimizer and push apart, as the phases of worker.c do it. */
static void step(
	const struct mw_kernels *k, const struct mw_linear *lin, uint64_t row, uint32_t n, float weight)
{
	float view[LD], g[LD] = { 0 };
	const float *v = rows + row * LD;
	k->view(want, view, n + lin->bias);
	float z = k->dot(view, v, n);
	if (lin->bias)
		z += view[n];
	float coef = mw_link_dloss(lin->link, z, labels[row]);
	if (lin->l2 > 0)
		k->axpy(lin->l2, view, g, n);
	k->axpy(coef, v, g, n);
	if (lin->bias)
		g[n] = coef;
	for (uint32_t j = 0; j < n + lin->bias; j++)
		g[j] = -rate * g[j];
	k->axpy(weight, g, want, n + lin->bias);
}

static void one(enum mw_isa isa, uint32_t n, const struct mw_linear *lin, double weight, bool atomic)
{
	const struct mw_kernels *k = mw_kernels_of(isa);
	struct mw_dataset d = {
		.kind = MW_X_DENSE, .rows = ROWS, .features = n, .x = rows, .ld = LD, .y = labels
	};
	uint64_t order[STEPS + 4], pushes = 5, examples = 6, steps = 7;
	uint32_t tally = 0;
	float margin = 0;
	fill(n);
	for (int i = 0; i < STEPS + 4; i++)
		order[i] = (uint64_t)(i * 29) % ROWS;
	struct mw_burst b = { .data = &d,
		.linear = lin,
		.x = x,
		.row = order,
		.n = STEPS,
		.ahead = STEPS + 4,
		.rate = rate,
		.weight = weight,
		.tally = &tally,
		.atomic = atomic,
		.pushes = &pushes,
		.examples = &examples,
		.steps = &steps,
		.margin = &margin };
	burst_of(isa)(&b);
	for (int i = 0; i < STEPS; i++)
		step(k, lin, order[i], n, (float)weight);
	for (int j = 0; j < LD; j++) /* and nothing behind the parameters */
		if (memcmp(&x[j], &want[j], sizeof(float)))
			fail_msg("%s, %u features, coordinate %d: %a, not %a", k->name, n, j, (double)x[j],
				(double)want[j]);
	assert_int_equal(pushes, 5 + STEPS);
	assert_int_equal(examples, 6 + STEPS);
	assert_int_equal(steps, 7 + STEPS);
	assert_int_equal(tally, STEPS);
}

static void dense_rows(void **state)
{
	(void)state;
	for (int isa = 0; isa < MW_ISA_COUNT; isa++) {
		if (!mw_kernels_of((enum mw_isa)isa))
			continue;
		for (size_t w = 0; w < sizeof(widths) / sizeof(*widths); w++)
			for (int c = 0; c < 16; c++) {
				struct mw_linear lin = { .link = c & 8 ? MW_LINK_LOGISTIC : MW_LINK_SQUARED,
					.bias = c & 1,
					.l2 = c & 2 ? 0.01f : 0 };
				one((enum mw_isa)isa, widths[w], &lin, c & 4 ? 1. / 3 : 1, false);
				one((enum mw_isa)isa, widths[w], &lin, c & 4 ? 1. / 3 : 1, true);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(dense_rows) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
