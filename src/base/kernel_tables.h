/* kernel_tables.h: which kernel tables this build has. For kernel*.c and other files compiled once per
 * instruction set. */
#ifndef MW_BASE_KERNEL_TABLES_H
#define MW_BASE_KERNEL_TABLES_H

#include "base/kernel.h"
#include "base/shared.h"

/* Vector accesses to a replica are data races to ThreadSanitizer: a strict build has the portable table only.
 */
#if defined(__x86_64__) && !defined(MW_STRICT_ATOMICS)
#define MW_KERNEL_X86 1
extern const struct mw_kernels mw_kernels_avx2, mw_kernels_avx512;
#endif
extern const struct mw_kernels mw_kernels_portable;

#endif
