/* place_look.c: where the memory of a run really is, page by page, as people and programs see it; see place.h. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/ranges.h"
#include "run/optimize.h"
#include "run/run.h"

static const char *const mem_names[] = { "node", "interleave", "first-touch" };
static const char *const thp_names[] = { "madvise", "on", "off" };
static const char *const data_names[] = { "shared", "shard", "replicate" };

static struct mw_place_item *add(struct mw_run *run, int node)
{
	struct mw_place_item *item = &run->places.item[run->places.n++];
	*item = (struct mw_place_item){ .node = run->layout->mem == MW_MEM_INTERLEAVE ? -1 : node };
	return item;
}

/* "replicas 0,2-4" of n numbers; the room of `what` decides how many are named. */
static void name(
	struct mw_place_item *item, const char *one, const char *many, const uint32_t *number, size_t n)
{
	char list[40];
	snprintf(item->what, sizeof(item->what), "%s %s", n == 1 ? one : many,
		mw_ranges_text(number, n, list, sizeof(list)));
}

/* --- what is looked at ---------------------------------------------------------------------------------------------- */

static void look_at_replica(const struct mw_run *run, uint32_t row, struct mw_pages *pages)
{
	const struct mw_replica *r = &run->replicas.row[row];
	size_t bytes = run->replicas.stride * sizeof(float), from = run->replicas.cold_from * sizeof(float),
	       to = run->replicas.cold_to * sizeof(float);
	if (row == 0 || from == to) {
		mw_pages_look(pages, r->x, bytes);
	} else { /* the cold columns are row 0's */
		mw_pages_look(pages, r->x, from);
		mw_pages_look(pages, (const char *)r->x + to, bytes - to);
	}
	mw_pages_look(pages, r->comp, r->comp ? bytes : 0);
	mw_pages_look(pages, r->wide, r->wide ? 2 * bytes : 0);
}

static void look_at_worker(const struct mw_run *run, uint32_t w, struct mw_pages *pages)
{
	const struct mw_worker *x = run->worker[w];
	size_t dim = run->model->dim;
	mw_pages_look(pages, x, sizeof(*x));
	if (x->state)
		mw_pages_look(pages, x->state, mw_state_floats(run) * sizeof(float));
	if (x->staleness != run->shared_staleness)
		mw_pages_look(pages, x->staleness, sizeof(*x->staleness));
	for (uint32_t i = 0; i < x->pool_n && i < 4 && x->pool; i++)
		mw_pages_look(pages, x->pool[i].d, run->form == MW_FORM_DENSE ? dim * sizeof(float) : 0);
	if (w < run->n_benches && !run->model->sparse) {
		mw_pages_look(pages, run->bench[w].x, dim * sizeof(float));
		mw_pages_look(pages, run->bench[w].g, dim * sizeof(float));
	}
}

static void look_at_data(struct mw_dataset *d, struct mw_pages *pages)
{
	struct mw_data_part part[MW_DATA_PARTS_MAX];
	size_t n = mw_dataset_parts(d, part);
	for (size_t i = 0; i < n; i++) {
		/* the page that a small array begins in is another block's too, and stays where it is */
		size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = -(uintptr_t)*part[i].at & (page - 1);
		if (part[i].bytes > skip + page)
			mw_pages_look(pages, (const char *)*part[i].at + skip, part[i].bytes - skip);
	}
}

/* --- by node -------------------------------------------------------------------------------------------------------- */

static uint32_t worker_node(const struct mw_run *run, uint32_t w)
{
	int node = run->layout->slot[w].node;
	return node > 0 ? (uint32_t)node : 0;
}

static void look_at_replicas(struct mw_run *run, uint32_t node, uint32_t *list)
{
	size_t n = 0;
	for (uint32_t i = 0; i < run->replicas.n; i++)
		if (mw_replica_node(run->protocol, run->layout, i) == node)
			list[n++] = i;
	if (!n)
		return;
	struct mw_place_item *item = add(run, (int)node);
	name(item, "replica", "replicas", list, n);
	for (size_t i = 0; i < n; i++)
		look_at_replica(run, list[i], &item->pages);
}

static void look_at_workers(struct mw_run *run, uint32_t node, uint32_t *list)
{
	size_t n = 0;
	for (uint32_t w = 0; w < run->n_workers; w++)
		if (worker_node(run, w) == node)
			list[n++] = w;
	if (!n)
		return;
	struct mw_place_item *item = add(run, (int)node);
	name(item, "state of worker", "state of workers", list, n);
	for (size_t i = 0; i < n; i++)
		look_at_worker(run, list[i], &item->pages);
	if (run->opt->data_place != MW_DATA_SHARD || run->exclusive)
		return;
	item = add(run, (int)node);
	name(item, "shard of worker", "shards of workers", list, n);
	for (size_t i = 0; i < n; i++)
		mw_place_look_at_shard(run, list[i], &item->pages);
}

static void look_at_all_data(struct mw_run *run)
{
	for (uint32_t i = 0; run->node_data && i < run->layout->n_nodes; i++) {
		struct mw_place_item *item = add(run, (int)i);
		snprintf(item->what, sizeof(item->what), "data, copy %u", i);
		look_at_data(run->node_data[i], &item->pages);
	}
	if (run->node_data || (run->opt->data_place == MW_DATA_SHARD && !run->exclusive))
		return;
	struct mw_place_item *item = add(run, -1);
	snprintf(item->what, sizeof(item->what), "data");
	look_at_data(run->train, &item->pages);
}

