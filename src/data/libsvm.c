/* libsvm.c: loads LIBSVM text in one pass: blocks of whole lines, parsed in parallel, placed in order into one CSR. */
#include "data/libsvm.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

#include "base/mem.h"
#include "data/input.h"
#include "data/libsvm_csr.h"
#include "data/parallel.h"

/* Text for which a thread of its own pays. */
#define THREAD_BYTES ((uint64_t)1 << 20)
/* A block of text, with what is parsed from it, stays in a core's second-level cache. */
#define BLOCK_BYTES ((uint64_t)256 << 10)
#define BLOCK_LEAST 64
/* What is read behind a block at first to find the end of its last line. */
#define TAIL_BYTES 4096
/* Inflated text is parsed in blocks of this size, while the next one is inflated. */
#define GZ_BLOCK_BYTES ((size_t)1 << 20)

static void make_rules(const struct mw_data_request *req, struct mw_libsvm_rules *rules)
{
	const struct mw_dataset *like = req->like;
	*rules = (struct mw_libsvm_rules){ .req = req, .base = req->index_base };
	rules->width = like ? like->features : req->features;
	if (like && req->index_base == MW_BASE_AUTO && like->format && !strcmp(like->format, "libsvm"))
		rules->base = like->index_base ? MW_BASE_ONE : MW_BASE_ZERO;
}

/* A byte order mark is no data. */
static size_t bom_bytes(const char *p, size_t n)
{
	return n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* Make room for n bytes of text and its padding; the first `keep` stay. */
static int grow_text(char **text, size_t *room, size_t keep, size_t n, struct mw_err *err)
{
	if (n <= *room)
		return 0;
	n += n / 8; /* the next block may be a little longer */
	MW_TRY(mw_grow((void **)text, keep, n + MW_INPUT_PAD, "a block of text", err));
	*room = n;
	return 0;
}

/* ---- plain text: each thread takes the next block of the file, reads and parses it */

struct plain {
	const struct mw_input *in;
	struct mw_libsvm_csr *csr;
	uint64_t block_bytes, blocks;
	_Atomic uint64_t next;    /* the next block to take; Sync: relaxed, hands out numbers only */
	struct mw_labels *labels; /* one a thread, written by it alone */
	bool alone;
};

/* A thread's text and, unless it is alone, the arrays that it parses into. */
struct reader {
	char *text, *arrays;
	size_t room, n;
	size_t array_room; /* bytes of text that the arrays suffice for */
	struct mw_libsvm_chunk chunk;
};

/* All arrays in one allocation: a large one, of which only what is used is ever touched. */
static int alloc_arrays(struct reader *r, size_t n, struct mw_err *err)
{
	size_t rows = n / MW_LIBSVM_ROW_BYTES + 1, nnz = n / MW_LIBSVM_NNZ_BYTES + 1;
	struct mw_libsvm_chunk *c = &r->chunk;
	if (n <= r->array_room)
		return 0;
	mw_free(r->arrays);
	r->arrays = mw_alloc(
		rows * (sizeof(*c->row_ptr) + sizeof(*c->y)) + nnz * (sizeof(*c->col) + sizeof(*c->val)),
		"rows of a block", err);
	if (!r->arrays)
		return MW_ERESOURCE;
	r->array_room = n;
	c->row_ptr = (uint64_t *)(void *)r->arrays;
	c->col = (uint32_t *)(void *)(c->row_ptr + rows);
	c->val = (float *)(void *)(c->col + nnz);
	c->y = c->val + nnz;
	return 0;
}

/* Read on until n bytes of text from `from` are there, or the file ends. */
static int read_up_to(
	const struct mw_input *in, struct reader *r, uint64_t from, size_t n, struct mw_err *err)
{
	if (n > in->size - from)
		n = (size_t)(in->size - from);
	MW_TRY(grow_text(&r->text, &r->room, r->n, n, err));
	MW_TRY(mw_input_read_at(in, r->text + r->n, n - r->n, from + r->n, err));
	r->n = n;
	return 0;
}

/*
 * Read the lines that begin in the block. That takes the byte before it (does a line begin with the block?) and the
 * rest of its last line. An empty text if no line begins there.
 */
static int read_block(const struct plain *p, struct reader *r, uint64_t number, struct mw_err *err)
{
	uint64_t begin = number * p->block_bytes, before = begin ? begin - 1 : 0;
	size_t length = (size_t)(begin - before + p->block_bytes), more = TAIL_BYTES;
	const char *nl, *last;
	r->n = 0;
	MW_TRY(read_up_to(p->in, r, before, length + more, err));
	if (length > r->n)
		length = r->n;
	nl = begin ? memchr(r->text, '\n', length - 1) : NULL;
	r->chunk.begin = r->chunk.end = r->text + length;
	if (begin && !nl)
		return 0;
	for (size_t seen = length - 1; !(last = memchr(r->text + seen, '\n', r->n - seen)); more *= 2) {
		if (before + r->n == p->in->size)
			break;
		seen = r->n;
		MW_TRY(read_up_to(p->in, r, before, r->n + more, err));
	}
	memset(r->text + r->n, 0, MW_INPUT_PAD);
	nl = begin ? memchr(r->text, '\n', r->n) : NULL; /* again: the text may have moved */
	r->chunk.begin = nl ? nl + 1 : r->text + bom_bytes(r->text, r->n);
	r->chunk.end = last ? last + 1 : r->text + r->n;
	return 0;
}

static void read_and_parse(struct plain *p, struct reader *r, uint64_t number, double share)
{
	struct mw_libsvm_chunk *c = &r->chunk;
	int ret = read_block(p, r, number, &c->err);
	if (ret == 0)
		ret = p->alone ? mw_libsvm_csr_direct(p->csr, c, share)
			       : alloc_arrays(r, (size_t)(c->end - c->begin), &c->err);
	if (ret == 0)
		mw_libsvm_parse(c);
}

static void plain_task(void *ctx, int thread)
{
	struct plain *p = ctx;
	struct reader r = { .chunk.rules = p->csr->rules };
	for (;;) {
		uint64_t number = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
		double share = (double)number / (double)p->blocks;
		if (number >= p->blocks)
			break;
		read_and_parse(p, &r, number, share);
		if (!mw_libsvm_csr_place(p->csr, &r.chunk, number, share))
			break;
	}
	p->labels[thread] = r.chunk.labels;
	mw_free(r.arrays);
	mw_free(r.text);
}

/* Blocks of equal size, small ones where the file is small for its threads. */
static uint64_t block_size(uint64_t bytes, int threads)
{
	uint64_t size = (bytes + (uint64_t)threads - 1) / (uint64_t)threads;
	return size > BLOCK_BYTES ? BLOCK_BYTES : size < BLOCK_LEAST ? BLOCK_LEAST : size;
}

static int merge_labels(struct mw_labels *all, struct mw_labels *some, int n, struct mw_err *err)
{
	int ret = 0;
	for (int i = 0; i < n; i++) {
		if (ret == 0)
			ret = mw_labels_merge(all, &some[i], err);
		mw_labels_fini(&some[i]);
	}
	return ret;
}

static int load_plain(
	struct mw_libsvm_csr *csr, struct mw_input *in, struct mw_labels *all, struct mw_err *err)
{
	struct mw_labels labels[MW_PARALLEL_MAX] = { { 0 } };
	int threads = mw_parallel_threads(csr->rules->req->threads, in->size, THREAD_BYTES);
	struct plain p = { .in = in, .csr = csr, .labels = labels, .alone = threads == 1 };
	p.block_bytes = block_size(in->size, threads);
	p.blocks = (in->size + p.block_bytes - 1) / p.block_bytes;
	mw_parallel_run(threads, plain_task, &p);
	MW_TRY(merge_labels(all, labels, threads, err));
	csr->d->file_bytes = in->size;
	return 0;
}

/* ---- gzip: inflated by this thread, in blocks of whole lines, each parsed (by another) while the next is inflated */

enum { EMPTY, FULL, LAST };

struct block {
	char *text;
	size_t room, n; /* n bytes of whole lines; what follows belongs to the next block */
	double share;
	int state;
};

/* Two blocks in turn. Sync: a block is the inflater's while EMPTY, the parser's otherwise; states change under lock. */
struct gzip {
	struct mw_libsvm_csr *csr;
	struct block block[2];
	struct mw_libsvm_chunk chunk; /* of the parser */
	uint64_t number;              /* of the parser's block */
	double share;                 /* of the file, before that block */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stop; /* the parser has found an error */
};

static void set_state(struct gzip *g, struct block *b, int state, bool stop)
{
	pthread_mutex_lock(&g->lock);
	b->state = state;
	g->stop |= stop;
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->lock);
}

