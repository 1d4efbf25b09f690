/* lane_avx2.c: the arithmetic of the simulator's lanes, compiled with AVX2, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define LANES mw_lanes_avx2
#include "run/lane_body.h"
#endif
