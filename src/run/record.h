/*
 * record.h: what a run leaves behind: a folder with run.json (written at start and end), metrics.jsonl (one line an
 * evaluation, valid to the last line after a kill), layout.txt and model.safetensors. See doc/files.md.
 */
#ifndef MW_RUN_RECORD_H
#define MW_RUN_RECORD_H

#include "run/run.h"

/* Make the folder; an earlier run in it is an error unless --force. Nothing happens without --out. */
int mw_record_start(struct mw_run *run, struct mw_err *err);
/* Make a folder and those above it; it may be there already. RESOURCE otherwise. */
int mw_record_make_dirs(const char *path, struct mw_err *err);
/* layout.txt and run.json again, once workers have started and it is known where memory is. */
int mw_record_layout(struct mw_run *run, struct mw_err *err);
/* What the line of an evaluation and the summary have in common. */
json_t *mw_record_evaluation(const struct mw_run *run, const struct mw_evaluation *e);
/* The model and the final run.json. */
int mw_record_end(struct mw_run *run, struct mw_err *err);
/* The file of --trace. */
int mw_record_trace(struct mw_run *run, struct mw_err *err);
/* The member "summary" of run.json. */
json_t *mw_record_summary(struct mw_run *run);
/* Staleness of all workers together, also while they run; the caller frees it (mw_free). */
struct mw_hist *mw_record_staleness(const struct mw_run *run, struct mw_err *err);
/* alpha times this is the effective step (theory 5.1): what one native step moves the virtual average by. */
double mw_effective_share(const struct mw_run *run);
/* --tally: the share of pushes that racy access lost, NAN without it. */
double mw_lost_share(const struct mw_run *run);
/* A number, or null when it is not finite. */
json_t *mw_json_number(double v);

#endif
