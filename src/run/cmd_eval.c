/* cmd_eval.c: `mixwild eval` and `mixwild predict`: a saved model on new data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "run/atomic_file.h"
#include "run/command.h"
#include "run/find.h"
#include "run/model_file.h"
#include "run/output.h"

#define BATCH       256
#define HEAVY_BATCH 32 /* rows that a net's memory is made for */

struct eval_options {
	char *labels, *out;
	int format;
	bool probabilities;
};

#define F(field) offsetof(struct eval_options, field)

static const struct mw_option eval_table[] = {
	{ "labels", MW_OPT_STRING, F(labels), NULL, 0, 0, NULL, "FILE",
		"IDX label file, where its name does not follow from the image file's." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL, "Form of the result." },
	{ 0 },
};

static const struct mw_option predict_table[] = {
	{ "labels", MW_OPT_STRING, F(labels), NULL, 0, 0, NULL, "FILE",
		"IDX label file, where its name does not follow from the image file's." },
	{ "probabilities", MW_OPT_BOOL, F(probabilities), "no", 0, 0, NULL, NULL,
		"Write what the model gives for each output (margin, value, class probabilities), not the "
		"label." },
	{ "out", MW_OPT_STRING, F(out), NULL, 0, 0, NULL, "FILE",
		"Write to this file, whole or not at all; default: stdout." },
	{ 0 },
};

/* A model and the data it is to be used on. */
struct use {
	json_t *about;
	struct mw_dataset like, *data;
	struct mw_model *model;
	float *x, *stats;
	void *work;
};

/* Images as bytes are shaped and scaled as those that the model was trained on. */
static int read_image(struct use *u, const char *path, struct mw_err *err)
{
	json_t *image = json_object_get(u->about, "image");
	struct mw_dataset *d = &u->like;
	if (!image)
		return 0;
	d->kind = MW_X_IMAGE;
	d->channels = (uint32_t)json_integer_value(json_object_get(image, "channels"));
	d->image_rows = (uint32_t)json_integer_value(json_object_get(image, "rows"));
	d->image_cols = (uint32_t)json_integer_value(json_object_get(image, "cols"));
	json_t *mean = json_object_get(image, "mean"), *scale = json_object_get(image, "scale");
	if (!d->channels || d->channels > MW_CHANNELS_MAX || json_array_size(mean) != d->channels ||
		json_array_size(scale) != d->channels)
		MW_FAIL(err, DATA, "%s: its \"mixwild\" metadata is incomplete (image)", path);
	for (uint32_t c = 0; c < d->channels; c++) {
		d->pixel_mean[c] = (float)json_number_value(json_array_get(mean, c));
		d->pixel_scale[c] = (float)json_number_value(json_array_get(scale, c));
	}
	return 0;
}

static int read_about(struct use *u, const char *path, struct mw_err *err)
{
	MW_TRY(mw_model_file_about(path, &u->about, err));
	json_t *labels = json_object_get(u->about, "labels");
	u->like.classes = (uint32_t)json_integer_value(json_object_get(u->about, "classes"));
	u->like.features = (uint32_t)json_integer_value(json_object_get(u->about, "features"));
	u->like.index_base = (uint32_t)json_integer_value(json_object_get(u->about, "index_base"));
	u->like.kind = json_is_true(json_object_get(u->about, "dense")) ? MW_X_DENSE : MW_X_CSR;
	MW_TRY(read_image(u, path, err));
	if (!u->like.features || json_array_size(labels) != u->like.classes)
		MW_FAIL(err, DATA, "%s: its \"mixwild\" metadata is incomplete", path);
	u->like.label_value = mw_alloc_array(u->like.classes, sizeof(double), "labels", err);
	if (!u->like.label_value)
		return err->code;
	for (uint32_t c = 0; c < u->like.classes; c++)
		u->like.label_value[c] = json_number_value(json_array_get(labels, c));
	return 0;
}

