/* unit_topo_limits.c: what limits a layout: CPU quotas, variables of OpenMP and Slurm, and what is refused. */
#include "topo_util.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

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
	assert_non_null(strstr(notes, "There is 1 worker instead of 8 because of the CPU quota.\n"));
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
	refused(REQ(.topology = "synthetic:pack:2 [numa(memory=9)] core:64(indexes=1,2) 129"), MW_EUSAGE,
		"more than 16384 PUs");
	refused(REQ(.topology = "synthetic:99999999999999999999"), MW_EUSAGE, "more than 16384 PUs");
	refused(REQ(.topology = XML("nopu")), MW_EDATA, "make one by: lstopo FILE.xml");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quota_files),
		cmocka_unit_test(test_quota_v1),
		cmocka_unit_test(test_quota_limits_auto),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_hints_yield),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_mask_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
