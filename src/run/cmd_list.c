/* cmd_list.c: `mixwild list`: all that this build can do, from the registry. */
#include <stddef.h>
#include <string.h>

#include "comm/graph.h"
#include "registry.h"
#include "run/command.h"
#include "run/output.h"

#define NAME_WIDTH 16

struct list_options {
	int format;
};

/* One line of the list. */
struct item {
	const char *name, *summary, *detail;
};

static const struct {
	const char *plural, *family;
} kinds[] = {
	{ "protocols", "protocol" },
	{ "models", "model" },
	{ "optimizers", "optimizer" },
	{ "schedules", "schedule" },
	{ "graphs", "graph" },
	{ "formats", "format" },
	{ "commands", "command" },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static const struct mw_option list_table[] = {
	{ "format", MW_OPT_CHOICE, offsetof(struct list_options, format), "text", 0, 0, "text|json|csv", NULL,
		"Form of the list." },
	{ 0 },
};

/* Item number i of a family; false after the last one. */
static bool get(const char *family, size_t i, struct item *item)
{
	size_t n, k = 0;
	if (!strcmp(family, "graph")) {
		*item = (struct item){ mw_graph_kinds[i][0], mw_graph_kinds[i][1], NULL };
		return item->name;
	}
	const struct mw_plugin *p = mw_plugins(&n);
	for (size_t j = 0; j < n; j++)
		if (!strcmp(p[j].family, family) && k++ == i) {
			*item = (struct item){ p[j].name, p[j].summary, p[j].detail };
			return true;
		}
	return false;
}

static void text_item(FILE *f, const struct item *item)
{
	fprintf(f, "  %-*s  %s", NAME_WIDTH, item->name, item->summary);
	if (item->detail)
		fprintf(f, " (%s)", item->detail);
	fputc('\n', f);
}

static json_t *json_item(const struct item *item)
{
	json_t *object = json_pack("{s:s, s:s}", "name", item->name, "summary", item->summary);
	if (item->detail)
		json_object_set_new(object, "detail", json_string(item->detail));
	return object;
}

static void csv_item(FILE *f, const char *family, const struct item *item)
{
	const char *fields[] = { family, item->name, item->summary, item->detail };
	for (int i = 0; i < 4; i++) {
		mw_output_csv(f, fields[i]);
		fputc(i < 3 ? ',' : '\n', f);
	}
}

/* Print kind k as text or CSV, or add it to the JSON object. */
static void list_kind(size_t k, int format, FILE *f, json_t *root)
{
	struct item item;
	json_t *array = json_array();
	if (format == MW_OUT_TEXT)
		fprintf(f, "%s:\n", kinds[k].plural);
	for (size_t i = 0; get(kinds[k].family, i, &item); i++)
		if (format == MW_OUT_TEXT)
			text_item(f, &item);
		else if (format == MW_OUT_JSON)
			json_array_append_new(array, json_item(&item));
		else
			csv_item(f, kinds[k].family, &item);
	json_object_set_new(root, kinds[k].plural, array);
}

static int find_kind(const char *name, struct mw_err *err)
{
	const char *names[KINDS];
	for (size_t k = 0; k < KINDS; k++) {
		names[k] = kinds[k].plural;
		if (!strcmp(name, kinds[k].plural))
			return (int)k;
	}
	const char *nearest = mw_nearest(name, names, KINDS);
	MW_FAIL(err, USAGE, "there is no list of '%s' (there are: %s)%s%s%s", name,
		"protocols, models, optimizers, schedules, graphs, formats, commands",
		nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct list_options *o = job->options;
	int only = job->n_positional ? find_kind(job->positional[0], err) : (int)KINDS;
	MW_TRY(only);
	json_t *root = json_object();
	if (o->format == MW_OUT_CSV)
		fprintf(job->out, "family,name,summary,detail\n");
	for (size_t k = 0; k < KINDS; k++)
		if (only == (int)KINDS || only == (int)k)
			list_kind(k, o->format, job->out, root);
	if (o->format == MW_OUT_JSON)
		mw_output_json(job->out, root);
	else
		json_decref(root);
	return MW_OK;
}

const struct mw_command mw_command_list = {
	.name = "list",
	.summary = "List what there is: protocols, models, optimizers, schedules, graphs, formats",
	.positionals = "[protocols|models|optimizers|schedules|graphs|formats|commands]",
	.max_positionals = 1,
	.uses = MW_NO_INTERRUPT,
	.options = list_table,
	.option_size = sizeof(struct list_options),
	.examples = "mixwild list\nmixwild list protocols --format json\n",
	.run = run,
};
