/* merge_avx512.c: the merge kernel, compiled with AVX-512, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define MERGE mw_merge_avx512
#include "comm/merge_body.h"
#endif
