/* net_kernel.c: see net_kernel.h. */
#include "model/net_kernel.h"

#include "base/kernel_tables.h"

const struct mw_net_kernels *mw_net_kernels(void)
{
#ifdef MW_KERNEL_X86
	enum mw_isa isa = mw_kernels()->isa;
	if (isa == MW_ISA_AVX512)
		return &mw_net_kernels_avx512;
	if (isa == MW_ISA_AVX2)
		return &mw_net_kernels_avx2;
#endif
	return &mw_net_kernels_portable;
}
