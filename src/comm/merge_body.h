/*
 * merge_body.h: the racy merge; the file that includes it defines MERGE, the function's name. Chunks of 16 floats are
 * one cache line: a chunk without change leaves the server's line unwritten.
 */
#include "base/kernel_inline.h"
#include "comm/merge.h"

enum { CHUNK = 16 };

/* A part of a chunk, in plain C. */
static void merge_part(float *server, float *copy, float *base, size_t n)
{
	float merged[CHUNK];
	bool changed = false, moved = false;
	for (size_t j = 0; j < n; j++) {
		float s = mw_ld(&server[j]), c = mw_ld(&copy[j]), b = mw_ld(&base[j]);
		merged[j] = s == b ? c : s + (c - b);
		changed |= c != b;
		moved |= merged[j] != c || merged[j] != b;
	}
	for (size_t j = 0; changed && j < n; j++)
		mw_st(&server[j], merged[j]);
	for (size_t j = 0; moved && j < n; j++) {
		mw_st(&copy[j], merged[j]);
		mw_st(&base[j], merged[j]);
	}
}

#if MWK_LANES == 4 || defined(MW_STRICT_ATOMICS)
#define merge_chunk(server, copy, base) merge_part(server, copy, base, CHUNK)
#else
/* One vector: what merge_part does; bit 0 of the result: changed, bit 1: moved. */
MWK_INLINE int merge_vector(mwk_v s, mwk_v c, mwk_v b, mwk_v *merged)
{
	mwk_v sum = s + (c - b);
#if MWK_LANES == 16
	*merged = _mm512_mask_mov_ps(sum, _mm512_cmp_ps_mask(s, b, _CMP_EQ_OQ), c);
	__mmask16 changed = _mm512_cmp_ps_mask(c, b, _CMP_NEQ_UQ);
	__mmask16 moved =
		_mm512_cmp_ps_mask(*merged, c, _CMP_NEQ_UQ) | _mm512_cmp_ps_mask(*merged, b, _CMP_NEQ_UQ);
	return (changed != 0) | (moved != 0) << 1;
#else
	*merged = _mm256_blendv_ps(sum, c, _mm256_cmp_ps(s, b, _CMP_EQ_OQ));
	__m256 changed = _mm256_cmp_ps(c, b, _CMP_NEQ_UQ);
	__m256 moved =
		_mm256_or_ps(_mm256_cmp_ps(*merged, c, _CMP_NEQ_UQ), _mm256_cmp_ps(*merged, b, _CMP_NEQ_UQ));
	return (_mm256_movemask_ps(changed) != 0) | (_mm256_movemask_ps(moved) != 0) << 1;
#endif
}

MWK_INLINE void merge_chunk(float *server, float *copy, float *base)
{
	enum { VECTORS = CHUNK / MWK_LANES };
	mwk_v merged[VECTORS];
	int what = 0;
	for (int k = 0, at = 0; k < VECTORS; k++, at += MWK_LANES)
		what |= merge_vector(
			mwk_load(server + at), mwk_load(copy + at), mwk_load(base + at), &merged[k]);
	for (int k = 0, at = 0; what & 1 && k < VECTORS; k++, at += MWK_LANES)
		mwk_store(server + at, merged[k]);
	for (int k = 0, at = 0; what & 2 && k < VECTORS; k++, at += MWK_LANES) {
		mwk_store(copy + at, merged[k]);
		mwk_store(base + at, merged[k]);
	}
}
#endif

void MERGE(float *server, float *copy, float *base, size_t n)
{
	size_t i = 0;
	for (; i + CHUNK <= n; i += CHUNK)
		merge_chunk(server + i, copy + i, base + i);
	merge_part(server + i, copy + i, base + i, n - i);
}
