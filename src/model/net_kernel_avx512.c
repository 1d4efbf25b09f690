/* net_kernel_avx512.c: the kernels of nets for AVX-512. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define MW_NET_KERNEL_TABLE mw_net_kernels_avx512
#define MW_NET_KERNEL_NAME  "avx512"
#include "model/net_kernel_body.h"
#endif
