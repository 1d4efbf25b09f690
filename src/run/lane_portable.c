/* lane_portable.c: the arithmetic of the simulator's lanes, compiled for any CPU. */
#define MW_KERNEL_PORTABLE 1
#define LANES              mw_lanes_portable
#include "run/lane_body.h"
