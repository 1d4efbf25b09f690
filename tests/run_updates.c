/*
 * run_updates.c: what threads do to each other: updates that no access mode but racy may lose, exchanges that conserve
 * pi^T X, whole versions for readers, barriers and gates with more threads than CPUs, and the order of rows.
 */
#include "run_util.h"

#include <math.h>

#include "base/mem.h"
#include "comm/access.h"

static const char *const modes[] = { "racy", "atomic", "locked", "seqlock" };

/* --- lost updates -------------------------------------------------------------------------------------------------- */

enum { HOT = 8, HAMMERS = 4 };

struct hammer {
	struct mw_replicas *r;
	struct mw_barrier start;
	uint32_t adds;
};

/* Integers that float32 holds exactly: the sum shows every update, in any order. */
static void hammer(void *arg, uint32_t i)
{
	struct hammer *h = arg;
	float d[HOT], one[HOT], out[HOT];
	uint32_t group[HOT];
	for (uint32_t j = 0; j < HOT; j++) {
		d[j] = (float)(j + 1);
		one[j] = 1;
		group[j] = j;
	}
	mw_barrier_wait(&h->start);
	for (uint32_t k = 0; k < h->adds; k++) {
		switch ((k + i) % 3) {
		case 0: mw_access_add(h->r, 0, 0, HOT, 1, d); break;
		case 1: mw_access_scatter(h->r, 0, group, HOT, 1, d); break;
		case 2:
			for (uint32_t j = 0; j < HOT; j++) /* one example of one column: += (j + 1) */
				mw_access_add_row(h->r, 0, &group[j], one, 1, -1, d[j]);
			break;
		}
		if (k % 64 == 0)
			mw_access_view(h->r, 0, 0, HOT, out);
	}
}

/* The share of updates that got lost. */
static double lost_share(const char *mode)
{
	struct test_run t;
	struct hammer h = { .adds = 100000 };
	double got = 0, want = 0;
	run_prepare(&t,
		"data=synth:quadratic,dim=%d,rows=1 protocol=hogwild workers=%d oversubscribe=yes access=%s",
		HOT, HAMMERS, mode);
	h.r = &t.run->replicas;
	mw_barrier_init(&h.start, HAMMERS, 20);
	on_threads(HAMMERS, hammer, &h);
	for (uint32_t j = 0; j < HOT; j++) {
		got += (double)h.r->row[0].x[j];
		want += (double)h.adds * HAMMERS * (j + 1);
	}
	run_close(&t);
	return 1 - got / want;
}

static void no_update_is_lost(void **state)
{
	(void)state;
	for (int m = 1; m < 4; m++)
		assert_true(lost_share(modes[m]) == 0);
}

/* Racy access may lose updates when threads meet, as it says; never more than there are, and none appears twice. */
static void racy_loss_is_reported(void **state)
{
	(void)state;
	double share = lost_share("racy");
	print_message("# racy access: %.2f %% of the updates on %d coordinates by %d threads were lost\n",
		100 * share, HOT, HAMMERS);
	assert_true(share >= 0 && share < 1);
}

/* And training on a few hot coordinates converges all the same, through the phases and through the fused path. */
static void racy_training_converges(void **state)
{
	static const char *const paths[] = { "batch=1", "batch=2", "batch=1 optimizer=sgd momentum=0.5" };
	(void)state;
	for (int p = 0; p < 3; p++)
		for (int m = 0; m < 4; m++) {
			struct test_run t;
			run_open(&t,
				"data=synth:sparse,rows=4000,features=12,nnz=4 model=logistic "
				"protocol=hogwild workers=3 "
				"oversubscribe=yes rate=0.05 epochs=3 access=%s %s",
				modes[m], paths[p]);
			double before = run_loss(&t);
			run_whole(&t);
			double after = run_loss(&t);
			assert_int_equal(run_pushes(&t) * t.run->batch, 3 * 4000);
			if (!(after < 0.9 * before))
				fail_msg("%s, %s: the loss went from %g to %g", modes[m], paths[p], before,
					after);
			run_close(&t);
		}
}

