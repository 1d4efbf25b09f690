/* burst_portable.c: the fused update path, compiled for any CPU. */
#define MW_KERNEL_PORTABLE 1
#define BURST              mw_burst_portable
#include "run/burst_body.h"
