/* kernel_avx2.c: the kernels for AVX2, on machines and in builds that can have them. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define MW_KERNEL_TABLE mw_kernels_avx2
#define MW_KERNEL_NAME  "avx2"
#define MW_KERNEL_ISA   MW_ISA_AVX2
#include "base/kernel_body.h"
#endif
