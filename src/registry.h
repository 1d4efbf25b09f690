/* registry.h: everything in registry.def as one list, whatever its family. */
#ifndef MW_REGISTRY_H
#define MW_REGISTRY_H

#include <stddef.h>

#include "base/option.h"

struct mw_plugin {
	const char *family;  /* "protocol", "model", "optimizer", "schedule", "format", "command" */
	const char *name;    /* as users write it */
	const char *summary; /* one line */
	const char *detail;  /* NULL, or schedules: the syntax; protocols: what a preset stands for */
	const struct mw_option *options; /* its table; NULL: none */
	size_t option_size;
	char owner[64], title[64]; /* "model logistic" (option groups), "Model logistic" (headings) */
};

/* All of them, families together, in the order of registry.def within a family. Static. Thread-safe. */
const struct mw_plugin *mw_plugins(size_t *n);

/* The plug-in of this name, or NULL. What follows a ':' (mlp:256,128) is not part of the name. */
const struct mw_plugin *mw_plugin_find(const char *family, const char *name);

/* Unknown names: a USAGE error that names the nearest and all there are. Always negative. */
int mw_plugin_unknown(const char *family, const char *name, struct mw_err *err);

#endif
