/* graph_file.c: graphs from files: edge lists, and mixing matrices in Matrix Market form (NIST MatrixMarket
 * format). */
#include "comm/graph_make.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define ROW_SUM_TOLERANCE 1e-6

struct scan {
	const char *path;
	FILE *f;
	char *line, *at;
	size_t room;
	uint64_t number; /* of the line, from 1 */
};

static int scan_open(struct scan *s, const char *path, struct mw_err *err)
{
	*s = (struct scan){ .path = path, .f = fopen(path, "r") };
	if (!s->f)
		MW_FAIL(err, DATA, "%s: can't open: %s", path, strerror(errno));
	return MW_OK;
}

static void scan_close(struct scan *s)
{
	if (s->f)
		fclose(s->f);
	free(s->line);
}

#define FAIL_AT(s, err, ...) return fail_at((s), (err), __VA_ARGS__)
static int __attribute__((format(printf, 3, 4)))
fail_at(const struct scan *s, struct mw_err *err, const char *fmt, ...)
{
	char what[300];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	MW_FAIL(err, DATA, "%s:%" PRIu64 ":%td: %s", s->path, s->number, s->at - s->line + 1, what);
}

static void skip_blanks(struct scan *s)
{
	while (*s->at == ' ' || *s->at == '\t' || *s->at == ',' || *s->at == '\r' || *s->at == '\n')
		s->at++;
}

/* 1: a line, at its first word; 0: end of the file. Blank lines and comments are skipped unless `raw`. */
static int next_line(struct scan *s, bool raw, struct mw_err *err)
{
	for (;;) {
		errno = 0;
		if (getline(&s->line, &s->room, s->f) < 0) {
			if (ferror(s->f))
				MW_FAIL(err, DATA, "%s: can't read: %s", s->path, strerror(errno));
			return 0;
		}
		s->number++;
		s->at = s->line;
		skip_blanks(s);
		if (raw || (*s->at && *s->at != '#' && *s->at != '%'))
			return 1;
	}
}

static bool word_ends(char c)
{
	return !c || isspace((unsigned char)c) || c == ',';
}

static int scan_count(struct scan *s, const char *what, uint64_t *out, struct mw_err *err)
{
	char *end;
	skip_blanks(s);
	if (!isdigit((unsigned char)*s->at))
		FAIL_AT(s, err, "expected %s (a whole number)%s", what, *s->at ? "" : ", but the line ends");
	errno = 0;
	*out = strtoull(s->at, &end, 10);
	if (errno || !word_ends(*end))
		FAIL_AT(s, err, "%s must be a whole number", what);
	s->at = end;
	return MW_OK;
}

static int scan_weight(struct scan *s, double *out, struct mw_err *err)
{
	char *end;
	skip_blanks(s);
	*out = strtod(s->at, &end);
	if (end == s->at || !word_ends(*end) || !isfinite(*out))
		FAIL_AT(s, err, "expected a weight (a finite number)%s", *s->at ? "" : ", but the line ends");
	if (*out < 0)
		FAIL_AT(s, err, "weight %g is negative: a mixing matrix has none below 0", *out);
	s->at = end;
	return MW_OK;
}

static int scan_line_end(struct scan *s, struct mw_err *err)
{
	skip_blanks(s);
	if (*s->at)
		FAIL_AT(s, err, "unexpected text after the last number of the line");
	return MW_OK;
}

static int read_edge(struct scan *s, struct mw_edge_list *l, uint64_t *nodes, struct mw_err *err)
{
	uint64_t end[2];
	for (int k = 0; k < 2; k++) {
		MW_TRY(scan_count(
			s, k ? "the edge's second worker" : "the edge's first worker", &end[k], err));
		if (end[k] >= UINT32_MAX)
			FAIL_AT(s, err, "worker %" PRIu64 " is beyond any number of workers", end[k]);
		if (end[k] >= *nodes)
			*nodes = end[k] + 1;
	}
	if (end[0] == end[1])
		FAIL_AT(s, err, "an edge from worker %" PRIu64 " to itself", end[0]);
	MW_TRY(scan_line_end(s, err));
	return mw_make_edge(l, (uint32_t)end[0], (uint32_t)end[1], err);
}

