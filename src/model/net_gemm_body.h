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

/* Four columns of four floats each, ld apart, to four rows, width apart. */
MWK_INLINE void transpose_4(const float *from, size_t ld, float *to, size_t width)
{
	mwk_q a = *(const mwk_q_mem *)from, b = *(const mwk_q_mem *)(from + ld),
	      c = *(const mwk_q_mem *)(from + 2 * ld), d = *(const mwk_q_mem *)(from + 3 * ld);
	mwk_q ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
	mwk_q cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
	*(mwk_q_mem *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
	*(mwk_q_mem *)(to + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
	*(mwk_q_mem *)(to + 2 * width) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
	*(mwk_q_mem *)(to + 3 * width) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

/* n columns of op(B) from kc rows, zero beyond n; width floats a row. */
MWK_INLINE void gemm_pack(
	const float *b, size_t row, size_t col, size_t kc, size_t n, size_t width, float *panel)
{
	size_t fours = row == 1 ? n / 4 * 4 : 0, k = 0;
	for (; fours && k + 4 <= kc; k += 4)
		for (size_t j = 0; j < fours; j += 4)
			transpose_4(b + k + j * col, col, panel + k * width + j, width);
	for (k = 0; k < kc; k++) {
		float *to = panel + k * width;
		size_t j = k < kc / 4 * 4 ? fours : 0;
		for (; col == 1 && j + MWK_LANES <= n; j += MWK_LANES)
			mwk_store(to + j, mwk_load(b + k * row + j));
		for (; j < n; j++)
			to[j] = b[k * row + j * col];
		for (; j < width; j++)
			to[j] = 0;
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
