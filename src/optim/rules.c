/* rules.c: see rules.h. */
#include "optim/rules.h"

#include "base/kernel_tables.h"

const struct mw_rule_table *mw_rules(void)
{
#if defined(MW_KERNEL_X86)
	if (mw_kernels()->isa == MW_ISA_AVX512)
		return &mw_rules_avx512;
	if (mw_kernels()->isa == MW_ISA_AVX2)
		return &mw_rules_avx2;
#endif
	return &mw_rules_portable;
}
