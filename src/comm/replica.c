/* replica.c: see replica.h. */
#include "comm/replica.h"

#include <linux/futex.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/kernel.h"
#include "base/mem.h"

#define LOCK_SPINS 200

uint32_t mw_replica_node(const struct mw_protocol *p, const struct mw_layout *layout, uint32_t row)
{
	uint32_t w = p->row_worker ? p->row_worker[row] : MW_NO_ROW;
	if (w == MW_NO_ROW || w >= layout->n_workers || layout->slot[w].node < 0)
		return 0;
	return (uint32_t)layout->slot[w].node;
}

static int row_init(
	struct mw_replicas *r, uint32_t i, uint32_t node, enum mw_precision precision, struct mw_err *err)
{
	struct mw_replica *row = &r->row[i];
	row->x = mw_node_alloc(r->layout, node, r->stride * sizeof(float), "a parameter replica", err);
	if (!row->x)
		return err->code;
	if (precision == MW_PRECISION_KAHAN) {
		row->comp =
			mw_node_alloc(r->layout, node, r->stride * sizeof(float), "Kahan compensation", err);
		if (!row->comp)
			return err->code;
	}
	if (precision == MW_PRECISION_DOUBLE) {
		row->wide =
			mw_node_alloc(r->layout, node, r->stride * sizeof(double), "double parameters", err);
		if (!row->wide)
			return err->code;
	}
	return 0;
}

static size_t whole_lines(size_t floats)
{
	return (floats + 31) & ~(size_t)31;
}

int mw_replicas_init(struct mw_replicas *r, const struct mw_protocol *p, const struct mw_layout *layout,
	size_t dim, enum mw_access access, enum mw_precision precision, struct mw_err *err)
{
	return mw_replicas_init_wide(r, p, layout, dim, 0, access, precision, err);
}

int mw_replicas_init_wide(struct mw_replicas *r, const struct mw_protocol *p, const struct mw_layout *layout,
	size_t dim, size_t extra, enum mw_access access, enum mw_precision precision, struct mw_err *err)
{
	*r = (struct mw_replicas){ .dim = dim, .access = access, .layout = layout };
	r->extra_at = whole_lines(dim);
	r->extra = extra;
	r->stride = r->extra_at + whole_lines(extra);
	r->row = mw_alloc_array(p->rows, sizeof(*r->row), "the replica table", err);
	if (!r->row)
		return err->code;
	r->n = p->rows;
	for (uint32_t i = 0; i < r->n; i++) {
		MW_TRY(row_init(r, i, mw_replica_node(p, layout, i), precision, err));
		r->row[i].owned = p->row_owner[i] != MW_NO_ROW;
	}
	return 0;
}

void mw_replicas_fini(struct mw_replicas *r)
{
	mw_replicas_unmap(r);
	for (uint32_t i = 0; r->row && i < r->n; i++) {
		mw_node_free(r->layout, r->row[i].x);
		mw_node_free(r->layout, r->row[i].comp);
		mw_node_free(r->layout, r->row[i].wide);
	}
	mw_free(r->row);
	*r = (struct mw_replicas){ 0 };
}

void mw_replicas_set(struct mw_replicas *r, const float *x0)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct mw_replica *row = &r->row[i];
		size_t shared = i ? r->cold_to : 0; /* row 0 has set the cold ones */
		mw_kernels()->store(x0, row->x, i ? r->cold_from : 0);
		mw_kernels()->store(x0 + shared, row->x + shared, r->dim - shared);
		if (row->comp)
			memset(row->comp, 0, r->stride * sizeof(float));
		for (size_t j = 0; row->wide && j < r->dim; j++)
			row->wide[j] = x0[j];
	}
}

void mw_replicas_average(const struct mw_replicas *r, const double *pi, size_t from, size_t to, float *out)
{
	enum { BLOCK = 256 };
	double sum[BLOCK];
	for (size_t b = from; b < to; b += BLOCK) {
		size_t n = to - b < BLOCK ? to - b : BLOCK;
		memset(sum, 0, sizeof(sum));
		for (uint32_t i = 0; i < r->n; i++) {
			if (pi[i] == 0)
				continue;
			for (size_t j = 0; j < n; j++)
				sum[j] += pi[i] * (double)mw_ld(&r->row[i].x[b + j]);
		}
		for (size_t j = 0; j < n; j++)
			out[b + j] = (float)sum[j];
	}
}

double mw_replicas_spread(const struct mw_replicas *r, const struct mw_protocol *p, const float *average,
	size_t from, size_t to)
{
	double total = 0, square = 0;
	for (uint32_t w = 0; w < p->workers; w++) {
		/* very many workers may view one row: it is the same distance each time */
		if (!w || p->view_row[w] != p->view_row[w - 1]) {
			const float *x = r->row[p->view_row[w]].x;
			square = 0;
			for (size_t j = from; j < to; j++) {
				double d = (double)mw_ld(&x[j]) - (double)average[j];
				square += d * d;
			}
		}
		total += square;
	}
	return total;
}

static long futex(uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Three-state futex lock (Drepper, "Futexes are tricky", 2011), with a short spin first. */
void mw_lock(uint32_t *word)
{
	for (int spin = 0; spin < LOCK_SPINS; spin++) {
		uint32_t expected = 0;
		if (__atomic_compare_exchange_n(
			    word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		mw_pause();
	}
	while (__atomic_exchange_n(word, 2, __ATOMIC_ACQUIRE) != 0)
		futex(word, FUTEX_WAIT, 2);
}

void mw_unlock(uint32_t *word)
{
	if (__atomic_exchange_n(word, 0, __ATOMIC_RELEASE) == 2)
		futex(word, FUTEX_WAKE, 1);
}
