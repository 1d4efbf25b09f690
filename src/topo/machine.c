/* machine.c: the topology, cut down to what this process may use, with a record for each PU. */
#include "topo/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SYNTHETIC "synthetic:"

/* hwloc builds a machine in a time that grows with the square of its PUs where all hang on one parent: a minute here. */
enum { PUS_MOST = 16384 };

const char *mw_cpus_text(hwloc_const_bitmap_t set, char *buf, size_t size)
{
	int n = hwloc_bitmap_list_snprintf(buf, size, set);
	if (n >= (int)size && size > 4)
		memcpy(buf + size - 4, "...", 4);
	return buf;
}

/* PUs that a synthetic description asks for: the product of its numbers, without what stands in brackets. */
static double synthetic_pus(const char *text)
{
	double n = 1;
	for (const char *p = text; *p;) {
		char *end;
		if (*p == '(' || *p == '[')
			p += strcspn(p, ")]");
		else if (*p >= '0' && *p <= '9' && (p == text || p[-1] == ':' || p[-1] == ' ')) {
			n *= (double)strtoul(p, &end, 10);
			p = end;
		} else {
			p++;
		}
	}
	return n;
}

/* What is behind the word, without the quotes that people write and shells take away; NULL where it is a file. For free(). */
static char *synthetic_text(const char *topology)
{
	if (!topology || strncmp(topology, SYNTHETIC, strlen(SYNTHETIC)) != 0)
		return NULL;
	const char *text = topology + strlen(SYNTHETIC);
	size_t n = strlen(text);
	return n >= 2 && text[0] == '"' && text[n - 1] == '"' ? strndup(text + 1, n - 2) : strdup(text);
}

static int load_from(struct mw_machine *m, const char *topology, const char *synthetic, struct mw_err *err)
{
	if (synthetic && synthetic_pus(synthetic) > PUS_MOST)
		MW_FAIL(err, USAGE, "--topology %s: a machine of more than %d PUs is not planned for",
			topology, PUS_MOST);
	if (hwloc_topology_init(&m->topo)) {
		m->topo = NULL;
		MW_FAIL(err, RESOURCE, "out of memory: the machine's topology");
	}
	if (synthetic && hwloc_topology_set_synthetic(m->topo, synthetic))
		MW_FAIL(err, USAGE,
			"--topology %s: hwloc does not understand it; an example is %s\"pack:2 numa:2 core:8 "
			"pu:2\"",
			topology, SYNTHETIC);
	if (topology && !synthetic && hwloc_topology_set_xml(m->topo, topology))
		MW_FAIL(err, DATA, "%s: cannot be read as a topology (%s); make one by: lstopo FILE.xml",
			topology, strerror(errno));
	if (hwloc_topology_load(m->topo)) {
		if (topology)
			MW_FAIL(err, DATA,
				"%s: hwloc cannot load this topology; make one by: lstopo FILE.xml",
				topology);
		MW_FAIL(err, RESOURCE, "hwloc cannot read this machine's topology: %s", strerror(errno));
	}
	/*
	 * IS_THISSYSTEM is not claimed: with HWLOC_XMLFILE or HWLOC_SYNTHETIC set it would be false, and
	 * hwloc knows. Nor is RESTRICT_TO_CPUBINDING, which needs it: the mask is applied below, so that L#
	 * stay those of lstopo.
	 */
	m->here = !topology && hwloc_topology_is_thissystem(m->topo);
	if (topology)
		fprintf(m->notes, "The topology is read from %s: nothing is bound here.\n", topology);
	else if (!m->here)
		fprintf(m->notes,
			"hwloc was told another topology by an HWLOC_ variable: nothing is bound here.\n");
	return 0;
}

static int load(struct mw_machine *m, const char *topology, struct mw_err *err)
{
	char *synthetic = synthetic_text(topology);
	int code = load_from(m, topology, synthetic, err);
	free(synthetic);
	return code;
}

/* The PUs of the machine that the process may use: hwloc has taken away those outside the cgroup's cpuset
 * already. */
