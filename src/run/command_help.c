/* command_help.c: a command's --help and manual page. */
#include "run/command.h"

#include <string.h>

static const char *space_before_positionals(const struct mw_command *c)
{
	return c->positionals ? " " : "";
}

void mw_job_help(const struct mw_job *job, FILE *f, int columns)
{
	const struct mw_command *c = job->command;
	fprintf(f, "Usage: mixwild %s [OPTION]...%s%s\n", c->name, space_before_positionals(c),
		c->positionals ? c->positionals : "");
	fprintf(f, "%s.\n", c->summary);
	mw_options_help(&job->set, f, columns);
	if (!c->examples)
		return;
	fprintf(f, "\nExamples:\n");
	for (const char *line = c->examples; *line;) {
		size_t length = strcspn(line, "\n");
		fprintf(f, "  ");
		fwrite(line, 1, length, f);
		fputc('\n', f);
		line += length + (line[length] == '\n');
	}
}

/* Text as roff with every '-' a minus that can be copied. */
static void roff(FILE *f, const char *text)
{
	for (; *text; text++)
		if (*text == '\\')
			fputs("\\e", f);
		else if (*text == '-')
			fputs("\\-", f);
		else
			fputc(*text, f);
}

static void man_end(const struct mw_command *c, FILE *f)
{
	fprintf(f, ".SH EXIT STATUS\n"
		   "0 done; 2 wrong options or arguments; 3 data that is missing or wrong; 4 the machine "
		   "lacks a resource;\n"
		   "5 training diverged; 128+n ended by signal n, after saving where there is something to "
		   "save.\n");
	if (c->examples) {
		fprintf(f, ".SH EXAMPLES\n.nf\n");
		roff(f, c->examples);
		fprintf(f, ".fi\n");
	}
	fprintf(f, ".SH SEE ALSO\n.BR mixwild (1)\n");
}

void mw_job_man(const struct mw_job *job, FILE *f)
{
	const struct mw_command *c = job->command;
	fprintf(f, ".TH MIXWILD\\-");
	for (const char *s = c->name; *s; s++)
		fputc(*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s, f);
	fprintf(f, " 1 \"\" \"mixwild %s\" \"User Commands\"\n", mw_version());
	fprintf(f, ".SH NAME\nmixwild\\-%s \\- ", c->name);
	roff(f, c->summary);
	fprintf(f, "\n.SH SYNOPSIS\n.B mixwild %s\n[\\fIOPTION\\fR]...", c->name);
	if (c->positionals)
		fprintf(f, " \\fI%s\\fR", c->positionals);
	fputc('\n', f);
	mw_options_man(&job->set, f);
	man_end(c, f);
}
