/* unit_topo_place.c: golden placements over synthetic and recorded machines, and how they are shown. */
#include "topo_util.h"

/* What workers get: the CPUs of each place, then the P# of each worker's node. */
struct golden {
	const char *topology, *workers, *bind;
	enum mw_places places;
	bool no_smt;
	const char *affinity;
	const char *cpus, *nodes;
};

#define EIGHT_NODES "synthetic:pack:4 numa:2 l3:2 core:2 pu:1"
/* node 0 owns P# 0-31,64-95 */
#define WIDE_APART "synthetic:numa:2 core:32 pu:2(indexes=core:numa)"

static const struct golden goldens[] = {
	/* one core, nothing else */
	{ "synthetic:core:1 pu:1", "auto", "close", MW_PLACES_PU, false, NULL, "0", "0" },
	{ "synthetic:core:1 pu:1", "pus", "spread", MW_PLACES_NUMA, false, NULL, "0", "0" },
	/* SMT 1, 2, 4, 8: a second thread of a core only after the first ones of all */
	{ "synthetic:pack:1 core:3 pu:1", "pus", "close", MW_PLACES_PU, false, NULL, "0 1 2", "0 0 0" },
	{ "synthetic:\"pack:1 core:3 pu:1\"", "pus", "close", MW_PLACES_PU, false, NULL, "0 1 2", "0 0 0" },
	{ TWO_NODES, "auto", "close", MW_PLACES_PU, false, NULL, "0 2 4 6 8 10 12 14", "0 0 0 0 1 1 1 1" },
	{ TWO_NODES, "10", "compact", MW_PLACES_PU, false, NULL, "0 2 4 6 8 10 12 14 1 3",
		"0 0 0 0 1 1 1 1 0 0" },
	{ TWO_NODES, "10", "scatter", MW_PLACES_PU, false, NULL, "0 8 2 10 4 12 6 14 1 9",
		"0 1 0 1 0 1 0 1 0 1" },
	{ "synthetic:pack:1 core:2 pu:4", "6", "close", MW_PLACES_PU, false, NULL, "0 4 1 5 2 6",
		"0 0 0 0 0 0" },
	{ "synthetic:numa:2 core:1 pu:8", "5", "spread", MW_PLACES_PU, false, NULL, "0 8 1 9 2",
		"0 1 0 1 0" },
	/* wider places */
	{ TWO_NODES, "3", "close", MW_PLACES_CORE, false, NULL, "0-1 2-3 4-5", "0 0 0" },
	{ TWO_NODES, "3", "spread", MW_PLACES_CORE, false, NULL, "0-1 8-9 2-3", "0 1 0" },
	{ TWO_NODES, "3", "spread", MW_PLACES_PACKAGE, false, NULL, "0-7 8-15 0-7", "0 1 0" },
	{ TWO_NODES, "3", "spread", MW_PLACES_NUMA, false, NULL, "0-7 8-15 0-7", "0 1 0" },
	{ TWO_NODES, "2", "spread", MW_PLACES_NUMA, true, NULL, "0,2,4,6 8,10,12,14", "0 1" },
	{ TWO_NODES, "pus", "close", MW_PLACES_PU, true, NULL, "0 2 4 6 8 10 12 14", "0 0 0 0 1 1 1 1" },
	/* eight nodes, two a package: packages first, then nodes, then L3 */
	{ EIGHT_NODES, "10", "spread", MW_PLACES_PU, false, NULL, "0 8 16 24 4 12 20 28 2 10",
		"0 2 4 6 1 3 5 7 0 2" },
	{ EIGHT_NODES, "4", "spread", MW_PLACES_L3, false, NULL, "0-1 8-9 16-17 24-25", "0 2 4 6" },
	{ EIGHT_NODES, "5", "close", MW_PLACES_L3, false, NULL, "0-1 0-1 2-3 2-3 4-5", "0 0 0 0 1" },
	{ EIGHT_NODES, "6", "close", MW_PLACES_NUMA, false, NULL, "0-3 0-3 0-3 0-3 4-7 4-7", "0 0 0 0 1 1" },
	/* one node holds two packages */
	{ "synthetic:numa:2 pack:2 core:2 pu:1", "6", "spread", MW_PLACES_PU, false, NULL, "0 4 2 6 1 5",
		"0 1 0 1 0 1" },
	/* the OS counts first threads of all cores before second ones */
	{ XML("interleaved"), "10", "close", MW_PLACES_PU, false, NULL, "0 1 2 3 4 5 6 7 8 9",
		"0 0 0 0 1 1 1 1 0 0" },
	{ XML("interleaved"), "5", "spread", MW_PLACES_CORE, false, NULL, "0,8 4,12 1,9 5,13 2,10",
		"0 1 0 1 0" },
	{ XML("interleaved"), "2", "spread", MW_PLACES_NUMA, false, NULL, "0-3,8-11 4-7,12-15", "0 1" },
	{ WIDE_APART, "4", "spread", MW_PLACES_NUMA, false, NULL,
		"0-31,64-95 32-63,96-127 0-31,64-95 32-63,96-127", "0 1 0 1" },
	{ WIDE_APART, "3", "spread", MW_PLACES_CORE, false, "31-32,64-95", "64 32 65", "0 1 0" },
	{ WIDE_APART, "2", "spread", MW_PLACES_CORE, false, "31-32,95", "31,95 32", "0 1" },
	/* cores with unequal PUs: all cores before any second thread */
	{ XML("hybrid"), "auto", "close", MW_PLACES_PU, false, NULL, "0 2 4 5 6 7", "0 0 0 0 0 0" },
	{ XML("hybrid"), "pus", "close", MW_PLACES_CORE, false, NULL, "0-1 2-3 4 5 6 7 0-1 2-3",
		"0 0 0 0 0 0 0 0" },
	{ XML("hybrid"), "pus", "spread", MW_PLACES_PU, false, NULL, "0 2 4 5 6 7 1 3", "0 0 0 0 0 0 0 0" },
	/* memory that isn't where the CPUs are */
	{ XML("memoryless"), "auto", "close", MW_PLACES_PU, false, NULL, "0 1 2 3 4 5", "0 0 2 2 2 2" },
	{ XML("memoryless"), "3", "spread", MW_PLACES_NUMA, false, NULL, "0-1 2-3 4-5", "0 2 2" },
	{ XML("cpuless"), "auto", "spread", MW_PLACES_PU, false, NULL, "0 2 1 3", "0 1 0 1" },
	{ XML("cpuless"), "2", "close", MW_PLACES_NUMA, false, "2-3", "2-3 2-3", "1 1" },
	{ XML("hbm"), "auto", "spread", MW_PLACES_NUMA, false, NULL, "0-1 2-3 0-1 2-3", "0 1 0 1" },
	{ XML("mems"), "auto", "close", MW_PLACES_PU, false, "3-5", "3 4 5", "0 0 0" },
	/* sub-NUMA with unequal L3 groups (P# 0 | 1 2 || 3 | 4 5 ||| 6 | 7 8 || 9 | 10 11) */
	{ XML("subnuma"), "auto", "spread", MW_PLACES_PU, false, NULL, "0 6 3 9 1 7 4 10 2 8 5 11",
		"0 2 1 3 0 2 1 3 0 2 1 3" },
	{ XML("subnuma"), "4", "close", MW_PLACES_L3, false, NULL, "0 1-2 1-2 3", "0 0 0 1" },
	/* less than the machine */
	{ XML("restricted"), "auto", "close", MW_PLACES_PU, false, NULL, "2 3 6", "0 0 1" },
	{ XML("restricted"), "2", "spread", MW_PLACES_PACKAGE, false, NULL, "2-3 6", "0 1" },
	{ XML("restricted"), "auto", "close", MW_PLACES_PU, false, "3,6-7", "3 6", "0 1" },
	{ TWO_NODES, "auto", "close", MW_PLACES_PU, false, "1", "1", "0" },
	{ TWO_NODES, "auto", "close", MW_PLACES_NUMA, false, "7-9", "7 8-9", "0 1" },
	{ TWO_NODES, "auto", "spread", MW_PLACES_PU, false, "13-15", "13 14", "1 1" },
	/* nothing but PUs */
	{ XML("bare"), "auto", "spread", MW_PLACES_CORE, false, NULL, "0 1 2", "0 0 0" },
	{ XML("bare"), "2", "close", MW_PLACES_NUMA, false, NULL, "0-2 0-2", "0 0" },
	/* lists */
	{ TWO_NODES, "auto", "list:9,0,4-6", MW_PLACES_PU, false, NULL, "9 0 4 5 6", "1 0 0 0 0" },
	{ TWO_NODES, "2", "list:8-14:2", MW_PLACES_PU, false, NULL, "8 10", "1 1" },
	{ TWO_NODES, "auto", "list:15,0", MW_PLACES_CORE, false, NULL, "14-15 0-1", "1 0" },
};