static int find_allowed(struct mw_machine *m, const struct mw_world *world, struct mw_err *err)
{
	hwloc_const_bitmap_t all = hwloc_topology_get_complete_cpuset(m->topo);
	hwloc_const_bitmap_t cgroup = hwloc_topology_get_allowed_cpuset(m->topo);
	hwloc_bitmap_t mask = hwloc_bitmap_dup(cgroup);
	char text[64];
	m->allowed = mask;
	m->all_pus = (uint32_t)hwloc_bitmap_weight(all);
	if (!mask)
		MW_FAIL(err, RESOURCE, "out of memory: CPU masks");
	int left = hwloc_bitmap_weight(cgroup);
	if (left < (int)m->all_pus)
		fprintf(m->notes, "Cgroup cpuset and offline CPUs leave %d of the machine's %u PUs.\n", left,
			m->all_pus);
	if (world->affinity ? hwloc_bitmap_list_sscanf(mask, world->affinity) : m->here && mw_mask_get(mask))
		MW_FAIL(err, RESOURCE, "the affinity mask of this process cannot be read: %s",
			strerror(errno));
	hwloc_bitmap_and(mask, mask, cgroup);
	if (hwloc_bitmap_iszero(mask))
		MW_FAIL(err, RESOURCE, "the affinity mask leaves none of this machine's PUs (P# %s)",
			mw_cpus_text(cgroup, text, sizeof(text)));
	if (hwloc_bitmap_weight(mask) < left)
		fprintf(m->notes, "The affinity mask (taskset, numactl, Slurm) leaves %d of %d PUs: P# %s.\n",
			hwloc_bitmap_weight(mask), left, mw_cpus_text(mask, text, sizeof(text)));
	return 0;
}

static int logical(hwloc_topology_t topo, hwloc_obj_type_t type, hwloc_obj_t obj)
{
	hwloc_obj_t up = hwloc_get_ancestor_obj_by_type(topo, type, obj);
	return up ? (int)up->logical_index : -1;
}

static hwloc_obj_t numa_at(const struct mw_machine *m, int i)
{
	return hwloc_get_obj_by_type(m->topo, HWLOC_OBJ_NUMANODE, (unsigned)i);
}

/* The node a PU belongs to: the closest around it, the lowest P# of several (memory kinds beside DRAM come
 * later). */
static int own_numa(const struct mw_machine *m, hwloc_obj_t pu)
{
	int best = -1;
	for (int i = 0; i < m->n_numa; i++) {
		hwloc_obj_t node = numa_at(m, i), old = best < 0 ? NULL : numa_at(m, best);
		if (!hwloc_bitmap_isset(node->cpuset, pu->os_index))
			continue;
		int bigger = old ? hwloc_bitmap_weight(node->cpuset) - hwloc_bitmap_weight(old->cpuset) : -1;
		if (bigger < 0 || (bigger == 0 && node->os_index < old->os_index))
			best = i;
	}
	return best;
}

/* Nodes whose memory this process may use. Topologies made by hand often give no sizes: then all have some.
 */
static uint32_t find_memory(const struct mw_machine *m, bool *has)
{
	hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_nodeset(m->topo);
	uint32_t n = 0;
	bool sizes = false;
	for (int i = 0; i < m->n_numa; i++)
		sizes |= numa_at(m, i)->attr->numanode.local_memory > 0;
	for (int i = 0; i < m->n_numa; i++) {
		has[i] = hwloc_bitmap_isset(allowed, numa_at(m, i)->os_index) &&
			 (!sizes || numa_at(m, i)->attr->numanode.local_memory > 0);
		n += has[i];
	}
	return n;
}

/* How far node `to` is from node `from`: latency if the machine tells, else by how high up they meet. */
static double distance(
	const struct mw_machine *m, const struct hwloc_distances_s *d, hwloc_obj_t from, hwloc_obj_t to)
{
	int i = -1, j = -1;
	for (unsigned k = 0; d && k < d->nbobjs; k++) {
		i = d->objs[k] == from ? (int)k : i;
		j = d->objs[k] == to ? (int)k : j;
	}
	if (i >= 0 && j >= 0)
		return (double)d->values[(unsigned)i * d->nbobjs + (unsigned)j];
	hwloc_obj_t a = from, b = to;
	while (a->depth < 0)
		a = a->parent;
	while (b->depth < 0)
		b = b->parent;
	return 1e6 - hwloc_get_common_ancestor_obj(m->topo, a, b)->depth;
}

