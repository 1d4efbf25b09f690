/* libsvm_csr.c: see libsvm_csr.h. */
#include "data/libsvm_csr.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Readable elements behind the end of col and val (dataset.h). */
#define CSR_PAD 16
/* Arrays are made this much larger than guessed: what isn't touched costs address space only. */
#define GUESS_SLACK 1.1
#define GUESS_LEAST 1024

int mw_libsvm_csr_init(struct mw_libsvm_csr *s, const struct mw_libsvm_rules *rules, struct mw_dataset *d,
	struct mw_err *err)
{
	*s = (struct mw_libsvm_csr){ .rules = rules, .d = d };
	int failed = pthread_mutex_init(&s->lock, NULL) | pthread_rwlock_init(&s->moving, NULL);
	for (int i = 0; i < MW_LIBSVM_TURNS; i++)
		failed |= pthread_cond_init(&s->turned[i], NULL);
	if (failed)
		MW_FAIL(err, RESOURCE, "%s: can't make the locks of the loader", rules->req->path);
	return 0;
}

void mw_libsvm_csr_fini(struct mw_libsvm_csr *s)
{
	pthread_mutex_destroy(&s->lock);
	for (int i = 0; i < MW_LIBSVM_TURNS; i++)
		pthread_cond_destroy(&s->turned[i]);
	pthread_rwlock_destroy(&s->moving);
	free(s->one);
}

/* ---- room */

/*
 * Elements to make room for: what the whole file will take if it goes on like this, and well more than is needed, since
 * every growth moves pages.
 */
static uint64_t guess(uint64_t have, uint64_t need, double share)
{
	double whole = share > 0 ? (double)have / share * GUESS_SLACK : 0,
	       least = 2.0 * (double)need + GUESS_LEAST;
	whole = whole > least ? whole : least;
	return whole < 1e18 ? (uint64_t)whole : need;
}

static int grow(void *array, uint64_t old, uint64_t n, size_t size, const char *what, struct mw_err *err)
{
	void **p = array;
	if (n > SIZE_MAX / size)
		MW_FAIL(err, RESOURCE, "%s are more than an address space holds", what);
	return mw_grow(p, old * size, n * size, what, err);
}

static int grow_rows(struct mw_libsvm_csr *s, uint64_t room, struct mw_err *err)
{
	MW_TRY(grow(&s->d->row_ptr, s->row_room ? s->rows : 0, room + 1, sizeof(*s->d->row_ptr),
		"row pointers", err));
	return grow(&s->d->y, s->row_room ? s->rows : 0, room, sizeof(*s->d->y), "labels", err);
}

static int grow_nnz(struct mw_libsvm_csr *s, uint64_t room, struct mw_err *err)
{
	uint64_t old = s->nnz_room ? s->nnz : 0;
	MW_TRY(grow(&s->d->col, old, room + CSR_PAD, sizeof(*s->d->col), "column indices", err));
	return grow(&s->d->val, old, room + CSR_PAD, sizeof(*s->d->val), "values", err);
}

typedef int grow_fn(struct mw_libsvm_csr *s, uint64_t room, struct mw_err *err);

/* A guess that doesn't fit is no reason to give up yet. */
static int make_room(struct mw_libsvm_csr *s, grow_fn *grow_it, uint64_t *room, uint64_t want, uint64_t need,
	struct mw_err *err)
{
	struct mw_err ignored = { 0 };
	if (need <= *room)
		return 0;
	if (grow_it(s, want, &ignored) < 0) {
		want = need;
		MW_TRY(grow_it(s, want, err));
	}
	*room = want;
	return 0;
}

/* Room for so many more. Called with the lock held, or by the only thread. */
static int reserve(struct mw_libsvm_csr *s, uint64_t rows, uint64_t nnz, double share, struct mw_err *err)
{
	int ret;
	rows += s->rows;
	nnz += s->nnz;
	if (s->nnz_room && rows <= s->row_room && nnz <= s->nnz_room)
		return 0;
	pthread_rwlock_wrlock(&s->moving);
	ret = make_room(s, grow_rows, &s->row_room, guess(s->rows, rows, share), rows, err);
	if (ret == 0)
		ret = make_room(s, grow_nnz, &s->nnz_room, guess(s->nnz, nnz, share), nnz + !nnz, err);
	pthread_rwlock_unlock(&s->moving);
	return ret;
}

int mw_libsvm_csr_direct(struct mw_libsvm_csr *s, struct mw_libsvm_chunk *c, double share)
{
	uint64_t n = (uint64_t)(c->end - c->begin);
	MW_TRY(reserve(s, n / MW_LIBSVM_ROW_BYTES + 1, n / MW_LIBSVM_NNZ_BYTES, share, &c->err));
	c->row_ptr = s->d->row_ptr + s->rows;
	c->y = s->d->y + s->rows;
	c->col = s->d->col + s->nnz;
	c->val = s->d->val + s->nnz;
	c->nnz_before = s->nnz;
	return 0;
}

/* ---- placing */

static void report(struct mw_libsvm_csr *s, const struct mw_libsvm_chunk *c)
{
	if (c->err_line)
		mw_err_set(&s->err, c->err.code, "%.300s:%llu:%llu: %s", s->rules->req->path,
			(unsigned long long)(s->lines + c->err_line), (unsigned long long)c->err_column,
			c->err.msg);
	else
		mw_err_set(&s->err, c->err.code, "%s", c->err.msg);
}

