/*
 * plan.h: a mixing plan is data: "replica d becomes the weighted sum of replicas s1, s2, ...", sparse rows of W_t. All
 * rows of a plan are one event: every source is read before any destination is written. ONE executor (mw_plan_exec)
 * carries a plan out on memory and ONE routine (mw_plan_matrix) turns the same plan into a matrix, so theory and run
 * can't differ.
 */
#ifndef MW_COMM_PLAN_H
#define MW_COMM_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"

struct mw_plan_row {
	uint32_t dst;
	uint32_t first, n; /* sources src[first .. first+n) with weight[...]; weights sum to 1 */
};

struct mw_plan {
	uint32_t n_rows, n_src;
	uint32_t rows_max, src_max; /* room */
	struct mw_plan_row *row;
	uint32_t *src;
	double *weight;
};

/* Room for n_rows rows and n_src sources in all; fill with mw_plan_add_row. */
int mw_plan_new(uint32_t n_rows, uint32_t n_src, struct mw_plan **out, struct mw_err *err);
void mw_plan_free(struct mw_plan *p);
/* Append a row (asserts room). */
void mw_plan_add_row(struct mw_plan *p, uint32_t dst, uint32_t n, const uint32_t *src, const double *weight);

/* The N x N matrix (row-major) of the plan with slack gamma: (1 - gamma) I + gamma W; rows not listed are e_i. */
void mw_plan_matrix(const struct mw_plan *p, double gamma, uint32_t rows, double *w);
/* phi := ((1 - gamma) I + gamma W) phi for phi of rows x cols, by row operations; scratch: n_rows * cols doubles. */
void mw_plan_apply(const struct mw_plan *p, double gamma, double *phi, uint32_t cols, double *scratch);
/* The largest |row sum - 1|. */
double mw_plan_row_sum_error(const struct mw_plan *p);
/* Are all weights non-negative? */
bool mw_plan_is_stochastic(const struct mw_plan *p);

#endif
