/* unit_data_libsvm.c: LIBSVM text: exact CSR values, labels, index bases, and every error with its exact place. */
#include "data_util.h"

#define REQ(...) (&(struct mw_data_request){ __VA_ARGS__ })
#define AUTO     .index_base = MW_BASE_AUTO

/* Text, and the CSR it stands for. All variants of one set: rows {1:0.5 3:2}, {}, {2:-1e-3}; labels +1 -1 +1. */
static const struct {
	const char *name, *text;
} same[] = {
	{ "plain", "+1 1:0.5 3:2\n-1\n+1 2:-1e-3\n" },
	{ "no last newline", "+1 1:0.5 3:2\n-1\n+1 2:-1e-3" },
	{ "CRLF", "+1 1:0.5 3:2\r\n-1\r\n+1 2:-1e-3\r\n" },
	{ "tabs, several blanks", "+1\t1:0.5  3:2 \n -1 \t\n+1   2:-1e-3\t\t\n" },
	{ "trailing blanks, no newline", "+1 1:0.5 3:2 \n-1 \n+1 2:-1e-3  " },
	{ "blank lines", "\n\n+1 1:0.5 3:2\n \n-1\n\t\r\n+1 2:-1e-3\n\n\n" },
	{ "comments", "# x:1 y:2\n+1 1:0.5 3:2 # a:b 4:4\n-1 #\n+1 2:-1e-3#c 1:1\n#\n  # end" },
	{ "unsorted", "+1 3:2 1:0.5\n-1\n+1 2:-1e-3\n" },
	{ "other spellings", "1.0 001:.5 3:2.\n-1e0\n+1 2:-0.00100\n" },
	{ "byte order mark", "\xef\xbb\xbf+1 1:0.5 3:2\n-1\n+1 2:-1e-3\n" },
	{ "zero-based is not needed", "1 0000000000001:5e-1 3:200e-2\n-1\n1 2:-0.1e-2\n" },
};

static void check_same(const struct mw_dataset *d)
{
	static const uint64_t row_ptr[] = { 0, 2, 2, 3 };
	static const uint32_t col[] = { 0, 2, 1 };
	static const float val[] = { 0.5f, 2, -1e-3f }, y[] = { 1, -1, 1 };
	assert_string_equal(d->format, "libsvm");
	assert_int_equal(d->kind, MW_X_CSR);
	assert_int_equal(d->rows, 3);
	assert_int_equal(d->nnz, 3);
	assert_int_equal(d->features, 3);
	assert_int_equal(d->index_base, 1);
	assert_memory_equal(d->row_ptr, row_ptr, sizeof(row_ptr));
	assert_memory_equal(d->col, col, sizeof(col));
	assert_floats(d->val, val, 3);
	assert_floats(d->y, y, 3);
	assert_int_equal(d->classes, 2);
	assert_true(d->label_value[0] == -1 && d->label_value[1] == 1);
	assert_true(d->label_count[0] == 1 && d->label_count[1] == 2);
	for (int i = 0; i < 16; i++) /* readable, and harmless as an index */
		assert_true(d->col[3 + i] == 0 && d->val[3 + i] == 0);
}

static void spellings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		for (int threads = 1; threads <= 4; threads++)
			for (int gz = 0; gz < 2; gz++) {
				size_t n = strlen(same[i].text);
				/* .gz is told by content: the names are the wrong way round */
				const char *path = gz ? write_gzip("same.svm", same[i].text, n)
						      : write_bytes("same.svm.gz", same[i].text, n);
				struct mw_dataset *d = load_ok(REQ(.path = path, AUTO, .threads = threads));
				check_same(d);
				assert_int_equal(d->file_bytes, n);
				mw_dataset_free(d);
			}
}

