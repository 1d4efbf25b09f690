/* order.c: see order.h. */
#include "run/order.h"

enum { STREAM_UNITS = 0x0bde, STREAM_INSIDE = 0x0bdf };

/* Blocks shrink until every worker gets a few, so that none is left without rows if it can be helped. */
uint64_t mw_order_unit(enum mw_order_kind kind, uint64_t rows, uint32_t workers)
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
	uint64_t unit = mw_order_unit(kind, rows, workers);
	part_of_units((rows + unit - 1) / unit, worker, workers, lo, hi);
	*lo *= unit;
	*hi = *hi * unit < rows ? *hi * unit : rows;
}

/* Which unit comes at a position of the current epoch. Permuting takes a while, so what was looked ahead for is kept. */
static uint64_t unit_at(struct mw_order *o, uint64_t position)
{
	struct mw_order_known *k = &o->known[position % MW_ORDER_KNOWN];
	if (o->kind == MW_ORDER_FILE)
		return position - o->base;
	if (k->position != position)
		*k = (struct mw_order_known){ position, mw_perm_at(&o->perm, position - o->base) };
	return k->unit;
}

static void new_permutation(struct mw_order *o, uint64_t n, uint64_t stream)
{
	mw_perm_init(&o->perm, n, mw_hash3(o->seed, STREAM_UNITS, stream), o->epoch);
	for (int i = 0; i < MW_ORDER_KNOWN; i++)
		o->known[i].position = UINT64_MAX;
}

static void begin_epoch(struct mw_order *o)
{
	uint64_t lo, hi;
	part_of_units(o->units, o->worker, o->workers, &lo, &hi);
	if (o->shard) {
		o->first = lo;
		hi -= lo;
		lo = 0;
		new_permutation(o, hi, o->worker);
	} else {
		o->first = 0;
		new_permutation(o, o->units, 0);
	}
	o->begin = lo;
	o->end = hi;
	o->position = lo;
}

/* The same for the epoch that a dealt position belongs to. */
static void enter_epoch(struct mw_order *o)
{
	if (o->position - o->base < o->units)
		return;
	o->epoch = o->position / o->units;
	o->base = o->epoch * o->units;
	new_permutation(o, o->units, 0);
}

static bool next_unit(struct mw_order *o)
{
	bool used_up = o->position >= o->end;
	if (used_up && o->dealer && !mw_dealer_take(o->dealer, &o->position, &o->end))
		return false;
	if (o->dealer) {
		enter_epoch(o);
	} else if (used_up) {
		o->epoch++;
		begin_epoch(o);
	}
	return true;
}

static bool load_block(struct mw_order *o)
{
	if (!next_unit(o))
		return false;
	uint64_t unit = unit_at(o, o->position++);
	o->block_start = (o->first + unit) * o->unit;
	uint64_t left = o->rows->n - o->block_start;
	o->block_rows = (uint32_t)(left < o->unit ? left : o->unit);
	o->at = 0;
	for (uint32_t i = 0; i < o->block_rows; i++)
		o->inside[i] = (uint8_t)i;
	if (o->block_rows < 2)
		return true;
	/* Fisher-Yates; the bits depend on (seed, epoch, block) only */
	struct mw_rng rng;
	mw_rng_init(&rng, mw_hash3(o->seed, STREAM_INSIDE, o->epoch), o->first + unit);
	for (uint32_t i = o->block_rows - 1; i > 0; i--) {
		uint32_t j = (uint32_t)mw_rng_below(&rng, i + 1);
		uint8_t t = o->inside[i];
		o->inside[i] = o->inside[j];
		o->inside[j] = t;
	}
	return true;
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
		.unit = mw_order_unit(kind, rows->n, workers) };
	o->units = (rows->n + o->unit - 1) / o->unit;
	begin_epoch(o);
}

void mw_order_deal(struct mw_order *o, struct mw_dealer *dealer)
{
	o->dealer = dealer;
	o->position = o->begin = o->end = 0;
}

uint32_t mw_order_draw(struct mw_order *o, uint64_t *row, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (o->at >= o->block_rows && !load_block(o))
			return i;
		row[i] = mw_rows_at(o->rows, o->block_start + o->inside[o->at++]);
	}
	return n;
}

bool mw_order_next_block(struct mw_order *o, uint64_t k, uint64_t *from, uint64_t *to)
{
	uint64_t position = o->position + k;
	if (o->kind != MW_ORDER_BLOCK || position >= o->end || position - o->base >= o->units)
		return false;
	uint64_t first = (o->first + unit_at(o, position)) * o->unit, last = first + o->unit - 1;
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

void mw_order_where(const struct mw_order *o, uint64_t at[3])
{
	bool inside = o->at < o->block_rows;
	at[0] = o->position - inside;
	at[1] = o->end;
	at[2] = inside ? o->at : 0;
}

void mw_order_go_to(struct mw_order *o, const uint64_t at[3])
{
	o->position = at[0];
	o->end = at[1];
	if (at[0] < at[1] && at[2]) {
		load_block(o);
		o->at = (uint32_t)at[2];
	}
}

const struct mw_rows *mw_order_own(const struct mw_order *o, uint64_t *lo, uint64_t *hi)
{
	*lo = o->first * o->unit;
	*hi = *lo + (o->end - o->begin) * o->unit;
	*hi = *hi < o->rows->n ? *hi : o->rows->n;
	return o->rows;
}
