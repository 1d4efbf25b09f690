/* mixing_util.h: protocols by name and their exact mixing times, for tests. */
#ifndef MW_TESTS_MIXING_UTIL_H
#define MW_TESTS_MIXING_UTIL_H

#include "comm_util.h"

#include "comm/protocol.h"
#include "mixing/exact.h"

#define MW_PROTOCOL(name) extern const struct mw_protocol_ops mw_protocol_##name;
#include "registry.def"

static const struct mw_protocol_ops *const protocols[] = {
#define MW_PROTOCOL(name) &mw_protocol_##name,
#include "registry.def"
};

struct made {
	struct mw_graph *graph;
	struct mw_protocol *p;
};

static inline const struct mw_protocol_ops *find(const char *name)
{
	for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
		if (!strcmp(protocols[i]->name, name))
			return protocols[i];
	fail_msg("no protocol %s", name);
	return NULL;
}

static inline struct made make(const char *name, const char *graph, uint32_t n, bool random_edges)
{
	struct mw_err err = { 0 };
	struct made m = { 0 };
	const struct mw_protocol_ops *ops = find(name);
	if (ops->default_graph)
		m.graph = graph_of(graph ? graph : ops->default_graph, n);
	struct mw_protocol_config c = {
		.workers = n, .nodes = 1, .graph = m.graph, .random_edges = random_edges
	};
	if (mw_protocol_new(ops, NULL, &c, &m.p, &err))
		fail_msg("%s: %s", name, err.msg);
	return m;
}

static inline void drop(struct made *m)
{
	mw_protocol_free(m->p);
	mw_graph_free(m->graph);
}

static inline struct mw_mixing_result solve(const struct mw_protocol *p, struct mw_mixing_knobs k)
{
	struct mw_mixing_result r;
	struct mw_err err = { 0 };
	if (mw_mixing_exact(p, &k, &r, &err))
		fail_msg("%s", err.msg);
	return r;
}

static inline struct mw_mixing_result of(
	const char *name, const char *graph, uint32_t n, struct mw_mixing_knobs k)
{
	struct made m = make(name, graph, n, k.activation != MW_ACT_RR);
	k.sums = true;
	struct mw_mixing_result r = solve(m.p, k);
	drop(&m);
	return r;
}

/* Knobs under random activation, or with workers in turn. */
#define KNOBS(...)   ((struct mw_mixing_knobs){ .activation = MW_ACT_RANDOM, .seed = 1, __VA_ARGS__ })
#define TURN(...)    ((struct mw_mixing_knobs){ .activation = MW_ACT_RR, .seed = 1, __VA_ARGS__ })
#define L2(...)      KNOBS(.norm = MW_NORM_L2, __VA_ARGS__)
#define TV(...)      KNOBS(.norm = MW_NORM_TV, __VA_ARGS__)
#define L2_TURN(...) TURN(.norm = MW_NORM_L2, __VA_ARGS__)
#define TV_TURN(...) TURN(.norm = MW_NORM_TV, __VA_ARGS__)

static inline void is_time(struct mw_mixing_result r, double want, const char *what)
{
	if (!r.mixes || !r.exact || r.t_mix != want)
		fail_msg("%s: t_mix %g (%s; %s), not %g", what, r.t_mix, r.method, r.reason, want);
}

/* Exact l2 and TV of a protocol with these knobs. */
static inline void pair(
	const char *name, const char *graph, uint32_t n, struct mw_mixing_knobs k, double l2, double tv)
{
	k.norm = MW_NORM_L2;
	is_time(of(name, graph, n, k), l2, name);
	k.norm = MW_NORM_TV;
	is_time(of(name, graph, n, k), tv, name);
}

static inline struct mw_plan *average(uint32_t i, uint32_t j)
{
	struct mw_err err = { 0 };
	struct mw_plan *p;
	const uint32_t src[2] = { i, j };
	const double half[2] = { .5, .5 };
	assert_int_equal(mw_plan_new(2, 4, &p, &err), MW_OK);
	mw_plan_add_row(p, i, 2, src, half);
	mw_plan_add_row(p, j, 2, src, half);
	return p;
}

static inline struct mw_mixing_result sequence(struct mw_plan **plan, uint32_t period, uint32_t rows,
	const double *pi, const uint32_t *use, uint32_t n_use, enum mw_norm norm)
{
	struct mw_err err = { 0 };
	struct mw_mixing_result r;
	struct mw_mixing_knobs k = { .norm = norm };
	if (mw_mixing_sequence(
		    (const struct mw_plan *const *)plan, period, rows, pi, use, use, n_use, &k, &r, &err))
		fail_msg("%s", err.msg);
	return r;
}

#endif
