/* setup_impl.h: what setup.c and setup_data.c share. */
#ifndef MW_RUN_SETUP_IMPL_H
#define MW_RUN_SETUP_IMPL_H

#include "run/run.h"

/* Load training and test set, split off validation rows, deal shards. The number of workers is known. */
int mw_setup_data(struct mw_run *run, struct mw_err *err);

#endif
