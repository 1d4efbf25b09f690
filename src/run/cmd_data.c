/* cmd_data.c: `mixwild data FILE`: what is in a data file, and how fast it was read. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "data/dataset.h"
#include "run/command.h"
#include "run/output.h"

struct data_options {
	int index_base, label_kind, cache, format;
	int64_t features, threads, seed;
	char *labels;
	bool coarse;
};

#define F(field) offsetof(struct data_options, field)

/* Named and meant as in `mixwild train`. */
static const struct mw_option data_table[] = {
	{ "index-base", MW_OPT_CHOICE, F(index_base), "auto", 0, 0, "0|1|auto", NULL,
		"First feature index of LIBSVM text; auto: 0 if that occurs, else 1." },
	{ "features", MW_OPT_INT, F(features), "0", 0, 4294967294.0, NULL, NULL,
		"Number of features, a larger index being an error; 0: as found." },
	{ "labels", MW_OPT_STRING, F(labels), NULL, 0, 0, NULL, "FILE",
		"IDX label file, where its name does not follow from the image file's." },
	{ "label-kind", MW_OPT_CHOICE, F(label_kind), "auto", 0, 0, "auto|class|real", NULL,
		"Are labels classes or real targets?" },
	{ "coarse", MW_OPT_BOOL, F(coarse), "no", 0, 0, NULL, NULL,
		"CIFAR-100: the 20 coarse labels, not the 100 fine ones." },
	{ "seed", MW_OPT_INT, F(seed), "1", 0, 9e15, NULL, NULL, "Seed of synthetic data (synth:...)." },
	{ "threads", MW_OPT_INT, F(threads), "0", 0, 1024, NULL, NULL,
		"Threads that read the file; 0: one for each CPU this process may use." },
	{ "cache", MW_OPT_CHOICE, F(cache), "auto", 0, 0, "off|auto|on", NULL,
		"Binary cache of LIBSVM text: use the one that is there (auto), and write one if there is "
		"none (on)." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL,
		"Form of the result; csv: a heading and one line." },
	{ 0 },
};

struct summary {
	uint64_t nnz, row_min, row_max;
	double row_mean, density;
	double label_min, label_mean, label_max; /* real targets */
};

static uint64_t row_length(const struct mw_dataset *d, uint64_t row)
{
	uint64_t n = 0;
	if (d->kind == MW_X_CSR)
		return d->row_ptr[row + 1] - d->row_ptr[row];
	for (uint32_t j = 0; d->kind == MW_X_DENSE && j < d->features; j++)
		n += d->x[row * d->ld + j] != 0;
	for (uint32_t j = 0; d->kind == MW_X_IMAGE && j < d->features; j++)
		n += d->pixel[row * d->features + j] != 0;
	return n;
}

static void summarise(const struct mw_dataset *d, struct summary *s)
{
	double rows = (double)d->rows, label_sum = 0;
	*s = (struct summary){
		.row_min = d->rows ? UINT64_MAX : 0, .label_min = INFINITY, .label_max = -INFINITY
	};
	for (uint64_t i = 0; i < d->rows; i++) {
		uint64_t n = row_length(d, i);
		s->nnz += n;
		s->row_min = n < s->row_min ? n : s->row_min;
		s->row_max = n > s->row_max ? n : s->row_max;
		if (!d->y)
			continue;
		label_sum += (double)d->y[i];
		s->label_min = fmin(s->label_min, (double)d->y[i]);
		s->label_max = fmax(s->label_max, (double)d->y[i]);
	}
	s->row_mean = d->rows ? (double)s->nnz / rows : 0;
	s->density = d->rows && d->features ? s->row_mean / d->features : 0;
	s->label_mean = d->rows ? label_sum / rows : 0;
}

static const char *kind_name(const struct mw_dataset *d)
{
	switch (d->kind) {
	case MW_X_CSR: return "sparse";
	case MW_X_DENSE: return "dense";
	case MW_X_IMAGE: return "images";
	default: return "quadratic";
	}
}

static double mb_per_s(const struct mw_dataset *d)
{
	return d->load_s > 0 ? (double)d->file_bytes / d->load_s / 1e6 : 0;
}

static bool has_rows(const struct mw_dataset *d)
{
	return d->kind != MW_X_QUADRATIC;
}

static bool has_targets(const struct mw_dataset *d)
{
	return has_rows(d) && d->y && !d->classes && d->rows;
}

static void text_labels(const struct mw_dataset *d, const struct summary *s, FILE *f)
{
	if (has_targets(d))
		fprintf(f, "labels       real: min %g, mean %g, max %g\n", s->label_min, s->label_mean,
			s->label_max);
	if (!d->classes)
		return;
	fprintf(f, "labels       %u classes\n", d->classes);
	for (uint32_t c = 0; c < d->classes; c++)
		fprintf(f, "  %-10g %12llu  %6.2f %%\n", d->label_value[c],
			(unsigned long long)d->label_count[c],
			100 * (double)d->label_count[c] / (double)d->rows);
}

