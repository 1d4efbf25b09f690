/* bench_avx512.c: the raw loops of `mixwild bench`, compiled with AVX512, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define BENCH mw_gauge_avx512
#include "run/bench_body.h"
#endif
