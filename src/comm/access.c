/* access.c: see access.h. */
#include "comm/access.h"

#include "base/kernel.h"

__thread uint64_t mw_access_version;

/* A seqlock reader that failed this often takes the writer's lock, so that it can't starve. */
#define SEQLOCK_TRIES 64

/* Loads of the data stay between the two loads of the sequence number; x86 keeps loads in order by itself. */
static inline void read_barrier(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb ishld" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static inline void write_barrier(void)
{
#if defined(__aarch64__)
	__asm__ volatile("dmb ishst" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* The access mode of one row: a row that one worker alone touches needs none. */
static inline enum mw_access mode_of(const struct mw_replicas *r, uint32_t row)
{
	return r->row[row].owned ? MW_ACCESS_RACY : r->access;
}

void mw_access_write_begin(struct mw_replicas *r, uint32_t row)
{
	struct mw_replica *x = &r->row[row];
	if (mode_of(r, row) < MW_ACCESS_LOCKED)
		return;
	mw_lock(&x->lock);
	__atomic_store_n(&x->seq, x->seq + 1, __ATOMIC_RELAXED);
	write_barrier();
}

void mw_access_write_end(struct mw_replicas *r, uint32_t row)
{
	struct mw_replica *x = &r->row[row];
	if (mode_of(r, row) < MW_ACCESS_LOCKED)
		return;
	__atomic_store_n(&x->seq, x->seq + 1, __ATOMIC_RELEASE);
	mw_access_version = x->seq / 2;
	mw_unlock(&x->lock);
}

/*
 * How every read goes: until reader_done() says that what was read is valid, read again. state: tries so far, or -1
 * when the lock is held.
 */
struct reader {
	uint64_t seq;
	int tries;
};

static void reader_begin(struct mw_replicas *r, uint32_t row, struct reader *rd)
{
	struct mw_replica *x = &r->row[row];
	if (mode_of(r, row) < MW_ACCESS_LOCKED)
		return;
	if (r->access == MW_ACCESS_LOCKED || rd->tries >= SEQLOCK_TRIES) {
		mw_lock(&x->lock);
		rd->tries = -1;
		return;
	}
	while ((rd->seq = __atomic_load_n(&x->seq, __ATOMIC_ACQUIRE)) & 1) {
		if (++rd->tries >= SEQLOCK_TRIES) {
			mw_lock(&x->lock);
			rd->tries = -1;
			return;
		}
		mw_pause();
	}
}

static bool reader_done(struct mw_replicas *r, uint32_t row, struct reader *rd)
{
	struct mw_replica *x = &r->row[row];
	if (mode_of(r, row) < MW_ACCESS_LOCKED)
		return true;
	if (rd->tries < 0) {
		mw_access_version = x->seq / 2;
		mw_unlock(&x->lock);
		return true;
	}
	read_barrier();
	if (__atomic_load_n(&x->seq, __ATOMIC_RELAXED) == rd->seq) {
		mw_access_version = rd->seq / 2;
		return true;
	}
	rd->tries++;
	return false;
}

void mw_access_view(struct mw_replicas *r, uint32_t row, size_t from, size_t n, float *out)
{
	struct reader rd = { 0 };
	do {
		reader_begin(r, row, &rd);
		mw_kernels()->view(r->row[row].x + from, out, n);
	} while (!reader_done(r, row, &rd));
}

void mw_access_gather(
	struct mw_replicas *r, uint32_t row, const uint32_t *group, size_t n, uint32_t width, float *out)
{
	struct reader rd = { 0 };
	do {
		reader_begin(r, row, &rd);
		mw_kernels()->gather(r->row[row].x, group, n, width, out);
	} while (!reader_done(r, row, &rd));
}

float mw_access_dot_row(
	struct mw_replicas *r, uint32_t row, const uint32_t *idx, const float *val, size_t n, int64_t bias)
{
	struct reader rd = { 0 };
	float z;
	do {
		const float *x = r->row[row].x;
		reader_begin(r, row, &rd);
		z = mw_kernels()->dot_sparse(x, idx, val, n);
		if (bias >= 0)
			z += mw_ld(&x[bias]);
	} while (!reader_done(r, row, &rd));
	return z;
}

/* Lines that others have written come from their caches: each piece is asked for while the one before is added to. */
static void add_shared(float weight, const float *d, float *x, size_t n)
{
	enum { PIECE = 512, LINE = 64 / sizeof(float) };
	for (size_t at = 0; at < n; at += PIECE) {
		size_t m = n - at < PIECE ? n - at : PIECE, from = at ? at + PIECE : 0, to = at + 2 * PIECE;
		for (size_t i = from; i < to && i < n; i += LINE)
			mw_prefetch_write(x + i);
		mw_kernels()->axpy(weight, d + at, x + at, m);
	}
}

void mw_access_add(struct mw_replicas *r, uint32_t row, size_t from, size_t n, float weight, const float *d)
{
	float *x = r->row[row].x + from;
	if (mode_of(r, row) == MW_ACCESS_ATOMIC) {
		for (size_t i = 0; i < n; i++) {
			float v = weight * d[i];
			if (v !=
				0) /* adding zero changes nothing, and a compare-and-swap costs a line transfer */
				mw_add_atomic(&x[i], v);
		}
		return;
	}
	mw_access_write_begin(r, row);
	if (r->row[row].owned || mw_kernels()->isa == MW_ISA_PORTABLE)
		mw_kernels()->axpy(weight, d, x, n);
	else
		add_shared(weight, d, x, n);
	mw_access_write_end(r, row);
}

void mw_access_scatter(
	struct mw_replicas *r, uint32_t row, const uint32_t *group, size_t n, uint32_t width, const float *d)
{
	float *x = r->row[row].x;
	if (mode_of(r, row) == MW_ACCESS_ATOMIC) {
		for (size_t i = 0; i < n; i++)
			for (uint32_t j = 0; j < width; j++)
				mw_add_atomic(&x[(size_t)group[i] * width + j], d[i * width + j]);
		return;
	}
	mw_access_write_begin(r, row);
	mw_kernels()->scatter_add(d, group, n, width, x);
	mw_access_write_end(r, row);
}

void mw_access_add_row(struct mw_replicas *r, uint32_t row, const uint32_t *idx, const float *val, size_t n,
	int64_t bias, float a)
{
	float *x = r->row[row].x;
	if (mode_of(r, row) == MW_ACCESS_ATOMIC) {
		for (size_t i = 0; i < n; i++)
			mw_add_atomic(&x[idx[i]], a * val[i]);
		if (bias >= 0)
			mw_add_atomic(&x[bias], a);
		return;
	}
	mw_access_write_begin(r, row);
	mw_kernels()->axpy_sparse(a, idx, val, x, n);
	if (bias >= 0)
		mw_st(&x[bias], mw_ld(&x[bias]) + a);
	mw_access_write_end(r, row);
}

static void copy_racy(const float *src, float *dst, size_t n)
{
#ifdef MW_STRICT_ATOMICS
	for (size_t i = 0; i < n; i++)
		mw_st(&dst[i], mw_ld(&src[i]));
#else
	mw_kernels()->view(src, dst, n);
#endif
}

void mw_access_copy(struct mw_replicas *r, uint32_t src, uint32_t dst, size_t from, size_t n)
{
	struct reader rd = { 0 };
	do {
		reader_begin(r, src, &rd);
		copy_racy(r->row[src].x + from, r->row[dst].x + from, n);
	} while (!reader_done(r, src, &rd));
}

void mw_access_tally(struct mw_replicas *r, uint32_t row)
{
	uint32_t *tally = &r->row[row].tally;
	if (mode_of(r, row) == MW_ACCESS_ATOMIC) {
		__atomic_add_fetch(tally, 1, __ATOMIC_RELAXED);
		return;
	}
	mw_access_write_begin(r, row);
	__atomic_store_n(tally, __atomic_load_n(tally, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
	mw_access_write_end(r, row);
}
