/*
 * tensor_file.h: named float arrays in the safetensors format, read and written in any order. Used for models and
 * checkpoints, so that any library of that format reads both.
 */
#ifndef MW_RUN_TENSOR_FILE_H
#define MW_RUN_TENSOR_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#include "base/err.h"

struct mw_tensor {
	char name[48];
	size_t shape[4]; /* row-major */
	int ndim;
	float *data; /* borrowed */
};

/*
 * Write all tensors, with about (JSON, borrowed) as the metadata entry "mixwild". To a temporary file beside path, synced
 * and renamed: a crash never loses an earlier file.
 */
int mw_tensor_file_save(
	const char *path, const struct mw_tensor *t, size_t n, const json_t *about, struct mw_err *err);

/* The "mixwild" metadata; *about is the caller's (json_decref). */
int mw_tensor_file_about(const char *path, json_t **about, struct mw_err *err);

/* Fill the data of the given tensors; each must be there with this shape. */
int mw_tensor_file_load(const char *path, const struct mw_tensor *t, size_t n, struct mw_err *err);

#endif
