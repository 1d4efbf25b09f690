/* optim.c: the list of optimizers, and their life. */
#include "optim/optim.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "optim/optim_make.h"

#define MW_OPTIM(name) extern const struct mw_optim_ops mw_optim_##name;
#include "registry.def"

const struct mw_optim_ops *const mw_optims[] = {
#define MW_OPTIM(name) &mw_optim_##name,
#include "registry.def"
	NULL,
};

const struct mw_optim_ops *mw_optim_find(const char *name)
{
	for (size_t i = 0; mw_optims[i]; i++)
		if (!strcmp(mw_optims[i]->name, name))
			return mw_optims[i];
	return NULL;
}

/* Set up with the defaults of the optimizer's table. */
static int setup_default(struct mw_optim *o, struct mw_err *err)
{
	struct mw_options set = { 0 };
	void *options = mw_alloc(o->ops->option_size, "optimizer options", err);
	if (!options)
		return MW_ERESOURCE;
	struct mw_option_group group = { "Optimizer", NULL, o->ops->options, options };
	int ret = mw_options_init(&set, &group, 1, err);
	if (ret == 0)
		ret = o->ops->setup(o, options, err);
	mw_options_fini(&set);
	mw_free(options);
	return ret;
}

int mw_optim_new(
	const struct mw_optim_ops *ops, const void *options, struct mw_optim **out, struct mw_err *err)
{
	struct mw_optim *o = mw_alloc(sizeof(*o), "optimizer", err);
	if (!o)
		return MW_ERESOURCE;
	o->ops = ops;
	int ret = options ? ops->setup(o, options, err) : setup_default(o, err);
	if (ret < 0) {
		mw_optim_free(o);
		return ret;
	}
	*out = o;
	return 0;
}

void mw_optim_free(struct mw_optim *o)
{
	if (!o)
		return;
	if (o->ops->fini)
		o->ops->fini(o);
	mw_free(o->priv);
	mw_free(o);
}

void mw_optim_dense(const struct mw_optim *o, const struct mw_step *s, float *state, size_t stride,
	const float *x, const float *g, float *delta, size_t n)
{
	struct mw_coef c = o->ops->coef(o, s);
	c.scale = 1;
	mw_rules()->dense[o->rule](&c, state, stride, o->needs_x ? x : NULL, g, delta, n);
}

void mw_optim_sparse(const struct mw_optim *o, const struct mw_step *s, float *state, const uint32_t *group,
	size_t n, uint32_t width, const float *x, const float *g, float *delta)
{
	struct mw_coef c = o->ops->coef(o, s);
	c.scale = 1;
	mw_rules()->sparse[o->rule](&c, state, group, n, width, o->needs_x ? x : NULL, g, delta);
}

struct mw_decay mw_decay_init(struct mw_optim *o, const struct mw_decay_options *p)
{
	float d = (float)p->weight_decay;
	o->needs_x = d > 0;
	return p->form == MW_DECAY_COUPLED ? (struct mw_decay){ d, 0 } : (struct mw_decay){ 0, d };
}

void mw_optim_rule(struct mw_optim *o, enum mw_rule rule)
{
	static const uint32_t fields[] = {
#define MW_RULE(name, n) n,
		MW_RULES(MW_RULE)
#undef MW_RULE
	};
	o->rule = rule;
	o->fields = fields[rule];
}

void mw_beta_init(struct mw_beta *b, double beta)
{
	b->beta = beta;
	b->keep = (float)beta;
	b->take = (float)(1 - beta);
	b->settled = beta > 0 ? (uint64_t)(1.01 * 54 * log(2) / -log(beta)) + 2 : 1;
}

double mw_beta_correction(const struct mw_beta *b, uint64_t t)
{
	double power = 1, base = b->beta;
	if (t >= b->settled)
		return 1;
	for (; t; t >>= 1, base *= base)
		if (t & 1)
			power *= base;
	return 1 - power;
}
