/*
 * rules.h: the optimizers' arithmetic. A rule is one function on a run of parameters whose state fields lie in arrays of
 * their own; rule_body.h brings the state there and back, for both layouts of optim.h, compiled for each instruction set.
 * Every operation is rounded by itself, so all of them give the same bits.
 */
#ifndef MW_OPTIM_RULES_H
#define MW_OPTIM_RULES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Name and number of state fields. */
#define MW_RULES(X)            \
	X(sgd_plain, 0)        \
	X(sgd_heavy_ball, 1)   \
	X(sgd_nesterov, 1)     \
	X(adam, 2)             \
	X(amsgrad, 3)          \
	X(rmsprop, 1)          \
	X(rmsprop_momentum, 2) \
	X(adagrad, 1)

enum mw_rule {
#define MW_RULE(name, fields) MW_RULE_##name,
	MW_RULES(MW_RULE)
#undef MW_RULE
		MW_RULE_COUNT
};

/* Constants of one step; a rule reads those that it knows. couple, shrink: struct mw_decay, shrink times the rate. */
struct mw_coef {
	float scale; /* gradients are multiplied by it: 1, or the coefficient of a row's values */
	float rate, keep1, take1, keep2, take2, size, root_scale, eps, momentum, couple, shrink;
};

/* coef by value would be copied before each run: it is read once. delta may alias g. */
typedef void mw_rule_dense(const struct mw_coef *coef, float *state, size_t stride, const float *x,
	const float *g, float *delta, size_t n);
typedef void mw_rule_sparse(const struct mw_coef *coef, float *state, const uint32_t *group, size_t n,
	uint32_t width, const float *x, const float *g, float *delta);

struct mw_rule_table {
	mw_rule_dense *dense[MW_RULE_COUNT];
	mw_rule_sparse *sparse[MW_RULE_COUNT];
};
extern const struct mw_rule_table mw_rules_portable, mw_rules_avx2, mw_rules_avx512;

/* Those of this process (mw_kernels()). */
const struct mw_rule_table *mw_rules(void);

#endif
