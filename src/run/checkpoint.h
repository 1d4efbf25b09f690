/*
 * checkpoint.h: all that a run needs to go on: every replica, optimizer state, the workers' own steps and counters, in
 * the run folder's checkpoint.safetensors. Delayed updates are pushed before it is written, and gradients under way are
 * computed again. So a resumed run of one worker or of a barrier protocol goes on as if it had not stopped (unless
 * --staleness holds updates back); asynchronous workers start from fresh views.
 */
#ifndef MW_RUN_CHECKPOINT_H
#define MW_RUN_CHECKPOINT_H

#include "run/run.h"

/* While workers rest, after flush. */
int mw_checkpoint_save(struct mw_run *run, struct mw_err *err);
/* After the engine's start, before the first segment. Fails if the checkpoint is of another kind of run. */
int mw_checkpoint_load(struct mw_run *run, struct mw_err *err);

#endif
