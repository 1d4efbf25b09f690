/* exact.c: which method gives a protocol's mixing time, and the inverse questions; see exact.h. */
#include "mixing/exact.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"
#include "mixing/linalg.h"

#define MAX_EVERY 1000000000

double mw_mixing_eps(enum mw_norm norm)
{
	return norm == MW_NORM_L2 ? 0.5 : 0.25;
}

const char *mw_norm_name(const struct mw_mixing_result *r)
{
	return r->use_form ? "use" : r->norm == MW_NORM_L2 ? "l2" : "tv";
}

const char *mw_unit_name(enum mw_unit unit)
{
	return unit == MW_UNIT_ROUND ? "rounds" : "events";
}

static void result_init(struct mw_mixing_result *r, const struct mw_mixing_knobs *k)
{
	*r = (struct mw_mixing_result){
		.norm = k->norm, .exact = true, .method = "none", .unit = MW_UNIT_ROUND
	};
	r->eps = k->eps > 0 ? k->eps : mw_mixing_eps(k->norm);
	r->t_mix = r->gradient_steps = r->lambda2 = r->s1 = r->s2 = r->s2f = r->t_inf = r->t_1 = r->t_q = NAN;
}

static int check_knobs(const struct mw_mixing_knobs *k, struct mw_err *err)
{
	if (!(k->slack >= 0 && k->slack <= 1))
		MW_FAIL(err, USAGE, "slack %g is out of range: above 0, at most 1", k->slack);
	if (!(k->mix_fraction >= 0 && k->mix_fraction <= 1) ||
		(k->mix_fraction > 0 && k->mix_fraction < 1e-6))
		MW_FAIL(err, USAGE, "mix fraction %g is out of range: 1e-6 to 1", k->mix_fraction);
	if (k->mix_every < 0 || k->mix_every > MAX_EVERY)
		MW_FAIL(err, USAGE, "mix-every %" PRId64 " is out of range: 1 to %d", k->mix_every,
			MAX_EVERY);
	if (!(k->eps >= 0 && k->eps < 1))
		MW_FAIL(err, USAGE, "eps %g is out of range: above 0, below 1", k->eps);
	return MW_OK;
}

static bool has_mixing_knob(const struct mw_mixing_knobs *k)
{
	return k->mix_every > 0 || (k->slack > 0 && k->slack < 1) ||
	       (k->mix_fraction > 0 && k->mix_fraction < 1);
}

/* One shared buffer, read at most `delay` writes late: d is 1 up to the delay and 0 after (theory.md 1.2 b). */
static int shared_buffer(const struct mw_protocol *p, const struct mw_mixing_knobs *k,
	struct mw_mixing_result *r, struct mw_err *err)
{
	if (has_mixing_knob(k))
		MW_FAIL(err, USAGE,
			"protocol %s has one shared replica and no exchange: --mix-every, --slack and "
			"--mix-fraction need "
			"a protocol with several replicas (see mixwild list protocols)",
			p->ops ? p->ops->name : "without plans");
	r->mixes = true;
	r->method = "constant delay of a shared buffer";
	r->t_mix = r->t_q = (double)k->delay + 1;
	r->s1 = r->s2 = (double)k->delay;
	r->t_inf = r->t_1 = 0;
	return MW_OK;
}

static int fixed(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	bool done;
	MW_TRY(mix_circulant(law, r, &done, err));
	if (done)
		return MW_OK;
	double *w = mw_alloc_array((size_t)law->rows * law->rows, sizeof(double), "mixing matrix", err);
	if (!w)
		return MW_ERESOURCE;
	mw_plan_matrix(law->plan[0], law->gamma, law->rows, w);
	int ret = mix_fixed(law, w, r, err);
	mw_free(w);
	return ret;
}

