/* libsvm.c: loads LIBSVM text: cut at line ends, counted and then parsed in parallel into one CSR. */
#include "data/libsvm.h"

#include <stdlib.h>
#include <string.h>
#include <pthread.h>

#include "base/mem.h"
#include "data/input.h"
#include "data/parallel.h"

/* Readable elements behind the end of col and val (dataset.h). */
#define CSR_PAD 16
/* Text for which a thread of its own pays. */
#define THREAD_BYTES ((uint64_t)1 << 20)
/* Inflated text is parsed in blocks of this size, while the next one is inflated. */
#define BLOCK_BYTES ((size_t)8 << 20)

/* The pieces of a file, in order. Owned: the chunks, their labels, and (own_rows) their arrays. */
struct pieces {
	struct mw_libsvm_rules rules;
	struct mw_libsvm_chunk **chunk;
	int n, room;
	bool own_rows;
};

static void free_rows(struct mw_libsvm_chunk *c)
{
	free(c->row_ptr);
	free(c->col);
	free(c->val);
	free(c->y);
	c->row_ptr = NULL;
	c->col = NULL;
	c->val = c->y = NULL;
}

static void pieces_fini(struct pieces *s)
{
	for (int i = 0; i < s->n; i++) {
		if (s->own_rows)
			free_rows(s->chunk[i]);
		mw_labels_fini(&s->chunk[i]->labels);
		free(s->chunk[i]);
	}
	free(s->chunk);
}

static struct mw_libsvm_chunk *add_chunk(
	struct pieces *s, const char *begin, const char *end, struct mw_err *err)
{
	struct mw_libsvm_chunk *c = calloc(1, sizeof(*c));
	if (c && s->n == s->room) {
		int room = s->room ? 2 * s->room : 64;
		void *grown = realloc(s->chunk, (size_t)room * sizeof(*s->chunk));
		if (!grown) {
			free(c);
			c = NULL;
		} else {
			s->chunk = grown;
			s->room = room;
		}
	}
	if (!c) {
		mw_err_set(err, MW_ERESOURCE, "out of memory: list of pieces of %s", s->rules.req->path);
		return NULL;
	}
	*c = (struct mw_libsvm_chunk){ .rules = &s->rules, .begin = begin, .end = end };
	s->chunk[s->n++] = c;
	return c;
}

static void make_rules(const struct mw_data_request *req, struct mw_libsvm_rules *rules)
{
	const struct mw_dataset *like = req->like;
	*rules = (struct mw_libsvm_rules){ .req = req, .base = req->index_base };
	rules->width = like ? like->features : req->features;
	if (like && req->index_base == MW_BASE_AUTO && like->format && !strcmp(like->format, "libsvm"))
		rules->base = like->index_base ? MW_BASE_ONE : MW_BASE_ZERO;
}

/* A byte order mark is no data. */
static size_t bom_bytes(const char *p)
{
	return memcmp(p, "\xef\xbb\xbf", 3) ? 0 : 3;
}

/* ---- plain text: mapped, one chunk a thread, rows written where they stay */

static int cut(struct pieces *s, const char *text, const char *end, int n, struct mw_err *err)
{
	const char *begin = text;
	uint64_t bytes = (uint64_t)(end - text);
	for (int i = 1; i <= n; i++) {
		const char *stop = text + (uint64_t)((unsigned __int128)bytes * (unsigned)i / (unsigned)n),
			   *nl;
		if (stop < begin)
			continue;
		nl = memchr(stop, '\n', (size_t)(end - stop));
		stop = nl && i < n ? nl + 1 : end;
		if (stop > begin && !add_chunk(s, begin, stop, err))
			return MW_ERESOURCE;
		begin = stop;
	}
	return 0;
}

static void count_task(void *ctx, int i)
{
	mw_libsvm_count(((struct pieces *)ctx)->chunk[i]);
}

static void parse_task(void *ctx, int i)
{
	mw_libsvm_parse(((struct pieces *)ctx)->chunk[i]);
}

static int alloc_csr(struct mw_dataset *d, uint64_t rows, uint64_t nnz, struct mw_err *err)
{
	d->row_ptr = mw_alloc_array(rows + 1, sizeof(*d->row_ptr), "row pointers", err);
	d->y = mw_alloc_array(rows, sizeof(*d->y), "labels", err);
	d->col = mw_alloc_array(nnz + CSR_PAD, sizeof(*d->col), "column indices", err);
	d->val = mw_alloc_array(nnz + CSR_PAD, sizeof(*d->val), "values", err);
	return d->row_ptr && d->y && d->col && d->val ? 0 : MW_ERESOURCE;
}

