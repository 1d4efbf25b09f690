/*
 * mem.h: allocation at start. One wrapper, so that sanitizer builds (no jemalloc) and node arenas look the same to
 * callers. Never mix with malloc/free.
 */
#ifndef MW_BASE_MEM_H
#define MW_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * Behind every block as many bytes can be read: a masked vector load of a block's last elements may touch them. (What
 * processors do about a page that isn't there behind masked elements is up to them by AMD's manual, volume 4, VMASKMOVPS;
 * QEMU reads the whole vector, and the program ends.)
 */
#define MW_READABLE_BYTES 64

/* Zeroed, aligned to MW_LINE_BYTES; large blocks ask for huge pages. NULL with err set (RESOURCE) when out of memory. */
void *mw_alloc(size_t bytes, const char *what, struct mw_err *err);
void *mw_alloc_array(size_t n, size_t size, const char *what, struct mw_err *err); /* checks n * size */
/*
 * Make a block larger: its first `old` bytes are kept, the rest is zero (old <= bytes). Large blocks are moved by
 * the kernel, not copied. *p is the new block; on failure the old one, untouched.
 */
int mw_grow(void **p, size_t old, size_t bytes, const char *what, struct mw_err *err);
void mw_free(void *p); /* NULL is fine */
/* The same in pages of its own that nobody has touched yet, whatever the size: whoever touches a page first places it. */
void *mw_alloc_pages(size_t bytes, const char *what, struct mw_err *err);

/*
 * Huge pages. MADVISE: blocks of 2 MB and more start at a multiple of it and ask for them, the system's setting decides.
 * ON: the same, and mw_thp_collapse makes them at once, whatever that setting is. OFF: none. One setting for the process:
 * the last caller's holds for blocks that are made after it. Thread-safe.
 */
enum mw_thp { MW_THP_MADVISE, MW_THP_ON, MW_THP_OFF };
#define MW_THP_CHOICES "madvise|on|off"
void mw_thp_set(enum mw_thp thp);
/* Tell the kernel of a fresh block what the setting is. */
void mw_thp_advise(void *p, size_t bytes);
/* With ON: make huge pages of a block that was filled. Does nothing else where the kernel can't. */
void mw_thp_collapse(void *p, size_t bytes);
/* Bytes of this process in anonymous memory, and those of them in huge pages; false: the kernel doesn't tell. */
bool mw_thp_used(uint64_t *all, uint64_t *huge);

/* Copies of strings: plain malloc'ed, free() them. */
char *mw_strdup(const char *s);
char *mw_strprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
