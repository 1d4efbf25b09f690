/*
 * ssp.c: the mixing time of stale synchronous parallel (theory.md 1.2 i): copies of a server that are renewed when the
 * bound says so, behind a gate that holds back whoever leads the slowest worker by more than the bound.
 *
 * The gate and the renewals are simulated as runs perform them (run/sim.c: turns that find the gate closed pass). A copy
 * keeps the share q of what it missed at every renewal (0 without slack), so d(k) = E[q^m] (its root with q^2, in l2), m
 * the renewals in k steps from a random start. At random workers are alike: one of them is watched, a long run is cut into
 * batches, and how their crossings scatter is the standard error. In turn nothing is random: the longest wait of any worker
 * from any start counts.
 */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "mixing/internal.h"

enum { BATCHES = 16, STREAM_SSP = 0x55b0 };
#define EVENTS       1e6
#define EVENTS_LEAST 200.0 /* a worker and renewal, times the bound + 1 */

struct chain {
	uint32_t n, watched; /* whose renewals are kept */
	uint64_t bound, events, *step, *guaranteed;
	uint8_t *begun;
	struct mw_rng rng;
	bool in_turn;
	uint64_t turn;
	uint64_t *renewed; /* pushes in all before each renewal of the watched worker */
	uint64_t n_renewed, room, blocks, fetches;
	bool random_blocks;
};

static uint64_t slowest(const struct chain *c)
{
	uint64_t least = c->step[0];
	for (uint32_t w = 1; w < c->n; w++)
		least = c->step[w] < least ? c->step[w] : least;
	return least;
}

/* Renew the copy unless what it is sure to hold is new enough; then begin a step. */
static void begin(struct chain *c, uint32_t w, uint64_t least)
{
	c->begun[w] = 1;
	if (c->guaranteed[w] + c->bound >= c->step[w])
		return;
	c->guaranteed[w] = least;
	if (w != c->watched)
		return;
	bool here = c->random_blocks ? mw_rng_below(&c->rng, c->blocks) == 0 : c->fetches % c->blocks == 0;
	c->fetches++;
	if (here && c->n_renewed < c->room)
		c->renewed[c->n_renewed++] = c->events;
}

static void one_turn(struct chain *c)
{
	uint32_t w = c->in_turn ? (uint32_t)(c->turn++ % c->n) : (uint32_t)mw_rng_below(&c->rng, c->n);
	uint64_t least = slowest(c);
	if (!c->begun[w]) {
		if (least + c->bound < c->step[w])
			return;
		begin(c, w, least);
	}
	c->step[w]++;
	c->events++;
	c->begun[w] = 0;
	least = slowest(c);
	if (least + c->bound >= c->step[w])
		begin(c, w, least);
}

/* The mean of q^(renewals in (s, s + k]) over starts s in [renewed[0], renewed[m - 1] - k). */
static double kept(const uint64_t *renewed, uint64_t m, uint64_t k, double q)
{
	uint64_t at = renewed[0], end = renewed[m - 1], gone = 1,
		 in = 1; /* renewed[gone..in-1] are in the window */
	double sum = 0;
	if (end < at + k + 1)
		return NAN;
	end -= k;
	while (at < end) {
		while (in < m && renewed[in] <= at + k)
			in++;
		while (gone < in && renewed[gone] <= at)
			gone++;
		uint64_t next = in < m ? renewed[in] - k : end;
		if (gone < in && renewed[gone] < next)
			next = renewed[gone];
		next = next < end ? next : end;
		next = next > at ? next : at + 1;
		sum += (double)(next - at) * pow(q, (double)(in - gone));
		at = next;
	}
	return sum / (double)(end - renewed[0]);
}

/* The real k at which `kept` crosses the threshold; NAN: not within what was seen. */
static double crossing(const uint64_t *renewed, uint64_t m, double q, double threshold)
{
	uint64_t low = 0, high = 1, span = m > 1 ? renewed[m - 1] - renewed[0] : 0;
	while (high < span / 2 && kept(renewed, m, high, q) > threshold) {
		low = high;
		high *= 2;
	}
	if (high >= span / 2)
		return NAN;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;
		if (kept(renewed, m, mid, q) > threshold)
			low = mid;
		else
			high = mid;
	}
	double before = low ? kept(renewed, m, low, q) : 1, at = kept(renewed, m, high, q);
	return (double)low + (before > at ? (before - threshold) / (before - at) : 1);
}

static int chain_init(struct chain *c, const struct mw_protocol *p, const struct mw_mixing_knobs *k,
	double events, struct mw_err *err)
{
	*c = (struct chain){ .n = p->workers,
		.bound = (uint64_t)p->ssp_bound,
		.in_turn = k->activation == MW_ACT_RR,
		.blocks = k->mix_fraction > 0 ? (uint64_t)llround(1 / k->mix_fraction) : 1,
		.random_blocks = k->random_blocks,
		.room = (uint64_t)(events / p->workers * 2) + 16 };
	mw_rng_init(&c->rng, k->seed, STREAM_SSP);
	c->step = mw_alloc_array(2 * (size_t)p->workers, sizeof(*c->step), "clocks", err);
	c->begun = mw_alloc_array(p->workers, 1, "clocks", err);
	c->renewed = mw_alloc_array(c->room, sizeof(*c->renewed), "renewals of a view", err);
	if (!c->step || !c->begun || !c->renewed)
		return err->code;
	c->guaranteed = c->step + p->workers;
	for (uint32_t w = 0; w < p->workers; w++)
		c->begun[w] = 1; /* all begin with the first version */
	return 0;
}

