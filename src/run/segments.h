/*
 * segments.h: probe segments of a run: who injects what when, snapshots at the ages that the probe asks for, and under
 * --target-tmix the windows that a full estimate needs. Sets of columns (one, or several under --target-tmix) have a segment each at
 * a time.
 *
 * sim looks after every native step. In the threads engine the sampler begins a segment and takes it apart when it is over;
 * what lies between is the workers' own: each injects when it sees the request, and between two steps of its own one of
 * them, whoever comes by when a snapshot is due, takes it. A thread that woke up for every snapshot would have to
 * interrupt a worker where all CPUs are busy: tens of microseconds for what takes one of the workers less than one.
 */
#ifndef MW_RUN_SEGMENTS_H
#define MW_RUN_SEGMENTS_H

#include "run/control.h"

/* Who injects next, and when in its step. Before the first segment, too. */
void mw_segments_draw(struct mw_control *c);
/* sim: native step t is done. */
void mw_segments_step(struct mw_control *c, double t);

/* The sampler: begin a segment if it is time for one (native step t): was it? End those that are over: how many? */
bool mw_segments_begin(struct mw_control *c, double t);
uint32_t mw_segments_end(struct mw_control *c);
/* Have segments of all sets begun, so that none can until one has ended? */
bool mw_segments_full(const struct mw_control *c);
/* Native steps from t on until there may be one to end or to begin. */
double mw_segments_wait(const struct mw_control *c, double t);
/* Seconds that injections and snapshots have taken from the workers so far. */
double mw_segments_workers_s(const struct mw_control *c);

/* A worker, before its own step or (late) before its push: do what the sampler asked for. */
void mw_segments_inject(struct mw_worker *w);
/* A worker, between two steps of its own (mw_control_next_look): take the snapshots that are due. */
void mw_segments_watch(struct mw_worker *w);

#endif
