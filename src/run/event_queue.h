/*
 * event_queue.h: the simulator's queue: at most one event a worker, the earliest first, ties by worker.
 *
 * A calendar queue (Brown 1988): days of equal length in a ring, each a list in no order, so that an event is entered
 * without a look at others. A day is put in order when it comes near, all its events at once. These stand in front, so
 * that what they will need can be fetched from memory while those before them are performed. A lap is of about twice the
 * mean way ahead, and a day of a few events: so many are sorted by counting, without a branch that depends on times,
 * which no CPU can predict.
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

#define MW_QUEUE_NEAR 16
#define MW_QUEUE_NONE UINT32_MAX

struct mw_queue_entry {
	double time;
	uint32_t next; /* of the same day */
	bool finish;
};

struct mw_event_queue {
	struct mw_queue_entry *entry; /* one a worker */
	uint32_t *head;               /* of each day of the lap: the last one entered */
	uint32_t days;                /* a power of two */
	uint32_t n;                   /* entries */
	uint64_t today;               /* counted from time 0; no entry is of an earlier one */
	double per_day;               /* days a second */
	double ahead_sum;             /* seconds, of the entries made since the length of a day was set */
	uint32_t ahead_n, review;     /* how many these are, and how many are enough to set it again */

	struct mw_sim_event *near; /* in order; none after any entry */
	uint32_t near_at, n_near, near_room;
};

int mw_queue_init(struct mw_event_queue *q, uint32_t workers, struct mw_err *err);
void mw_queue_fini(struct mw_event_queue *q);

/* Parts of what follows: set the length of a day again; enter among those in front; have the next day there too. */
void mw_queue_set_days(struct mw_event_queue *q);
void mw_queue_push_near(struct mw_event_queue *q, struct mw_sim_event e);
void mw_queue_next_day(struct mw_event_queue *q);

/* The i-th of the next events, i < n_near. */
static inline struct mw_sim_event *mw_queue_near(const struct mw_event_queue *q, uint32_t i)
{
	return &q->near[q->near_at + i];
}

static inline bool mw_sim_event_before(const struct mw_sim_event *a, const struct mw_sim_event *b)
{
	return a->time < b->time || (a->time == b->time && a->worker < b->worker);
}

static inline uint64_t mw_queue_day(const struct mw_event_queue *q, double time)
{
	double last = 0x1p62, day = time * q->per_day; /* what is later still is of the last day */
	return (uint64_t)(int64_t)(day < last ? day : last);
}

static inline void mw_queue_enter(struct mw_event_queue *q, struct mw_sim_event e)
{
	uint64_t day = mw_queue_day(q, e.time);
	uint32_t *head = &q->head[day & (q->days - 1)];
	q->today = day < q->today ? day : q->today;
	q->n++;
	q->entry[e.worker] = (struct mw_queue_entry){ .time = e.time, .next = *head, .finish = e.finish };
	*head = e.worker;
}

/* Enter e; now: the time of the event being performed. */
static inline void mw_queue_push(struct mw_event_queue *q, struct mw_sim_event e, double now)
{
	q->ahead_sum += e.time - now;
	if (++q->ahead_n == q->review)
		mw_queue_set_days(q);
	if (q->n_near && mw_sim_event_before(&e, mw_queue_near(q, q->n_near - 1)))
		mw_queue_push_near(q, e);
	else
		mw_queue_enter(q, e);
}

/* Have MW_QUEUE_NEAR events in front at least, if there are so many. */
static inline void mw_queue_look_ahead(struct mw_event_queue *q)
{
	while (q->n_near < MW_QUEUE_NEAR && q->n)
		mw_queue_next_day(q);
}

/* Take the earliest; false: there is none. */
static inline bool mw_queue_pop(struct mw_event_queue *q, struct mw_sim_event *e)
{
	if (!q->n_near && q->n)
		mw_queue_next_day(q);
	if (!q->n_near)
		return false;
	*e = q->near[q->near_at++];
	q->n_near--;
	return true;
}

#endif
