/*
 * kernel_inline.h: the bodies of the vector kernels as inline functions, for the instruction set this file is
 * compiled for. kernel_body.h makes a table of them; a fused update path that is compiled once per
 * instruction set may include them directly and then computes the same bits.
 *
 * The algorithms are written once, on the compilers' vector types, whose widths differ by instruction set.
 * Dot products of sparse rows share one function, hence its order and bits. A product that is added to a replica is
 * rounded before the addition (no FMA): an update is the same whether its delta was stored in between or not.
 *
 * Compile with MW_KERNEL_PORTABLE for plain C; else -mavx2 -mfma, or AVX-512 F, DQ, VL, BW on top. Always
 * with -ffp-contract=off.
 */
#ifndef MW_BASE_KERNEL_INLINE_H
#define MW_BASE_KERNEL_INLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/approx.h"
#include "base/shared.h"

#if defined(MW_STRICT_ATOMICS) && !defined(MW_KERNEL_PORTABLE)
#error "strict atomics: only the portable kernels touch a replica by atomic accesses"
#endif

#define MWK_INLINE static inline __attribute__((always_inline, unused))

#if defined(MW_KERNEL_PORTABLE)
#define MWK_LANES     4
#define MWK_DOT_LANES 4
#elif defined(__AVX512F__) && defined(__AVX512VL__)
#include <immintrin.h>
#define MWK_LANES     16
#define MWK_DOT_LANES 8 /* 16 lose on the rests of short rows */
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define MWK_LANES     8
#define MWK_DOT_LANES 8
#else
#error "kernel_inline.h: define MW_KERNEL_PORTABLE, or compile for AVX2 and FMA, or AVX-512"
#endif

/* mwk_v: the widest vector; mwk_d: dot products; mwk_q: their rests. */
typedef float mwk_v __attribute__((vector_size(4 * MWK_LANES)));
typedef float mwk_d __attribute__((vector_size(4 * MWK_DOT_LANES)));
typedef float mwk_q __attribute__((vector_size(16)));
/* As they lie in memory: aligned like a float, may be any float array. */
typedef float mwk_v_mem __attribute__((vector_size(4 * MWK_LANES), aligned(4), may_alias));
typedef float mwk_d_mem __attribute__((vector_size(4 * MWK_DOT_LANES), aligned(4), may_alias));
typedef float mwk_q_mem __attribute__((vector_size(16), aligned(4), may_alias));

MWK_INLINE mwk_v mwk_load(const float *p)
{
	return *(const mwk_v_mem *)p;
}

MWK_INLINE void mwk_store(float *p, mwk_v v)
{
	*(mwk_v_mem *)p = v;
}

MWK_INLINE mwk_v mwk_set1(float a)
{
#if MWK_LANES == 16
	return _mm512_set1_ps(a); /* {0} + a would be an addition: -0 becomes 0 */
#elif MWK_LANES == 8
	return _mm256_set1_ps(a);
#else
	return (mwk_v){ a, a, a, a };
#endif
}

/* ---- a b + c, rounded once where the machine can ---- */
#if defined(MW_KERNEL_PORTABLE)
#define MWK_FMA(a, b, c)   ((a) * (b) + (c))
#define mwk_fma_v(a, b, c) MWK_FMA(a, b, c)
#define mwk_fma_d(a, b, c) MWK_FMA(a, b, c)
#define mwk_fma_q(a, b, c) MWK_FMA(a, b, c)
#define mwk_fma_1(a, b, c) MWK_FMA(a, b, c)
#else
#if MWK_LANES == 16
#define mwk_fma_v(a, b, c) ((mwk_v)_mm512_fmadd_ps(a, b, c))
#else
#define mwk_fma_v(a, b, c) ((mwk_v)_mm256_fmadd_ps(a, b, c))
#endif
#define mwk_fma_d(a, b, c) ((mwk_d)_mm256_fmadd_ps(a, b, c))
#define mwk_fma_q(a, b, c) ((mwk_q)_mm_fmadd_ps(a, b, c))
#define mwk_fma_1(a, b, c) __builtin_fmaf(a, b, c)
#endif

