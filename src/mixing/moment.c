/* moment.c: independent random plans: the exact second moment M_{k+1} = E[W^T M_k W], d2(k)^2 = lambda_max(M_k). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

#define SUMS_WORK   2e9
#define RADIUS_ROWS 300u
#define EXACT_TOP_ROWS \
	24u /* up to here the sums take lambda_max by decomposition, above by power iteration */

struct cell {
	uint32_t row, col;
	double value;
};

/*
 * W = I + D with D = gamma (plan - I), so E[W^T M W] = M + (Dm^T M) + (Dm^T M)^T + E[D^T M D], Dm = E D: sparse rows for
 * the first part, and per plan only its own rows and sources for the last.
 */
struct mix_moments {
	const struct mix_law *law;
	uint32_t *first; /* mean[first[e] .. first[e + 1]): the cells of event e's Dm */
	struct cell *mean;
	double *half; /* Dm^T M + E[D^T M D] / 2 */
	double *rows; /* scratch for plans of many rows */
};

static int by_cell(const void *pa, const void *pb)
{
	const struct cell *a = pa, *b = pb;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->col == b->col ? 0 : a->col < b->col ? -1 : 1;
}

static uint32_t merge_cells(struct cell *c, uint32_t n)
{
	uint32_t out = 0;
	qsort(c, n, sizeof(*c), by_cell);
	for (uint32_t i = 0; i < n; i++)
		if (out && !by_cell(&c[out - 1], &c[i]))
			c[out - 1].value += c[i].value;
		else
			c[out++] = c[i];
	return out;
}

static uint32_t add_plan_cells(const struct mw_plan *p, double scale, struct cell *c)
{
	uint32_t n = 0;
	for (uint32_t a = 0; a < p->n_rows; a++) {
		const struct mw_plan_row *row = &p->row[a];
		c[n++] = (struct cell){ row->dst, row->dst, -scale };
		for (uint32_t k = row->first; k < row->first + row->n; k++)
			c[n++] = (struct cell){ row->dst, p->src[k], scale * p->weight[k] };
	}
	return n;
}

static void make_means(struct mix_moments *m)
{
	const struct mix_law *law = m->law;
	uint32_t n = 0;
	for (uint32_t e = 0; e < law->n_events; e++) {
		const struct mix_event *ev = &law->event[e];
		uint32_t at = n;
		m->first[e] = n;
		for (uint32_t k = ev->first; k < ev->first + ev->n; k++)
			at += add_plan_cells(law->plan[k], law->prob[k] * law->gamma, m->mean + at);
		n += merge_cells(m->mean + n, at - n);
	}
	m->first[law->n_events] = n;
}

int mix_moments_new(const struct mix_law *law, struct mix_moments **out, struct mw_err *err)
{
	struct mix_moments *m = mw_alloc(sizeof(*m), "second moments", err);
	size_t cells = 0, most = 1;
	*out = m;
	if (!m)
		return MW_ERESOURCE;
	m->law = law;
	for (uint32_t k = 0; k < law->n_plans; k++) {
		cells += law->plan[k]->n_rows + law->plan[k]->n_src;
		most = law->plan[k]->n_rows > most ? law->plan[k]->n_rows : most;
	}
	m->first = mw_alloc_array((size_t)law->n_events + 1, sizeof(*m->first), "second moments", err);
	m->mean = mw_alloc_array(cells + 1, sizeof(*m->mean), "second moments", err);
	m->half = mw_alloc_array((size_t)law->rows * law->rows, sizeof(double), "second moments", err);
	m->rows = mw_alloc_array(most * law->rows, sizeof(double), "second moments", err);
	if (!m->first || !m->mean || !m->half || !m->rows) {
		mix_moments_free(m);
		*out = NULL;
		return MW_ERESOURCE;
	}
	make_means(m);
	return MW_OK;
}

void mix_moments_free(struct mix_moments *m)
{
	if (!m)
		return;
	mw_free(m->first);
	mw_free(m->mean);
	mw_free(m->half);
	mw_free(m->rows);
	mw_free(m);
}