static void test_goldens(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goldens) / sizeof(*goldens); i++) {
		const struct golden *g = &goldens[i];
		char cpus[2048], nodes[2048];
		struct mw_world world = { .affinity = g->affinity };
		struct mw_layout *l = make((struct mw_layout_request){ .workers = g->workers,
						   .bind = g->bind,
						   .places = g->places,
						   .no_smt = g->no_smt,
						   .controller_cpu = -1,
						   .topology = g->topology },
			&world);
		describe(l, cpus, nodes, sizeof(cpus));
		if (strcmp(cpus, g->cpus) || strcmp(nodes, g->nodes))
			fail_msg("golden %zu: %s, %s, %s\nCPUs  %s\nwant  %s\nnodes %s\nwant  %s", i,
				g->topology, g->workers, g->bind, cpus, g->cpus, nodes, g->nodes);
		mw_layout_free(l);
	}
}

/* 256 cores of 8 nodes: whoever is asked for, no PU is given twice and nodes get the same number of workers.
 */
static void test_256_cores(void **state)
{
	(void)state;
	static const char *const binds[] = { "close", "spread" };
	for (int b = 0; b < 2; b++) {
		struct mw_world world = { 0 };
		struct mw_layout *l = make((struct mw_layout_request){ .workers = "auto",
						   .bind = binds[b],
						   .controller_cpu = -1,
						   .topology = "synthetic:pack:4 numa:2 l3:4 core:8 pu:2" },
			&world);
		bool taken[512] = { false };
		int per_node[8] = { 0 };
		assert_int_equal(l->n_workers, 256);
		assert_int_equal(l->n_nodes, 8);
		assert_int_equal(l->machine_pus, 512);
		assert_int_equal(l->usable_cores, 256);
		for (int w = 0; w < 256; w++) {
			assert_int_equal(l->slot[w].pu_os % 2, 0);
			assert_false(taken[l->slot[w].pu_os]);
			taken[l->slot[w].pu_os] = true;
			per_node[l->slot[w].node]++;
			assert_int_equal(l->slot[w].node, l->slot[w].pu_os / 64);
			assert_int_equal(l->slot[w].l3_logical, l->slot[w].pu_os / 16);
			/* spread: the first 32 workers are on 32 different L3, the first 4 on 4 packages */
			if (b == 1 && w < 4)
				assert_int_equal(l->slot[w].package_logical, w);
		}
		for (int i = 0; i < 8; i++)
			assert_int_equal(per_node[i], 32);
		mw_layout_free(l);
	}
}

