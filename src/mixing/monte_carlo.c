/*
 * monte_carlo.c: the mixing time by simulating products of plans, for what has no closed recursion: TV of random plans,
 * own-step counters with many states, signed plans under random activation.
 *
 * A pilot of a few replicas finds the region; then every replica is carried through it alone and its distances are added
 * on a grid of steps. Annealed: the mean over replicas is taken inside the max over rows (l2: inside lambda_max). Rows
 * that play the same part are averaged, since a max over noisy means is biased up. The standard error is that of the
 * crossings of 10 batches. Starts are a run's start: all own-step counters 0.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

enum { BATCHES = 10, PILOTS = 16, MAX_GRID = 96, MAX_GRID_L2 = 32, MAX_ROUNDS = 12 };
#define DEFAULT_WORK 4e8 /* operations that the default number of replicas aims at */
#define FEWEST       50  /* replicas worth reporting */
#define PILOT_STEPS  1e9

/* One replica: counters of the workers and the product so far. */
struct walk {
	struct mw_rng rng;
	uint64_t *step, *mixes, t;
	uint32_t token, event;
	double *e;
};

/* What is averaged over replicas: rows' TV; or E|E[v][r]| over uses; or E^T E. One array of `cells` per grid point. */
struct tally {
	struct mix_law *law;
	struct mw_mixing_result *r;
	struct mix_space space;
	uint32_t cols, cells;
	bool alike; /* rows may be averaged: see above */
	double *scratch, *work;
	double *sum;             /* [BATCHES][grid][cells] */
	double *worst;           /* [grid]: sum over replicas of the max over rows (quenched) */
	uint32_t grid, grid_max; /* l2 keeps a matrix for each point */
	double at[MAX_GRID];
};

/* --- one step of the protocol ----------------------------------------------------------------------------------- */

static const struct mw_plan *draw(const struct mix_law *law, struct mw_rng *rng, uint32_t event)
{
	const struct mix_event *e = &law->event[event];
	if (e->n == 1 && law->prob[e->first] >= 1)
		return law->plan[e->first];
	double u = mw_rng_uniform(rng);
	for (uint32_t k = e->first; k < e->first + e->n; k++)
		if ((u -= law->prob[k]) < 0)
			return law->plan[k];
	return NULL;
}

/* The worker that acts has its own-step counter moved on; on every k-th it exchanges, by the same rules as a run's. */
static const struct mw_plan *step_counters(const struct mix_law *law, struct walk *x)
{
	const struct mw_protocol *p = law->p;
	uint32_t w = (uint32_t)mw_rng_below(&x->rng, p->workers);
	if (++x->step[w] % law->every || !p->slot[w].n)
		return NULL;
	if (p->due == MW_DUE_TOKEN) {
		if (w % p->groups != x->token)
			return NULL;
		x->token = (x->token + 1) % p->groups;
	}
	uint64_t m = x->mixes[w]++;
	if (law->random_blocks ? mw_rng_below(&x->rng, law->blocks) != 0 : m % law->blocks != law->block)
		return NULL;
	return mw_protocol_plan(p, w, m, mw_rng_next(&x->rng));
}

static const struct mw_plan *step(const struct mix_law *law, struct walk *x)
{
	uint64_t t = x->t++;
	if (law->kind == MIX_COUNTERS)
		return step_counters(law, x);
	if (law->kind == MIX_IID)
		return draw(law, &x->rng, 0);
	if (t % law->period != law->event[x->event].t % law->period)
		return NULL;
	uint32_t e = x->event;
	x->event = (e + 1) % law->n_events;
	return draw(law, &x->rng, e);
}

static void restart(const struct tally *y, struct walk *x, uint64_t replica)
{
	const struct mix_law *law = y->law;
	mw_rng_init(&x->rng, law->seed, replica);
	memset(x->step, 0, law->workers * sizeof(*x->step));
	memset(x->mixes, 0, law->workers * sizeof(*x->mixes));
	x->t = 0;
	x->token = x->event = 0;
	for (uint32_t i = 0; i < law->rows; i++)
		for (uint32_t c = 0; c < y->cols; c++) {
			uint32_t col = law->use_form ? law->push[c] : c;
			x->e[(size_t)i * y->cols + c] = (i == col) - law->pi[col];
		}
}

static void walk_to(const struct tally *y, struct walk *x, double t)
{
	while ((double)x->t < t) {
		const struct mw_plan *p = step(y->law, x);
		if (p)
			mw_plan_apply(p, y->law->gamma, x->e, y->cols, y->scratch);
	}
}

