/* unit_run_burst.c: the fused path against the kernels one after the other, to the bit, for every instruction set. */
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
#include "optim/rules.h"
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

/* --- CSR rows ----------------------------------------------------------------------------------------------------- */

enum { FEATURES = 1500, LONGEST = 1025, SPARSE_ROWS = 40 };
static uint64_t row_ptr[SPARSE_ROWS + 1];
static uint32_t col[SPARSE_ROWS * LONGEST + 16];
static float val[SPARSE_ROWS * LONGEST + 16], sparse_x[FEATURES + 32], sparse_want[FEATURES + 32];

/* Every length up to 3 vectors and a bit; then rows that are longer than what the fused path keeps of one, and as long. */
static uint64_t length(uint64_t row)
{
	return row < 36 ? row : LONGEST - 3 + (row - 36);
}

/* Values are such that an update which is lost, or done twice, or in another row's columns, is seen. */
static void fill_sparse(void)
{
	struct mw_rng r;
	mw_rng_init(&r, 3, 1);
	for (uint64_t i = 0; i < SPARSE_ROWS; i++) {
		uint64_t o = row_ptr[i], n = length(i), c = 0;
		row_ptr[i + 1] = o + n;
		for (uint64_t j = 0; j < n; j++) {
			c += mw_rng_below(&r, (FEATURES - c) - (n - j) + 1 < 4 ? 1 : 4);
			col[o + j] = (uint32_t)c++;
			val[o + j] = (float)(mw_rng_uniform(&r) + 0.5);
		}
	}
	for (int j = 0; j < FEATURES + 32; j++)
		sparse_x[j] = sparse_want[j] = (float)(mw_rng_uniform(&r) - 0.5);
}

struct sparse_run {
	struct mw_dataset d;
	uint64_t order[STEPS + MW_BURST_AHEAD], pushes, examples, steps;
	float last;
};

/* Fresh rows and parameters, and the burst over them; s has to stay where it is. */
static struct mw_burst sparse_burst(
	struct sparse_run *s, const struct mw_linear *lin, double weight, bool own)
{
	*s = (struct sparse_run){ .d = { .kind = MW_X_CSR,
					  .rows = SPARSE_ROWS,
					  .features = FEATURES,
					  .row_ptr = row_ptr,
					  .col = col,
					  .val = val,
					  .y = labels },
		.pushes = 5,
		.examples = 6,
		.steps = 7 };
	for (int i = 0; i < STEPS + MW_BURST_AHEAD; i++)
		s->order[i] = (uint64_t)(i * 29 + 3) % SPARSE_ROWS;
	fill_sparse();
	return (struct mw_burst){ .data = &s->d,
		.linear = lin,
		.x = sparse_x,
		.row = s->order,
		.n = STEPS,
		.ahead = STEPS + MW_BURST_AHEAD,
		.rate = rate,
		.weight = weight,
		.own = own,
		.pushes = &s->pushes,
		.examples = &s->examples,
		.steps = &s->steps,
		.margin = &s->last };
}

static void sparse_one(
	enum mw_isa isa, const struct mw_linear *lin, double weight, bool own, uint32_t fetch_lines)
{
	const struct mw_kernels *k = mw_kernels_of(isa);
	float z = 0, scale = (float)(-(double)rate * weight);
	struct sparse_run s;
	struct mw_burst b = sparse_burst(&s, lin, weight, own);
	b.fetch_lines = fetch_lines;
	burst_of(isa)(&b);
	for (int i = 0; i < STEPS; i++) {
		uint64_t o = row_ptr[s.order[i]], n = row_ptr[s.order[i] + 1] - o;
		z = k->dot_sparse(sparse_want, col + o, val + o, n) + (lin->bias ? sparse_want[FEATURES] : 0);
		float a = mw_link_dloss(lin->link, z, labels[s.order[i]]) * scale;
		k->axpy_sparse(a, col + o, val + o, sparse_want, n);
		sparse_want[FEATURES] += lin->bias ? a : 0;
	}
	assert_memory_equal(&s.last, &z, sizeof(z));
	for (int j = 0; j < FEATURES + 32; j++)
		if (memcmp(&sparse_x[j], &sparse_want[j], sizeof(float)))
			fail_msg("%s, own %d, coordinate %d: %a, not %a", k->name, own, j,
				(double)sparse_x[j], (double)sparse_want[j]);
	assert_int_equal(s.pushes, 5 + STEPS);
}

