/* idx.c: loads images and labels in MNIST's IDX form, plain or gzip, as bytes or as dense rows of pixel/255. */
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/images.h"
#include "data/input.h"
#include "data/labels.h"

#define TYPE_UBYTE  8
#define DIMS_MAX    3
#define BLOCK_BYTES ((size_t)1 << 20)
#define PATHS_MAX   8
/* Deflate can't shrink anything more than this. */
#define DEFLATE_MAX 1032

/* One opened IDX file, read up to its first element. */
struct idx {
	struct mw_input in;
	int ndim;
	uint32_t dim[DIMS_MAX];
};

static uint32_t big_endian(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int check_magic(const char *path, const unsigned char *m, struct mw_err *err)
{
	if (m[0] || m[1])
		MW_FAIL(err, DATA,
			"%s: not an IDX file: it begins with %02x %02x %02x %02x instead of 00 00 08 and the "
			"number of "
			"dimensions",
			path, m[0], m[1], m[2], m[3]);
	if (m[2] != TYPE_UBYTE)
		MW_FAIL(err, DATA, "%s: IDX elements of type %02x; only unsigned bytes (08) are supported",
			path, m[2]);
	if (m[3] < 1 || m[3] > DIMS_MAX)
		MW_FAIL(err, DATA, "%s: IDX with %u dimensions; supported are 1 (labels), 2 and 3 (images)",
			path, m[3]);
	return 0;
}

/* Read exactly n bytes; `what` is put into the message of a truncated file. */
static int read_all(struct mw_input *in, void *buf, size_t n, const char *what, struct mw_err *err)
{
	int64_t got = mw_input_read(in, buf, n, err);
	if (got < 0)
		return (int)got;
	if ((uint64_t)got < n)
		MW_FAIL(err, DATA, "%s: the file ends within the %s; it is cut off: fetch it again", in->path,
			what);
	return 0;
}

static int idx_open(struct idx *f, const char *path, struct mw_err *err)
{
	unsigned char head[4 + 4 * DIMS_MAX];
	int ret = mw_input_open(&f->in, path, err);
	if (ret < 0)
		return ret;
	ret = read_all(&f->in, head, 4, "IDX header", err);
	if (ret == 0)
		ret = check_magic(path, head, err);
	if (ret == 0) {
		f->ndim = head[3];
		ret = read_all(&f->in, head + 4, (size_t)(4 * f->ndim), "IDX header", err);
	}
	for (int i = 0; ret == 0 && i < f->ndim; i++)
		f->dim[i] = big_endian(head + 4 + 4 * i);
	if (ret < 0)
		mw_input_close(&f->in);
	return ret;
}

/* Nothing may follow the last element: a wrong count would go unnoticed. */
static int expect_end(struct mw_input *in, struct mw_err *err)
{
	char more;
	int64_t got = mw_input_read(in, &more, 1, err);
	if (got < 0)
		return (int)got;
	if (got)
		MW_FAIL(err, DATA,
			"%s: the file is longer than its header says; it is damaged: fetch it again",
			in->path);
	return 0;
}

/* ---- the label file that belongs to an image file */

static char *replace_last(const char *path, const char *from, const char *to)
{
	const char *base = strrchr(path, '/'), *at = NULL;
	for (const char *p = strstr(base ? base : path, from); p; p = strstr(p + 1, from))
		at = p;
	return at ? mw_strprintf("%.*s%s%s", (int)(at - path), path, to, at + strlen(from)) : NULL;
}

/* The name with the other separator before "idx1": train-labels-idx1-ubyte, train-labels.idx1-ubyte. */
static void swap_separator(char *path)
{
	char *at = strstr(path, "labels");
	if (at && (at[6] == '-' || at[6] == '.'))
		at[6] = at[6] == '-' ? '.' : '-';
}

/*
 * Names under which the labels may lie, likeliest first: the image file's with images -> labels and idx3 ->
 * idx1, with and without .gz, with dash or dot. Returns how many; all owned by the caller.
 */
static int label_paths(const char *images, char *path[PATHS_MAX])
{
	char *base = replace_last(images, "images", "labels"), *name;
	int n = 0;
	if (!base)
		return 0;
	name = replace_last(base, "idx3", "idx1");
	if (!name)
		name = mw_strdup(base);
	free(base);
	for (int i = 0; name && i < 2; i++) {
		size_t length = strlen(name);
		bool gz = length > 3 && !strcmp(name + length - 3, ".gz");
		path[n++] = mw_strdup(name);
		path[n++] = gz ? mw_strprintf("%.*s", (int)length - 3, name) : mw_strprintf("%s.gz", name);
		swap_separator(name);
	}
	free(name);
	return n;
}

/* *out is owned by the caller. */
static int find_labels(const struct mw_data_request *req, char **out, struct mw_err *err)
{
	char *path[PATHS_MAX] = { NULL };
	int n;
	*out = NULL;
	if (req->labels) {
		*out = mw_strdup(req->labels);
		return *out ? 0 : mw_err_set(err, MW_ERESOURCE, "out of memory: name of the label file");
	}
	n = label_paths(req->path, path);
	for (int i = 0; i < n && !*out; i++)
		if (path[i] && access(path[i], F_OK) == 0) {
			*out = path[i];
			path[i] = NULL;
		}
	if (!*out && !n)
		mw_err_set(err, MW_EDATA,
			"%s: no 'images' in the name to derive the label file's from; give --labels FILE",
			req->path);
	else if (!*out)
		mw_err_set(err, MW_EDATA,
			"%s: there is no label file %s (nor with .gz or '.' for '-'); give --labels FILE",
			req->path, path[0] ? path[0] : "");
	for (int i = 0; i < n; i++)
		free(path[i]);
	return *out ? 0 : MW_EDATA;
}

/* ---- reading */

static int read_labels(struct mw_dataset *d, const char *path, struct mw_labels *seen, struct mw_err *err)
{
	struct idx f;
	unsigned char *label = NULL;
	int ret;
	MW_TRY(idx_open(&f, path, err));
	if (f.ndim != 1) {
		ret = mw_err_set(err, MW_EDATA, "%s: this IDX file has %d dimensions, so it holds no labels",
			path, f.ndim);
		goto out;
	}
	if (f.dim[0] != d->rows) {
		ret = mw_err_set(err, MW_EDATA,
			"%s: %u labels for the %llu images of %s; they don't belong together", path, f.dim[0],
			(unsigned long long)d->rows, d->name);
		goto out;
	}
	label = malloc(d->rows);
	d->y = mw_alloc_array(d->rows, sizeof(*d->y), "labels", err);
	if (!label || !d->y) {
		ret = mw_err_set(err, MW_ERESOURCE, "out of memory: %u labels", f.dim[0]);
		goto out;
	}
	ret = read_all(&f.in, label, d->rows, "labels", err);
	if (ret == 0)
		ret = expect_end(&f.in, err);
	for (uint64_t i = 0; ret == 0 && i < d->rows; i++) {
		d->y[i] = label[i];
		ret = mw_labels_add(seen, label[i], err);
	}
	d->file_bytes += 8 + d->rows;
out:
	free(label);
	mw_input_close(&f.in);
	return ret;
}

static int read_pixels(struct mw_dataset *d, struct idx *f, struct mw_err *err)
{
	size_t block_rows = BLOCK_BYTES / d->features + 1;
	unsigned char *block = malloc(block_rows * d->features);
	int ret = block ? 0 : mw_err_set(err, MW_ERESOURCE, "out of memory: block of images");
	for (uint64_t r = 0; ret == 0 && r < d->rows; r += block_rows) {
		size_t n = d->rows - r < block_rows ? (size_t)(d->rows - r) : block_rows;
		ret = read_all(&f->in, block, n * d->features, "images", err);
		if (ret == 0)
			mw_images_put(d, r, n, block);
	}
	free(block);
	d->file_bytes += 4 + 4 * (uint64_t)f->ndim + d->rows * d->features;
	return ret < 0 ? ret : expect_end(&f->in, err);
}

static int set_shape(
	const struct mw_data_request *req, const struct idx *f, struct mw_dataset *d, struct mw_err *err)
{
	uint64_t features = f->ndim == 3 ? (uint64_t)f->dim[1] * f->dim[2] : f->dim[1];
	if (f->ndim == 1)
		MW_FAIL(err, DATA,
			"%s: this IDX file holds labels; give the file of the images (...images-idx3-ubyte)",
			req->path);
	if (!f->dim[0] || !features || features > UINT32_MAX / 2)
		MW_FAIL(err, DATA, "%s: the header says %u images of %llu pixels; the file is damaged",
			req->path, f->dim[0], (unsigned long long)features);
	/* A damaged header must not ask for more memory than the file can fill. */
	if (f->in.size * (f->in.gzip ? DEFLATE_MAX : 1) / features < f->dim[0])
		MW_FAIL(err, DATA,
			"%s: %llu bytes are too few for the %u images of %llu pixels in its header; it is "
			"cut off: fetch it "
			"again",
			req->path, (unsigned long long)f->in.size, f->dim[0], (unsigned long long)features);
	d->rows = f->dim[0];
	d->channels = 1;
	d->image_rows =
		f->ndim == 3 ? f->dim[1] : 1; /* two dimensions: rows of numbers, images of one line */
	d->image_cols = f->ndim == 3 ? f->dim[2] : f->dim[1];
	return mw_images_prepare(req, d, err);
}

/* A test set's labels must be known. */
static int check_like(const struct mw_data_request *req, const char *labels, const struct mw_labels *seen,
	struct mw_err *err)
{
	for (uint32_t i = 0; req->like && req->like->classes && i < seen->n; i++)
		if (mw_labels_class(req->like, (double)seen->value[i]) < 0)
			MW_FAIL(err, DATA, "%s: the label %g doesn't occur in the training set (%s)", labels,
				(double)seen->value[i], req->like->name);
	return 0;
}

static int load(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err)
{
	struct idx f;
	struct mw_labels seen = { 0 };
	char *labels = NULL;
	int ret;
	MW_TRY(idx_open(&f, req->path, err));
	ret = set_shape(req, &f, d, err);
	if (ret == 0)
		ret = find_labels(req, &labels, err);
	if (ret == 0)
		ret = read_labels(d, labels, &seen, err);
	if (ret == 0)
		ret = check_like(req, labels, &seen, err);
	if (ret < 0)
		goto out;
	ret = read_pixels(d, &f, err);
	if (ret == 0)
		ret = mw_labels_apply(req, &seen, d, err);
	if (ret == 0)
		mw_images_finish(req, d);
out:
	free(labels);
	mw_labels_fini(&seen);
	mw_input_close(&f.in);
	return ret;
}

/* IDX begins with two zero bytes, a type, a number of dimensions: no text does. */
static bool probe(const char *path, const unsigned char *head, size_t n)
{
	(void)path;
	return n >= 4 && !head[0] && !head[1] && head[2] >= 8 && head[2] <= 0x0e;
}

const struct mw_format_ops mw_format_idx = {
	.name = "idx",
	.summary = "MNIST's IDX images (ubyte) with the label file beside them, plain or gzip",
	.probe = probe,
	.load = load,
};
