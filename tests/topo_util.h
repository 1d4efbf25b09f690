/* topo_util.h: layouts of synthetic and recorded machines inside a test. */
#ifndef MW_TESTS_TOPO_UTIL_H
#define MW_TESTS_TOPO_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "topo/machine.h"

#define XML(name) "tests/data/topo/" name ".xml"
#define TWO_NODES "synthetic:pack:2 numa:1 core:4 pu:2"
#define EIGHT     "synthetic:pack:1 core:8 pu:1"
#define REQ(...)  ((struct mw_layout_request){ .controller_cpu = -1, .bind = "close", __VA_ARGS__ })

static inline void at_srcdir(char *buf, size_t size, const char *topology)
{
	const char *dir = getenv("MW_SRCDIR");
	if (!strncmp(topology, "synthetic:", 10))
		snprintf(buf, size, "%s", topology);
	else
		snprintf(buf, size, "%s/%s", dir ? dir : ".", topology);
}

static inline struct mw_layout *make(struct mw_layout_request req, const struct mw_world *world)
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

static inline void describe(const struct mw_layout *l, char *cpus, char *nodes, size_t size)
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

static inline uint32_t count(const char *workers, const char *bind, const char *topology,
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

#endif
