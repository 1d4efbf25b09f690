/* model_file.c: see model_file.h. */
#include "run/model_file.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "run/tensor_file.h"

/* The model's slices of x; mw_free the array. */
static struct mw_tensor *slices(const struct mw_model *m, float *x, struct mw_err *err)
{
	struct mw_tensor *t = mw_alloc_array(m->n_slices, sizeof(*t), "the parameter table", err);
	for (size_t i = 0; t && i < m->n_slices; i++) {
		const struct mw_slice *s = &m->slices[i];
		snprintf(t[i].name, sizeof(t[i].name), "%s", s->name);
		memcpy(t[i].shape, s->shape, sizeof(t[i].shape));
		t[i].ndim = s->ndim;
		t[i].data = x + s->offset;
	}
	return t;
}

int mw_model_file_save(
	const char *path, const struct mw_model *m, float *x, const json_t *about, struct mw_err *err)
{
	struct mw_tensor *t = slices(m, x, err);
	int code = t ? mw_tensor_file_save(path, t, m->n_slices, about, err) : MW_ERESOURCE;
	mw_free(t);
	return code;
}

int mw_model_file_about(const char *path, json_t **about, struct mw_err *err)
{
	return mw_tensor_file_about(path, about, err);
}

int mw_model_file_load_params(const char *path, const struct mw_model *m, float *x, struct mw_err *err)
{
	struct mw_tensor *t = slices(m, x, err);
	int code = t ? mw_tensor_file_load(path, t, m->n_slices, err) : MW_ERESOURCE;
	mw_free(t);
	return code;
}
