/*
 * pairs.c: l2 of random pair averages in closed form on the two graphs where the second moment stays simple. W = I - (g/2)
 * q q^T for an edge (q = e_i - e_j, slack g), so E[W^T M W] = M - (g/2) E[q q^T M + M q q^T] + (g^2/4) E[(q^T M q) q q^T].
 *
 * Complete graph: M_k stays a multiple of I - J, d2(k)^2 = (1 - P (2 g - g^2) / (n - 1))^k with P the probability of an
 * exchange. Ring: M_k stays circulant; with l_j = 2 - 2 cos(2 pi j/n) its eigenvalues follow
 *     m_j' = (1 - g P l_j / n) m_j + (g^2 P / (4 n^2)) l_j sum_i l_i m_i,
 * diagonal plus rank one. m_j = m_{n-j} halves the size. The eigenvalues of I minus that operator (small ones are what
 * counts, so it is formed without the I) solve a secular equation, and with their vectors give d2(k) for any k (theory.md 2.3 c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"

static int by_ends(const void *pa, const void *pb)
{
	const struct mix_edge *a = pa, *b = pb;
	if (a->i != b->i)
		return a->i < b->i ? -1 : 1;
	return a->j == b->j ? 0 : a->j < b->j ? -1 : 1;
}

static bool is_pair(const struct mw_plan *p)
{
	if (p->n_rows != 2 || p->n_src != 4)
		return false;
	for (uint32_t a = 0; a < 2; a++) {
		const struct mw_plan_row *row = &p->row[a];
		if (row->n != 2 || p->src[row->first] != p->row[0].dst ||
			p->src[row->first + 1] != p->row[1].dst)
			return false;
		if (p->weight[row->first] != 0.5 || p->weight[row->first + 1] != 0.5)
			return false;
	}
	return true;
}

/* The law's edges, each once; 0 when some plan is no pair average. */
static uint32_t find_edges(const struct mix_law *law, struct mix_edge *edge)
{
	uint32_t n = 0;
	for (uint32_t k = 0; k < law->n_plans; k++) {
		if (!is_pair(law->plan[k]))
			return 0;
		uint32_t a = law->plan[k]->row[0].dst, b = law->plan[k]->row[1].dst;
		edge[k] = (struct mix_edge){ a < b ? a : b, a < b ? b : a, law->prob[k] };
	}
	qsort(edge, law->n_plans, sizeof(*edge), by_ends);
	for (uint32_t k = 0; k < law->n_plans; k++)
		if (n && !by_ends(&edge[n - 1], &edge[k]))
			edge[n - 1].p += edge[k].p;
		else
			edge[n++] = edge[k];
	return n;
}

static bool equal_shares(const struct mix_edge *edge, uint32_t n)
{
	for (uint32_t k = 1; k < n; k++)
		if (fabs(edge[k].p / edge[0].p - 1) > 1e-9)
			return false;
	return true;
}

static bool is_ring(const struct mix_edge *edge, uint32_t n_edges, uint32_t n)
{
	bool fine = n >= 3 && n_edges == n;
	for (uint32_t k = 0; fine && k < n; k++)
		fine = edge[k].j == edge[k].i + 1 || (edge[k].i == 0 && edge[k].j == n - 1);
	return fine;
}

static double power(const void *context, double k)
{
	return exp(k * *(const double *)context);
}

static void complete(struct mix_law *law, double p, struct mw_mixing_result *r)
{
	double g = law->gamma, n = law->rows, log_d = log1p(-fmin(1, p * (2 * g - g * g) / (n - 1))) / 2;
	r->lambda2 = 1 - p * g / (n - 1);
	r->t_inf = M_LN2 / -log_d;
	r->t_1 = M_LN2 / -log1p(-fmin(1, p * g / (n - 1)));
	if (law->norm != MW_NORM_L2 &&
		log_d > -INFINITY) /* but two workers agree after one step in any norm */
		return;
	r->t_mix = mix_crossing(power, &log_d, law->threshold);
	r->mixes = true;
	r->method = "closed form: random pairs of a complete graph";
	r->s1 = exp(log_d) / -expm1(log_d);
	r->s2 = exp(2 * log_d) / -expm1(2 * log_d);
}

