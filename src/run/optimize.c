/* optimize.c: see optimize.h. */
#include "run/optimize.h"

#include "base/mem.h"

int mw_spans_init(struct mw_run *run, struct mw_err *err)
{
	const struct mw_model *m = run->model;
	run->span = mw_alloc_array(m->n_slices, sizeof(*run->span), "the parameter table", err);
	if (!run->span)
		return err->code;
	for (size_t i = 0; i < m->n_slices && m->slices[i].offset < m->trained; i++) {
		const struct mw_slice *s = &m->slices[i];
		if (run->n_spans && run->span[run->n_spans - 1].decay == !s->no_decay)
			continue;
		if (run->n_spans)
			run->span[run->n_spans - 1].to = s->offset;
		run->span[run->n_spans++] = (struct mw_span){ s->offset, m->trained, !s->no_decay };
	}
	return 0;
}

size_t mw_state_floats(const struct mw_run *run)
{
	uint32_t fields = run->optim->fields;
	return run->model->dim * (run->form == MW_FORM_SPARSE ? MW_OPTIM_RECORD(fields) : fields);
}

void mw_optimize_dense(const struct mw_run *run, const struct mw_step *s, float *state, const float *x,
	float *d, size_t from, size_t to)
{
	const struct mw_optim *o = run->optim;
	size_t dim = run->model->dim, trained = run->model->trained;
	for (uint32_t i = 0; i < run->n_spans; i++) {
		size_t a = run->span[i].from > from ? run->span[i].from : from,
		       b = run->span[i].to < to ? run->span[i].to : to;
		if (a < b)
			mw_optim_dense(o, s, state ? state + a : NULL, dim,
				x && run->span[i].decay ? x + a : NULL, d + a, d + a, b - a);
	}
	for (size_t i = from > trained ? from : trained; i < to; i++)
		d[i] = -d[i];
}