static void sparse_rows(void **state)
{
	(void)state;
	for (int isa = 0; isa < MW_ISA_COUNT; isa++)
		for (int c = 0; mw_kernels_of((enum mw_isa)isa) && c < 32; c++) {
			struct mw_linear lin = { .link = c & 1 ? MW_LINK_LOGISTIC : MW_LINK_HINGE,
				.bias = c & 2 };
			sparse_one((enum mw_isa)isa, &lin, c & 4 ? 1. / 3 : 1, c & 8, c & 16 ? 3 : 0);
		}
}

/* --- CSR rows, an optimizer with a state ---------------------------------------------------------------------------- */

enum { RECORD = 4 };
static float state_got[(FEATURES + 1) * RECORD], state_want[(FEATURES + 1) * RECORD];

/* The rule on one parameter at a time, then the push of its delta, as the phases of worker.c round them. */
static void state_step(const struct mw_optim *o, const struct mw_coef *c, uint32_t at, float v, double weight)
{
	float delta;
	mw_rules_portable.sparse[o->rule](c, state_want, &at, 1, 1, NULL, &v, &delta);
	sparse_want[at] += weight == 1 ? delta : (float)(delta * weight);
}

static void state_row(const struct mw_kernels *k, const struct mw_optim *o, const struct mw_linear *lin,
	uint64_t row, uint64_t t, double weight, float *z)
{
	uint64_t begin = row_ptr[row], n = row_ptr[row + 1] - begin;
	struct mw_step s = { .rate = rate, .t = t };
	struct mw_coef c = o->ops->coef(o, &s);
	*z = k->dot_sparse(sparse_want, col + begin, val + begin, n) +
	     (lin->bias ? sparse_want[FEATURES] : 0);
	c.scale = mw_link_dloss(lin->link, *z, labels[row]);
	for (uint64_t j = begin; j < begin + n; j++)
		state_step(o, &c, col[j], val[j], weight);
	if (lin->bias)
		state_step(o, &c, FEATURES, 1, weight);
}

static void state_one(enum mw_isa isa, const struct mw_optim *o, const struct mw_linear *lin, double weight,
	bool own, bool atomic)
{
	static uint32_t group[LONGEST + 17];
	static float delta[LONGEST + 17];
	const struct mw_kernels *k = mw_kernels_of(isa);
	float z = 0;
	struct sparse_run s;
	struct mw_burst b = sparse_burst(&s, lin, weight, own);
	b.atomic = atomic;
	b.optim = o;
	b.state = state_got;
	b.t = 10;
	b.group = group;
	b.delta = delta;
	memset(state_got, 0, sizeof(state_got));
	memset(state_want, 0, sizeof(state_want));
	burst_of(isa)(&b);
	for (uint64_t i = 0; i < STEPS; i++)
		state_row(k, o, lin, s.order[i], 10 + i, weight, &z);
	assert_memory_equal(&s.last, &z, sizeof(z));
	for (int j = 0; j < FEATURES + 32; j++)
		if (memcmp(&sparse_x[j], &sparse_want[j], sizeof(float)))
			fail_msg("%s, %s, own %d, coordinate %d: %a, not %a", k->name, o->ops->name, own, j,
				(double)sparse_x[j], (double)sparse_want[j]);
	assert_memory_equal(state_got, state_want, sizeof(state_got));
	assert_int_equal(s.pushes, 5 + STEPS);
}

static void state_rows(void **unused)
{
	static const double weights[] = { 1, 0.25, 1. / 3 };
	(void)unused;
	for (const struct mw_optim_ops *const *ops = mw_optims; *ops; ops++) {
		struct mw_optim *o;
		assert_int_equal(mw_optim_new(*ops, NULL, &o, NULL), 0);
		for (int isa = 0; o->fields && isa < MW_ISA_COUNT; isa++)
			for (int c = 0; mw_kernels_of((enum mw_isa)isa) && c < 18; c++) {
				struct mw_linear lin = { .link = MW_LINK_LOGISTIC, .bias = c & 1 };
				state_one((enum mw_isa)isa, o, &lin, weights[c / 6], c / 2 % 3 == 0,
					c / 2 % 3 == 1);
			}
		mw_optim_free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(dense_rows), cmocka_unit_test(sparse_rows),
		cmocka_unit_test(state_rows) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
