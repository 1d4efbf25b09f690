/* place.c: how many workers there are, and the place of each: workers to PUs, PUs widened to places, places
 * to nodes. */
#include "topo/order.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/option.h"

enum { MAX_WORKERS = 1 << 20 };

struct plan {
	const struct mw_layout_request *req;
	struct mw_layout *l;
	struct mw_layout_priv *p;
	struct mw_machine *m; /* p->m */
	const char *list;     /* text after "list:" */
	struct mw_pu_order order;
	hwloc_bitmap_t usable; /* what places are cut down to: allowed, less what no_smt leaves out */
};

static int parse_bind(struct plan *plan, struct mw_err *err)
{
	static const struct {
		const char *name;
		enum mw_bind bind;
	} words[] = { { "none", MW_BIND_NONE }, { "close", MW_BIND_CLOSE }, { "compact", MW_BIND_CLOSE },
		{ "spread", MW_BIND_SPREAD }, { "scatter", MW_BIND_SPREAD } };
	const char *text = plan->req->bind ? plan->req->bind : "auto";
	if (!strcmp(text, "auto")) {
		plan->p->bind = mw_hint_bind(plan->m, MW_BIND_CLOSE);
		return 0;
	}
	if (!strncmp(text, "list:", 5)) {
		plan->p->bind = MW_BIND_LIST;
		plan->list = text + 5;
		return 0;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(text, words[i].name)) {
			plan->p->bind = words[i].bind;
			return 0;
		}
	MW_FAIL(err, USAGE, "--bind %s: give auto, none, close, spread or list:0,2,4-7", text);
}

static hwloc_obj_t enclosing(const struct mw_machine *m, const struct mw_pu *pu, enum mw_places places)
{
	static const hwloc_obj_type_t type[] = { HWLOC_OBJ_PU, HWLOC_OBJ_CORE, HWLOC_OBJ_L3CACHE,
		HWLOC_OBJ_PACKAGE };
	if (places == MW_PLACES_PU)
		return pu->obj;
	if (places == MW_PLACES_NUMA)
		return pu->numa < 0 ? NULL
				    : hwloc_get_obj_by_type(m->topo, HWLOC_OBJ_NUMANODE, (unsigned)pu->numa);
	return hwloc_get_ancestor_obj_by_type(m->topo, type[places], pu->obj);
}

/* Does the machine show any unit of this kind? A PU without core is a core of its own. */
static bool shown(const struct mw_machine *m, enum mw_places places)
{
	if (places <= MW_PLACES_CORE)
		return true;
	for (uint32_t i = 0; i < m->n_pus; i++)
		if (enclosing(m, &m->pu[i], places))
			return true;
	return false;
}

static int choose_places(struct plan *plan, struct mw_err *err)
{
	enum mw_places places = plan->req->places;
	if (places == MW_PLACES_AUTO) {
		places = mw_hint_places(plan->m, MW_PLACES_PU);
		if (!shown(plan->m, places)) {
			fprintf(plan->m->notes, "This machine shows no such units: places are cores.\n");
			places = MW_PLACES_CORE;
		}
	}
	if (!shown(plan->m, places))
		MW_FAIL(err, RESOURCE,
			"--places %s: this machine shows no such units (virtual machines often hide them); "
			"use --places core",
			places == MW_PLACES_L3     ? "l3"
			: places == MW_PLACES_NUMA ? "numa"
						   : "package");
	plan->p->places = places;
	return 0;
}

static uint32_t quota_workers(const struct mw_machine *m)
{
	return m->quota < 1 ? 1 : (uint32_t)m->quota;
}

/* auto: as many as the list has, or one per core; fewer where variables or the CPU quota say so. */
static uint32_t auto_workers(struct plan *plan)
{
	struct mw_machine *m = plan->m;
	uint32_t n = plan->order.n;
	plan->l->allotted = true;
	if (!plan->list)
		n = mw_hint_workers(m, m->n_cores, plan->order.n, &plan->l->allotted);
	if (m->quota <= 0 || quota_workers(m) >= n)
		return n;
	uint32_t fewer = quota_workers(m);
	plan->l->allotted = true;
	fprintf(m->notes, "There %s %u worker%s instead of %u because of the CPU quota.\n",
		fewer == 1 ? "is" : "are", fewer, fewer == 1 ? "" : "s", n);
	return fewer;
}