/* --- exchanges ----------------------------------------------------------------------------------------------------- */

struct exchange {
	struct mw_run *run;
	struct mw_barrier start;
	uint32_t rounds;
	bool push; /* between exchanges, +1 to every coordinate of the push row */
};

static void exchange(void *arg, uint32_t w)
{
	struct exchange *x = arg;
	const struct mw_protocol *p = x->run->protocol;
	struct mw_exec_scratch s;
	struct mw_err err = { 0 };
	size_t dim = x->run->replicas.dim;
	float *one = calloc(dim, sizeof(*one));
	for (size_t j = 0; j < dim; j++)
		one[j] = 1;
	if (mw_exec_scratch_init(&s, &x->run->executor, &err))
		abort();
	mw_barrier_wait(&x->start);
	for (uint32_t k = 0; k < x->rounds; k++) {
		if (x->push)
			mw_access_add(&x->run->replicas, p->push_row[w], 0, dim, p->push_weight, one);
		if (!p->slot[w].n)
			continue;
		mw_exec_plan(&x->run->executor, &s, w, k % p->slot[w].n, x->run->knobs.slack, 0, dim, NULL, 0,
			false);
	}
	mw_exec_scratch_fini(&s);
	free(one);
}

static double weighted_sum(const struct mw_run *run, size_t j)
{
	double v = 0;
	for (uint32_t r = 0; r < run->replicas.n; r++)
		v += run->protocol->pi[r] * (double)run->replicas.row[r].x[j];
	return v;
}

/* The largest change of (pi^T X)_j, less what was pushed. */
static double conservation_error(
	const char *options, uint32_t workers, bool integers, bool push, uint32_t rounds)
{
	struct test_run t;
	struct exchange x = { .rounds = rounds, .push = push };
	double before[300], worst = 0, pushed = 0;
	run_prepare(
		&t, "data=synth:quadratic,dim=300,rows=1 workers=%u oversubscribe=yes %s", workers, options);
	x.run = t.run;
	for (uint32_t r = 0; r < t.run->replicas.n; r++)
		for (size_t j = 0; j < 300; j++)
			t.run->replicas.row[r].x[j] = integers ? 0 : (float)((r * 31 + j * 17) % 101) / 101;
	for (size_t j = 0; j < 300; j++)
		before[j] = weighted_sum(t.run, j);
	mw_barrier_init(&x.start, workers, 20);
	on_threads(workers, exchange, &x);
	for (uint32_t w = 0; w < workers; w++)
		pushed += push ? rounds * t.run->protocol->pi[t.run->protocol->push_row[w]] *
					  (double)t.run->protocol->push_weight
			       : 0;
	for (size_t j = 0; j < 300; j++)
		worst = fmax(worst, fabs(weighted_sum(t.run, j) - before[j] - pushed));
	run_close(&t);
	return worst;
}

static void exchanges_conserve_the_average(void **state)
{
	static const char *const protocols[] = { "protocol=async-gossip graph=complete",
		"protocol=async-ring", "protocol=async-gossip graph=ring slack=0.3",
		"protocol=numa groups=4 mix-every=1", "protocol=async-gossip graph=star mix-form=separate" };
	char options[200];
	(void)state;
	for (int p = 0; p < 5; p++)
		for (int m = 1; m < 4; m++) {
			snprintf(options, sizeof(options), "%s access=%s", protocols[p], modes[m]);
			/* each exchange rounds values below 1: 6e-8, in random directions */
			double error = conservation_error(options, 4, false, false, 2000);
			if (error > 2e-5)
				fail_msg("%s: pi^T X moved by %g", options, error);
		}
	print_message("# racy exchanges moved pi^T X by %.3g\n",
		conservation_error(
			"protocol=async-gossip graph=complete access=racy", 4, false, false, 2000));
}

