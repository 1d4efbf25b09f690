/* data_util.h: files that a data test writes into a directory of its own, and short calls of the loader. */
#ifndef MW_TESTS_DATA_UTIL_H
#define MW_TESTS_DATA_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

#include "data/dataset.h"

static char test_dir[256];

/* A path in the directory, in one of four buffers used in turn. */
static inline const char *test_path(const char *name)
{
	static char path[4][512];
	static int turn;
	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", test_dir, name);
	return path[turn];
}

static inline int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");
	(void)state;
	snprintf(test_dir, sizeof(test_dir), "%.200s/mixwild-test-XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(test_dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	char command[300];
	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", test_dir);
	return system(command);
}

static inline const char *write_bytes(const char *name, const void *bytes, size_t n)
{
	const char *path = test_path(name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return path;
}

static inline const char *write_text(const char *name, const char *text)
{
	return write_bytes(name, text, strlen(text));
}

static inline const char *write_gzip(const char *name, const void *bytes, size_t n)
{
	const char *path = test_path(name);
	gzFile f = gzopen(path, "wb1");
	assert_non_null(f);
	if (n)
		assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
	assert_int_equal(gzclose(f), Z_OK);
	return path;
}

static inline struct mw_dataset *load_ok(const struct mw_data_request *req)
{
	struct mw_err err = { 0 };
	struct mw_dataset *d = NULL;
	int ret = mw_dataset_load(req, &d, &err);
	if (ret)
		fail_msg("%s", err.msg);
	assert_non_null(d);
	return d;
}

/* The request must fail with this code, and its message must be `path` followed by `message`. */
static inline void load_fails(
	const struct mw_data_request *req, int code, const char *path, const char *message)
{
	struct mw_err err = { 0 };
	struct mw_dataset *d = NULL;
	size_t n = strlen(path);
	assert_int_equal(mw_dataset_load(req, &d, &err), code);
	assert_null(d);
	assert_int_equal(err.code, code);
	assert_memory_equal(err.msg, path, n);
	assert_string_equal(err.msg + n, message);
}

static inline void assert_floats(const float *got, const float *want, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&got[i], &want[i], sizeof(float)))
			fail_msg("element %zu is %.9g, expected %.9g", i, (double)got[i], (double)want[i]);
}

/* All that examples consist of, to the bit. */
static inline void assert_same_data(const struct mw_dataset *a, const struct mw_dataset *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->rows, b->rows);
	assert_int_equal(a->features, b->features);
	assert_int_equal(a->nnz, b->nnz);
	assert_int_equal(a->classes, b->classes);
	assert_int_equal(a->index_base, b->index_base);
	assert_memory_equal(a->y, b->y, a->rows * sizeof(float));
	if (a->classes) {
		assert_memory_equal(a->label_value, b->label_value, a->classes * sizeof(double));
		assert_memory_equal(a->label_count, b->label_count, a->classes * sizeof(uint64_t));
	}
	if (a->kind == MW_X_CSR) {
		assert_memory_equal(a->row_ptr, b->row_ptr, (a->rows + 1) * sizeof(uint64_t));
		assert_memory_equal(a->col, b->col, a->nnz * sizeof(uint32_t));
		assert_memory_equal(a->val, b->val, a->nnz * sizeof(float));
	} else {
		assert_memory_equal(a->x, b->x, a->rows * a->ld * sizeof(float));
	}
}

#endif