static int dispatch(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err)
{
	bool done = false;
	if (law->fixed && !law->use_form)
		return fixed(law, r, err);
	if (law->kind == MIX_SEQUENCE && !law->random)
		return mix_periodic(law, r, err);
	MW_TRY(mix_server(law, r, &done, err));
	if (!done)
		MW_TRY(mix_pairs(law, r, &done, err));
	if (!done && law->norm == MW_NORM_L2 && !law->use_form && law->kind != MIX_COUNTERS) {
		done = true;
		MW_TRY(mix_moment(law, r, err));
	}
	if (!done)
		MW_TRY(mix_counters(law, r, &done, err));
	return done ? MW_OK : mix_monte_carlo(law, r, err);
}

/* One block of coordinates; *r starts afresh. */
static int one_block(const struct mw_protocol *p, const struct mw_mixing_knobs *k, uint32_t block,
	struct mw_mixing_result *r, struct mw_err *err)
{
	struct mix_law law;
	const char *why;
	bool connected = true;
	int ret = mix_law_init(&law, p, k, block, &why, err);
	if (!ret && why) {
		snprintf(r->reason, sizeof(r->reason), "%s", why);
		mix_law_fini(&law);
		return MW_OK;
	}
	if (!ret)
		ret = mix_law_connected(&law, &connected, err);
	if (!ret && !connected)
		snprintf(r->reason, sizeof(r->reason),
			"never mixes: some replicas never hear of others (the graph is not connected)");
	if (!ret && connected)
		ret = mix_law_symmetry(&law, err);
	if (!ret && connected)
		ret = dispatch(&law, r, err);
	if (!ret && r->mixes)
		mix_scale_result(&law, r);
	mix_law_fini(&law);
	return ret;
}

/* With edges in turn and blocks in turn, a block may meet only some of the edges: the slowest block counts. */
static int all_blocks(const struct mw_protocol *p, const struct mw_mixing_knobs *k,
	struct mw_mixing_result *r, struct mw_err *err)
{
	uint32_t blocks = k->mix_fraction > 0 ? (uint32_t)llround(1 / k->mix_fraction) : 1;
	uint32_t least = blocks - 1;
	for (uint32_t s = 0; s < p->n_slots; s++)
		if (p->pick == MW_PICK_CYCLIC && p->slot[s].n > 1 && !k->random_blocks)
			least = 0;
	for (uint32_t b = blocks; b-- > least;) {
		struct mw_mixing_result one = *r;
		MW_TRY(one_block(p, k, b, &one, err));
		if (b == blocks - 1 || !one.mixes || one.t_mix > r->t_mix) {
			bool first = b == blocks - 1;
			double s1 = r->s1, s2 = r->s2;
			*r = one;
			r->s1 = first ? one.s1 : fmax(s1, one.s1);
			r->s2 = first ? one.s2 : fmax(s2, one.s2);
		}
		if (!r->mixes)
			break;
	}
	return MW_OK;
}

int mw_mixing_exact(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs,
	struct mw_mixing_result *out, struct mw_err *err)
{
	result_init(out, knobs);
	MW_TRY(check_knobs(knobs, err));
	out->unit = p->clock == MW_CLOCK_ROUND ? MW_UNIT_ROUND : MW_UNIT_EVENT;
	out->use_form = p->signed_plan;
	if (knobs->delay && p->n_slots)
		MW_FAIL(err, USAGE,
			"a constant delay is for protocols with one shared replica (hogwild); with replicas "
			"every view is at most the delay + 1 steps older than t_mix says");
	if (!p->n_slots) {
		MW_TRY(shared_buffer(p, knobs, out, err));
	} else if (p->due == MW_DUE_SSP) {
		MW_TRY(mix_ssp(p, knobs, out, err));
	} else if (p->signed_plan && knobs->norm == MW_NORM_L2) {
		out->use_form = false;
		snprintf(out->reason, sizeof(out->reason),
			"l2 does not apply: the plans have negative weights; --norm tv gives their use form");
	} else if (p->rows == 1) {
		out->mixes = true;
		out->method = "one replica";
		out->t_mix = out->t_q = 1;
		out->s1 = out->s2 = out->t_inf = out->t_1 = 0;
	} else {
		MW_TRY(all_blocks(p, knobs, out, err));
	}
	if (!out->mixes)
		out->t_mix = NAN;
	out->gradient_steps = out->t_mix * (out->unit == MW_UNIT_ROUND ? p->workers : 1);
	return MW_OK;
}

