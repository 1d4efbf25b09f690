/*
 * checksum.h: a fast checksum against damage by accident, not against an enemy: any change of one 64-bit word is
 * noticed for certain, others but with probability 2^-64. The same on all machines of one byte order.
 */
#ifndef MW_BASE_CHECKSUM_H
#define MW_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MW_CHECKSUM_PRIME 0x9e3779b97f4a7c15ULL /* odd, so that multiplying loses nothing */

static inline uint64_t mw_checksum_step(uint64_t sum, uint64_t word)
{
	uint64_t x = sum ^ word;
	return (x << 29 | x >> 35) * MW_CHECKSUM_PRIME; /* turned: products carry changes upwards only */
}

/* Of n bytes, going on from `sum` (0 at first). Eight lanes: a multiplication a word, not its latency. */
static inline uint64_t mw_checksum(uint64_t sum, const void *bytes, size_t n)
{
	const char *p = bytes;
	uint64_t lane[8], word[8], rest = 0;
	sum = mw_checksum_step(sum, n);
	if (n >= 64) {
		for (int i = 0; i < 8; i++)
			lane[i] = sum + (uint64_t)i;
		for (; n >= 64; n -= 64, p += 64) {
			memcpy(word, p, 64);
			for (int i = 0; i < 8; i++)
				lane[i] = mw_checksum_step(lane[i], word[i]);
		}
		for (int i = 0; i < 8; i++)
			sum = mw_checksum_step(sum, lane[i]);
	}
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&rest, p, 8);
		sum = mw_checksum_step(sum, rest);
	}
	rest = 0;
	memcpy(&rest, p, n);
	sum = mw_checksum_step(sum, rest);
	return (sum ^ sum >> 32) * MW_CHECKSUM_PRIME;
}

#endif
