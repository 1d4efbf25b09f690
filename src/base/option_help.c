/* option_help.c: options for people: --help and the OPTIONS section of a man page; see option.h. */
#include "base/option_impl.h"

#include <string.h>

#define INDENT        2
#define HELP_COLUMN   28
#define COLUMNS_MIN   40
#define CHOICES_WIDTH 24 /* longer lists of choices go into the text */

/* What a name is followed by; empty for flags. */
static const char *metavar(const struct mw_option *opt)
{
	if (opt->type == MW_OPT_BOOL)
		return "";
	if (opt->metavar)
		return opt->metavar;
	switch (opt->type) {
	case MW_OPT_INT: return "N";
	case MW_OPT_FLOAT: return "X";
	case MW_OPT_CHOICE: return strlen(opt->choices) <= CHOICES_WIDTH ? opt->choices : "WORD";
	default: return "TEXT";
	}
}

/* "--[no-]": flags that are named "no-..." have no second negation to show. */
static const char *dashes(const struct mw_option *opt)
{
	return opt->type == MW_OPT_BOOL && strncmp(opt->name, "no-", 3) ? "--[no-]" : "--";
}

static void append(char *text, size_t size, const char *separator, const char *label, const char *value)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, "%s%s%s", used > 1 ? separator : "", label, value);
}

/* "[default 10; 1..100]", empty if there is nothing to say. */
static void note(const struct mw_option *opt, char *text, size_t size)
{
	char range[100];
	mw_option_range(opt, true, range, sizeof(range));
	snprintf(text, size, "[");
	if (opt->type == MW_OPT_CHOICE && strcmp(metavar(opt), opt->choices))
		append(text, size, "; ", "", opt->choices);
	if (range[0])
		append(text, size, "; ", "", range);
	if (opt->def && opt->def[0])
		append(text, size, "; ", "default ", opt->def);
	if (text[1])
		append(text, size, "", "", "]");
	else
		text[0] = 0;
}

/* Print words from column `at` on, wrapped, with later lines indented to `column`; returns the column
 * reached. */
static int wrap(FILE *f, const char *text, int at, int column, int columns)
{
	bool first = true;
	while (*(text += strspn(text, " \n"))) {
		int length = (int)strcspn(text, " \n");
		if (at > column && at + 1 + length > columns) {
			fprintf(f, "\n%*s", column, "");
			at = column;
			first = true;
		}
		at += fprintf(f, "%s%.*s", first && at == column ? "" : " ", length, text);
		text += length;
		first = false;
	}
	return at;
}

static void help_entry(const struct mw_option *opt, FILE *f, int columns)
{
	char extra[400];
	int column = columns < 60 ? 8 : HELP_COLUMN;
	const char *meta = metavar(opt);
	int at = fprintf(f, "%*s%s%s%s%s", INDENT, "", dashes(opt), opt->name, meta[0] ? " " : "", meta);
	if (at + 2 > column)
		fprintf(f, "\n%*s", column, "");
	else
		fprintf(f, "%*s", column - at, "");
	note(opt, extra, sizeof(extra));
	at = wrap(f, opt->help, column, column, columns);
	wrap(f, extra, at, column, columns);
	fputc('\n', f);
}

/* Does an earlier group have the same table? It is shown there. */
static bool shown_before(const struct mw_options *o, const struct mw_option_group *group)
{
	for (const struct mw_option_group *g = o->groups; g < group; g++)
		if (g->table == group->table)
			return true;
	return false;
}

/* "Model logistic", or "Model logistic, hinge" when later groups have the same table. */
static void group_title(
	const struct mw_options *o, const struct mw_option_group *group, char *text, size_t size)
{
	snprintf(text, size, "%s", group->title);
	for (const struct mw_option_group *g = group + 1; g < o->groups + o->n_groups; g++) {
		const char *space = strchr(g->title, ' ');
		if (g->table == group->table)
			append(text, size, ", ", "", space ? space + 1 : g->title);
	}
}

/* Is there a heading to print before this entry? */
static bool heading(const struct mw_options *o, const struct mw_option_walk *walk, char *text, size_t size)
{
	if (walk->opt->type == MW_OPT_HEADING)
		snprintf(text, size, "%s", walk->opt->help);
	else if (walk->opt == walk->group->table)
		group_title(o, walk->group, text, size);
	else
		return false;
	return true;
}

void mw_options_help(const struct mw_options *o, FILE *f, int columns)
{
	struct mw_option_walk walk = { 0 };
	if (columns < COLUMNS_MIN)
		columns = COLUMNS_MIN;
	while (mw_option_next(o, &walk)) {
		char title[400];
		if (shown_before(o, walk.group))
			continue;
		if (heading(o, &walk, title, sizeof(title)))
			fprintf(f, "\n%s:\n", title);
		if (walk.opt->type != MW_OPT_HEADING)
			help_entry(walk.opt, f, columns);
	}
}

/* Text as roff, never at the risk of being taken for a request. */
static void roff(FILE *f, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", f);
	for (; *text; text++)
		if (*text == '\\')
			fputs("\\e", f);
		else if (*text == '-')
			fputs("\\-", f);
		else
			fputc(*text == '\n' ? ' ' : *text, f);
}

void mw_options_man(const struct mw_options *o, FILE *f)
{
	struct mw_option_walk walk = { 0 };
	fprintf(f, ".SH OPTIONS\n");
	while (mw_option_next(o, &walk)) {
		char extra[400], title[400];
		if (shown_before(o, walk.group))
			continue;
		if (heading(o, &walk, title, sizeof(title))) {
			fprintf(f, ".SS \"");
			roff(f, title);
			fprintf(f, "\"\n");
		}
		if (walk.opt->type == MW_OPT_HEADING)
			continue;
		note(walk.opt, extra, sizeof(extra));
		fprintf(f, ".TP\n\\fB");
		roff(f, dashes(walk.opt));
		roff(f, walk.opt->name);
		fputs(metavar(walk.opt)[0] ? "\\fR \\fI" : "", f);
		roff(f, metavar(walk.opt));
		fprintf(f, "\\fR\n");
		roff(f, walk.opt->help);
		if (extra[0]) {
			fputc('\n', f);
			roff(f, extra);
		}
		fputc('\n', f);
	}
}