int mw_mixing_sequence(const struct mw_plan *const *plan, uint32_t period, uint32_t rows, const double *pi,
	const uint32_t *view, const uint32_t *push, uint32_t n_use, const struct mw_mixing_knobs *knobs,
	struct mw_mixing_result *out, struct mw_err *err)
{
	struct mix_law law = { .rows = rows, .pi = pi, .view = view, .push = push, .n_use = n_use };
	bool connected;
	result_init(out, knobs);
	MW_TRY(check_knobs(knobs, err));
	mix_law_knobs(&law, knobs);
	out->unit = MW_UNIT_EVENT;
	out->use_form = law.use_form = view != NULL;
	int ret = mix_law_sequence(&law, plan, period, err);
	if (!ret)
		ret = mix_law_connected(&law, &connected, err);
	if (!ret && !connected)
		snprintf(out->reason, sizeof(out->reason), "never mixes: some rows never hear of others");
	else if (!ret)
		ret = mix_periodic(&law, out, err);
	if (!out->mixes)
		out->t_mix = NAN;
	out->gradient_steps = out->t_mix;
	mix_law_fini(&law);
	return ret;
}

/* The common row of W^(2^40): rows are renormalised at every squaring, so sums stay 1. */
static int stationary(const double *w, uint32_t n, double *pi, struct mw_err *err)
{
	size_t cells = (size_t)n * n;
	double *a = mw_alloc_array(2 * cells, sizeof(double), "powers of W", err), *b;
	if (!a)
		return MW_ERESOURCE;
	b = a + cells;
	memcpy(a, w, cells * sizeof(*w));
	for (int j = 0; j < 40; j++) {
		mix_multiply(n, a, a, b);
		for (size_t i = 0; i < n; i++) {
			double sum = 0;
			for (size_t k = 0; k < n; k++)
				sum += b[i * n + k];
			for (size_t k = 0; k < n; k++)
				a[i * n + k] = b[i * n + k] / sum;
		}
	}
	memcpy(pi, a, n * sizeof(*pi));
	mw_free(a);
	return MW_OK;
}

int mw_mixing_matrix(const double *w, uint32_t rows, const double *pi, double *pi_out,
	const struct mw_mixing_knobs *knobs, struct mw_mixing_result *out, struct mw_err *err)
{
	struct mix_law law = { .rows = rows, .pi = pi ? pi : pi_out, .fixed = true };
	result_init(out, knobs);
	MW_TRY(check_knobs(knobs, err));
	mix_law_knobs(&law, knobs);
	if (!pi)
		MW_TRY(stationary(w, rows, pi_out, err));
	double *slacked = mw_alloc_array((size_t)rows * rows, sizeof(double), "mixing matrix", err);
	if (!slacked)
		return MW_ERESOURCE;
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < rows; j++)
			slacked[(size_t)i * rows + j] =
				(1 - law.gamma) * (i == j) + law.gamma * w[(size_t)i * rows + j];
	int ret = mix_fixed(&law, slacked, out, err);
	mw_free(slacked);
	out->gradient_steps = out->t_mix * rows;
	return ret;
}

/* d of the law's own steps, stretched: a window of k native steps holds at least k / scale exchanges. */
static void stretch(const struct mix_law *law, uint32_t n, double *d)
{
	double d0 = 1;
	if (law->norm == MW_NORM_TV && !law->use_form)
		for (uint32_t i = 0; i < law->rows; i++)
			d0 = i ? fmax(d0, 1 - law->pi[i]) : 1 - law->pi[i];
	for (uint32_t k = n; law->scale > 1 && k > 0; k--)
		d[k - 1] = k < law->scale ? d0 : d[k / law->scale - 1];
}