/* The first n < MWK_LANES floats, then zeros. */
MWK_INLINE mwk_v mwk_load_part(const float *p, size_t n)
{
#if MWK_LANES == 16
	return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif MWK_LANES == 8
	__m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
#else
	return (mwk_v){ n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0 };
#endif
}

/* ---- dot products ---- */

/*
 * Floats of w at idx[0..], or in a row when idx is NULL (a constant at every call, so this costs nothing).
 * Single loads put together beat the gather instruction, and indices loaded two at a time single ones.
 */
MWK_INLINE mwk_d mwk_take_d(const float *w, const uint32_t *idx)
{
#ifndef MW_STRICT_ATOMICS
	if (!idx)
		return *(const mwk_d_mem *)w;
#endif
#if MWK_DOT_LANES == 8
	uint64_t x[4];
	memcpy(x, idx, sizeof(x));
#define MWK_TWO(k) mw_ld(w + (uint32_t)x[k]), mw_ld(w + (x[k] >> 32))
	return (mwk_d){ MWK_TWO(0), MWK_TWO(1), MWK_TWO(2), MWK_TWO(3) };
#undef MWK_TWO
#else
#define MWK_AT(k) mw_ld(w + (idx ? idx[k] : (k)))
	return (mwk_d){ MWK_AT(0), MWK_AT(1), MWK_AT(2), MWK_AT(3) };
#undef MWK_AT
#endif
}

MWK_INLINE mwk_q mwk_fold(mwk_d v)
{
#if MWK_DOT_LANES == 8
	return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
#else
	return v;
#endif
}

/*
 * The rest of a row, 1 <= r <= MWK_DOT_LANES elements, as a whole vector: its free lanes repeat the last element. Nothing
 * behind the row is read, unless `over` says that something is there (a dataset's arrays).
 */
#if MWK_DOT_LANES == 8
MWK_INLINE __m256i mwk_first_lanes(size_t r)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)r), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

MWK_INLINE __m256i mwk_up_to_last(size_t r)
{
	return _mm256_min_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)r - 1));
}

MWK_INLINE mwk_d mwk_rest(const float *p, size_t r, bool over)
{
	__m256 v = over ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, mwk_first_lanes(r));
	return _mm256_permutevar8x32_ps(v, mwk_up_to_last(r));
}

MWK_INLINE __m256i mwk_rest_index(const uint32_t *idx, size_t r, bool over)
{
	__m256i x = over ? _mm256_loadu_si256((const __m256i *)(const void *)idx)
			 : _mm256_maskload_epi32((const int *)idx, mwk_first_lanes(r));
	return _mm256_permutevar8x32_epi32(x, mwk_up_to_last(r));
}

MWK_INLINE mwk_d mwk_take_rest(const float *w, const uint32_t *idx, size_t r, bool over)
{
#if MWK_LANES == 16
	return _mm256_i32gather_ps(w, mwk_rest_index(idx, r, over), 4);
#else
	uint32_t at[8] __attribute__((aligned(32)));
	_mm256_store_si256((__m256i *)(void *)at, mwk_rest_index(idx, r, over));
	return mwk_take_d(w, at);
#endif
}

/* s + w v in the first r lanes. */
MWK_INLINE mwk_d mwk_fma_rest(mwk_d w, mwk_d v, mwk_d s, size_t r)
{
#if MWK_LANES == 16
	return _mm256_mask3_fmadd_ps(w, v, s, (__mmask8)((1u << r) - 1));
#else
	return _mm256_blendv_ps(s, mwk_fma_d(w, v, s), _mm256_castsi256_ps(mwk_first_lanes(r)));
#endif
}
#else
MWK_INLINE mwk_d mwk_rest(const float *p, size_t r, bool over)
{
	(void)over;
	return (mwk_d){ mw_ld(p), mw_ld(p + (r > 1 ? 1 : 0)), mw_ld(p + (r > 2 ? 2 : r - 1)),
		mw_ld(p + r - 1) };
}

