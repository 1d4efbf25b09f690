/* unit_topo_draw.c: `mixwild topo`: golden trees, 80 columns whatever the machine, a picture that is XML, values in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../include/mixwild.h"

/* Options as "name=value"; NULL at the end. The text is the caller's. */
static char *topo(const char *topology, const char *const *options)
{
	char path[4096], *text = NULL;
	size_t size;
	struct mw_err err = { 0 };
	struct mw_job *job = NULL;
	const char *dir = getenv("MW_SRCDIR");
	assert_int_equal(mw_job_new("topo", &job, &err), 0);
	FILE *f = open_memstream(&text, &size);
	mw_job_set_out(job, f);
	snprintf(path, sizeof(path), "%s%s",
		strchr(topology, ':') ? ""
		: dir                 ? dir
				      : ".",
		strchr(topology, ':') ? topology : "");
	if (!strchr(topology, ':'))
		snprintf(path, sizeof(path), "%s/tests/data/topo/%s.xml", dir ? dir : ".", topology);
	mw_job_set(job, "topology", path, &err);
	mw_job_set(job, "bind", "close", &err);
	mw_job_set(job, "places", "pu", &err);
	for (; options && *options; options++) {
		char name[64], *value;
		snprintf(name, sizeof(name), "%s", *options);
		value = strchr(name, '=');
		*value++ = '\0';
		mw_job_set(job, name, value, &err);
	}
	if (err.code || mw_job_run(job, &err))
		fail_msg("%s: %s", topology, err.msg);
	mw_job_free(job);
	fclose(f);
	return text;
}

#define WITH(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void check(const char *topology, const char *const *options, const char *want)
{
	char *text = topo(topology, options);
	assert_string_equal(text, want);
	free(text);
}

static void test_tree(void **state)
{
	(void)state;
	check("synthetic:pack:2 numa:1(memory=4GB) l3:2 core:2 pu:2",
		WITH("protocol=numa", "workers=8", "data-place=shard", "bind=spread"),
		"machine: 2 packages, 2 NUMA nodes, 8 cores, 16 PUs\n"
		"  package L#0\n"
		"    node L#0 P#0, 4 GB\n"
		"      L3 L#0-1, 2 cores each\n"
		"      cores L#0-3     PU L#0-6:2      P#0-6:2          w0-6:2\n"
		"                      PU L#1-7:2      P#1-7:2          idle\n"
		"      replica r0\n"
		"      data: the rows of w0-6:2\n"
		"  package L#1\n"
		"    node L#1 P#1, 4 GB\n"
		"      L3 L#2-3, 2 cores each\n"
		"      cores L#4-7     PU L#8-14:2     P#8-14:2         w1-7:2\n"
		"                      PU L#9-15:2     P#9-15:2         idle; controller on P#15\n"
		"      replica r1\n"
		"      data: the rows of w1-7:2\n"
		"8 workers; the controller is on P#15\n"
		"protocol numa: 2 replicas\n"
		"  r0         viewed and pushed to by w0-6:2\n"
		"  r1         viewed and pushed to by w1-7:2\n"
		"  w0 mixes, every 1024 own steps: r0-1 <- mean of r0-1\n"
		"  (the other workers' plans are alike)\n"
		"- The topology is read from synthetic:pack:2 numa:1(memory=4GB) l3:2 core:2\n"
		"  pu:2: nothing is bound here.\n");
}

/* L# and P# differ where the OS counts another way; a node without memory; cores of two kinds. */
static void test_odd_machines(void **state)
{
	(void)state;
	char *text = topo("interleaved", WITH("protocol=cached", "workers=8"));
	assert_non_null(strstr(text, "      cores L#0-3     PU L#0-6:2      P#0-3            w0-3\n"
				     "                      PU L#1-7:2      P#8-11           idle\n"));
	assert_non_null(strstr(text, "  w0-7       view r1-15:2, push to r1-15:2, one each\n"));
	free(text);
	text = topo("memoryless", WITH("protocol=async-ps"));
	assert_non_null(strstr(text, "    node L#1 P#1: uses the memory of node P#2\n"));
	assert_non_null(strstr(text, "      replicas r3-6\n"));
	assert_null(strstr(strstr(text, "replicas r3-6") + 1, "replicas r3-6"));
	assert_non_null(strstr(text, "  w0-5       view r1-6, push to r0, one each\n"
				     "  w0 mixes, every own step: r1 <- r0\n"));
	free(text);
	text = topo("hybrid", WITH("workers=pus"));
	assert_non_null(strstr(text, "cores L#0-1     PU L#0,2        P#0,2            w0-1\n"));
	assert_non_null(strstr(text, "cores L#2-5     PU L#4-7        P#4-7            w2-5\n"));
	free(text);
	text = topo("bare", NULL);
	assert_non_null(strstr(text, "w0-2"));
	free(text);
}