int mw_make_edges_file(struct mw_graph_make *m, const char *path, struct mw_err *err)
{
	struct scan s;
	struct mw_edge_list l = { 0 };
	uint64_t nodes = 1;
	int rc = scan_open(&s, path, err);
	while (rc == MW_OK && (rc = next_line(&s, false, err)) > 0)
		rc = read_edge(&s, &l, &nodes, err);
	if (rc == MW_OK && nodes != m->n)
		rc = mw_err_set(err, MW_EUSAGE,
			"graph edges:%s has workers 0..%" PRIu64 ", but there are %" PRIu32
			": use --workers %" PRIu64,
			path, nodes - 1, m->n, nodes);
	if (rc == MW_OK) {
		mw_make_edges_unique(&l);
		rc = mw_make_metropolis(m, &l, err);
	}
	scan_close(&s);
	free(l.edge);
	return rc;
}

struct market {
	bool array, symmetric;
	uint64_t rows, entries; /* entries: coordinate only */
};

/* "%%MatrixMarket matrix coordinate|array real|double|integer general|symmetric" */
static int read_banner(struct scan *s, struct market *h, struct mw_err *err)
{
	static const char *const allowed[5][4] = { { "%%MatrixMarket" }, { "matrix" },
		{ "coordinate", "array" }, { "real", "double", "integer" }, { "general", "symmetric" } };
	int rc = next_line(s, true, err);
	if (rc < 0)
		return rc;
	if (!rc)
		MW_FAIL(err, DATA, "%s: the file is empty", s->path);
	for (int w = 0; w < 5; w++) {
		int found = -1;
		skip_blanks(s);
		size_t len = strcspn(s->at, " \t\r\n");
		for (int c = 0; c < 4 && allowed[w][c]; c++)
			if (strlen(allowed[w][c]) == len && !strncasecmp(allowed[w][c], s->at, len))
				found = c;
		if (found < 0)
			FAIL_AT(s, err, "expected \"%s\"%s%s%s%s", allowed[w][0],
				allowed[w][1] ? " or \"" : "", allowed[w][1] ? allowed[w][1] : "",
				allowed[w][1] ? "\"" : "",
				w ? ""
				  : ": the first line of a Matrix Market file is \"%%MatrixMarket matrix "
				    "...\"");
		h->array = w == 2 ? found == 1 : h->array;
		h->symmetric = w == 4 ? found == 1 : h->symmetric;
		s->at += len;
	}
	return MW_OK;
}

static int read_size(struct scan *s, struct market *h, uint32_t n, struct mw_err *err)
{
	uint64_t columns;
	int rc = next_line(s, false, err);
	if (rc < 0)
		return rc;
	if (!rc)
		MW_FAIL(err, DATA, "%s: the line with the matrix's size is missing", s->path);
	MW_TRY(scan_count(s, "the number of rows", &h->rows, err));
	MW_TRY(scan_count(s, "the number of columns", &columns, err));
	if (!h->array)
		MW_TRY(scan_count(s, "the number of entries", &h->entries, err));
	MW_TRY(scan_line_end(s, err));
	if (h->rows != columns)
		FAIL_AT(s, err, "the matrix has %" PRIu64 " rows and %" PRIu64 " columns: it must be square",
			h->rows, columns);
	if (h->rows != n)
		MW_FAIL(err, USAGE,
			"graph matrix:%s has %" PRIu64 " rows, but there are %" PRIu32
			" workers: use --workers %" PRIu64,
			s->path, h->rows, n, h->rows);
	return MW_OK;
}

static int add_entry(struct mw_graph_make *m, const struct market *h, uint64_t i, uint64_t j, double weight,
	struct mw_err *err)
{
	MW_TRY(mw_make_link(m, 0, (uint32_t)i, (uint32_t)j, weight, err));
	if (h->symmetric && i != j)
		MW_TRY(mw_make_link(m, 0, (uint32_t)j, (uint32_t)i, weight, err));
	return MW_OK;
}

static int expect_line(struct scan *s, uint64_t have, uint64_t want, struct mw_err *err)
{
	int rc = next_line(s, false, err);
	if (!rc)
		MW_FAIL(err, DATA, "%s:%" PRIu64 ": the file ends after %" PRIu64 " of %" PRIu64 " entries",
			s->path, s->number, have, want);
	return rc < 0 ? rc : MW_OK;
}