/* Changes that are merged are whole numbers: the server and what is pending hold them all, exactly. */
static void merges_lose_nothing(void **state)
{
	char options[200];
	(void)state;
	for (int m = 1; m < 4; m++) {
		snprintf(options, sizeof(options), "protocol=cached access=%s", modes[m]);
		assert_true(conservation_error(options, 4, true, true, 3000) == 0);
		snprintf(options, sizeof(options), "protocol=async-ps access=%s", modes[m]);
		assert_true(conservation_error(options, 4, true, true, 3000) == 0);
		snprintf(options, sizeof(options), "protocol=cached slack=0.5 access=locked");
		assert_true(conservation_error(options, 3, true, true, 200) < 1e-2);
	}
}

/* --- whole versions ------------------------------------------------------------------------------------------------ */

/* Wide enough for a write to take microseconds; the sanitizer counts every float. */
#ifdef MW_STRICT_ATOMICS
enum { WIDE = 1000, READERS = 2, WRITERS = 2, WRITES = 1000 };
#else
enum { WIDE = 10000, READERS = 2, WRITERS = 2, WRITES = 6000 };
#endif

struct versions {
	struct mw_replicas *r;
	struct mw_leash *leash;
	struct mw_barrier start;
	uint64_t torn, backwards, writes_left; /* relaxed atomics */
};

static void look(struct versions *v, const float *x, float *last)
{
	for (uint32_t j = 1; j < WIDE; j++)
		if (x[j] != x[0]) {
			__atomic_add_fetch(&v->torn, 1, __ATOMIC_RELAXED);
			return;
		}
	if (x[0] < *last)
		__atomic_add_fetch(&v->backwards, 1, __ATOMIC_RELAXED);
	*last = x[0];
}

/* Against the readers' direction: one that began before the write meets it in the middle. */
static void write_backwards(struct mw_replicas *r)
{
	float *x = r->row[0].x;
	mw_access_write_begin(r, 0);
	for (uint32_t j = WIDE; j-- > 0;)
		mw_st(&x[j], mw_ld(&x[j]) + 1);
	mw_access_write_end(r, 0);
}

static void write_some(struct versions *v, uint32_t i, const float *one)
{
	for (uint32_t k = 0; k < WRITES; k++) {
		if (i == 0)
			mw_access_add(v->r, 0, 0, WIDE, 1, one);
		else
			write_backwards(v->r);
		for (uint32_t pause = k % 128; pause > 0; pause--) /* let readers begin without the lock */
			mw_pause();
	}
	__atomic_sub_fetch(&v->writes_left, 1, __ATOMIC_RELAXED);
}

static void write_or_read(void *arg, uint32_t i)
{
	struct versions *v = arg;
	float one[WIDE], x[WIDE], last = 0;
	for (uint32_t j = 0; j < WIDE; j++)
		one[j] = 1;
	mw_barrier_wait(&v->start);
	if (i < WRITERS) {
		write_some(v, i, one);
		return;
	}
	while (__atomic_load_n(&v->writes_left, __ATOMIC_RELAXED)) {
		mw_access_view(v->r, 0, 0, WIDE, x);
		look(v, x, &last);
		if (i == WRITERS) { /* one reader through its own copy, as a worker of async-ps has it */
			mw_access_copy(v->r, 0, 1, 0, WIDE);
			look(v, v->r->row[1].x, &last);
		}
	}
}

static void no_version_is_torn(void **state)
{
	(void)state;
	for (int m = 2; m < 4; m++) {
		struct test_run t;
		struct versions v = { .writes_left = WRITERS };
		run_prepare(&t,
			"data=synth:quadratic,dim=%d,rows=1 protocol=async-ps workers=4 oversubscribe=yes "
			"access=%s",
			WIDE, modes[m]);
		v.r = &t.run->replicas;
		mw_barrier_init(&v.start, READERS + WRITERS, 20);
		on_threads(READERS + WRITERS, write_or_read, &v);
		assert_int_equal(v.torn, 0);
		assert_int_equal(v.backwards, 0);
		for (uint32_t j = 0; j < WIDE; j++)
			assert_true(v.r->row[0].x[j] == (float)(WRITERS * WRITES));
		run_close(&t);
	}
}

