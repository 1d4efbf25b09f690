/* libsvm_parse.c: lines of LIBSVM text to rows of CSR; see libsvm.h. */
#include "data/libsvm.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/number.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Line and column, from 1, of a place in the chunk that lies in the line being parsed. */
static void find_place(const struct mw_libsvm_chunk *c, const char *at, uint64_t *line, uint64_t *column)
{
	const char *start = at;
	while (start > c->begin && start[-1] != '\n')
		start--;
	*line = c->lines + 1;
	*column = (uint64_t)(at - start) + 1;
}

/* Record an error at a place; returns NULL for the caller to return. */
static const char *fail(struct mw_libsvm_chunk *c, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static const char *fail(struct mw_libsvm_chunk *c, const char *at, const char *fmt, ...)
{
	char what[600];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	mw_err_set(&c->err, MW_EDATA, "%s", what);
	find_place(c, at, &c->err_line, &c->err_column);
	return NULL;
}

static bool is_blank(char ch)
{
	return ch == ' ' || ch == '\t' || ch == '\r';
}

static const char *skip_blanks(const char *p)
{
	while (is_blank(*p))
		p++;
	return p;
}

static bool is_end(const struct mw_libsvm_chunk *c, const char *p)
{
	return *p == '\n' || p >= c->end;
}

static const char *next_line(const struct mw_libsvm_chunk *c, const char *p)
{
	const char *nl = memchr(p, '\n', (size_t)(c->end - p));
	return nl ? nl + 1 : c->end;
}

/* The token at p for a message: printable, not too long. */
static const char *quote(const struct mw_libsvm_chunk *c, const char *p, char out[64])
{
	int n = 0;
	if (is_end(c, p))
		return strcpy(out, "the end of the line");
	if (is_blank(*p))
		return strcpy(out, "a blank");
	out[n++] = '\'';
	for (; n < 40 && !is_blank(*p) && !is_end(c, p); p++) {
		unsigned char ch = (unsigned char)*p;
		n += ch >= ' ' && ch < 127 ? sprintf(out + n, "%c", ch) : sprintf(out + n, "\\x%02x", ch);
	}
	strcpy(out + n, is_blank(*p) || is_end(c, p) ? "'" : "...'");
	return out;
}

static const char *fail_number(
	struct mw_libsvm_chunk *c, const char *at, enum mw_number_result why, const char *what)
{
	char text[64];
	quote(c, at, text);
	switch (why) {
	case MW_NUMBER_NOT_FINITE:
		return fail(c, at, "the %s is %s; remove the row or put a finite number there", what, text);
	case MW_NUMBER_TOO_LARGE:
		return fail(
			c, at, "the %s %s is beyond the range of float (3.4e38); scale the data", what, text);
	default: return fail(c, at, "expected a number as the %s, found %s", what, text);
	}
}

/* What stands behind a label or value is neither a blank nor the end of the line. */
static const char *fail_after(struct mw_libsvm_chunk *c, const char *at)
{
	char text[64];
	return fail(c, at, "unexpected %s right after a number; pairs INDEX:VALUE are separated by blanks",
		quote(c, at, text));
}

static const char *check_label(struct mw_libsvm_chunk *c, const char *at, float label)
{
	const struct mw_data_request *req = c->rules->req;
	if (c->rows && label == c->y[c->rows - 1])
		return at;
	if (req->like && req->like->classes && mw_labels_class(req->like, (double)label) < 0)
		return fail(c, at,
			"the label %.9g doesn't occur in the training set (%.200s); remove the row or train "
			"with it",
			(double)label, req->like->name);
	if (req->like || req->label_kind == MW_LABEL_REAL)
		return at;
	if (req->label_kind == MW_LABEL_CLASS && !mw_label_is_integer(label))
		return fail(c, at,
			"the label %.9g can't name a class, which takes an integer below 2^24; use "
			"--label-kind real for "
			"regression",
			(double)label);
	return mw_labels_add(&c->labels, label, &c->err) < 0 ? NULL : at;
}

static const char *parse_label(struct mw_libsvm_chunk *c, const char *p)
{
	const char *at = p;
	float label;
	enum mw_number_result why = mw_number_float(&p, &label);
	if (why != MW_NUMBER_OK)
		return fail_number(c, at, why, "label");
	if (*p == ':')
		return fail(
			c, at, "the row begins with INDEX:VALUE; put its label in front, as in '+1 3:0.5'");
	if (*p == ',')
		return fail(c, p, "the row has several labels; only one label a row is supported");
	if (!is_blank(*p) && !is_end(c, p) && *p != '#')
		return fail_after(c, p);
	if (!check_label(c, at, label))
		return NULL;
	c->y[c->rows] = label;
	return p;
}

/* At p there should be INDEX:VALUE, and no digit is there. */
static const char *fail_index(struct mw_libsvm_chunk *c, const char *p)
{
	char text[64];
	if (!strncmp(p, "qid:", 4))
		return fail(c, p,
			"'qid:' marks a ranking set, and ranking isn't supported; to use the rows alone "
			"remove it: "
			"sed 's/ qid:[^ ]*//'");
	if (*p == '-' && p[1] >= '0' && p[1] <= '9')
		return fail(
			c, p, "the index in %s is negative; indices count from 0 or 1", quote(c, p, text));
	return fail(c, p, "expected INDEX:VALUE, found %s", quote(c, p, text));
}

/*
 * The index behind p, whatever stands there: also several blanks, long numbers, comments and the end of the
 * row. Returns where the value begins, or NULL at an error, or the next line with *more = false.
 */
static const char *parse_index(struct mw_libsvm_chunk *c, const char *p, uint64_t *index, bool *more)
{
	const char *at;
	uint64_t v = 0;
	if (!is_blank(*p) && !is_end(c, p) && *p != '#')
		return fail_after(c, p);
	at = p = skip_blanks(p);
	*more = !is_end(c, p) && *p != '#';
	if (!*more)
		return next_line(c, p);
	for (; *p >= '0' && *p <= '9'; p++)
		if (v <= MW_LIBSVM_INDEX_MAX)
			v = v * 10 + (uint64_t)(*p - '0');
	if (p == at || *p != ':')
		return fail_index(c, at);
	if (v > MW_LIBSVM_INDEX_MAX)
		return fail(c, at,
			"the index is larger than %llu; map the features to smaller numbers (hash them)",
			MW_LIBSVM_INDEX_MAX);
	*index = v;
	return p + 1;
}

void mw_libsvm_too_wide(const struct mw_libsvm_rules *rules, uint64_t index, bool from_zero, char what[600])
{
	const struct mw_data_request *req = rules->req;
	unsigned long long i = index, need = index + from_zero;
	if (req->like)
		snprintf(what, 600,
			"index %llu is beyond the %u features of the training set (%.200s); train with "
			"--features "
			"%llu or more",
			i, rules->width, req->like->name, need);
	else
		snprintf(what, 600,
			"index %llu%s is beyond --features %u; give --features %llu or more, or leave it out",
			i, from_zero ? " (counted from 0)" : "", rules->width, need);
}

/* Largest index that the rules allow with this shift. */
static uint64_t index_limit(const struct mw_libsvm_chunk *c)
{
	return c->rules->width ? (uint64_t)c->rules->width - 1 + c->shift : MW_LIBSVM_INDEX_MAX;
}

/* An index outside shift..limit: an error, unless it is the first 0 of a file whose base isn't known. */
static const char *odd_index(struct mw_libsvm_chunk *c, const char *at, uint64_t index, uint64_t stored)
{
	char what[600];
	if (index >= c->shift) {
		mw_libsvm_too_wide(c->rules, index, !c->shift, what);
		return fail(c, at, "%s", what);
	}
	if (c->rules->base == MW_BASE_AUTO) {
		c->shift = 0;
		for (uint64_t i = 0; i < stored; i++)
			c->col[i]++;
		return at;
	}
	if (c->rules->req->like && c->rules->req->index_base == MW_BASE_AUTO)
		return fail(c, at,
			"index 0, but the training set (%.200s) counts from 1, as no index 0 occurs in it; "
			"give "
			"--index-base 0 if both count from 0",
			c->rules->req->like->name);
	return fail(c, at,
		"index 0 in a file that counts from 1; give --index-base 0 (or auto) if it counts from 0");
}

static const char *fail_repeat(struct mw_libsvm_chunk *c, const char *at, uint64_t index)
{
	return fail(
		c, at, "index %llu stands twice in this row; remove one of them", (unsigned long long)index);
}

static void sift_down(uint32_t *col, float *val, uint64_t i, uint64_t n)
{
	uint32_t c = col[i];
	float v = val[i];
	for (uint64_t k; (k = 2 * i + 1) < n; i = k) {
		if (k + 1 < n && col[k + 1] > col[k])
			k++;
		if (col[k] <= c)
			break;
		col[i] = col[k];
		val[i] = val[k];
	}
	col[i] = c;
	val[i] = v;
}

/* Heapsort: in place, and no input makes it slow. */
static void sort_row(uint32_t *col, float *val, uint64_t n)
{
	for (uint64_t i = n / 2; i--;)
		sift_down(col, val, i, n);
	for (uint64_t i = n; i-- > 1;) {
		uint32_t c = col[0];
		float v = val[0];
		col[0] = col[i];
		val[0] = val[i];
		col[i] = c;
		val[i] = v;
		sift_down(col, val, 0, i);
	}
}

/* The second place in the row at p where this index stands. */
static const char *find_repeat(struct mw_libsvm_chunk *c, const char *p, uint64_t index)
{
	int seen = 0;
	bool more = true;
	while (!is_blank(*p))
		p++;
	for (;;) {
		const char *at = skip_blanks(p);
		uint64_t i = 0;
		p = parse_index(c, p, &i, &more);
		if (!p || !more || (i == index && ++seen == 2))
			return at;
		while (!is_blank(*p) && !is_end(c, p) && *p != '#')
			p++;
	}
}

/* Sort a row that came unsorted, and refuse an index that is there twice. */
static bool order_row(struct mw_libsvm_chunk *c, const char *start, uint64_t n)
{
	uint32_t *col = c->col + c->nnz;
	sort_row(col, c->val + c->nnz, n);
	for (uint64_t i = 1; i < n; i++)
		if (col[i] == col[i - 1]) {
			unsigned long long index = (unsigned long long)col[i] + c->shift;
			fail(c, find_repeat(c, start, index),
				"index %llu stands twice in this row; remove one of them", index);
			return false;
		}
	return true;
}

/* Count the row that was written behind c->nnz; `last` is the place of its last index. */
static bool end_row(struct mw_libsvm_chunk *c, const char *start, const char *last, uint64_t n, bool sorted)
{
	uint64_t top;
	if (!sorted && !order_row(c, start, n))
		return false;
	c->row_ptr[c->rows++] = c->nnz_before + c->nnz;
	c->nnz += n;
	if (!n)
		return true;
	top = (uint64_t)c->col[c->nnz - 1] + c->shift;
	if (c->nnz == n || top > c->index_max) {
		c->index_max = top;
		if (c->rules->width)
			find_place(c, last, &c->max_line, &c->max_column);
	}
	return true;
}

/* One row, from its label on. Returns the next line, or NULL at an error. */
static const char *parse_row(struct mw_libsvm_chunk *c, const char *p)
{
	const char *start = p, *at = p;
	uint64_t limit = index_limit(c), previous = 0, n = 0;
	uint32_t *col = c->col + c->nnz, shift = c->shift;
	float *val = c->val + c->nnz;
	bool sorted = true, more = true;
	p = parse_label(c, p);
	while (p) {
		uint64_t index = 0, x = mw_load8(p + 1), other = mw_nondigits(x);
		unsigned digits = other ? (unsigned)__builtin_ctzll(other) >> 3 : 0;
		enum mw_number_result why;
		if (LIKELY(*p == ' ' && digits && p[digits + 1] == ':')) {
			at = p + 1;
			index = mw_value_of(x, digits);
			p += digits + 2;
		} else {
			const char *next = parse_index(c, p, &index, &more);
			if (!next || !more)
				return next && end_row(c, start, at, n, sorted) ? next : NULL;
			at = skip_blanks(p);
			p = next;
		}
		if (UNLIKELY(index < shift || index > limit)) {
			if (!odd_index(c, at, index, c->nnz + n))
				return NULL;
			limit = index_limit(c);
			shift = c->shift;
		}
		if (UNLIKELY(n && index <= previous)) {
			if (index == previous)
				return fail_repeat(c, at, index);
			sorted = false;
		}
		previous = index;
		col[n] = (uint32_t)index - shift;
		why = mw_number_float(&p, &val[n++]);
		if (UNLIKELY(why != MW_NUMBER_OK))
			return fail_number(c, p, why, "value");
	}
	return NULL;
}

void mw_libsvm_parse(struct mw_libsvm_chunk *c)
{
	const char *p = c->begin;
	c->rows = c->nnz = c->lines = 0;
	c->shift = c->rules->base != MW_BASE_ZERO;
	for (; p && p < c->end; c->lines += p != NULL) {
		p = skip_blanks(p);
		if (is_end(c, p) || *p == '#')
			p = next_line(c, p);
		else
			p = parse_row(c, p);
	}
}
