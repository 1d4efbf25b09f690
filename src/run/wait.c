/* wait.c: see wait.h. */
#include "run/wait.h"

#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

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
	*b = (struct mw_barrier){ .n = n, .spins = spins };
}

bool mw_barrier_wait(struct mw_barrier *b)
{
	uint32_t round = __atomic_load_n(&b->round, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == b->n) {
		__atomic_store_n(&b->arrived, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&b->round, round + 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&b->sleepers, __ATOMIC_SEQ_CST))
			futex_wake_all(&b->round);
		return true;
	}
	for (uint32_t i = 0; i < b->spins; i++) {
		if (__atomic_load_n(&b->round, __ATOMIC_ACQUIRE) != round)
			return true;
		mw_pause();
	}
	__atomic_add_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&b->round, __ATOMIC_SEQ_CST) == round &&
		!__atomic_load_n(&b->cancelled, __ATOMIC_RELAXED))
		futex_wait(&b->round, round, 10000000);
	__atomic_sub_fetch(&b->sleepers, 1, __ATOMIC_RELAXED);
	/* A thread that cancels has not arrived, so a round that went on did so with all n. */
	return __atomic_load_n(&b->round, __ATOMIC_ACQUIRE) != round;
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
