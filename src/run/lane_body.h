/* lane_body.h: planned events are performed; the file that includes it defines LANES, the function's name. */
#include "base/kernel_inline.h"
#include "model/link.h"
#include "run/lane.h"
#include "run/worker_impl.h"

/* How many events before its turn a row is asked for: to be viewed, from memory; to be pushed, from an outer cache. */
enum { AHEAD_EXTENT = 16, AHEAD_VIEW = 3, AHEAD_PUSH = 1 };

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

static inline __attribute__((always_inline)) void fetch_extent(const struct mw_dataset *t, uint64_t row)
{
	__builtin_prefetch(&t->row_ptr[row]);
	__builtin_prefetch(&t->y[row]);
}

static inline __attribute__((always_inline)) void fetch_ahead(const struct mw_lanes *s, uint32_t i)
{
	const struct mw_dataset *t = s->data;
	if (i + AHEAD_EXTENT < s->n_planned)
		fetch_extent(t, s->planned[i + AHEAD_EXTENT].row);
	if (i + AHEAD_VIEW < s->n_planned) {
		uint64_t row = s->planned[i + AHEAD_VIEW].row;
		fetch_row(t, t->row_ptr[row], t->row_ptr[row + 1]);
	}
	if (i + AHEAD_PUSH < s->n_planned) {
		const struct mw_lane_delta *d = &s->delta[s->planned[i + AHEAD_PUSH].worker];
		fetch_row(t, d->at, d->at + d->n);
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
	d->at = t->row_ptr[e->row];
	d->n = (uint32_t)(t->row_ptr[e->row + 1] - d->at);
	float y = t->y[e->row], z = mwk_dot_sparse(s->x, t->col + d->at, t->val + d->at, d->n);
	z = s->linear->bias ? z + mw_ld(s->x + t->features) : z;
	d->coef = mw_link_dloss(link, z, y) * e->scale;
	if (!(e->what & MW_LANE_LOSS))
		return true;
	float loss = mw_link_loss(link, z, y);
	d->loss = mw_mean_loss(d->loss, loss, !(e->what & MW_LANE_FIRST));
	return isfinite(loss);
}

/* link is a constant in each caller. */
static inline __attribute__((always_inline)) bool perform(const struct mw_lanes *s, enum mw_link link)
{
	bool finite = true;
	for (uint32_t i = 0; i < AHEAD_EXTENT && i < s->n_planned; i++)
		fetch_extent(s->data, s->planned[i].row);
	for (uint32_t i = 0; i < s->n_planned; i++) {
		const struct mw_lane_event *e = &s->planned[i];
		struct mw_lane_delta *d = &s->delta[e->worker];
		fetch_ahead(s, i);
		if (e->what & MW_LANE_PUSH)
			push(s, d);
		if (e->what & MW_LANE_VIEW)
			finite &= view(s, e, d, link);
	}
	return finite;
}

bool LANES(const struct mw_lanes *s)
{
	switch (s->linear->link) {
	case MW_LINK_LOGISTIC: return perform(s, MW_LINK_LOGISTIC);
	case MW_LINK_HINGE: return perform(s, MW_LINK_HINGE);
	case MW_LINK_SIGMOID_SQUARED: return perform(s, MW_LINK_SIGMOID_SQUARED);
	default: return perform(s, MW_LINK_SQUARED);
	}
}
