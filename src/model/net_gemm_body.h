/*
 * net_gemm_body.h: a matrix product for one instruction set, part of net_kernel_body.h. The usual scheme (Goto and
 * van de Geijn 2008) cut down to what small nets need: a panel of B is packed on the stack, tiles of MR x NR sums stay
 * in registers, and A is read in place, one float for MR x NR products. Each sum runs over k in order, in blocks of KC.
 */
#if MWK_LANES == 16
#define GEMM_MR 12
#elif MWK_LANES == 8
#define GEMM_MR 6
#else
#define GEMM_MR 4
#endif
#define GEMM_NR (2 * MWK_LANES)
#define GEMM_KC 256

/* op(A): element (i, k) is a[i * row + k * col] */
struct gemm_a {
	const float *a;
	size_t row, col;
};

/* Columns j..j+n of rows p..p+kc of op(B), zero beyond n. */
MWK_INLINE void gemm_pack(const float *b, size_t row, size_t col, size_t kc, size_t n, float *panel)
{
	for (size_t k = 0; k < kc; k++, panel += GEMM_NR)
		if (col == 1 && n == GEMM_NR) {
			memcpy(panel, b + k * row, GEMM_NR * sizeof(*panel));
		} else {
			for (size_t j = 0; j < n; j++)
				panel[j] = b[k * row + j * col];
			memset(panel + n, 0, (GEMM_NR - n) * sizeof(*panel));
		}
}

MWK_INLINE void gemm_store(const mwk_v *sum, size_t n, bool accumulate, float *c)
{
	float lane[GEMM_NR] __attribute__((aligned(64)));
	if (n == GEMM_NR) {
		mwk_store(c, accumulate ? mwk_load(c) + sum[0] : sum[0]);
		mwk_store(c + MWK_LANES, accumulate ? mwk_load(c + MWK_LANES) + sum[1] : sum[1]);
		return;
	}
	memcpy(lane, sum, sizeof(lane));
	for (size_t j = 0; j < n; j++)
		c[j] = accumulate ? c[j] + lane[j] : lane[j];
}

/* rows <= GEMM_MR, a constant at every call. */
MWK_INLINE void gemm_tile(int rows, struct gemm_a a, const float *panel, size_t kc, size_t n, bool accumulate,
	float *c, size_t ldc)
{
	mwk_v sum[GEMM_MR][2];
	for (int i = 0; i < rows; i++)
		sum[i][0] = sum[i][1] = mwk_set1(0);
	for (size_t k = 0; k < kc; k++, panel += GEMM_NR, a.a += a.col) {
		mwk_v b0 = mwk_load(panel), b1 = mwk_load(panel + MWK_LANES);
		for (int i = 0; i < rows; i++) {
			mwk_v v = mwk_set1(a.a[(size_t)i * a.row]);
			sum[i][0] = mwk_fma_v(v, b0, sum[i][0]);
			sum[i][1] = mwk_fma_v(v, b1, sum[i][1]);
		}
	}
	for (int i = 0; i < rows; i++)
		gemm_store(sum[i], n, accumulate, c + (size_t)i * ldc);
}

static void gemm_column(struct gemm_a a, size_t m, const float *panel, size_t kc, size_t n, bool accumulate,
	float *c, size_t ldc)
{
	size_t i = 0;
	for (; i + GEMM_MR <= m; i += GEMM_MR, a.a += GEMM_MR * a.row, c += GEMM_MR * ldc)
		gemm_tile(GEMM_MR, a, panel, kc, n, accumulate, c, ldc);
	for (; i + 2 <= m; i += 2, a.a += 2 * a.row, c += 2 * ldc)
		gemm_tile(2, a, panel, kc, n, accumulate, c, ldc);
	for (; i < m; i++)
		gemm_tile(1, a, panel, kc, n, accumulate, c, ldc);
}

static void gemm(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
	size_t ldb, bool accumulate, float *c, size_t ldc)
{
	float panel[GEMM_KC * GEMM_NR] __attribute__((aligned(64)));
	size_t b_row = tb ? 1 : ldb, b_col = tb ? ldb : 1;
	for (size_t p = 0; p < k; p += GEMM_KC) {
		size_t kc = k - p < GEMM_KC ? k - p : GEMM_KC;
		struct gemm_a part = { a + p * (ta ? lda : 1), ta ? 1 : lda, ta ? lda : 1 };
		for (size_t j = 0; j < n; j += GEMM_NR) {
			size_t nr = n - j < GEMM_NR ? n - j : GEMM_NR;
			gemm_pack(b + p * b_row + j * b_col, b_row, b_col, kc, nr, panel);
			gemm_column(part, m, panel, kc, nr, accumulate || p > 0, c + j, ldc);
		}
	}
}