static int count_workers(struct plan *plan, struct mw_err *err)
{
	const char *text = plan->req->workers ? plan->req->workers : "auto";
	struct mw_machine *m = plan->m;
	int64_t n;
	if (!strcmp(text, "auto")) {
		plan->l->n_workers = auto_workers(plan);
		return 0;
	}
	if (!strcmp(text, "cores"))
		n = m->n_cores;
	else if (!strcmp(text, "pus"))
		n = plan->order.n;
	else if (mw_parse_int(text, "--workers", &n, NULL) < 0 || n < 1 || n > MAX_WORKERS)
		MW_FAIL(err, USAGE, "--workers %s: give auto, cores, pus or a number from 1 to %d", text,
			MAX_WORKERS);
	plan->l->n_workers = (uint32_t)n;
	if (m->quota > 0 && n > quota_workers(m) && !plan->req->virtual_workers)
		fprintf(m->notes,
			"%ld workers are more than the CPU quota feeds: the kernel will stop them in turn.\n",
			(long)n);
	return 0;
}

static int check_room(const struct plan *plan, struct mw_err *err)
{
	uint32_t n = plan->l->n_workers, room = plan->order.n;
	if (n <= room || plan->req->virtual_workers)
		return 0;
	if (plan->req->oversubscribe) {
		fprintf(plan->m->notes, "%u workers share %u PUs: expect long waits and stale steps.\n", n,
			room);
		return 0;
	}
	if (plan->list)
		MW_FAIL(err, RESOURCE,
			"%u workers are more than the %u PUs of --bind list; use --workers auto (%u), a "
			"longer "
			"list, or --oversubscribe to let workers share PUs",
			n, room, room);
	MW_FAIL(err, RESOURCE,
		"%u workers are more than the %u PUs this process may use%s (the machine has %u); use "
		"--workers "
		"auto, or --oversubscribe to let workers share PUs",
		n, room, plan->req->no_smt ? " under --no-smt" : "", plan->m->all_pus);
}

/* A slot shows its place's first PU and the units around that. node is a logical index until number_nodes. */
static struct mw_slot slot_at(const struct mw_pu *first, int node)
{
	return (struct mw_slot){ (int)first->obj->os_index, (int)first->obj->logical_index, first->core,
		first->package, first->l3, node };
}

/* The set of PUs a worker on this PU is bound to. */
static hwloc_bitmap_t make_place(const struct plan *plan, const struct mw_pu *pu)
{
	hwloc_obj_t unit = enclosing(plan->m, pu, plan->p->places);
	if (!unit)
		unit = enclosing(plan->m, pu, MW_PLACES_CORE);
	hwloc_bitmap_t set = hwloc_bitmap_dup(unit ? unit->cpuset : pu->obj->cpuset);
	if (set)
		hwloc_bitmap_and(set, set, plan->usable);
	return set;
}

static const struct mw_pu *first_of(const struct mw_machine *m, hwloc_const_bitmap_t place)
{
	for (uint32_t i = 0; i < m->n_pus; i++)
		if (hwloc_bitmap_isset(place, m->pu[i].obj->os_index))
			return &m->pu[i];
	return NULL;
}

static int place_workers(struct plan *plan, struct mw_err *err)
{
	struct mw_layout *l = plan->l;
	bool bound = plan->p->bind != MW_BIND_NONE, virtual_workers = plan->req->virtual_workers;
	l->slot = mw_alloc_array(l->n_workers, sizeof(*l->slot), "workers' slots", err);
	plan->p->place = mw_alloc_array(l->n_workers, sizeof(*plan->p->place), "workers' places", err);
	if (!l->slot || !plan->p->place)
		return MW_ERESOURCE;
	for (uint32_t w = 0; w < l->n_workers; w++) {
		const struct mw_pu *pu = &plan->m->pu[plan->order.pu[bound ? w % plan->order.n : 0]];
		l->slot[w] = (struct mw_slot){ -1, -1, -1, -1, -1, pu->node };
		if (!bound || virtual_workers)
			continue;
		plan->p->place[w] = make_place(plan, pu);
		if (!plan->p->place[w])
			MW_FAIL(err, RESOURCE, "out of memory: workers' places");
		l->slot[w] = slot_at(first_of(plan->m, plan->p->place[w]), pu->node);
	}
	return 0;
}

