/*
 * rule_records.h: the records of two or three fields of MWK_LANES parameters, each loaded and stored as a whole, to and from vectors of one field
 * each. Part of rule_body.h, for AVX2 and AVX-512.
 *
 * A vector is put together from quarters of four floats so that the transpositions, which stay within quarters, bring
 * parameter k to place k.
 */

#if MWK_LANES == 16
#define QUARTERS 4
INLINE mwk_v join(const mwk_q *q)
{
	__m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(q[0]), q[1], 1),
	       high = _mm256_insertf128_ps(_mm256_castps128_ps256(q[2]), q[3], 1);
	return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
#define QUARTER(v, i)     ((mwk_q)_mm512_extractf32x4_ps(v, i))
#define LOW_PAIRS(a, b)   ((mwk_v)_mm512_unpacklo_ps(a, b))
#define HIGH_PAIRS(a, b)  ((mwk_v)_mm512_unpackhi_ps(a, b))
#define SHUFFLE(a, b, by) ((mwk_v)_mm512_shuffle_ps(a, b, by))
/* do_it(l) for every quarter: instructions want a constant */
#define EACH_QUARTER(do_it) \
	do_it(0);           \
	do_it(1);           \
	do_it(2);           \
	do_it(3)
#else
#define QUARTERS          2
INLINE mwk_v join(const mwk_q *q)
{
	return _mm256_insertf128_ps(_mm256_castps128_ps256(q[0]), q[1], 1);
}
#define QUARTER(v, i)     ((mwk_q)_mm256_extractf128_ps(v, i))
#define LOW_PAIRS(a, b)   ((mwk_v)_mm256_unpacklo_ps(a, b))
#define HIGH_PAIRS(a, b)  ((mwk_v)_mm256_unpackhi_ps(a, b))
#define SHUFFLE(a, b, by) ((mwk_v)_mm256_shuffle_ps(a, b, by))
#define EACH_QUARTER(do_it) \
	do_it(0);           \
	do_it(1)
#endif

/* shuffle_ps: the first two floats of a quarter of a and b, the last two, the even and the odd ones. */
enum { FIRST = 0x44, LAST = 0xee, EVEN = 0x88, ODD = 0xdd };

#define RECORD(k) (at ? at[k] : state + (size_t)group[k] * MW_OPTIM_RECORD(fields))

/* Records of four floats: the j-th of each quarter. */
#define TAKE_FOURS(j)                                                 \
	({                                                            \
		mwk_q part_[QUARTERS];                                \
		for (int l = 0; l < QUARTERS; l++)                    \
			part_[l] = _mm_loadu_ps(RECORD(4 * l + (j))); \
		join(part_);                                          \
	})

INLINE mwk_q take_pair(const float *a, const float *b)
{
	__m128i low = _mm_loadl_epi64((const __m128i *)(const void *)a),
		high = _mm_loadl_epi64((const __m128i *)(const void *)b);
	return _mm_castsi128_ps(_mm_unpacklo_epi64(low, high));
}

INLINE void put_pair(float *a, float *b, mwk_q v)
{
	_mm_storel_epi64((__m128i *)(void *)a, _mm_castps_si128(v));
	_mm_storel_epi64((__m128i *)(void *)b, _mm_castps_si128(_mm_movehl_ps(v, v)));
}

INLINE void take_records(
	uint32_t fields, const float *state, const uint32_t *group, float *const *at, float (*s)[MWK_LANES])
{
	mwk_q part[QUARTERS], part2[QUARTERS];
	if (fields == 2) {
		for (int l = 0; l < QUARTERS; l++) {
			part[l] = take_pair(RECORD(4 * l), RECORD(4 * l + 1));
			part2[l] = take_pair(RECORD(4 * l + 2), RECORD(4 * l + 3));
		}
		mwk_v a = join(part), b = join(part2);
		mwk_store(s[0], SHUFFLE(a, b, EVEN));
		mwk_store(s[1], SHUFFLE(a, b, ODD));
		return;
	}
	mwk_v a = TAKE_FOURS(0), b = TAKE_FOURS(1), c = TAKE_FOURS(2), d = TAKE_FOURS(3);
	mwk_v ab = LOW_PAIRS(a, b), cd = LOW_PAIRS(c, d); /* fields 0 and 1 of two parameters */
	mwk_store(s[0], SHUFFLE(ab, cd, FIRST));
	mwk_store(s[1], SHUFFLE(ab, cd, LAST));
	mwk_store(s[2], SHUFFLE(HIGH_PAIRS(a, b), HIGH_PAIRS(c, d), FIRST));
}

INLINE void put_records(
	uint32_t fields, float (*s)[MWK_LANES], float *state, const uint32_t *group, float *const *at)
{
	mwk_v low = LOW_PAIRS(mwk_load(s[0]), mwk_load(s[1])),
	      high = HIGH_PAIRS(mwk_load(s[0]), mwk_load(s[1]));
	if (fields == 2) {
#define PUT_PAIRS(l)                                                                  \
	do {                                                                          \
		put_pair(RECORD(4 * (l)), RECORD(4 * (l) + 1), QUARTER(low, l));      \
		put_pair(RECORD(4 * (l) + 2), RECORD(4 * (l) + 3), QUARTER(high, l)); \
	} while (0)
		EACH_QUARTER(PUT_PAIRS);
		return;
	}
	mwk_v none = mwk_set1(0), low2 = LOW_PAIRS(mwk_load(s[2]), none),
	      high2 = HIGH_PAIRS(mwk_load(s[2]), none);
	mwk_v a = SHUFFLE(low, low2, FIRST), b = SHUFFLE(low, low2, LAST), c = SHUFFLE(high, high2, FIRST),
	      d = SHUFFLE(high, high2, LAST);
#define PUT_FOURS(l)                                               \
	do {                                                       \
		_mm_storeu_ps(RECORD(4 * (l)), QUARTER(a, l));     \
		_mm_storeu_ps(RECORD(4 * (l) + 1), QUARTER(b, l)); \
		_mm_storeu_ps(RECORD(4 * (l) + 2), QUARTER(c, l)); \
		_mm_storeu_ps(RECORD(4 * (l) + 3), QUARTER(d, l)); \
	} while (0)
	EACH_QUARTER(PUT_FOURS);
}

/* The first n. */
INLINE void put_part(float *p, mwk_v v, size_t n)
{
#if MWK_LANES == 16
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
#else
	memcpy(p, &v, n * sizeof(*p));
#endif
}
