/* theory_impl.h: what the files behind theory.h share with each other and with evaluate.c. */
#ifndef MW_RUN_THEORY_IMPL_H
#define MW_RUN_THEORY_IMPL_H

#include "run/run.h"

/* Has every worker rows of its own? Then worker w's are mw_order_own(&run->worker[w]->order). */
static inline bool mw_own_rows(const struct mw_run *run)
{
	return run->opt->data_place == MW_DATA_SHARD || run->shards.row;
}

/* An option of the run, as resolved; NAN: it has none of this name, or it is no number. */
double mw_theory_option(const struct mw_run *run, const char *name);

/* evaluate.c, at run->average, one thread: mean gradient of the objective over rows[lo..hi-1], dim doubles. */
void mw_gradient_mean(struct mw_run *run, const struct mw_rows *rows, uint64_t lo, uint64_t hi, double *g);
/* |gradient of this row of the data alone|^2 */
double mw_gradient_square(struct mw_run *run, uint64_t row);

#endif