/* The last PU that no worker's place covers, on a core without workers if there is one; NULL: none is free.
 */
static const struct mw_pu *free_pu(const struct mw_machine *m, hwloc_const_bitmap_t taken)
{
	const struct mw_pu *best = NULL;
	bool best_alone = false;
	for (uint32_t i = 0; i < m->n_pus; i++) {
		bool alone = true;
		if (hwloc_bitmap_isset(taken, m->pu[i].obj->os_index))
			continue;
		for (uint32_t j = 0; j < m->n_pus && alone; j++)
			alone = m->pu[j].core_key != m->pu[i].core_key ||
				!hwloc_bitmap_isset(taken, m->pu[j].obj->os_index);
		if (alone || !best_alone) {
			best = &m->pu[i];
			best_alone = alone;
		}
	}
	return best;
}

static int place_controller(struct plan *plan, struct mw_err *err)
{
	int64_t cpu = plan->req->controller_cpu;
	const struct mw_pu *pu = cpu < 0 ? NULL : mw_machine_pu(plan->m, cpu);
	char text[64];
	plan->l->controller = (struct mw_slot){ -1, -1, -1, -1, -1, -1 };
	if (cpu < -1)
		MW_FAIL(err, USAGE, "--controller-cpu %ld: give the P# of a PU, or -1 to have one chosen",
			(long)cpu);
	if (cpu >= 0 && !pu)
		MW_FAIL(err, RESOURCE, "--controller-cpu %ld: this process may use P# %s only", (long)cpu,
			mw_cpus_text(plan->m->allowed, text, sizeof(text)));
	if (plan->req->virtual_workers || plan->p->bind == MW_BIND_NONE)
		return 0;
	hwloc_bitmap_t taken = hwloc_bitmap_alloc();
	for (uint32_t w = 0; taken && w < plan->l->n_workers; w++)
		hwloc_bitmap_or(taken, taken, plan->p->place[w]);
	if (taken && !pu)
		pu = free_pu(plan->m, taken);
	hwloc_bitmap_free(taken);
	if (!pu)
		return 0;
	plan->p->controller = hwloc_bitmap_dup(pu->obj->cpuset);
	if (!plan->p->controller)
		MW_FAIL(err, RESOURCE, "out of memory: the controller's place");
	plan->l->controller = slot_at(pu, pu->node);
	return 0;
}

/* From logical indices of nodes to indices of node_os, which lists the nodes workers are on in logical order.
 */
static int number_nodes(struct plan *plan, struct mw_err *err)
{
	struct mw_layout *l = plan->l;
	size_t n = (size_t)plan->m->n_numa;
	int *index = mw_alloc_array(n, sizeof(*index), "nodes", err);
	l->node_os = mw_alloc_array(n, sizeof(*l->node_os), "nodes", err);
	if (!index || !l->node_os) {
		mw_free(index);
		return MW_ERESOURCE;
	}
	for (size_t i = 0; i < n; i++)
		index[i] = -1;
	for (uint32_t w = 0; w < l->n_workers; w++)
		index[l->slot[w].node] = 0;
	for (size_t i = 0; i < n; i++)
		if (!index[i]) {
			hwloc_obj_t node =
				hwloc_get_obj_by_type(plan->m->topo, HWLOC_OBJ_NUMANODE, (unsigned)i);
			index[i] = (int)l->n_nodes;
			l->node_os[l->n_nodes++] = (int)node->os_index;
		}
	for (uint32_t w = 0; w < l->n_workers; w++)
		l->slot[w].node = index[l->slot[w].node];
	if (l->controller.node >= 0)
		l->controller.node = index[l->controller.node];
	mw_free(index);
	return 0;
}

static void note_binding(const struct plan *plan)
{
	if (plan->req->virtual_workers)
		fprintf(plan->m->notes, "Workers are virtual: none is bound.\n");
	else if (plan->p->bind == MW_BIND_NONE && plan->m->all_nodes > 1)
		fprintf(plan->m->notes,
			"Workers aren't bound, so none has a node of its own: memory is plain.\n");
}

