/*
 * rule_records.h: the records of eight parameters, each loaded and stored as a whole, to and from vectors of one field each.
 * For AVX2 and AVX-512: of sixteen at a time more lanes would be idle in the last vector of a row.
 *
 * A vector is put together from halves of four floats so that the transpositions, which stay within halves, bring
 * parameter k to place k.
 */
#ifndef MW_OPTIM_RULE_RECORDS_H
#define MW_OPTIM_RULE_RECORDS_H

#include "base/kernel_inline.h"

MWK_INLINE mwk_d mwr_join(mwk_q low, mwk_q high)
{
	return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}

/* shuffle_ps: the first two floats of a half of a and b, the last two, the even and the odd ones. */
enum { MWR_FIRST = 0x44, MWR_LAST = 0xee, MWR_EVEN = 0x88, MWR_ODD = 0xdd };
#define MWR_SHUFFLE(a, b, by) ((mwk_d)_mm256_shuffle_ps(a, b, by))
#define MWR_LOW_PAIRS(a, b)   ((mwk_d)_mm256_unpacklo_ps(a, b))
#define MWR_HIGH_PAIRS(a, b)  ((mwk_d)_mm256_unpackhi_ps(a, b))
#define MWR_LOW(v)            _mm256_castps256_ps128(v)
#define MWR_HIGH(v)           _mm256_extractf128_ps(v, 1)

MWK_INLINE mwk_q mwr_take_pairs(const float *a, const float *b)
{
	__m128i low = _mm_loadl_epi64((const __m128i *)(const void *)a),
		high = _mm_loadl_epi64((const __m128i *)(const void *)b);
	return _mm_castsi128_ps(_mm_unpacklo_epi64(low, high));
}

MWK_INLINE void mwr_put_pairs(float *a, float *b, mwk_q v)
{
	_mm_storel_epi64((__m128i *)(void *)a, _mm_castps_si128(v));
	_mm_storel_epi64((__m128i *)(void *)b, _mm_castps_si128(_mm_movehl_ps(v, v)));
}

/* Where parameter k's record is; indices are loaded two at a time. */
#define MWR_INDICES(group) \
	uint64_t two_[4];  \
	memcpy(two_, group, sizeof(two_))
#define MWR_AT(k) (state + (size_t)((k) % 2 ? two_[(k) / 2] >> 32 : (uint32_t)two_[(k) / 2]) * record)

MWK_INLINE void mwr_take(uint32_t fields, const float *state, const uint32_t *group, mwk_d *s)
{
	const size_t record = MW_OPTIM_RECORD(fields);
	if (!fields)
		return;
	MWR_INDICES(group);
	if (fields == 1) {
		s[0] = mwk_take_d(state, group);
	} else if (fields == 2) {
		mwk_d a = mwr_join(
			      mwr_take_pairs(MWR_AT(0), MWR_AT(1)), mwr_take_pairs(MWR_AT(4), MWR_AT(5))),
		      b = mwr_join(
			      mwr_take_pairs(MWR_AT(2), MWR_AT(3)), mwr_take_pairs(MWR_AT(6), MWR_AT(7)));
		s[0] = MWR_SHUFFLE(a, b, MWR_EVEN);
		s[1] = MWR_SHUFFLE(a, b, MWR_ODD);
	} else {
#define MWR_FOURS(k) mwr_join(_mm_loadu_ps(MWR_AT(k)), _mm_loadu_ps(MWR_AT((k) + 4)))
		mwk_d a = MWR_FOURS(0), b = MWR_FOURS(1), c = MWR_FOURS(2), d = MWR_FOURS(3);
#undef MWR_FOURS
		mwk_d ab = MWR_LOW_PAIRS(a, b),
		      cd = MWR_LOW_PAIRS(c, d); /* fields 0 and 1 of two parameters */
		s[0] = MWR_SHUFFLE(ab, cd, MWR_FIRST);
		s[1] = MWR_SHUFFLE(ab, cd, MWR_LAST);
		s[2] = MWR_SHUFFLE(MWR_HIGH_PAIRS(a, b), MWR_HIGH_PAIRS(c, d), MWR_FIRST);
	}
}

MWK_INLINE void mwr_put(uint32_t fields, const mwk_d *s, float *state, const uint32_t *group)
{
	const size_t record = MW_OPTIM_RECORD(fields);
	if (!fields)
		return;
	if (fields == 1) {
		mwk_put_vector(state, group, s[0]);
		return;
	}
	MWR_INDICES(group);
	mwk_d low = MWR_LOW_PAIRS(s[0], s[1]), high = MWR_HIGH_PAIRS(s[0], s[1]);
	if (fields == 2) {
		mwr_put_pairs(MWR_AT(0), MWR_AT(1), MWR_LOW(low));
		mwr_put_pairs(MWR_AT(2), MWR_AT(3), MWR_LOW(high));
		mwr_put_pairs(MWR_AT(4), MWR_AT(5), MWR_HIGH(low));
		mwr_put_pairs(MWR_AT(6), MWR_AT(7), MWR_HIGH(high));
		return;
	}
	const mwk_d none = mwk_set1_d(0);
	mwk_d low2 = MWR_LOW_PAIRS(s[2], none), high2 = MWR_HIGH_PAIRS(s[2], none);
#define MWR_PUT(k, v)                                         \
	do {                                                  \
		mwk_d v_ = (v);                               \
		_mm_storeu_ps(MWR_AT(k), MWR_LOW(v_));        \
		_mm_storeu_ps(MWR_AT((k) + 4), MWR_HIGH(v_)); \
	} while (0)
	MWR_PUT(0, MWR_SHUFFLE(low, low2, MWR_FIRST));
	MWR_PUT(1, MWR_SHUFFLE(low, low2, MWR_LAST));
	MWR_PUT(2, MWR_SHUFFLE(high, high2, MWR_FIRST));
	MWR_PUT(3, MWR_SHUFFLE(high, high2, MWR_LAST));
#undef MWR_PUT
}

#endif
