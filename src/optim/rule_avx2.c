/* rule_avx2.c: the optimizers' arithmetic, compiled with AVX2 and FMA, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define RULES mw_rules_avx2
#include "optim/rule_body.h"
#endif