static const struct {
	const char *text, *message;
} errors[] = {
	{ "1 1:1\nx 1:1\n", ":2:1: expected a number as the label, found 'x'" },
	{ "1 1:1\n 2 1:1 x\n", ":2:8: expected INDEX:VALUE, found 'x'" },
	{ "1 1:1\n\n# c\n-1 1:2 5\n", ":4:8: expected INDEX:VALUE, found '5'" },
	{ "1 1:1\n-1 1:\n", ":2:6: expected a number as the value, found the end of the line" },
	{ "1 1:1\n-1 1: 2\n", ":2:6: expected a number as the value, found a blank" },
	{ "1 1:1\n-1 :2\n", ":2:4: expected INDEX:VALUE, found ':2'" },
	{ "1 1:1\n-1 1 :2\n", ":2:4: expected INDEX:VALUE, found '1'" },
	{ "1 1:1 2:nan\n", ":1:9: the value is 'nan'; remove the row or put a finite number there" },
	{ "1 1:1 2:-Inf\n", ":1:9: the value is '-Inf'; remove the row or put a finite number there" },
	{ "nan 1:1\n", ":1:1: the label is 'nan'; remove the row or put a finite number there" },
	{ "1 1:1e400\n", ":1:5: the value '1e400' is beyond the range of float (3.4e38); scale the data" },
	{ "1 1:0.5x 2:1\n",
		":1:8: unexpected 'x' right after a number; pairs INDEX:VALUE are separated by blanks" },
	{ "1 1:0.5,2:1\n",
		":1:8: unexpected ',2:1' right after a number; pairs INDEX:VALUE are separated by blanks" },
	{ "1 1:0x10\n",
		":1:6: unexpected 'x10' right after a number; pairs INDEX:VALUE are separated by blanks" },
	{ "1:0.5 2:1\n", ":1:1: the row begins with INDEX:VALUE; put its label in front, as in '+1 3:0.5'" },
	{ "1,3 2:1\n", ":1:2: the row has several labels; only one label a row is supported" },
	{ "1 qid:7 2:1\n",
		":1:3: 'qid:' marks a ranking set, and ranking isn't supported; to use the rows alone "
		"remove it: sed 's/ qid:[^ ]*//'" },
	{ "1 -3:1\n", ":1:3: the index in '-3:1' is negative; indices count from 0 or 1" },
	{ "1 4294967295:1\n", ":1:3: the index is larger than 4294967294; map the features to smaller "
			      "numbers (hash them)" },
	{ "1 99999999999999999999999:1\n", ":1:3: the index is larger than 4294967294; map the features to "
					   "smaller numbers (hash them)" },
	{ "1 1:1 3:1 3:2\n", ":1:11: index 3 stands twice in this row; remove one of them" },
	{ "1 1:1\n2 7:1 5:1 6:2 7:3 8:1\n", ":2:15: index 7 stands twice in this row; remove one of them" },
	{ "1 1:1\n2 2:1 1:1#7\n3 3:1 1:1 3:1#3:1\n",
		":3:11: index 3 stands twice in this row; remove one of them" },
	{ "1 1:1\n1 1:2\n",
		": every row has the label 1, so there is nothing to tell apart; give data with at least "
		"two classes, or --label-kind real if the labels are targets of a regression" },
	{ "1\n2\n", ": no row has a feature; give data with INDEX:VALUE pairs, or --features N" },
	{ "\n# only\n", ": no rows, only blank lines and comments" },
};

static void places_of_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (int gz = 0; gz < 2; gz++) {
			size_t n = strlen(errors[i].text);
			const char *path = gz ? write_gzip("bad", errors[i].text, n)
					      : write_bytes("bad", errors[i].text, n);
			for (int threads = 1; threads <= 3; threads++)
				load_fails(REQ(.path = path, AUTO, .threads = threads), MW_EDATA, path,
					errors[i].message);
		}
}

/* A file of many lines with one fault, cut into any number of pieces: the place stays the same. */
static void place_in_any_piece(void **state)
{
	char *text = malloc(1 << 20), *p = text;
	char want[200];
	const char *path;
	(void)state;
	for (int i = 1; i <= 3000; i++) {
		if (i % 50 == 0)
			p += sprintf(p, "# comment %d: with a colon\n", i);
		p += sprintf(p, "%d 1:0.5 %d:0.25%s\n", i % 2, i + 1, i == 1777 ? " 9999:\x01" : "");
	}
	/* row 1777 stands behind 35 comments; "1 1:0.5 1778:0.25 9999:" has 23 characters */
	snprintf(want, sizeof(want), ":1812:24: expected a number as the value, found '\\x01'");
	path = write_bytes("pieces.svm", text, (size_t)(p - text));
	for (int threads = 1; threads <= 64; threads += 1 + threads / 4)
		load_fails(REQ(.path = path, AUTO, .threads = threads), MW_EDATA, path, want);
	path = write_gzip("pieces.svm.gz", text, (size_t)(p - text));
	load_fails(REQ(.path = path, AUTO, .threads = 2), MW_EDATA, path, want);
	free(text);
}

