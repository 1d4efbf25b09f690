/* setup.h: choices that a run makes from its data. */
#ifndef MW_RUN_SETUP_H
#define MW_RUN_SETUP_H

#include "data/dataset.h"

/* What --model auto stands for with these data. */
const char *mw_default_model(const struct mw_dataset *d);

#endif
