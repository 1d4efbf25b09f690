/* net_kernel_portable.c: the kernels of nets in plain C: the same bits on every machine. */
#define MW_KERNEL_PORTABLE
#define MW_NET_KERNEL_TABLE mw_net_kernels_portable
#define MW_NET_KERNEL_NAME  "portable"
#include "model/net_kernel_body.h"
