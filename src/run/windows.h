/*
 * windows.h: within one run whose schedule changes: the mixing time of each stretch between two evaluations, against the
 * decrease of the training loss per native step in it.
 */
#ifndef MW_RUN_WINDOWS_H
#define MW_RUN_WINDOWS_H

#include <jansson.h>

#include "base/err.h"

enum { MW_WINDOWS_MAX = 4096 };

struct mw_windows;

int mw_windows_new(struct mw_windows **out, struct mw_err *err);
void mw_windows_free(struct mw_windows *w);
/* At native step `step` the loss is `loss`; t_mix is that of the stretch since the last call (NAN: none). */
void mw_windows_add(struct mw_windows *w, double step, double t_mix, double loss);
/* Correlation of log t_mix with the decrease per step over n >= 3 stretches, else NAN. */
double mw_windows_pearson(const struct mw_windows *w);
double mw_windows_spearman(const struct mw_windows *w);
/* Called while the run rests. {windows, pearson, spearman, their 95 % bootstrap intervals or null, t_mix: [...], decrease_per_step: [...]} */
json_t *mw_windows_json(const struct mw_windows *w);

#endif