/* half += (prob / 2) D^T M D: y_a = sum_b M_ab d_b for the plan's rows a, then half_i += d_a[i] y_a. */
static void add_quadratic(struct mix_moments *m, const struct mw_plan *p, double prob, const double *matrix)
{
	size_t n = m->law->rows;
	double g = m->law->gamma;
	for (uint32_t a = 0; a < p->n_rows; a++) {
		double *y = m->rows + a * n;
		memset(y, 0, n * sizeof(*y));
		for (uint32_t b = 0; b < p->n_rows; b++) {
			const struct mw_plan_row *row = &p->row[b];
			double f = matrix[p->row[a].dst * n + row->dst] * g;
			y[row->dst] -= f;
			for (uint32_t k = row->first; k < row->first + row->n; k++)
				y[p->src[k]] += f * p->weight[k];
		}
	}
	for (uint32_t a = 0; a < p->n_rows; a++) {
		const struct mw_plan_row *row = &p->row[a];
		const double *y = m->rows + a * n;
		for (uint32_t k = row->first; k <= row->first + row->n; k++) {
			bool own = k == row->first + row->n;
			double f = (own ? -1 : p->weight[k]) * g * prob / 2, *to = m->half;
			to += (own ? row->dst : p->src[k]) * n;
			for (size_t j = 0; j < n; j++)
				to[j] += f * y[j];
		}
	}
}

/* The same for plans of few rows, touching only the few cells that change. */
static void add_small_quadratic(
	struct mix_moments *m, const struct mw_plan *p, double prob, const double *matrix)
{
	size_t n = m->law->rows;
	double g2 = m->law->gamma * m->law->gamma * prob / 2;
	for (uint32_t a = 0; a < p->n_rows; a++)
		for (uint32_t b = 0; b < p->n_rows; b++) {
			const struct mw_plan_row *ra = &p->row[a], *rb = &p->row[b];
			double f = g2 * matrix[ra->dst * n + rb->dst];
			for (uint32_t i = ra->first; i <= ra->first + ra->n; i++) {
				bool own_i = i == ra->first + ra->n;
				double fi = f * (own_i ? -1 : p->weight[i]);
				double *to = m->half + (own_i ? ra->dst : p->src[i]) * n;
				for (uint32_t j = rb->first; j < rb->first + rb->n; j++)
					to[p->src[j]] += fi * p->weight[j];
				to[rb->dst] -= fi;
			}
		}
}

void mix_moments_apply(struct mix_moments *m, uint32_t event, double *matrix)
{
	const struct mix_law *law = m->law;
	const struct mix_event *ev = &law->event[event];
	size_t n = law->rows;
	memset(m->half, 0, n * n * sizeof(double));
	for (uint32_t c = m->first[event]; c < m->first[event + 1]; c++) {
		const double *from = matrix + m->mean[c].row * n;
		double *to = m->half + m->mean[c].col * n, f = m->mean[c].value;
		for (size_t j = 0; j < n; j++)
			to[j] += f * from[j];
	}
	for (uint32_t k = ev->first; k < ev->first + ev->n; k++)
		if (law->plan[k]->n_rows <= 3)
			add_small_quadratic(m, law->plan[k], law->prob[k], matrix);
		else
			add_quadratic(m, law->plan[k], law->prob[k], matrix);
	for (size_t i = 0; i < n; i++)
		for (size_t j = i; j < n; j++) {
			double x = matrix[i * n + j] + m->half[i * n + j] + m->half[j * n + i];
			matrix[i * n + j] = matrix[j * n + i] = x;
		}
}

double mix_moments_cost(const struct mix_moments *m, uint32_t event)
{
	const struct mix_event *ev = &m->law->event[event];
	double n = m->law->rows, cost = 2 * n * (m->first[event + 1] - m->first[event]) + 6 * n * n;
	for (uint32_t k = ev->first; k < ev->first + ev->n; k++) {
		double rows = m->law->plan[k]->n_rows, src = m->law->plan[k]->n_src;
		cost += rows <= 3 ? 2 * src * src : 2 * rows * src + 2 * src * n + rows * n;
	}
	return cost;
}

/* --- finding the threshold -------------------------------------------------------------------------------------- */