MWK_INLINE mwk_d mwk_take_rest(const float *w, const uint32_t *idx, size_t r, bool over)
{
	(void)over;
	return (mwk_d){ mw_ld(w + idx[0]), mw_ld(w + idx[r > 1 ? 1 : 0]), mw_ld(w + idx[r > 2 ? 2 : r - 1]),
		mw_ld(w + idx[r - 1]) };
}

MWK_INLINE mwk_d mwk_fma_rest(mwk_d w, mwk_d v, mwk_d s, size_t r)
{
	for (size_t k = 0; k < r; k++)
		s[k] = MWK_FMA(w[k], v[k], s[k]);
	return s;
}
#endif

/*
 * Two sums take turns, a vector at a time, and the rest of the row goes to the one whose turn it is: so a row has one branch
 * that can't be foreseen, how many vectors it has. keep: NULL (a constant), or where what was read is left, n floats in
 * whole vectors; idx and val are a dataset's then.
 */
MWK_INLINE float mwk_dot_any(const float *w, const uint32_t *idx, const float *val, size_t n, float *keep)
{
	enum { L = MWK_DOT_LANES };
	mwk_d a = { 0 }, b = a;
	size_t i = 0;
	if (!n)
		return 0;
	for (; i + L < n; i += L) {
		mwk_d x = idx ? mwk_take_d(w, idx + i) : mwk_take_d(w + i, NULL);
		if (keep)
			*(mwk_d_mem *)(keep + i) = x;
		x = mwk_fma_d(x, *(const mwk_d_mem *)(val + i), a);
		a = b;
		b = x;
	}
	mwk_d x = idx ? mwk_take_rest(w, idx + i, n - i, keep) : mwk_rest(w + i, n - i, false);
	if (keep)
		*(mwk_d_mem *)(keep + i) = x;
	mwk_q q = mwk_fold(mwk_fma_rest(x, mwk_rest(val + i, n - i, keep), a, n - i) + b);
	return (q[0] + q[2]) + (q[1] + q[3]);
}

MWK_INLINE float mwk_dot_compact(const float *a, const float *b, size_t n)
{
	return mwk_dot_any(a, NULL, b, n, NULL);
}

