/*
 * optim.h: gradient in, delta out. delta = -rate * direction(g, state), to be added to the parameters; the
 * optimizer never sees replicas. State is `fields` floats per parameter.
 *
 * Weight decay is coupled (D x is added to the gradient: L2 regularisation) or decoupled (x shrinks by rate D x beside the
 * step: AdamW, SGDW; Loshchilov, Hutter 2019).
 *
 * Sparse steps touch only the given groups: momentum and second moments of other coordinates do not decay
 * meanwhile (lazy, as PyTorch's SparseAdam does). State may be shared by workers (--state shared), so it is
 * read and written through shared.h.
 */
#ifndef MW_OPTIM_OPTIM_H
#define MW_OPTIM_OPTIM_H

#include "base/err.h"
#include "base/option.h"
#include "optim/rules.h"

/* Floats that a parameter's fields take in the sparse layout: three fill four, so that a record is one vector load. */
#define MW_OPTIM_RECORD(fields) ((fields) == 3 ? 4u : (uint32_t)(fields))

struct mw_step {
	float rate;
	uint64_t t; /* steps done with this state before this one: 0 at the first (bias correction uses t + 1)
		     */
};

struct mw_optim {
	const struct mw_optim_ops *ops;
	int rule;        /* which arithmetic (enum mw_rule of rules.h) */
	uint32_t fields; /* state floats per parameter; 0: none */
	bool needs_x;    /* weight decay reads the parameters */
	bool plain;      /* delta = -rate * g exactly: a fused path may skip the call */
	void *priv;
};

struct mw_optim_ops {
	const char *name, *summary;
	const struct mw_option *options;
	size_t option_size;
	int (*setup)(struct mw_optim *o, const void *options, struct mw_err *err);
	void (*fini)(struct mw_optim *o);
	/* The constants of a step; what gradients are multiplied by (scale) is the caller's. */
	struct mw_coef (*coef)(const struct mw_optim *o, const struct mw_step *s);
};

/* Allocate and set up; options: the struct its table fills (NULL: defaults). *out is owned by the caller. */
int mw_optim_new(
	const struct mw_optim_ops *ops, const void *options, struct mw_optim **out, struct mw_err *err);
void mw_optim_free(struct mw_optim *o);

/*
 * Dense: field f of parameter i is state[f * stride + i]. x NULL: no weight decay on these parameters (whatever needs_x says),
 * else it is there if needs_x. delta may alias g.
 */
void mw_optim_dense(const struct mw_optim *o, const struct mw_step *s, float *state, size_t stride,
	const float *x, const float *g, float *delta, size_t n);
/* Sparse: field f of parameter p = group[i] * width + j is state[p * MW_OPTIM_RECORD(fields) + f]; x, g, delta are compact. */
void mw_optim_sparse(const struct mw_optim *o, const struct mw_step *s, float *state, const uint32_t *group,
	size_t n, uint32_t width, const float *x, const float *g, float *delta);

/* All optimizers of registry.def, NULL-terminated; and the one of this name, or NULL. */
extern const struct mw_optim_ops *const mw_optims[];
const struct mw_optim_ops *mw_optim_find(const char *name);

#endif
