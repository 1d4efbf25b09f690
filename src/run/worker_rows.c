/* worker_rows.c: which rows a worker steps on next, and what it asks memory for ahead of them. */
#include <string.h>

#include "run/worker_impl.h"

/* More lines a row of the burst than so, and a block would not stay in a second-level cache until its rows' turns. */
enum { FETCH_LINES_MAX = 16 };

/* A later block to be asked for line by line, by the MW_RATE_BLOCK rows that are done until more are drawn. */
static void plan_fetch(struct mw_worker *w)
{
	const uint64_t *at = w->data->row_ptr;
	uint64_t from, to, a_row = 16 * MW_RATE_BLOCK;
	w->fetch_lines = 0;
	if (!w->run->bursts || w->data->kind != MW_X_CSR)
		return;
	/* for the next call, which would wait for them */
	if (mw_order_next_block(&w->order, 1, &from, &to)) {
		__builtin_prefetch(&at[from]);
		__builtin_prefetch(&at[to]);
	}
	if (!mw_order_next_block(&w->order, 0, &from, &to))
		return;
	uint64_t lines = (at[to] - at[from] + a_row - 1) / a_row;
	w->fetch = at[from];
	w->fetch_lines = lines <= FETCH_LINES_MAX ? (uint32_t)lines : 0;
}

/*
 * Rows are known MW_BURST_AHEAD early, so that the first rows of a block are fetched in advance too; the last ones that a
 * dealer has are not followed by any.
 */
uint32_t mw_step_rows(struct mw_worker *w)
{
	const uint32_t room = MW_RATE_BLOCK + MW_BURST_AHEAD;
	uint32_t left = w->rows_have - w->rows_at;
	if (left <= MW_BURST_AHEAD) {
		memmove(w->rows_buf, w->rows_buf + w->rows_at, left * sizeof(*w->rows_buf));
		w->rows_have = left + mw_order_draw(&w->order, w->rows_buf + left, room - left);
		w->rows_at = 0;
		plan_fetch(w);
	}
	return w->rows_have - w->rows_at - (w->rows_have == room ? MW_BURST_AHEAD : 0);
}

bool mw_step_has_rows(struct mw_worker *w)
{
	uint32_t batch = w->run->batch;
	if (batch == 1)
		return mw_step_rows(w) > 0;
	w->drawn += mw_order_draw(&w->order, w->pool[w->issued].row + w->drawn, batch - w->drawn);
	return w->drawn == batch;
}