static void add_one(float *x, void *arg)
{
	(void)arg;
	for (uint32_t j = 0; j < WIDE; j++)
		x[j] += 1;
}

static void leash_or_look(void *arg, uint32_t i)
{
	struct versions *v = arg;
	float last = 0;
	uint64_t number = 0;
	mw_barrier_wait(&v->start);
	if (i < WRITERS) {
		for (uint32_t k = 0; k < WRITES; k++)
			mw_leash_update(v->leash, add_one, NULL);
		__atomic_sub_fetch(&v->writes_left, 1, __ATOMIC_RELAXED);
		return;
	}
	while (__atomic_load_n(&v->writes_left, __ATOMIC_RELAXED)) {
		uint32_t held = mw_leash_acquire(v->leash);
		look(v, mw_leash_x(v->leash, held), &last);
		if (v->leash->version[held].number < number || (float)v->leash->version[held].number != last)
			__atomic_add_fetch(&v->backwards, 1, __ATOMIC_RELAXED);
		number = v->leash->version[held].number;
		mw_leash_release(v->leash, held);
	}
}

static void no_leashed_version_is_torn_or_lost(void **state)
{
	static const float zero[WIDE];
	struct mw_leash leash;
	struct mw_err err = { 0 };
	struct versions v = { .leash = &leash, .writes_left = WRITERS };
	(void)state;
	assert_int_equal(mw_leash_init(&leash, READERS + WRITERS, WIDE, &err), 0);
	mw_leash_set(&leash, zero);
	mw_barrier_init(&v.start, READERS + WRITERS, 20);
	on_threads(READERS + WRITERS, leash_or_look, &v);
	assert_int_equal(v.torn, 0);
	assert_int_equal(v.backwards, 0);
	uint32_t held = mw_leash_acquire(&leash);
	assert_int_equal(leash.version[held].number, WRITERS * WRITES);
	for (uint32_t j = 0; j < WIDE; j++)
		assert_true(mw_leash_x(&leash, held)[j] == (float)(WRITERS * WRITES));
	mw_leash_release(&leash, held);
	for (uint32_t i = 0; i < leash.n; i++)
		assert_int_equal(leash.version[i].refs, 0);
	mw_leash_fini(&leash);
}

/* --- waiting ------------------------------------------------------------------------------------------------------- */

enum { CROWD = 16, MEETINGS = 300 };

struct crowd {
	struct mw_barrier barrier;
	struct mw_gate gate;
	uint32_t round[CROWD]; /* plain: the barrier orders it */
	uint64_t turn, late;
};

static void meet(void *arg, uint32_t i)
{
	struct crowd *c = arg;
	for (uint32_t k = 1; k <= MEETINGS; k++) {
		c->round[i] = k;
		if (!mw_barrier_wait(&c->barrier))
			abort();
		for (uint32_t j = 0; j < CROWD; j++)
			if (c->round[j] != k)
				__atomic_add_fetch(&c->late, 1, __ATOMIC_RELAXED);
		if (!mw_barrier_wait(&c->barrier))
			abort();
	}
}

static void barriers_hold_a_crowd(void **state)
{
	static const uint32_t spins[] = { 0, 20, 4000 };
	(void)state;
	for (int s = 0; s < 3; s++) {
		struct crowd c = { .late = 0 };
		mw_barrier_init(&c.barrier, CROWD, spins[s]);
		on_threads(CROWD, meet, &c);
		assert_int_equal(c.late, 0);
		for (uint32_t j = 0; j < CROWD; j++)
			assert_int_equal(c.round[j], MEETINGS);
	}
}

static void leave(void *arg, uint32_t i)
{
	struct crowd *c = arg;
	if (i == 0)
		mw_barrier_cancel(&c->barrier);
	else if (!mw_barrier_wait(&c->barrier))
		__atomic_add_fetch(&c->late, 1, __ATOMIC_RELAXED);
}