/* The model's options as they were when it was trained. */
static int make_model(struct use *u, const char *path, struct mw_err *err)
{
	const char *name = json_string_value(json_object_get(u->about, "model"));
	const struct mw_model_ops *ops = name ? mw_model_find(name) : NULL;
	void *options = NULL;
	int code = 0;
	if (!ops)
		MW_FAIL(err, DATA, "%s: made by a model '%s' that this mixwild does not have", path,
			name ? name : "");
	if (ops->options && !(options = calloc(1, ops->option_size)))
		MW_FAIL(err, RESOURCE, "out of memory");
	struct mw_option_group group = { "Model", NULL, ops->options, options };
	struct mw_options set = { 0 };
	if (options)
		code = mw_options_init(&set, &group, 1, err);
	for (const struct mw_option *o = ops->options; o && o->name && code == 0; o++) {
		if (!strcmp(o->name, "conv")) /* the training machine's; here auto takes what there is */
			continue;
		json_t *v = json_object_get(json_object_get(u->about, "config"), o->name);
		char *text = json_is_string(v)    ? mw_strdup(json_string_value(v))
			     : json_is_boolean(v) ? mw_strdup(json_is_true(v) ? "yes" : "no")
			     : json_is_number(v)  ? json_dumps(v, JSON_ENCODE_ANY)
						  : NULL;
		if (text)
			code = mw_options_set(&set, o->name, text, path, err);
		free(text);
	}
	if (code == 0)
		code = mw_model_new_spec(name, options, u->data, &u->model, err);
	if (options)
		mw_options_fini(&set);
	free(options);
	return code;
}

static int use_init(
	struct use *u, const char *model, const char *data, const char *labels, struct mw_err *err)
{
	MW_TRY(read_about(u, model, err));
	const char *name = json_string_value(json_object_get(u->about, "model"));
	const struct mw_model_ops *ops = name ? mw_model_find(name) : NULL;
	struct mw_data_request req = { .path = data,
		.labels = labels,
		.index_base = MW_BASE_AUTO,
		.like = &u->like,
		.keep_bytes = ops && ops->images };
	MW_TRY(mw_dataset_load(&req, &u->data, err));
	MW_TRY(make_model(u, model, err));
	u->x = mw_alloc_array(u->model->dim, sizeof(float), "the model", err);
	if (!u->x)
		return err->code;
	if (u->model->n_stats) {
		u->stats = mw_alloc_array(u->model->n_stats, sizeof(float), "the model", err);
		if (!u->stats)
			return err->code;
	}
	MW_TRY(mw_model_file_load(model, u->model, u->x, u->stats, err));
	u->work = u->model->ops->work_new(u->model, u->model->heavy ? HEAVY_BATCH : BATCH, err);
	if (!u->work)
		return err->code;
	if (u->stats)
		u->model->ops->use_stats(u->model, u->work, u->stats);
	return 0;
}

static void use_fini(struct use *u)
{
	if (u->work)
		u->model->ops->work_free(u->work);
	mw_free(u->x);
	mw_free(u->stats);
	mw_model_free(u->model);
	mw_dataset_free(u->data);
	mw_free(u->like.label_value);
	json_decref(u->about);
}

static uint32_t next_batch(const struct use *u, uint64_t *at, uint64_t *row)
{
	uint32_t n = 0;
	while (n < BATCH && *at < u->data->rows)
		row[n++] = (*at)++;
	return n;
}

/* --- eval --------------------------------------------------------------------------------------------------------- */

static void print_scores(struct mw_job *job, const struct use *u, const struct mw_score *s)
{
	int format = ((struct eval_options *)job->options)->format;
	double loss = s->loss / (double)s->n, accuracy = (double)s->correct / (double)s->n;
	bool classifies = u->model->ops->classifies;
	if (format == MW_OUT_JSON) {
		mw_output_json(job->out, json_pack("{sI sf so}", "rows", (json_int_t)s->n, "loss", loss,
						 "accuracy", classifies ? json_real(accuracy) : json_null()));
	} else if (format == MW_OUT_CSV) {
		fprintf(job->out, "rows,loss,accuracy\n%llu,%.9g,", (unsigned long long)s->n, loss);
		classifies ? fprintf(job->out, "%.9g\n", accuracy) : fprintf(job->out, "\n");
	} else {
		fprintf(job->out, "%llu rows: loss %.6f", (unsigned long long)s->n, loss);
		classifies ? fprintf(job->out, ", accuracy %.4f (%llu right)\n", accuracy,
				     (unsigned long long)s->correct)
			   : fprintf(job->out, "\n");
	}
}

