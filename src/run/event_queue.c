/* event_queue.c: see event_queue.h. */
#include "run/event_queue.h"

#include "base/mem.h"

#define LAST_DAY 0x1p62 /* what is later still is of this day: lists are sorted by time all the same */

int mw_queue_init(struct mw_event_queue *q, uint32_t workers, struct mw_err *err)
{
	*q = (struct mw_event_queue){ .days = 1, .per_day = 1, .review = 16 };
	while (q->days < workers)
		q->days *= 2;
	q->entry = mw_alloc_array(workers, sizeof(*q->entry), "the event queue", err);
	q->head = mw_alloc_array(q->days, sizeof(*q->head), "the event queue", err);
	q->tail = mw_alloc_array(q->days, sizeof(*q->tail), "the event queue", err);
	if (!q->entry || !q->head || !q->tail)
		return err->code;
	for (uint32_t d = 0; d < q->days; d++)
		q->head[d] = MW_QUEUE_NONE;
	return 0;
}

void mw_queue_fini(struct mw_event_queue *q)
{
	mw_free(q->entry);
	mw_free(q->head);
	mw_free(q->tail);
}

static inline bool before(const struct mw_sim_event *a, const struct mw_sim_event *b)
{
	return a->time < b->time || (a->time == b->time && a->worker < b->worker);
}

static inline uint64_t day_of(const struct mw_event_queue *q, double time)
{
	double day = time * q->per_day;
	return (uint64_t)(day < LAST_DAY ? day : LAST_DAY);
}

/* --- the calendar ------------------------------------------------------------------------------------------------ */

static void enter(struct mw_event_queue *q, struct mw_sim_event e)
{
	uint64_t day = day_of(q, e.time);
	uint32_t d = (uint32_t)(day & (q->days - 1)), *at = &q->head[d];
	q->today = !q->n++ || day < q->today ? day : q->today;
	q->entry[e.worker].event = e;
	if (*at != MW_QUEUE_NONE && !before(&e, &q->entry[q->tail[d]].event))
		at = &q->entry[q->tail[d]].next;
	while (*at != MW_QUEUE_NONE && before(&q->entry[*at].event, &e))
		at = &q->entry[*at].next;
	q->entry[e.worker].next = *at;
	if (*at == MW_QUEUE_NONE)
		q->tail[d] = e.worker;
	*at = e.worker;
}

/* The day of the earliest entry, wherever it is in the ring. */
static uint64_t first_day(const struct mw_event_queue *q)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t d = 0; d < q->days; d++)
		if (q->head[d] != MW_QUEUE_NONE) {
			uint64_t day = day_of(q, q->entry[q->head[d]].event.time);
			first = day < first ? day : first;
		}
	return first;
}

/* The earliest entry; q->n > 0. A day's list may hold entries of later laps, behind its own. */
static struct mw_sim_event leave(struct mw_event_queue *q)
{
	for (uint32_t empty = 0;; empty++, q->today++) {
		uint32_t d = (uint32_t)(q->today & (q->days - 1)), w = q->head[d];
		if (w != MW_QUEUE_NONE && day_of(q, q->entry[w].event.time) == q->today) {
			q->head[d] = q->entry[w].next;
			q->n--;
			return q->entry[w].event;
		}
		if (empty == q->days)
			q->today = first_day(q) - 1;
	}
}

/* A lap of twice the mean way ahead; set again when that has changed much. */
static void set_days(struct mw_event_queue *q)
{
	double ahead = q->ahead_sum / q->ahead_n, per_day = ahead > 0 ? q->days / (2 * ahead) : q->per_day;
	q->ahead_sum = q->ahead_n = 0;
	q->review = q->review < q->days ? 4 * q->review : q->review;
	if (per_day < 2 * q->per_day && per_day > q->per_day / 2)
		return;
	uint32_t list = MW_QUEUE_NONE;
	for (uint32_t d = 0; d < q->days; d++) {
		for (uint32_t w = q->head[d], next; w != MW_QUEUE_NONE; w = next) {
			next = q->entry[w].next;
			q->entry[w].next = list;
			list = w;
		}
		q->head[d] = MW_QUEUE_NONE;
	}
	q->per_day = per_day;
	q->n = 0;
	for (uint32_t w = list, next; w != MW_QUEUE_NONE; w = next) {
		next = q->entry[w].next;
		enter(q, q->entry[w].event);
	}
}

/* --- the queue --------------------------------------------------------------------------------------------------- */

void mw_queue_push(struct mw_event_queue *q, struct mw_sim_event e, double now)
{
	uint32_t i = q->n_near;
	q->ahead_sum += e.time - now;
	if (++q->ahead_n == q->review)
		set_days(q);
	if (!i || !before(&e, mw_queue_near(q, i - 1))) {
		enter(q, e);
		return;
	}
	/* an event that comes before one of the near ones takes its place; the last of these steps back */
	if (i == MW_QUEUE_NEAR)
		enter(q, *mw_queue_near(q, --i));
	else
		q->n_near++;
	for (; i > 0 && before(&e, mw_queue_near(q, i - 1)); i--)
		*mw_queue_near(q, i) = *mw_queue_near(q, i - 1);
	*mw_queue_near(q, i) = e;
}

void mw_queue_look_ahead(struct mw_event_queue *q)
{
	while (q->n_near < MW_QUEUE_NEAR && q->n)
		*mw_queue_near(q, q->n_near++) = leave(q);
}

bool mw_queue_pop(struct mw_event_queue *q, struct mw_sim_event *e)
{
	if (!q->n_near && !q->n)
		return false;
	if (!q->n_near) {
		*e = leave(q);
		return true;
	}
	*e = *mw_queue_near(q, 0);
	q->near_head = (q->near_head + 1) % MW_QUEUE_NEAR;
	q->n_near--;
	return true;
}
