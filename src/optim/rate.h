/*
 * rate.h: learning-rate schedules, pure functions of training progress.
 *
 *   constant:A                      A
 *   step:A,factor=F,every=E         A * F^floor(epoch / E)
 *   step:A,factor=F,at=E1/E2/...    A * F^(number of E_i <= epoch)
 *   cosine:A,min=B                  B + (A-B) (1 + cos(pi epoch/epochs)) / 2
 *   invsqrt:A,after=T               A / sqrt(1 + t/T), t = own steps
 *   A                               the same as constant:A
 *
 * Every form takes warmup=E (linear from 0 over the first E epochs). Progress is measured by the worker's own
 * steps, so that no shared counter is read; a worker evaluates the rate every MW_RATE_BLOCK rows
 * (own steps with batches of one; every step with batches of 64 or more).
 */
#ifndef MW_OPTIM_RATE_H
#define MW_OPTIM_RATE_H

#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"

#define MW_RATE_BLOCK 64

struct mw_rate;
int mw_rate_parse(const char *spec, struct mw_rate **out, struct mw_err *err);
void mw_rate_free(struct mw_rate *r);
/* epoch: fractional epochs done; epochs: the run's total; step: own steps done. Thread-safe. */
float mw_rate_at(const struct mw_rate *r, double epoch, double epochs, uint64_t step);
/* The rate that a run begins with once its warm-up is over: what a step's size is quoted by. */
float mw_rate_begin(const struct mw_rate *r, double epochs);
bool mw_rate_is_constant(const struct mw_rate *r);
/* The spec with every default filled in; caller frees. */
char *mw_rate_describe(const struct mw_rate *r);

#endif
