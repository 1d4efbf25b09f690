/*
 * net_gemm_body.h: a matrix product for one instruction set, part of net_kernel_body.h. The usual scheme (Goto and
 * van de Geijn 2008) cut down to what small nets need: a panel of B is packed on the stack, tiles of sums stay in
 * registers, and A is read in place, one float for a row of a tile. Panels are one or two vectors wide, so that narrow
 * results (16 channels) waste nothing. Each sum runs over k in order, in blocks of GEMM_KC.
 */
#if MWK_LANES == 16
#define GEMM_SUMS 24 /* vectors of sums in a tile */
#elif MWK_LANES == 8
#define GEMM_SUMS 12
#else
#define GEMM_SUMS 8
#endif
#define GEMM_KC 256

/* op(A): element (i, k) is a[i * row + k * col] */
struct gemm_a {
	const float *a;
	size_t row, col;
};

/* Columns j..j+n of rows p..p+kc of op(B), zero beyond n; width floats a row. */
MWK_INLINE void gemm_pack(
	const float *b, size_t row, size_t col, size_t kc, size_t n, size_t width, float *panel)
{
	for (size_t k = 0; k < kc; k++, panel += width)
		if (col == 1 && n == width) {
			for (size_t j = 0; j < width; j += MWK_LANES)
				mwk_store(panel + j, mwk_load(b + k * row + j));
		} else {
			for (size_t j = 0; j < n; j++)
				panel[j] = b[k * row + j * col];
			for (size_t j = n; j < width; j++)
				panel[j] = 0;
		}
}

/* The first n <= MWK_LANES floats of v. */
MWK_INLINE void store_part(float *p, mwk_v v, size_t n)
{
#if MWK_LANES == 16
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
#elif MWK_LANES == 8
	__m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	_mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane), v);
#else
	for (size_t i = 0; i < n; i++)
		p[i] = v[i];
#endif
}

/* n floats of the sums, more than all but the last vector. vectors: constant at every call */
MWK_INLINE void gemm_store(const mwk_v *sum, int vectors, size_t n, bool accumulate, float *c)
{
	for (int v = 0; v < vectors; v++, c += MWK_LANES) {
		size_t part = n - (size_t)v * MWK_LANES;
		if (part >= MWK_LANES)
			mwk_store(c, accumulate ? mwk_load(c) + sum[v] : sum[v]);
		else
			store_part(c, accumulate ? mwk_load_part(c, part) + sum[v] : sum[v], part);
	}
}

/* rows x vectors <= GEMM_SUMS, constants at every call */
MWK_INLINE void gemm_tile(int rows, int vectors, struct gemm_a a, const float *panel, size_t kc, size_t n,
	bool accumulate, float *c, size_t ldc)
{
	mwk_v sum[GEMM_SUMS], b[2];
	for (int i = 0; i < rows * vectors; i++)
		sum[i] = mwk_set1(0);
	for (size_t k = 0; k < kc; k++, panel += vectors * MWK_LANES, a.a += a.col) {
		for (int v = 0; v < vectors; v++)
			b[v] = mwk_load(panel + v * MWK_LANES);
		for (int i = 0; i < rows; i++) {
			mwk_v x = mwk_set1(a.a[(size_t)i * a.row]);
			for (int v = 0; v < vectors; v++)
				sum[i * vectors + v] = mwk_fma_v(x, b[v], sum[i * vectors + v]);
		}
	}
	for (int i = 0; i < rows; i++)
		gemm_store(&sum[i * vectors], vectors, n, accumulate, c + (size_t)i * ldc);
}

/* All rows of a panel's columns. */
MWK_INLINE void gemm_column(int vectors, struct gemm_a a, size_t m, const float *panel, size_t kc, size_t n,
	bool accumulate, float *c, size_t ldc)
{
	enum { FOUR = 4 };
	const int most = GEMM_SUMS / vectors;
	size_t i = 0;
	for (; i + (size_t)most <= m; i += (size_t)most, a.a += (size_t)most * a.row, c += (size_t)most * ldc)
		gemm_tile(most, vectors, a, panel, kc, n, accumulate, c, ldc);
	for (; i + FOUR <= m; i += FOUR, a.a += FOUR * a.row, c += FOUR * ldc)
		gemm_tile(FOUR, vectors, a, panel, kc, n, accumulate, c, ldc);
	for (; i < m; i++, a.a += a.row, c += ldc)
		gemm_tile(1, vectors, a, panel, kc, n, accumulate, c, ldc);
}

static void gemm_one(struct gemm_a a, size_t m, const float *panel, size_t kc, size_t n, bool accumulate,
	float *c, size_t ldc)
{
	gemm_column(1, a, m, panel, kc, n, accumulate, c, ldc);
}

static void gemm_two(struct gemm_a a, size_t m, const float *panel, size_t kc, size_t n, bool accumulate,
	float *c, size_t ldc)
{
	gemm_column(2, a, m, panel, kc, n, accumulate, c, ldc);
}

static void gemm(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
	size_t ldb, bool accumulate, float *c, size_t ldc)
{
	float panel[GEMM_KC * 2 * MWK_LANES] __attribute__((aligned(64)));
	size_t b_row = tb ? 1 : ldb, b_col = tb ? ldb : 1;
	for (size_t p = 0; p < k; p += GEMM_KC) {
		size_t kc = k - p < GEMM_KC ? k - p : GEMM_KC, width;
		struct gemm_a part = { a + p * (ta ? lda : 1), ta ? 1 : lda, ta ? lda : 1 };
		for (size_t j = 0; j < n; j += width) {
			width = n - j > MWK_LANES ? 2 * MWK_LANES : MWK_LANES;
			size_t nr = n - j < width ? n - j : width;
			gemm_pack(b + p * b_row + j * b_col, b_row, b_col, kc, nr, width, panel);
			(width > MWK_LANES ? gemm_two : gemm_one)(
				part, m, panel, kc, nr, accumulate || p > 0, c + j, ldc);
		}
	}
}
