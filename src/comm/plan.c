/* plan.c: mixing plans as data, and the one routine that turns them into matrices; see plan.h. */
#include "comm/plan.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* One block holds the plan and its arrays: gossip on a complete graph has half a million plans of four
 * sources. */
int mw_plan_new(uint32_t n_rows, uint32_t n_src, struct mw_plan **out, struct mw_err *err)
{
	size_t weights = (size_t)n_src * sizeof(double), rows = (size_t)n_rows * sizeof(struct mw_plan_row);
	size_t head = (sizeof(struct mw_plan) + sizeof(double) - 1) / sizeof(double) * sizeof(double);
	char *block = mw_alloc(head + weights + rows + (size_t)n_src * sizeof(uint32_t), "mixing plan", err);
	*out = NULL;
	if (!block)
		return MW_ERESOURCE;
	struct mw_plan *p = (struct mw_plan *)(void *)block;
	p->weight = (double *)(void *)(block + head);
	p->row = (struct mw_plan_row *)(void *)(block + head + weights);
	p->src = (uint32_t *)(void *)(block + head + weights + rows);
	p->rows_max = n_rows;
	p->src_max = n_src;
	*out = p;
	return MW_OK;
}

void mw_plan_free(struct mw_plan *p)
{
	mw_free(p);
}

void mw_plan_add_row(struct mw_plan *p, uint32_t dst, uint32_t n, const uint32_t *src, const double *weight)
{
	assert(n && p->n_rows < p->rows_max && n <= p->src_max - p->n_src);
	p->row[p->n_rows++] = (struct mw_plan_row){ .dst = dst, .first = p->n_src, .n = n };
	memcpy(p->src + p->n_src, src, n * sizeof(*src));
	memcpy(p->weight + p->n_src, weight, n * sizeof(*weight));
	p->n_src += n;
}

void mw_plan_matrix(const struct mw_plan *p, double gamma, uint32_t rows, double *w)
{
	memset(w, 0, (size_t)rows * rows * sizeof(*w));
	for (uint32_t i = 0; i < rows; i++)
		w[(size_t)i * rows + i] = 1;
	for (uint32_t r = 0; r < p->n_rows; r++) {
		const struct mw_plan_row *row = &p->row[r];
		double *wr = w + (size_t)row->dst * rows;
		wr[row->dst] = 1 - gamma;
		for (uint32_t k = row->first; k < row->first + row->n; k++)
			wr[p->src[k]] += gamma * p->weight[k];
	}
}

void mw_plan_apply(const struct mw_plan *p, double gamma, double *phi, uint32_t cols, double *scratch)
{
	for (uint32_t r = 0; r < p->n_rows; r++) {
		const struct mw_plan_row *row = &p->row[r];
		const double *own = phi + (size_t)row->dst * cols;
		double *to = scratch + (size_t)r * cols;
		for (uint32_t j = 0; j < cols; j++)
			to[j] = (1 - gamma) * own[j];
		for (uint32_t k = row->first; k < row->first + row->n; k++) {
			const double *from = phi + (size_t)p->src[k] * cols;
			double f = gamma * p->weight[k];
			for (uint32_t j = 0; j < cols; j++)
				to[j] += f * from[j];
		}
	}
	/* Only now: every source is read before any destination is written. */
	for (uint32_t r = 0; r < p->n_rows; r++)
		memcpy(phi + (size_t)p->row[r].dst * cols, scratch + (size_t)r * cols, cols * sizeof(*phi));
}

double mw_plan_row_sum_error(const struct mw_plan *p)
{
	double worst = 0;
	for (uint32_t r = 0; r < p->n_rows; r++) {
		double sum = 0;
		for (uint32_t k = 0; k < p->row[r].n; k++)
			sum += p->weight[p->row[r].first + k];
		worst = fmax(worst, fabs(sum - 1));
	}
	return worst;
}

bool mw_plan_is_stochastic(const struct mw_plan *p)
{
	for (uint32_t k = 0; k < p->n_src; k++)
		if (p->weight[k] < 0)
			return false;
	return true;
}
