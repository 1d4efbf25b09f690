/* memory.c: memory by node for a layout: which arenas it needs, pages that are moved, and where pages really are. */
#include "topo/machine.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* Pages of one block that are looked at, at most: asking costs about a microsecond each. */
enum { LOOK_MAX = 1024 };

/* --- arenas --------------------------------------------------------------------------------------------------------- */

static void set_bit(unsigned long *word, unsigned bit)
{
	word[bit / MW_WORD_BITS] |= 1UL << (bit % MW_WORD_BITS);
}

/* The PUs that this process may use and that take memory from node P#os. */
static void cpus_of(const struct mw_machine *m, int os, unsigned long *cpus)
{
	for (uint32_t i = 0; i < m->n_pus; i++) {
		hwloc_obj_t node =
			hwloc_get_obj_by_type(m->topo, HWLOC_OBJ_NUMANODE, (unsigned)m->pu[i].node);
		if (node && (int)node->os_index == os && m->pu[i].obj->os_index < MW_CPU_BITS)
			set_bit(cpus, m->pu[i].obj->os_index);
	}
}

static void fill_policy(
	struct mw_mem_policy *policy, const struct mw_layout *l, uint32_t node, enum mw_mem mem)
{
	const struct mw_layout_priv *p = l->priv;
	memset(policy, 0, sizeof(*policy));
	policy->os = (unsigned)l->node_os[node];
	if (mem == MW_MEM_FIRST_TOUCH) {
		policy->mode = MPOL_DEFAULT;
		cpus_of(&p->m, l->node_os[node], policy->cpus);
		return;
	}
	policy->mode = mem == MW_MEM_INTERLEAVE ? MPOL_INTERLEAVE
		       : l->mem_strict          ? MPOL_BIND
						: MPOL_PREFERRED;
	for (uint32_t i = 0; i < l->n_nodes; i++)
		if (i == node || mem == MW_MEM_INTERLEAVE)
			set_bit(policy->nodes, (unsigned)l->node_os[i]);
	if (mem == MW_MEM_INTERLEAVE)
		policy->os = (unsigned)l->node_os[0]; /* one arena for all */
}

/* *refused: the errno of the first binding that the kernel refused. */
static int get_arenas(struct mw_layout *l, enum mw_mem mem, int *refused, struct mw_err *err)
{
	struct mw_layout_priv *p = l->priv;
	struct mw_mem_policy policy;
	*refused = 0;
	for (uint32_t i = 0; i < l->n_nodes; i++) {
		if (l->node_os[i] < 0 || l->node_os[i] >= MW_NODE_BITS)
			MW_FAIL(err, RESOURCE, "node P#%d: nodes up to P#%d are known", l->node_os[i],
				MW_NODE_BITS - 1);
		fill_policy(&policy, l, i, mem);
		p->arena[i] = mw_arena_get(&policy, err);
		if (!p->arena[i])
			return MW_ERESOURCE;
		*refused = *refused ? *refused : mw_arena_refused(p->arena[i]);
	}
	return 0;
}

/* Pages that aren't bound don't stay where they were touched if the kernel balances NUMA nodes. */
static void note_balancing(const struct mw_layout *l)
{
	const struct mw_layout_priv *p = l->priv;
	FILE *f = l->mem == MW_MEM_FIRST_TOUCH && l->machine_nodes > 1
			  ? fopen("/proc/sys/kernel/numa_balancing", "re")
			  : NULL;
	if (!f)
		return;
	if (fgetc(f) > '0')
		fprintf(p->m.notes, "The kernel balances NUMA nodes (kernel.numa_balancing): it may move "
				    "pages that are not bound.\n");
	fclose(f);
}

int mw_layout_open_arenas(struct mw_layout *l, bool always, struct mw_err *err)
{
	struct mw_layout_priv *p = l->priv;
	int refused;
	if (l->mem_strict && !l->applied)
		MW_FAIL(err, USAGE,
			"--mem-strict: nothing is bound here (--bind none, --engine sim, --topology), so "
			"memory has no place "
			"to be held to");
	if (!always && (!l->applied || l->machine_nodes < 2))
		return 0;
	l->mem_applied = true;
	p->arena = mw_alloc_array(l->n_nodes, sizeof(struct mw_arena *), "arenas", err);
	if (!p->arena)
		return MW_ERESOURCE;
	MW_TRY(get_arenas(l, l->mem, &refused, err));
	if (!refused) {
		note_balancing(l);
		return 0;
	}
	if (l->mem_strict)
		MW_FAIL(err, RESOURCE,
			"--mem-strict: the kernel refuses to bind memory (mbind: %s; containers often do): "
			"allow it "
			"(docker: --cap-add SYS_NICE) or leave --mem-strict out",
			strerror(refused));
	fprintf(p->m.notes,
		"The kernel refuses to bind memory (mbind: %s; containers often do): pages are touched by a "
		"thread that "
		"runs on their node instead.\n",
		strerror(refused));
	l->mem = MW_MEM_FIRST_TOUCH;
	note_balancing(l);
	return get_arenas(l, l->mem, &refused, err);
}

void *mw_node_alloc(
	const struct mw_layout *l, uint32_t node, size_t bytes, const char *what, struct mw_err *err)
{
	const struct mw_layout_priv *p = l->priv;
	assert(node < l->n_nodes);
	return p->arena ? mw_arena_alloc(p->arena[node], bytes, what, err) : mw_alloc(bytes, what, err);
}

