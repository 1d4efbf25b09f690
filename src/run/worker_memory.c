/* worker_memory.c: a worker's own memory, and a thread's; made by the thread that will use it, so that it is near. */
#include "base/mem.h"
#include "run/control.h"
#include "run/optimize.h"
#include "run/run.h"

#define EVAL_BATCH 256

enum { STREAM_OWN_ROWS = 0x0be0 };

static int delta_init(struct mw_delta *d, const struct mw_run *run, uint32_t node, struct mw_err *err)
{
	/* dense ones with 0 for the columns that an exchange takes along */
	size_t groups = run->model->touch_max * run->batch,
	       floats = run->form == MW_FORM_DENSE    ? mw_control_extent(run, run->model->dim)
			: run->form == MW_FORM_SPARSE ? groups * run->model->width
						      : 0;
	d->row = &d->row_one;
	d->coef = &d->coef_one;
	if (run->batch > 1) {
		d->row = mw_node_alloc(run->layout, node, run->batch * sizeof(*d->row), "a delta", err);
		d->coef = mw_node_alloc(run->layout, node, run->batch * sizeof(*d->coef), "a delta", err);
	}
	if (!d->row || !d->coef)
		return err->code;
	if (run->form == MW_FORM_SPARSE) {
		d->group = mw_node_alloc(run->layout, node, groups * sizeof(*d->group), "a delta", err);
		if (!d->group)
			return err->code;
	}
	if (floats) {
		d->d = mw_node_alloc(run->layout, node, floats * sizeof(float), "a delta", err);
		if (!d->d)
			return err->code;
	}
	return 0;
}

static int pool_init(struct mw_worker *w, uint32_t node, struct mw_err *err)
{
	struct mw_run *run = w->run;
	w->pool_n = run->pool_n;
	w->pool = &w->pool_one;
	if (w->pool_n == 1)
		return delta_init(w->pool, run, node, err);
	w->pool = mw_alloc_array(w->pool_n, sizeof(*w->pool), "the deltas on their way", err);
	w->due_head = mw_alloc_array(w->pool_n, sizeof(*w->due_head), "the deltas on their way", err);
	w->due_tail = mw_alloc_array(w->pool_n, sizeof(*w->due_tail), "the deltas on their way", err);
	w->free_list = mw_alloc_array(w->pool_n, sizeof(*w->free_list), "the deltas on their way", err);
	if (!w->pool || !w->due_head || !w->due_tail || !w->free_list)
		return err->code;
	for (uint32_t i = 0; i < w->pool_n; i++) {
		w->due_head[i] = MW_NO_DELTA;
		MW_TRY(delta_init(&w->pool[i], run, node, err));
		if (i > 0)
			w->free_list[w->n_free++] = i;
	}
	return 0;
}

int mw_worker_new(struct mw_run *run, uint32_t id, struct mw_worker **out, struct mw_err *err)
{
	uint32_t node = run->layout->slot && run->layout->slot[id].node > 0
				? (uint32_t)run->layout->slot[id].node
				: 0;
	struct mw_worker *w = mw_node_alloc(run->layout, node, sizeof(*w), "a worker", err);
	*out = w;
	if (!w)
		return err->code;
	w->id = id;
	w->run = run;
	w->counters = &run->counters[id];
	w->data = mw_place_data_of(run, node);
	w->knobs = &run->knobs;
	if (run->shards.row) /* all of its own rows, in an order of its own */
		mw_order_init(&w->order, (enum mw_order_kind)run->opt->order, false, &run->shards.row[id],
			mw_hash3(run->seed, STREAM_OWN_ROWS, id), 0, 1);
	else
		mw_order_init(&w->order, (enum mw_order_kind)run->opt->order,
			run->opt->data_place == MW_DATA_SHARD, &run->rows, run->seed, id, run->n_workers);
	if (run->dealer)
		mw_order_deal(&w->order, run->dealer);
	MW_TRY(pool_init(w, node, err));
	if (mw_tracing(run) || mw_control_records(run)) {
		w->recorder =
			mw_node_alloc(run->layout, node, sizeof(*w->recorder), "the event recorder", err);
		if (!w->recorder)
			return err->code;
		mw_recorder_init(
			w->recorder, (uint64_t)run->opt->trace_every, (uint64_t)run->opt->trace_window);
	}
	w->staleness = run->shared_staleness;
	if (!w->staleness)
		w->staleness = mw_node_alloc(
			run->layout, node, sizeof(*w->staleness), "the staleness histogram", err);
	if (!w->staleness)
		return err->code;
	if (run->state == MW_STATE_WORKER && run->optim->fields) {
		w->state = mw_node_alloc(run->layout, node, mw_state_floats(run) * sizeof(float),
			"the optimizer's state", err);
		if (!w->state)
			return err->code;
	}
	return 0;
}

void mw_worker_free(struct mw_worker *w)
{
	if (!w)
		return;
	const struct mw_layout *l = w->run->layout;
	for (uint32_t i = 0; w->pool && i < w->pool_n; i++) {
		if (w->pool[i].row != &w->pool[i].row_one)
			mw_node_free(l, w->pool[i].row);
		if (w->pool[i].coef != &w->pool[i].coef_one)
			mw_node_free(l, w->pool[i].coef);
		mw_node_free(l, w->pool[i].group);
		mw_node_free(l, w->pool[i].d);
	}
	if (w->pool != &w->pool_one)
		mw_free(w->pool);
	mw_free(w->due_head);
	mw_free(w->due_tail);
	mw_free(w->free_list);
	if (w->recorder)
		mw_recorder_fini(w->recorder);
	mw_node_free(l, w->recorder);
	if (w->staleness != w->run->shared_staleness)
		mw_node_free(l, w->staleness);
	mw_node_free(l, w->state);
	mw_node_free(l, w);
}

uint32_t mw_bench_batch(const struct mw_run *run)
{
	return run->model->heavy || run->batch > EVAL_BATCH ? run->batch : EVAL_BATCH;
}

int mw_bench_init(struct mw_bench *b, struct mw_run *run, uint32_t node, struct mw_err *err)
{
	uint32_t batch = mw_bench_batch(run);
	size_t floats =
		run->model->sparse ? run->model->touch_max * batch * run->model->width : run->model->dim;
	b->data = mw_place_data_of(run, node);
	b->work = run->model->ops->work_new(run->model, batch, err);
	if (!b->work)
		return err->code;
	b->x = mw_node_alloc(run->layout, node, floats * sizeof(float), "a view", err);
	b->g = mw_node_alloc(run->layout, node, floats * sizeof(float), "a gradient", err);
	if (!b->x || !b->g)
		return err->code;
	MW_TRY(mw_exec_scratch_init(&b->exec, &run->executor, err));
	if ((mw_tracing(run) || mw_control_records(run)) && run->executor.max_touch) {
		b->exec.version = mw_alloc_array(
			run->executor.max_touch, sizeof(uint64_t), "the executor's scratch", err);
		if (!b->exec.version)
			return err->code;
	}
	return 0;
}

void mw_bench_fini(struct mw_bench *b, struct mw_run *run)
{
	if (b->work)
		run->model->ops->work_free(b->work);
	mw_node_free(run->layout, b->x);
	mw_node_free(run->layout, b->g);
	mw_exec_scratch_fini(&b->exec);
	*b = (struct mw_bench){ 0 };
}
