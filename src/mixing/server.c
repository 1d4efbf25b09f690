/*
 * server.c: copies of a server's row (async-ps) under random activation. Row i of Phi is e_0 once worker i has renewed
 * its copy, and keeps the share q of what it missed at every exchange with slack: per row a waiting time, the same for
 * all rows. dTV(k) = E[prod q], d2(k)^2 = E[prod q^2], since M stays diagonal; a run's start, when all own-step counters
 * are 0, is the longest wait. theory.md section 3 has the case without counters.
 */
#include <math.h>

#include "base/mem.h"
#include "mixing/internal.h"

#define SUMS_WORK 2e9

/* Each worker has one plan: its own row becomes the server's, and each other row is some worker's. */
static bool is_server(const struct mix_law *law, uint32_t *seen)
{
	const struct mw_protocol *p = law->p;
	if (!p || p->due != MW_DUE_ALWAYS || law->rows != p->workers + 1)
		return false;
	for (uint32_t w = 0; w < p->workers; w++) {
		const struct mw_plan *plan = p->slot[w].n == 1 ? p->slot[w].plan[0] : NULL;
		if (!plan || plan->n_rows != 1 || plan->n_src != 1 || fabs(law->pi[plan->src[0]] - 1) > 1e-12)
			return false;
		if (plan->row[0].dst == plan->src[0] || seen[plan->row[0].dst]++)
			return false;
	}
	return true;
}

static double power(const void *context, double k)
{
	return exp(k * *(const double *)context);
}

/* keep: factor of one exchange. Every step is an exchange of a given worker with probability 1/n. */
static void geometric(struct mix_law *law, double keep, double half, struct mw_mixing_result *r)
{
	double log_d = log1p(-(1 - keep) / law->workers) * half;
	r->t_mix = mix_crossing(power, &log_d, law->threshold);
	r->s1 = exp(log_d) / -expm1(log_d);
	r->s2 = exp(2 * log_d) / -expm1(2 * log_d);
}

/*
 * weight[c]: E[prod keep] with own-step counter c. A step of the worker moves it on; from the last to 0 it exchanges.
 * When the total has fallen by the same factor for long, the rest of the sums is geometric.
 */
static int counted(
	struct mix_law *law, double keep, double half, struct mw_mixing_result *r, struct mw_err *err)
{
	uint64_t every = (uint64_t)law->every * (law->random_blocks ? 1 : law->blocks);
	double *weight = mw_alloc_array(every, sizeof(*weight), "own-step counters", err),
	       p = 1.0 / law->workers;
	double s1 = 0, s2 = 0, last = 1, ratio = 0, left = SUMS_WORK;
	uint64_t steady = 0;
	if (!weight)
		return MW_ERESOURCE;
	weight[0] = 1;
	for (double k = 1;; k++) {
		double wrap = weight[every - 1], sum = 0, d;
		for (uint64_t c = every - 1; c > 0; c--)
			sum += weight[c] = (1 - p) * weight[c] + p * weight[c - 1];
		sum += weight[0] = (1 - p) * weight[0] + p * keep * wrap;
		d = pow(sum, half);
		s1 += d;
		s2 += d * d;
		if (isnan(r->t_mix) && d <= law->threshold)
			r->t_mix = k;
		if (isnan(r->t_mix) && !mix_spend(law, 4.0 * every, r))
			break;
		left -= 4.0 * every;
		steady = fabs(d / last - ratio) < 1e-12 ? steady + 1 : 0;
		ratio = d / last;
		last = d;
		if (!isnan(r->t_mix) && (!law->sums || d < 1e-15 || steady > every || left < 0))
			break;
	}
	mw_free(weight);
	if (!isnan(r->t_mix) && law->sums && (last < 1e-15 || steady > every)) {
		r->s1 = s1 + (last < 1e-15 ? 0 : last * ratio / (1 - ratio));
		r->s2 = s2 + (last < 1e-15 ? 0 : last * last * ratio * ratio / (1 - ratio * ratio));
	}
	return MW_OK;
}

/* Quenched: all copies are renewed within k steps with probability >= 1 - eps (coupon collector, exact). */
static int quenched(const struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	uint32_t n = law->workers;
	double *have = mw_alloc_array((size_t)n + 1, sizeof(*have), "renewed copies", err), k = 0;
	if (!have)
		return MW_ERESOURCE;
	for (have[0] = 1; 1 - have[n] > law->threshold && k < 1e3 * n; k++) {
		for (uint32_t j = n; j > 0; j--)
			have[j] = have[j] * j / n + have[j - 1] * (n - j + 1) / n;
		have[0] = 0;
	}
	r->t_q = k;
	mw_free(have);
	return MW_OK;
}

int mix_server(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err)
{
	*done = false;
	if (law->kind == MIX_SEQUENCE || law->use_form)
		return MW_OK;
	uint32_t *seen = mw_alloc_array(law->rows, sizeof(*seen), "rows", err);
	if (!seen)
		return MW_ERESOURCE;
	bool server = is_server(law, seen);
	mw_free(seen);
	if (!server)
		return MW_OK;
	double share = law->random_blocks ? 1.0 / law->blocks : 1, left = 1 - law->gamma;
	double keep1 = 1 - share + share * left, keep2 = 1 - share + share * left * left;
	bool l2 = law->norm == MW_NORM_L2;
	*done = true;
	r->method = law->kind == MIX_IID ? "closed form: copies of a server"
					 : "waiting times of a server's copies";
	if (law->kind == MIX_IID) {
		geometric(law, l2 ? keep2 : keep1, l2 ? 0.5 : 1, r);
		r->lambda2 = 1 - (1 - keep1) / law->workers;
		r->t_inf = 2 * M_LN2 / -log1p(-(1 - keep2) / law->workers);
		r->t_1 = M_LN2 / -log1p(-(1 - keep1) / law->workers);
		if (law->gamma >= 1 && share >= 1 && law->sums)
			MW_TRY(quenched(law, r, err));
	} else {
		MW_TRY(counted(law, l2 ? keep2 : keep1, l2 ? 0.5 : 1, r, err));
	}
	r->mixes = isfinite(r->t_mix);
	return MW_OK;
}