/* Wait until the block is empty, or isn't. Returns its state, or -1 when the parser has stopped. */
static int wait_state(struct gzip *g, struct block *b, bool empty)
{
	int state;
	pthread_mutex_lock(&g->lock);
	while ((b->state == EMPTY) != empty && !g->stop)
		pthread_cond_wait(&g->changed, &g->lock);
	state = g->stop ? -1 : b->state;
	pthread_mutex_unlock(&g->lock);
	return state;
}

/* Returns false at an error, which is in the CSR. */
static bool parse_block(struct gzip *g, struct block *b)
{
	struct mw_libsvm_chunk *c = &g->chunk;
	c->begin = b->text + (g->number ? 0 : bom_bytes(b->text, b->n));
	c->end = b->text + b->n;
	if (mw_libsvm_csr_direct(g->csr, c, g->share) == 0)
		mw_libsvm_parse(c);
	if (!mw_libsvm_csr_place(g->csr, c, g->number++, g->share))
		return false;
	g->share = b->share;
	return true;
}

static void *gzip_parser(void *arg)
{
	struct gzip *g = arg;
	for (int i = 0;; i ^= 1) {
		struct block *b = &g->block[i];
		int state = wait_state(g, b, false);
		bool ok = state >= 0 && parse_block(g, b);
		set_state(g, b, EMPTY, !ok);
		if (!ok || state == LAST)
			return NULL;
	}
}