static int read_coordinates(
	struct scan *s, struct mw_graph_make *m, const struct market *h, struct mw_err *err)
{
	for (uint64_t k = 0; k < h->entries; k++) {
		uint64_t at[2];
		double weight;
		MW_TRY(expect_line(s, k, h->entries, err));
		for (int d = 0; d < 2; d++) {
			MW_TRY(scan_count(s, d ? "a column" : "a row", &at[d], err));
			if (!at[d] || at[d] > h->rows)
				FAIL_AT(s, err, "%s %" PRIu64 " is not in 1..%" PRIu64, d ? "column" : "row",
					at[d], h->rows);
		}
		MW_TRY(scan_weight(s, &weight, err));
		MW_TRY(scan_line_end(s, err));
		MW_TRY(add_entry(m, h, at[0] - 1, at[1] - 1, weight, err));
	}
	return MW_OK;
}

/* Column after column; symmetric files hold the lower triangle only. */
static int read_array(struct scan *s, struct mw_graph_make *m, const struct market *h, struct mw_err *err)
{
	uint64_t n = h->rows, have = 0, want = h->symmetric ? n * (n + 1) / 2 : n * n;
	for (uint64_t j = 0; j < n; j++)
		for (uint64_t i = h->symmetric ? j : 0; i < n; i++, have++) {
			double weight;
			if (have)
				skip_blanks(s);
			if (!have || !*s->at)
				MW_TRY(expect_line(s, have, want, err));
			MW_TRY(scan_weight(s, &weight, err));
			MW_TRY(add_entry(m, h, i, j, weight, err));
		}
	return scan_line_end(s, err);
}

static int compare_places(const void *pa, const void *pb)
{
	const struct mw_graph_link *a = pa, *b = pb;
	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->to == b->to ? 0 : a->to < b->to ? -1 : 1;
}

static int check_twice(struct mw_graph_make *m, const char *path, struct mw_err *err)
{
	qsort(m->link, m->n_links, sizeof(*m->link), compare_places);
	for (uint64_t k = 1; k < m->n_links; k++)
		if (!compare_places(&m->link[k - 1], &m->link[k]))
			MW_FAIL(err, DATA, "%s: entry (%" PRIu32 ", %" PRIu32 ") is given twice", path,
				m->link[k].row + 1, m->link[k].to + 1);
	return MW_OK;
}

/*
 * Rows must sum to 1 within the tolerance; the rest goes to the diagonal, which keeps a symmetric matrix
 * symmetric, so that exchanges conserve the average to rounding.
 */
static int fix_row_sums(struct mw_graph_make *m, const char *path, double *sum, struct mw_err *err)
{
	uint64_t links = m->n_links;
	uint32_t worst = 0;
	for (uint64_t k = 0; k < links; k++)
		sum[m->link[k].row] += m->link[k].weight;
	for (uint32_t i = 0; i < m->n; i++)
		if (fabs(sum[i] - 1) > fabs(sum[worst] - 1))
			worst = i;
	if (fabs(sum[worst] - 1) > ROW_SUM_TOLERANCE)
		MW_FAIL(err, DATA,
			"%s: row %" PRIu32
			" (counted from 1) sums to %.9g: every row of a mixing matrix sums to 1 within %g",
			path, worst + 1, sum[worst], ROW_SUM_TOLERANCE);
	for (uint64_t k = 0; k < links; k++) {
		struct mw_graph_link *l = &m->link[k];
		if (l->row == l->to && l->weight + (1 - sum[l->row]) >= 0) {
			l->weight += 1 - sum[l->row];
			sum[l->row] = 1;
		}
	}
	for (uint64_t k = 0; k < links; k++) /* no diagonal to take it */
		m->link[k].weight /= sum[m->link[k].row];
	return MW_OK;
}

static int read_market(struct scan *s, struct mw_graph_make *m, struct mw_err *err)
{
	struct market h = { 0 };
	MW_TRY(read_banner(s, &h, err));
	MW_TRY(read_size(s, &h, m->n, err));
	MW_TRY(h.array ? read_array(s, m, &h, err) : read_coordinates(s, m, &h, err));
	int rc = next_line(s, false, err);
	if (rc > 0)
		FAIL_AT(s, err, "more entries than the size line says");
	return rc < 0 ? rc : MW_OK;
}

int mw_make_matrix_file(struct mw_graph_make *m, const char *path, struct mw_err *err)
{
	struct scan s;
	double *sum = mw_alloc_array(m->n, sizeof(*sum), "row sums", err);
	int rc = sum ? scan_open(&s, path, err) : MW_ERESOURCE;
	if (rc == MW_OK) {
		rc = read_market(&s, m, err);
		scan_close(&s);
	}
	if (rc == MW_OK)
		rc = check_twice(m, path, err);
	if (rc == MW_OK)
		rc = fix_row_sums(m, path, sum, err);
	mw_free(sum);
	return rc;
}