/* Each chunk gets the place that its count says it needs at most. */
static int place_chunks(struct pieces *s, struct mw_dataset *d, struct mw_err *err)
{
	uint64_t lines = 0, colons = 0;
	for (int i = 0; i < s->n; i++) {
		s->chunk[i]->lines_before = lines;
		s->chunk[i]->nnz_before = colons;
		lines += s->chunk[i]->lines;
		colons += s->chunk[i]->colons;
	}
	MW_TRY(alloc_csr(d, lines, colons, err));
	for (int i = 0; i < s->n; i++) {
		struct mw_libsvm_chunk *c = s->chunk[i];
		c->row_ptr = d->row_ptr + c->lines_before;
		c->y = d->y + c->lines_before;
		c->col = d->col + c->nnz_before;
		c->val = d->val + c->nnz_before;
	}
	return 0;
}

/* The error that stands first in the file. */
static int first_error(const struct pieces *s, struct mw_err *err)
{
	for (int i = 0; i < s->n; i++)
		if (s->chunk[i]->err.code)
			return mw_err_set(err, s->chunk[i]->err.code, "%s", s->chunk[i]->err.msg);
	return 0;
}

/* Close the gaps that blank lines, comments and colons in comments have left. */
static void close_gaps(struct pieces *s, struct mw_dataset *d)
{
	for (int i = 0; i < s->n; i++) {
		struct mw_libsvm_chunk *c = s->chunk[i];
		uint64_t shift = c->nnz_before - d->nnz;
		if (c->row_ptr != d->row_ptr + d->rows) {
			memmove(d->row_ptr + d->rows, c->row_ptr, c->rows * sizeof(*c->row_ptr));
			memmove(d->y + d->rows, c->y, c->rows * sizeof(*c->y));
		}
		if (shift) {
			memmove(d->col + d->nnz, c->col, c->nnz * sizeof(*c->col));
			memmove(d->val + d->nnz, c->val, c->nnz * sizeof(*c->val));
			for (uint64_t r = 0; r < c->rows; r++)
				d->row_ptr[d->rows + r] -= shift;
		}
		d->rows += c->rows;
		d->nnz += c->nnz;
	}
	d->row_ptr[d->rows] = d->nnz;
	memset(d->col + d->nnz, 0, CSR_PAD * sizeof(*d->col));
	memset(d->val + d->nnz, 0, CSR_PAD * sizeof(*d->val));
}

static int load_plain(struct pieces *s, struct mw_input *in, struct mw_dataset *d, struct mw_err *err)
{
	const char *text;
	int n = mw_parallel_threads(s->rules.req->threads, in->size, THREAD_BYTES);
	MW_TRY(mw_input_map(in, err));
	text = in->map + bom_bytes(in->map);
	d->file_bytes = in->size;
	MW_TRY(cut(s, text, in->map + in->size, n, err));
	mw_parallel_run(s->n, count_task, s);
	MW_TRY(place_chunks(s, d, err));
	mw_parallel_run(s->n, parse_task, s);
	MW_TRY(first_error(s, err));
	close_gaps(s, d);
	return 0;
}

/* ---- gzip: inflated in blocks of whole lines, each parsed (by a second thread) while the next is inflated
 */

struct block {
	char *text;
	size_t room, n; /* n bytes of whole lines; what follows belongs to the next block */
	struct mw_libsvm_chunk *chunk;
	pthread_t thread;
	bool started;
};

/* malloc: these arrays needn't be zeroed, aligned or readable past their end, and don't live long. */
static bool alloc_block(struct mw_libsvm_chunk *c)
{
	c->row_ptr = malloc(c->lines * sizeof(*c->row_ptr));
	c->y = malloc(c->lines * sizeof(*c->y));
	c->col = malloc((c->colons + 1) * sizeof(*c->col)); /* + 1: none is a size of 0 */
	c->val = malloc((c->colons + 1) * sizeof(*c->val));
	return c->row_ptr && c->y && c->col && c->val;
}

/* Allocate what was counted, and parse. Errors are left in the chunk. */
static void *parse_block(void *arg)
{
	struct mw_libsvm_chunk *c = arg;
	if (alloc_block(c))
		mw_libsvm_parse(c);
	else
		mw_err_set(&c->err, MW_ERESOURCE, "%s: out of memory: %llu values in a block",
			c->rules->req->path, (unsigned long long)c->colons);
	return NULL;
}

