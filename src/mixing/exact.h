/*
 * exact.h: the exact mixing time of a protocol, from the very plans that runs execute (theory.md sections 2 and 3).
 *
 *     d2(k)  = sup_s sup_{z != 0, pi^T z = 0} sqrt(E|Phi(s+k,s) z|^2) / |z|     (l2, threshold 1/2)
 *     dTV(k) = sup_s max_i E TV(row_i Phi(s+k,s), pi)                            (tv, threshold 1/4)
 *     duse(k) = sup_s max_{v,r} E|Phi(s+k,s)[v,r] - pi(r)|, v a view row, r a push row   (signed plans, threshold 1/4)
 *     t_mix  = min{k >= 1 : d(k) <= eps (1 + 1e-9)}
 *
 * Which method applies is chosen from the plans, not from names: a fixed W by its spectrum or by deflated squaring and
 * binary lifting; a sequence by row operations from every start; independent random plans by the second-moment
 * recursion; copies of a server by their waiting time; own-step counters under random activation by the chain of all
 * counters while that is small; and Monte Carlo, with its standard error, for the rest.
 */
#ifndef MW_MIXING_EXACT_H
#define MW_MIXING_EXACT_H

#include "comm/protocol.h"

enum mw_norm { MW_NORM_L2, MW_NORM_TV };
enum mw_unit { MW_UNIT_ROUND, MW_UNIT_EVENT };

struct mw_mixing_knobs {
	int64_t mix_every;   /* 0: the protocol's own */
	double slack;        /* gamma in (0,1]: W := (1 - gamma) I + gamma W; 0 stands for 1 */
	double mix_fraction; /* F in (0,1]: round(1/F) blocks, one a mix; 0 stands for 1 */
	bool random_blocks;  /* each mix exchanges a random block; else the blocks in turn */
	enum mw_activation activation;
	enum mw_norm norm;
	double eps; /* 0: 1/2 for l2, 1/4 for tv */
	uint64_t seed;
	uint32_t replicas; /* Monte Carlo; 0: chosen by size */
	double work;       /* give up beyond about this many floating-point operations; 0: no limit */
	uint64_t delay;    /* shared buffer: writes to it between a read and the write that used it */
	double expected; /* a guess at t_mix, where there is one: a simulation that would be too long ends at once */
	bool sums; /* S1, S2, t_inf, t_1, t_q, lambda2 too (t_mix alone otherwise) */
};

struct mw_mixing_result {
	bool mixes;       /* false: reason says why there is no value */
	bool dear;        /* not computed: more operations than `work` allows */
	char reason[240]; /* why t_mix (or, when it has one, another field) is missing; "" if nothing is */
	double t_mix;     /* in `unit`; an integer but for Monte Carlo; NAN when !mixes */
	double error;     /* standard error of t_mix; 0 unless Monte Carlo */
	enum mw_unit unit;
	double gradient_steps; /* t_mix in gradients: rounds times workers */
	enum mw_norm norm;
	bool use_form; /* duse: signed plans */
	double eps;
	double lambda2; /* second eigenvalue modulus of W, or of E W when random; NAN where there is none */
	double s1, s2;  /* sum_{k>=1} d(k), d(k)^2 of this norm; NAN: not computed */
	double s2f;   /* mode average of S2: (1/n) sum_{k>=1} |Phi - J|_F^2, for a fixed normal W; else NAN */
	double t_inf; /* ln 2 / rate of d2: the tail alone, real-valued; NAN: not known */
	double t_1; /* first moment, ln 2 / -ln(second eigenvalue modulus of E W per step); NAN: not known */
	double t_q; /* quenched: the max over rows is taken before the mean; NAN: not known */
	bool exact; /* false: Monte Carlo */
	bool bound; /* t_mix is an upper bound (ssp) */
	uint32_t replicas;  /* of the Monte Carlo */
	const char *method; /* one line for people, static */
};

/* The default threshold of a norm. */
double mw_mixing_eps(enum mw_norm norm);

/*
 * The mixing time of protocol p. A value that does not exist (l2 of signed plans, a disconnected graph, free-running
 * threads that have no exact law, more than `work`) is no error: mixes is false and the reason says why. Errors: USAGE
 * for knobs out of range or that the protocol has no plan for, RESOURCE out of memory. Thread-safe on distinct results.
 * OpenBLAS is told to work in the calling thread alone: the other CPUs may be workers'.
 */
int mw_mixing_exact(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs,
	struct mw_mixing_result *out, struct mw_err *err);

/*
 * The same for a given sequence of plans, plan[t % period] at native step t (NULL: no exchange), on `rows` rows with
 * fixed weights pi. Knobs used: slack, norm, eps, work, sums. For signed plans view and push (n_use rows each) are
 * needed, else NULL.
 */
int mw_mixing_sequence(const struct mw_plan *const *plan, uint32_t period, uint32_t rows, const double *pi,
	const uint32_t *view, const uint32_t *push, uint32_t n_use, const struct mw_mixing_knobs *knobs,
	struct mw_mixing_result *out, struct mw_err *err);

/* One matrix W (row-major, rows x rows, rows summing to 1); pi NULL: its left fixed vector is computed into pi_out. */
int mw_mixing_matrix(const double *w, uint32_t rows, const double *pi, double *pi_out,
	const struct mw_mixing_knobs *knobs, struct mw_mixing_result *out, struct mw_err *err);

/*
 * d(1..n) of this norm into d[]; recursions at random leave 1 for those up to step `from`, which costs less. Closed forms and
 * recursions only: a protocol that needs Monte Carlo is a USAGE error.
 */
int mw_mixing_curve(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs, uint32_t from,
	uint32_t n, double *d, struct mw_err *err);

/* The mixing time when a view that is held while its gradient is computed counts as a row too. */
struct mw_mixing_view {
	double t_mix; /* in the unit of t_mix; NAN: not known (view.c says where it is) */
	bool bound;   /* at most this */
};
/* r: what mw_mixing_exact has found for the same knobs. RESOURCE: out of memory. */
int mw_mixing_view(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs,
	const struct mw_mixing_result *r, struct mw_mixing_view *out, struct mw_err *err);

/*
 * The inverse: the smallest slack gamma, or the largest period k, for which t_mix <= want (other knobs as given). The
 * result at that value goes to *at. When even gamma = 1 (k = 1) mixes too slowly the return is 0 and *value NAN (0); so they are
 * where a result on the way costs more than `work`, and *at says that.
 */
int mw_mixing_need_slack(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs, double want,
	double *value, struct mw_mixing_result *at, struct mw_err *err);
int mw_mixing_need_period(const struct mw_protocol *p, const struct mw_mixing_knobs *knobs, double want,
	int64_t *value, struct mw_mixing_result *at, struct mw_err *err);

const char *mw_norm_name(const struct mw_mixing_result *r); /* "l2", "tv" or "use" */
const char *mw_unit_name(enum mw_unit unit);                /* "rounds" or "events" */

#endif
