/* merge_avx2.c: the merge kernel, compiled with AVX2, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define MERGE mw_merge_avx2
#include "comm/merge_body.h"
#endif
