/* ranges.h: lists of numbers as people write them: 0-3,8-14:2. */
#ifndef MW_BASE_RANGES_H
#define MW_BASE_RANGES_H

#include <stddef.h>
#include <stdint.h>

/*
 * n numbers, increasing, as ranges; first-last:stride where three or more are equally far apart. What doesn't fit ends in
 * "...". buf is returned.
 */
const char *mw_ranges_text(const uint32_t *number, size_t n, char *buf, size_t size);

#endif
