/* table.c: see table.h. */
#include "run/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int no_memory(const char *path, struct mw_err *err)
{
	MW_FAIL(err, RESOURCE, "out of memory for %s", path);
}

static int read_all(struct mw_table *t, struct mw_err *err)
{
	FILE *f = fopen(t->path, "r"), *to = NULL;
	size_t size, n;
	char block[8192];
	if (!f)
		MW_FAIL(err, DATA, "%s: can't be opened: %s", t->path, strerror(errno));
	to = open_memstream(&t->text, &size);
	while (to && (n = fread(block, 1, sizeof(block), f)) > 0)
		fwrite(block, 1, n, to);
	bool bad = ferror(f);
	fclose(f);
	if (!to || fclose(to))
		return no_memory(t->path, err);
	if (bad)
		MW_FAIL(err, DATA, "%s: can't be read", t->path);
	if (strlen(t->text) != size)
		MW_FAIL(err, DATA, "%s: a zero byte: this is no CSV", t->path);
	return MW_OK;
}

/* Take the quotation marks off a cell, in place; returns what follows it: ',' or the line's or the text's end. */
static char *cut_cell(char *s, char **cell)
{
	char *to = s;
	bool quoted = false;
	*cell = s;
	for (; *s && (quoted || (*s != ',' && *s != '\n')); s++) {
		if (*s == '"' && quoted && s[1] == '"')
			*to++ = *s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (*s != '\r')
			*to++ = *s;
	}
	char *end = s;
	if (to < end)
		*to = 0;
	return end;
}

static int add_cell(struct mw_table *t, size_t *n, char *cell, struct mw_err *err)
{
	if ((*n & (*n - 1)) == 0) { /* a power of two, or nothing yet: full */
		char **grown = realloc(t->cell, (*n ? 2 * *n : 1) * sizeof(*grown));
		if (!grown)
			return no_memory(t->path, err);
		t->cell = grown;
	}
	t->cell[(*n)++] = cell;
	return MW_OK;
}

static int cut(struct mw_table *t, struct mw_err *err)
{
	char *s = t->text, *cell;
	size_t n = 0, line = 1;
	while (*s) {
		size_t begin = n;
		for (char end = ','; end == ',';) {
			char *after = cut_cell(s, &cell);
			end = *after;
			*after = 0;
			s = after + (end != 0);
			MW_TRY(add_cell(t, &n, cell, err));
		}
		if (line == 1)
			t->columns = n;
		if (n - begin == 1 && !*t->cell[begin] && t->columns > 1) {
			n = begin; /* an empty line */
		} else if (n - begin != t->columns) {
			MW_FAIL(err, DATA, "%s:%zu: %zu cells, but the header has %zu", t->path, line,
				n - begin, t->columns);
		}
		line++;
	}
	if (!t->columns)
		MW_FAIL(err, DATA, "%s is empty: a header is missing", t->path);
	t->rows = n / t->columns - 1;
	return MW_OK;
}

int mw_table_load(const char *path, struct mw_table *t, struct mw_err *err)
{
	*t = (struct mw_table){ .path = mw_strdup(path) };
	if (!t->path)
		return no_memory(path, err);
	MW_TRY(read_all(t, err));
	return cut(t, err);
}

void mw_table_free(struct mw_table *t)
{
	free(t->path);
	free(t->text);
	free(t->cell);
	*t = (struct mw_table){ 0 };
}

int mw_table_column(const struct mw_table *t, const char *name, size_t *column, struct mw_err *err)
{
	char all[600] = "";
	size_t used = 0;
	for (size_t i = 0; i < t->columns; i++) {
		if (!strcmp(t->cell[i], name)) {
			*column = i;
			return MW_OK;
		}
		if (used < sizeof(all))
			used += (size_t)snprintf(
				all + used, sizeof(all) - used, "%s%s", i ? ", " : "", t->cell[i]);
	}
	MW_FAIL(err, USAGE, "%s has no column '%s' (it has: %s)", t->path, name, all);
}

const char *mw_table_cell(const struct mw_table *t, size_t row, size_t column)
{
	return t->cell[(row + 1) * t->columns + column];
}

