/*
 * dataset.h: examples, immutable after load. Rows are examples; labels are floats.
 *
 * CSR: column indices are 0-based uint32, values float32, counts 64-bit; col and val are readable 16 elements
 * past the end (vector loads). Dense: rows of `ld` floats, 64-byte aligned, zero beyond `features`.
 * Image: bytes as stored, turned into floats a batch at a time by images.h.
 * Quadratic: no examples but f(x) = 1/2 sum_i curvature[i] (x[i] - optimum[i])^2 with gradient noise that is
 * a pure function of (row, coordinate).
 */
#ifndef MW_DATA_DATASET_H
#define MW_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#include "base/err.h"

enum mw_x_kind { MW_X_CSR, MW_X_DENSE, MW_X_QUADRATIC, MW_X_IMAGE };

#define MW_CHANNELS_MAX 4

struct mw_dataset {
	char *name;         /* path or synth spec, as given */
	const char *format; /* "libsvm", "idx", "cifar", "synth" */
	enum mw_x_kind kind;
	uint64_t rows, nnz;
	uint32_t features; /* columns; QUADRATIC: dimension */

	uint64_t *row_ptr; /* CSR: rows + 1 */
	uint32_t *col;     /* CSR: nnz, strictly increasing within a row, unless columns were renumbered */
	float *val;
	uint32_t *feature; /* CSR: NULL, or of each column its number as loaded (mw_dataset_by_popularity) */

	float *x; /* DENSE: rows * ld */
	size_t ld;

	/* IMAGE: rows * channels * image_rows * image_cols, an image's planes one after another, row-major;
	   features is their number. A pixel's value is (byte - pixel_mean[c]) * pixel_scale[c]. */
	uint8_t *pixel;
	float pixel_mean[MW_CHANNELS_MAX], pixel_scale[MW_CHANNELS_MAX];

	float *curvature, *optimum; /* QUADRATIC: features each */
	float noise;                /* QUADRATIC: standard deviation of a row's gradient in each coordinate */
	uint64_t noise_seed;

	/*
	 * classes 2: y is -1 or +1; classes > 2: y is 0..classes-1; classes 0: y is a real target.
	 * label_value[c] is the label in the file of class c (for two classes: of -1, then of +1), in
	 * increasing order.
	 */
	float *y;
	uint32_t classes;
	double *label_value;
	uint64_t *label_count;

	uint32_t index_base;             /* LIBSVM: 0 or 1, as found or given */
	uint32_t image_rows, image_cols; /* images: shape of an example; else 0 */
	uint32_t channels;               /* images: planes; else 0 */
	double load_s;
	uint64_t file_bytes; /* bytes of text read (uncompressed); 0 for synth */

	void *map; /* NULL, or the cache file that row_ptr, col, val, y, label_value and label_count lie in */
	size_t map_bytes;
	char *cache_note; /* NULL, or what came of the cache: "used: PATH", "written: PATH", "not ...: why" */
};

enum mw_label_kind { MW_LABEL_AUTO, MW_LABEL_CLASS, MW_LABEL_REAL };
/* A binary cache of text (cache.h): neither read nor written, read if there is one, written if there is none. */
enum mw_cache_use { MW_CACHE_OFF, MW_CACHE_AUTO, MW_CACHE_ON };
enum mw_index_base { MW_BASE_ZERO, MW_BASE_ONE, MW_BASE_AUTO };

struct mw_data_request {
	const char *path;   /* file, CIFAR folder, or "synth:KIND,key=value,..." */
	const char *labels; /* IDX: label file, NULL: derived from the name of the image file */
	enum mw_label_kind label_kind;
	enum mw_index_base index_base; /* LIBSVM; AUTO: 0 if an index 0 occurs, else 1 */
	uint32_t features; /* 0: as found; else fixed width (a larger index is an error that says so) */
	const struct mw_dataset
		*like; /* NULL, or the training set: same width, label mapping and index base */
	uint64_t seed; /* synth */
	int threads;   /* parse threads; 0: one for each CPU this process may use */
	enum mw_cache_use cache;
	bool coarse; /* CIFAR-100: the 20 coarse labels, not the 100 fine ones; a test set follows `like` */
	bool keep_bytes; /* images stay bytes (IMAGE); else they become DENSE rows of values in [0, 1] */
};

