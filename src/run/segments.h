/*
 * segments.h: probe segments of a run: who injects what when, snapshots at the ages that the probe asks for, and under
 * --target-tmix the windows that a full estimate needs. Called by who looks at the probes (the sampler, or sim) but for
 * mw_segments_inject.
 */
#ifndef MW_RUN_SEGMENTS_H
#define MW_RUN_SEGMENTS_H

#include "run/control.h"

/* Who injects in the next segment. Before the first one, too. */
void mw_segments_draw(struct mw_control *c);
/* threads, before a worker's own step or (late) before its push: do what the sampler asked for. */
void mw_segments_inject(struct mw_worker *w);
/* Begin and end segments, and take the snapshots that are due at native step t. */
void mw_segments_look(struct mw_control *c, double t, bool exact);
/* Is none under way? And when may the next one begin, in native steps? */
bool mw_segments_idle(const struct mw_control *c);
double mw_segments_begin(const struct mw_control *c);

#endif
