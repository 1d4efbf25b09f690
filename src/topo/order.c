/*
 * order.c: the order in which workers take PUs.
 *
 * close: cores in logical order, a second hyperthread of any core only after the first ones of all cores.
 * spread: in turn over the biggest units, within each in turn over the next smaller ones, and so on;
 * hyperthreads last. A unit that has no more PUs is passed over, so unequal nodes and hybrid cores need no
 * special case.
 */
#include "topo/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct key {
	unsigned smt;
	int parent, child; /* the unit that is being ordered, and the smaller unit within it */
	uint32_t rank;     /* the place within the smaller unit, then within the unit */
	uint32_t pu;
};

enum level { CORE, L3, NODE, PACKAGE, MACHINE };

static int unit(const struct mw_pu *p, enum level level)
{
	switch (level) {
	case CORE: return p->core_key;
	case L3: return p->l3;
	case NODE: return p->numa;
	case PACKAGE: return p->package;
	default: return 0;
	}
}

#define COMPARE(x, y)   \
	if ((x) != (y)) \
	return (x) < (y) ? -1 : 1

static int by_turn(const void *va, const void *vb)
{
	const struct key *a = va, *b = vb;
	COMPARE(a->smt, b->smt);
	COMPARE(a->parent, b->parent);
	COMPARE(a->rank, b->rank);
	COMPARE(a->child, b->child);
	COMPARE(a->pu, b->pu);
	return 0;
}

/* Rank the PUs of every outer unit by taking them in turn from its inner units. */
static void take_turns(
	struct key *key, uint32_t n, const struct mw_machine *m, enum level inner, enum level outer)
{
	for (uint32_t i = 0; i < n; i++) {
		key[i].child = unit(&m->pu[key[i].pu], inner);
		key[i].parent = unit(&m->pu[key[i].pu], outer);
	}
	qsort(key, n, sizeof(*key), by_turn);
	for (uint32_t i = 0; i < n; i++) {
		bool first = i == 0 || key[i].smt != key[i - 1].smt || key[i].parent != key[i - 1].parent;
		key[i].rank = first ? 0 : key[i - 1].rank + 1;
	}
}

/* Are there several packages in one node (rather than several nodes in one package)? */
static bool node_holds_packages(const struct mw_machine *m)
{
	for (uint32_t i = 1; i < m->n_pus; i++)
		if (m->pu[i].numa == m->pu[i - 1].numa && m->pu[i].package != m->pu[i - 1].package)
			return true;
	return false;
}

static void order_spread(struct key *key, uint32_t n, const struct mw_machine *m)
{
	bool swap = node_holds_packages(m);
	enum level third = swap ? PACKAGE : NODE, fourth = swap ? NODE : PACKAGE;
	take_turns(key, n, m, CORE, L3);
	take_turns(key, n, m, L3, third);
	take_turns(key, n, m, third, fourth);
	take_turns(key, n, m, fourth, MACHINE);
}

static int order_all(
	struct mw_pu_order *o, const struct mw_machine *m, bool spread, bool no_smt, struct mw_err *err)
{
	struct key *key = mw_alloc_array(m->n_pus, sizeof(*key), "order of PUs", err);
	if (!key)
		return MW_ERESOURCE;
	for (uint32_t i = 0; i < m->n_pus; i++)
		if (!no_smt || !m->pu[i].smt)
			key[o->n++] = (struct key){ .smt = m->pu[i].smt, .pu = i };
	if (spread)
		order_spread(key, o->n, m);
	else
		qsort(key, o->n, sizeof(*key), by_turn);
	for (uint32_t i = 0; i < o->n; i++)
		o->pu[i] = key[i].pu;
	mw_free(key);
	return 0;
}

/* "7", "4-7" or "8-14:2" at *text, which is moved behind it. */
static bool parse_range(const char **text, long *first, long *last, long *stride)
{
	char *end;
	const char *s = *text;
	long *into[] = { first, last, stride };
	const char before[] = { 0, '-', ':' };
	*stride = 1;
	for (int i = 0; i < 3; i++) {
		if (i && *s != before[i])
			break;
		s += i > 0;
		if (*s < '0' || *s > '9')
			return false;
		errno = 0;
		*into[i] = strtol(s, &end, 10);
		if (errno || *into[i] > INT32_MAX)
			return false;
		s = end;
		if (i == 0)
			*last = *first;
	}
	*text = s;
	return *first <= *last && *stride > 0;
}

/* One more PU by P#. */
static int take(struct mw_pu_order *o, const struct mw_machine *m, long os, struct mw_err *err)
{
	char text[64];
	const struct mw_pu *p = mw_machine_pu(m, os);
	if (!p)
		MW_FAIL(err, RESOURCE, "--bind list: P#%ld is not among the PUs this process may use, P# %s",
			os, mw_cpus_text(m->allowed, text, sizeof(text)));
	uint32_t index = (uint32_t)(p - m->pu);
	for (uint32_t i = 0; i < o->n; i++)
		if (o->pu[i] == index)
			MW_FAIL(err, USAGE,
				"--bind list: P#%ld stands there twice; name each PU once and use "
				"--oversubscribe "
				"to share",
				os);
	o->pu[o->n++] = index;
	return 0;
}

static int order_list(struct mw_pu_order *o, const struct mw_machine *m, const char *list, struct mw_err *err)
{
	const char *s = list;
	long first, last, stride;
	do {
		if (!parse_range(&s, &first, &last, &stride) || (*s && *s != ','))
			MW_FAIL(err, USAGE,
				"--bind list:%s: the list is to look like 0,2,4-7 or 8-14:2 (P# of PUs)",
				list);
		for (long os = first; os <= last; os += stride)
			MW_TRY(take(o, m, os, err));
	} while (*s++ == ',');
	return 0;
}

int mw_pu_order_init(struct mw_pu_order *o, const struct mw_machine *m, enum mw_bind bind, const char *list,
	bool no_smt, struct mw_err *err)
{
	o->n = 0;
	o->pu = mw_alloc_array(m->n_pus, sizeof(*o->pu), "order of PUs", err);
	if (!o->pu)
		return MW_ERESOURCE;
	if (bind == MW_BIND_LIST)
		return order_list(o, m, list, err);
	return order_all(o, m, bind == MW_BIND_SPREAD, no_smt, err);
}

void mw_pu_order_fini(struct mw_pu_order *o)
{
	mw_free(o->pu);
	o->pu = NULL;
}
