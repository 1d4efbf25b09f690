/* order.c: see order.h. */
#include "run/order.h"

enum { STREAM_UNITS = 0x0bde, STREAM_INSIDE = 0x0bdf };

/* Small data: blocks shrink until every worker gets a few, so that none is left without rows if it can be helped. */
static uint64_t unit_rows(enum mw_order_kind kind, uint64_t rows, uint32_t workers)
{
	uint64_t unit = MW_ORDER_BLOCK_ROWS;
	if (kind != MW_ORDER_BLOCK)
		return 1;
	while (unit > 1 && rows / unit < 8 * (uint64_t)workers)
		unit /= 2;
	return unit;
}

/* Units of a worker: the w-th of n equal parts. */
static void part_of_units(uint64_t units, uint32_t worker, uint32_t workers, uint64_t *lo, uint64_t *hi)
{
	*lo = (uint64_t)((unsigned __int128)units * worker / workers);
	*hi = (uint64_t)((unsigned __int128)units * (worker + 1) / workers);
	if (*lo == *hi) { /* fewer units than workers: share one */
		*lo = worker % units;
		*hi = *lo + 1;
	}
}

void mw_order_part(
	enum mw_order_kind kind, uint64_t rows, uint32_t worker, uint32_t workers, uint64_t *lo, uint64_t *hi)
{
	uint64_t unit = unit_rows(kind, rows, workers);
	part_of_units((rows + unit - 1) / unit, worker, workers, lo, hi);
	*lo *= unit;
	*hi = *hi * unit < rows ? *hi * unit : rows;
}

static void begin_epoch(struct mw_order *o)
{
	uint64_t units = (o->rows->n + o->unit - 1) / o->unit, lo, hi;
	part_of_units(units, o->worker, o->workers, &lo, &hi);
	if (o->shard) {
		o->first = lo;
		hi -= lo;
		lo = 0;
		mw_perm_init(&o->perm, hi, mw_hash3(o->seed, STREAM_UNITS, o->worker), o->epoch);
	} else {
		o->first = 0;
		mw_perm_init(&o->perm, units, mw_hash3(o->seed, STREAM_UNITS, 0), o->epoch);
	}
	o->begin = lo;
	o->end = hi;
	o->position = lo;
}

static void load_block(struct mw_order *o)
{
	if (o->position >= o->end) {
		o->epoch++;
		begin_epoch(o);
	}
	uint64_t unit = o->kind == MW_ORDER_FILE ? o->position : mw_perm_at(&o->perm, o->position);
	o->position++;
	o->block_start = (o->first + unit) * o->unit;
	uint64_t left = o->rows->n - o->block_start;
	o->block_rows = (uint32_t)(left < o->unit ? left : o->unit);
	o->at = 0;
	for (uint32_t i = 0; i < o->block_rows; i++)
		o->inside[i] = (uint8_t)i;
	if (o->block_rows < 2)
		return;
	/* Fisher-Yates; the bits depend on (seed, epoch, block) only */
	struct mw_rng rng;
	mw_rng_init(&rng, mw_hash3(o->seed, STREAM_INSIDE, o->epoch), o->first + unit);
	for (uint32_t i = o->block_rows - 1; i > 0; i--) {
		uint32_t j = (uint32_t)mw_rng_below(&rng, i + 1);
		uint8_t t = o->inside[i];
		o->inside[i] = o->inside[j];
		o->inside[j] = t;
	}
}

void mw_order_init(struct mw_order *o, enum mw_order_kind kind, bool shard, const struct mw_rows *rows,
	uint64_t seed, uint32_t worker, uint32_t workers)
{
	*o = (struct mw_order){ .kind = kind,
		.shard = shard,
		.seed = seed,
		.worker = worker,
		.workers = workers,
		.rows = rows,
		.unit = unit_rows(kind, rows->n, workers) };
	begin_epoch(o);
}

void mw_order_draw(struct mw_order *o, uint64_t *row, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (o->at >= o->block_rows)
			load_block(o);
		row[i] = mw_rows_at(o->rows, o->block_start + o->inside[o->at++]);
	}
}

bool mw_order_next_block(const struct mw_order *o, uint64_t *from, uint64_t *to)
{
	if (o->kind != MW_ORDER_BLOCK || o->position >= o->end)
		return false;
	uint64_t first = (o->first + mw_perm_at(&o->perm, o->position)) * o->unit, last = first + o->unit - 1;
	*from = mw_rows_at(o->rows, first);
	*to = mw_rows_at(o->rows, last < o->rows->n ? last : o->rows->n - 1) + 1;
	return true;
}

void mw_order_skip(struct mw_order *o, uint64_t n)
{
	while (n > 0) {
		if (o->at >= o->block_rows)
			load_block(o);
		uint64_t left = o->block_rows - o->at, step = n < left ? n : left;
		o->at += (uint32_t)step;
		n -= step;
	}
}

const struct mw_rows *mw_order_own(const struct mw_order *o, uint64_t *lo, uint64_t *hi)
{
	*lo = o->first * o->unit;
	*hi = *lo + (o->end - o->begin) * o->unit;
	*hi = *hi < o->rows->n ? *hi : o->rows->n;
	return o->rows;
}