MWK_INLINE float mwk_sum(mwk_v v)
{
#if MWK_LANES == 16
	mwk_q q = mwk_fold(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
#else
	mwk_q q = mwk_fold(v);
#endif
	return (q[0] + q[2]) + (q[1] + q[3]);
}

/*
 * Dense rows are long: four sums of the widest vectors hide the latency of an addition, and a mask takes the rest. a may
 * be a replica.
 */
MWK_INLINE float mwk_dot(const float *a, const float *b, size_t n)
{
#if defined(MW_KERNEL_PORTABLE)
	return mwk_dot_any(a, NULL, b, n, NULL);
#else
	enum { L = MWK_LANES };
	mwk_v s[4] = { mwk_set1(0), mwk_set1(0), mwk_set1(0), mwk_set1(0) };
	size_t i = 0;
	for (; i + 4 * L <= n; i += 4 * L)
		for (int k = 0; k < 4; k++)
			s[k] = mwk_fma_v(mwk_load(a + i + k * L), mwk_load(b + i + k * L), s[k]);
	for (; i + L <= n; i += L)
		s[0] = mwk_fma_v(mwk_load(a + i), mwk_load(b + i), s[0]);
	if (i < n)
		s[1] = mwk_fma_v(mwk_load_part(a + i, n - i), mwk_load_part(b + i, n - i), s[1]);
	return mwk_sum((s[0] + s[1]) + (s[2] + s[3]));
#endif
}

MWK_INLINE float mwk_dot_sparse(const float *w, const uint32_t *idx, const float *val, size_t n)
{
	if (!idx) /* as the compiler is told: an empty row's may be, and is not looked at */
		return 0;
	return mwk_dot_any(w, idx, val, n, NULL);
}

/* ---- updates of a replica ---- */

MWK_INLINE void mwk_add(float *w, float d)
{
	mw_st(w, mw_ld(w) + d);
}

/* w[idx[k]] += v[k] for one vector of dot products, lane by lane: AVX-512's scatter is slower. */
MWK_INLINE void mwk_scatter_vector(float *w, const uint32_t *idx, mwk_d v)
{
	float d[MWK_DOT_LANES] __attribute__((aligned(32)));
	memcpy(d, &v, sizeof(d));
#if MWK_DOT_LANES == 8
	uint64_t x[4];
	memcpy(x, idx, sizeof(x));
	for (int k = 0; k < 4; k++) {
		mwk_add(w + (uint32_t)x[k], d[2 * k]);
		mwk_add(w + (x[k] >> 32), d[2 * k + 1]);
	}
#else
	for (int k = 0; k < MWK_DOT_LANES; k++)
		mwk_add(w + idx[k], d[k]);
#endif
}

MWK_INLINE mwk_d mwk_load_d(const float *p)
{
	return *(const mwk_d_mem *)p;
}

MWK_INLINE void mwk_store_d(float *p, mwk_d v)
{
	*(mwk_d_mem *)p = v;
}

MWK_INLINE mwk_d mwk_set1_d(float a)
{
#if MWK_DOT_LANES == 8
	return _mm256_set1_ps(a);
#else
	return (mwk_d){ a, a, a, a };
#endif
}

MWK_INLINE void mwk_axpy_sparse(float a, const uint32_t *idx, const float *val, float *w, size_t n)
{
	enum { L = MWK_DOT_LANES };
	mwk_d av = mwk_set1_d(a);
	size_t i = 0;
	for (; i + L <= n; i += L)
		mwk_scatter_vector(w, idx + i, av * mwk_load_d(val + i));
	for (; i < n; i++)
		mwk_add(w + idx[i], a * val[i]);
}

/* A row's margin, of a dataset's row, where nobody else writes w; keep has room for n floats in whole vectors. */
MWK_INLINE float mwk_dot_keep(const float *w, const uint32_t *idx, const float *val, size_t n, float *keep)
{
	if (!idx)
		return 0;
	return mwk_dot_any(w, idx, val, n, keep);
}

#if MWK_DOT_LANES == 8
/* w[idx[k]] = v[k]; an index may come twice, with the same value. */
MWK_INLINE void mwk_put_vector(float *w, const uint32_t *idx, mwk_d v)
{
	typedef int int_mem __attribute__((may_alias));
	mwk_q low = _mm256_castps256_ps128(v), high = _mm256_extractf128_ps(v, 1);
	uint64_t x[4];
	memcpy(x, idx, sizeof(x));
#define MWK_PUT_TWO(k, q, at)                                                 \
	do {                                                                  \
		*(int_mem *)(w + (uint32_t)x[k]) = _mm_extract_ps(q, at);     \
		*(int_mem *)(w + (x[k] >> 32)) = _mm_extract_ps(q, (at) + 1); \
	} while (0)
	MWK_PUT_TWO(0, low, 0);
	MWK_PUT_TWO(1, low, 2);
	MWK_PUT_TWO(2, high, 0);
	MWK_PUT_TWO(3, high, 2);
#undef MWK_PUT_TWO
}

/*
 * What mwk_axpy_sparse does, to the bit, after mwk_dot_keep: nothing is read again, and the rest needs no branch.
 */
MWK_INLINE void mwk_axpy_kept(
	float a, const uint32_t *idx, const float *val, const float *keep, float *w, size_t n)
{
	enum { L = MWK_DOT_LANES };
	mwk_d av = mwk_set1_d(a);
	uint32_t at[L] __attribute__((aligned(32)));
	size_t i = 0;
	if (!n)
		return;
	for (; i + L < n; i += L)
		mwk_put_vector(w, idx + i, mwk_load_d(keep + i) + av * mwk_load_d(val + i));
	_mm256_store_si256((__m256i *)(void *)at, mwk_rest_index(idx + i, n - i, true));
	mwk_put_vector(w, at, mwk_load_d(keep + i) + av * mwk_rest(val + i, n - i, true));
}
#else
MWK_INLINE void mwk_axpy_kept(
	float a, const uint32_t *idx, const float *val, const float *keep, float *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mw_st(w + idx[i], keep[i] + a * val[i]);
}
#endif

MWK_INLINE void mwk_axpy(float a, const float *x, float *w, size_t n)
{
	size_t i = 0;
#ifndef MW_STRICT_ATOMICS
	mwk_v av = mwk_set1(a);
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		mwk_store(w + i, mwk_load(w + i) + av * mwk_load(x + i));
#endif
	for (; i < n; i++)
		mwk_add(w + i, a * x[i]);
}

/*
 * Copies. The vectors are volatile, for a compiler makes a plain copy loop a call of memcpy, which may store
 * a word twice (overlapping tails): the second store would wipe out what another thread has written in
 * between.
 */
MWK_INLINE void mwk_view(const float *w, float *out, size_t n)
{
	size_t i = 0;
#ifndef MW_STRICT_ATOMICS
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		mwk_store(out + i, *(const volatile mwk_v_mem *)(w + i));
#endif
	for (; i < n; i++)
		out[i] = mw_ld(w + i);
}

MWK_INLINE void mwk_copy_to(const float *x, float *w, size_t n)
{
	size_t i = 0;
#ifndef MW_STRICT_ATOMICS
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		*(volatile mwk_v_mem *)(w + i) = mwk_load(x + i);
	for (; i < n; i++)
		*(volatile float *)(w + i) = x[i];
#else
	for (; i < n; i++)
		mw_st(w + i, x[i]);
#endif
}

MWK_INLINE void mwk_gather_groups(const float *w, const uint32_t *group, size_t n, uint32_t width, float *out)
{
	size_t i = 0;
	if (width > 1) {
		for (; i < n; i++)
			mwk_view(w + (size_t)group[i] * width, out + i * width, width);
		return;
	}
	for (; i < n; i++)
		out[i] = mw_ld(w + group[i]);
}

MWK_INLINE void mwk_scatter_groups(const float *d, const uint32_t *group, size_t n, uint32_t width, float *w)
{
	size_t i = 0;
	if (width > 1) {
		for (; i < n; i++)
			mwk_axpy(1.0f, d + i * width, w + (size_t)group[i] * width, width);
		return;
	}
	for (; i + MWK_DOT_LANES <= n; i += MWK_DOT_LANES)
		mwk_scatter_vector(w, group + i, mwk_load_d(d + i));
	for (; i < n; i++)
		mwk_add(w + group[i], d[i]);
}

/* ---- rows of `width` private floats, for models with several outputs ---- */

/* z[j] += sum_i val[i] w[group[i] width + j]: one vector of outputs at a time, four sums to hide the latency.
 */
MWK_INLINE void mwk_rows_dot(
	const float *w, const uint32_t *group, const float *val, size_t n, uint32_t width, float *z)
{
	for (uint32_t j = 0; j < width; j += MWK_LANES) {
		size_t part = width - j < MWK_LANES ? width - j : 0, i = 0;
		mwk_v s[4] = { mwk_set1(0), mwk_set1(0), mwk_set1(0), mwk_set1(0) };
#define MWK_ROW(k)    (w + (size_t)group[i + (k)] * width + j)
#define MWK_SUM(k, v) s[k] = mwk_fma_v(mwk_set1(val[i + (k)]), v, s[k])
		for (; !part && i + 4 <= n; i += 4)
			for (int k = 0; k < 4; k++)
				MWK_SUM(k, mwk_load(MWK_ROW(k)));
		for (; part && i + 4 <= n; i += 4)
			for (int k = 0; k < 4; k++)
				MWK_SUM(k, mwk_load_part(MWK_ROW(k), part));
		for (; i < n; i++)
			MWK_SUM(0, part ? mwk_load_part(MWK_ROW(0), part) : mwk_load(MWK_ROW(0)));
#undef MWK_SUM
#undef MWK_ROW
		mwk_v sum = (s[0] + s[1]) + (s[2] + s[3]);
		float lane[MWK_LANES];
		memcpy(lane, &sum, sizeof(lane));
		for (size_t k = 0; k < (part ? part : MWK_LANES); k++)
			z[j + k] += lane[k];
	}
}

/* g[group[i] width + j] += val[i] c[j] */
MWK_INLINE void mwk_rows_add(
	const float *c, const uint32_t *group, const float *val, size_t n, uint32_t width, float *g)
{
	for (uint32_t j = 0; j < width; j += MWK_LANES) {
		if (width - j >= MWK_LANES) {
			mwk_v cv = mwk_load(c + j);
			for (size_t i = 0; i < n; i++) {
				float *p = g + (size_t)group[i] * width + j;
				mwk_store(p, mwk_load(p) + mwk_set1(val[i]) * cv);
			}
			continue;
		}
#if MWK_LANES == 16
		__mmask16 m = (__mmask16)((1u << (width - j)) - 1);
		mwk_v cv = _mm512_maskz_loadu_ps(m, c + j);
		for (size_t i = 0; i < n; i++) {
			float *p = g + (size_t)group[i] * width + j;
			mwk_v sum = (mwk_v)_mm512_maskz_loadu_ps(m, p) + mwk_set1(val[i]) * cv;
			_mm512_mask_storeu_ps(p, m, sum);
		}
#else
		for (size_t i = 0; i < n; i++)
			for (uint32_t k = j; k < width; k++)
				g[(size_t)group[i] * width + k] += val[i] * c[k];
#endif
	}
}

/* The non-zero entries of a dense row; idx and val have room for n + 16. */
MWK_INLINE size_t mwk_nonzeros(const float *x, size_t n, uint32_t *idx, float *val)
{
	size_t count = 0, i = 0;
#if MWK_LANES == 16
	__m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	for (; i + 16 <= n; i += 16, at = _mm512_add_epi32(at, _mm512_set1_epi32(16))) {
		__m512 v = _mm512_loadu_ps(x + i);
		__mmask16 m = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
		_mm512_storeu_ps(val + count, _mm512_maskz_compress_ps(m, v));
		_mm512_storeu_si512(idx + count, _mm512_maskz_compress_epi32(m, at));
		count += (size_t)__builtin_popcount(m);
	}
#endif
	for (; i < n; i++) {
		val[count] = x[i];
		idx[count] = (uint32_t)i;
		count += x[i] != 0;
	}
	return count;
}

/* In place: z[i] := exp(z[i] - max) / sum; returns log(sum exp z). */
MWK_INLINE float mwk_softmax(float *z, size_t n)
{
	float max = z[0], sum = 0;
	for (size_t i = 1; i < n; i++)
		max = z[i] > max ? z[i] : max;
	for (size_t i = 0; i < n; i++)
		z[i] = mw_exp(z[i] - max);
	for (size_t i = 0; i < n; i++)
		sum += z[i];
	float scale = 1.0f / sum;
	for (size_t i = 0; i < n; i++)
		z[i] *= scale;
	return max + mw_log(sum);
}

#endif
