/* rule_portable.c: the optimizers' arithmetic, compiled for any CPU. */
#define MW_KERNEL_PORTABLE 1
#define RULES              mw_rules_portable
#include "optim/rule_body.h"
