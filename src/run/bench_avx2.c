/* bench_avx2.c: the raw loops of `mixwild bench`, compiled with AVX2, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define BENCH mw_gauge_avx2
#include "run/bench_body.h"
#endif