static void a_cancelled_barrier_lets_all_go(void **state)
{
	struct crowd c = { .late = 0 };
	(void)state;
	mw_barrier_init(&c.barrier, CROWD, 20);
	on_threads(CROWD, leave, &c);
	assert_int_equal(c.late, CROWD - 1);
}

/* Each in turn: every one of the others waits at the gate meanwhile. */
static void take_turns(void *arg, uint32_t i)
{
	struct crowd *c = arg;
	for (uint32_t k = 0; k < MEETINGS; k++) {
		struct mw_gate_try t = { 0 };
		uint64_t mine = (uint64_t)k * CROWD + i;
		while (__atomic_load_n(&c->turn, __ATOMIC_SEQ_CST) != mine)
			mw_gate_wait(&c->gate, &t);
		mw_gate_pass(&c->gate, &t);
		c->round[0]++; /* plain: the turn orders it */
		__atomic_store_n(&c->turn, mine + 1, __ATOMIC_SEQ_CST);
		mw_gate_signal(&c->gate);
	}
}

static void gates_hold_a_crowd(void **state)
{
	static const uint32_t spins[] = { 0, 20 };
	(void)state;
	for (int s = 0; s < 2; s++) {
		struct crowd c = { .turn = 0 };
		mw_gate_init(&c.gate, spins[s]);
		on_threads(CROWD, take_turns, &c);
		assert_int_equal(c.round[0], CROWD * MEETINGS);
		assert_int_equal(c.gate.waiting, 0);
	}
}

/* --- order of rows ------------------------------------------------------------------------------------------------- */

static void check_order(enum mw_order_kind kind, bool shard, uint64_t rows, uint32_t workers)
{
	struct mw_rows all = { .idx = NULL, .n = rows };
	uint32_t *seen = calloc(rows, sizeof(*seen));
	struct mw_order *o = calloc(workers, sizeof(*o));
	uint64_t share = rows / workers, row[7];
	assert_true(seen && o && rows % workers == 0);
	for (uint32_t w = 0; w < workers; w++)
		mw_order_init(&o[w], kind, shard, &all, 5, w, workers);
	for (uint32_t epoch = 1; epoch <= 3; epoch++) {
		for (uint32_t w = 0; w < workers; w++)
			for (uint64_t k = 0; k < share;) {
				uint32_t n = share - k < 7 ? (uint32_t)(share - k) : 7;
				mw_order_draw(&o[w], row, n);
				for (uint32_t i = 0; i < n; i++)
					seen[row[i]]++;
				k += n;
			}
		for (uint64_t i = 0; i < rows; i++)
			if (seen[i] != epoch)
				fail_msg("kind %d, shard %d, %llu rows, %u workers: row %llu came %u times "
					 "in %u epochs",
					kind, shard, (unsigned long long)rows, workers, (unsigned long long)i,
					seen[i], epoch);
	}
	free(seen);
	free(o);
}

static void every_row_once_an_epoch(void **state)
{
	static const uint64_t rows[] = { 1, 2, 63, 64, 65, 500, 4096, 5000 };
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (int shard = 0; shard < 2; shard++) {
			for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
				check_order((enum mw_order_kind)kind, shard, rows[i], 1);
			check_order((enum mw_order_kind)kind, shard, 64 * 64, 4); /* blocks divide evenly */
			check_order((enum mw_order_kind)kind, shard, 64 * 24, 3);
			if (kind != MW_ORDER_BLOCK)
				check_order((enum mw_order_kind)kind, shard, 35, 7);
		}
}