/* --- what is measured ------------------------------------------------------------------------------------------- */

static void measure(const struct tally *y, const struct walk *x, double *sum, double *worst)
{
	const struct mix_law *law = y->law;
	size_t n = law->rows;
	if (!law->use_form && law->norm == MW_NORM_L2) {
		mix_gram(law->rows, x->e, y->work);
		for (size_t i = 0; i < n * n; i++)
			sum[i] += y->work[i];
		return;
	}
	double most = 0;
	for (uint32_t v = 0; law->use_form && v < law->n_use; v++)
		for (uint32_t c = 0; c < y->cols; c++) {
			double d = fabs(x->e[(size_t)law->view[v] * y->cols + c]);
			sum[(size_t)v * y->cols + c] += d;
			most = fmax(most, d);
		}
	for (uint32_t i = 0; !law->use_form && i < law->rows; i++) {
		double tv = mix_tv(x->e + i * n, 1, law->rows);
		sum[i] += tv;
		most = fmax(most, tv);
	}
	*worst += most;
}

/* l2: E[Phi^T Phi] is circulant when the workers are alike and own the rows in order, so its estimate is made so. */
static double top_of_mean(const struct tally *y, const double *sum, double replicas)
{
	size_t n = y->law->rows;
	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++)
			y->work[i * n + j] = y->work[j * n + i] = sum[i * n + j] / replicas;
	if (y->alike) {
		double *c = y->space.a;
		for (size_t k = 0; k < n; k++)
			for (size_t i = c[k] = 0; i < n; i++)
				c[k] += y->work[i * n + (i + k) % n] / (double)n;
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				y->work[i * n + j] = c[(j + n - i) % n];
	}
	return sqrt(mix_top(&y->space, y->work));
}

/* Uses (v, r) of alike workers differ by r - v only. */
static double most_used(const struct tally *y, const double *sum)
{
	size_t n = y->law->n_use;
	double most = 0;
	for (size_t hop = 0; hop < n; hop++) {
		double mean = 0;
		for (size_t v = 0; v < n; v++)
			mean += sum[v * n + (v + hop) % n] / (double)n;
		most = fmax(most, mean);
	}
	return most;
}

static double value(const struct tally *y, const double *sum, double replicas)
{
	const struct mix_law *law = y->law;
	double most = 0, mean = 0;
	if (!law->use_form && law->norm == MW_NORM_L2)
		return top_of_mean(y, sum, replicas);
	if (y->alike && law->use_form)
		return most_used(y, sum) / replicas;
	for (uint32_t i = 0; i < y->cells; i++)
		most = fmax(most, sum[i]);
	if (!y->alike)
		return most / replicas;
	for (uint32_t w = 0; w < law->workers; w++) /* the other rows are a server's: TV 0 */
		mean += sum[law->view[w]];
	return mean / law->workers / replicas;
}

/* --- the search ------------------------------------------------------------------------------------------------- */

/* Log-linear between the grid points around the threshold, then the next integer; 0: below the grid; INFINITY: above. */
static double crossing(const struct tally *y, const double *d)
{
	double level = y->law->threshold;
	for (uint32_t g = 0; g < y->grid; g++) {
		if (d[g] > level)
			continue;
		if (!g)
			return y->at[0] <= 1 ? 1 : 0;
		double f = d[g] > 0 ? log(d[g - 1] / level) / log(d[g - 1] / d[g]) : 1;
		return y->at[g - 1] + f * (y->at[g] - y->at[g - 1]);
	}
	return INFINITY;
}

static void make_grid(struct tally *y, double from, double to)
{
	from = fmax(1, floor(from));
	double stride = fmax(1, ceil((to - from) / (y->grid_max - 1)));
	for (y->grid = 0; y->grid < y->grid_max && from <= to; from += stride)
		y->at[y->grid++] = from;
}

/*
 * TV of a mean product is at most the mean TV, and at least half its second eigenvalue to the k (theory.md F5): a lower
 * bound where that is known.
 */
static double at_least(const struct tally *y)
{
	double t = y->law->use_form || y->law->norm == MW_NORM_L2 ? NAN : y->r->t_1 * -log2(2 * y->law->eps);
	return t > 0 && isfinite(t) ? t : 0;
}