/*
 * Fill with `carry` bytes at `from` and what is inflated next, up to the last line end. A line longer than
 * the block makes it grow. *left: the bytes behind the last line end. The block becomes FULL or LAST.
 */
static int fill_block(struct mw_input *in, struct block *b, const char *from, size_t carry, size_t *left,
	struct mw_err *err)
{
	size_t have = carry;
	const char *nl = NULL;
	MW_TRY(grow_text(&b->text, &b->room, 0, 2 * carry, err));
	memcpy(b->text, from, carry);
	for (;;) {
		int64_t got = mw_input_read(in, b->text + have, b->room - have, err);
		if (got < 0)
			return (int)got;
		nl = in->ended ? NULL : memrchr(b->text + have, '\n', (size_t)got);
		have += (size_t)got;
		if (in->ended || nl)
			break;
		MW_TRY(grow_text(&b->text, &b->room, have, 2 * b->room, err));
	}
	b->n = nl ? (size_t)(nl + 1 - b->text) : have;
	b->share = mw_input_progress(in);
	*left = have - b->n;
	if (in->ended)
		memset(b->text + have, 0, MW_INPUT_PAD);
	return 0;
}

/*
 * Inflate all, handing blocks to the parser or (alone) parsing them here. A fault of the gzip file ends the text: an
 * error of the lines before it comes first.
 */
static int inflate_all(struct gzip *g, struct mw_input *in, bool alone, struct mw_err *err)
{
	const char *carry_from = "";
	size_t carry = 0, left = 0;
	int ret = 0;
	for (int i = 0;; i ^= 1) {
		struct block *b = &g->block[i];
		if (wait_state(g, b, true) < 0)
			return 0;
		ret = fill_block(in, b, carry_from, carry, &left, err);
		if (ret < 0)
			b->n = 0;
		g->csr->d->file_bytes += b->n;
		carry_from = b->text + b->n;
		carry = left;
		if (alone && !parse_block(g, b))
			return 0;
		if (!alone)
			set_state(g, b, in->ended || ret < 0 ? LAST : FULL, false);
		if (in->ended || ret < 0)
			return ret;
	}
}

static int inflate_and_parse(struct gzip *g, struct mw_input *in, struct mw_err *err)
{
	bool alone = mw_parallel_threads(g->csr->rules->req->threads, 2, 1) == 1;
	/* Small files don't need large blocks: text rarely shrinks to less than a sixteenth. */
	size_t room = in->size < GZ_BLOCK_BYTES / 16 ? 16 * in->size : GZ_BLOCK_BYTES;
	pthread_t parser;
	int ret;
	for (int i = 0; i < 2; i++)
		MW_TRY(grow_text(&g->block[i].text, &g->block[i].room, 0, room, err));
	alone = alone || pthread_create(&parser, NULL, gzip_parser, g);
	ret = inflate_all(g, in, alone, err);
	if (!alone)
		pthread_join(parser, NULL);
	return ret;
}

static int load_gzip(
	struct mw_libsvm_csr *csr, struct mw_input *in, struct mw_labels *all, struct mw_err *err)
{
	struct gzip g = { .csr = csr, .chunk.rules = csr->rules };
	struct mw_err inflated = { 0 };
	if (pthread_mutex_init(&g.lock, NULL) || pthread_cond_init(&g.changed, NULL))
		MW_FAIL(err, RESOURCE, "%s: can't make the locks of the loader", in->path);
	inflate_and_parse(&g, in, &inflated);
	mw_err_set(&csr->err, inflated.code, "%s", inflated.msg); /* unless a line's error is there */
	pthread_mutex_destroy(&g.lock);
	pthread_cond_destroy(&g.changed);
	for (int i = 0; i < 2; i++)
		mw_free(g.block[i].text);
	return merge_labels(all, &g.chunk.labels, 1, err);
}

/* ---- the file as a whole */

static int load_rows(
	struct mw_libsvm_csr *csr, struct mw_input *in, struct mw_labels *labels, struct mw_err *err)
{
	int ret = in->gzip ? load_gzip(csr, in, labels, err) : load_plain(csr, in, labels, err);
	if (csr->err.code)
		return mw_err_set(err, csr->err.code, "%s", csr->err.msg);
	if (ret == 0)
		ret = mw_input_unchanged(in, err);
	return ret < 0 ? ret : mw_libsvm_csr_finish(csr, err);
}

static int load(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err)
{
	struct mw_libsvm_rules rules;
	struct mw_libsvm_csr csr;
	struct mw_labels labels = { 0 };
	struct mw_input in;
	int ret;
	make_rules(req, &rules);
	d->kind = MW_X_CSR;
	MW_TRY(mw_libsvm_csr_init(&csr, &rules, d, err));
	ret = mw_input_open(&in, req->path, err);
	if (ret == 0)
		ret = load_rows(&csr, &in, &labels, err);
	if (ret == 0)
		ret = mw_labels_apply(req, &labels, d, err);
	mw_input_close(&in);
	mw_labels_fini(&labels);
	mw_libsvm_csr_fini(&csr);
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
	.cached = true,
};