static void finish_block(struct block *b)
{
	if (b->started)
		pthread_join(b->thread, NULL);
	b->started = false;
}

static int grow_block(struct block *b, size_t room, struct mw_err *err)
{
	char *text = realloc(b->text, room + MW_INPUT_PAD);
	if (!text)
		MW_FAIL(err, RESOURCE, "out of memory: %zu MB of inflated text", room >> 20);
	b->text = text;
	b->room = room;
	return 0;
}

/*
 * Fill with `carry` bytes at `from` and what is inflated next, up to the last line end. A line longer than
 * the block makes it grow. *left: the bytes behind the last line end.
 */
static int fill_block(struct mw_input *in, struct block *b, const char *from, size_t carry, size_t *left,
	struct mw_err *err)
{
	size_t have = carry;
	const char *nl = NULL;
	while (b->room < carry)
		MW_TRY(grow_block(b, 2 * b->room, err));
	memcpy(b->text, from, carry);
	for (;;) {
		int64_t got = mw_input_read(in, b->text + have, b->room - have, err);
		if (got < 0)
			return (int)got;
		have += (size_t)got;
		nl = in->ended ? NULL : memrchr(b->text, '\n', have);
		if (in->ended || nl)
			break;
		if (have == b->room)
			MW_TRY(grow_block(b, 2 * b->room, err));
	}
	b->n = nl ? (size_t)(nl + 1 - b->text) : have;
	*left = have - b->n;
	if (in->ended)
		memset(b->text + have, 0, MW_INPUT_PAD);
	return 0;
}

static int start_block(struct pieces *s, struct block *b, bool first, bool alone, struct mw_err *err)
{
	const char *begin = b->text;
	const struct mw_libsvm_chunk *before = first ? NULL : s->chunk[s->n - 1];
	if (first && b->n >= 3)
		begin += bom_bytes(begin);
	b->chunk = add_chunk(s, begin, b->text + b->n, err);
	if (!b->chunk)
		return MW_ERESOURCE;
	if (before)
		b->chunk->lines_before = before->lines_before + before->lines;
	mw_libsvm_count(b->chunk);
	b->started = !alone && !pthread_create(&b->thread, NULL, parse_block, b->chunk);
	if (!b->started)
		parse_block(b->chunk);
	return 0;
}

static int read_blocks(
	struct pieces *s, struct mw_input *in, struct block b[2], struct mw_dataset *d, struct mw_err *err)
{
	bool alone = mw_parallel_threads(s->rules.req->threads, 2, 1) == 1;
	const char *carry_from = "";
	size_t carry = 0, left = 0;
	/* Small files don't need large blocks: text rarely shrinks to less than a sixteenth. */
	size_t room = in->size < BLOCK_BYTES / 16 ? 16 * in->size : BLOCK_BYTES;
	MW_TRY(grow_block(&b[0], room, err));
	MW_TRY(grow_block(&b[1], room, err));
	for (int i = 0;; i ^= 1) {
		MW_TRY(fill_block(in, &b[i], carry_from, carry, &left, err));
		finish_block(&b[i ^ 1]);
		MW_TRY(first_error(s, err));
		d->file_bytes += b[i].n;
		if (b[i].n)
			MW_TRY(start_block(s, &b[i], s->n == 0, alone, err));
		if (in->ended) {
			finish_block(&b[i]);
			return first_error(s, err);
		}
		carry_from = b[i].text + b[i].n;
		carry = left;
	}
}

/* Move what the blocks hold into one CSR, one array at a time, so that little is there twice. */
static int gather(struct pieces *s, struct mw_dataset *d, struct mw_err *err)
{
	uint64_t rows = 0, nnz = 0;
	for (int i = 0; i < s->n; i++) {
		rows += s->chunk[i]->rows;
		nnz += s->chunk[i]->nnz;
	}
	d->col = mw_alloc_array(nnz + CSR_PAD, sizeof(*d->col), "column indices", err);
	for (int i = 0; d->col && i < s->n; i++) {
		struct mw_libsvm_chunk *c = s->chunk[i];
		memcpy(d->col + d->nnz, c->col, c->nnz * sizeof(*c->col));
		d->nnz += c->nnz;
		free(c->col);
		c->col = NULL;
	}
	d->val = mw_alloc_array(nnz + CSR_PAD, sizeof(*d->val), "values", err);
	d->row_ptr = mw_alloc_array(rows + 1, sizeof(*d->row_ptr), "row pointers", err);
	d->y = mw_alloc_array(rows, sizeof(*d->y), "labels", err);
	if (!d->col || !d->val || !d->row_ptr || !d->y)
		return MW_ERESOURCE;
	d->nnz = 0;
	for (int i = 0; i < s->n; i++) {
		struct mw_libsvm_chunk *c = s->chunk[i];
		memcpy(d->val + d->nnz, c->val, c->nnz * sizeof(*c->val));
		memcpy(d->y + d->rows, c->y, c->rows * sizeof(*c->y));
		for (uint64_t r = 0; r < c->rows; r++)
			d->row_ptr[d->rows + r] = c->row_ptr[r] + d->nnz;
		d->nnz += c->nnz;
		d->rows += c->rows;
		free_rows(c);
	}
	d->row_ptr[d->rows] = d->nnz;
	return 0;
}

