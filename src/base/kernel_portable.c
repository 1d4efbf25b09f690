/* kernel_portable.c: the kernels in plain C: the same bits on every machine, and relaxed atomics where those
 * are asked for. */
#define MW_KERNEL_PORTABLE
#define MW_KERNEL_TABLE mw_kernels_portable
#define MW_KERNEL_NAME  "portable"
#define MW_KERNEL_ISA   MW_ISA_PORTABLE
#include "base/kernel_tables.h"
#include "base/kernel_body.h"