/* Orders are shuffled anew every epoch, a function of the seed, and go on after a skip. */
static void orders_are_functions_of_the_seed(void **state)
{
	struct mw_rows all = { .idx = NULL, .n = 1000 };
	struct mw_order a, b;
	uint64_t first[1000], second[1000], other[1000], half[500];
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		mw_order_init(&a, (enum mw_order_kind)kind, false, &all, 5, 0, 1);
		mw_order_draw(&a, first, 1000);
		mw_order_draw(&a, second, 1000);
		assert_int_equal(memcmp(first, second, sizeof(first)) == 0, kind == MW_ORDER_FILE);
		mw_order_init(&b, (enum mw_order_kind)kind, false, &all, 6, 0, 1);
		mw_order_draw(&b, other, 1000);
		assert_int_equal(memcmp(first, other, sizeof(first)) == 0, kind == MW_ORDER_FILE);
		mw_order_init(&b, (enum mw_order_kind)kind, false, &all, 5, 0, 1);
		mw_order_skip(&b, 1500);
		mw_order_draw(&b, half, 500);
		assert_memory_equal(half, second + 500, sizeof(half));
	}
}

static void more_workers_than_rows(void **state)
{
	struct mw_rows all = { .idx = NULL, .n = 3 };
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (uint32_t w = 0; w < 7; w++) {
			struct mw_order o;
			uint64_t row[20];
			mw_order_init(&o, (enum mw_order_kind)kind, false, &all, 5, w, 7);
			mw_order_draw(&o, row, 20);
			for (int i = 0; i < 20; i++)
				assert_true(row[i] < 3);
		}
}

/* --- histogram ----------------------------------------------------------------------------------------------------- */

static void quantiles_of_the_histogram(void **state)
{
	struct mw_hist *h = calloc(1, sizeof(*h)), *sum = calloc(1, sizeof(*sum));
	(void)state;
	assert_true(h && sum);
	assert_int_equal(mw_hist_quantile(h, 0.5), 0);
	for (uint64_t v = 1; v <= 100; v++)
		mw_hist_add(h, v);
	assert_int_equal(mw_hist_quantile(h, 0.5), 50);
	assert_int_equal(mw_hist_quantile(h, 0.75), 75);
	assert_int_equal(mw_hist_quantile(h, 0.99), 99);
	assert_int_equal(mw_hist_quantile(h, 0), 1);
	assert_int_equal(mw_hist_quantile(h, 1), 100);
	assert_int_equal(h->max, 100);
	assert_true(h->sum == 5050 && h->sum2 == 338350);
	mw_hist_merge(sum, h);
	mw_hist_merge(sum, h);
	assert_int_equal(sum->n, 200);
	assert_int_equal(mw_hist_quantile(sum, 0.5), 50);
	/* large values: the bucket's lower end, at most 1/64 below */
	for (int shift = 10; shift < 64; shift++) {
		uint64_t v = (UINT64_C(1) << shift) + ((UINT64_C(1) << shift) - 1) / 3;
		memset(h, 0, sizeof(*h));
		mw_hist_add(h, v);
		uint64_t q = mw_hist_quantile(h, 0.5);
		assert_true(q <= v && v - q <= v / 64);
		assert_int_equal(h->max, v);
	}
	memset(h, 0, sizeof(*h));
	mw_hist_add(h, UINT64_MAX);
	assert_int_equal(h->count[MW_HIST_BUCKETS - 1], 1);
	free(h);
	free(sum);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_update_is_lost),
		cmocka_unit_test(racy_loss_is_reported),
		cmocka_unit_test(racy_training_converges),
		cmocka_unit_test(exchanges_conserve_the_average),
		cmocka_unit_test(merges_lose_nothing),
		cmocka_unit_test(no_version_is_torn),
		cmocka_unit_test(no_leashed_version_is_torn_or_lost),
		cmocka_unit_test(barriers_hold_a_crowd),
		cmocka_unit_test(a_cancelled_barrier_lets_all_go),
		cmocka_unit_test(gates_hold_a_crowd),
		cmocka_unit_test(every_row_once_an_epoch),
		cmocka_unit_test(orders_are_functions_of_the_seed),
		cmocka_unit_test(more_workers_than_rows),
		cmocka_unit_test(quantiles_of_the_histogram),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
