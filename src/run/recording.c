/* recording.c: see recording.h. */
#include "run/recording.h"

#include "base/clock.h"
#include "comm/access.h"

uint64_t mw_event_begin(const struct mw_worker *w)
{
	return mw_recorder_wants(w->recorder, w->step) ? mw_ticks() : 0;
}

static void event_end(struct mw_worker *w, enum mw_event_kind kind, uint16_t flags, uint64_t begin,
	const struct mw_touch *touch, uint32_t n_touch)
{
	uint64_t duration = mw_ticks() - begin;
	struct mw_event e = { .begin = begin,
		.duration = duration < UINT32_MAX ? (uint32_t)duration : UINT32_MAX,
		.step = (uint32_t)w->step,
		.kind = (uint8_t)kind,
		.n_touch = (uint8_t)n_touch,
		.flags = flags };
	mw_recorder_add(w->recorder, &e, touch);
}

/* A row has versions if several workers may write it and access is such that a write is one step. */
static bool has_versions(const struct mw_run *run, uint32_t row)
{
	return run->protocol->versioned ||
	       (run->replicas.access >= MW_ACCESS_LOCKED && !run->replicas.row[row].owned && !run->exclusive);
}

static uint32_t last_version(const struct mw_run *run)
{
	return (uint32_t)(run->protocol->versioned ? mw_leash_version_seen : mw_access_version);
}

void mw_event_row(struct mw_worker *w, enum mw_event_kind kind, uint64_t begin, uint32_t row, bool write)
{
	struct mw_touch t = { row | (write ? MW_TOUCH_WRITE : 0), 0 };
	if (!begin)
		return;
	bool versions = has_versions(w->run, row);
	if (versions)
		t.version = last_version(w->run);
	event_end(w, kind, 0, begin, &t, versions ? 1 : 0);
}

void mw_event_mix(struct mw_worker *w, struct mw_bench *bench, uint64_t begin, uint32_t slot, uint32_t choice,
	uint16_t flags)
{
	struct mw_touch t[MW_TOUCH_MAX];
	const uint32_t *row;
	uint32_t n, k = 0;
	bool written;
	if (!begin)
		return;
	mw_exec_touched(&w->run->executor, slot, choice, &row, &n, &written);
	for (uint32_t i = 0; i < n && k < MW_TOUCH_MAX; i++)
		if (has_versions(w->run, row[i]))
			t[k++] = (struct mw_touch){ row[i] | (written ? MW_TOUCH_WRITE : 0),
				(uint32_t)bench->exec.version[i] };
	event_end(w, MW_EVENT_MIX, flags, begin, t, k);
}
