/* plugin_util.h: the option struct of a plug-in from text, for tests of models and optimizers. */
#ifndef MW_TESTS_PLUGIN_UTIL_H
#define MW_TESTS_PLUGIN_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"

/* A struct with the table's defaults, then "key=value key=value" set; free() it (tables with strings aren't meant). */
static inline void *plugin_options(const struct mw_option *table, size_t size, const char *text)
{
	struct mw_options set = { 0 };
	struct mw_err err = { 0 };
	void *target = calloc(1, size + 1), *copy = malloc(size + 1);
	struct mw_option_group group = { "Test", NULL, table, target };
	char *words = strdup(text);
	if (mw_options_init(&set, &group, table ? 1 : 0, &err) < 0)
		fail_msg("%s", err.msg);
	for (char *save, *w = strtok_r(words, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
		char *value = strchr(w, '=');
		*value++ = '\0';
		if (mw_options_set(&set, w, value, "test", &err) < 0)
			fail_msg("%s", err.msg);
	}
	memcpy(copy, target, size);
	mw_options_fini(&set);
	free(target);
	free(words);
	return copy;
}

#endif
