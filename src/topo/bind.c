/* bind.c: masks of threads, set by the bare system calls and always read back. */
#include "topo/machine.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int mw_mask_get(hwloc_bitmap_t set)
{
	unsigned long word[MW_CPU_WORDS] = { 0 };
	long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(word), word);
	if (bytes < 0)
		return -1;
	hwloc_bitmap_zero(set);
	for (unsigned i = 0; i < (unsigned)bytes / sizeof(*word); i++)
		if (word[i])
			hwloc_bitmap_set_ith_ulong(set, i, word[i]);
	return 0;
}

int mw_mask_set(hwloc_const_bitmap_t set)
{
	unsigned long word[MW_CPU_WORDS];
	for (unsigned i = 0; i < MW_CPU_WORDS; i++)
		word[i] = hwloc_bitmap_to_ith_ulong(set, i);
	return sched_setaffinity(0, sizeof(word), (const cpu_set_t *)(const void *)word);
}

static int bind_to(hwloc_const_bitmap_t place, const char *who, struct mw_err *err)
{
	char want[64], is[64];
	hwloc_bitmap_t got = hwloc_bitmap_alloc();
	int ret = 0;
	mw_cpus_text(place, want, sizeof(want));
	if (!got || mw_mask_set(place))
		ret = mw_err_set(err, MW_ERESOURCE,
			"%s cannot be bound to P# %s: %s; the machine's CPUs may have changed, or use --bind "
			"none",
			who, want, strerror(errno));
	else if (mw_mask_get(got) || !hwloc_bitmap_isequal(got, place))
		ret = mw_err_set(err, MW_ERESOURCE,
			"%s was bound to P# %s but its mask reads back as P# %s; a cgroup cpuset may have "
			"changed: start again",
			who, want, mw_cpus_text(got, is, sizeof(is)));
	hwloc_bitmap_free(got);
	return ret;
}

int mw_layout_bind_worker(const struct mw_layout *l, uint32_t worker, struct mw_err *err)
{
	const struct mw_layout_priv *p = l->priv;
	char who[32];
	assert(worker < l->n_workers);
	if (!l->applied)
		return 0;
	snprintf(who, sizeof(who), "worker %u", worker);
	return bind_to(p->place[worker], who, err);
}

int mw_layout_bind_controller(const struct mw_layout *l, struct mw_err *err)
{
	struct mw_layout_priv *p = l->priv;
	if (!l->applied || !p->controller)
		return 0;
	if (!p->controller_tid) {
		p->mask_before = hwloc_bitmap_alloc();
		if (!p->mask_before || mw_mask_get(p->mask_before))
			MW_FAIL(err, RESOURCE, "the affinity mask of this process cannot be read: %s",
				strerror(errno));
		p->controller_tid = (int)syscall(SYS_gettid);
	}
	return bind_to(p->controller, "the controller", err);
}

int mw_layout_verify_worker(const struct mw_layout *l, uint32_t worker)
{
	const struct mw_layout_priv *p = l->priv;
	hwloc_bitmap_t got = hwloc_bitmap_alloc();
	assert(worker < l->n_workers);
	int same = got && (!l->applied || (!mw_mask_get(got) && hwloc_bitmap_isequal(got, p->place[worker])));
	hwloc_bitmap_free(got);
	return same;
}
