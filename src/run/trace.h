/*
 * trace.h: events of a run (view, push, mix: worker, time, versions) recorded by the workers themselves, and read back.
 *
 * File, little-endian: "MWTRACE1", u64 length of a JSON header, the header (configuration, workers, ticks per second,
 * what can be replayed exactly), then for each worker u32 id, u32 0, u64 bytes, and that many bytes of records:
 *
 *   u64 begin (ticks)  u32 duration (ticks)  u32 own step  u8 kind  u8 touched rows  u16 flags
 *   touched rows times: u32 row, top bit set if written   u32 version (low bits): that was read, or that the write made
 *
 * Versions count the writes to a row; locked, seqlock and versioned access have them. With versions for every event the
 * order of events is known exactly; without, events are ordered by the time-stamp counter and those that overlap in time
 * are ambiguous.
 */
#ifndef MW_RUN_TRACE_H
#define MW_RUN_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"

enum mw_event_kind { MW_EVENT_VIEW, MW_EVENT_PUSH, MW_EVENT_MIX, MW_EVENT_KINDS };
enum {
	MW_EVENT_WITH_PUSH = 1,
	MW_EVENT_FETCH = 2
}; /* flags of MIX: took the push along; ssp's fetch before a view */
#define MW_TOUCH_MAX 255

struct mw_touch {
	uint32_t row; /* top bit: written */
	uint32_t version;
};
#define MW_TOUCH_WRITE 0x80000000u

struct mw_event {
	uint64_t begin;
	uint32_t duration, step;
	uint8_t kind, n_touch;
	uint16_t flags;
};

/* What a worker has recorded. Owned by it alone until the run has ended. */
struct mw_recorder {
	struct mw_trace_chunk *first, *last;
	uint64_t bytes, events;
	uint64_t every, window; /* record own steps s with s % every < window; every 0: all */
	uint64_t limit;         /* events; 0: none */
	uint64_t last_end;      /* ticks at the end of the last event */
	bool full;              /* memory ran out, or the limit is reached: the rest is missing */
};

void mw_recorder_init(struct mw_recorder *r, uint64_t every, uint64_t window);
void mw_recorder_fini(struct mw_recorder *r);
/* Record one event; touch: e->n_touch entries. */
void mw_recorder_add(struct mw_recorder *r, const struct mw_event *e, const struct mw_touch *touch);
static inline bool mw_recorder_wants(const struct mw_recorder *r, uint64_t step)
{
	return r && !r->full && (!r->every || step % r->every < r->window);
}
/* Reading back what is in memory, while its owner rests. Touched rows are passed over. */
struct mw_recorder_reader {
	const struct mw_trace_chunk *chunk;
	uint64_t at;
};
void mw_recorder_read(struct mw_recorder_reader *rd, const struct mw_recorder *r);
bool mw_recorder_next(struct mw_recorder_reader *rd, struct mw_event *e);

/* Write a file of all workers' events; header: borrowed. */
int mw_trace_save(const char *path, const json_t *header, struct mw_recorder *const *recorder,
	uint32_t n_workers, struct mw_err *err);

/* A file in memory. */
struct mw_trace {
	json_t *header;
	uint32_t n_workers;
	struct mw_trace_worker {
		const unsigned char *data;
		uint64_t bytes;
	} * worker;
	unsigned char *buffer;
};
int mw_trace_load(const char *path, struct mw_trace **out, struct mw_err *err);
void mw_trace_free(struct mw_trace *t);
/* The event at *at of a worker, or false at its end; *at moves behind it. touch: room for MW_TOUCH_MAX. */
bool mw_trace_next(
	const struct mw_trace *t, uint32_t worker, uint64_t *at, struct mw_event *e, struct mw_touch *touch);

#endif