/* Many pieces, comments, unsorted rows; and gzip with more than one block. */
static void pieces_agree(void **state)
{
	size_t room = 24 << 20, n = 0;
	char *text = malloc(room);
	struct mw_dataset *one, *d;
	const char *path;
	(void)state;
	for (int i = 0; n < room - 200; i++) {
		n += (size_t)sprintf(text + n, "%d %d:0.%d %d:-%d.5e-3 70000:1\n", i % 3, i % 1000 + 2, i,
			i % 60000 + 1003, i % 97);
		if (i % 1000 == 7)
			n += (size_t)sprintf(text + n, "#: %d\n1 500:1 400:2 #:\n\n", i);
	}
	path = write_bytes("large.svm", text, n);
	one = load_ok(REQ(.path = path, AUTO, .threads = 1));
	assert_int_equal(one->classes, 3);
	assert_int_equal(one->features, 70000);
	assert_int_equal(one->row_ptr[one->rows], one->nnz);
	for (int threads = 2; threads <= 5; threads++) {
		d = load_ok(REQ(.path = path, AUTO, .threads = threads));
		assert_same_data(one, d);
		mw_dataset_free(d);
	}
	path = write_gzip("large.svm.gz", text, n);
	for (int threads = 1; threads <= 2; threads++) {
		d = load_ok(REQ(.path = path, AUTO, .threads = threads));
		assert_same_data(one, d);
		assert_int_equal(d->file_bytes, n);
		mw_dataset_free(d);
	}
	mw_dataset_free(one);
	free(text);
}

/* Up to 49 rows of 4 to some 120 bytes; every value is the row's number. Returns the number of bytes. */
static size_t uneven_rows(char *text, int rows, int turn)
{
	size_t n = 0;
	for (int r = 1; r <= rows; r++) {
		n += (size_t)sprintf(text + n, "%d", r % 2);
		for (int i = 1; i <= (r * 7 + turn * 13) % 17; i++)
			n += (size_t)sprintf(text + n, " %d:%d", i, r);
		text[n++] = '\n';
	}
	return n;
}

/* Rows of any length against blocks of any size: each row is read once. */
static void block_edges(void **state)
{
	char text[8192];
	(void)state;
	for (int turn = 0; turn < 30; turn++) {
		int rows = 2 + turn * 3 % 48;
		size_t n = uneven_rows(text, rows, turn) -
			   (size_t)(turn % 2); /* with and without the last newline */
		const char *path = write_bytes("edges", text, n);
		for (int threads = 1; threads <= 64; threads += 1 + threads / 2) {
			struct mw_dataset *d =
				load_ok(REQ(.path = path, AUTO, .features = 17, .threads = threads));
			assert_int_equal(d->rows, rows);
			for (int r = 1; r <= rows; r++) {
				uint64_t at = d->row_ptr[r - 1], length = d->row_ptr[r] - at;
				assert_int_equal(length, (r * 7 + turn * 13) % 17);
				assert_true(d->y[r - 1] == (r % 2 ? 1 : -1));
				for (uint64_t i = 0; i < length; i++)
					assert_true(d->col[at + i] == i && d->val[at + i] == (float)r);
			}
			mw_dataset_free(d);
		}
	}
}

/* Of several errors the first in the file is reported, whichever thread is first to meet one. */
static void first_error_wins(void **state)
{
	char text[8192];
	size_t n = uneven_rows(text, 40, 1), middle = n / 2;
	char *line = (char *)memchr(text + middle, '\n', n - middle) + 1, want[100];
	int lines = 1;
	const char *path;
	(void)state;
	for (char *p = text; p < line; p++)
		lines += *p == '\n';
	line[0] = 'y';
	text[n - 2] = 'z';
	path = write_bytes("first", text, n);
	snprintf(want, sizeof(want), ":%d:1: expected a number as the label, found 'y'", lines);
	for (int threads = 1; threads <= 64; threads += 1 + threads / 2)
		load_fails(REQ(.path = path, AUTO, .threads = threads), MW_EDATA, path, want);
}

/* A row longer than any block. */
static void very_long_row(void **state)
{
	size_t room = 40 << 20, n = 0;
	char *text = malloc(room);
	struct mw_dataset *d;
	uint32_t k = 0;
	(void)state;
	n += (size_t)sprintf(text, "1 1:1\n2");
	while (n < 20u << 20)
		n += (size_t)sprintf(text + n, " %u:1", ++k);
	n += (size_t)sprintf(text + n, "\n1 2:1\n");
	for (int threads = 0; threads < 4; threads++) {
		d = load_ok(REQ(.path = threads ? write_bytes("long.svm", text, n)
						: write_gzip("long.svm.gz", text, n),
			AUTO, .threads = threads));
		assert_int_equal(d->rows, 3);
		assert_int_equal(d->features, k);
		assert_int_equal(d->nnz, k + 2);
		assert_int_equal(d->row_ptr[2], k + 1);
		mw_dataset_free(d);
	}
	free(text);
}

