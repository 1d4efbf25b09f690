/* burst.c: see burst.h. */
#include "run/burst.h"

#include "base/kernel_tables.h"
#include "base/shared.h"

void mw_burst_run(const struct mw_burst *b)
{
#if defined(MW_KERNEL_X86)
	if (mw_kernels()->isa == MW_ISA_AVX512) {
		mw_burst_avx512(b);
		return;
	}
	if (mw_kernels()->isa == MW_ISA_AVX2) {
		mw_burst_avx2(b);
		return;
	}
#endif
	mw_burst_portable(b);
}