/* Where the mean over a few replicas falls below the threshold: every 1/16 of the way is looked at. */
static double pilot(struct tally *y, struct walk *x, double least)
{
	size_t cells = (size_t)y->law->rows * y->cols;
	double k = 0, unused = 0, cost = 8.0 * y->cols + 3.0 * cells / PILOTS, *sum = y->sum;
	double *all = mw_alloc_array(PILOTS * cells, sizeof(double), "pilot replicas", NULL);
	struct walk save[PILOTS];
	uint64_t *own =
		mw_alloc_array((size_t)PILOTS * 2 * y->law->workers, sizeof(*own), "pilot replicas", NULL);
	for (uint32_t i = 0; all && own && i < PILOTS; i++) {
		save[i] = *x;
		save[i].e = all + i * cells;
		save[i].step = own + (size_t)2 * i * y->law->workers;
		save[i].mixes = save[i].step + y->law->workers;
		restart(y, &save[i], ~(uint64_t)i);
	}
	while (all && own && k < PILOT_STEPS) {
		double go = fmax(floor(k / 16) + 1, floor(least / 2) - k);
		if (!mix_spend(y->law, PILOTS * go * cost, y->r))
			break;
		k += go;
		memset(sum, 0, y->cells * sizeof(*sum));
		for (uint32_t i = 0; i < PILOTS; i++) {
			walk_to(y, &save[i], k);
			measure(y, &save[i], sum, &unused);
		}
		if (value(y, sum, PILOTS) <= y->law->threshold)
			break;
	}
	bool ok = all && own;
	mw_free(all);
	mw_free(own);
	return !ok || y->r->reason[0] ? NAN : k < PILOT_STEPS ? k : INFINITY;
}

static void simulate(struct tally *y, struct walk *x, uint32_t replicas)
{
	memset(y->sum, 0, (size_t)BATCHES * y->grid * y->cells * sizeof(double));
	memset(y->worst, 0, y->grid * sizeof(double));
	for (uint32_t i = 0; i < replicas; i++) {
		double *sum = y->sum + (size_t)(i % BATCHES) * y->grid * y->cells;
		restart(y, x, i);
		for (uint32_t g = 0; g < y->grid; g++) {
			walk_to(y, x, y->at[g]);
			measure(y, x, sum + (size_t)g * y->cells, &y->worst[g]);
		}
	}
}

/* Crossings of each batch and, after adding them up in place, of all. */
static void evaluate(struct tally *y, uint32_t replicas, double *all, double *error, double *quenched)
{
	double d[MAX_GRID], mean = 0, square = 0;
	size_t size = (size_t)y->grid * y->cells;
	for (int b = 0; b < BATCHES; b++) {
		for (uint32_t g = 0; g < y->grid; g++)
			d[g] = value(y, y->sum + b * size + (size_t)g * y->cells, replicas / BATCHES);
		double t = crossing(y, d);
		mean += t / BATCHES;
		square += t * t / BATCHES;
	}
	*error = sqrt(fmax(0, square - mean * mean) / (BATCHES - 1));
	for (int b = 1; b < BATCHES; b++)
		for (size_t i = 0; i < size; i++)
			y->sum[i] += y->sum[b * size + i];
	for (uint32_t g = 0; g < y->grid; g++)
		d[g] = value(y, y->sum + (size_t)g * y->cells, replicas);
	*all = crossing(y, d);
	for (uint32_t g = 0; g < y->grid; g++)
		d[g] = y->worst[g] / replicas;
	*quenched = y->law->norm == MW_NORM_L2 && !y->law->use_form ? NAN : crossing(y, d);
}

static uint32_t choose_replicas(const struct tally *y, double t)
{
	const struct mix_law *law = y->law;
	bool l2 = !law->use_form && law->norm == MW_NORM_L2;
	double n = law->rows, eval = l2 ? n * n * n : n * y->cols;
	double cost = t * 1.6 * (8.0 * y->cols + 30) + MAX_GRID * eval, want = DEFAULT_WORK / cost;
	/* lambda_max of a sample mean is biased up unless there are many more samples than rows */
	double least = l2 && !y->alike ? 50 * n : 200;
	want = fmin(fmax(want, least), 8000);
	if (law->work / 2 < want * cost &&
		law->work / 2 > FEWEST * cost) /* fewer, with a larger error, than none */
		want = law->work / 2 / cost;
	return law->replicas ? (law->replicas + BATCHES - 1) / BATCHES * BATCHES
			     : (uint32_t)(want / BATCHES) * BATCHES;
}

