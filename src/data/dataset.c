/* dataset.c: see dataset.h. */
#include "data/dataset.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/cache.h"
#include "data/input.h"

#define MW_FORMAT(n) extern const struct mw_format_ops mw_format_##n;
#include "registry.def"

static const struct mw_format_ops *const formats[] = {
#define MW_FORMAT(n) &mw_format_##n,
#include "registry.def"
};
#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

/* Stream of mw_perm for the choice of validation rows. */
#define SPLIT_STREAM 0x73706c6974ULL

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_synth(const char *path)
{
	return !strncmp(path, "synth:", 6);
}

/* What people feed by accident, with what to do about it. */
static const struct {
	const char *magic;
	size_t n;
	const char *what;
} not_data[] = {
	{ "\x1f\x8b", 2, "is compressed by gzip twice; run gunzip on it once" },
	{ "\x28\xb5\x2f\xfd", 4, "is compressed by zstd; run zstd -d on it first" },
	{ "\xfd"
	  "7zXZ",
		5, "is compressed by xz; run xz -d on it first" },
	{ "BZh", 3, "is compressed by bzip2; run bzip2 -d on it first" },
	{ "PK\x03\x04", 4, "is a zip archive; unpack it and give the data file in it" },
	{ "%PDF", 4, "is a PDF document, not data" },
};

static bool looks_like_markup(const unsigned char *head, size_t n)
{
	static const char *const openings[] = { "<!doctype", "<html", "<?xml", "<head", "<body" };
	size_t i = n >= 3 && !memcmp(head, "\xef\xbb\xbf", 3) ? 3 : 0;
	while (i < n && isspace(head[i]))
		i++;
	for (size_t k = 0; k < sizeof(openings) / sizeof(openings[0]); k++)
		if (n - i >= strlen(openings[k]) &&
			!strncasecmp((const char *)head + i, openings[k], strlen(openings[k])))
			return true;
	return false;
}

