/*
 * counters.c: random activation with own-step counters (--mix-every k, blocks in turn), exactly, while all counters
 * together have few states: M(state) = E[Phi^T Phi | counters now] obeys a linear recursion over states, of which a run's
 * start (all counters 0) is reported. Numerically the supremum over start times is attained there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"

#define MAX_CELLS 2e6 /* states times rows^2 */

struct chain {
	struct mix_law *law;
	uint32_t n_mixers, every;
	uint32_t *mixer; /* workers that exchange at all */
	uint64_t states;
	double *now, *next, *tmp;
	struct mix_moments *step;
};

static bool fits(struct chain *c)
{
	const struct mix_law *law = c->law;
	const struct mw_protocol *p = law->p;
	double states = 1;
	for (uint32_t w = 0; w < p->workers; w++) {
		if (p->slot[w].n > 1 && p->pick == MW_PICK_CYCLIC)
			return false;
		if (p->slot[w].n) {
			c->mixer[c->n_mixers++] = w;
			states *= c->every;
		}
		if (states * law->rows * law->rows > MAX_CELLS)
			return false;
	}
	c->states = (uint64_t)states;
	return p->due == MW_DUE_ALWAYS && c->n_mixers;
}

/* next(state) := sum over workers of (1/n) M(state after its step), through its exchange where that is due. */
static void advance(struct chain *c)
{
	const struct mix_law *law = c->law;
	size_t cells = (size_t)law->rows * law->rows;
	double p = 1.0 / law->workers, idle = 1 - p * c->n_mixers;
	for (uint64_t s = 0; s < c->states; s++) {
		uint64_t place = 1;
		double *to = c->next + s * cells;
		for (size_t i = 0; i < cells; i++)
			to[i] = idle * c->now[s * cells + i];
		for (uint32_t m = 0; m < c->n_mixers; m++, place *= c->every) {
			bool due = s / place % c->every == c->every - 1;
			const double *from = c->now + (due ? s - place * (c->every - 1) : s + place) * cells;
			if (due) {
				memcpy(c->tmp, from, cells * sizeof(*from));
				mix_moments_apply(c->step, c->mixer[m], c->tmp);
				from = c->tmp;
			}
			for (size_t i = 0; i < cells; i++)
				to[i] += p * from[i];
		}
	}
	double *swap = c->now;
	c->now = c->next;
	c->next = swap;
}

static int chain_init(struct chain *c, struct mw_err *err)
{
	size_t n = c->law->rows, cells = n * n;
	c->now = mw_alloc_array(c->states * cells, sizeof(double), "moments of all counters", err);
	c->next = mw_alloc_array(c->states * cells, sizeof(double), "moments of all counters", err);
	c->tmp = mw_alloc_array(cells, sizeof(double), "moments of all counters", err);
	if (!c->now || !c->next || !c->tmp)
		return MW_ERESOURCE;
	for (uint64_t s = 0; s < c->states; s++)
		for (size_t i = 0; i < n; i++)
			c->now[s * cells + i * n + i] = 1;
	return mix_moments_new(c->law, &c->step, err);
}

static int run(struct chain *c, struct mw_mixing_result *r, struct mw_err *err)
{
	struct mix_law *law = c->law;
	struct mix_space space;
	double t2 = law->threshold * law->threshold, n2 = (double)law->rows * law->rows;
	MW_TRY(chain_init(c, err));
	MW_TRY(mix_space_init(&space, law->rows, law->pi, err));
	for (double k = 1; mix_spend(law, 8.0 * c->states * n2 * (c->n_mixers + 1.0), r); k++) {
		advance(c);
		if (!mix_top_within(&space, c->now, t2))
			continue;
		r->t_mix = k;
		r->mixes = true;
		break;
	}
	mix_space_fini(&space);
	return MW_OK;
}

int mix_counters(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err)
{
	struct chain c = { .law = law, .every = law->every * (law->random_blocks ? 1 : law->blocks) };
	*done = false;
	if (law->kind != MIX_COUNTERS || law->norm != MW_NORM_L2 || law->use_form)
		return MW_OK;
	c.mixer = mw_alloc_array(law->workers, sizeof(*c.mixer), "workers that mix", err);
	if (!c.mixer)
		return MW_ERESOURCE;
	int ret = MW_OK;
	if (fits(&c)) {
		r->method = "second-moment recursion over all own-step counters";
		*done = true;
		ret = run(&c, r, err);
	}
	mix_moments_free(c.step);
	mw_free(c.now);
	mw_free(c.next);
	mw_free(c.tmp);
	mw_free(c.mixer);
	return ret;
}
