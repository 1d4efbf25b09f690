/* about.c: see about.h. */
#include "cli/about.h"

#include <string.h>

#include "mixwild.h"

static const char purpose[] =
	"Train models with many pinned threads on shared memory, asynchronously, and measure\n"
	"what asynchrony does: staleness, consensus, and the effective mixing time.\n";

static const char *const examples[] = {
	"mixwild topo",
	"mixwild train --data synth:sparse,rows=20000,features=5000 --protocol hogwild",
	"mixwild tmix --protocol async-ps --workers 8",
	"mixwild list protocols",
};
#define EXAMPLES (sizeof(examples) / sizeof(*examples))

static int name_width(void)
{
	size_t width = 0;
	for (size_t i = 0; mw_command_name(i); i++)
		if (strlen(mw_command_name(i)) > width)
			width = strlen(mw_command_name(i));
	return (int)width;
}

void cli_help(FILE *f)
{
	fprintf(f, "Usage: mixwild COMMAND [OPTION]... [ARGUMENT]...\n%s\nCommands:\n", purpose);
	for (size_t i = 0; mw_command_name(i); i++)
		fprintf(f, "  %-*s  %s\n", name_width(), mw_command_name(i), mw_command_summary(i));
	fprintf(f, "\n'mixwild COMMAND --help' shows the options of a command; 'mixwild --version' the "
		   "version.\n"
		   "\nExamples:\n");
	for (size_t i = 0; i < EXAMPLES; i++)
		fprintf(f, "  %s\n", examples[i]);
	fprintf(f, "\nExit status: 0 done, 2 wrong usage, 3 data, 4 resources of the machine, 5 diverged,\n"
		   "128+n ended by signal n (after saving).\n");
}

/* Text as roff with every '-' a minus that can be copied. */
static void roff(FILE *f, const char *text)
{
	for (; *text; text++)
		if (*text == '-')
			fputs("\\-", f);
		else
			fputc(*text, f);
}

void cli_man(FILE *f)
{
	fprintf(f, ".TH MIXWILD 1 \"\" \"mixwild %s\" \"User Commands\"\n", mw_version());
	fprintf(f, ".SH NAME\nmixwild \\- train models asynchronously on shared memory, and measure what "
		   "asynchrony does\n");
	fprintf(f, ".SH SYNOPSIS\n.B mixwild\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n");
	fprintf(f, ".SH DESCRIPTION\n%s", purpose);
	fprintf(f, ".SH COMMANDS\nEach has a manual page of its own, \\fBmixwild\\-\\fICOMMAND\\fR(1).\n");
	for (size_t i = 0; mw_command_name(i); i++) {
		fprintf(f, ".TP\n.B %s\n", mw_command_name(i));
		roff(f, mw_command_summary(i));
		fputc('\n', f);
	}
	fprintf(f, ".SH OPTIONS\n.TP\n.B \\-\\-help\nShow the commands.\n.TP\n.B \\-\\-version\nShow the "
		   "version.\n");
	fprintf(f, ".SH EXIT STATUS\n0 done; 2 wrong options or arguments; 3 data that is missing or wrong; "
		   "4 the machine\n"
		   "lacks a resource; 5 training diverged; 128+n ended by signal n, after saving where there "
		   "is something\n"
		   "to save.\n.SH EXAMPLES\n.nf\n");
	for (size_t i = 0; i < EXAMPLES; i++) {
		roff(f, examples[i]);
		fputc('\n', f);
	}
	fprintf(f, ".fi\n");
}