double mw_table_number(const struct mw_table *t, size_t row, size_t column)
{
	const char *text = mw_table_cell(t, row, column);
	char *end;
	double x = strtod(text, &end);
	return *text && !*end ? x : NAN;
}

/* --- figures ------------------------------------------------------------------------------------------------------- */

/* Mark the rows that --where keeps. */
static int filter(const struct mw_table *t, const char *where, bool *keep, struct mw_err *err)
{
	char *copy = mw_strdup(where ? where : ""), *next = copy;
	int ret = copy ? 0 : no_memory(t->path, err);
	for (size_t r = 0; r < t->rows; r++)
		keep[r] = true;
	for (char *part; ret == 0 && (part = strsep(&next, ",")) && *part;) {
		char *value = strchr(part, '=');
		size_t column = 0;
		if (!value) {
			ret = mw_err_set(err, MW_EUSAGE, "--where %s: write COLUMN=VALUE,...", where);
			break;
		}
		*value++ = 0;
		ret = mw_table_column(t, part, &column, err);
		for (size_t r = 0; ret == 0 && r < t->rows; r++)
			keep[r] = keep[r] && !strcmp(mw_table_cell(t, r, column), value);
	}
	free(copy);
	return ret;
}

struct columns {
	size_t x, y, by, low, high;
};

static int find_columns(
	const struct mw_table *t, const struct mw_table_figure *want, struct columns *c, struct mw_err *err)
{
	MW_TRY(mw_table_column(t, want->x, &c->x, err));
	MW_TRY(mw_table_column(t, want->y, &c->y, err));
	if (want->by)
		MW_TRY(mw_table_column(t, want->by, &c->by, err));
	if (want->low)
		MW_TRY(mw_table_column(t, want->low, &c->low, err));
	return want->high ? mw_table_column(t, want->high, &c->high, err) : MW_OK;
}

static bool same_series(const struct mw_table *t, const struct mw_table_figure *want, const struct columns *c,
	size_t a, size_t b)
{
	return !want->by || !strcmp(mw_table_cell(t, a, c->by), mw_table_cell(t, b, c->by));
}

/* One point for the rows of a series that have this row's x; rows that are done lose their mark. */
static void add_point(const struct mw_table *t, const struct mw_table_figure *want, const struct columns *c,
	bool *keep, size_t row, struct mw_figure *f, size_t series)
{
	double x = mw_table_number(t, row, c->x), sum = 0, low = INFINITY, high = -INFINITY, n = 0;
	for (size_t r = row; r < t->rows; r++) {
		bool take = keep[r] && same_series(t, want, c, row, r) &&
			    (r == row || (want->mean && mw_table_number(t, r, c->x) == x));
		double y = take ? mw_table_number(t, r, c->y) : NAN;
		if (!take)
			continue;
		keep[r] = false;
		if (!isfinite(y))
			continue;
		double l = want->low ? mw_table_number(t, r, c->low) : y;
		double h = want->high ? mw_table_number(t, r, c->high) : y;
		sum += y;
		n++;
		low = isfinite(l) && l < low ? l : low;
		high = isfinite(h) && h > high ? h : high;
	}
	if (n > 0 && isfinite(x))
		mw_figure_add_bar(f, series, x, sum / n, low, high);
}

int mw_table_plot(
	const struct mw_table *t, const struct mw_table_figure *want, struct mw_figure *f, struct mw_err *err)
{
	struct columns c = { 0 };
	MW_TRY(find_columns(t, want, &c, err));
	bool *keep = calloc(t->rows + 1, sizeof(*keep));
	if (!keep)
		return no_memory(t->path, err);
	int ret = filter(t, want->where, keep, err);
	for (size_t row = 0; ret == 0 && row < t->rows; row++) {
		if (!keep[row])
			continue;
		size_t series =
			mw_figure_series(f, want->by ? mw_table_cell(t, row, c.by) : want->y, want->mark);
		for (size_t r = row; r < t->rows; r++)
			if (keep[r] && same_series(t, want, &c, row, r))
				add_point(t, want, &c, keep, r, f, series);
		if (!f->failed && !f->series[series].n) { /* no row of it has both numbers */
			free(f->series[series].name);
			f->n--;
		}
	}
	free(keep);
	return ret;
}