/* Everything that must be known before workers can be counted. */
static int prepare(struct plan *plan, struct mw_err *err)
{
	const struct mw_layout_request *req = plan->req;
	MW_TRY(parse_bind(plan, err));
	MW_TRY(choose_places(plan, err));
	if (plan->list && req->no_smt)
		MW_FAIL(err, USAGE,
			"--no-smt and --bind list exclude each other: leave hyperthreads out of the list");
	MW_TRY(mw_pu_order_init(&plan->order, plan->m, plan->p->bind, plan->list, req->no_smt, err));
	plan->usable = hwloc_bitmap_dup(plan->m->allowed);
	if (!plan->usable)
		MW_FAIL(err, RESOURCE, "out of memory: CPU masks");
	for (uint32_t i = 0; req->no_smt && i < plan->m->n_pus; i++)
		if (plan->m->pu[i].smt)
			hwloc_bitmap_clr(plan->usable, plan->m->pu[i].obj->os_index);
	return 0;
}

static int make(struct plan *plan, const struct mw_world *world, struct mw_err *err)
{
	struct mw_layout *l = plan->l;
	MW_TRY(mw_machine_init(plan->m, plan->req->topology, world, err));
	MW_TRY(prepare(plan, err));
	MW_TRY(count_workers(plan, err));
	MW_TRY(check_room(plan, err));
	MW_TRY(place_workers(plan, err));
	MW_TRY(place_controller(plan, err));
	MW_TRY(number_nodes(plan, err));
	l->usable_pus = (uint32_t)hwloc_bitmap_weight(plan->usable);
	l->usable_cores = plan->m->n_cores;
	l->machine_pus = plan->m->all_pus;
	l->machine_nodes = plan->m->all_nodes;
	l->applied = plan->m->here && !plan->req->virtual_workers && plan->p->bind != MW_BIND_NONE;
	l->mem = plan->req->mem;
	l->mem_strict = plan->req->mem_strict;
	note_binding(plan);
	MW_TRY(mw_layout_open_arenas(l, world->always_arenas, err));
	if (fflush(plan->m->notes) || !plan->m->notes_text)
		MW_FAIL(err, RESOURCE, "out of memory: notes on the machine");
	l->notes = plan->m->notes_text;
	return 0;
}

int mw_layout_new_in(const struct mw_layout_request *req, const struct mw_world *world,
	struct mw_layout **out, struct mw_err *err)
{
	struct plan plan = { .req = req };
	*out = NULL;
	plan.l = mw_alloc(sizeof(*plan.l), "layout", err);
	plan.p = mw_alloc(sizeof(*plan.p), "layout", err);
	if (!plan.l || !plan.p) {
		mw_free(plan.l);
		mw_free(plan.p);
		return MW_ERESOURCE;
	}
	plan.l->priv = plan.p;
	plan.m = &plan.p->m;
	int ret = make(&plan, world, err);
	mw_pu_order_fini(&plan.order);
	hwloc_bitmap_free(plan.usable);
	if (ret < 0)
		mw_layout_free(plan.l);
	else
		*out = plan.l;
	return ret;
}

int mw_layout_new(const struct mw_layout_request *req, struct mw_layout **out, struct mw_err *err)
{
	static const struct mw_world elsewhere;
	const struct mw_world here = { .root = "", .environ = environ };
	return mw_layout_new_in(req, req->topology ? &elsewhere : &here, out, err);
}

void mw_layout_free(struct mw_layout *l)
{
	if (!l)
		return;
	struct mw_layout_priv *p = l->priv;
	if (p->controller_tid && p->controller_tid == (int)gettid())
		mw_mask_set(p->mask_before);
	for (uint32_t w = 0; p->place && w < l->n_workers; w++)
		hwloc_bitmap_free(p->place[w]);
	hwloc_bitmap_free(p->controller);
	hwloc_bitmap_free(p->mask_before);
	mw_free(p->place);
	mw_free(p->arena);
	mw_free(l->slot);
	mw_free(l->node_os);
	mw_machine_fini(&p->m);
	mw_free(p);
	mw_free(l);
}
