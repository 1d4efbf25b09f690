/*
 * run_model_file.c: what a run leaves behind can be used again: parameters come back to the bit, damaged files are errors,
 * eval and predict agree with the run's summary, and --config repeats a run.
 */
#include "run_util.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "run/model_file.h"

#define SPARSE "data=synth:sparse,rows=400,features=60,nnz=6"
#define DENSE  "data=synth:dense,rows=400,features=10,classes=3"

/* --- round trip ---------------------------------------------------------------------------------------------------- */

static char *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s is missing", path);
	fseek(f, 0, SEEK_END);
	*size = (size_t)ftell(f);
	rewind(f);
	char *bytes = malloc(*size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, f), *size);
	bytes[*size] = 0;
	fclose(f);
	return bytes;
}

static const char *write_file(const char *name, const char *bytes, size_t size)
{
	const char *path = temporary_path(name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
	return path;
}

static void save(const struct mw_run *run, const char *path, float *x)
{
	struct mw_err err = { 0 };
	json_t *about = json_pack("{ss}", "text", "with \"quotes\" and \xc3\xa4");
	if (mw_model_file_save(path, run->model, x, NULL, about, &err))
		fail_msg("%s", err.msg);
	json_decref(about);
}

static void parameters_come_back(void **state)
{
	static const char *const models[] = { SPARSE " model=logistic", DENSE " model=softmax",
		"data=synth:quadratic,dim=1,rows=3 model=quad", SPARSE " model=squared bias=no" };
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct test_run t;
		struct mw_err err = { 0 };
		const char *path = temporary_path("trip.safetensors");
		json_t *about = NULL;
		run_prepare(&t, "protocol=hogwild workers=1 %s", models[i]);
		size_t dim = t.run->model->dim;
		float *x = calloc(dim, sizeof(*x)), *y = calloc(dim, sizeof(*y));
		for (size_t j = 0; j < dim;
			j++) /* odd values: subnormal, negative zero, infinite, all kinds of bits */
			x[j] = j == 0   ? 1e-42f
			       : j == 1 ? -0.0f
			       : j == 2 ? INFINITY
					: (float)sin((double)j) * 1e10f;
		save(t.run, path, x);
		assert_int_equal(mw_model_file_load(path, t.run->model, y, NULL, &err), 0);
		assert_memory_equal(x, y, dim * sizeof(*x));
		assert_int_equal(mw_model_file_about(path, &about, &err), 0);
		assert_string_equal(
			json_string_value(json_object_get(about, "text")), "with \"quotes\" and \xc3\xa4");
		json_decref(about);
		free(x);
		free(y);
		run_close(&t);
	}
}

/* The layout that every reader of the format expects: length, JSON header, data without gaps. */
static void the_format_is_safetensors(void **state)
{
	struct test_run t;
	size_t size, covered = 0;
	(void)state;
	run_prepare(&t, "protocol=hogwild workers=1 " DENSE " model=softmax");
	const char *path = temporary_path("format.safetensors"), *name;
	save(t.run, path, t.run->average);
	char *bytes = read_file(path, &size);
	uint64_t head = 0;
	for (int i = 0; i < 8; i++)
		head |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
	assert_int_equal(head % 8, 0);
	assert_int_equal(size, 8 + head + t.run->model->dim * sizeof(float));
	json_t *header = json_loadb(bytes + 8, head, 0, NULL), *entry;
	assert_true(json_is_object(header));
	json_object_foreach(header, name, entry)
	{
		if (!strcmp(name, "__metadata__"))
			continue;
		json_t *at = json_object_get(entry, "data_offsets");
		size_t n = sizeof(float), k;
		json_t *v;
		json_array_foreach(json_object_get(entry, "shape"), k, v) n *= (size_t)json_integer_value(v);
		assert_string_equal(json_string_value(json_object_get(entry, "dtype")), "F32");
		size_t from = (size_t)json_integer_value(json_array_get(at, 0));
		size_t to = (size_t)json_integer_value(json_array_get(at, 1));
		assert_int_equal(to - from, n);
		covered += n;
	}
	assert_int_equal(covered, t.run->model->dim * sizeof(float));
	json_decref(header);
	free(bytes);
	run_close(&t);
}

/* --- damaged files ------------------------------------------------------------------------------------------------- */

static void expect_data_error(const struct mw_run *run, const char *path, const char *what)
{
	struct mw_err err = { 0 };
	float *x = calloc(run->model->dim, sizeof(*x));
	int code = mw_model_file_load(path, run->model, x, NULL, &err);
	if (code != MW_EDATA)
		fail_msg("%s: loading gives %d (%s), not a data error", what, code, err.msg);
	if (!strstr(err.msg, path))
		fail_msg("%s: the message does not name the file: %s", what, err.msg);
	free(x);
}

