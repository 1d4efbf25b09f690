/*
 * worker_row.c: the two phases of a step in the simulator's commonest case (mw_row_fast): plain SGD on a one-output linear
 * model over CSR rows, batch 1, one replica and nothing that looks on. With very many workers, what the general phases
 * ask at every step costs more than the step. The same values in the same order as theirs, hence the same bits: a test
 * holds it to that.
 */
#include "base/kernel.h"
#include "base/shared.h"
#include "model/link.h"
#include "run/recording.h"
#include "run/worker_impl.h"

bool mw_row_fast(const struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	return run->exclusive && run->form == MW_FORM_ROW && run->batch == 1 && run->pool_n == 1 &&
	       !p->n_slots && p->rows == 1 && !p->versioned && p->clock == MW_CLOCK_EVENT &&
	       run->ssp_bound < 0 && run->stale.kind == MW_STALE_NONE && !run->opt->tally && !run->control &&
	       !run->replay && !mw_tracing(run);
}

void mw_row_begin(struct mw_worker *w)
{
	const struct mw_run *run = w->run;
	const struct mw_linear *lin = run->model->linear;
	const struct mw_dataset *t = w->data;
	struct mw_delta *d = w->pool;
	mw_step_rows(w);
	uint64_t row = w->rows_buf[w->rows_at++], o = t->row_ptr[row], n = t->row_ptr[row + 1] - o;
	mw_step_knobs(w);
	d->row_one = row;
	d->seen_own = w->counters->pushes;
	d->seen_others = run->sim_pushes - d->seen_own;
	float *x = run->replicas.row[0].x, z = mw_kernels()->dot_sparse(x, t->col + o, t->val + o, n);
	z = lin->bias ? z + mw_ld(x + t->features) : z;
	d->coef_one = mw_link_dloss(lin->link, z, t->y[row]) * (-w->rate * run->protocol->push_weight);
	if (w->step % MW_LOSS_EVERY == 0)
		mw_note_loss(w, mw_link_loss(lin->link, z, t->y[row]));
}

void mw_row_finish(struct mw_worker *w)
{
	struct mw_run *run = w->run;
	const struct mw_dataset *t = w->data;
	const struct mw_delta *d = w->pool;
	uint64_t o = t->row_ptr[d->row_one], n = t->row_ptr[d->row_one + 1] - o;
	float *x = run->replicas.row[0].x;
	mw_kernels()->axpy_sparse(d->coef_one, t->col + o, t->val + o, x, n);
	if (run->model->linear->bias)
		mw_st(x + t->features, mw_ld(x + t->features) + d->coef_one);
	mw_note_staleness(w, run->sim_pushes - d->seen_others - d->seen_own);
	mw_bump(&w->counters->pushes, 1);
	mw_bump(&w->counters->examples, 1);
	run->sim_pushes++;
	w->step++;
	mw_bump(&w->counters->steps, 1);
}
