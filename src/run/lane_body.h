/* lane_body.h: planned events are performed; the file that includes it defines LANES, the function's name. */
#include "base/kernel_inline.h"
#include "model/link.h"
#include "run/lane.h"
#include "run/worker_impl.h"

/* How many events before its turn a row is asked for: to be viewed, from memory; to be pushed, from an outer cache. */
enum { AHEAD_VIEW = 3, AHEAD_PUSH = 1 };

/*
 * Before that its first lines are asked for, of many rows at once. Rows are on pages all over memory, whose addresses must
 * be translated; an instruction that waits for this can't retire, and soon the CPU has no room for others behind it. Several
 * translations at a time take hardly longer than one.
 */
enum { GROUP = 32 };

/* Most rows have few lines: those are asked for without a branch that depends on how many. */
static inline __attribute__((always_inline)) void fetch_row(
	const struct mw_dataset *t, uint64_t from, uint64_t to)
{
	enum { LINE = 16, LINES = 6 };
	for (uint64_t k = 0; k < LINES; k++) {
		uint64_t o = from + k * LINE < to ? from + k * LINE : to;
		__builtin_prefetch(&t->col[o]);
		__builtin_prefetch(&t->val[o]);
	}
	for (uint64_t o = from + LINES * LINE; o < to; o += LINE) {
		__builtin_prefetch(&t->col[o]);
		__builtin_prefetch(&t->val[o]);
	}
}

/* Of the group of events that begins with i: ask for where their rows begin and for their labels. */
static inline __attribute__((always_inline)) void fetch_extents(const struct mw_lanes *s, uint32_t i)
{
	for (uint32_t end = i + GROUP < s->n_planned ? i + GROUP : s->n_planned; i < end; i++) {
		__builtin_prefetch(&s->data->row_ptr[s->planned[i].row]);
		__builtin_prefetch(&s->data->y[s->planned[i].row]);
	}
}

/* Then have these, and ask for the first lines. */
static inline __attribute__((always_inline)) void find_rows(struct mw_lanes *s, uint32_t i)
{
	const struct mw_dataset *t = s->data;
	for (uint32_t end = i + GROUP < s->n_planned ? i + GROUP : s->n_planned; i < end; i++) {
		struct mw_lane_event *e = &s->planned[i];
		e->at = t->row_ptr[e->row];
		e->n = (uint32_t)(t->row_ptr[e->row + 1] - e->at);
		e->y = t->y[e->row];
		__builtin_prefetch(&t->col[e->at]);
		__builtin_prefetch(&t->val[e->at]);
	}
}

static inline __attribute__((always_inline)) void fetch_rows(const struct mw_lanes *s, uint32_t i)
{
	if (i + AHEAD_VIEW < s->n_planned) {
		const struct mw_lane_event *e = &s->planned[i + AHEAD_VIEW];
		fetch_row(s->data, e->at, e->at + e->n);
	}
	if (i + AHEAD_PUSH < s->n_planned) {
		const struct mw_lane_delta *d = &s->delta[s->planned[i + AHEAD_PUSH].worker];
		fetch_row(s->data, d->at, d->at + d->n);
	}
}

static inline __attribute__((always_inline)) void push(
	const struct mw_lanes *s, const struct mw_lane_delta *d)
{
	mwk_axpy_sparse(d->coef, s->data->col + d->at, s->data->val + d->at, s->x, d->n);
	if (s->linear->bias)
		mwk_add(s->x + s->data->features, d->coef);
}

static inline __attribute__((always_inline)) bool view(
	const struct mw_lanes *s, const struct mw_lane_event *e, struct mw_lane_delta *d, enum mw_link link)
{
	const struct mw_dataset *t = s->data;
	float z = mwk_dot_sparse(s->x, t->col + e->at, t->val + e->at, e->n);
	z = s->linear->bias ? z + mw_ld(s->x + t->features) : z;
	d->at = e->at;
	d->n = e->n;
	d->coef = mw_link_dloss(link, z, e->y) * e->scale;
	if (!(e->what & MW_LANE_LOSS))
		return true;
	float loss = mw_link_loss(link, z, e->y);
	d->loss = mw_mean_loss(d->loss, loss, !(e->what & MW_LANE_FIRST));
	return isfinite(loss);
}

/* link is a constant in each caller. */
static inline __attribute__((always_inline)) bool perform(struct mw_lanes *s, enum mw_link link)
{
	bool finite = true;
	fetch_extents(s, 0);
	fetch_extents(s, GROUP);
	find_rows(s, 0);
	for (uint32_t i = 0; i < s->n_planned; i++) {
		if (i % GROUP == 0) {
			fetch_extents(s, i + 2 * GROUP);
			find_rows(s, i + GROUP);
		}
		const struct mw_lane_event *e = &s->planned[i];
		struct mw_lane_delta *d = &s->delta[e->worker];
		fetch_rows(s, i);
		if (e->what & MW_LANE_PUSH)
			push(s, d);
		if (e->what & MW_LANE_VIEW)
			finite &= view(s, e, d, link);
	}
	return finite;
}

bool LANES(struct mw_lanes *s)
{
	switch (s->linear->link) {
	case MW_LINK_LOGISTIC: return perform(s, MW_LINK_LOGISTIC);
	case MW_LINK_HINGE: return perform(s, MW_LINK_HINGE);
	case MW_LINK_SIGMOID_SQUARED: return perform(s, MW_LINK_SIGMOID_SQUARED);
	default: return perform(s, MW_LINK_SQUARED);
	}
}