static void truncated_files_are_errors(void **state)
{
	struct test_run t;
	size_t size;
	(void)state;
	run_prepare(&t, "protocol=hogwild workers=1 " DENSE " model=softmax");
	const char *path = temporary_path("whole.safetensors");
	save(t.run, path, t.run->average);
	char *bytes = read_file(path, &size);
	for (size_t n = 0; n < size; n += n < 16 || n > size - 16 ? 1 : 7)
		expect_data_error(t.run, write_file("cut.safetensors", bytes, n), "a file cut short");
	free(bytes);
	expect_data_error(t.run, temporary_path("not-there.safetensors"), "no file");
	run_close(&t);
}

static const char *with_header(const char *json, size_t floats)
{
	char bytes[2000] = { 0 };
	size_t n = strlen(json);
	assert_true(8 + n + floats * sizeof(float) <= sizeof(bytes));
	bytes[0] = (char)(n & 255);
	bytes[1] = (char)(n >> 8);
	memcpy(bytes + 8, json, n);
	return write_file("header.safetensors", bytes, 8 + n + floats * sizeof(float));
}

static void garbage_is_an_error(void **state)
{
	/* a quadratic of 3 parameters: one array "x" of shape [3] */
	static const char *const headers[] = { "{}", "[1]", "null", "{\"x\":3}", "{\"x\":{}}",
		"{\"x\":{\"dtype\":\"F32\"}}",
		"{\"x\":{\"dtype\":\"F64\",\"shape\":[3],\"data_offsets\":[0,12]}}",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,12]}}",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]}}",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[4,16]}}",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[-12,0]}}",
#define BIG "90000000000000000"
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[" BIG "00," BIG "12]}}",
#undef BIG
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":12}}",
		"{\"y\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
		"{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}" };
	struct test_run t;
	char random[500];
	(void)state;
	run_prepare(&t, "protocol=hogwild workers=1 data=synth:quadratic,dim=3,rows=1 model=quad");
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		expect_data_error(t.run, with_header(headers[i], 3), headers[i]);
	for (uint32_t seed = 0; seed < 50; seed++) {
		for (size_t i = 0; i < sizeof(random); i++)
			random[i] = (char)(mw_hash3(seed, 1, i) & 255);
		if (seed % 2) /* a header length that looks right */
			memcpy(random, "\x64\0\0\0\0\0\0\0", 8);
		expect_data_error(
			t.run, write_file("random.safetensors", random, sizeof(random)), "random bytes");
	}
	/* and the right one is none */
	float x[3];
	struct mw_err err = { 0 };
	const char *path =
		with_header("{\"x\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 3);
	if (mw_model_file_load(path, t.run->model, x, NULL, &err))
		fail_msg("%s", err.msg);
	json_t *about = NULL;
	assert_int_equal(
		mw_model_file_about(path, &about, &err), MW_EDATA); /* made by others: nothing about it */
	run_close(&t);
}

/* A failed save leaves the earlier file, and no temporary one. */
static void saving_is_whole_or_not_at_all(void **state)
{
	struct test_run t;
	struct mw_err err = { 0 };
	struct stat s;
	(void)state;
	run_prepare(&t, "protocol=hogwild workers=1 data=synth:quadratic,dim=3,rows=1 model=quad");
	json_t *about = json_object();
	assert_true(mw_model_file_save("/nonexistent-folder/m.safetensors", t.run->model, t.run->average,
			    NULL, about, &err) < 0);
	assert_non_null(strstr(err.msg, "/nonexistent-folder/m.safetensors"));
	json_decref(about);
	const char *path = temporary_path("twice.safetensors");
	save(t.run, path, t.run->average);
	save(t.run, path, t.run->average);
	assert_int_equal(stat(path, &s), 0);
	run_close(&t);
}

/* --- commands ------------------------------------------------------------------------------------------------------ */

/* Run a command to its end; its output is the caller's. Strings: options "name=value", others are arguments. */
static char *command(int want, const char *name, const char *const *word)
{
	struct mw_err err = { 0 };
	struct mw_job *job = NULL;
	char *argv[40] = { (char *)(uintptr_t) "mixwild", (char *)(uintptr_t)name }, *text = NULL;
	int argc = 2;
	size_t size;
	bool help;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	for (; *word && argc < 40; word++)
		argv[argc++] = (char *)(uintptr_t)*word;
	assert_int_equal(mw_job_new(name, &job, &err), 0);
	mw_job_set_msg(job, NULL);
	mw_job_set_out(job, out);
	int code = mw_job_parse(job, argc, argv, 2, &help, &err);
	if (code == 0)
		code = mw_job_run(job, &err);
	if (code != want)
		fail_msg("%s: %d, not %d: %s", name, code, want, err.msg);
	mw_job_free(job);
	fclose(out);
	return text;
}