static int load_gzip(struct pieces *s, struct mw_input *in, struct mw_dataset *d, struct mw_err *err)
{
	struct block b[2] = { { 0 }, { 0 } };
	int ret;
	s->own_rows = true;
	ret = read_blocks(s, in, b, d, err);
	for (int i = 0; i < 2; i++) {
		finish_block(&b[i]);
		free(b[i].text);
	}
	return ret < 0 ? ret : gather(s, d, err);
}

/* ---- the file as a whole */

/* One index base for all chunks; then the width. */
static int unify_index(struct pieces *s, struct mw_dataset *d, struct mw_err *err)
{
	const struct mw_libsvm_chunk *widest = NULL;
	uint32_t shift = 1;
	uint64_t at = 0;
	for (int i = 0; i < s->n; i++) {
		const struct mw_libsvm_chunk *c = s->chunk[i];
		if (c->nnz && c->shift < shift)
			shift = c->shift;
		if (c->nnz && (!widest || c->index_max > widest->index_max))
			widest = c;
	}
	if (s->rules.base == MW_BASE_ZERO)
		shift = 0;
	for (int i = 0; i < s->n; at += s->chunk[i++]->nnz)
		if (s->chunk[i]->shift != shift)
			for (uint64_t k = 0; k < s->chunk[i]->nnz; k++)
				d->col[at + k]++;
	d->index_base = shift;
	d->features = s->rules.width;
	if (d->features && widest && widest->index_max >= (uint64_t)d->features + shift)
		return mw_libsvm_too_wide(
			&s->rules, widest->index_max, !shift, widest->max_line, widest->max_column, err);
	if (!d->features && !widest)
		MW_FAIL(err, DATA,
			"%s: no row has a feature; give data with INDEX:VALUE pairs, or --features N",
			s->rules.req->path);
	if (!d->features)
		d->features = (uint32_t)(widest->index_max + 1 - shift);
	return 0;
}

static int unify_labels(struct pieces *s, struct mw_dataset *d, struct mw_err *err)
{
	struct mw_labels all = { 0 };
	int ret = 0;
	for (int i = 0; i < s->n && ret == 0; i++)
		ret = mw_labels_merge(&all, &s->chunk[i]->labels, err);
	if (ret == 0)
		ret = mw_labels_apply(s->rules.req, &all, d, err);
	mw_labels_fini(&all);
	return ret;
}

static int load(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err)
{
	struct pieces s = { 0 };
	struct mw_input in;
	int ret;
	make_rules(req, &s.rules);
	d->kind = MW_X_CSR;
	MW_TRY(mw_input_open(&in, req->path, err));
	ret = in.gzip ? load_gzip(&s, &in, d, err) : load_plain(&s, &in, d, err);
	if (ret == 0 && !d->rows)
		ret = mw_err_set(err, MW_EDATA, "%s: no rows, only blank lines and comments", req->path);
	if (ret == 0)
		ret = unify_index(&s, d, err);
	if (ret == 0)
		ret = unify_labels(&s, d, err);
	mw_input_close(&in);
	pieces_fini(&s);
	return ret;
}

/* Text: the last resort, so only what can't be text is refused. */
static bool probe(const char *path, const unsigned char *head, size_t n)
{
	(void)path;
	for (size_t i = 0; i < n; i++)
		if (head[i] < ' ' && head[i] != '\t' && head[i] != '\n' && head[i] != '\r')
			return false;
	return true;
}

const struct mw_format_ops mw_format_libsvm = {
	.name = "libsvm",
	.summary = "LIBSVM (SVMlight) text: LABEL INDEX:VALUE ..., plain or gzip",
	.probe = probe,
	.load = load,
};
