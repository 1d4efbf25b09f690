/* run_place.c: the training data by node: who reads which copy, which bytes go to which node, and that nothing else changes. */
#include "run_util.h"

#include <linux/mempolicy.h>
#include <math.h>

#include "base/mem.h"
#include "topo/machine.h"

/* A machine of two nodes that is only planned for: two copies, in plain memory. */
#define TWO_NODES "topology=synthetic:numa:2~core:1~pu:1 workers=2 oversubscribe=yes"
#define DATA      "data=synth:sparse,rows=3000,features=80,nnz=6 epochs=1"

static void test_replicate(void **state)
{
	(void)state;
	struct test_run t;
	run_open(&t, TWO_NODES " " DATA " protocol=numa data-place=replicate");
	struct mw_run *run = t.run;
	struct mw_data_part a[MW_DATA_PARTS_MAX], b[MW_DATA_PARTS_MAX];
	assert_int_equal(run->layout->n_nodes, 2);
	assert_ptr_equal(run->worker[0]->data, run->train);
	assert_ptr_equal(run->worker[1]->data, run->node_data[1]);
	assert_ptr_equal(run->bench[1].data, run->node_data[1]);
	size_t n = mw_dataset_parts(run->train, a);
	assert_int_equal(mw_dataset_parts(run->node_data[1], b), n);
	assert_true(n >= 4);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_not_equal(*a[i].at, *b[i].at);
		assert_memory_equal(*a[i].at, *b[i].at, a[i].bytes);
	}
	run_close(&t);
	/* one node: nothing is copied */
	run_open(&t, DATA " workers=1 data-place=replicate");
	assert_null(t.run->node_data);
	assert_ptr_equal(t.run->worker[0]->data, t.run->train);
	run_close(&t);
}

/* Workers that never exchange are exact, each on its own replica: a copy of the data changes no bit of it. */
static void test_same_run(void **state)
{
	(void)state;
	static const char *const places[] = { "shared", "replicate" };
	static const char *const data[] = { DATA, "data=synth:dense,rows=800,features=20 epochs=1",
		"data=synth:quadratic,dim=12,rows=800 epochs=1 rate=0.01" };
	for (int d = 0; d < 3; d++) {
		float *average[2];
		for (int i = 0; i < 2; i++) {
			struct test_run t;
			run_open(&t,
				TWO_NODES " %s protocol=numa mix-every=1000000 deal=static data-place=%s",
				data[d], places[i]);
			run_whole(&t);
			assert_true(isfinite(run_loss(&t)));
			average[i] = malloc(t.run->model->dim * sizeof(float));
			memcpy(average[i], t.run->average, t.run->model->dim * sizeof(float));
			if (i)
				assert_memory_equal(
					average[0], average[1], t.run->model->dim * sizeof(float));
			run_close(&t);
		}
		free(average[0]);
		free(average[1]);
	}
}

/* --- shard ---------------------------------------------------------------------------------------------------------- */

static struct {
	char *p;
	size_t bytes;
	unsigned long nodes;
	int mode;
} call[64];
static int n_calls; /* Sync: one thread */

static long record(
	void *p, size_t bytes, int mode, const unsigned long *mask, unsigned long bits, unsigned flags)
{
	(void)bits;
	assert_true(n_calls < 64);
	assert_int_equal(flags, 0);
	call[n_calls].p = p;
	call[n_calls].bytes = bytes;
	call[n_calls].mode = mode;
	call[n_calls++].nodes = mask[0];
	return 0;
}

/* As if the two nodes were real: what the kernel would be asked for. */
static void place_again(struct test_run *t, enum mw_mem mem)
{
	long (*real)(void *, size_t, int, const unsigned long *, unsigned long, unsigned) = mw_arena_mbind;
	struct mw_err err = { 0 };
	t->run->layout->mem_applied = true;
	t->run->layout->mem = mem;
	mw_arena_mbind = record;
	n_calls = 0;
	assert_int_equal(mw_place_data(t->run, &err), 0);
	mw_arena_mbind = real;
	t->run->layout->mem_applied = false;
}