struct search {
	struct mix_law *law;
	struct mw_mixing_result *r;
	struct mix_space space;
	struct mix_moments *step;
	double *m, *v, *u;
};

static void identity(struct search *s)
{
	size_t n = s->law->rows;
	memset(s->m, 0, n * n * sizeof(*s->m));
	for (size_t i = 0; i < n; i++)
		s->m[i * n + i] = 1;
}

static void project_vector(const struct search *s, double *v)
{
	double dot = 0;
	for (uint32_t i = 0; i < s->law->rows; i++)
		dot += v[i] * s->law->pi[i];
	for (uint32_t i = 0; i < s->law->rows; i++)
		v[i] -= dot / s->space.pi2 * s->law->pi[i];
}

/* One power iteration of P M P on v; returns the Rayleigh quotient, a lower bound of lambda_max. */
static double rayleigh(struct search *s)
{
	size_t n = s->law->rows;
	double vv = 0, vmv = 0, size = 0;
	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (size_t j = 0; j < n; j++)
			sum += s->m[i * n + j] * s->v[j];
		s->u[i] = sum;
		vv += s->v[i] * s->v[i];
		vmv += s->v[i] * sum;
	}
	project_vector(s, s->u);
	for (size_t i = 0; i < n; i++)
		size += s->u[i] * s->u[i];
	for (size_t i = 0; size > 0 && i < n; i++)
		s->v[i] = s->u[i] / sqrt(size);
	return vv > 0 ? vmv / vv : 0;
}

static void seed_vector(struct search *s)
{
	for (uint32_t i = 0; i < s->law->rows; i++)
		s->v[i] = mw_u01(mw_hash3(1, 0, i)) - 0.5;
	project_vector(s, s->v);
}

static bool within(struct search *s)
{
	double t2 = s->law->threshold * s->law->threshold;
	return rayleigh(s) <= t2 && mix_top_within(&s->space, s->m, t2);
}

static double time_of(const struct mix_law *law, int64_t e)
{
	int64_t n = law->n_events, turn = e >= 0 ? e / n : -((n - 1 - e) / n);
	return (double)turn * (double)law->period + (double)law->event[e - turn * n].t;
}

/*
 * Windows that end before exchange c + 1, longer and longer backwards: M over exchanges a .. c grows from M over
 * a + 1 .. c. The longest failing window, plus 1, is the time from the first exchange that suffices to c + 1.
 */
static double longest(struct search *s, int64_t c, double best)
{
	const struct mix_law *law = s->law;
	double end = time_of(law, c + 1), last = INFINITY;
	int64_t a = c;
	identity(s);
	seed_vector(s);
	for (uint64_t k = 1;; k++, a--) {
		uint32_t e = (uint32_t)(((a % law->n_events) + law->n_events) % law->n_events);
		mix_moments_apply(s->step, e, s->m);
		if (!mix_spend(s->law, mix_moments_cost(s->step, e) + 3.0 * law->rows * law->rows, s->r))
			return NAN;
		/* Windows below the best are skipped, but for the one before the first that exceeds it. */
		if (end - time_of(law, a - 1) > best && within(s))
			return fmax(best, end - time_of(law, a));
		if (k > 4 * (uint64_t)law->rows * law->n_events &&
			!(k & (k - 1))) { /* no progress over a doubling */
			double now = mix_top(&s->space, s->m);
			if (now > last * (1 - 1e-9)) {
				snprintf(s->r->reason, sizeof(s->r->reason),
					"never mixes: the second moment stays at %.6g", now);
				return NAN;
			}
			last = now;
		}
	}
}

