/* merge_portable.c: the merge kernel for any CPU. */
#define MW_KERNEL_PORTABLE 1
#define MERGE              mw_merge_portable
#include "comm/merge_body.h"
