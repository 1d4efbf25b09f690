/* model.c: the list of models, and their life. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/model_make.h"

#define MW_MODEL(name) extern const struct mw_model_ops mw_model_##name;
#include "registry.def"

#define MW_MODEL(name) &mw_model_##name,
const struct mw_model_ops *const mw_models[] = {
#include "registry.def"
	NULL
};

const struct mw_model_ops *mw_model_find(const char *name)
{
	size_t n = strcspn(name, ":");
	for (size_t i = 0; mw_models[i]; i++)
		if (strlen(mw_models[i]->name) == n && !memcmp(mw_models[i]->name, name, n))
			return mw_models[i];
	return NULL;
}

const char *mw_model_text(const struct mw_model *m)
{
	const char *colon = strchr(m->spec, ':');
	return colon ? colon + 1 : "";
}

/* Set up with the defaults of the model's table. */
static int setup_default(struct mw_model *m, const struct mw_dataset *train, struct mw_err *err)
{
	struct mw_options set = { 0 };
	void *options = mw_alloc(m->ops->option_size ? m->ops->option_size : 1, "model options", err);
	if (!options)
		return MW_ERESOURCE;
	struct mw_option_group group = { "Model", NULL, m->ops->options, options };
	int ret = mw_options_init(&set, &group, m->ops->options ? 1 : 0, err);
	if (ret == 0)
		ret = m->ops->setup(m, options, train, err);
	mw_options_fini(&set);
	mw_free(options);
	return ret;
}

static int create(const struct mw_model_ops *ops, const char *spec, const void *options,
	const struct mw_dataset *train, struct mw_model **out, struct mw_err *err)
{
	struct mw_model *m = mw_alloc(sizeof(*m), "model", err);
	if (!m)
		return MW_ERESOURCE;
	m->ops = ops;
	m->spec = mw_strdup(spec);
	int ret = !m->spec  ? mw_err_set(err, MW_ERESOURCE, "out of memory for a model")
		  : options ? ops->setup(m, options, train, err)
			    : setup_default(m, train, err);
	if (ret < 0) {
		mw_model_free(m);
		return ret;
	}
	if (!m->trained)
		m->trained = m->dim;
	*out = m;
	return 0;
}

int mw_model_new(const struct mw_model_ops *ops, const void *options, const struct mw_dataset *train,
	struct mw_model **out, struct mw_err *err)
{
	return create(ops, ops->name, options, train, out, err);
}

int mw_model_new_spec(const char *spec, const void *options, const struct mw_dataset *train,
	struct mw_model **out, struct mw_err *err)
{
	const struct mw_model_ops *ops = mw_model_find(spec);
	if (!ops)
		MW_FAIL(err, USAGE, "no model '%s'; see mixwild list models", spec);
	if (strchr(spec, ':') && !ops->text)
		MW_FAIL(err, USAGE, "--model %s: model %s takes nothing after a ':'", spec, ops->name);
	return create(ops, spec, options, train, out, err);
}

void mw_model_free(struct mw_model *m)
{
	if (!m)
		return;
	if (m->ops->fini)
		m->ops->fini(m);
	mw_free(m->slices);
	mw_free(m->stat_slices);
	free(m->spec);
	mw_free(m);
}

int mw_model_slices_new(struct mw_model *m, size_t n, struct mw_err *err)
{
	m->slices = mw_alloc_array(n, sizeof(*m->slices), "parameter slices", err);
	return m->slices ? 0 : MW_ERESOURCE;
}

void mw_model_slice(struct mw_model *m, const char *name, size_t offset, size_t d0, size_t d1)
{
	struct mw_slice *s = &m->slices[m->n_slices++];
	strncpy(s->name, name, sizeof(s->name) - 1);
	s->offset = offset;
	s->shape[0] = d0;
	s->shape[1] = d1;
	s->ndim = d1 ? 2 : 1;
}

void mw_model_init_zeros(const struct mw_model *m, uint64_t seed, float *x)
{
	(void)seed;
	memset(x, 0, m->dim * sizeof(*x));
}

int mw_model_wants_examples(const struct mw_model *m, const struct mw_dataset *d, struct mw_err *err)
{
	if (d->kind == MW_X_IMAGE && !m->ops->images)
		MW_FAIL(err, DATA, "%s: model %s takes rows of numbers, these are images as bytes", d->name,
			m->ops->name);
	if (d->kind == MW_X_QUADRATIC)
		MW_FAIL(err, DATA,
			"model %s learns from examples; %s is a quadratic function: use --model quad",
			m->ops->name, d->name);
	if (d->rows == 0)
		MW_FAIL(err, DATA, "%s has no rows: there is nothing to train on", d->name);
	if (d->features >= INT32_MAX)
		MW_FAIL(err, DATA,
			"%s has %u features: models take fewer than 2^31; hash them into fewer columns",
			d->name, d->features);
	return 0;
}
