/*
 * rng.h: random numbers. Two kinds: a stream (xoshiro256**, Blackman and Vigna 2018), one per worker and purpose,
 * and a stateless hash of (seed, stream, counter) for what must be a pure function of its arguments (schedules,
 * per-epoch orders).
 */
#ifndef MW_BASE_RNG_H
#define MW_BASE_RNG_H

#include <stdint.h>

struct mw_rng {
	uint64_t s[4];
};

/* Streams of one seed are independent; any seed and stream are valid. */
void mw_rng_init(struct mw_rng *rng, uint64_t seed, uint64_t stream);

/* Stafford's mix13 finaliser of splitmix64: a bijection of 64-bit words. */
static inline uint64_t mw_mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* A pure function: the same three numbers give the same 64 bits, everywhere. */
static inline uint64_t mw_hash3(uint64_t seed, uint64_t stream, uint64_t counter)
{
	uint64_t h = mw_mix64(seed + 0x9e3779b97f4a7c15ULL);
	h = mw_mix64(h ^ (stream * 0xd1342543de82ef95ULL + 0x2545f4914f6cdd1dULL));
	return mw_mix64(h ^ (counter * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL));
}

static inline uint64_t mw_rng_next(struct mw_rng *rng)
{
	uint64_t *s = rng->s, r = s[1] * 5, t = s[1] << 17;
	r = ((r << 7) | (r >> 57)) * 9;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = (s[3] << 45) | (s[3] >> 19);
	return r;
}

/* Uniform on [0,1) with 53 bits. */
static inline double mw_u01(uint64_t bits)
{
	return (double)(bits >> 11) * 0x1p-53;
}

static inline double mw_rng_uniform(struct mw_rng *rng)
{
	return mw_u01(mw_rng_next(rng));
}

/* Uniform on 0..n-1 (bias below 2^-32 for n < 2^32); n > 0. */
static inline uint64_t mw_rng_below(struct mw_rng *rng, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)mw_rng_next(rng) * n) >> 64);
}

/* Standard normal by Box-Muller, two uniforms a call. */
double mw_rng_normal(struct mw_rng *rng);

/*
 * A pseudo-random permutation of 0..n-1 as a function (Feistel network of 4 rounds, 12 up to 256 values, with cycle
 * walking): no memory, no lock, any thread may ask for any position. Used for the data order of an epoch.
 */
struct mw_perm {
	uint64_t n, key;
	unsigned half_bits;
};
void mw_perm_init(struct mw_perm *perm, uint64_t n, uint64_t seed, uint64_t stream);
uint64_t mw_perm_at(const struct mw_perm *perm, uint64_t position);

#endif
