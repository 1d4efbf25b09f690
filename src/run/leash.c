/* leash.c: see leash.h. */
#include "run/leash.h"

#include <string.h>

#include "base/mem.h"

#define WRITER (-1)

__thread uint64_t mw_leash_version_seen;

int mw_leash_init(struct mw_leash *l, uint32_t threads, size_t dim, struct mw_err *err)
{
	*l = (struct mw_leash){ .dim = dim };
	l->version = mw_alloc_array(2 * (size_t)threads + 1, sizeof(*l->version), "the version table", err);
	if (!l->version)
		return err->code;
	l->n = 2 * threads + 1;
	for (uint32_t i = 0; i < l->n; i++) {
		l->version[i].x = mw_alloc_array(dim, sizeof(float), "a parameter version", err);
		if (!l->version[i].x)
			return err->code;
	}
	return 0;
}

void mw_leash_fini(struct mw_leash *l)
{
	for (uint32_t i = 0; l->version && i < l->n; i++)
		mw_free(l->version[i].x);
	mw_free(l->version);
	*l = (struct mw_leash){ 0 };
}

void mw_leash_set(struct mw_leash *l, const float *x0)
{
	l->newest = 0;
	memcpy(l->version[0].x, x0, l->dim * sizeof(float));
	l->version[0].number = 0;
}

uint32_t mw_leash_acquire(struct mw_leash *l)
{
	for (;;) {
		uint64_t newest = __atomic_load_n(&l->newest, __ATOMIC_SEQ_CST);
		struct mw_leash_version *v = &l->version[(uint32_t)newest];
		int64_t refs = __atomic_load_n(&v->refs, __ATOMIC_SEQ_CST);
		if (refs == WRITER || !__atomic_compare_exchange_n(&v->refs, &refs, refs + 1, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue; /* recycled meanwhile, or another reader came: look again */
		/* The tag tells whether this buffer still is the newest version; if not, its floats may be older. */
		if (__atomic_load_n(&l->newest, __ATOMIC_SEQ_CST) == newest) {
			mw_leash_version_seen = v->number;
			return (uint32_t)newest;
		}
		mw_leash_release(l, (uint32_t)newest);
	}
}

void mw_leash_release(struct mw_leash *l, uint32_t index)
{
	__atomic_sub_fetch(&l->version[index].refs, 1, __ATOMIC_SEQ_CST);
}

/* A buffer that nobody reads and that is not the newest. One is always free: see leash.h. */
static uint32_t take_free(struct mw_leash *l)
{
	for (uint32_t i = 0;; i = (i + 1) % l->n) {
		int64_t none = 0;
		if (!__atomic_compare_exchange_n(
			    &l->version[i].refs, &none, WRITER, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		if ((uint32_t)__atomic_load_n(&l->newest, __ATOMIC_SEQ_CST) != i)
			return i;
		__atomic_store_n(&l->version[i].refs, 0, __ATOMIC_SEQ_CST);
	}
}

uint64_t mw_leash_update(struct mw_leash *l, void (*change)(float *x, void *arg), void *arg)
{
	uint32_t own = take_free(l);
	struct mw_leash_version *v = &l->version[own];
	for (uint64_t retries = 0;; retries++) {
		uint32_t base = mw_leash_acquire(l);
		uint64_t newest = __atomic_load_n(&l->newest, __ATOMIC_SEQ_CST);
		if ((uint32_t)newest == base) {
			memcpy(v->x, l->version[base].x, l->dim * sizeof(float));
			v->number = l->version[base].number + 1;
			change(v->x, arg);
			/* While base is held it can't be recycled, so newest unchanged means base still is newest. */
			uint64_t next = ((newest >> 32) + 1) << 32 | own;
			/* From now on a reader may come, and no writer may take it: one reference is ours. */
			__atomic_store_n(&v->refs, 1, __ATOMIC_SEQ_CST);
			if (__atomic_compare_exchange_n(
				    &l->newest, &newest, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
				mw_leash_version_seen = l->version[base].number + 1;
				mw_leash_release(l, own);
				mw_leash_release(l, base);
				return retries;
			}
			mw_leash_release(l, own);
			mw_leash_release(l, base);
			own = take_free(l);
			v = &l->version[own];
			continue;
		}
		mw_leash_release(l, base);
	}
}
