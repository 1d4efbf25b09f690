/* rule_avx512.c: the optimizers' arithmetic, compiled with AVX-512, in builds that can have it. */
#include "base/kernel_tables.h"

#ifdef MW_KERNEL_X86
#define RULES mw_rules_avx512
#include "optim/rule_body.h"
#endif
