/* unit_topo_place.c: golden placements over synthetic and recorded machines, limits, hints and refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/machine.h"

/* What workers get: the CPUs of each place, then the P# of each worker's node. */
struct golden {
	const char *topology, *workers, *bind;
	enum mw_places places;
	bool no_smt;
	const char *affinity;
	const char *cpus, *nodes;
};

#define XML(name)   "tests/data/topo/" name ".xml"
#define TWO_NODES   "synthetic:pack:2 numa:1 core:4 pu:2"
#define EIGHT_NODES "synthetic:pack:4 numa:2 l3:2 core:2 pu:1"
/* node 0 owns P# 0-31,64-95 */
#define WIDE_APART "synthetic:numa:2 core:32 pu:2(indexes=core:numa)"

static const struct golden goldens[] = {
	/* one core, nothing else */
	{ "synthetic:core:1 pu:1", "auto", "close", MW_PLACES_PU, false, NULL, "0", "0" },
	{ "synthetic:core:1 pu:1", "pus", "spread", MW_PLACES_NUMA, false, NULL, "0", "0" },
	/* SMT 1, 2, 4, 8: a second thread of a core only after the first ones of all */
	{ "synthetic:pack:1 core:3 pu:1", "pus", "close", MW_PLACES_PU, false, NULL, "0 1 2", "0 0 0" },
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

static void at_srcdir(char *buf, size_t size, const char *topology)
{
	const char *dir = getenv("MW_SRCDIR");
	if (!strncmp(topology, "synthetic:", 10))
		snprintf(buf, size, "%s", topology);
	else
		snprintf(buf, size, "%s/%s", dir ? dir : ".", topology);
}

static struct mw_layout *make(struct mw_layout_request req, const struct mw_world *world)
{
	char topology[4096];
	struct mw_layout *l;
	struct mw_err err = { 0 };
	at_srcdir(topology, sizeof(topology), req.topology);
	req.topology = topology;
	if (mw_layout_new_in(&req, world, &l, &err))
		fail_msg("%s: %s", topology, err.msg);
	assert_false(l->applied);
	return l;
}

static void describe(const struct mw_layout *l, char *cpus, char *nodes, size_t size)
{
	const struct mw_layout_priv *p = l->priv;
	char text[256];
	size_t n = 0, k = 0;
	cpus[0] = nodes[0] = '\0';
	for (uint32_t w = 0; w < l->n_workers; w++) {
		const char *place = p->place[w] ? mw_cpus_text(p->place[w], text, sizeof(text)) : "-";
		n += (size_t)snprintf(cpus + n, size - n, "%s%s", w ? " " : "", place);
		k += (size_t)snprintf(nodes + k, size - k, "%s%d", w ? " " : "", l->node_os[l->slot[w].node]);
		assert_true(n < size && k < size);
	}
}

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

/* ---- CPU quota */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void write_file(const char *root, const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *s = path + strlen(root) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		mkdir(path, 0777);
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_root(char *root)
{
	strcpy(root, "/tmp/mw_topo.XXXXXX");
	assert_non_null(mkdtemp(root));
}

static void drop_root(const char *root)
{
	nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#define MOUNT_V2 "30 22 0:27 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1                                                            \
	"31 22 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" \
	"32 22 0:29 /docker/ab /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"

static void write_v2(const char *root, const char *group, const char *cpu_max, const char *parent_max)
{
	char text[128];
	snprintf(text, sizeof(text), "0::%s\n", group);
	write_file(root, "/proc/self/cgroup", text);
	write_file(root, "/proc/self/mountinfo", MOUNT_V2);
	snprintf(text, sizeof(text), "/sys/fs/cgroup%s/cpu.max", group);
	write_file(root, text, cpu_max);
	if (parent_max)
		write_file(root, "/sys/fs/cgroup/job/cpu.max", parent_max);
}

static double quota_of(const char *root)
{
	char file[512];
	return mw_quota_cpus(root, file, sizeof(file));
}

static void test_quota_files(void **state)
{
	(void)state;
	char root[64], file[512], want[128];
	make_root(root);
	assert_true(quota_of(root) == 0); /* nothing mounted, nothing limited */
	write_v2(root, "/job/step", "200000 100000\n", NULL);
	assert_true(mw_quota_cpus(root, file, sizeof(file)) == 2.0);
	snprintf(want, sizeof(want), "%s/sys/fs/cgroup/job/step/cpu.max", root);
	assert_string_equal(file, want);
	write_v2(root, "/job/step", "max 100000\n", NULL);
	assert_true(quota_of(root) == 0);
	write_v2(root, "/job/step", "max 100000\n", "150000 50000\n"); /* a limit of the parent holds too */
	assert_true(quota_of(root) == 3.0);
	write_v2(root, "/job/step", "25000 100000\n", "300000 100000\n");
	assert_true(quota_of(root) == 0.25);
	drop_root(root);
	make_root(root); /* a container sees the host's name of its group, and its files at the mount point */
	write_file(root, "/proc/self/cgroup", "0::/../../system/pod\n");
	write_file(root, "/proc/self/mountinfo", MOUNT_V2);
	write_file(root, "/sys/fs/cgroup/cpu.max", "400000 100000\n");
	assert_true(quota_of(root) == 4.0);
	drop_root(root);
}

static void test_quota_v1(void **state)
{
	(void)state;
	char root[64];
	make_root(root);
	write_file(root, "/proc/self/cgroup",
		"5:cpuset:/docker/ab\n4:cpu,cpuacct:/docker/ab/in\n1:name=systemd:/x\n");
	write_file(root, "/proc/self/mountinfo", MOUNT_V1);
	write_file(root, "/sys/fs/cgroup/cpu,cpuacct/in/cpu.cfs_quota_us", "-1\n");
	write_file(root, "/sys/fs/cgroup/cpu,cpuacct/in/cpu.cfs_period_us", "100000\n");
	assert_true(quota_of(root) == 0);
	write_file(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
	write_file(root, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
	assert_true(quota_of(root) == 2.5);
	write_file(root, "/sys/fs/cgroup/cpu,cpuacct/in/cpu.cfs_quota_us", "100000\n");
	assert_true(quota_of(root) == 1.0);
	drop_root(root);
}

#define EIGHT "synthetic:pack:1 core:8 pu:1"

static uint32_t count(const char *workers, const char *bind, const char *topology,
	const struct mw_world *world, char *notes, size_t size)
{
	struct mw_layout *l = make(
		(struct mw_layout_request){
			.workers = workers, .bind = bind, .controller_cpu = -1, .topology = topology },
		world);
	uint32_t n = l->n_workers;
	snprintf(notes, size, "%s", l->notes);
	mw_layout_free(l);
	return n;
}

static void test_quota_limits_auto(void **state)
{
	(void)state;
	char root[64], notes[2048];
	make_root(root);
	struct mw_world world = { .root = root };
	write_v2(root, "/job/step", "200000 100000\n", NULL);
	assert_int_equal(count("auto", "close", EIGHT, &world, notes, sizeof(notes)), 2);
	assert_non_null(
		strstr(notes, "The cgroup's CPU quota is 2.00 CPUs (/sys/fs/cgroup/job/step/cpu.max).\n"));
	assert_non_null(strstr(notes, "There are 2 workers instead of 8 because of the CPU quota.\n"));
	assert_int_equal(count("auto", "list:1,3,5", EIGHT, &world, notes, sizeof(notes)), 2);
	/* a number is obeyed, and the price told */
	assert_int_equal(count("5", "close", EIGHT, &world, notes, sizeof(notes)), 5);
	assert_non_null(strstr(notes, "5 workers are more than the CPU quota feeds"));
	write_v2(root, "/job/step", "270000 100000\n", NULL); /* workers spin: a part of a CPU feeds none */
	assert_int_equal(count("auto", "close", EIGHT, &world, notes, sizeof(notes)), 2);
	write_v2(root, "/job/step", "10000 100000\n", NULL);
	assert_int_equal(count("auto", "close", EIGHT, &world, notes, sizeof(notes)), 1);
	write_v2(root, "/job/step", "1600000 100000\n", NULL); /* more than there is: no limit, no words */
	assert_int_equal(count("auto", "close", EIGHT, &world, notes, sizeof(notes)), 8);
	assert_null(strstr(notes, "quota"));
	drop_root(root);
}

/* ---- Hints */

static void check_hint(const char *topology, char *const *environ_, const char *cpus, const char *note)
{
	char is[2048], nodes[2048];
	struct mw_world world = { .environ = environ_ };
	struct mw_layout *l = make((struct mw_layout_request){ .workers = "auto",
					   .bind = "auto",
					   .places = MW_PLACES_AUTO,
					   .controller_cpu = -1,
					   .topology = topology },
		&world);
	describe(l, is, nodes, sizeof(is));
	assert_string_equal(is, cpus);
	if (!strstr(l->notes, note))
		fail_msg("\"%s\" is not in the notes:\n%s", note, l->notes);
	mw_layout_free(l);
}

#define ENV(...) ((char *[]){ __VA_ARGS__, NULL })

static void test_hints(void **state)
{
	(void)state;
	const char *four = "synthetic:pack:2 core:2 pu:2", *flat = "synthetic:core:3 pu:1";
	check_hint(four, ENV("HOME=/"), "0 2 4 6", "");
	check_hint(four, ENV("OMP_NUM_THREADS=2"), "0 2",
		"OMP_NUM_THREADS=2 sets the number of workers to 2.\n");
	check_hint(four, ENV("OMP_NUM_THREADS=3,2"), "0 2 4", "OMP_NUM_THREADS=3,2 sets");
	check_hint(flat, ENV("OMP_NUM_THREADS=64"), "0 1 2", "to 3, all PUs this process may use");
	check_hint(flat, ENV("OMP_NUM_THREADS=0"), "0 1 2", "OMP_NUM_THREADS=0 is ignored");
	check_hint(flat, ENV("OMP_NUM_THREADS=4x"), "0 1 2", "OMP_NUM_THREADS=4x is ignored");
	check_hint(
		four, ENV("OMP_PROC_BIND=SPREAD", "OMP_NUM_THREADS=2"), "0 4", "=SPREAD sets --bind spread");
	check_hint(four, ENV("OMP_PROC_BIND=spread,close"), "0 4 2 6", "sets --bind spread");
	check_hint(flat, ENV("OMP_PROC_BIND=false"), "- - -", "OMP_PROC_BIND=false sets --bind none");
	check_hint(flat, ENV("OMP_PROC_BIND=primary"), "0 1 2", "OMP_PROC_BIND=primary is ignored");
	check_hint(four, ENV("OMP_PLACES=cores"), "0-1 2-3 4-5 6-7", "OMP_PLACES=cores sets --places core");
	check_hint(four, ENV("OMP_PLACES=sockets(2)", "OMP_NUM_THREADS=1"), "0-3", "sets --places package");
	check_hint(four, ENV("OMP_PLACES=numa_domains", "OMP_NUM_THREADS=1"), "0-7", "sets --places numa");
	check_hint(flat, ENV("OMP_PLACES=ll_caches"), "0 1 2", "shows no such units: places are cores");
	check_hint(flat, ENV("OMP_PLACES={0},{2}"), "0 1 2", "use --bind list:");
	check_hint(four, ENV("SLURM_CPUS_PER_TASK=2"), "0 2",
		"SLURM_CPUS_PER_TASK=2 limits the workers to 2.\n");
	check_hint(four, ENV("SLURM_CPUS_PER_TASK=8"), "0 2 4 6", "allows the 4 workers");
	check_hint(
		four, ENV("SLURM_CPUS_PER_TASK=2", "OMP_NUM_THREADS=3"), "0 2 4", "OMP_NUM_THREADS=3 sets");
	check_hint(
		flat, ENV("SLURM_CPU_BIND=quiet,none"), "- - -", "SLURM_CPU_BIND=none: workers aren't bound");
	check_hint(four, ENV("SLURM_CPU_BIND=quiet,cores"), "0-1 2-3 4-5 6-7", "sets --places core");
	check_hint(flat, ENV("SLURM_CPU_BIND=quiet,mask_cpu:0x7"), "0 1 2", "");
}

/* What people say themselves is not changed by the environment. */
static void test_hints_yield(void **state)
{
	(void)state;
	char notes[1024];
	struct mw_world world = { .environ = ENV("OMP_NUM_THREADS=1", "OMP_PROC_BIND=false",
					  "OMP_PLACES=cores", "SLURM_CPUS_PER_TASK=1") };
	assert_int_equal(count("3", "spread", EIGHT, &world, notes, sizeof(notes)), 3);
	assert_int_equal(count("cores", "close", EIGHT, &world, notes, sizeof(notes)), 8);
	assert_null(strstr(notes, "OMP_"));
	assert_null(strstr(notes, "SLURM_"));
}

/* ---- Refusals */

static void refused(struct mw_layout_request req, int code, const char *words)
{
	char topology[4096];
	struct mw_layout *l = (void *)&req;
	struct mw_err err = { 0 };
	struct mw_world world = { 0 };
	at_srcdir(topology, sizeof(topology), req.topology ? req.topology : EIGHT);
	req.topology = topology;
	if (!req.workers)
		req.workers = "auto";
	assert_int_equal(mw_layout_new_in(&req, &world, &l, &err), code);
	assert_int_equal(err.code, code);
	assert_null(l);
	if (!strstr(err.msg, words))
		fail_msg("\"%s\" is not in: %s", words, err.msg);
}

#define REQ(...) ((struct mw_layout_request){ .controller_cpu = -1, .bind = "close", __VA_ARGS__ })

static void test_refusals(void **state)
{
	(void)state;
	static const char *const bad[] = { "0", "-1", "abc", "", "2.5", "1e99", "3 4",
		"99999999999999999999" };
	static const char *const lists[] = { "list:", "list:1,", "list:,1", "list:1-", "list:3-1", "list:a",
		"list:-1", "list:0-4:0", "list:0 1", "list:99999999999999999999" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refused(REQ(.workers = bad[i]), MW_EUSAGE, "give auto, cores, pus or a number from 1");
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		refused((struct mw_layout_request){ .bind = lists[i], .controller_cpu = -1 }, MW_EUSAGE,
			"0,2,4-7");
	refused(REQ(.workers = "9"), MW_ERESOURCE, "9 workers are more than the 8 PUs");
	refused(REQ(.workers = "9"), MW_ERESOURCE, "--oversubscribe");
	refused(REQ(.workers = "9"), MW_ERESOURCE, "--workers auto");
	refused(REQ(.workers = "9", .topology = TWO_NODES, .no_smt = true), MW_ERESOURCE, "under --no-smt");
	refused((struct mw_layout_request){ .bind = "none", .workers = "9", .controller_cpu = -1 },
		MW_ERESOURCE, "--oversubscribe");
	refused((struct mw_layout_request){ .bind = "list:1,2", .workers = "3", .controller_cpu = -1 },
		MW_ERESOURCE, "3 workers are more than the 2 PUs of --bind list");
	refused((struct mw_layout_request){ .bind = "list:7-8", .controller_cpu = -1 }, MW_ERESOURCE,
		"P#8 is not among the PUs this process may use, P# 0-7");
	refused((struct mw_layout_request){ .bind = "list:1,0-2", .controller_cpu = -1 }, MW_EUSAGE,
		"P#1 stands");
	refused((struct mw_layout_request){ .bind = "list:1", .no_smt = true, .controller_cpu = -1 },
		MW_EUSAGE, "exclude each other");
	refused((struct mw_layout_request){ .bind = "sideways", .controller_cpu = -1 }, MW_EUSAGE,
		"--bind sideways");
	refused((struct mw_layout_request){ .bind = "close", .controller_cpu = 8 }, MW_ERESOURCE,
		"P# 0-7 only");
	refused((struct mw_layout_request){ .bind = "close", .controller_cpu = -2 }, MW_EUSAGE,
		"--controller-cpu -2");
	refused(REQ(.topology = "synthetic:chairs:3"), MW_EUSAGE, "hwloc does not understand");
	refused(REQ(.topology = "tests/data/topo/none.xml"), MW_EDATA, "none.xml");
	refused(REQ(.topology = "tests/data/topo/README"), MW_EDATA, "README");
	refused(REQ(.places = MW_PLACES_L3), MW_ERESOURCE, "--places l3");
	refused(REQ(.places = MW_PLACES_PACKAGE, .topology = XML("bare")), MW_ERESOURCE, "--places package");
}

static void test_mask_leaves_nothing(void **state)
{
	(void)state;
	struct mw_layout *l;
	struct mw_err err = { 0 };
	struct mw_world world = { .affinity = "20-21" };
	struct mw_layout_request req = REQ(.workers = "auto", .topology = EIGHT);
	assert_int_equal(mw_layout_new_in(&req, &world, &l, &err), MW_ERESOURCE);
	assert_non_null(strstr(err.msg, "leaves none"));
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
		cmocka_unit_test(test_quota_files),
		cmocka_unit_test(test_quota_v1),
		cmocka_unit_test(test_quota_limits_auto),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_hints_yield),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_mask_leaves_nothing),
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