static void print_text(const struct mw_dataset *d, const struct summary *s, FILE *f)
{
	fprintf(f, "data         %s\n", d->name);
	fprintf(f, "format       %s, %s\n", d->format, kind_name(d));
	fprintf(f, "rows         %llu\n", (unsigned long long)d->rows);
	fprintf(f, "features     %u\n", d->features);
	if (d->image_rows)
		fprintf(f, "image        %u x %u, %u channel%s\n", d->image_rows, d->image_cols, d->channels,
			d->channels == 1 ? "" : "s");
	if (has_rows(d)) {
		fprintf(f, "non-zeros    %llu (density %.4g %%)\n", (unsigned long long)s->nnz,
			100 * s->density);
		fprintf(f, "row length   min %llu, mean %.4g, max %llu\n", (unsigned long long)s->row_min,
			s->row_mean, (unsigned long long)s->row_max);
	} else {
		fprintf(f, "noise        %g\n", (double)d->noise);
	}
	if (!strcmp(d->format, "libsvm"))
		fprintf(f, "index base   %u\n", d->index_base);
	text_labels(d, s, f);
	fprintf(f, "load         %.3f s", d->load_s);
	if (d->file_bytes)
		fprintf(f, ", %.1f MB, %.0f MB/s", (double)d->file_bytes / 1e6, mb_per_s(d));
	fputc('\n', f);
	if (d->cache_note)
		fprintf(f, "cache        %s\n", d->cache_note);
}

static json_t *json_labels(const struct mw_dataset *d)
{
	json_t *labels = json_array();
	for (uint32_t c = 0; c < d->classes; c++)
		json_array_append_new(labels, json_pack("{s:f, s:I}", "label", d->label_value[c], "count",
						      (json_int_t)d->label_count[c]));
	return labels;
}

static void print_json(const struct mw_dataset *d, const struct summary *s, FILE *f)
{
	json_t *root = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:I}", "data", d->name, "format",
		d->format, "kind", kind_name(d), "rows", (json_int_t)d->rows, "features",
		(json_int_t)d->features, "classes", (json_int_t)d->classes, "load_s", d->load_s, "mb_per_s",
		mb_per_s(d), "file_bytes", (json_int_t)d->file_bytes);
	if (has_rows(d)) {
		json_object_set_new(root, "nnz", json_integer((json_int_t)s->nnz));
		json_object_set_new(root, "density", json_real(s->density));
		json_object_set_new(root, "row_length",
			json_pack("{s:I, s:f, s:I}", "min", (json_int_t)s->row_min, "mean", s->row_mean,
				"max", (json_int_t)s->row_max));
		json_object_set_new(root, "labels", json_labels(d));
	} else {
		json_object_set_new(root, "noise", json_real((double)d->noise));
	}
	if (has_targets(d))
		json_object_set_new(root, "target",
			json_pack("{s:f, s:f, s:f}", "min", s->label_min, "mean", s->label_mean, "max",
				s->label_max));
	if (d->image_rows)
		json_object_set_new(
			root, "image", json_pack("[i, i]", (int)d->image_rows, (int)d->image_cols));
	if (!strcmp(d->format, "libsvm"))
		json_object_set_new(root, "index_base", json_integer(d->index_base));
	json_object_set_new(root, "cache", d->cache_note ? json_string(d->cache_note) : json_null());
	mw_output_json(f, root);
}

static void print_csv(const struct mw_dataset *d, const struct summary *s, FILE *f)
{
	fprintf(f, "data,format,kind,rows,features,nnz,density,row_min,row_mean,row_max,index_base,image_"
		   "rows,image_cols,"
		   "classes,label_counts,file_bytes,load_s,mb_per_s\n");
	mw_output_csv(f, d->name);
	fprintf(f, ",%s,%s,%llu,%u,%llu,%.9g,%llu,%.9g,%llu,%u,%u,%u,%u,", d->format, kind_name(d),
		(unsigned long long)d->rows, d->features, (unsigned long long)s->nnz, s->density,
		(unsigned long long)s->row_min, s->row_mean, (unsigned long long)s->row_max, d->index_base,
		d->image_rows, d->image_cols, d->classes);
	for (uint32_t c = 0; c < d->classes; c++)
		fprintf(f, "%s%g:%llu", c ? ";" : "", d->label_value[c],
			(unsigned long long)d->label_count[c]);
	fprintf(f, ",%llu,%.6g,%.6g\n", (unsigned long long)d->file_bytes, d->load_s, mb_per_s(d));
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct data_options *o = job->options;
	struct mw_data_request request = {
		.path = job->positional[0],
		.labels = o->labels,
		.label_kind = (enum mw_label_kind)o->label_kind,
		.index_base = (enum mw_index_base)o->index_base,
		.features = (uint32_t)o->features,
		.seed = (uint64_t)o->seed,
		.threads = (int)o->threads,
		.cache = (enum mw_cache_use)o->cache,
		.coarse = o->coarse,
	};
	struct mw_dataset *d = NULL;
	struct summary s;
	MW_TRY(mw_dataset_load(&request, &d, err));
	summarise(d, &s);
	if (o->format == MW_OUT_JSON)
		print_json(d, &s, job->out);
	else if (o->format == MW_OUT_CSV)
		print_csv(d, &s, job->out);
	else
		print_text(d, &s, job->out);
	mw_dataset_free(d);
	return MW_OK;
}

const struct mw_command mw_command_data = {
	.name = "data",
	.summary = "Describe a data file: rows, features, density, labels, loading speed",
	.positionals = "FILE|FOLDER|synth:SPEC",
	.min_positionals = 1,
	.max_positionals = 1,
	.uses = MW_NO_INTERRUPT,
	.options = data_table,
	.option_size = sizeof(struct data_options),
	.examples = "mixwild data data/spam-train.svm.gz\nmixwild data "
		    "data/fashion-test-images-idx3-ubyte.gz --format json\n"
		    "mixwild data synth:sparse,rows=1000,features=500,nnz=20\n",
	.run = run,
};