/* Load by content (magic bytes, then text); *out is owned by the caller. Errors name file, line and column.
 */
int mw_dataset_load(const struct mw_data_request *req, struct mw_dataset **out, struct mw_err *err);
void mw_dataset_free(struct mw_dataset *d);
/* Free one of d's arrays, to put another in its place; one that lies in a mapped cache stays there. */
void mw_dataset_free_array(const struct mw_dataset *d, void *array);

/* One of the big arrays of a dataset, for who places or copies them. */
struct mw_data_part {
	const char *name;
	void **at;        /* the dataset's pointer; from mw_alloc */
	size_t bytes;     /* in use; copies need MW_DATA_SLACK more, which readers may look at */
	size_t row_bytes; /* bytes a row, 0: rows are of different lengths, or the array isn't by rows */
	size_t nz_bytes;  /* bytes a non-zero, 0: not by non-zeros */
};
enum { MW_DATA_PARTS_MAX = 8, MW_DATA_SLACK = 64 };
/* The arrays that are there; returns their number. */
size_t mw_dataset_parts(struct mw_dataset *d, struct mw_data_part *part);
/* Take the arrays out of the cache file that they lie in, into memory of their own (mw_alloc), if they do. */
int mw_dataset_own(struct mw_dataset *d, struct mw_err *err);
/* Where the first row's bytes begin in a part that is by rows or non-zeros; row may be d->rows: the end. */
size_t mw_data_part_offset(const struct mw_dataset *d, const struct mw_data_part *part, uint64_t row);

/* rank[i]: how many of n counts, none above `most`, are larger than the i-th, or equal and before it. O(n + most). */
int mw_rank_by_count(const uint64_t *count, uint32_t n, uint64_t most, uint32_t *rank, struct mw_err *err);
/*
 * Renumber the columns of d (CSR, training set), the most popular one first, and those of test (NULL: none) with them; equally
 * popular ones stay in order. *hot: so many columns hold the given share of all non-zeros. Rows keep the order of their
 * elements, so sums keep their bits.
 */
int mw_dataset_by_popularity(
	struct mw_dataset *d, struct mw_dataset *test, double share, uint32_t *hot, struct mw_err *err);
/* Parameters in the order of d's columns (width floats each) into the order as loaded, or the other way; from is not to. */
void mw_dataset_swap_features(
	const struct mw_dataset *d, uint32_t width, bool to_loaded, const float *from, float *to);

/* One file format or generator: a plug-in. */
struct mw_format_ops {
	const char *name, *summary;
	/* does this look like mine? head: first n bytes (gunzipped if it was gzip), path as given */
	bool (*probe)(const char *path, const unsigned char *head, size_t n);
	int (*load)(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err);
	bool cached; /* is reading slow enough for a cache (cache.h)? Then it makes CSR. */
};

/* A subset of rows: idx NULL means all of 0..n-1. */
struct mw_rows {
	uint64_t *idx; /* owned */
	uint64_t n;
};
/* Split off round(fraction * rows) rows for validation, seeded, disjoint, both in increasing order. */
int mw_rows_split(const struct mw_dataset *d, double fraction, uint64_t seed, struct mw_rows *train,
	struct mw_rows *val, struct mw_err *err);
void mw_rows_fini(struct mw_rows *r);
static inline uint64_t mw_rows_at(const struct mw_rows *r, uint64_t i)
{
	return r->idx ? r->idx[i] : i;
}

/* A few rows to work on. */
struct mw_batch {
	const struct mw_dataset *data;
	const uint64_t *row;
	uint32_t n;
	uint64_t augment; /* images: 0: as stored, else the key of this batch's random crops and flips */
};

#endif
