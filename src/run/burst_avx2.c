/* burst_avx2.c: the fused update path, compiled with AVX2, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define BURST mw_burst_avx2
#include "run/burst_body.h"
#endif
