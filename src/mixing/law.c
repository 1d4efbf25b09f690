/* law.c: from a protocol's plans and the knobs to the law of its mixing matrices W_t. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"

#define MAX_EVENTS (1u << 18) /* exchanges in a period; longer sequences are refused */

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t r = a % b;
		a = b;
		b = r;
	}
	return a;
}

void mix_law_knobs(struct mix_law *law, const struct mw_mixing_knobs *k)
{
	law->norm = k->norm;
	law->eps = k->eps > 0 ? k->eps : mw_mixing_eps(k->norm);
	law->threshold = law->eps * (1 + MIX_TOL);
	law->gamma = k->slack > 0 ? k->slack : 1;
	law->blocks = k->mix_fraction > 0 ? (uint32_t)llround(1 / k->mix_fraction) : 1;
	law->random_blocks = k->random_blocks && law->blocks > 1;
	law->seed = k->seed;
	law->replicas = k->replicas;
	law->activation = k->activation;
	law->work = k->work > 0 ? k->work : INFINITY;
	law->expected = k->expected;
	law->sums = k->sums;
	law->scale = 1;
	law->every = 1;
}

static int room(struct mix_law *law, size_t events, size_t plans, struct mw_err *err)
{
	law->event = mw_alloc_array(events + 1, sizeof(*law->event), "exchanges of a period", err);
	law->plan = mw_alloc_array(plans + 1, sizeof(*law->plan), "plans of a period", err);
	law->prob = mw_alloc_array(plans + 1, sizeof(*law->prob), "plans of a period", err);
	return law->event && law->plan && law->prob ? MW_OK : MW_ERESOURCE;
}

/* An event at time t that takes one plan of the list: the m-th, or any with random pick; `share` scales them all. */
static void add_event(struct mix_law *law, uint64_t t, const struct mw_plan_list *l, uint64_t m, double share)
{
	bool any = law->p->pick == MW_PICK_RANDOM && l->n > 1;
	struct mix_event *e = &law->event[law->n_events++];
	*e = (struct mix_event){ .t = t, .first = law->n_plans, .n = any ? l->n : 1 };
	for (uint32_t i = 0; i < e->n; i++) {
		law->plan[law->n_plans] = l->plan[any ? i : m % l->n];
		law->prob[law->n_plans++] = share / e->n;
	}
	law->random |= any || share < 1;
}

static int make_rounds(struct mix_law *law, struct mw_err *err)
{
	const struct mw_plan_list *l = &law->p->slot[0];
	uint32_t step = law->random_blocks ? 1 : law->blocks;
	uint64_t turns = law->p->pick == MW_PICK_RANDOM ? 1 : l->n / gcd(l->n, step);
	double share = law->random_blocks ? 1.0 / law->blocks : 1;
	MW_TRY(room(law, turns, turns * (law->p->pick == MW_PICK_RANDOM ? l->n : 1), err));
	law->scale = law->every * step;
	law->period = turns;
	for (uint64_t j = 0; j < turns; j++)
		add_event(law, j, l, law->block + j * step, share);
	law->kind = law->random && turns == 1 ? MIX_IID : MIX_SEQUENCE;
	law->fixed = !law->random && turns == 1;
	return MW_OK;
}

/* Sweeps in which all workers act in turn; those in which they exchange come every `every` sweeps. */
static int make_in_turn(struct mix_law *law, const char **why, struct mw_err *err)
{
	const struct mw_protocol *p = law->p;
	uint64_t turns = 1, plans = 0, step = law->random_blocks ? 1 : law->blocks;
	double share = law->random_blocks ? 1.0 / law->blocks : 1;
	for (uint32_t w = 0; w < p->workers; w++) {
		plans += p->slot[w].n;
		if (p->pick == MW_PICK_CYCLIC && p->slot[w].n)
			turns = turns / gcd(turns, p->slot[w].n) * p->slot[w].n;
		if (turns > MAX_EVENTS)
			break;
	}
	turns /= gcd(turns, step);
	if (turns * p->workers > MAX_EVENTS) {
		*why = "workers in turn with edges in turn repeat only after too many steps; choose "
		       "--activation random";
		return MW_OK;
	}
	MW_TRY(room(law, turns * p->workers, turns * (p->pick == MW_PICK_RANDOM ? plans : p->workers), err));
	for (uint64_t j = 0; j < turns; j++) {
		uint64_t m = law->block + j * step;
		for (uint32_t w = 0; w < p->workers; w++)
			if (p->slot[w].n)
				add_event(law, p->workers * (law->every * (m + 1) - 1) + w, &p->slot[w], m,
					share);
	}
	law->period = p->workers * law->every * step * turns;
	law->kind = MIX_SEQUENCE;
	return MW_OK;
}

/* A token: only the group that holds it exchanges, then passes it on. Run until token and counters recur. */
static int make_token(struct mix_law *law, const char **why, struct mw_err *err)
{
	const struct mw_protocol *p = law->p;
	uint32_t groups = p->groups ? p->groups : 1, n = p->workers, token = 0;
	uint64_t cycle = (uint64_t)law->every * groups, sweep = 0, first = 0;
	if (law->blocks > 1 || cycle * n > MAX_EVENTS) {
		*why = "the token's path has no short period with these knobs; choose --activation random";
		return MW_OK;
	}
	uint64_t *seen = mw_alloc_array(cycle, sizeof(*seen), "token states", err);
	if (!seen || room(law, 2 * cycle * n, 2 * cycle * n, err) < 0) {
		mw_free(seen);
		return MW_ERESOURCE;
	}
	for (;; sweep++) {
		uint64_t *at = &seen[(sweep % law->every) * groups + token];
		if (*at) {
			first = *at - 1;
			break;
		}
		*at = sweep + 1;
		for (uint32_t w = 0; w < n; w++)
			if (p->slot[w].n && w % groups == token && (sweep + 1) % law->every == 0) {
				add_event(law, sweep * n + w, &p->slot[w], 0, 1);
				token = (token + 1) % groups;
			}
	}
	mw_free(seen);
	uint32_t skip = 0;
	while (skip < law->n_events && law->event[skip].t < first * n)
		skip++;
	law->n_events -= skip;
	memmove(law->event, law->event + skip, law->n_events * sizeof(*law->event));
	law->period = (sweep - first) * n;
	law->kind = MIX_SEQUENCE;
	return MW_OK;
}