static int add_range(struct mw_libsvm_csr *s, uint64_t n)
{
	struct mw_libsvm_range *last = s->n_one ? &s->one[s->n_one - 1] : NULL;
	if (last && last->at + last->n == s->nnz) {
		last->n += n;
		return 0;
	}
	if (s->n_one == s->one_room) {
		uint64_t room = s->one_room ? 2 * s->one_room : 16;
		void *p = realloc(s->one, room * sizeof(*s->one));
		if (!p)
			return mw_err_set(&s->err, MW_ERESOURCE, "out of memory: list of pieces of %s",
				s->rules->req->path);
		s->one = p;
		s->one_room = room;
	}
	s->one[s->n_one++] = (struct mw_libsvm_range){ s->nnz, n };
	return 0;
}

/* What the block says about the file's indices. */
static int note_indices(struct mw_libsvm_csr *s, const struct mw_libsvm_chunk *c)
{
	if (!c->nnz)
		return 0;
	if (!s->any || c->index_max > s->index_max) {
		s->index_max = c->index_max;
		s->max_line = s->lines + c->max_line;
		s->max_column = c->max_column;
	}
	s->any = true;
	s->from_zero |= !c->shift;
	return c->shift ? add_range(s, c->nnz) : 0;
}

/* The block's turn has come; the lock is held. */
static int take_place(struct mw_libsvm_csr *s, const struct mw_libsvm_chunk *c, double share)
{
	if (c->err.code) {
		report(s, c);
		return s->err.code;
	}
	MW_TRY(note_indices(s, c));
	MW_TRY(reserve(s, c->rows, c->nnz, share, &s->err));
	s->rows += c->rows;
	s->nnz += c->nnz;
	s->lines += c->lines;
	return 0;
}

static void copy_rows(struct mw_dataset *d, const struct mw_libsvm_chunk *c, uint64_t row, uint64_t nnz)
{
	if (!c->rows || c->y == d->y + row)
		return; /* nothing there (nor arrays, perhaps), or parsed in its place */
	memcpy(d->col + nnz, c->col, c->nnz * sizeof(*c->col));
	memcpy(d->val + nnz, c->val, c->nnz * sizeof(*c->val));
	memcpy(d->y + row, c->y, c->rows * sizeof(*c->y));
	for (uint64_t r = 0; r < c->rows; r++)
		d->row_ptr[row + r] = c->row_ptr[r] + nnz;
}

bool mw_libsvm_csr_place(struct mw_libsvm_csr *s, struct mw_libsvm_chunk *c, uint64_t number, double share)
{
	uint64_t row, nnz;
	bool ok;
	pthread_mutex_lock(&s->lock);
	while (s->turn != number && !s->failed)
		pthread_cond_wait(&s->turned[number % MW_LIBSVM_TURNS], &s->lock);
	row = s->rows;
	nnz = s->nnz;
	if (!s->failed && take_place(s, c, share) < 0)
		s->failed = true;
	ok = !s->failed;
	if (ok)
		pthread_rwlock_rdlock(&s->moving);
	s->turn++;
	for (int i = 0; i < MW_LIBSVM_TURNS && !ok; i++)
		pthread_cond_broadcast(&s->turned[i]);
	pthread_cond_broadcast(&s->turned[s->turn % MW_LIBSVM_TURNS]);
	pthread_mutex_unlock(&s->lock);
	if (ok) {
		copy_rows(s->d, c, row, nnz);
		pthread_rwlock_unlock(&s->moving);
	}
	return ok;
}

/* ---- the whole */

static int set_width(struct mw_libsvm_csr *s, struct mw_err *err)
{
	const struct mw_data_request *req = s->rules->req;
	uint32_t shift = s->d->index_base;
	char what[600];
	s->d->features = s->rules->width;
	if (s->d->features && s->any && s->index_max >= (uint64_t)s->d->features + shift) {
		mw_libsvm_too_wide(s->rules, s->index_max, !shift, what);
		MW_FAIL(err, DATA, "%.300s:%llu:%llu: %s", req->path, (unsigned long long)s->max_line,
			(unsigned long long)s->max_column, what);
	}
	if (!s->d->features && !s->any)
		MW_FAIL(err, DATA,
			"%s: no row has a feature; give data with INDEX:VALUE pairs, or --features N",
			req->path);
	if (!s->d->features)
		s->d->features = (uint32_t)(s->index_max + 1 - shift);
	return 0;
}

int mw_libsvm_csr_finish(struct mw_libsvm_csr *s, struct mw_err *err)
{
	struct mw_dataset *d = s->d;
	if (!s->rows)
		MW_FAIL(err, DATA, "%s: no rows, only blank lines and comments", s->rules->req->path);
	d->rows = s->rows;
	d->nnz = s->nnz;
	d->row_ptr[d->rows] = d->nnz;
	memset(d->col + d->nnz, 0, CSR_PAD * sizeof(*d->col));
	memset(d->val + d->nnz, 0, CSR_PAD * sizeof(*d->val));
	d->index_base = s->from_zero || s->rules->base == MW_BASE_ZERO ? 0 : 1;
	for (uint64_t i = 0; i < s->n_one && !d->index_base; i++)
		for (uint64_t k = 0; k < s->one[i].n; k++)
			d->col[s->one[i].at + k]++;
	return set_width(s, err);
}