static int eval_command(struct mw_job *job, struct mw_err *err)
{
	struct eval_options *o = job->options;
	struct use u = { 0 };
	struct mw_score s = { 0 };
	uint64_t row[BATCH], at = 0;
	int code = use_init(&u, job->positional[0], job->positional[1], o->labels, err);
	if (code == 0) {
		struct mw_batch b = { .data = u.data, .row = row, .n = 0 };
		while ((b.n = next_batch(&u, &at, row)))
			u.model->ops->score(u.model, u.work, &b, u.x, &s);
		print_scores(job, &u, &s);
	}
	use_fini(&u);
	return code;
}

/* --- predict ------------------------------------------------------------------------------------------------------ */

static double label_of(const struct use *u, const float *out)
{
	const struct mw_model *m = u->model;
	uint32_t best = 0;
	if (!u->like.classes)
		return (double)out[0];
	if (m->outputs == 1)
		return u->like.label_value[out[0] > 0];
	for (uint32_t k = 1; k < m->outputs; k++)
		if (out[k] > out[best])
			best = k;
	return u->like.label_value[best];
}

static void write_row(FILE *f, const struct use *u, const float *out, bool probabilities)
{
	if (!probabilities) {
		fprintf(f, "%.9g\n", label_of(u, out));
		return;
	}
	for (uint32_t k = 0; k < u->model->outputs; k++)
		fprintf(f, "%s%.9g", k ? " " : "", (double)out[k]);
	fputc('\n', f);
}

static int predict_all(struct use *u, FILE *f, bool probabilities, struct mw_err *err)
{
	uint32_t outputs = u->model->outputs;
	float *out = mw_alloc_array((size_t)BATCH * outputs, sizeof(float), "predictions", err);
	uint64_t row[BATCH], at = 0;
	if (!out)
		return err->code;
	struct mw_batch b = { .data = u->data, .row = row, .n = 0 };
	while ((b.n = next_batch(u, &at, row))) {
		u->model->ops->predict(u->model, u->work, &b, u->x, out);
		for (uint32_t i = 0; i < b.n; i++)
			write_row(f, u, out + (size_t)i * outputs, probabilities);
	}
	mw_free(out);
	return 0;
}

static int predict_command(struct mw_job *job, struct mw_err *err)
{
	struct eval_options *o = job->options;
	struct use u = { 0 };
	struct mw_atomic_file file = { 0 };
	int code = use_init(&u, job->positional[0], job->positional[1], o->labels, err);
	if (code == 0 && o->out)
		code = mw_atomic_file_open(&file, o->out, err);
	if (code == 0)
		code = predict_all(&u, o->out ? file.file : job->out, o->probabilities, err);
	if (file.file)
		code ? mw_atomic_file_abort(&file) : (code = mw_atomic_file_commit(&file, err), (void)0);
	use_fini(&u);
	return code;
}

const struct mw_command mw_command_eval = {
	.name = "eval",
	.summary = "Loss and accuracy of a saved model on a data set",
	.positionals = "MODEL DATA",
	.min_positionals = 2,
	.max_positionals = 2,
	.options = eval_table,
	.option_size = sizeof(struct eval_options),
	.examples = "mixwild eval runs/spam/model.safetensors data/spam-test.svm.gz\n",
	.run = eval_command,
};

const struct mw_command mw_command_predict = {
	.name = "predict",
	.summary = "Labels (or outputs) of a saved model for each row of a data set, one a line",
	.positionals = "MODEL DATA",
	.min_positionals = 2,
	.max_positionals = 2,
	.options = predict_table,
	.option_size = sizeof(struct eval_options),
	.examples = "mixwild predict runs/spam/model.safetensors data/spam-test.svm.gz > labels.txt\n",
	.run = predict_command,
};
