/*
 * file.c: file:PATH: measured delays from a CSV file, replayed cyclically.
 *
 * With a header line (the first line is one unless it starts with a number) the columns "delay" and, if there
 * is one, "worker" are used and others ignored; without it a line is "delay" or "worker,delay". '#' starts a
 * comment line.
 */
#include "sched/sched_make.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct delays {
	double *delay;   /* sorted by worker, in order of the file */
	uint64_t *first; /* worker w has delay[first[w] .. first[w+1]) */
	uint32_t workers;
	double min, max;
};

struct record {
	uint32_t worker;
	uint64_t place;
	double delay;
};

struct reader {
	const char *path;
	FILE *f;
	char *line;
	size_t room;
	uint64_t number;
	int delay_column, worker_column; /* from 0; worker -1: none */
	bool header;                     /* there was a header line: columns without use are fine */
	struct record *record;
	uint64_t n, capacity;
};

static int fail_at(const struct reader *r, const char *at, const char *what, struct mw_err *err)
{
	MW_FAIL(err, DATA, "%s:%" PRIu64 ":%td: %s", r->path, r->number, at - r->line + 1, what);
}

/* The start of a column (blanks skipped), NULL if the line has fewer. */
static char *column(char *line, int c)
{
	for (; c > 0; c--) {
		line = strchr(line, ',');
		if (!line)
			return NULL;
		line++;
	}
	return line + strspn(line, " \t");
}

static bool field_ends(const char *c)
{
	c += strspn(c, " \t\r\n");
	return !*c || *c == ',';
}

static bool is_named(const char *field, const char *name)
{
	size_t len = strlen(name);
	return !strncmp(field, name, len) && field_ends(field + len);
}

/* Where the columns are, from the first line with text. */
static int find_columns(struct reader *r, struct mw_err *err)
{
	char *first = column(r->line, 0), *second = column(r->line, 1), *field;
	r->worker_column = second ? 0 : -1;
	r->delay_column = second ? 1 : 0;
	r->header = !strchr("0123456789.+-", *first);
	if (!r->header)
		return MW_OK;
	r->worker_column = r->delay_column = -1;
	for (int c = 0; (field = column(r->line, c)); c++) {
		if (is_named(field, "delay"))
			r->delay_column = c;
		if (is_named(field, "worker"))
			r->worker_column = c;
	}
	if (r->delay_column < 0)
		return fail_at(
			r, first, "expected a number, or a header line with a column named \"delay\"", err);
	return MW_OK;
}

static int grow(struct reader *r, struct mw_err *err)
{
	uint64_t capacity = r->capacity ? 2 * r->capacity : 1024;
	struct record *record = realloc(r->record, capacity * sizeof(*record));
	if (!record)
		MW_FAIL(err, RESOURCE, "out of memory: %s has more than %" PRIu64 " delays", r->path, r->n);
	r->record = record;
	r->capacity = capacity;
	return MW_OK;
}

static int read_record(struct reader *r, struct mw_err *err)
{
	char *at = column(r->line, r->delay_column), *end;
	struct record rec = { .place = r->n };
	if (!at)
		return fail_at(r, r->line + strcspn(r->line, "\r\n"),
			"the line ends before the column with the delay", err);
	rec.delay = strtod(at, &end);
	if (end == at || !field_ends(end) || !isfinite(rec.delay) || rec.delay < 0)
		return fail_at(r, at, "a delay must be a number of at least 0", err);
	if (r->worker_column >= 0) {
		at = column(r->line, r->worker_column);
		errno = 0;
		unsigned long w = at && isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : UINT32_MAX;
		if (errno || w >= UINT32_MAX || !field_ends(end))
			return fail_at(r, at ? at : r->line, "a worker must be a whole number from 0", err);
		rec.worker = (uint32_t)w;
	}
	if (!r->header && (at = column(r->line, r->delay_column + 1)))
		return fail_at(
			r, at, "unexpected further column (a header line would say which ones to use)", err);
	if (r->n == r->capacity)
		MW_TRY(grow(r, err));
	r->record[r->n++] = rec;
	return MW_OK;
}

static int read_file(struct reader *r, struct mw_err *err)
{
	bool columns_known = false;
	r->f = fopen(r->path, "r");
	if (!r->f)
		MW_FAIL(err, DATA, "%s: can't open: %s", r->path, strerror(errno));
	while (getline(&r->line, &r->room, r->f) >= 0) {
		r->number++;
		char first = r->line[strspn(r->line, " \t\r\n")];
		if (!first || first == '#')
			continue;
		if (!columns_known) {
			MW_TRY(find_columns(r, err));
			columns_known = true;
			if (r->header)
				continue;
		}
		MW_TRY(read_record(r, err));
	}
	if (ferror(r->f))
		MW_FAIL(err, DATA, "%s: can't read: %s", r->path, strerror(errno));
	if (!r->n)
		MW_FAIL(err, DATA, "%s: no delays in the file", r->path);
	return MW_OK;
}

static int compare(const void *pa, const void *pb)
{
	const struct record *a = pa, *b = pb;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

static int fill(struct delays *d, struct reader *r, struct mw_err *err)
{
	qsort(r->record, r->n, sizeof(*r->record), compare);
	d->workers = r->record[r->n - 1].worker + 1;
	for (uint64_t k = 0; k < r->n; k++) {
		uint32_t before = k ? r->record[k - 1].worker : UINT32_MAX, w = r->record[k].worker;
		if (w != before && w != before + 1)
			MW_FAIL(err, DATA, "%s: worker %" PRIu32 " has no delays, but worker %" PRIu32 " has",
				r->path, before + 1, w);
	}
	d->delay = mw_alloc_array(r->n, sizeof(*d->delay), "delays", err);
	d->first = mw_alloc_array((size_t)d->workers + 1, sizeof(*d->first), "delays", err);
	if (!d->delay || !d->first)
		return MW_ERESOURCE;
	d->min = d->max = r->record[0].delay;
	for (uint64_t k = 0; k < r->n; k++) {
		double v = d->delay[k] = r->record[k].delay;
		d->first[r->record[k].worker + 1] = k + 1;
		d->min = v < d->min ? v : d->min;
		d->max = v > d->max ? v : d->max;
	}
	return MW_OK;
}

static int parse(void *priv, const char *args, struct mw_err *err)
{
	struct reader r = { .path = args };
	int rc = read_file(&r, err);
	if (rc == MW_OK)
		rc = fill(priv, &r, err);
	if (r.f)
		fclose(r.f);
	free(r.line);
	free(r.record);
	return rc;
}

static void fini(void *priv)
{
	struct delays *d = priv;
	mw_free(d->delay);
	mw_free(d->first);
}

static double value(const void *priv, uint64_t seed, uint32_t worker, uint64_t step)
{
	const struct delays *d = priv;
	uint64_t first = d->first[worker % d->workers], n = d->first[worker % d->workers + 1] - first;
	(void)seed;
	return d->delay[first + step % n];
}

static double min(const void *priv)
{
	return ((const struct delays *)priv)->min;
}

static double max(const void *priv)
{
	return ((const struct delays *)priv)->max;
}

const struct mw_sched_ops mw_sched_file = {
	.name = "file",
	.summary = "measured delays from a CSV file, replayed cyclically",
	.syntax = "file:PATH",
	.priv_size = sizeof(struct delays),
	.parse = parse,
	.fini = fini,
	.value = value,
	.min = min,
	.max = max,
};
