/* place.c: the training data by NUMA node (--data-place); see place.h. */
#include "run/place.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/run.h"

int mw_place_check(const struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	if (o->data_place != MW_DATA_SHARED && o->mem == MW_MEM_INTERLEAVE)
		MW_FAIL(err, USAGE,
			"--data-place %s puts data on each worker's node, --mem interleave spreads them over "
			"all nodes: choose "
			"one",
			o->data_place == MW_DATA_SHARD ? "shard" : "replicate");
	return 0;
}

/* --- shard: each worker's rows on its node -------------------------------------------------------------------------- */

/* The rows of the dataset that worker's part begins at; for worker n: the end. */
static uint64_t part_begins(const struct mw_run *run, uint32_t worker)
{
	uint64_t lo, hi;
	if (!worker)
		return 0;
	if (worker >= run->n_workers)
		return run->train->rows;
	mw_order_part((enum mw_order_kind)run->opt->order, run->rows.n, worker, run->n_workers, &lo, &hi);
	return mw_rows_at(&run->rows, lo);
}

/* Bytes [*from, *to) of a part that are worker's own; the first worker's begin at 0, the last one's end at the end. */
static void own_bytes(
	const struct mw_run *run, const struct mw_data_part *part, uint32_t worker, size_t *from, size_t *to)
{
	*from = mw_data_part_offset(run->train, part, part_begins(run, worker));
	*to = worker + 1 == run->n_workers
		      ? part->bytes
		      : mw_data_part_offset(run->train, part, part_begins(run, worker + 1));
}

enum { SHARDS = MW_ALL_NODES - 1 };

static bool by_rows(const struct mw_data_part *part)
{
	return part->row_bytes || part->nz_bytes;
}

struct copy {
	char *to;
	const char *from;
	size_t bytes;
};

static void copy_bytes(void *arg)
{
	const struct copy *c = arg;
	memcpy(c->to, c->from, c->bytes);
}

/*
 * A new array whose pages are bound before they are written, by a thread on their node (which places them where binding is
 * refused). node MW_ALL_NODES: in turn on all; SHARDS: each worker's part on its node.
 */
static int rewrite(struct mw_run *run, const struct mw_data_part *part, uint32_t node, struct mw_err *err)
{
	struct mw_layout *l = run->layout;
	bool shards = node == SHARDS, all = node == MW_ALL_NODES;
	char *fresh = mw_alloc_pages(part->bytes + MW_DATA_SLACK, "the data by node", err);
	if (!fresh)
		return err->code;
	for (uint32_t w = 0; w < (shards ? run->n_workers : 1); w++) {
		size_t from = 0, to = part->bytes;
		if (shards)
			own_bytes(run, part, w, &from, &to);
		if (to <= from)
			continue; /* more workers than rows share them */
		uint32_t there = shards ? (uint32_t)l->slot[w].node : all ? 0 : node;
		struct copy c = { fresh + from, (const char *)*part->at + from, to - from };
		if (mw_node_bind(l, all ? MW_ALL_NODES : there, fresh + from, to - from, err) < 0) {
			mw_free(fresh);
			return err->code;
		}
		mw_layout_on_node(l, there, copy_bytes, &c);
	}
	mw_dataset_free_array(run->train, *part->at);
	*part->at = fresh;
	return 0;
}

void mw_place_look_at_shard(const struct mw_run *run, uint32_t worker, struct mw_pages *pages)
{
	struct mw_data_part part[MW_DATA_PARTS_MAX];
	size_t n = mw_dataset_parts(run->train, part), page = (size_t)sysconf(_SC_PAGESIZE), from, to;
	for (size_t i = 0; i < n; i++) {
		if (!by_rows(&part[i]))
			continue;
		own_bytes(run, &part[i], worker, &from, &to);
		/* a page at the border belongs to the worker before, or to another block: it is not moved */
		uintptr_t start = (uintptr_t)*part[i].at + from, whole = (start + page - 1) & ~(page - 1);
		from += part[i].bytes > page ? whole - start : 0;
		if (to > from)
			mw_pages_look(pages, (const char *)*part[i].at + from, to - from);
	}
}

