/* internal.h: what the methods of the exact mixing time share; nothing here is for other modules. */
#ifndef MW_MIXING_INTERNAL_H
#define MW_MIXING_INTERNAL_H

#include "mixing/exact.h"

#define MIX_TOL       1e-9 /* d <= eps (1 + MIX_TOL): equality really occurs (theory.md 2.1) */
#define MIX_MAX_STEPS 1e13 /* beyond this a product is said not to mix */

/* How W_t is made. */
enum mix_kind {
	MIX_SEQUENCE, /* a periodic sequence of exchanges, each random among its plans (or not) */
	MIX_IID,      /* every step draws independently from one list of plans */
	MIX_COUNTERS, /* random activation with own-step counters: not independent over steps; event w is worker w's mix */
};

struct mix_event {
	uint64_t t; /* native step within the period (before scaling) */
	uint32_t first,
		n; /* plans plan[first .. first+n) with probabilities prob[...]; the rest of 1: no exchange */
};

struct mix_law {
	enum mix_kind kind;
	const struct mw_protocol *p; /* NULL for a bare sequence */
	uint32_t rows, workers;
	const double *pi;
	double gamma, eps, threshold; /* threshold: eps (1 + MIX_TOL) */
	enum mw_norm norm;
	bool use_form;
	uint32_t n_use;
	const uint32_t *view, *push;
	uint32_t scale; /* native steps that one step of the law stands for (mix-every under a barrier) */
	bool fixed;     /* one plan, every step */
	bool random;    /* some event draws */
	bool turning; /* event e+1 is event e with every worker renamed to the next one: one start stands for all */
	bool transitive; /* the workers' lists are alike up to that renaming */
	uint64_t period;
	uint32_t n_events, n_plans;
	struct mix_event *event;
	const struct mw_plan **plan;
	double *prob;
	/* own-step counters, for COUNTERS and Monte Carlo */
	uint32_t every, blocks, block;
	bool random_blocks;
	enum mw_activation activation;
	uint64_t seed;
	uint32_t replicas;
	double work; /* operations left */
	double expected;
	bool sums;
};

/* A pair average: probability p of the edge (i, j). */
struct mix_edge {
	uint32_t i, j;
	double p;
};

/* law.c. MW_OK, or a negative code; *why is set (and nothing made) when there is no exact law. */
int mix_law_init(struct mix_law *law, const struct mw_protocol *p, const struct mw_mixing_knobs *k,
	uint32_t block, const char **why, struct mw_err *err);
int mix_law_sequence(
	struct mix_law *law, const struct mw_plan *const *plan, uint32_t period, struct mw_err *err);
void mix_law_fini(struct mix_law *law);
void mix_law_knobs(struct mix_law *law, const struct mw_mixing_knobs *k);
/* Can every row hear from the rows that pi lives on? Otherwise the products never mix. */
int mix_law_connected(const struct mix_law *law, bool *connected, struct mw_err *err);
/* There is no value since it would take more than the budget. */
void mix_too_dear(struct mw_mixing_result *r);
/* Take `operations` off the budget; false, with the reason in *r, when it is used up. */
bool mix_spend(struct mix_law *law, double operations, struct mw_mixing_result *r);

/* symmetry.c */
int mix_law_symmetry(struct mix_law *law, struct mw_err *err);

/* dense.c: N x N row-major matrices. */
struct mix_space {
	uint32_t n;
	const double *pi;
	double pi2; /* |pi|^2 */
	double *g, *a, *b;
};
int mix_space_init(struct mix_space *s, uint32_t n, const double *pi, struct mw_err *err);
void mix_space_fini(struct mix_space *s);
void mix_deflated_identity(const struct mix_space *s, double *e); /* I - 1 pi^T */
double mix_tv(const double *e, uint32_t rows, uint32_t cols);     /* max row of |.|_1 / 2 */
double mix_l2(const struct mix_space *s, const double *e);        /* norm of E on ker pi^T */
bool mix_l2_within(const struct mix_space *s, const double *e, double threshold);
double mix_top(
	const struct mix_space *s, const double *m); /* largest eigenvalue of symmetric M on ker pi^T */
bool mix_top_within(const struct mix_space *s, const double *m, double threshold2);
double mix_radius(const struct mix_space *s, const double *e); /* spectral radius */
double mix_distance(const struct mix_law *law, const struct mix_space *s, const double *e);
bool mix_within(const struct mix_law *law, const struct mix_space *s, const double *e);

/* series.c: sums over k of a d(k) that falls smoothly, and the smallest k with d(k) <= threshold. */
typedef double mix_curve(const void *context, double k);
/* cost: operations of one d(k); when dear, fewer terms are summed one by one. */
void mix_series(mix_curve *d, const void *context, double cost, double *s1, double *s2);
double mix_crossing(mix_curve *d, const void *context, double threshold);
/* S of a curve whose every step lasts `scale` native steps: windows of k steps hold at least k / scale exchanges. */
void mix_scale_result(const struct mix_law *law, struct mw_mixing_result *r);

/* The methods; each fills *r (native steps before scaling) or says in r->reason why not. */
int mix_fixed(struct mix_law *law, const double *w, struct mw_mixing_result *r, struct mw_err *err);
/* The same from a plan whose matrix is a circulant, without the matrix; *done tells whether it was one. */
int mix_circulant(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err);
int mix_periodic(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err);
int mix_moment(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err);
/* Closed forms for pair averages on a ring and on a complete graph: *done tells whether it was one. */
int mix_pairs(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err);
int mix_server(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err);
int mix_counters(struct mix_law *law, struct mw_mixing_result *r, bool *done, struct mw_err *err);
int mix_monte_carlo(struct mix_law *law, struct mw_mixing_result *r, struct mw_err *err);

/* ssp.c */
int mix_ssp(const struct mw_protocol *p, const struct mw_mixing_knobs *k, struct mw_mixing_result *r,
	struct mw_err *err);

/* moment.c: one exact step M := E[W^T M W] for the law's event e. */
struct mix_moments;
int mix_moments_new(const struct mix_law *law, struct mix_moments **out, struct mw_err *err);
void mix_moments_free(struct mix_moments *m);
void mix_moments_apply(struct mix_moments *m, uint32_t event, double *matrix);
double mix_moments_cost(const struct mix_moments *m, uint32_t event);
int mix_moment_curve(struct mix_law *law, uint32_t from, uint32_t n, double *d, struct mw_err *err);
int mix_periodic_curve(struct mix_law *law, uint32_t n, double *d, struct mw_err *err);
/* E W - 1 pi^T of an IID law. */
void mix_mean_matrix(const struct mix_law *law, double *e);

#endif
