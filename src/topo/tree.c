/* tree.c: the machine of a layout, unit by unit, for who draws it. */
#include "topo/machine.h"

static const struct mw_machine *machine(const struct mw_layout *l)
{
	return &((const struct mw_layout_priv *)l->priv)->m;
}

static hwloc_obj_t numa(const struct mw_machine *m, int logical)
{
	return logical < 0 ? NULL : hwloc_get_obj_by_type(m->topo, HWLOC_OBJ_NUMANODE, (unsigned)logical);
}

uint32_t mw_layout_n_pus(const struct mw_layout *l)
{
	return machine(l)->n_pus;
}

struct mw_pu_info mw_layout_pu(const struct mw_layout *l, uint32_t i)
{
	const struct mw_machine *m = machine(l);
	const struct mw_pu *p = &m->pu[i];
	hwloc_obj_t own = numa(m, p->numa), memory = numa(m, p->node);
	return (struct mw_pu_info){ .os = (int)p->obj->os_index,
		.logical = (int)p->obj->logical_index,
		.core = p->core,
		.package = p->package,
		.l3 = p->l3,
		.numa = p->numa,
		.numa_os = own ? (int)own->os_index : -1,
		.node_os = memory ? (int)memory->os_index : -1,
		.smt = p->smt };
}

bool mw_layout_runs_on(const struct mw_layout *l, uint32_t worker, int os)
{
	const struct mw_layout_priv *p = l->priv;
	hwloc_const_bitmap_t place = worker == MW_CONTROLLER ? p->controller : p->place[worker];
	return place && hwloc_bitmap_isset(place, (unsigned)os);
}

uint64_t mw_layout_node_bytes(const struct mw_layout *l, int os)
{
	const struct mw_machine *m = machine(l);
	for (int i = 0; i < m->n_numa; i++)
		if ((int)numa(m, i)->os_index == os)
			return numa(m, i)->attr->numanode.local_memory;
	return 0;
}

static uint32_t count(const struct mw_layout *l, hwloc_obj_type_t type)
{
	int n = hwloc_get_nbobjs_by_type(machine(l)->topo, type);
	return n > 0 ? (uint32_t)n : 0;
}

uint32_t mw_layout_packages(const struct mw_layout *l)
{
	return count(l, HWLOC_OBJ_PACKAGE);
}

uint32_t mw_layout_cores(const struct mw_layout *l)
{
	return count(l, HWLOC_OBJ_CORE);
}
