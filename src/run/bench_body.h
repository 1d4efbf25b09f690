/* bench_body.h: the raw loops for one instruction set; the file that includes it defines BENCH, the table's name. */
#include "base/kernel_inline.h"
#include "run/bench.h"

/* Accumulators: enough to hide the latency of an addition. */
#define SUMS 12

static float fold(const mwk_v *v, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < MWK_LANES; k++)
			sum += v[i][k];
	return sum;
}

/* Four places at a time: more requests are on their way to memory than one sequence of addresses makes. */
static float sum(const float *x, size_t n)
{
	mwk_v acc[8] = { { 0 } };
	size_t quarter = n / 4 / (2 * MWK_LANES) * (2 * MWK_LANES);
	for (size_t i = 0; i < quarter; i += 2 * MWK_LANES)
		for (size_t k = 0; k < 4; k++) {
			acc[k] += mwk_load(x + k * quarter + i);
			acc[k + 4] += mwk_load(x + k * quarter + i + MWK_LANES);
		}
	return fold(acc, 8);
}

static float gather(const float *table, const uint32_t *idx, size_t n)
{
	float acc[8] = { 0 };
	for (size_t i = 0; i + 8 <= n; i += 8)
		for (int k = 0; k < 8; k++)
			acc[k] += table[idx[i + (size_t)k]];
	return acc[0] + acc[1] + acc[2] + acc[3] + acc[4] + acc[5] + acc[6] + acc[7];
}

static float fma_peak(size_t n, double *flops)
{
	mwk_v acc[SUMS], factor = mwk_set1(0.999f), term = mwk_set1(0.001f);
	for (int i = 0; i < SUMS; i++)
		acc[i] = mwk_set1((float)i);
	for (size_t i = 0; i < n; i++) {
		for (int k = 0; k < SUMS; k++)
			acc[k] = mwk_fma_v(acc[k], factor, term);
	}
	*flops = 2.0 * SUMS * MWK_LANES * (double)n;
	return fold(acc, SUMS);
}

const struct mw_gauge_raw BENCH = { .sum = sum, .gather = gather, .fma = fma_peak };
