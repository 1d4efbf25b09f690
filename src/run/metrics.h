/*
 * metrics.h: metrics.jsonl, one JSON object a line: evaluations; events (a change of knobs, a full estimate of the closed
 * loop); and, with --metrics-every, samples of the running system. Called by the controlling thread alone.
 */
#ifndef MW_RUN_METRICS_H
#define MW_RUN_METRICS_H

#include "run/run.h"

/* The line of an evaluation. Nothing happens without --out. RESOURCE: the file can't be written. */
int mw_metrics_evaluation(struct mw_run *run, const struct mw_evaluation *e, struct mw_err *err);

/* Tell of, and write, what has happened since the last call: events, whose lines come in the order of their time. */
int mw_metrics_events(struct mw_run *run, struct mw_err *err);

/*
 * While a segment runs, every now and then: events, and a sample if --metrics-every seconds of the training clock have
 * passed. A file that can't be written is reported by the next evaluation, which can't write to it either.
 */
void mw_metrics_tick(struct mw_run *run);

#endif