static int make_random(struct mix_law *law, struct mw_err *err)
{
	const struct mw_protocol *p = law->p;
	uint64_t plans = 0;
	bool counters = law->every > 1 || p->due == MW_DUE_TOKEN || (law->blocks > 1 && !law->random_blocks);
	for (uint32_t w = 0; w < p->workers; w++) {
		plans += p->slot[w].n;
		counters |= p->pick == MW_PICK_CYCLIC && p->slot[w].n > 1;
	}
	MW_TRY(room(law, p->workers, plans, err));
	law->random = true;
	law->kind = counters ? MIX_COUNTERS : MIX_IID;
	law->period = 1;
	for (uint32_t w = 0; w < p->workers; w++) {
		if (counters || !w)
			law->event[law->n_events++] = (struct mix_event){ .first = law->n_plans };
		double share = (counters ? 1.0 : 1.0 / p->workers) / (law->random_blocks ? law->blocks : 1);
		for (uint32_t i = 0; i < p->slot[w].n; i++) {
			law->plan[law->n_plans] = p->slot[w].plan[i];
			law->prob[law->n_plans++] = share / p->slot[w].n;
		}
		law->event[law->n_events - 1].n = law->n_plans - law->event[law->n_events - 1].first;
	}
	return MW_OK;
}

int mix_law_init(struct mix_law *law, const struct mw_protocol *p, const struct mw_mixing_knobs *k,
	uint32_t block, const char **why, struct mw_err *err)
{
	*law = (struct mix_law){ .p = p, .rows = p->rows, .workers = p->workers, .pi = p->pi };
	mix_law_knobs(law, k);
	law->block = block;
	law->every = (uint32_t)(k->mix_every > 0 ? k->mix_every : p->mix_every > 0 ? p->mix_every : 1);
	law->use_form = p->signed_plan;
	law->n_use = p->workers;
	law->view = p->view_row;
	law->push = p->push_row;
	*why = NULL;
	if (p->clock == MW_CLOCK_ROUND)
		return make_rounds(law, err);
	if (p->workers == 1 || law->activation == MW_ACT_RR)
		return p->due == MW_DUE_TOKEN ? make_token(law, why, err) : make_in_turn(law, why, err);
	if (law->activation == MW_ACT_RANDOM)
		return make_random(law, err);
	*why = "free-running threads have no exact law; choose --activation rr or random, or measure a run";
	return MW_OK;
}

int mix_law_sequence(
	struct mix_law *law, const struct mw_plan *const *plan, uint32_t period, struct mw_err *err)
{
	MW_TRY(room(law, period, period, err));
	for (uint32_t t = 0; t < period; t++)
		if (plan[t]) {
			law->event[law->n_events++] =
				(struct mix_event){ .t = t, .first = law->n_plans, .n = 1 };
			law->plan[law->n_plans] = plan[t];
			law->prob[law->n_plans++] = 1;
		}
	law->period = period;
	law->kind = MIX_SEQUENCE;
	return MW_OK;
}

void mix_law_fini(struct mix_law *law)
{
	mw_free(law->event);
	mw_free(law->plan);
	mw_free(law->prob);
	law->event = NULL;
	law->plan = NULL;
	law->prob = NULL;
}

void mix_too_dear(struct mw_mixing_result *r)
{
	r->dear = true;
	snprintf(
		r->reason, sizeof(r->reason), "not computed: it needs more operations than allowed (--work)");
}

bool mix_spend(struct mix_law *law, double operations, struct mw_mixing_result *r)
{
	law->work -= operations;
	if (law->work >= 0)
		return true;
	if (!r->reason[0])
		mix_too_dear(r);
	return false;
}

/* mark[i] := row i hears, over some steps, from a row that has mark */
static void spread(const struct mix_law *law, bool *mark)
{
	for (bool again = true; again;) {
		again = false;
		for (uint32_t k = 0; k < law->n_plans; k++)
			for (uint32_t a = 0; a < law->plan[k]->n_rows; a++) {
				const struct mw_plan_row *row = &law->plan[k]->row[a];
				for (uint32_t s = row->first; !mark[row->dst] && s < row->first + row->n; s++)
					if (law->plan[k]->weight[s] != 0 && mark[law->plan[k]->src[s]])
						again = mark[row->dst] = true;
			}
	}
}

/* The row with the largest |pi| must reach all rows: else some row never learns what it holds. */
int mix_law_connected(const struct mix_law *law, bool *connected, struct mw_err *err)
{
	bool *mark = mw_alloc_array(law->rows, sizeof(*mark), "reachable rows", err);
	uint32_t root = 0;
	if (!mark)
		return MW_ERESOURCE;
	for (uint32_t i = 1; i < law->rows; i++)
		if (fabs(law->pi[i]) > fabs(law->pi[root]) + 1e-12)
			root = i;
	mark[root] = true;
	spread(law, mark);
	*connected = true;
	for (uint32_t i = 0; i < law->rows; i++)
		*connected &= mark[i];
	mw_free(mark);
	return MW_OK;
}