static json_t *summary_of(const char *dir)
{
	char path[700];
	json_error_t e;
	snprintf(path, sizeof(path), "%s/run.json", dir);
	json_t *j = json_load_file(path, 0, &e);
	if (!j)
		fail_msg("%s:%d: %s", path, e.line, e.text);
	json_t *s = json_incref(json_object_get(j, "summary"));
	json_decref(j);
	assert_true(json_is_object(s));
	return s;
}

static double number(const json_t *j, const char *key)
{
	json_t *v = json_object_get(j, key);
	if (!json_is_number(v))
		fail_msg("%s is missing", key);
	return json_number_value(v);
}

/* A LIBSVM file of our own: eval and predict read the same rows as train. */
static const char *make_data(int classes)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t u = mw_hash3(3, 3, i), a = u % 20, c = classes == 2 ? a < 10 : a % (uint64_t)classes;
		fprintf(f, "%d", classes == 2 ? (c ? 1 : -1) : (int)(10 * c));
		fprintf(f, " %llu:1 %llu:0.5\n", (unsigned long long)(a + 1),
			(unsigned long long)(21 + u / 64 % 30));
	}
	fclose(f);
	const char *path = temporary_file(text);
	free(text);
	return path;
}

static void check_use(const char *model, int classes)
{
	char dir[600], file[700], data[600];
	snprintf(data, sizeof(data), "%s", make_data(classes));
	snprintf(dir, sizeof(dir), "%s", temporary_path(model));
	snprintf(file, sizeof(file), "%s/model.safetensors", dir);
	const char *train[] = { "--data", data, "--model", model, "--protocol", "hogwild", "--workers", "1",
		"--rate", "0.2", "--epochs", "3", "--out", dir, NULL };
	free(command(0, "train", train));
	json_t *s = summary_of(dir);
	const char *eval[] = { file, data, "--format", "json", NULL };
	char *text = command(0, "eval", eval);
	json_t *e = json_loads(text, 0, NULL);
	assert_true(json_is_object(e));
	assert_true(number(e, "rows") == 300);
	assert_true(fabs(number(e, "loss") - number(s, "train_loss")) < 1e-6);
	assert_true(fabs(number(e, "accuracy") - number(s, "train_accuracy")) < 1e-9);
	assert_true(number(e, "accuracy") > 0.9);
	free(text);
	/* predict: as many labels right as the accuracy says */
	const char *predict[] = { file, data, NULL };
	text = command(0, "predict", predict);
	size_t size, right = 0, rows = 0;
	char *truth = read_file(data, &size), *t = truth;
	for (char *p = text; *p; p = strchr(p, '\n') + 1, t = strchr(t, '\n') + 1, rows++)
		right += strtod(p, NULL) == strtod(t, NULL);
	assert_int_equal(rows, 300);
	assert_int_equal(right, lround(300 * number(e, "accuracy")));
	free(truth);
	free(text);
	/* probabilities: one number a class, or the margin, whose sign is the label */
	const char *outputs[] = { file, data, "--probabilities", NULL };
	text = command(0, "predict", outputs);
	char *end;
	double sum = 0;
	int n = 0;
	for (char *p = text; *p && *p != '\n'; p = end, n++)
		sum += strtod(p, &end);
	assert_int_equal(n, classes == 2 && strcmp(model, "softmax") ? 1 : classes);
	if (n > 1)
		assert_true(fabs(sum - 1) < 1e-5);
	free(text);
	json_decref(e);
	json_decref(s);
}

static void eval_and_predict_agree_with_training(void **state)
{
	(void)state;
	check_use("logistic", 2);
	check_use("hinge", 2);
	check_use("softmax", 4);
}

