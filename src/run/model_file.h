/*
 * model_file.h: models in the safetensors format: any library of that format reads the parameters as named arrays; the
 * metadata entry "mixwild" (JSON) has what is needed to use the model on new data.
 */
#ifndef MW_RUN_MODEL_FILE_H
#define MW_RUN_MODEL_FILE_H

#include <jansson.h>

#include "model/model.h"

/* Written to a temporary file beside path, synced and renamed: a crash never loses an earlier model. about: borrowed.
   stats: the model's statistics, NULL where it has none. */
int mw_model_file_save(const char *path, const struct mw_model *m, float *x, float *stats,
	const json_t *about, struct mw_err *err);
/* The "mixwild" metadata; *about is the caller's (json_decref). */
int mw_model_file_about(const char *path, json_t **about, struct mw_err *err);
/* Parameters into x (m->dim floats) and, unless NULL, statistics into stats; names and shapes must be the model's. */
int mw_model_file_load(
	const char *path, const struct mw_model *m, float *x, float *stats, struct mw_err *err);

#endif
