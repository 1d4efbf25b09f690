/* event_queue.c: see event_queue.h. */
#include "run/event_queue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Workers for a day of the lap, so twice as many events on those that have any; and so many are sorted by counting. */
enum { PER_DAY = 4, FEW = 32 };

int mw_queue_init(struct mw_event_queue *q, uint32_t workers, struct mw_err *err)
{
	*q = (struct mw_event_queue){ .days = 1, .per_day = 1, .review = 16 };
	while (q->days < workers / PER_DAY)
		q->days *= 2;
	q->near_room = workers + 4 * MW_QUEUE_NEAR; /* so that they seldom need be moved to its begin */
	q->entry = mw_alloc_array(workers, sizeof(*q->entry), "the event queue", err);
	q->near = mw_alloc_array(q->near_room, sizeof(*q->near), "the event queue", err);
	q->head = mw_alloc_array(q->days, sizeof(*q->head), "the event queue", err);
	if (!q->entry || !q->near || !q->head)
		return err->code;
	for (uint32_t d = 0; d < q->days; d++)
		q->head[d] = MW_QUEUE_NONE;
	return 0;
}

void mw_queue_fini(struct mw_event_queue *q)
{
	mw_free(q->entry);
	mw_free(q->near);
	mw_free(q->head);
}

/* --- a day's order ----------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	return mw_sim_event_before(a, b) ? -1 : mw_sim_event_before(b, a);
}

static bool in_order(const struct mw_sim_event *e, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (mw_sim_event_before(&e[i], &e[i - 1]))
			return false;
	return true;
}

/* Each goes behind as many as are earlier; n <= FEW. false: some are at the same time, and nothing was done. */
static bool sort_by_counting(struct mw_sim_event *e, uint32_t n)
{
	double time[FEW];
	uint64_t place[FEW], taken = 0;
	struct mw_sim_event copy[FEW];
	uint32_t m = (n + 3) & ~3u;
	for (uint32_t i = 0; i < m; i++)
		time[i] = i < n ? e[i].time : INFINITY;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t earlier = 0;
		for (uint32_t k = 0; k < m; k++)
			earlier += time[k] < time[i];
		place[i] = earlier;
		taken |= UINT64_C(1) << earlier;
	}
	if (taken != (UINT64_C(1) << n) - 1)
		return false;
	memcpy(copy, e, n * sizeof(*e));
	for (uint32_t i = 0; i < n; i++)
		e[place[i]] = copy[i];
	return true;
}

/* As they come from a day's list, the last one entered first. */
static void sort_day(struct mw_sim_event *e, uint32_t n)
{
	if (n <= FEW && sort_by_counting(e, n))
		return;
	for (uint32_t i = 0; i < n / 2; i++) {
		struct mw_sim_event t = e[i];
		e[i] = e[n - 1 - i];
		e[n - 1 - i] = t;
	}
	if (!in_order(e, n)) /* they are if all steps take the same time */
		qsort(e, n, sizeof(*e), compare);
}

/* --- the calendar ------------------------------------------------------------------------------------------------ */

/* The day of the earliest entry, wherever it is in the ring. */
static uint64_t first_day(const struct mw_event_queue *q)
{
	double first = INFINITY;
	for (uint32_t d = 0; d < q->days; d++)
		for (uint32_t w = q->head[d]; w != MW_QUEUE_NONE; w = q->entry[w].next)
			first = q->entry[w].time < first ? q->entry[w].time : first;
	return mw_queue_day(q, first);
}

/* The entries of today go behind those in front; a list may hold some of later laps too. Returns how many. */
static uint32_t take_today(struct mw_event_queue *q)
{
	uint32_t *head = &q->head[q->today & (q->days - 1)], w = *head, n = 0;
	struct mw_sim_event *e = mw_queue_near(q, q->n_near);
	*head = MW_QUEUE_NONE;
	while (w != MW_QUEUE_NONE) {
		struct mw_queue_entry *x = &q->entry[w];
		uint32_t next = x->next;
		if (mw_queue_day(q, x->time) == q->today) {
			e[n++] = (struct mw_sim_event){ .time = x->time, .worker = w, .finish = x->finish };
		} else {
			x->next = *head;
			*head = w;
		}
		w = next;
	}
	return n;
}

/* q->n > 0 */
void mw_queue_next_day(struct mw_event_queue *q)
{
	uint32_t n = 0;
	if (q->near_at + q->n_near + q->n > q->near_room) {
		memmove(q->near, mw_queue_near(q, 0), q->n_near * sizeof(*q->near));
		q->near_at = 0;
	}
	for (uint32_t empty = 0; !n; empty++) {
		if (empty == q->days)
			q->today = first_day(q);
		if (q->head[q->today & (q->days - 1)] != MW_QUEUE_NONE)
			n = take_today(q);
		q->today++;
	}
	sort_day(mw_queue_near(q, q->n_near), n);
	q->n_near += n;
	q->n -= n;
}

/* A lap of twice the mean way ahead; set again when that has changed much. */
void mw_queue_set_days(struct mw_event_queue *q)
{
	double ahead = q->ahead_sum / q->ahead_n, per_day = ahead > 0 ? q->days / (2 * ahead) : q->per_day;
	uint32_t list = MW_QUEUE_NONE, workers = PER_DAY * q->days;
	q->ahead_sum = q->ahead_n = 0;
	q->review = q->review < workers ? 4 * q->review : q->review;
	if (per_day < 2 * q->per_day && per_day > q->per_day / 2)
		return;
	for (uint32_t d = 0; d < q->days; d++) {
		for (uint32_t w = q->head[d], next; w != MW_QUEUE_NONE; w = next) {
			next = q->entry[w].next;
			q->entry[w].next = list;
			list = w;
		}
		q->head[d] = MW_QUEUE_NONE;
	}
	q->per_day = per_day;
	q->today = UINT64_MAX;
	q->n = 0;
	for (uint32_t w = list, next; w != MW_QUEUE_NONE; w = next) {
		next = q->entry[w].next;
		mw_queue_enter(q,
			(struct mw_sim_event){ q->entry[w].time, .worker = w, .finish = q->entry[w].finish });
	}
}

/* --- those in front ---------------------------------------------------------------------------------------------- */

/* e comes before the last of them. Those before it move into the room of one that was taken, or those behind it. */
void mw_queue_push_near(struct mw_event_queue *q, struct mw_sim_event e)
{
	struct mw_sim_event *near = mw_queue_near(q, 0);
	uint32_t from = 0, to = q->n_near - 1; /* its place is one of these */
	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (mw_sim_event_before(&e, &near[mid]))
			to = mid;
		else
			from = mid + 1;
	}
	if (q->near_at && (from < q->n_near / 2 || q->near_at + q->n_near == q->near_room)) {
		memmove(near - 1, near, from * sizeof(*near));
		q->near_at--;
	} else {
		memmove(near + from + 1, near + from, (q->n_near - from) * sizeof(*near));
	}
	q->n_near++;
	*mw_queue_near(q, from) = e;
}
