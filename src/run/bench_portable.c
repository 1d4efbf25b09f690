/* bench_portable.c: the raw loops of `mixwild bench` in plain C. */
#define MW_KERNEL_PORTABLE 1
#define BENCH              mw_gauge_portable
#include "run/bench_body.h"