/* The nearest node that has memory, for PUs (or the node of PUs) that have none of their own. */
static int nearest_memory(const struct mw_machine *m, hwloc_obj_t from, const bool *has)
{
	struct hwloc_distances_s *d = NULL;
	unsigned n = 1;
	double least = 0;
	int best = -1;
	if (hwloc_distances_get_by_type(
		    m->topo, HWLOC_OBJ_NUMANODE, &n, &d, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) ||
		!n)
		d = NULL;
	for (int i = 0; i < m->n_numa; i++) {
		double far = has[i] ? distance(m, d, from, numa_at(m, i)) : 0;
		if (has[i] && (best < 0 || far < least)) {
			best = i;
			least = far;
		}
	}
	if (d)
		hwloc_distances_release(m->topo, d);
	return best;
}

/* Is node i's memory beside the PUs of this process, or far from all PUs, and used by none of them? */
static bool idle(const struct mw_machine *m, const bool *has, const int *memory, int i)
{
	hwloc_obj_t node = numa_at(m, i);
	bool no_cpus = hwloc_bitmap_iszero(node->cpuset) && hwloc_bitmap_iszero(node->complete_cpuset);
	bool unused = has[i];
	for (int j = 0; j < m->n_numa; j++)
		unused &= memory[j] != i;
	return unused && (no_cpus || hwloc_bitmap_intersects(node->cpuset, m->allowed));
}

static void note_nodes(const struct mw_machine *m, const bool *has, const int *memory)
{
	bool bare = false;
	for (int i = 0; i < m->n_numa; i++) {
		hwloc_obj_t node = numa_at(m, i);
		if (memory[i] >= 0 && memory[i] != i)
			fprintf(m->notes,
				"Node P#%u has no memory for this process: its workers use node P#%u.\n",
				node->os_index, numa_at(m, memory[i])->os_index);
		if (idle(m, has, memory, i))
			fprintf(m->notes, "Node P#%u has memory but no CPUs of its own: it is not used.\n",
				node->os_index);
	}
	for (uint32_t i = 0; i < m->n_pus; i++)
		bare |= m->pu[i].numa < 0;
	if (bare)
		fprintf(m->notes,
			"Some PUs have no node whose memory this process may use: they use the nearest.\n");
}

static void fill_pu(const struct mw_machine *m, struct mw_pu *p, hwloc_obj_t obj)
{
	p->obj = obj;
	p->core = logical(m->topo, HWLOC_OBJ_CORE, obj);
	p->package = logical(m->topo, HWLOC_OBJ_PACKAGE, obj);
	p->l3 = logical(m->topo, HWLOC_OBJ_L3CACHE, obj);
	p->numa = own_numa(m, obj);
	p->core_key = p->core >= 0
			      ? p->core
			      : hwloc_get_nbobjs_by_type(m->topo, HWLOC_OBJ_CORE) + (int)obj->logical_index;
}

/* memory[i]: the node that PUs of node i take memory from, -1 while no PU has asked. */
static int find_pus(struct mw_machine *m, const bool *has, int *memory, struct mw_err *err)
{
	hwloc_obj_t obj = NULL;
	m->pu = mw_alloc_array((size_t)hwloc_bitmap_weight(m->allowed), sizeof(*m->pu), "PU records", err);
	if (!m->pu)
		return MW_ERESOURCE;
	while ((obj = hwloc_get_next_obj_by_type(m->topo, HWLOC_OBJ_PU, obj))) {
		if (!hwloc_bitmap_isset(m->allowed, obj->os_index))
			continue;
		struct mw_pu *p = &m->pu[m->n_pus++];
		fill_pu(m, p, obj);
		if (p->numa >= 0 && memory[p->numa] < 0)
			memory[p->numa] =
				has[p->numa] ? p->numa : nearest_memory(m, numa_at(m, p->numa), has);
		p->node = p->numa >= 0 ? memory[p->numa] : nearest_memory(m, obj, has);
		p->smt = p > m->pu && p[-1].core_key == p->core_key ? p[-1].smt + 1 : 0;
		m->n_cores += p->smt == 0;
	}
	if (!m->n_pus)
		MW_FAIL(err, DATA, "the topology has no PU that may be used; make one by: lstopo FILE.xml");
	return 0;
}