static void test_shard_ranges(void **state)
{
	(void)state;
	struct test_run t;
	run_prepare(&t, TWO_NODES " data=synth:sparse,rows=60000,features=80,nnz=6 data-place=shard");
	struct mw_run *run = t.run;
	struct mw_dataset *d = run->train;
	uint64_t lo, hi;
	mw_order_part(MW_ORDER_BLOCK, run->rows.n, 1, 2, &lo, &hi);
	assert_int_equal(hi, 60000);
	assert_int_equal(lo % MW_ORDER_BLOCK_ROWS, 0);
	assert_in_range(lo, 29900, 30100);
	place_again(&t, MW_MEM_NODE);
	/* row pointers, columns, values, labels: two parts each */
	assert_int_equal(n_calls, 8);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(call[i].mode, MPOL_PREFERRED);
		assert_int_equal(call[i].nodes, 1UL << i % 2); /* worker 0 is on P#0, worker 1 on P#1 */
		if (i % 2)                                     /* one array without a gap or an overlap */
			assert_ptr_equal(call[i].p, call[i - 1].p + call[i - 1].bytes);
	}
	char *border = (char *)&d->col[d->row_ptr[lo]];
	assert_true(call[3].p >= border && call[3].p < border + 4096);
	assert_true(call[3].p + call[3].bytes >= (char *)(d->col + d->nnz));
	border = (char *)&d->y[lo];
	assert_true(call[7].p >= border && call[7].p < border + 4096);
	run_close(&t);
}

/* All nodes in turn, whole arrays. */
static void test_shared_is_interleaved(void **state)
{
	(void)state;
	struct test_run t;
	run_prepare(&t, TWO_NODES " data=synth:sparse,rows=60000,features=80,nnz=6");
	place_again(&t, MW_MEM_NODE);
	assert_int_equal(n_calls, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(call[i].mode, MPOL_INTERLEAVE);
		assert_int_equal(call[i].nodes, 3);
	}
	assert_true(call[1].p + call[1].bytes >= (char *)(t.run->train->col + t.run->train->nnz));
	place_again(&t, MW_MEM_FIRST_TOUCH);
	assert_int_equal(n_calls, 0);
	run_close(&t);
}

/* Where nothing can be bound, arrays are written anew, by threads on the nodes: the same bytes. */
static void test_shard_by_first_touch(void **state)
{
	(void)state;
	struct test_run t;
	run_prepare(&t, TWO_NODES " data=synth:sparse,rows=3000,features=80,nnz=6 val=0.1 data-place=shard");
	struct mw_data_part part[MW_DATA_PARTS_MAX];
	void *before[MW_DATA_PARTS_MAX], *old[MW_DATA_PARTS_MAX];
	size_t n = mw_dataset_parts(t.run->train, part);
	for (size_t i = 0; i < n; i++) {
		old[i] = *part[i].at;
		before[i] = malloc(part[i].bytes);
		memcpy(before[i], old[i], part[i].bytes);
	}
	place_again(&t, MW_MEM_FIRST_TOUCH);
	assert_int_equal(n_calls, 0);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_not_equal(*part[i].at, old[i]);
		assert_memory_equal(*part[i].at, before[i], part[i].bytes);
		free(before[i]);
	}
	run_start(&t);
	run_whole(&t);
	assert_true(isfinite(run_loss(&t)));
	run_close(&t);
}

