/* output.c: see output.h. */
#include "run/output.h"

#include <string.h>

void mw_output_json(FILE *f, json_t *root)
{
	json_dumpf(root, f, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
	fputc('\n', f);
	json_decref(root);
}

void mw_output_csv(FILE *f, const char *text)
{
	if (!text || !strpbrk(text, ",\"\r\n")) {
		fputs(text ? text : "", f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}