static void search(struct tally *y, struct walk *x)
{
	struct mw_mixing_result *r = y->r;
	double least = at_least(y), low, high;
	double longest = fmax(least, y->law->expected / 4); /* more than that is not trusted to a guess */
	if (isfinite(y->law->work) && !mix_spend(y->law, (PILOTS + FEWEST) * longest * 8.0 * y->cols, r))
		return;
	double t = pilot(y, x, least);
	if (isnan(t))
		return;
	if (isinf(t)) {
		snprintf(r->reason, sizeof(r->reason), "never mixes: no end in sight after %.0g steps",
			PILOT_STEPS);
		return;
	}
	low = 0.6 * t;
	high = 1.6 * t + 3;
	r->replicas = choose_replicas(y, t);
	for (int round = 0; round < MAX_ROUNDS; round++) {
		double quenched, found;
		make_grid(y, low, high);
		double cost =
			(double)r->replicas * (high * (8.0 * y->cols + 30) + y->grid * (double)y->cells);
		if (!mix_spend(y->law, cost, r))
			return;
		simulate(y, x, r->replicas);
		evaluate(y, r->replicas, &found, &r->error, &quenched);
		if (found > 0 && isfinite(found) && isfinite(r->error)) {
			r->t_mix = ceil(found - 1e-9);
			r->t_q = isfinite(quenched) && quenched > 0 ? ceil(quenched - 1e-9) : NAN;
			r->mixes = true;
			return;
		}
		low = found > 0 && isfinite(found) ? low / 2 : found > 0 ? low : low / 3;
		high = isfinite(found) && found > 0 ? high * 1.5 : isfinite(found) ? high : high * 2;
	}
	snprintf(r->reason, sizeof(r->reason), "the Monte Carlo found no crossing; give more --replicas");
}

static int tally_init(struct tally *y, struct walk *x, struct mw_err *err)
{
	const struct mix_law *law = y->law;
	size_t n = law->rows, most = 1;
	for (uint32_t k = 0; k < law->n_plans; k++)
		most = law->plan[k]->n_rows > most ? law->plan[k]->n_rows : most;
	y->cols = law->use_form ? law->n_use : law->rows;
	y->grid_max = law->use_form || law->norm == MW_NORM_L2 ? MAX_GRID_L2 : MAX_GRID;
	y->cells = law->use_form             ? law->n_use * law->n_use
		   : law->norm == MW_NORM_L2 ? (uint32_t)(n * n)
					     : law->rows;
	MW_TRY(mix_space_init(&y->space, law->rows, law->pi, err));
	y->scratch = mw_alloc_array(most * y->cols, sizeof(double), "scratch of plans", err);
	y->work = mw_alloc_array(n * n, sizeof(double), "matrices of the Monte Carlo", err);
	y->sum = mw_alloc_array((size_t)BATCHES * y->grid_max * y->cells, sizeof(double), "tallies", err);
	y->worst = mw_alloc_array(MAX_GRID, sizeof(double), "tallies", err);
	x->e = mw_alloc_array(n * y->cols, sizeof(double), "replica", err);
	x->step = mw_alloc_array(2 * (size_t)law->workers, sizeof(*x->step), "counters", err);
	if (!y->scratch || !y->work || !y->sum || !y->worst || !x->e || !x->step)
		return MW_ERESOURCE;
	x->mixes = x->step + law->workers;
	return MW_OK;
}

/*
 * Are all rows a worker's view, each of one worker, in order (or all but a server's)? Then alike workers make alike rows;
 * not in turn, where it matters who is first.
 */
static bool rows_alike(const struct mix_law *law)
{
	if (law->use_form)
		return law->transitive && law->kind != MIX_SEQUENCE;
	bool l2 = law->norm == MW_NORM_L2,
	     fine = law->transitive && law->kind != MIX_SEQUENCE && law->rows <= law->workers + (l2 ? 0 : 1);
	for (uint32_t w = 0; fine && w < law->workers; w++)
		fine = law->view[w] == w + (law->rows - law->workers) && law->view[w] == law->view[0] + w;
	return fine && law->rows >= law->workers;
}

int mix_monte_carlo(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	struct tally y = { .law = law, .r = r };
	struct walk x = { 0 };
	int ret = tally_init(&y, &x, err);
	r->exact = false;
	r->method = "Monte Carlo over products of plans";
	if (!ret) {
		y.alike = rows_alike(law);
		search(&y, &x);
	}
	mix_space_fini(&y.space);
	mw_free(y.scratch);
	mw_free(y.work);
	mw_free(y.sum);
	mw_free(y.worst);
	mw_free(x.e);
	mw_free(x.step);
	return ret;
}
