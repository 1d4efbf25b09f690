/* model_file.c: see model_file.h. */
#include "run/model_file.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "run/tensor_file.h"

static void add(struct mw_tensor *t, const struct mw_slice *s, float *data)
{
	snprintf(t->name, sizeof(t->name), "%s", s->name);
	memcpy(t->shape, s->shape, sizeof(t->shape));
	t->ndim = s->ndim;
	t->data = data + s->offset;
}

/* The model's slices of x, and of stats (NULL: none); mw_free the array. */
static struct mw_tensor *slices(
	const struct mw_model *m, float *x, float *stats, size_t *n, struct mw_err *err)
{
	struct mw_tensor *t =
		mw_alloc_array(m->n_slices + m->n_stat_slices, sizeof(*t), "the parameter table", err);
	*n = 0;
	for (size_t i = 0; t && i < m->n_slices; i++)
		add(&t[(*n)++], &m->slices[i], x);
	for (size_t i = 0; t && stats && i < m->n_stat_slices; i++)
		add(&t[(*n)++], &m->stat_slices[i], stats);
	return t;
}

int mw_model_file_save(const char *path, const struct mw_model *m, float *x, float *stats,
	const json_t *about, struct mw_err *err)
{
	size_t n;
	struct mw_tensor *t = slices(m, x, stats, &n, err);
	int code = t ? mw_tensor_file_save(path, t, n, about, err) : MW_ERESOURCE;
	mw_free(t);
	return code;
}

int mw_model_file_about(const char *path, json_t **about, struct mw_err *err)
{
	return mw_tensor_file_about(path, about, err);
}

int mw_model_file_load(const char *path, const struct mw_model *m, float *x, float *stats, struct mw_err *err)
{
	size_t n;
	struct mw_tensor *t = slices(m, x, stats, &n, err);
	int code = t ? mw_tensor_file_load(path, t, n, err) : MW_ERESOURCE;
	mw_free(t);
	return code;
}
