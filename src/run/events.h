/*
 * events.h: what the workers of the threads engine recorded during a segment, put in order and fed to the estimator of
 * the trace. Every segment is recorded from its start, where all workers rest, until the first recorder is full.
 */
#ifndef MW_RUN_EVENTS_H
#define MW_RUN_EVENTS_H

#include "run/control.h"

/* Events that all workers together record in one segment (20 bytes each); after that it costs nothing. */
enum { MW_EVENTS_LIMIT = 1 << 22 };

/* Around a segment, while workers rest. */
void mw_events_begin(struct mw_control *c);
void mw_events_end(struct mw_control *c);

#endif
