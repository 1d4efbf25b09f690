/* round.c: the parts of a step that only barrier protocols have; see worker.h. */
#include <string.h>

#include "base/kernel.h"
#include "comm/access.h"
#include "run/control.h"
#include "run/optimize.h"
#include "run/worker_impl.h"

bool mw_round_due(const struct mw_worker *w)
{
	return mw_next_mix(w) == w->step || (w->run->collect && w->run->optim_at_push);
}

/*
 * --state shared under a barrier: the workers' gradients are averaged into bench->g, the one optimizer makes the delta
 * there, on [from, to). Returns the push that replaces theirs.
 */
static struct mw_push average_and_optimize(
	struct mw_run *run, struct mw_bench *bench, const struct mw_worker *w, size_t from, size_t to)
{
	size_t n = to - from;
	float *g = bench->g + from;
	uint32_t row = run->protocol->push_row[0];
	struct mw_step s = { .rate = w->rate, .t = w->step };
	memset(g, 0, n * sizeof(*g));
	for (uint32_t i = 0; i < run->n_workers; i++)
		for (size_t j = 0; j < n; j++)
			g[j] += run->round_push[i].weight * run->round_push[i].delta[from + j];
	mw_access_view(&run->replicas, row, from, n, bench->x + from);
	mw_optimize_dense(run, &s, run->shared_state, bench->x, bench->g, from, to);
	return (struct mw_push){ row, 1, bench->g };
}

static void add_pushes(
	struct mw_run *run, size_t from, size_t to, const struct mw_push *push, uint32_t n_push)
{
	for (uint32_t i = 0; i < n_push && to > from; i++)
		mw_kernels()->axpy(push[i].weight, push[i].delta + from,
			run->replicas.row[push[i].row].x + from, to - from);
}

void mw_round_mix(struct mw_worker *w, struct mw_bench *bench, size_t from, size_t to)
{
	struct mw_run *run = w->run;
	const struct mw_push *push = run->round_push;
	uint32_t n_push = run->collect ? run->n_workers : 0;
	bool due = mw_next_mix(w) == w->step;
	struct mw_push one;
	size_t lo = to, hi = to, n; /* the part of [from, to) that is exchanged */
	if (run->collect && run->optim_at_push) {
		one = average_and_optimize(run, bench, w, from, to);
		push = &one;
		n_push = 1;
	}
	if (due) {
		mw_mix_range(run, 0, w->mixes, &lo, &n);
		hi = lo + n < to ? lo + n : to;
		lo = lo > from ? lo : from;
		lo = lo < to ? lo : to;
		hi = hi > lo ? hi : lo;
	}
	bool before = run->opt->mix_order == MW_MIX_BEFORE;
	if (hi > lo)
		mw_exec_plan(&run->executor, &bench->exec, 0, mw_mix_choice(run, 0, w->mixes),
			w->knobs->slack, lo, hi - lo, push, before ? 0 : n_push, true);
	if (due && run->control &&
		to == run->replicas.dim) /* whoever has the last coordinates has those behind them */
		mw_control_exchange(run, bench, 0, mw_mix_choice(run, 0, w->mixes),
			mw_mix_block(run, 0, w->mixes), w->knobs->slack);
	if (before) {
		add_pushes(run, from, to, push, n_push);
	} else {
		add_pushes(run, from, lo, push, n_push);
		add_pushes(run, hi, to, push, n_push);
	}
}

void mw_round_end(struct mw_worker *w, struct mw_bench *bench)
{
	if (w->run->opt->mix_order == MW_MIX_BEFORE && !w->run->collect && mw_round_due(w))
		w->pool_n > 1 ? mw_delay_and_push(w, bench) : mw_push_delta(w, bench, &w->pool[0]);
	if (mw_next_mix(w) == w->step) {
		mw_note_mix(w);
		w->mixes++;
	}
	w->step++;
	mw_bump(&w->counters->steps, 1);
}
