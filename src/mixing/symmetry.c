/* symmetry.c: is a protocol unchanged when every worker is renamed to the next one? Then one row, or start, does for all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mixing/internal.h"

#define MAX_LIST 128 /* lists are compared as sets, in quadratic time */

/* The k-th other row beside worker w (a base copy) becomes the k-th one beside w + 1; what is nobody's stays. */
static void rename_rest(const struct mw_protocol *p, uint32_t *to)
{
	uint32_t *used = to + p->rows; /* a view or push row */
	for (uint32_t i = 0; i < p->rows; i++)
		used[i] = to[i] != MW_NO_ROW;
	for (uint32_t i = 0; i < p->rows; i++) {
		uint32_t w = p->row_worker ? p->row_worker[i] : MW_NO_ROW, k = 0;
		if (used[i])
			continue;
		to[i] = i;
		for (uint32_t j = 0; w != MW_NO_ROW && j < i; j++)
			k += p->row_worker[j] == w && !used[j];
		for (uint32_t j = 0; w != MW_NO_ROW && j < p->rows; j++)
			if (p->row_worker[j] == (w + 1) % p->workers && !used[j] && k-- == 0) {
				to[i] = j;
				break;
			}
	}
}

/* to[row] := the row that plays its part when worker w becomes w + 1; false when that is no permutation. Room: 2 rows. */
static bool rename_rows(const struct mw_protocol *p, uint32_t *to)
{
	for (uint32_t i = 0; i < p->rows; i++)
		to[i] = MW_NO_ROW;
	for (uint32_t w = 0; w < p->workers; w++) {
		uint32_t next = (w + 1) % p->workers;
		const uint32_t *map[2] = { p->view_row, p->push_row };
		for (int m = 0; m < 2; m++) {
			uint32_t from = map[m][w], into = map[m][next];
			if (to[from] != MW_NO_ROW && to[from] != into)
				return false;
			to[from] = into;
		}
	}
	rename_rest(p, to);
	return true;
}

static double weight_of(const struct mw_plan *p, const struct mw_plan_row *row, uint32_t src)
{
	double w = 0;
	for (uint32_t k = row->first; k < row->first + row->n; k++)
		if (p->src[k] == src)
			w += p->weight[k];
	return w;
}

static const struct mw_plan_row *row_of(const struct mw_plan *p, uint32_t dst)
{
	for (uint32_t a = 0; a < p->n_rows; a++)
		if (p->row[a].dst == dst)
			return &p->row[a];
	return NULL;
}

/* Is b what a becomes when its rows are renamed? */
static bool renamed(const struct mw_plan *a, const struct mw_plan *b, const uint32_t *to)
{
	if (a->n_rows != b->n_rows || a->n_src != b->n_src)
		return false;
	for (uint32_t r = 0; r < a->n_rows; r++) {
		const struct mw_plan_row *row = &a->row[r], *other = row_of(b, to[row->dst]);
		if (!other || other->n != row->n)
			return false;
		for (uint32_t k = row->first; k < row->first + row->n; k++)
			if (fabs(weight_of(a, row, a->src[k]) - weight_of(b, other, to[a->src[k]])) > 1e-12)
				return false;
	}
	return true;
}

/* As sets: every plan of a has a renamed one in b. Lists hold no duplicates, so equal sizes make it a bijection. */
static bool lists_alike(
	const struct mw_plan *const *a, const struct mw_plan *const *b, uint32_t n, const uint32_t *to)
{
	if (n > MAX_LIST)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = 0;
		while (j < n && !renamed(a[i], b[j], to))
			j++;
		if (j == n)
			return false;
	}
	return true;
}

static bool events_turn(const struct mix_law *law, const uint32_t *to)
{
	for (uint32_t e = 0; e < law->n_events; e++) {
		const struct mix_event *a = &law->event[e], *b = &law->event[(e + 1) % law->n_events];
		if (a->n != b->n || !lists_alike(law->plan + a->first, law->plan + b->first, a->n, to))
			return false;
	}
	return law->n_events > 1;
}

static bool workers_alike(const struct mix_law *law, const uint32_t *to)
{
	const struct mw_protocol *p = law->p;
	for (uint32_t w = 0; w < p->n_slots; w++) {
		const struct mw_plan_list *a = &p->slot[w], *b = &p->slot[(w + 1) % p->n_slots];
		if (a->n != b->n || !lists_alike((const struct mw_plan *const *)a->plan,
					    (const struct mw_plan *const *)b->plan, a->n, to))
			return false;
	}
	return p->n_slots > 1;
}

int mix_law_symmetry(struct mix_law *law, struct mw_err *err)
{
	if (!law->p || law->p->clock != MW_CLOCK_EVENT || law->p->workers < 2)
		return MW_OK;
	uint32_t *to = mw_alloc_array(2 * (size_t)law->rows, sizeof(*to), "renamed rows", err);
	if (!to)
		return MW_ERESOURCE;
	if (rename_rows(law->p, to)) {
		law->turning = law->kind == MIX_SEQUENCE && events_turn(law, to);
		law->transitive = law->p->due != MW_DUE_TOKEN && workers_alike(law, to);
	}
	mw_free(to);
	return MW_OK;
}