void mw_node_free(const struct mw_layout *l, void *p)
{
	const struct mw_layout_priv *priv = l->priv;
	if (priv->arena)
		mw_arena_free(p);
	else
		mw_free(p);
}

/* --- pages that are there ------------------------------------------------------------------------------------------- */

void mw_layout_on_node(const struct mw_layout *l, uint32_t node, void (*fn)(void *), void *arg)
{
	const struct mw_layout_priv *p = l->priv;
	unsigned long cpus[MW_CPU_WORDS] = { 0 }, before[MW_CPU_WORDS];
	long n = 0;
	assert(node < l->n_nodes);
	if (l->mem_applied)
		n = syscall(SYS_sched_getaffinity, 0, sizeof(before), before);
	if (n > 0) {
		cpus_of(&p->m, l->node_os[node], cpus);
		if (syscall(SYS_sched_setaffinity, 0, sizeof(cpus), cpus))
			n = 0;
	}
	fn(arg);
	if (n > 0)
		syscall(SYS_sched_setaffinity, 0, (size_t)n, before);
}

int mw_node_bind(const struct mw_layout *l, uint32_t node, void *p, size_t bytes, struct mw_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = ((uintptr_t)p + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)p + bytes + page - 1) & ~(page - 1);
	bool all = node == MW_ALL_NODES;
	struct mw_mem_policy policy;
	if (!l->mem_applied || start >= end)
		return 0;
	if (bytes < MW_HUGE_FROM)
		madvise((void *)start, end - start, MADV_NOHUGEPAGE);
	if (l->mem == MW_MEM_FIRST_TOUCH)
		return 0;
	fill_policy(&policy, l, all ? 0 : node, all ? MW_MEM_INTERLEAVE : MW_MEM_NODE);
	if (mw_arena_mbind((void *)start, end - start, policy.mode, policy.nodes, MW_NODE_BITS + 1, 0) == 0 ||
		!l->mem_strict)
		return 0;
	MW_FAIL(err, RESOURCE, "--mem-strict: %.1f MB can't be bound to node P#%u: %s", (double)bytes / 1e6,
		policy.os, strerror(errno));
}

static void count_page(struct mw_pages *pages, int os)
{
	uint32_t i = 0;
	if (os < 0) {
		pages->untouched++;
		return;
	}
	while (i < pages->n_nodes && pages->os[i] < os)
		i++;
	if (i == pages->n_nodes || pages->os[i] != os) {
		if (pages->n_nodes == MW_PAGES_NODES) {
			pages->elsewhere++;
			return;
		}
		memmove(&pages->os[i + 1], &pages->os[i], (pages->n_nodes - i) * sizeof(*pages->os));
		memmove(&pages->on[i + 1], &pages->on[i], (pages->n_nodes - i) * sizeof(*pages->on));
		pages->os[i] = os;
		pages->on[i] = 0;
		pages->n_nodes++;
	}
	pages->on[i]++;
}

/* A page that the kernel is just moving (compaction does) has no place for a moment: ask for it again. */
static int look_again(void *page)
{
	int status = -EBUSY;
	for (int i = 0; i < 50 && (status == -EBUSY || status == -ENOENT); i++) {
		usleep(2000);
		if (syscall(SYS_move_pages, 0, 1L, &page, NULL, &status, 0))
			return -ENOENT;
	}
	return status;
}

void mw_pages_look(struct mw_pages *pages, const void *p, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)p & ~(page - 1);
	size_t n = bytes ? ((uintptr_t)p + bytes - first + page - 1) / page : 0,
	       seen = n < LOOK_MAX ? n : LOOK_MAX;
	void *at[LOOK_MAX];
	int status[LOOK_MAX];
	if (!p || !seen)
		return;
	for (size_t i = 0; i < seen; i++)
		at[i] = (void *)(first + (size_t)((unsigned __int128)n * i / seen) * page);
	if (syscall(SYS_move_pages, 0, (long)seen, at, NULL, status, 0)) {
		pages->refused = errno;
		return;
	}
	pages->seen += seen;
	for (size_t i = 0; i < seen; i++)
		count_page(pages, status[i] == -EBUSY ? look_again(at[i]) : status[i]);
}

uint64_t mw_pages_strays(const struct mw_pages *pages, int os)
{
	uint64_t n = pages->elsewhere;
	for (uint32_t i = 0; i < pages->n_nodes; i++)
		n += pages->os[i] == os ? 0 : pages->on[i];
	return n;
}

const char *mw_pages_text(const struct mw_pages *pages, char *buf, size_t size)
{
	uint64_t there = pages->seen - pages->untouched;
	size_t n = 0;
	if (pages->refused)
		snprintf(buf, size, "the kernel doesn't tell (%s)", strerror(pages->refused));
	else
		snprintf(buf, size, pages->seen ? "not touched yet" : "none");
	for (uint32_t i = 0; i < pages->n_nodes && n < size; i++) {
		double share = 100.0 * (double)pages->on[i] / (double)there;
		int k = snprintf(buf + n, size - n, "%sP#%d %.*f%%", i ? " " : "", pages->os[i],
			share > 99.9 && share < 100 ? 3
			: share < 1                 ? 2
						    : 0,
			share);
		n += k > 0 ? (size_t)k : 0;
	}
	if (pages->elsewhere && n < size)
		snprintf(buf + n, size - n, " and others");
	return buf;
}