int mw_mixing_curve(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs, uint32_t from,
	uint32_t n, double *d, struct mw_err *err)
{
	struct mix_law law;
	const char *why;
	MW_TRY(check_knobs(knobs, err));
	if (!p->n_slots || p->due == MW_DUE_SSP || p->rows == 1)
		MW_FAIL(err, USAGE, "this protocol has no sequence of exchanges to compute distances from");
	int ret = mix_law_init(&law, p, knobs, 0, &why, err);
	if (!ret && why)
		ret = mw_err_set(err, MW_EUSAGE, "%s", why);
	else if (!ret && law.kind == MIX_SEQUENCE && !law.random)
		ret = mix_periodic_curve(&law, n, d, err);
	else if (!ret && law.kind == MIX_IID && law.norm == MW_NORM_L2 && !law.use_form)
		ret = mix_moment_curve(&law, from / law.scale, n, d, err);
	else if (!ret)
		ret = mw_err_set(err, MW_EUSAGE, "these distances have no closed recursion; ask for t_mix");
	if (!ret)
		stretch(&law, n, d);
	mix_law_fini(&law);
	return ret;
}

static int at_slack(const struct mw_protocol *p, const struct mw_mixing_knobs *k, double slack,
	struct mw_mixing_result *r, struct mw_err *err)
{
	struct mw_mixing_knobs with = *k;
	with.slack = slack;
	with.sums = false;
	return mw_mixing_exact(p, &with, r, err);
}

/* Bisection on log(gamma): t_mix falls as gamma grows while (1 - gamma) I + gamma W has no eigenvalue below -rho. */
int mw_mixing_need_slack(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs, double want,
	double *value, struct mw_mixing_result *at, struct mw_err *err)
{
	double low = 1, high = 1;
	*value = NAN;
	MW_TRY(at_slack(p, knobs, 1, at, err));
	if (!at->mixes || at->bound || at->t_mix > want)
		return MW_OK;
	for (;;) {
		MW_TRY(at_slack(p, knobs, low / 2, at, err));
		if (at->dear) /* neither within what is wanted nor beyond */
			return MW_OK;
		if (!at->mixes || at->t_mix > want || low < 1e-12)
			break;
		low /= 2;
	}
	high = low;
	low /= 2;
	while (high / low > 1 + 1e-12) {
		double mid = sqrt(low * high);
		MW_TRY(at_slack(p, knobs, mid, at, err));
		if (at->dear) /* neither within what is wanted nor beyond */
			return MW_OK;
		if (at->mixes && at->t_mix <= want)
			high = mid;
		else
			low = mid;
		if (!at->exact && high / low < 1 + 1e-3)
			break;
	}
	*value = high;
	return at_slack(p, knobs, high, at, err);
}

static int at_period(const struct mw_protocol *p, const struct mw_mixing_knobs *k, int64_t every,
	double expected, struct mw_mixing_result *r, struct mw_err *err)
{
	struct mw_mixing_knobs with = *k;
	with.mix_every = every;
	with.expected = expected;
	with.sums = false;
	return mw_mixing_exact(p, &with, r, err);
}

int mw_mixing_need_period(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs, double want,
	int64_t *value, struct mw_mixing_result *at, struct mw_err *err)
{
	int64_t low = 1, high = 1;
	*value = 0;
	MW_TRY(at_period(p, knobs, 1, 0, at, err));
	if (!at->mixes || at->bound || at->t_mix > want)
		return MW_OK;
	double one = at->t_mix;
	do {
		low = high;
		high *= 2;
		MW_TRY(at_period(p, knobs, high, one * (double)high, at, err));
		if (at->dear) /* neither within what is wanted nor beyond */
			return MW_OK;
	} while (at->mixes && at->t_mix <= want && high < MAX_EVERY / 2);
	while (high - low > 1) {
		int64_t mid = low + (high - low) / 2;
		MW_TRY(at_period(p, knobs, mid, one * (double)mid, at, err));
		if (at->dear) /* neither within what is wanted nor beyond */
			return MW_OK;
		if (at->mixes && at->t_mix <= want)
			low = mid;
		else
			high = mid;
	}
	*value = low;
	return at_period(p, knobs, low, one * (double)low, at, err);
}
