/* net_kernel_avx2.c: the kernels of nets for AVX2. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define MW_NET_KERNEL_TABLE mw_net_kernels_avx2
#define MW_NET_KERNEL_NAME  "avx2"
#include "model/net_kernel_body.h"
#endif
