/* table.h: CSV files as columns of text, for figures. */
#ifndef MW_RUN_TABLE_H
#define MW_RUN_TABLE_H

#include <stddef.h>

#include "base/err.h"
#include "run/figure.h"

struct mw_table {
	char *path, *text; /* text: the whole file, cut into cells */
	char **cell;       /* rows x columns; the header is row 0 */
	size_t rows, columns;
};

/*
 * Read a CSV file: "..." keeps commas and line ends, "" in it is a quotation mark. DATA with FILE:LINE: no header, a row of
 * another number of cells. On error too mw_table_free works.
 */
int mw_table_load(const char *path, struct mw_table *t, struct mw_err *err);
void mw_table_free(struct mw_table *t);
/* Number of the column; USAGE, which names all columns, if there is none. */
int mw_table_column(const struct mw_table *t, const char *name, size_t *column, struct mw_err *err);
/* A cell of data row 0, 1, ...; "" where it is empty. */
const char *mw_table_cell(const struct mw_table *t, size_t row, size_t column);
/* The same as a number; NAN if it is none. */
double mw_table_number(const struct mw_table *t, size_t row, size_t column);

struct mw_table_figure {
	const char *x, *y;      /* columns */
	const char *by;         /* a series for each value of this column; NULL: one series */
	const char *where;      /* "column=value,column=value": only these rows; NULL: all */
	const char *low, *high; /* columns of the ends of error bars; NULL: none */
	bool mean; /* rows of a series with equal x become their mean, with a bar from least to most */
	enum mw_mark mark;
};

/* Add the series that are asked for to a figure, in the order in which they come. USAGE: a column that isn't there. */
int mw_table_plot(const struct mw_table *t, const struct mw_table_figure *want, struct mw_figure *f,
	struct mw_err *err);

#endif