static int find_nodes(struct mw_machine *m, struct mw_err *err)
{
	int n = hwloc_get_nbobjs_by_type(m->topo, HWLOC_OBJ_NUMANODE);
	m->n_numa = n > 0 ? n : 0;
	bool *has = mw_alloc_array((size_t)m->n_numa, sizeof(*has), "NUMA nodes", err);
	int *memory = mw_alloc_array((size_t)m->n_numa, sizeof(*memory), "NUMA nodes", err);
	int ret = MW_ERESOURCE;
	if (!has || !memory)
		goto out;
	for (int i = 0; i < m->n_numa; i++)
		memory[i] = -1;
	m->all_nodes = find_memory(m, has);
	if (!m->all_nodes) {
		mw_err_set(err, MW_ERESOURCE,
			"this process may use the memory of no NUMA node; see the cpuset.mems of its cgroup");
		goto out;
	}
	ret = find_pus(m, has, memory, err);
	if (!ret)
		note_nodes(m, has, memory);
out:
	mw_free(has);
	mw_free(memory);
	return ret;
}

/* Cores of several kinds: people should know why some workers step less often. */
static void note_kinds(const struct mw_machine *m)
{
	int n = hwloc_cpukinds_get_nr(m->topo, 0), speed, seen = 0;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	char text[64];
	for (int k = 0; k < n && set; k++)
		if (!hwloc_cpukinds_get_info(m->topo, (unsigned)k, set, &speed, NULL, NULL, 0))
			seen += hwloc_bitmap_intersects(set, m->allowed);
	if (seen > 1)
		fprintf(m->notes, "The cores are of %d kinds: workers on slower cores step less often.\n",
			seen);
	for (int k = 0; k < n && set && seen > 1; k++) {
		if (hwloc_cpukinds_get_info(m->topo, (unsigned)k, set, &speed, NULL, NULL, 0))
			continue;
		hwloc_bitmap_and(set, set, m->allowed);
		if (!hwloc_bitmap_iszero(set))
			fprintf(m->notes, "Kind %d%s has P# %s.\n", k,
				speed < 0    ? ""
				: speed == 0 ? " (slowest)"
					     : "",
				mw_cpus_text(set, text, sizeof(text)));
	}
	hwloc_bitmap_free(set);
}

static void find_quota(struct mw_machine *m, const struct mw_world *world)
{
	char file[512];
	if (!world->root)
		return;
	m->quota = mw_quota_cpus(world->root, file, sizeof(file));
	if (m->quota > 0 && m->quota < m->n_pus)
		fprintf(m->notes, "The cgroup's CPU quota is %.2f CPUs (%s).\n", m->quota,
			file + strlen(world->root));
	else
		m->quota = 0;
}

int mw_machine_init(
	struct mw_machine *m, const char *topology, const struct mw_world *world, struct mw_err *err)
{
	memset(m, 0, sizeof(*m));
	m->environ = world->environ;
	m->notes = open_memstream(&m->notes_text, &m->notes_bytes);
	if (!m->notes)
		MW_FAIL(err, RESOURCE, "out of memory: notes on the machine");
	MW_TRY(load(m, topology, err));
	MW_TRY(find_allowed(m, world, err));
	MW_TRY(find_nodes(m, err));
	note_kinds(m);
	find_quota(m, world);
	return 0;
}

void mw_machine_fini(struct mw_machine *m)
{
	if (m->notes)
		fclose(m->notes);
	free(m->notes_text);
	mw_free(m->pu);
	hwloc_bitmap_free(m->allowed);
	if (m->topo)
		hwloc_topology_destroy(m->topo);
}

const struct mw_pu *mw_machine_pu(const struct mw_machine *m, int64_t os)
{
	for (uint32_t i = 0; i < m->n_pus; i++)
		if (m->pu[i].obj->os_index == os)
			return &m->pu[i];
	return NULL;
}
