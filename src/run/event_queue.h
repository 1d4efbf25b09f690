/*
 * event_queue.h: the simulator's queue: at most one event a worker, the earliest first, ties by worker.
 *
 * A calendar queue (Brown 1988): days of equal length in a ring, each a sorted list. With as many days as workers, and a
 * lap of about twice the mean way ahead, an event is entered and taken in a few steps whatever their number; a heap of
 * 1,024 random times took a quarter of the simulator's instructions. In front of it stand the next few events in order,
 * so that what they will need can be fetched from memory while those before them are performed.
 */
#ifndef MW_RUN_EVENT_QUEUE_H
#define MW_RUN_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* A worker's next event: the end of its gradient (finish) or of its exchange (begin). */
struct mw_sim_event {
	double time; /* not negative */
	uint32_t worker;
	bool finish;
};

#define MW_QUEUE_NEAR 16 /* a power of two */
#define MW_QUEUE_NONE UINT32_MAX

struct mw_queue_entry {
	struct mw_sim_event event;
	uint32_t next; /* of the same day, later */
};

struct mw_event_queue {
	struct mw_queue_entry *entry; /* one a worker */
	uint32_t *head, *tail;        /* of each day of the lap */
	uint32_t days;                /* a power of two */
	uint32_t n;                   /* entries */
	uint64_t today;               /* counted from time 0; no entry is of an earlier one */
	double per_day;               /* days a second */
	double ahead_sum;             /* seconds, of the entries made since the length of a day was set */
	uint32_t ahead_n, review;     /* how many these are, and how many are enough to set it again */

	struct mw_sim_event near[MW_QUEUE_NEAR]; /* ring; none after any entry */
	uint32_t near_head, n_near;
};

int mw_queue_init(struct mw_event_queue *q, uint32_t workers, struct mw_err *err);
void mw_queue_fini(struct mw_event_queue *q);

/* Enter e; now: the time of the event being performed. */
void mw_queue_push(struct mw_event_queue *q, struct mw_sim_event e, double now);
/* Take the earliest; false: there is none. */
bool mw_queue_pop(struct mw_event_queue *q, struct mw_sim_event *e);
/* Have as many events in front as can be: MW_QUEUE_NEAR, if there are so many. */
void mw_queue_look_ahead(struct mw_event_queue *q);

/* The i-th of the next events, i < n_near. */
static inline struct mw_sim_event *mw_queue_near(struct mw_event_queue *q, uint32_t i)
{
	return &q->near[(q->near_head + i) % MW_QUEUE_NEAR];
}

#endif