static void test_spread_covers_l3_first(void **state)
{
	(void)state;
	struct mw_world world = { 0 };
	struct mw_layout *l = make((struct mw_layout_request){ .workers = "32",
					   .bind = "spread",
					   .controller_cpu = -1,
					   .topology = "synthetic:pack:4 numa:2 l3:4 core:8 pu:2" },
		&world);
	bool seen[32] = { false };
	for (int w = 0; w < 32; w++) {
		assert_false(seen[l->slot[w].l3_logical]);
		seen[l->slot[w].l3_logical] = true;
	}
	mw_layout_free(l);
}

/* ---- What isn't bound, and the controller */

static void test_unbound(void **state)
{
	(void)state;
	struct mw_world world = { 0 };
	char cpus[512], nodes[512];
	struct mw_layout *l = make(
		(struct mw_layout_request){
			.workers = "5", .bind = "none", .controller_cpu = -1, .topology = TWO_NODES },
		&world);
	describe(l, cpus, nodes, sizeof(cpus));
	assert_string_equal(cpus, "- - - - -");
	assert_int_equal(l->n_nodes, 1);
	assert_int_equal(l->slot[4].pu_os, -1);
	assert_int_equal(mw_layout_bind_worker(l, 3, NULL), 0);
	assert_int_equal(mw_layout_verify_worker(l, 3), 1);
	mw_layout_free(l);
	/* virtual workers: any number, and still on the nodes of the plan */
	l = make((struct mw_layout_request){ .workers = "1024",
			 .bind = "spread",
			 .controller_cpu = -1,
			 .virtual_workers = true,
			 .topology = TWO_NODES },
		&world);
	assert_int_equal(l->n_workers, 1024);
	assert_int_equal(l->n_nodes, 2);
	for (int w = 0; w < 1024; w++) {
		assert_int_equal(l->slot[w].pu_os, -1);
		assert_int_equal(l->slot[w].node, w % 2);
	}
	assert_non_null(strstr(l->notes, "virtual: none is bound"));
	mw_layout_free(l);
}

