/* wait.c: see wait.h. */
#include "run/wait.h"

#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static void futex_wait(uint32_t *word, uint32_t value, long timeout_ns)
{
	struct timespec t = { .tv_nsec = timeout_ns };
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns ? &t : NULL, NULL, 0);
}

static void futex_wake_all(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void mw_barrier_init(struct mw_barrier *b, uint32_t n, uint32_t spins)
{
	*b = (struct mw_barrier){ .n_groups = 1, .spins = spins, .own = { .n = n } };
}

int mw_barrier_init_nodes(
	struct mw_barrier *b, const struct mw_layout *l, uint32_t others, uint32_t spins, struct mw_err *err)
{
	*b = (struct mw_barrier){ .n_groups = l->n_nodes, .spins = spins, .layout = l };
	b->group = mw_alloc_array(l->n_nodes, sizeof(*b->group), "a barrier", err);
	if (!b->group)
		return MW_ERESOURCE;
	for (uint32_t i = 0; i < l->n_nodes; i++) {
		b->group[i] = mw_node_alloc(l, i, sizeof(**b->group), "a barrier", err);
		if (!b->group[i])
			return MW_ERESOURCE;
	}
	for (uint32_t w = 0; w < l->n_workers; w++)
		b->group[l->slot[w].node]->n++;
	b->group[0]->n += others;
	return 0;
}

void mw_barrier_fini(struct mw_barrier *b)
{
	for (uint32_t i = 0; b->group && i < b->n_groups; i++)
		mw_node_free(b->layout, b->group[i]);
	mw_free(b->group);
	b->group = NULL;
}

static struct mw_barrier_group *group_of(struct mw_barrier *b, uint32_t group)
{
	return b->group ? b->group[group] : &b->own;
}

/* Let all go on: those of a node watch their own line. */
static void release(struct mw_barrier *b, uint32_t next)
{
	for (uint32_t i = 0; i < b->n_groups; i++) {
		struct mw_barrier_group *g = group_of(b, i);
		__atomic_store_n(&g->round, next, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&g->sleepers, __ATOMIC_SEQ_CST))
			futex_wake_all(&g->round);
	}
}

/* Is the caller the last of its group, and then of all? Counters start anew before anybody is let go. */
static bool is_last(struct mw_barrier *b, struct mw_barrier_group *g)
{
	if (__atomic_add_fetch(&g->arrived, 1, __ATOMIC_ACQ_REL) != g->n)
		return false;
	__atomic_store_n(&g->arrived, 0, __ATOMIC_RELAXED);
	if (b->n_groups == 1)
		return true;
	if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) != b->n_groups)
		return false;
	__atomic_store_n(&b->arrived, 0, __ATOMIC_RELAXED);
	return true;
}

bool mw_barrier_wait_in(struct mw_barrier *b, uint32_t group)
{
	struct mw_barrier_group *g = group_of(b, group);
	uint32_t round = __atomic_load_n(&g->round, __ATOMIC_RELAXED);
	if (is_last(b, g)) {
		release(b, round + 1);
		return true;
	}
	for (uint32_t i = 0; i < b->spins; i++) {
		if (__atomic_load_n(&g->round, __ATOMIC_ACQUIRE) != round)
			return true;
		mw_pause();
	}
	__atomic_add_fetch(&g->sleepers, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&g->round, __ATOMIC_SEQ_CST) == round &&
		!__atomic_load_n(&b->cancelled, __ATOMIC_RELAXED))
		futex_wait(&g->round, round, 10000000);
	__atomic_sub_fetch(&g->sleepers, 1, __ATOMIC_RELAXED);
	/* A thread that cancels has not arrived, so a round that went on did so with all. */
	return __atomic_load_n(&g->round, __ATOMIC_ACQUIRE) != round;
}

void mw_barrier_cancel(struct mw_barrier *b)
{
	__atomic_store_n(&b->cancelled, 1, __ATOMIC_RELAXED);
}

void mw_gate_init(struct mw_gate *g, uint32_t spins)
{
	*g = (struct mw_gate){ .spins = spins };
}

void mw_gate_wait(struct mw_gate *g, struct mw_gate_try *t)
{
	if (t->n++ < g->spins) {
		mw_pause();
		return;
	}
	if (!t->announced) { /* the caller tests once more after this, so a signal in between is not missed */
		__atomic_add_fetch(&g->waiting, 1, __ATOMIC_SEQ_CST);
		t->announced = true;
		t->seen = __atomic_load_n(&g->word, __ATOMIC_SEQ_CST);
		return;
	}
	futex_wait(&g->word, t->seen, 10000000);
	t->seen = __atomic_load_n(&g->word, __ATOMIC_SEQ_CST);
}

void mw_gate_pass(struct mw_gate *g, struct mw_gate_try *t)
{
	if (t->announced)
		__atomic_sub_fetch(&g->waiting, 1, __ATOMIC_SEQ_CST);
}

void mw_gate_signal(struct mw_gate *g)
{
#ifdef MW_STRICT_ATOMICS /* ThreadSanitizer does not know fences */
	if (!__atomic_fetch_add(&g->waiting, 0, __ATOMIC_SEQ_CST))
		return;
#else
	__atomic_thread_fence(
		__ATOMIC_SEQ_CST); /* the caller's store, before the load: pairs with the waiter's add */
	if (!__atomic_load_n(&g->waiting, __ATOMIC_RELAXED))
		return;
#endif
	__atomic_add_fetch(&g->word, 1, __ATOMIC_SEQ_CST);
	futex_wake_all(&g->word);
}

void mw_delay(double seconds)
{
	double end = mw_now_s() + seconds;
	if (seconds >= 1e-4) {
		double whole = (double)(long)seconds;
		struct timespec t = { .tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9) };
		nanosleep(&t, NULL);
	}
	while (mw_now_s() < end)
		mw_pause();
}
