/*
 * mem.h: allocation at start. One wrapper, so that sanitizer builds (no jemalloc) and node arenas look the same to
 * callers. Never mix with malloc/free.
 */
#ifndef MW_BASE_MEM_H
#define MW_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Zeroed, aligned to MW_LINE_BYTES; large blocks ask for huge pages. NULL with err set (RESOURCE) when out of memory. */
void *mw_alloc(size_t bytes, const char *what, struct mw_err *err);
void *mw_alloc_array(size_t n, size_t size, const char *what, struct mw_err *err); /* checks n * size */
/*
 * Make a block larger: its first `old` bytes are kept, the rest is zero (old <= bytes). Large blocks are moved by
 * the kernel, not copied. *p is the new block; on failure the old one, untouched.
 */
int mw_grow(void **p, size_t old, size_t bytes, const char *what, struct mw_err *err);
void mw_free(void *p); /* NULL is fine */

/* Copies of strings: plain malloc'ed, free() them. */
char *mw_strdup(const char *s);
char *mw_strprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
