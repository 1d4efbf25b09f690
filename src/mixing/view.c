/*
 * view.c: the mixing time with the views that workers hold while they compute (exact.h).
 *
 * A worker reads its view right after its own last exchange and uses it at its own next push. Meanwhile others may have
 * exchanged with the row it was read from, so what is used is that row as it was a + 1 steps before, a being the steps of
 * others in between: n - 1 in turn; geometric with mean n - 1 at random, and independent of what happened before the
 * read. So d_view(k) is at most d(k - 1 - a), or the mean over a of that (of its square, in l2), where d of a negative
 * number is 1. A row that none but its worker changes is the view: nothing is added.
 */
#include <math.h>

#include "base/mem.h"
#include "mixing/exact.h"
#include "mixing/internal.h"

/* Steps that are followed, as a multiple of t_mix and of the workers; longer ones are not worth their cost. */
enum { REACH = 8, LONGEST = 1 << 18 };
/*
 * What is older than this many rounds weighs less than exp(-30) in the mean over a: of such distances it is enough to know
 * that they are at most 1. The crossing is looked for in so many rounds after t_mix at first, where it nearly always is.
 */
enum { MEMORY = 30, NEAR = 8 };

/* Does anybody but worker w change the row that it views, between two pushes of its own? */
static bool others_change(const struct mw_protocol *p, uint32_t w)
{
	for (uint32_t v = 0; v < p->workers; v++)
		if (v != w && (p->push_row[v] == p->view_row[w] ||
				      (p->push2_row && p->push2_row[v] == p->view_row[w])))
			return true;
	for (uint32_t s = 0; s < p->n_slots; s++)
		for (uint32_t c = 0; s != w && c < p->slot[s].n; c++)
			for (uint32_t i = 0; i < p->slot[s].plan[c]->n_rows; i++)
				if (p->slot[s].plan[c]->row[i].dst == p->view_row[w])
					return true;
	return false;
}

static bool held_apart(const struct mw_protocol *p)
{
	bool apart = false;
	for (uint32_t w = 0; w < p->workers; w++)
		apart |= others_change(p, w);
	return apart && p->clock == MW_CLOCK_EVENT;
}

/* The smallest k whose mean of d(k - 1 - a) is within the threshold; NAN: not among the first n. */
static double crossing(const double *d, uint32_t n, double workers, bool square, double threshold)
{
	double act = 1 / workers, older = 1; /* older: mean over a, of all a that have come into reach */
	for (uint32_t k = 1; k <= n; k++) {
		/* d(0): nothing has been exchanged since the write */
		double now = k == 1 ? 1 : d[k - 2];
		older = act * (square ? now * now : now) + (1 - act) * older;
		if (older <= threshold * (1 + MIX_TOL))
			return k;
	}
	return NAN;
}

/* The crossing among the first n distances; d: room for them. */
static double within(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs,
	const struct mw_mixing_result *r, double n, double *d)
{
	struct mw_err none = { 0 };
	double from = fmax(0, r->t_mix - (double)MEMORY * p->workers);
	if (mw_mixing_curve(p, knobs, (uint32_t)from, (uint32_t)n, d, &none))
		return NAN;
	return crossing(d, (uint32_t)n, p->workers, r->norm == MW_NORM_L2,
		r->norm == MW_NORM_L2 ? r->eps * r->eps : r->eps);
}

static double at_random(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs,
	const struct mw_mixing_result *r, struct mw_err *err)
{
	double n = p->workers, value = NAN, near = r->t_mix + NEAR * n, most = REACH * (r->t_mix + n);
	if (p->workers < 2)
		return r->t_mix;
	if (p->rows == 1) /* missing: a write that came after the read */
		return ceil(log(r->norm == MW_NORM_L2 ? r->eps * r->eps : r->eps) / log1p(-1.0 / p->workers) *
			    (1 - MIX_TOL));
	if (!(most <= LONGEST))
		return NAN;
	double *d = mw_alloc_array((size_t)fmax(near, most), sizeof(*d), "curve of distances", err);
	if (d)
		value = within(p, knobs, r, fmin(near, most), d);
	if (d && isnan(value) && near < most)
		value = within(p, knobs, r, most, d);
	mw_free(d);
	return value;
}

int mw_mixing_view(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs,
	const struct mw_mixing_result *r, struct mw_mixing_view *out, struct mw_err *err)
{
	struct mw_err own = { 0 };
	*out = (struct mw_mixing_view){ .t_mix = r->mixes ? r->t_mix : NAN, .bound = r->bound };
	if (!r->mixes || knobs->delay > 0 || r->bound || !held_apart(p))
		return MW_OK;
	out->bound = p->rows > 1;
	if (knobs->activation == MW_ACT_RR)
		out->t_mix = p->rows == 1 ? p->workers : r->t_mix + p->workers;
	else
		out->t_mix = at_random(p, knobs, r, &own);
	return own.code ? mw_err_set(err, own.code, "%s", own.msg) : MW_OK;
}
