/* merge.c: see merge.h. */
#include "comm/merge.h"

#include "base/kernel_tables.h"
#include "base/shared.h"

static void merge_atomic(float *server, float *copy, float *base, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float c = mw_ld(&copy[i]), b = mw_ld(&base[i]), d = c - b, old = mw_ld(&server[i]),
		      merged = old;
		/* The exact case goes by compare-and-swap too; if another worker came between, the delta is added. */
		while (d != 0) {
			merged = old == b ? c : old + d;
			if (__atomic_compare_exchange(
				    &server[i], &old, &merged, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
				break;
		}
		mw_st(&copy[i], merged);
		mw_st(&base[i], merged);
	}
}

void mw_merge(float *server, float *copy, float *base, size_t n, bool atomic)
{
	mw_merge_fn *merge = mw_merge_portable;
#if defined(MW_KERNEL_X86)
	if (mw_kernels()->isa == MW_ISA_AVX512)
		merge = mw_merge_avx512;
	else if (mw_kernels()->isa == MW_ISA_AVX2)
		merge = mw_merge_avx2;
#endif
	(atomic ? merge_atomic : merge)(server, copy, base, n);
}