static void test_columns(void **state)
{
	(void)state;
	static const char *const topologies[] = { "interleaved", "hybrid", "memoryless", "cpuless", "hbm",
		"mems", "subnuma", "restricted", "bare", "synthetic:core:1 pu:1",
		"synthetic:numa:2 core:1 pu:8", "synthetic:pack:4 numa:2 l3:4 core:8 pu:1",
		"synthetic:pack:2 numa:4 l3:4 core:8 pu:4",
		"synthetic:numa:2 core:32 pu:2(indexes=core:numa)", "synthetic:numa:2 pack:2 core:2 pu:1" };
	static const char *const protocols[] = { "protocol=hogwild", "protocol=cached", "protocol=numa",
		"protocol=async-ps", "protocol=sync-ring", "protocol=async-ring", "protocol=token-ring",
		"protocol=local-sgd" };
	static const char *const binds[] = { "bind=close", "bind=spread", "bind=none" };
	for (size_t i = 0; i < sizeof(topologies) / sizeof(*topologies); i++)
		for (size_t p = 0; p < sizeof(protocols) / sizeof(*protocols); p++)
			for (size_t b = 0; b < 3; b++) {
				char *text = topo(topologies[i], WITH(protocols[p], binds[b], "places=core"));
				uint32_t lines = 0;
				for (const char *s = text; *s;
					s += strcspn(s, "\n"), s += *s == '\n', lines++)
					if (strcspn(s, "\n") > 80 || s[strcspn(s, "\n") - 1] == ' ')
						fail_msg("%s %s: %.*s", topologies[i], protocols[p],
							(int)strcspn(s, "\n"), s);
				assert_in_range(lines, 4, 120); /* folded */
				free(text);
			}
}

/* Tags are closed in order, and no worker or replica that fits is missing. */
static void check_xml(const char *s)
{
	char open[16][16];
	int depth = 0;
	for (; (s = strchr(s, '<')); s++) {
		size_t n = strcspn(s + 1, " />");
		const char *end = strchr(s, '>');
		assert_non_null(end);
		if (s[1] == '/') {
			n = strcspn(s + 2, ">");
			assert_true(depth-- > 0 && !strncmp(open[depth], s + 2, n) && !open[depth][n]);
		} else if (end[-1] != '/') {
			assert_true(depth < 16 && n < 16);
			snprintf(open[depth++], 16, "%.*s", (int)n, s + 1);
		}
		for (const char *c = s + 1; c < end; c++)
			assert_true(*c != '<' && *c != '&');
	}
	assert_int_equal(depth, 0);
}

static void test_svg(void **state)
{
	(void)state;
	char *text = topo("synthetic:pack:2 numa:1 core:4 pu:2", WITH("protocol=async-ps", "format=svg"));
	check_xml(text);
	assert_non_null(strstr(text, ">w7</text>"));
	assert_non_null(strstr(text, ">r8</text>"));
	assert_non_null(strstr(text, "package L#1, node P#1"));
	uint32_t lines = 0;
	for (const char *s = text; (s = strstr(s, "C")); s++)
		lines += s[-1] == ' ' && s[1] >= '0' && s[1] <= '9';
	assert_int_equal(lines, 16); /* each of 8 workers views one replica and pushes to one */
	assert_non_null(strstr(text, "nothing is bound"));
	free(text);
	text = topo("synthetic:pack:4 numa:2 l3:4 core:8 pu:1", WITH("protocol=cached", "format=svg"));
	check_xml(text);
	assert_non_null(strstr(text, ">w255</text>"));
	free(text);
	text = topo("memoryless", WITH("protocol=numa", "format=svg"));
	check_xml(text);
	free(text);
}

static json_int_t at(json_t *root, const char *list, size_t i, const char *key)
{
	return json_integer_value(json_object_get(json_array_get(json_object_get(root, list), i), key));
}

static void test_json(void **state)
{
	(void)state;
	char *text = topo("interleaved", WITH("protocol=async-ps", "workers=5", "format=json"));
	json_t *root = json_loads(text, 0, NULL), *server;
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "replicas")), 6);
	server = json_array_get(json_object_get(root, "replicas"), 0);
	assert_int_equal(json_array_size(json_object_get(server, "pushed_by")), 5);
	assert_int_equal(json_array_size(json_object_get(server, "viewed_by")), 0);
	assert_int_equal(at(root, "replicas", 5, "node_os"), 1); /* worker 4 is on the second node */
	assert_int_equal(at(root, "replicas", 4, "node_os"), 0);
	assert_int_equal(at(root, "pus", 1, "os"), 8);
	assert_int_equal(at(root, "pus", 1, "logical"), 1);
	assert_true(json_is_false(json_object_get(root, "applied")));
	assert_string_equal(json_string_value(json_object_get(root, "plan")), "r1 <- r0");
	json_decref(root);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_odd_machines),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_svg),
		cmocka_unit_test(test_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