static void test_oversubscribe(void **state)
{
	(void)state;
	struct mw_world world = { 0 };
	char cpus[512], nodes[512];
	struct mw_layout *l = make((struct mw_layout_request){ .workers = "5",
					   .bind = "spread",
					   .controller_cpu = -1,
					   .oversubscribe = true,
					   .topology = "synthetic:numa:2 core:1 pu:2" },
		&world);
	describe(l, cpus, nodes, sizeof(cpus));
	assert_string_equal(cpus, "0 2 1 3 0");
	assert_non_null(strstr(l->notes, "5 workers share 4 PUs"));
	mw_layout_free(l);
}

static int controller_of(
	const char *workers, const char *bind, int64_t cpu, bool no_smt, const char *topology)
{
	struct mw_world world = { 0 };
	struct mw_layout *l = make((struct mw_layout_request){ .workers = workers,
					   .bind = bind,
					   .no_smt = no_smt,
					   .controller_cpu = cpu,
					   .topology = topology },
		&world);
	int os = l->controller.pu_os, node = l->controller.node;
	assert_true(node < (int)l->n_nodes);
	mw_layout_free(l);
	return os;
}

static void test_controller(void **state)
{
	(void)state;
	assert_int_equal(controller_of("7", "close", -1, false, EIGHT), 7);
	assert_int_equal(controller_of("8", "close", -1, false, EIGHT), -1); /* none is free: it floats */
	assert_int_equal(controller_of("8", "close", 3, false, EIGHT), 3);
	assert_int_equal(controller_of("7", "none", -1, false, EIGHT), -1);
	/* a core without workers before a hyperthread beside one */
	assert_int_equal(controller_of("auto", "list:14,12", -1, false, TWO_NODES), 11);
	assert_int_equal(controller_of("auto", "close", -1, false, TWO_NODES), 15);
	assert_int_equal(controller_of("auto", "close", -1, true, TWO_NODES), 15);
}

/* ---- What people and programs see */

static void check_width(const char *text)
{
	for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
		if (strcspn(s, "\n") > 80)
			fail_msg("wider than 80 columns: %.*s", (int)strcspn(s, "\n"), s);
}

static void test_print(void **state)
{
	(void)state;
	static const char *const topologies[] = { XML("interleaved"), WIDE_APART, XML("hybrid"),
		XML("memoryless"), "synthetic:pack:16 numa:8 l3:4 core:8 pu:4" };
	struct mw_world world = { .affinity = NULL };
	for (int i = 0; i < 5; i++)
		for (int places = MW_PLACES_PU; places <= MW_PLACES_NUMA; places += MW_PLACES_NUMA) {
			char *text;
			size_t size;
			FILE *f = open_memstream(&text, &size);
			struct mw_layout *l = make(REQ(.workers = "auto", .places = (enum mw_places)places,
							   .topology = topologies[i]),
				&world);
			mw_layout_print(l, f);
			fclose(f);
			check_width(text);
			assert_non_null(strstr(text, "bound"));
			free(text);
			mw_layout_free(l);
		}
}