/* Data that lie in a cache file can't be placed there: they are taken out of it. */
static void test_cached_file(void **state)
{
	(void)state;
	struct test_run t;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	for (int r = 0; r < 300; r++)
		fprintf(f, "%d %d:%d.5 %d:1\n", r % 3 ? 1 : -1, r % 40 + 1, r, r % 40 + 42);
	fclose(f);
	const char *path = temporary_file(text);
	free(text);
	for (int mapped = 0; mapped < 2; mapped++) {
		run_prepare(&t, TWO_NODES " data=%s cache=on data-place=%s", path,
			mapped ? "shard" : "replicate");
		struct mw_dataset *d = t.run->train;
		assert_int_equal(d->map != NULL, mapped);
		if (mapped)
			place_again(&t, MW_MEM_NODE);
		assert_null(d->map);
		assert_int_equal(d->rows, 300);
		assert_true(d->val[2 * 7] == 7.5f && d->col[2 * 7 + 1] == d->col[2 * 7] + 41);
		assert_true(d->label_value[0] == -1 && d->label_count[0] == 100);
		run_start(&t);
		run_until(&t, 10);
		run_close(&t);
	}
}

/* More workers than rows, and parts that are empty: every byte belongs to somebody. */
static void test_few_rows(void **state)
{
	(void)state;
	struct test_run t;
	run_prepare(&t, "topology=synthetic:numa:2~core:4~pu:1 workers=8 "
			"data=synth:sparse,rows=3,features=80,nnz=6 data-place=shard");
	void *col = malloc(t.run->train->nnz * sizeof(uint32_t));
	memcpy(col, t.run->train->col, t.run->train->nnz * sizeof(uint32_t));
	place_again(&t, MW_MEM_FIRST_TOUCH);
	assert_memory_equal(col, t.run->train->col, t.run->train->nnz * sizeof(uint32_t));
	free(col);
	run_close(&t);
}

/* --- what is reported ----------------------------------------------------------------------------------------------- */

static void test_report(void **state)
{
	(void)state;
	struct test_run t;
	struct mw_err err = { 0 };
	char *text;
	size_t size;
	run_open(&t, TWO_NODES " " DATA " protocol=numa data-place=replicate");
	assert_int_equal(mw_place_look(t.run, &err), 0);
	FILE *f = open_memstream(&text, &size);
	mw_place_print(t.run, f);
	fclose(f);
	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
		assert_in_range(strcspn(s, "\n"), 0, 80);
	assert_non_null(strstr(text, "replica 0                       P#0"));
	assert_non_null(strstr(text, "replica 1                       P#1"));
	assert_non_null(strstr(text, "state of worker 1               P#1"));
	assert_non_null(strstr(text, "data, copy 1                    P#1"));
	free(text);
	json_t *j = mw_place_json(t.run), *items = json_object_get(j, "places");
	assert_string_equal(json_string_value(json_object_get(j, "data_place")), "replicate");
	assert_int_equal(json_array_size(items), 6);
	json_decref(j);
	/* the machine has no node P#1 with these pages: strict would not let it pass */
	if (!t.run->places.item[1].pages.refused) {
		t.run->layout->mem_strict = true;
		t.run->layout->node_os[1] = 4000;
		assert_int_equal(mw_place_look(t.run, &err), MW_ERESOURCE);
		assert_non_null(strstr(err.msg, "--mem-strict: replica 1 belong"));
	}
	run_close(&t);
}

static void test_refusals(void **state)
{
	(void)state;
	struct mw_err err;
	assert_int_equal(run_error(&err, DATA " workers=1 data-place=shard mem=interleave"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "choose one"));
	assert_int_equal(run_error(&err, DATA " workers=2 mem-strict=yes engine=sim"), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "--mem-strict"));
	assert_int_equal(run_error(&err, TWO_NODES " " DATA " mem-strict=yes"), MW_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replicate),
		cmocka_unit_test(test_same_run),
		cmocka_unit_test(test_shard_ranges),
		cmocka_unit_test(test_shared_is_interleaved),
		cmocka_unit_test(test_shard_by_first_touch),
		cmocka_unit_test(test_cached_file),
		cmocka_unit_test(test_few_rows),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
