/* help.c: see help.h. */
#include "run/help.h"

#include <sched.h>

bool mw_help_suits(const struct mw_protocol *p, const struct mw_replicas *r)
{
	const struct mw_plan *plan = NULL;
	uint32_t users = 0;
	if (p->clock != MW_CLOCK_EVENT || p->merge || r->access >= MW_ACCESS_LOCKED || r->dim < MW_HELP_LEAST)
		return false;
	for (uint32_t s = 0; s < p->n_slots; s++) {
		if (!p->slot[s].n)
			continue;
		if (p->slot[s].n > 1 || (plan && p->slot[s].plan[0] != plan))
			return false;
		plan = p->slot[s].plan[0];
		users++;
	}
	return users > 1 && plan->n_rows > 1;
}

/* Blocks until none is left; returns how many. */
static uint32_t take_blocks(struct mw_help *h, const struct mw_executor *e, struct mw_exec_scratch *s)
{
	uint32_t taken = 0, k;
	while ((k = __atomic_fetch_add(&h->next, 1, __ATOMIC_RELAXED)) < h->n_blocks) {
		size_t from = (size_t)k * MW_HELP_FLOATS, left = h->n - from;
		mw_exec_plan(e, s, h->slot, h->choice, h->gamma, h->from + from,
			left < MW_HELP_FLOATS ? left : MW_HELP_FLOATS, h->n_push ? &h->push : NULL, h->n_push,
			false);
		taken++;
	}
	return taken;
}

void mw_help_join(struct mw_help *h, const struct mw_executor *e, struct mw_exec_scratch *s)
{
	__atomic_add_fetch(&h->inside, 1, __ATOMIC_SEQ_CST);
	/* open now, after the opener could see this thread inside: it stays what it is until this thread has left */
	if (__atomic_load_n(&h->state, __ATOMIC_SEQ_CST) == MW_HELP_OPEN) {
		uint32_t taken = take_blocks(h, e, s);
		if (taken)
			__atomic_add_fetch(&h->helped, taken, __ATOMIC_RELAXED);
	}
	__atomic_sub_fetch(
		&h->inside, 1, __ATOMIC_SEQ_CST); /* releases the blocks that were done to the opener */
}

/* Nobody gets in any more; those inside finish the block that they have. */
static void close_event(struct mw_help *h)
{
	__atomic_store_n(&h->state, MW_HELP_TAKEN, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; __atomic_load_n(&h->inside, __ATOMIC_SEQ_CST); i++)
		i < 1000 ? mw_pause() : (void)sched_yield();
	__atomic_store_n(&h->state, MW_HELP_FREE, __ATOMIC_SEQ_CST);
}

void mw_help_plan(struct mw_help *h, const struct mw_executor *e, struct mw_exec_scratch *s, uint32_t slot,
	uint32_t choice, double gamma, size_t from, size_t n, const struct mw_push *push, uint32_t n_push)
{
	uint32_t free = MW_HELP_FREE;
	if (mw_help_is_open(h))
		mw_help_join(h, e, s);
	if (n < MW_HELP_LEAST || n_push > 1 ||
		!__atomic_compare_exchange_n(
			&h->state, &free, MW_HELP_TAKEN, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		mw_exec_plan(e, s, slot, choice, gamma, from, n, push, n_push, false);
		return;
	}
	h->slot = slot;
	h->choice = choice;
	h->gamma = gamma;
	h->from = from;
	h->n = n;
	h->n_blocks = (uint32_t)((n + MW_HELP_FLOATS - 1) / MW_HELP_FLOATS);
	h->n_push = n_push;
	if (n_push)
		h->push = *push;
	__atomic_store_n(&h->next, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&h->state, MW_HELP_OPEN, __ATOMIC_SEQ_CST);
	take_blocks(h, e, s);
	close_event(h);
}