/*
 * m_j(k) = sum_i mode[j * h + i] exp(k log_rate[i]), j, i < h = n / 2. With m_j = m_{n-j} the operator, less I and made
 * symmetric, is diag(a) - c z z^T, a_j = g P l_j / n, z_j = l_j sqrt(how many j share m_j).
 */
struct ring {
	uint32_t h;
	double *mode, *log_rate, *peak; /* peak[i] >= |mode[j * h + i]| for all j */
	double *gap;                    /* scratch, h */
	double *z2;                     /* z_j^2 */
	double *sine;                   /* sin(pi k / n), k <= n */
	double scale, c;                /* a_j = scale l_j */
};

static double ring_distance(const void *context, double k)
{
	const struct ring *x = context;
	double most = 0, slowest = exp(k * x->log_rate[0]) * x->peak[0];
	uint32_t live = 1;
	while (live < x->h && exp(k * x->log_rate[live]) * x->peak[live] > 1e-17 * slowest)
		live++;
	for (uint32_t i = 0; i < live; i++)
		x->gap[i] = exp(k * x->log_rate[i]);
	for (uint32_t j = 0; j < x->h; j++) {
		double m = 0;
		for (uint32_t i = 0; i < live; i++)
			m += x->mode[(size_t)j * x->h + i] * x->gap[i];
		most = fmax(most, m);
	}
	return sqrt(most);
}

static double multiplicity(uint32_t j, uint32_t n)
{
	return 2 * (j + 1) == n ? 1 : 2;
}

/* a_j - a_o, exact to rounding also where both are nearly equal. */
static double between(const struct ring *x, uint32_t j, uint32_t o)
{
	double s = x->sine[j + o + 2] * (j < o ? -x->sine[o - j] : x->sine[j - o]);
	return 4 * x->scale * s;
}

/* 1 - c sum_j z_j^2 / (a_j - a_o - x), with a_j - a_o in gap: falls from pole to pole, its roots are the eigenvalues. */
static double secular(const struct ring *x, double off)
{
	double sum = 0;
	for (uint32_t j = 0; j < x->h; j++)
		sum += x->z2[j] / (x->gap[j] - off);
	return 1 - x->c * sum;
}

static void gaps_from(struct ring *x, uint32_t o)
{
	for (uint32_t j = 0; j < x->h; j++)
		x->gap[j] = between(x, j, o);
}

/* The i-th eigenvalue lies between a_{i-1} (or 0) and a_i: its distance from the nearer one, *o, by bisection. */
static double ring_root(struct ring *x, uint32_t i, uint32_t *o)
{
	double low = 0, high = 0;
	*o = i ? i - 1 : 0;
	gaps_from(x, *o);
	if (!i)
		low = -4 * x->scale * x->sine[1] * x->sine[1];
	else if (secular(x, x->gap[i] / 2) <= 0)
		high = x->gap[i] / 2;
	else {
		low = -x->gap[i] / 2;
		*o = i;
		gaps_from(x, i);
	}
	for (;;) {
		double mid = (low + high) / 2;
		if (!(mid > low && mid < high))
			return mid;
		if (secular(x, mid) > 0)
			low = mid;
		else
			high = mid;
	}
}

/* The z that has exactly the eigenvalues that were found: with it the vectors are orthogonal (Gu and Eisenstat 1994). */
static double repaired_z2(const struct ring *x, uint32_t j)
{
	const double *to = x->mode + (size_t)j * x->h; /* a_j - the eigenvalues */
	double product = to[j];
	for (uint32_t i = 0; i < x->h; i++)
		if (i != j)
			product *= to[i] / between(x, j, i);
	return product / x->c;
}