static int refuse(const char *path, const unsigned char *head, size_t n, bool gzip, struct mw_err *err)
{
	if (!n)
		MW_FAIL(err, DATA, "%s: the gzip file holds an empty file", path);
	for (size_t i = 0; i < sizeof(not_data) / sizeof(not_data[0]); i++)
		if (n >= not_data[i].n && !memcmp(head, not_data[i].magic, not_data[i].n))
			MW_FAIL(err, DATA, "%s: the file %s", path, not_data[i].what);
	if (n >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
		MW_FAIL(err, DATA,
			"%s: this is a Python pickle; if it is CIFAR, take its binary version "
			"(cifar-10-binary.tar.gz, or: "
			"mixwild-data cifar10)",
			path);
	if (looks_like_markup(head, n))
		MW_FAIL(err, DATA,
			"%s: this is a web page, not data%s; the download has failed: fetch the file again",
			path, gzip ? " (compressed)" : "");
	return 0;
}

static int find_format(
	const struct mw_data_request *req, const struct mw_format_ops **ops, struct mw_err *err)
{
	unsigned char head[MW_HEAD_BYTES];
	bool gzip = false;
	int64_t n = 0;
	if (!is_synth(req->path) && !is_folder(req->path)) {
		n = mw_input_head(req->path, head, sizeof(head), &gzip, err);
		if (n < 0)
			return (int)n;
		MW_TRY(refuse(req->path, head, (size_t)n, gzip, err));
	}
	for (size_t i = 0; i < N_FORMATS; i++)
		if (formats[i]->probe(req->path, head, (size_t)n)) {
			*ops = formats[i];
			return 0;
		}
	MW_FAIL(err, DATA,
		"%s: the file is neither LIBSVM text nor IDX nor CIFAR (first bytes: %02x %02x %02x %02x); "
		"convert it "
		"to one of them",
		req->path, head[0], n > 1 ? head[1] : 0, n > 2 ? head[2] : 0, n > 3 ? head[3] : 0);
}

/* Without an error of its own: a cache that can't be used or written is only slower. */
static int load_cached(const struct mw_format_ops *ops, const struct mw_data_request *req,
	struct mw_dataset *d, struct mw_err *err)
{
	struct mw_cache_source *before;
	int ret;
	if (mw_cache_load(req, d))
		return 0;
	if (req->cache != MW_CACHE_ON)
		return ops->load(req, d, err);
	before = mw_cache_source_new(req);
	ret = ops->load(req, d, err);
	if (ret == 0)
		mw_cache_store(req, before, d);
	mw_cache_source_free(before);
	return ret;
}

int mw_dataset_load(const struct mw_data_request *req, struct mw_dataset **out, struct mw_err *err)
{
	const struct mw_format_ops *ops = NULL;
	struct mw_dataset *d;
	double t0 = mw_now_s();
	int ret;
	*out = NULL;
	MW_TRY(find_format(req, &ops, err));
	if (req->coarse && strcmp(ops->name, "cifar"))
		MW_FAIL(err, USAGE, "%s: only CIFAR-100 has coarse labels", req->path);
	d = calloc(1, sizeof(*d));
	if (!d || !(d->name = mw_strdup(req->path))) {
		ret = mw_err_set(err, MW_ERESOURCE, "out of memory: data set %s", req->path);
		goto out;
	}
	d->format = ops->name;
	if (req->cache == MW_CACHE_OFF || !ops->cached)
		ret = ops->load(req, d, err);
	else
		ret = load_cached(ops, req, d, err);
	d->load_s = mw_now_s() - t0;
out:
	if (ret < 0)
		mw_dataset_free(d);
	else
		*out = d;
	return ret;
}

void mw_dataset_free_array(const struct mw_dataset *d, void *array)
{
	const char *map = d->map, *p = array;
	if (!map || p < map || p >= map + d->map_bytes)
		mw_free(array);
}

void mw_dataset_free(struct mw_dataset *d)
{
	if (!d)
		return;
	mw_dataset_free_array(d, d->row_ptr);
	mw_dataset_free_array(d, d->col);
	mw_dataset_free_array(d, d->val);
	mw_dataset_free_array(d, d->y);
	mw_dataset_free_array(d, d->label_value);
	mw_dataset_free_array(d, d->label_count);
	if (d->map)
		munmap(d->map, d->map_bytes);
	mw_free(d->feature);
	mw_free(d->x);
	mw_free(d->pixel);
	mw_free(d->curvature);
	mw_free(d->optimum);
	free(d->cache_note);
	free(d->name);
	free(d);
}

size_t mw_dataset_parts(struct mw_dataset *d, struct mw_data_part *part)
{
	uint64_t images = d->kind == MW_X_IMAGE ? d->rows : 0;
	size_t n = 0, y_bytes = sizeof(*d->y);
	const struct mw_data_part all[] = {
		{ "row pointers", (void **)&d->row_ptr, (d->rows + 1) * sizeof(*d->row_ptr),
			sizeof(*d->row_ptr), 0 },
		{ "columns", (void **)&d->col, d->nnz * sizeof(*d->col), 0, sizeof(*d->col) },
		{ "values", (void **)&d->val, d->nnz * sizeof(*d->val), 0, sizeof(*d->val) },
		{ "rows", (void **)&d->x, d->rows * d->ld * sizeof(*d->x), d->ld * sizeof(*d->x), 0 },
		{ "pixels", (void **)&d->pixel, images * d->features, d->features, 0 },
		{ "labels", (void **)&d->y, d->rows * y_bytes, y_bytes, 0 },
		{ "curvature", (void **)&d->curvature, d->features * sizeof(*d->curvature), 0, 0 },
		{ "optimum", (void **)&d->optimum, d->features * sizeof(*d->optimum), 0, 0 },
	};
	_Static_assert(sizeof(all) / sizeof(*all) <= MW_DATA_PARTS_MAX, "room for all parts");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (*all[i].at)
			part[n++] = all[i];
	return n;
}

/* A copy in memory of its own, with the room behind it that readers may look at; NULL stays NULL. */
static int own_array(void **at, size_t bytes, void **copy, struct mw_err *err)
{
	*copy = NULL;
	if (!*at)
		return 0;
	*copy = mw_alloc(bytes + MW_DATA_SLACK, "the data", err);
	if (!*copy)
		return err->code;
	memcpy(*copy, *at, bytes);
	return 0;
}

int mw_dataset_own(struct mw_dataset *d, struct mw_err *err)
{
	const struct {
		void **at;
		size_t bytes;
	} array[] = { { (void **)&d->row_ptr, (d->rows + 1) * sizeof(*d->row_ptr) },
		{ (void **)&d->col, d->nnz * sizeof(*d->col) },
		{ (void **)&d->val, d->nnz * sizeof(*d->val) }, { (void **)&d->y, d->rows * sizeof(*d->y) },
		{ (void **)&d->label_value, d->classes * sizeof(*d->label_value) },
		{ (void **)&d->label_count, d->classes * sizeof(*d->label_count) } };
	enum { ARRAYS = sizeof(array) / sizeof(*array) };
	void *copy[ARRAYS] = { NULL };
	int code = 0;
	if (!d->map)
		return 0;
	for (int i = 0; i < ARRAYS && !code; i++)
		code = own_array(array[i].at, array[i].bytes, &copy[i], err);
	for (int i = 0; i < ARRAYS; i++)
		if (code)
			mw_free(copy[i]);
		else
			*array[i].at = copy[i];
	if (!code) {
		munmap(d->map, d->map_bytes);
		d->map = NULL;
	}
	return code;
}

size_t mw_data_part_offset(const struct mw_dataset *d, const struct mw_data_part *part, uint64_t row)
{
	if (part->nz_bytes)
		return d->row_ptr[row] * part->nz_bytes;
	return row * part->row_bytes;
}

/* All rows of 0..rows-1 that are (chosen) or aren't marked. */
static void collect(const unsigned char *marked, uint64_t rows, bool chosen, uint64_t *idx)
{
	for (uint64_t r = 0; r < rows; r++)
		if (marked[r] == chosen)
			*idx++ = r;
}

int mw_rows_split(const struct mw_dataset *d, double fraction, uint64_t seed, struct mw_rows *train,
	struct mw_rows *val, struct mw_err *err)
{
	struct mw_perm perm;
	unsigned char *marked = NULL;
	int ret = MW_ERESOURCE;
	*train = (struct mw_rows){ .n = d->rows };
	*val = (struct mw_rows){ .n = 0 };
	if (!(fraction >= 0 && fraction < 1))
		MW_FAIL(err, USAGE, "the validation fraction is %g; give a number from 0 to below 1",
			fraction);
	if (fraction == 0)
		return 0;
	val->n = (uint64_t)llround(fraction * (double)d->rows);
	train->n = d->rows - val->n;
	if (!val->n || !train->n)
		MW_FAIL(err, USAGE,
			"a validation fraction of %g of %llu rows leaves no row for %s; choose another "
			"fraction",
			fraction, (unsigned long long)d->rows, val->n ? "training" : "validation");
	marked = mw_alloc(d->rows, "marks of validation rows", err);
	val->idx = mw_alloc_array(val->n, sizeof(*val->idx), "validation rows", err);
	train->idx = mw_alloc_array(train->n, sizeof(*train->idx), "training rows", err);
	if (!marked || !val->idx || !train->idx)
		goto out;
	mw_perm_init(&perm, d->rows, seed, SPLIT_STREAM);
	for (uint64_t i = 0; i < val->n; i++)
		marked[mw_perm_at(&perm, i)] = 1;
	collect(marked, d->rows, true, val->idx);
	collect(marked, d->rows, false, train->idx);
	ret = 0;
out:
	mw_free(marked);
	if (ret < 0) {
		mw_rows_fini(train);
		mw_rows_fini(val);
	}
	return ret;
}

void mw_rows_fini(struct mw_rows *r)
{
	mw_free(r->idx);
	*r = (struct mw_rows){ 0 };
}
