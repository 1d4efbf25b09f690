/* kernel.c: which kernel table this CPU runs, and which one was chosen. */
#include "base/kernel.h"

#include <stdbool.h>
#include <string.h>

#include "base/kernel_tables.h"

/*
 * Sync: written by mw_isa_select before threads start, or by the first mw_kernels(): threads that race there
 * store the same pointer. Relaxed, as the table itself is constant data.
 */
static const struct mw_kernels *selected;

static bool cpu_has(enum mw_isa isa)
{
#ifdef MW_KERNEL_X86
	bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	switch (isa) {
	case MW_ISA_PORTABLE: return true;
	case MW_ISA_AVX2: return avx2;
	case MW_ISA_AVX512:
		return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
		       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
	default: return false;
	}
#else
	return isa == MW_ISA_PORTABLE;
#endif
}

const struct mw_kernels *mw_kernels_of(enum mw_isa isa)
{
	if (!cpu_has(isa))
		return NULL;
	switch (isa) {
#ifdef MW_KERNEL_X86
	case MW_ISA_AVX2: return &mw_kernels_avx2;
	case MW_ISA_AVX512: return &mw_kernels_avx512;
#endif
	default: return &mw_kernels_portable;
	}
}

enum mw_isa mw_isa_detect(void)
{
	for (int i = MW_ISA_COUNT - 1; i > 0; i--)
		if (cpu_has((enum mw_isa)i))
			return (enum mw_isa)i;
	return MW_ISA_PORTABLE;
}

static void use(const struct mw_kernels *k)
{
	__atomic_store_n(&selected, k, __ATOMIC_RELAXED);
}

static const char *why_not(void)
{
#if defined(MW_KERNEL_X86)
	return "this CPU or its operating system does not support it";
#elif defined(MW_STRICT_ATOMICS)
	return "this build reads and writes parameters by atomic accesses only (sanitizer or "
	       "--enable-strict-atomics)";
#else
	return "this program was built for a machine that is not x86-64";
#endif
}

int mw_isa_select(const char *name, struct mw_err *err)
{
	static const char *const names[MW_ISA_COUNT] = { "portable", "avx2", "avx512" };
	if (!strcmp(name, "auto")) {
		use(mw_kernels_of(mw_isa_detect()));
		return 0;
	}
	for (int i = 0; i < MW_ISA_COUNT; i++) {
		if (strcmp(name, names[i]))
			continue;
		const struct mw_kernels *k = mw_kernels_of((enum mw_isa)i);
		if (!k)
			MW_FAIL(err, RESOURCE, "instruction set %s: %s; use auto or portable", name,
				why_not());
		use(k);
		return 0;
	}
	MW_FAIL(err, USAGE, "unknown instruction set '%s': use auto, portable, avx2 or avx512", name);
}

const struct mw_kernels *mw_kernels(void)
{
	const struct mw_kernels *k = __atomic_load_n(&selected, __ATOMIC_RELAXED);
	if (!k) {
		k = mw_kernels_of(mw_isa_detect());
		use(k);
	}
	return k;
}