static void test_print_golden(void **state)
{
	(void)state;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct mw_world world = { .affinity = "0-3,8-9" };
	struct mw_layout *l = make(REQ(.workers = "3", .places = MW_PLACES_CORE,
					   .topology = "synthetic:pack:2 l3:1 core:4 pu:2"),
		&world);
	mw_layout_print(l, f);
	fclose(f);
	assert_string_equal(text,
		"3 workers on 1 of 1 NUMA node, bind close, places core\n"
		"usable: 6 of 16 PUs, 3 cores\n"
		"worker       PU     core   L3     package  runs on P#    node\n"
		"w0           L#0    L#0    L#0    L#0      0-1           P#0\n"
		"w1           L#2    L#1    L#0    L#0      2-3           P#0\n"
		"w2           L#8    L#4    L#1    L#1      8-9           P#0\n"
		"controller   not bound                                   -\n"
		"- The topology is read from synthetic:pack:2 l3:1 core:4 pu:2: nothing is bound\n"
		"  here.\n"
		"- The affinity mask (taskset, numactl, Slurm) leaves 6 of 16 PUs: P# 0-3,8-9.\n");
	free(text);
	mw_layout_free(l);
}

static void test_json(void **state)
{
	(void)state;
	struct mw_world world = { 0 };
	struct mw_layout *l = make(REQ(.workers = "9", .topology = XML("interleaved")), &world);
	json_t *json = mw_layout_json(l), *workers = json_object_get(json, "workers");
	assert_non_null(json);
	assert_int_equal(json_array_size(workers), 9);
	json_t *last = json_array_get(workers, 8), *fifth = json_array_get(workers, 4);
	assert_int_equal(json_integer_value(json_object_get(last, "pu_os")), 8);
	assert_int_equal(json_integer_value(json_object_get(last, "pu_logical")), 1);
	assert_int_equal(json_integer_value(json_object_get(fifth, "node_os")), 1);
	assert_string_equal(json_string_value(json_object_get(fifth, "cpus_os")), "4");
	assert_true(json_is_null(json_object_get(fifth, "l3_logical")));
	assert_true(json_is_false(json_object_get(json, "applied")));
	assert_string_equal(json_string_value(json_object_get(json, "bind")), "close");
	assert_int_equal(json_array_size(json_object_get(json, "nodes_os")), 2);
	assert_int_equal(json_array_size(json_object_get(json, "notes")), 1);
	json_decref(json);
	mw_layout_free(l);
}

static void test_notes(void **state)
{
	(void)state;
	char notes[2048];
	struct mw_world world = { 0 };
	count("auto", "close", XML("memoryless"), &world, notes, sizeof(notes));
	assert_non_null(
		strstr(notes, "Node P#1 has no memory for this process: its workers use node P#2.\n"));
	count("auto", "close", XML("cpuless"), &world, notes, sizeof(notes));
	assert_non_null(strstr(notes, "Node P#2 has memory but no CPUs of its own: it is not used.\n"));
	count("auto", "close", XML("mems"), &world, notes, sizeof(notes));
	assert_non_null(strstr(notes, "Some PUs have no node whose memory this process may use"));
	count("auto", "close", XML("restricted"), &world, notes, sizeof(notes));
	assert_non_null(strstr(notes, "leave 3 of the machine's 8 PUs.\n"));
	count("auto", "close", XML("hybrid"), &world, notes, sizeof(notes));
	assert_non_null(strstr(notes, "The cores are of 2 kinds"));
	assert_non_null(strstr(notes, "(slowest) has P# 4-7.\n"));
	world.affinity = "0-3"; /* fast cores only: one kind, no words */
	count("auto", "close", XML("hybrid"), &world, notes, sizeof(notes));
	assert_null(strstr(notes, "kinds"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goldens),
		cmocka_unit_test(test_256_cores),
		cmocka_unit_test(test_spread_covers_l3_first),
		cmocka_unit_test(test_unbound),
		cmocka_unit_test(test_oversubscribe),
		cmocka_unit_test(test_controller),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_print_golden),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
