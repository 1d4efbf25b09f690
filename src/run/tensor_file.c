/* tensor_file.c: see tensor_file.h. */
#include "run/tensor_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "run/atomic_file.h"

/* A header longer than this is no header. */
#define HEADER_MAX ((uint64_t)100 << 20)

static size_t count(const struct mw_tensor *t)
{
	size_t n = 1;
	for (int i = 0; i < t->ndim; i++)
		n *= t->shape[i];
	return n;
}

static json_t *tensor_json(const struct mw_tensor *t, json_int_t *offset)
{
	json_t *shape = json_array();
	json_int_t from = *offset;
	for (int i = 0; i < t->ndim; i++)
		json_array_append_new(shape, json_integer((json_int_t)t->shape[i]));
	*offset += (json_int_t)(count(t) * sizeof(float));
	return json_pack("{ss so s[II]}", "dtype", "F32", "shape", shape, "data_offsets", from, *offset);
}

/* The header text, padded with spaces to a multiple of 8; free() it. */
static char *header_text(const struct mw_tensor *t, size_t n, const json_t *about)
{
	json_t *header = json_object();
	json_int_t offset = 0;
	char *text = json_dumps(about, JSON_COMPACT | JSON_SORT_KEYS), *head = NULL;
	json_object_set_new(header, "__metadata__",
		json_pack("{ss ss}", "format", "mixwild", "mixwild", text ? text : ""));
	for (size_t i = 0; i < n; i++)
		json_object_set_new(header, t[i].name, tensor_json(&t[i], &offset));
	free(text);
	text = json_dumps(header, JSON_COMPACT);
	json_decref(header);
	size_t padded = text ? (strlen(text) + 7) & ~(size_t)7 : 0;
	if (text && (head = malloc(padded + 1)))
		snprintf(head, padded + 1, "%-*s", (int)padded, text);
	free(text);
	return head;
}

int mw_tensor_file_save(
	const char *path, const struct mw_tensor *t, size_t n, const json_t *about, struct mw_err *err)
{
	char *head = header_text(t, n, about);
	struct mw_atomic_file f;
	unsigned char length[8];
	if (!head)
		MW_FAIL(err, RESOURCE, "out of memory writing %s", path);
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)strlen(head) >> (8 * i));
	int code = mw_atomic_file_open(&f, path, err);
	if (code == 0) {
		fwrite(length, 1, 8, f.file);
		fputs(head, f.file);
		for (size_t i = 0; i < n; i++)
			fwrite(t[i].data, sizeof(float), count(&t[i]), f.file);
		code = mw_atomic_file_commit(&f, err);
	}
	free(head);
	return code;
}

/* Open, read the header; the file is left at the first byte of the data. */
static int open_header(const char *path, FILE **f, json_t **header, struct mw_err *err)
{
	unsigned char length[8];
	json_error_t je;
	uint64_t n = 0;
	*header = NULL;
	*f = fopen(path, "rb");
	if (!*f)
		MW_FAIL(err, DATA, "%s: %s", path, strerror(errno));
	if (fread(length, 1, 8, *f) != 8)
		MW_FAIL(err, DATA, "%s: too short for a safetensors file", path);
	for (int i = 0; i < 8; i++)
		n |= (uint64_t)length[i] << (8 * i);
	if (n < 2 || n > HEADER_MAX)
		MW_FAIL(err, DATA, "%s: not a safetensors file (its header would have %llu bytes)", path,
			(unsigned long long)n);
	char *text = malloc(n + 1);
	if (!text)
		MW_FAIL(err, RESOURCE, "out of memory reading %s", path);
	if (fread(text, 1, n, *f) != n) {
		free(text);
		MW_FAIL(err, DATA, "%s: ends inside its header", path);
	}
	*header = json_loadb(text, n, 0, &je);
	free(text);
	if (!json_is_object(*header))
		MW_FAIL(err, DATA, "%s: its header is not a JSON object (%s)", path, je.text);
	return 0;
}

int mw_tensor_file_about(const char *path, json_t **about, struct mw_err *err)
{
	FILE *f;
	json_t *header;
	int code = open_header(path, &f, &header, err);
	if (code == 0) {
		const char *text = json_string_value(
			json_object_get(json_object_get(header, "__metadata__"), "mixwild"));
		*about = text ? json_loads(text, 0, NULL) : NULL;
		if (!*about)
			code = mw_err_set(err, MW_EDATA,
				"%s: no \"mixwild\" metadata: not a file that mixwild wrote", path);
	}
	json_decref(header);
	if (f)
		fclose(f);
	return code;
}

static int load_one(FILE *f, long data, const char *path, const json_t *header, const struct mw_tensor *t,
	struct mw_err *err)
{
	const json_t *j = json_object_get(header, t->name), *shape = json_object_get(j, "shape");
	const char *dtype = json_string_value(json_object_get(j, "dtype"));
	if (!j)
		MW_FAIL(err, DATA, "%s: has no '%s': made by another kind of model or run?", path, t->name);
	bool same = dtype && !strcmp(dtype, "F32") && json_array_size(shape) == (size_t)t->ndim;
	for (int i = 0; same && i < t->ndim; i++)
		same = json_integer_value(json_array_get(shape, (size_t)i)) == (json_int_t)t->shape[i];
	if (!same)
		MW_FAIL(err, DATA,
			"%s: '%s' has another shape or type than here; was it made from data of another "
			"width?",
			path, t->name);
	size_t n = count(t);
	const json_t *at = json_object_get(j, "data_offsets"), *first = json_array_get(at, 0),
		     *end = json_array_get(at, 1);
	json_int_t from = json_integer_value(first), bytes = (json_int_t)(n * sizeof(float));
	if (!json_is_integer(first) || !json_is_integer(end) || from < 0 || json_integer_value(end) < from ||
		json_integer_value(end) - from != bytes || from > LONG_MAX - data)
		MW_FAIL(err, DATA, "%s: the data_offsets of '%s' don't fit its %lld bytes", path, t->name,
			(long long)bytes);
	if (fseek(f, data + (long)from, SEEK_SET) || fread(t->data, sizeof(float), n, f) != n)
		MW_FAIL(err, DATA, "%s: ends inside '%s'", path, t->name);
	return 0;
}

int mw_tensor_file_load(const char *path, const struct mw_tensor *t, size_t n, struct mw_err *err)
{
	FILE *f;
	json_t *header;
	int code = open_header(path, &f, &header, err);
	long data = code == 0 ? ftell(f) : 0;
	for (size_t i = 0; code == 0 && i < n; i++)
		code = load_one(f, data, path, header, &t[i], err);
	json_decref(header);
	if (f)
		fclose(f);
	return code;
}
