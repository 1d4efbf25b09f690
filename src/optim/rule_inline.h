/*
 * rule_inline.h: the rules of rules.h as inline functions, for the instruction set this file is compiled for: rule_body.h makes
 * tables of them, and the fused update path (run/burst_state.h) includes them and computes the same bits. On vectors that are
 * written as such: of loops over eight parameters gcc 12 made pieces of other widths that waited for each other's stores.
 */
#ifndef MW_OPTIM_RULE_INLINE_H
#define MW_OPTIM_RULE_INLINE_H

#include <stdbool.h>

#include "base/kernel_inline.h"
#include "optim/optim.h"
#include "optim/rules.h"

/* a where it is larger, else b. */
#define T          float
#define NAME(name) name##_f
#define SQRT(v)    sqrtf(v)
#define MAX(a, b)  ((a) > (b) ? (a) : (b))
#include "optim/rule_arith.h"

#if defined(MW_KERNEL_PORTABLE)
MWK_INLINE mwk_d sqrt_d(mwk_d v)
{
	return (mwk_d){ sqrtf(v[0]), sqrtf(v[1]), sqrtf(v[2]), sqrtf(v[3]) };
}

MWK_INLINE mwk_d max_d(mwk_d a, mwk_d b)
{
	for (int k = 0; k < MWK_DOT_LANES; k++)
		b[k] = a[k] > b[k] ? a[k] : b[k];
	return b;
}
#else
#define sqrt_d(v)   ((mwk_d)_mm256_sqrt_ps(v))
#define max_d(a, b) ((mwk_d)_mm256_max_ps(a, b))
#endif
#define T          mwk_d
#define NAME(name) name##_d
#define SQRT(v)    sqrt_d(v)
#define MAX(a, b)  max_d(a, b)
#include "optim/rule_arith.h"

#if MWK_LANES == 16
#define T          mwk_v
#define NAME(name) name##_v
#define SQRT(v)    ((mwk_v)_mm512_sqrt_ps(v))
#define MAX(a, b)  ((mwk_v)_mm512_max_ps(a, b))
#include "optim/rule_arith.h"
#define RULE_V(name) name##_v
#else
#define RULE_V(name) name##_d
#endif

/* A rule for one parameter, for vectors of dot products' width, and for the widest ones; constants wherever it is given to. */
struct rule {
	float (*f)(const struct mw_coef *c, float *s, bool decays, float x, float g);
	mwk_d (*d)(const struct mw_coef *c, mwk_d *s, bool decays, mwk_d x, mwk_d g);
	mwk_v (*v)(const struct mw_coef *c, mwk_v *s, bool decays, mwk_v x, mwk_v g);
	uint32_t fields;
};
#define RULE(name, n) ((struct rule){ name##_f, name##_d, RULE_V(name), n })

enum { RULE_FIELDS = 3 }; /* at most */

#endif
