/* burst_avx512.c: the fused update path, compiled with AVX-512, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define BURST mw_burst_avx512
#include "run/burst_body.h"
#endif