static void a_model_does_not_fit_other_data(void **state)
{
	char dir[600], file[700], data[600];
	(void)state;
	snprintf(data, sizeof(data), "%s", make_data(2));
	snprintf(dir, sizeof(dir), "%s", temporary_path("fit"));
	snprintf(file, sizeof(file), "%s/model.safetensors", dir);
	const char *train[] = { "--data", data, "--workers", "1", "--epochs", "1", "--out", dir, NULL };
	free(command(0, "train", train));
	const char *wide[] = { file, temporary_file("1 1:1 5000:1\n"), NULL };
	free(command(MW_EDATA, "eval", wide));
	const char *label[] = { file, temporary_file("7 1:1\n"), NULL };
	free(command(MW_EDATA, "eval", label));
	const char *none[] = { "/nonexistent/model.safetensors", data, NULL };
	free(command(MW_EDATA, "eval", none));
}

/* --init goes on from a model; the first evaluation is that model's. */
static void init_starts_from_a_model(void **state)
{
	char dir[600], file[700], data[600], again[600];
	(void)state;
	snprintf(data, sizeof(data), "%s", make_data(2));
	snprintf(dir, sizeof(dir), "%s", temporary_path("init"));
	snprintf(again, sizeof(again), "%s", temporary_path("init-again"));
	snprintf(file, sizeof(file), "%s/model.safetensors", dir);
	const char *train[] = { "--data", data, "--workers", "1", "--epochs", "1", "--out", dir, NULL };
	free(command(0, "train", train));
	const char *more[] = { "--data", data, "--workers", "1", "--epochs", "0", "--init", file, "--out",
		again, NULL };
	free(command(0, "train", more));
	json_t *a = summary_of(dir), *b = summary_of(again);
	assert_true(number(a, "train_loss") == number(b, "train_loss"));
	json_decref(a);
	json_decref(b);
}

/* --- repeating a run ----------------------------------------------------------------------------------------------- */

static void config_repeats_a_run(void **state)
{
	static const char *const kinds[][2] = { { "async-ring", "logistic" }, { "cached", "hinge" },
		{ "ssp", "logistic" }, { "local-sgd", "logistic" } };
	(void)state;
	for (int i = 0; i < 4; i++) {
		char first[600], second[600], other[600], json[700], model[2][700], data[600];
		size_t size[2];
		snprintf(data, sizeof(data), "%s", make_data(2));
		snprintf(first, sizeof(first), "%s", temporary_path(kinds[i][0]));
		snprintf(json, sizeof(json), "%s-2", kinds[i][0]);
		snprintf(second, sizeof(second), "%s", temporary_path(json));
		snprintf(json, sizeof(json), "%s-3", kinds[i][0]);
		snprintf(other, sizeof(other), "%s", temporary_path(json));
		snprintf(json, sizeof(json), "%s/run.json", first);
		const char *run[] = { "--data", data, "--model", kinds[i][1], "--protocol", kinds[i][0],
			"--workers", "3", "--engine", "sim", "--epochs", "2", "--rate", "0.1", "--seed", "5",
			"--straggler", "geometric:2", "--staleness", "uniform:0,3", "--l2", "0.001", "--out",
			first, NULL };
		const char *again[] = { "--config", json, "--out", second, NULL };
		const char *seed[] = { "--config", json, "--seed", "6", "--out", other, NULL };
		free(command(0, "train", run));
		free(command(0, "train", again));
		free(command(0, "train", seed));
		json_t *a = summary_of(first), *b = summary_of(second), *c = summary_of(other);
		assert_true(number(a, "train_loss") == number(b, "train_loss"));
		assert_true(number(a, "virtual_seconds") == number(b, "virtual_seconds"));
		assert_true(json_equal(json_object_get(a, "staleness"), json_object_get(b, "staleness")));
		assert_true(number(a, "train_loss") != number(c, "train_loss"));
		json_decref(a);
		json_decref(b);
		json_decref(c);
		/* and the models, but for the name of the folder in their headers, are the same bits */
		snprintf(model[0], sizeof(model[0]), "%s/model.safetensors", first);
		snprintf(model[1], sizeof(model[1]), "%s/model.safetensors", second);
		char *x = read_file(model[0], &size[0]), *y = read_file(model[1], &size[1]);
		size_t floats = 51 * sizeof(float); /* 50 columns and the bias */
		assert_memory_equal(x + size[0] - floats, y + size[1] - floats, floats);
		free(x);
		free(y);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameters_come_back),
		cmocka_unit_test(the_format_is_safetensors),
		cmocka_unit_test(truncated_files_are_errors),
		cmocka_unit_test(garbage_is_an_error),
		cmocka_unit_test(saving_is_whole_or_not_at_all),
		cmocka_unit_test(eval_and_predict_agree_with_training),
		cmocka_unit_test(a_model_does_not_fit_other_data),
		cmocka_unit_test(init_starts_from_a_model),
		cmocka_unit_test(config_repeats_a_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