static void index_bases(void **state)
{
	const char *zero = write_text("zero.svm", "1 1:1 3:1\n-1 0:5 3:1\n1 0:1\n");
	const char *one = write_text("one.svm", "1 1:1 3:1\n-1 2:5\n");
	static const uint32_t col[] = { 1, 3, 0, 3, 0 };
	struct mw_dataset *d;
	(void)state;
	for (int threads = 1; threads <= 3; threads++) {
		d = load_ok(REQ(.path = zero, AUTO, .threads = threads));
		assert_int_equal(d->index_base, 0);
		assert_int_equal(d->features, 4);
		assert_memory_equal(d->col, col, sizeof(col));
		mw_dataset_free(d);
	}
	d = load_ok(REQ(.path = one, .index_base = MW_BASE_ZERO));
	assert_int_equal(d->features, 4);
	assert_int_equal(d->col[0], 1);
	mw_dataset_free(d);
	load_fails(REQ(.path = zero, .index_base = MW_BASE_ONE), MW_EDATA, zero,
		":2:4: index 0 in a file that counts from 1; give --index-base 0 (or auto) if it counts from "
		"0");
}

static void widths(void **state)
{
	const char *one = write_text("one.svm", "1 1:1 3:1\n-1 2:5\n");
	const char *zero = write_text("zero.svm", "1 2:1 3:1\n-1 0:5 2:1\n");
	struct mw_dataset *d = load_ok(REQ(.path = one, AUTO, .features = 10));
	(void)state;
	assert_int_equal(d->features, 10);
	mw_dataset_free(d);
	d = load_ok(REQ(.path = one, AUTO, .features = 3));
	assert_int_equal(d->features, 3);
	mw_dataset_free(d);
	load_fails(REQ(.path = one, AUTO, .features = 2), MW_EDATA, one,
		":1:7: index 3 is beyond --features 2; give --features 3 or more, or leave it out");
	load_fails(REQ(.path = zero, .index_base = MW_BASE_ZERO, .features = 3), MW_EDATA, zero,
		":1:7: index 3 (counted from 0) is beyond --features 3; give --features 4 or more, or leave "
		"it out");
	/* auto: only the second row shows that index 3 is one too many */
	load_fails(REQ(.path = zero, AUTO, .features = 3), MW_EDATA, zero,
		":1:7: index 3 (counted from 0) is beyond --features 3; give --features 4 or more, or leave "
		"it out");
	d = load_ok(REQ(.path = write_text("empty.svm", "1\n2\n"), AUTO, .features = 3));
	assert_int_equal(d->nnz, 0);
	mw_dataset_free(d);
}

static void like_the_training_set(void **state)
{
	char train_path[512], want[1500];
	struct mw_dataset *train, *d;
	const char *path;
	(void)state;
	strcpy(train_path, write_text("train.svm", "2 1:1 3:1\n1 2:5\n"));
	train = load_ok(REQ(.path = train_path, AUTO));
	/* narrower, one class only */
	d = load_ok(REQ(.path = write_text("t", "2 1:1\n"), AUTO, .like = train));
	assert_int_equal(d->features, 3);
	assert_int_equal(d->classes, 2);
	assert_true(
		d->y[0] == 1 && d->label_value[0] == 1 && d->label_count[0] == 0 && d->label_count[1] == 1);
	mw_dataset_free(d);
	path = write_text("t", "2 1:1\n1 2:1 4:1\n");
	snprintf(want, sizeof(want),
		":2:7: index 4 is beyond the 3 features of the training set (%s); train with --features 4 or "
		"more",
		train_path);
	load_fails(REQ(.path = path, AUTO, .like = train), MW_EDATA, path, want);
	path = write_text("t", "2 1:1\n3 2:1\n");
	snprintf(want, sizeof(want),
		":2:1: the label 3 doesn't occur in the training set (%s); remove the row or train with it",
		train_path);
	load_fails(REQ(.path = path, AUTO, .like = train), MW_EDATA, path, want);
	path = write_text("t", "2 0:1\n");
	snprintf(want, sizeof(want),
		":1:3: index 0, but the training set (%s) counts from 1, as no index 0 occurs in it; give "
		"--index-base 0 if "
		"both count from 0",
		train_path);
	load_fails(REQ(.path = path, AUTO, .like = train), MW_EDATA, path, want);
	mw_dataset_free(train);
}