static void chain_fini(struct chain *c)
{
	mw_free(c->step);
	mw_free(c->begun);
	mw_free(c->renewed);
}

static void value(const struct chain *c, double q, double threshold, struct mw_mixing_result *r)
{
	const uint64_t *from = c->renewed + c->n_renewed / 10; /* the start is not what it is later */
	uint64_t m = c->n_renewed - c->n_renewed / 10, part = m / BATCHES;
	double sum = 0, squares = 0, t = m > 2 ? crossing(from, m, q, threshold) : NAN;
	for (uint32_t b = 0; b < BATCHES; b++) {
		double x = part > 2 ? crossing(from + b * part, part, q, threshold) : NAN;
		sum += x / BATCHES;
		squares += x * x / BATCHES;
	}
	r->mixes = isfinite(t) && isfinite(sum);
	if (!r->mixes) {
		snprintf(r->reason, sizeof(r->reason), "too few renewals were simulated (--work)");
		return;
	}
	r->t_mix = ceil(t * (1 - MIX_TOL));
	r->error = sqrt(fmax(squares - sum * sum, 0) / (BATCHES - 1));
	r->replicas = BATCHES;
}

/* Renewals that make q^m small enough. */
static uint64_t enough(double q, double threshold)
{
	return q > 0 ? (uint64_t)ceil(log(threshold) / log(q) * (1 - MIX_TOL)) : 1;
}

static double longest_wait(const struct chain *c, uint64_t renewals)
{
	uint64_t most = 0, from = c->n_renewed / 10;
	for (uint64_t i = from; i + renewals < c->n_renewed; i++)
		if (c->renewed[i + renewals] - c->renewed[i] > most)
			most = c->renewed[i + renewals] - c->renewed[i];
	return (double)most;
}

static int simulate(const struct mw_protocol *p, const struct mw_mixing_knobs *k, double events,
	uint32_t watched, struct chain *c, struct mw_err *err)
{
	MW_TRY(chain_init(c, p, k, events, err));
	c->watched = watched;
	while ((double)c->events < events)
		one_turn(c);
	return 0;
}

static int in_turn(const struct mw_protocol *p, const struct mw_mixing_knobs *k, double events,
	uint64_t renewals, struct mw_mixing_result *r, struct mw_err *err)
{
	double most = 0;
	int code = 0;
	for (uint32_t w = 0; w < p->workers && !code; w++) {
		struct chain c;
		code = simulate(p, k, events, w, &c, err);
		if (!code)
			most = fmax(most, longest_wait(&c, renewals));
		chain_fini(&c);
	}
	r->mixes = !code && most > 0;
	r->t_mix = most;
	r->method = "the gate and the renewals of views, with workers in turn";
	return code;
}

static int at_random(const struct mw_protocol *p, const struct mw_mixing_knobs *k, double events, double q,
	double threshold, struct mw_mixing_result *r, struct mw_err *err)
{
	struct chain c;
	int code = simulate(p, k, events, 0, &c, err);
	if (!code)
		value(&c, q, threshold, r);
	chain_fini(&c);
	r->exact = false;
	r->method = "Monte Carlo over the gate and the renewals of views";
	return code;
}

int mix_ssp(const struct mw_protocol *p, const struct mw_mixing_knobs *k, struct mw_mixing_result *r,
	struct mw_err *err)
{
	bool l2 = k->norm == MW_NORM_L2, turn = k->activation == MW_ACT_RR;
	double n = p->workers, gamma = k->slack > 0 ? k->slack : 1, q = (1 - gamma) * (l2 ? 1 - gamma : 1);
	double threshold = l2 ? r->eps * r->eps : r->eps, waits = (double)enough(q, threshold);
	double blocks = k->mix_fraction > 0 ? round(1 / k->mix_fraction) : 1;
	double least = EVENTS_LEAST * n * (double)(p->ssp_bound + 1) * waits * blocks,
	       events = fmax(EVENTS, least);
	if (p->workers < 2) { /* its own pushes are in its view at once */
		r->mixes = true;
		r->method = "one worker: its pushes are in its view at once";
		r->t_mix = 1;
		r->s1 = r->s2 = 0;
		return MW_OK;
	}
	if (k->mix_every > 1) {
		snprintf(r->reason, sizeof(r->reason),
			"ssp renews views by its bound, not by steps: no --mix-every");
		return MW_OK;
	}
	if (k->work > 0 && (turn ? n * least : least) * (2 * n + 20) > k->work) {
		mix_too_dear(r);
		return MW_OK;
	}
	if (k->work > 0)
		events = fmax(least, fmin(events, k->work / (2 * n + 20)));
	/* blocks at random make even workers in turn wait at random */
	if (turn && !(k->random_blocks && blocks > 1))
		return in_turn(p, k, least, (uint64_t)waits, r, err);
	return at_random(p, k, events, q, threshold, r, err);
}