/* S1, S2 and the tail's rate of an independent law, step by step until d falls geometrically. */
static void sums(struct search *s)
{
	double left = SUMS_WORK, cost = mix_moments_cost(s->step, 0), d = 1, ratio = 0, s1 = 0, s2 = 0,
	       n = s->law->rows;
	bool exact = s->law->rows <= EXACT_TOP_ROWS;
	int steady = 0;
	cost += exact ? 10 * n * n * n : 8 * n * n;
	identity(s);
	seed_vector(s);
	for (; left > 0 && steady < 30 && d > 1e-14; left -= cost) {
		double top = 0, last = d;
		mix_moments_apply(s->step, 0, s->m);
		for (int i = 0; !exact && i < 4; i++)
			top = rayleigh(s);
		d = sqrt(exact ? mix_top(&s->space, s->m) : top);
		s1 += d;
		s2 += d * d;
		steady = fabs(d / last - ratio) < 1e-9 ? steady + 1 : 0;
		ratio = d / last;
	}
	if (left <= 0)
		return;
	if (d > 1e-14) {
		s1 += d * ratio / (1 - ratio);
		s2 += d * d * ratio * ratio / (1 - ratio * ratio);
	}
	s->r->s1 = s1;
	s->r->s2 = s2;
	s->r->t_inf = d > 1e-14 ? M_LN2 / -log(ratio) : 0;
}

void mix_mean_matrix(const struct mix_law *law, double *e)
{
	size_t n = law->rows;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			e[i * n + j] = (i == j) - law->pi[j];
	for (uint32_t k = law->event[0].first; k < law->event[0].first + law->event[0].n; k++)
		for (uint32_t a = 0; a < law->plan[k]->n_rows; a++) {
			const struct mw_plan_row *row = &law->plan[k]->row[a];
			double f = law->prob[k] * law->gamma;
			e[row->dst * n + row->dst] -= f;
			for (uint32_t i = row->first; i < row->first + row->n; i++)
				e[row->dst * n + law->plan[k]->src[i]] += f * law->plan[k]->weight[i];
		}
}

static int search_init(struct search *s, struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	size_t n = law->rows;
	*s = (struct search){ .law = law, .r = r };
	MW_TRY(mix_space_init(&s->space, law->rows, law->pi, err));
	s->m = mw_alloc_array(n * n + 2 * n, sizeof(double), "second moments", err);
	if (!s->m)
		return MW_ERESOURCE;
	s->v = s->m + n * n;
	s->u = s->v + n;
	return mix_moments_new(law, &s->step, err);
}

static void search_fini(struct search *s)
{
	mix_space_fini(&s->space);
	mix_moments_free(s->step);
	mw_free(s->m);
}

int mix_moment(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	struct search s;
	uint32_t ends = law->turning ? 1 : law->n_events;
	double best = 0;
	int ret = search_init(&s, law, r, err);
	r->method = law->kind == MIX_IID ? "second-moment recursion" : "second-moment recursion over a sweep";
	if (!ret) {
		/* With gaps between sweeps, ends that are alike in exchanges differ in time: all are tried. */
		if (law->turning && law->every > 1)
			ends = law->n_events;
		for (uint32_t c = 0; c < ends && !isnan(best); c++)
			best = longest(&s, c, best);
		r->t_mix = best;
		r->mixes = isfinite(best);
		if (r->mixes && law->sums && law->kind == MIX_IID) {
			sums(&s);
			if (law->rows <= RADIUS_ROWS) {
				mix_mean_matrix(law, s.m);
				r->lambda2 = mix_radius(&s.space, s.m);
				r->t_1 = r->lambda2 > 1e-12 ? M_LN2 / -log(r->lambda2) : 0;
			}
		}
	}
	search_fini(&s);
	return ret;
}

int mix_moment_curve(struct mix_law *law, uint32_t from, uint32_t n, double *d, struct mw_err *err)
{
	struct mw_mixing_result r = { 0 };
	struct search s;
	double rows = law->rows;
	int ret = search_init(&s, law, &r, err);
	double cost = n * mix_moments_cost(s.step, 0) + (n > from ? n - from : 0) * 10 * rows * rows * rows;
	if (!ret && !mix_spend(law, cost, &r))
		ret = mw_err_set(err, MW_ERESOURCE, "distances: %s", r.reason);
	if (!ret) {
		identity(&s);
		for (uint32_t k = 0; k < n; k++) {
			mix_moments_apply(s.step, 0, s.m);
			d[k] = k < from ? 1 : sqrt(mix_top(&s.space, s.m));
		}
	}
	search_fini(&s);
	return ret;
}