static void labels(void **state)
{
	static const float y01[] = { -1, 1, -1 }, y10[] = { 2, 0, 1 }, real[] = { 0.5f, 2, 2 };
	struct mw_dataset *d = load_ok(REQ(.path = write_text("t", "0 1:1\n1 1:1\n0 1:1\n"), AUTO));
	const char *path;
	(void)state;
	assert_floats(d->y, y01, 3);
	assert_true(d->label_value[0] == 0 && d->label_value[1] == 1);
	mw_dataset_free(d);
	d = load_ok(REQ(.path = write_text("t", "10 1:1\n-3 1:1\n7 1:1\n"), AUTO));
	assert_int_equal(d->classes, 3);
	assert_floats(d->y, y10, 3);
	assert_true(d->label_value[0] == -3 && d->label_value[1] == 7 && d->label_value[2] == 10);
	mw_dataset_free(d);
	path = write_text("t", "0.5 1:1\n2 1:1\n2 1:1\n");
	d = load_ok(REQ(.path = path, AUTO));
	assert_int_equal(d->classes, 0);
	assert_null(d->label_value);
	assert_floats(d->y, real, 3);
	mw_dataset_free(d);
	load_fails(REQ(.path = path, AUTO, .label_kind = MW_LABEL_CLASS), MW_EDATA, path,
		":1:1: the label 0.5 can't name a class, which takes an integer below 2^24; use --label-kind "
		"real for "
		"regression");
	d = load_ok(REQ(.path = write_text("t", "2 1:1\n2 1:1\n"), AUTO, .label_kind = MW_LABEL_REAL));
	assert_int_equal(d->classes, 0);
	mw_dataset_free(d);
}

static void many_labels(void **state)
{
	char *text = malloc(2 << 20);
	size_t n = 0;
	struct mw_dataset *d;
	const char *path;
	(void)state;
	for (int i = 0; i < 65537; i++)
		n += (size_t)sprintf(text + n, "%d 1:1\n", i * 7 % 65537);
	path = write_bytes("t", text, n);
	d = load_ok(REQ(.path = path, AUTO, .threads = 3));
	assert_int_equal(d->classes, 0); /* one more than can be classes */
	mw_dataset_free(d);
	load_fails(REQ(.path = path, AUTO, .label_kind = MW_LABEL_CLASS), MW_EDATA, path,
		": the labels can't be classes: there are more than 65536 distinct ones; use --label-kind "
		"real");
	text[n - 1] = 0;
	path = write_text("t", strchr(text, '\n') + 1);
	d = load_ok(REQ(.path = path, AUTO, .threads = 3));
	assert_int_equal(d->classes, 65536);
	mw_dataset_free(d);
	free(text);
}

static void sorts_long_rows(void **state)
{
	char text[40000];
	size_t n = (size_t)sprintf(text, "1 1:1\n2");
	struct mw_dataset *d;
	(void)state;
	for (int i = 0; i < 2003; i++) /* a permutation of 0..2002 */
		n += (size_t)sprintf(text + n, " %d:%d", i * 1000 % 2003 + 1, i * 1000 % 2003 + 5);
	sprintf(text + n, "\n");
	d = load_ok(REQ(.path = write_text("t", text), AUTO));
	for (uint32_t i = 0; i < 2003; i++)
		assert_true(d->col[1 + i] == i && d->val[1 + i] == (float)(i + 5));
	mw_dataset_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spellings),
		cmocka_unit_test(places_of_errors),
		cmocka_unit_test(place_in_any_piece),
		cmocka_unit_test(pieces_agree),
		cmocka_unit_test(block_edges),
		cmocka_unit_test(first_error_wins),
		cmocka_unit_test(very_long_row),
		cmocka_unit_test(index_bases),
		cmocka_unit_test(widths),
		cmocka_unit_test(like_the_training_set),
		cmocka_unit_test(labels),
		cmocka_unit_test(many_labels),
		cmocka_unit_test(sorts_long_rows),
	};
	return cmocka_run_group_tests_name("data libsvm", tests, make_dir, remove_dir);
}
