/* topo_view.c: what the pictures of `mixwild topo` have in common, and the JSON; see topo_view.h. */
#include "run/topo_view.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/ranges.h"
#include "comm/replica.h"

int mw_topo_view_init(struct mw_topo_view *v, const struct mw_layout *l, const struct mw_protocol *p,
	int64_t mix_every, enum mw_data_place data_place, struct mw_err *err)
{
	*v = (struct mw_topo_view){ .layout = l, .protocol = p, .data_place = data_place };
	v->mix_every = !p->n_slots ? 0 : mix_every ? mix_every : p->mix_every > 0 ? p->mix_every : 1;
	v->n_pus = mw_layout_n_pus(l);
	v->pu = mw_alloc_array(v->n_pus, sizeof(*v->pu), "the machine's PUs", err);
	v->list = mw_alloc_array(
		(size_t)l->n_workers + p->rows + v->n_pus, sizeof(*v->list), "the machine's PUs", err);
	if (!v->pu || !v->list) {
		mw_topo_view_fini(v);
		return MW_ERESOURCE;
	}
	for (uint32_t i = 0; i < v->n_pus; i++)
		v->pu[i] = mw_layout_pu(l, i);
	return 0;
}

void mw_topo_view_fini(struct mw_topo_view *v)
{
	mw_free(v->pu);
	mw_free(v->list);
	v->pu = NULL;
	v->list = NULL;
}

const char *mw_topo_data_text(const struct mw_topo_view *v, uint32_t node, char *buf, size_t size)
{
	const struct mw_layout *l = v->layout;
	char workers[48];
	uint32_t n = 0;
	for (uint32_t w = 0; w < l->n_workers; w++)
		if (l->slot[w].node == (int)node)
			v->list[n++] = w;
	if (v->data_place == MW_DATA_SHARD)
		snprintf(buf, size, "the rows of w%s", mw_ranges_text(v->list, n, workers, sizeof(workers)));
	else if (l->n_nodes == 1)
		snprintf(buf, size, "all rows");
	else if (v->data_place == MW_DATA_REPLICATE)
		snprintf(buf, size, "a copy of all rows");
	else if (l->mem == MW_MEM_FIRST_TOUCH)
		snprintf(buf, size, "what was loaded from here (shared, first touch)");
	else
		snprintf(buf, size, "1/%u of the pages (shared, interleaved)", l->n_nodes);
	return buf;
}

const char *mw_topo_period_text(const struct mw_topo_view *v, char *buf, size_t size)
{
	const char *unit = v->protocol->clock == MW_CLOCK_ROUND ? "round" : "own step";
	if (v->mix_every == 1)
		snprintf(buf, size, "every %s", unit);
	else
		snprintf(buf, size, "every %lld %ss", (long long)v->mix_every, unit);
	return buf;
}

/* --- plans in words ------------------------------------------------------------------------------------------------- */

static bool same_sources(const struct mw_plan *p, uint32_t i, uint32_t j)
{
	const struct mw_plan_row *a = &p->row[i], *b = &p->row[j];
	return a->n == b->n && !memcmp(&p->src[a->first], &p->src[b->first], a->n * sizeof(*p->src)) &&
	       !memcmp(&p->weight[a->first], &p->weight[b->first], a->n * sizeof(*p->weight));
}

/* "mean of r0-7", or "0.5 r0 + 0.25 r1 + ...". */
static void sources_text(const struct mw_plan *p, const struct mw_plan_row *row, FILE *f)
{
	char list[48];
	bool mean = row->n > 1;
	for (uint32_t k = 0; k < row->n; k++)
		mean &= fabs(p->weight[row->first + k] * row->n - 1) < 1e-9;
	if (mean) {
		fprintf(f, "mean of r%s", mw_ranges_text(&p->src[row->first], row->n, list, sizeof(list)));
		return;
	}
	for (uint32_t k = 0; k < row->n; k++) {
		double w = p->weight[row->first + k];
		if (k == 4) {
			fprintf(f, " + ...");
			return;
		}
		fprintf(f, "%s", w < 0 ? " - " : k ? " + " : "");
		if (fabs(fabs(w) - 1) > 1e-12)
			fprintf(f, "%.3g ", fabs(w));
		fprintf(f, "r%u", p->src[row->first + k]);
	}
}

const char *mw_topo_plan_text(const struct mw_topo_view *v, uint32_t slot, char *buf, size_t size)
{
	const struct mw_plan_list *list = &v->protocol->slot[slot];
	char text[48];
	buf[0] = '\0';
	FILE *f = list->n ? fmemopen(buf, size, "w") : NULL;
	if (!f)
		return buf;
	const struct mw_plan *p = list->plan[0];
	for (uint32_t i = 0, end, said = 0; i < p->n_rows; i = end, said++) {
		uint32_t n = 0;
		for (end = i; end < p->n_rows && same_sources(p, i, end); end++)
			v->list[n++] = p->row[end].dst;
		if (said == 2) {
			fprintf(f, "; ... (%u rows)", p->n_rows);
			break;
		}
		fprintf(f, "%sr%s <- ", said ? "; " : "", mw_ranges_text(v->list, n, text, sizeof(text)));
		sources_text(p, &p->row[i], f);
	}
	if (list->n > 1)
		fprintf(f, "; or one of %u others", list->n - 1);
	fclose(f);
	buf[size - 1] = '\0';
	return buf;
}

/* --- JSON ----------------------------------------------------------------------------------------------------------- */

static json_t *replicas_json(const struct mw_topo_view *v)
{
	const struct mw_protocol *p = v->protocol;
	json_t *replicas = json_array();
	for (uint32_t r = 0; r < p->rows; r++) {
		json_t *viewed = json_array(), *pushed = json_array();
		for (uint32_t w = 0; w < p->workers; w++) {
			if (p->view_row[w] == r)
				json_array_append_new(viewed, json_integer(w));
			if (p->push_row[w] == r || (p->push2_row && p->push2_row[w] == r))
				json_array_append_new(pushed, json_integer(w));
		}
		json_array_append_new(
			replicas, json_pack("{sI sI so so}", "replica", (json_int_t)r, "node_os",
					  (json_int_t)v->layout->node_os[mw_replica_node(p, v->layout, r)],
					  "viewed_by", viewed, "pushed_by", pushed));
	}
	return replicas;
}

static json_t *pus_json(const struct mw_topo_view *v)
{
	json_t *pus = json_array();
	for (uint32_t i = 0; i < v->n_pus; i++) {
		const struct mw_pu_info *u = &v->pu[i];
		json_array_append_new(pus, json_pack("{si si si si si si si}", "os", u->os, "logical",
						   u->logical, "core", u->core, "l3", u->l3, "package",
						   u->package, "node_os", u->node_os, "smt", (int)u->smt));
	}
	return pus;
}

json_t *mw_topo_json(struct mw_topo_view *v)
{
	static const char *const places[] = { "shared", "shard", "replicate" };
	json_t *root = mw_layout_json(v->layout);
	char text[400];
	json_object_set_new(root, "pus", pus_json(v));
	json_object_set_new(root, "protocol", json_string(v->protocol->ops->name));
	json_object_set_new(root, "replicas", replicas_json(v));
	json_object_set_new(root, "mix_every", v->mix_every ? json_integer(v->mix_every) : json_null());
	json_object_set_new(root, "plan",
		v->protocol->n_slots ? json_string(mw_topo_plan_text(v, 0, text, sizeof(text)))
				     : json_null());
	json_object_set_new(root, "data_place", json_string(places[v->data_place]));
	return root;
}
