/* kernel_avx512.c: the kernels for AVX-512, on machines and in builds that can have them. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define MW_KERNEL_TABLE mw_kernels_avx512
#define MW_KERNEL_NAME  "avx512"
#define MW_KERNEL_ISA   MW_ISA_AVX512
#include "base/kernel_body.h"
#endif