static int check(const struct mw_run *run, struct mw_err *err)
{
	const struct mw_layout *l = run->layout;
	char text[200];
	for (uint32_t i = 0; l->mem_strict && i < run->places.n; i++) {
		const struct mw_place_item *item = &run->places.item[i];
		int os = item->node < 0 ? -1 : l->node_os[item->node];
		if (item->pages.refused)
			MW_FAIL(err, RESOURCE,
				"--mem-strict: the kernel doesn't tell where pages are (move_pages: %s), so "
				"that they can't be "
				"checked; leave --mem-strict out",
				strerror(item->pages.refused));
		if (os >= 0 && mw_pages_strays(&item->pages, os))
			MW_FAIL(err, RESOURCE,
				"--mem-strict: %s belong on node P#%d but are on %s; is there room on that "
				"node?",
				item->what, os, mw_pages_text(&item->pages, text, sizeof(text)));
	}
	return 0;
}

int mw_place_look(struct mw_run *run, struct mw_err *err)
{
	uint32_t nodes = run->layout->n_nodes;
	uint32_t longest = run->replicas.n > run->n_workers ? run->replicas.n : run->n_workers;
	uint32_t *list = mw_alloc_array(longest, sizeof(*list), "the places of memory", err);
	mw_free(run->places.item);
	run->places.n = 0;
	run->places.item =
		mw_alloc_array(4 * (size_t)nodes + 1, sizeof(*run->places.item), "the places of memory", err);
	if (!list || !run->places.item) {
		mw_free(list);
		return MW_ERESOURCE;
	}
	for (uint32_t i = 0; i < nodes && !run->protocol->versioned; i++)
		look_at_replicas(run, i, list);
	for (uint32_t i = 0; i < nodes; i++)
		look_at_workers(run, i, list);
	look_at_all_data(run);
	mw_free(list);
	return check(run, err);
}

/* --- for people and programs ---------------------------------------------------------------------------------------- */

static void print_head(const struct mw_run *run, FILE *f)
{
	const struct mw_layout *l = run->layout;
	uint64_t all, huge;
	fprintf(f, "memory: %s%s, data %s, huge pages %s",
		l->mem_applied         ? mem_names[l->mem]
		: l->machine_nodes > 1 ? "plain"
				       : "one node",
		l->mem_strict ? " (strict)" : "", data_names[run->opt->data_place], thp_names[run->opt->thp]);
	if (mw_thp_used(&all, &huge))
		fprintf(f, " (%.0f of %.0f MB)", (double)huge / 1e6, (double)all / 1e6);
	fprintf(f, "\n");
}

void mw_place_print(const struct mw_run *run, FILE *f)
{
	const struct mw_layout *l = run->layout;
	char text[200], belongs[16];
	print_head(run, f);
	if (run->places.n)
		fprintf(f, "%-32s%-12s%-11s%s\n", "memory of", "belongs on", "pages seen", "found on");
	for (uint32_t i = 0; i < run->places.n; i++) {
		const struct mw_place_item *item = &run->places.item[i];
		if (item->node < 0)
			snprintf(belongs, sizeof(belongs), l->n_nodes > 1 ? "all nodes" : "P#%d",
				l->node_os[0]);
		else
			snprintf(belongs, sizeof(belongs), "P#%d", l->node_os[item->node]);
		fprintf(f, "%-32.31s%-12s%-11" PRIu64 "%.25s\n", item->what, belongs, item->pages.seen,
			mw_pages_text(&item->pages, text, sizeof(text)));
	}
}

static json_t *item_json(const struct mw_run *run, const struct mw_place_item *item)
{
	json_t *found = json_object();
	char key[16];
	for (uint32_t i = 0; i < item->pages.n_nodes; i++) {
		snprintf(key, sizeof(key), "%d", item->pages.os[i]);
		json_object_set_new(found, key, json_integer((json_int_t)item->pages.on[i]));
	}
	return json_pack("{ss so sI sI so so}", "what", item->what, "node_os",
		item->node < 0 ? json_null() : json_integer(run->layout->node_os[item->node]), "pages_seen",
		(json_int_t)item->pages.seen, "untouched", (json_int_t)item->pages.untouched, "found", found,
		"unknown", item->pages.refused ? json_string(strerror(item->pages.refused)) : json_null());
}

json_t *mw_place_json(const struct mw_run *run)
{
	json_t *items = json_array();
	uint64_t all = 0, huge = 0;
	bool known = mw_thp_used(&all, &huge);
	for (uint32_t i = 0; i < run->places.n; i++)
		json_array_append_new(items, item_json(run, &run->places.item[i]));
	return json_pack("{ss sb sb ss ss so so}", "mem", mem_names[run->layout->mem], "applied",
		run->layout->mem_applied, "strict", run->layout->mem_strict, "data_place",
		data_names[run->opt->data_place], "thp", thp_names[run->opt->thp], "huge_bytes",
		known ? json_integer((json_int_t)huge) : json_null(), "places", items);
}