/* --- replicate: a copy on each node --------------------------------------------------------------------------------- */

static int copy_dataset(struct mw_run *run, uint32_t node, struct mw_err *err)
{
	struct mw_data_part from[MW_DATA_PARTS_MAX], to[MW_DATA_PARTS_MAX];
	struct mw_dataset *copy = mw_node_alloc(run->layout, node, sizeof(*copy), "a node's data", err);
	run->node_data[node] = copy;
	if (!copy)
		return err->code;
	*copy = *run->train;
	size_t n = mw_dataset_parts(run->train, from), made = mw_dataset_parts(copy, to);
	for (size_t i = 0; i < made; i++) /* a half-made copy must not free what is the original's */
		*to[i].at = NULL;
	for (size_t i = 0; i < n; i++) {
		*to[i].at = mw_node_alloc(
			run->layout, node, from[i].bytes + MW_DATA_SLACK, "a node's copy of the data", err);
		if (!*to[i].at)
			return err->code;
		struct copy c = { *to[i].at, *from[i].at, from[i].bytes };
		mw_layout_on_node(run->layout, node, copy_bytes, &c);
		mw_thp_collapse(*to[i].at, from[i].bytes);
	}
	return 0;
}

/* The first node has the data as loaded, written anew there; the others have copies. */
static int replicate(struct mw_run *run, struct mw_err *err)
{
	struct mw_data_part part[MW_DATA_PARTS_MAX];
	size_t n = mw_dataset_parts(run->train, part);
	run->node_data =
		mw_alloc_array(run->layout->n_nodes, sizeof(*run->node_data), "the nodes' data", err);
	if (!run->node_data)
		return err->code;
	for (size_t i = 0; i < n; i++)
		if (run->layout->mem_applied)
			MW_TRY(rewrite(run, &part[i], 0, err));
	run->node_data[0] = run->train;
	for (uint32_t node = 1; node < run->layout->n_nodes; node++)
		MW_TRY(copy_dataset(run, node, err));
	return 0;
}

int mw_place_data(struct mw_run *run, struct mw_err *err)
{
	struct mw_data_part part[MW_DATA_PARTS_MAX];
	if (run->layout->mem_applied)
		MW_TRY(mw_dataset_own(run->train, err));
	size_t n = mw_dataset_parts(run->train, part);
	bool placed = run->layout->mem_applied, shard = run->opt->data_place == MW_DATA_SHARD;
	if (run->opt->data_place == MW_DATA_REPLICATE && !run->exclusive && run->layout->n_nodes > 1)
		MW_TRY(replicate(run, err));
	else
		for (size_t i = 0; i < n && placed; i++) {
			if (shard && by_rows(&part[i]))
				MW_TRY(rewrite(run, &part[i], SHARDS, err));
			else if (run->layout->mem != MW_MEM_FIRST_TOUCH)
				MW_TRY(rewrite(run, &part[i], MW_ALL_NODES, err));
		}
	n = mw_dataset_parts(run->train, part); /* arrays may be new ones */
	for (size_t i = 0; i < n; i++)
		mw_thp_collapse(*part[i].at, part[i].bytes);
	return 0;
}

const struct mw_dataset *mw_place_data_of(const struct mw_run *run, uint32_t node)
{
	return run->node_data ? run->node_data[node] : run->train;
}

static void free_copy(struct mw_run *run, struct mw_dataset *copy)
{
	struct mw_data_part part[MW_DATA_PARTS_MAX];
	if (!copy)
		return;
	size_t n = mw_dataset_parts(copy, part);
	for (size_t i = 0; i < n; i++)
		mw_node_free(run->layout, *part[i].at);
	mw_node_free(run->layout, copy);
}

void mw_place_fini(struct mw_run *run)
{
	for (uint32_t i = 1; run->node_data && i < run->layout->n_nodes; i++)
		free_copy(run, run->node_data[i]);
	mw_free(run->node_data);
	run->node_data = NULL;
	mw_free(run->places.item);
	run->places = (struct mw_place_list){ 0 };
}
