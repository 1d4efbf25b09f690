/* recording.h: what a worker records of its views, pushes and mixes (--trace). */
#ifndef MW_RUN_RECORDING_H
#define MW_RUN_RECORDING_H

#include "run/run.h"

/* Ticks when an event begins, or 0 when none is recorded at this step: the functions below then do nothing. */
uint64_t mw_event_begin(const struct mw_worker *w);
/* A view or a push of one row has ended. */
void mw_event_row(struct mw_worker *w, enum mw_event_kind kind, uint64_t begin, uint32_t row, bool write);
/* The plan `choice` of `slot` has been carried out; its versions are in bench->exec. */
void mw_event_mix(struct mw_worker *w, struct mw_bench *bench, uint64_t begin, uint32_t slot, uint32_t choice,
	uint16_t flags);

#endif