/* In O(n^2), by the secular equation: eigenvalues, and mode[j][i] = v_ij (v_i . start) with M_0 = I, all m_j = 1. */
static void ring_modes(struct ring *x, uint32_t n)
{
	uint32_t h = x->h;
	double *along = x->peak, *square = x->gap;
	for (uint32_t j = 0; j < h; j++) {
		double l = 4 * x->sine[j + 1] * x->sine[j + 1];
		x->z2[j] = l * l * multiplicity(j, n);
	}
	for (uint32_t i = 0; i < h; i++) {
		uint32_t o;
		double off = ring_root(x, i, &o);
		double at = 4 * x->scale * x->sine[o + 1] * x->sine[o + 1] + off;
		x->log_rate[i] = log1p(-fmin(fmax(at, 0), 1));
		for (uint32_t j = 0; j < h; j++)
			x->mode[(size_t)j * h + i] = x->gap[j] - off;
	}
	memset(along, 0, h * sizeof(*along));
	memset(square, 0, h * sizeof(*square));
	for (uint32_t j = 0; j < h; j++) {
		double z2 = repaired_z2(x, j), root = sqrt(z2 * multiplicity(j, n));
		double *to = x->mode + (size_t)j * h;
		for (uint32_t i = 0; i < h; i++) {
			along[i] += root / to[i];
			square[i] += z2 / (to[i] * to[i]);
			to[i] = sqrt(z2 / multiplicity(j, n)) / to[i];
		}
	}
	for (uint32_t i = 0; i < h; i++)
		along[i] /= square[i];
	for (uint32_t j = 0; j < h; j++)
		for (uint32_t i = 0; i < h; i++)
			x->mode[(size_t)j * h + i] *= along[i];
	memset(x->peak, 0, h * sizeof(*x->peak));
	for (uint32_t j = 0; j < h; j++)
		for (uint32_t i = 0; i < h; i++)
			x->peak[i] = fmax(x->peak[i], fabs(x->mode[(size_t)j * h + i]));
}

static int ring(struct mix_law *law, double p, struct mw_mixing_result *r, struct mw_err *err)
{
	uint32_t n = law->rows, h = n / 2;
	double g = law->gamma, gap1;
	struct ring x = { .h = h, .scale = g * p / n, .c = g * g * p / (4.0 * n * n) };
	x.mode = mw_alloc_array((size_t)h * h + 4 * (size_t)h + n + 1, sizeof(double), "ring modes", err);
	if (!x.mode)
		return MW_ERESOURCE;
	x.log_rate = x.mode + (size_t)h * h;
	x.peak = x.log_rate + h;
	x.gap = x.peak + h;
	x.z2 = x.gap + h;
	x.sine = x.z2 + h;
	for (uint32_t k = 0; k <= n; k++)
		x.sine[k] = sin(M_PI * (2 * k < n ? k : n - k) / n);
	ring_modes(&x, n);
	gap1 = 2 * x.scale * x.sine[1] * x.sine[1];
	r->lambda2 = 1 - gap1;
	r->t_1 = M_LN2 / -log1p(-gap1);
	r->t_inf = 2 * M_LN2 / -x.log_rate[0];
	if (law->norm == MW_NORM_L2) {
		r->method = "second-moment recursion on a ring (diagonal plus rank one)";
		r->t_mix = mix_crossing(ring_distance, &x, law->threshold);
		r->mixes = isfinite(r->t_mix);
		if (law->sums)
			mix_series(ring_distance, &x, 2.0 * h * h, &r->s1, &r->s2);
	}
	mw_free(x.mode);
	return MW_OK;
}

int mix_pairs(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err)
{
	uint32_t n = law->rows;
	*done = false;
	if (law->kind != MIX_IID || !law->n_plans)
		return MW_OK;
	struct mix_edge *edge = mw_alloc_array(law->n_plans, sizeof(*edge), "edges", err);
	if (!edge)
		return MW_ERESOURCE;
	uint32_t n_edges = find_edges(law, edge);
	int ret = MW_OK;
	if (n_edges && equal_shares(edge, n_edges)) {
		double p = edge[0].p * n_edges;
		if (n_edges == (uint64_t)n * (n - 1) / 2)
			complete(law, p, r);
		else if (is_ring(edge, n_edges, n))
			ret = ring(law, p, r, err);
		*done = r->mixes;
	}
	mw_free(edge);
	return ret;
}
