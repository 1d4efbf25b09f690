/* registry.c: see registry.h. */
#include "registry.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "comm/protocol.h"
#include "data/dataset.h"
#include "model/model.h"
#include "optim/optim.h"
#include "run/command.h"
#include "sched/sched.h"

#define MW_FORMAT(n)   extern const struct mw_format_ops mw_format_##n;
#define MW_MODEL(n)    extern const struct mw_model_ops mw_model_##n;
#define MW_OPTIM(n)    extern const struct mw_optim_ops mw_optim_##n;
#define MW_SCHED(n)    extern const struct mw_sched_ops mw_sched_##n;
#define MW_PROTOCOL(n) extern const struct mw_protocol_ops mw_protocol_##n;
#define MW_COMMAND(n)  extern const struct mw_command mw_command_##n;
#include "registry.def"

enum {
	PLUGINS = 0
#define MW_FORMAT(n)   +1
#define MW_MODEL(n)    +1
#define MW_OPTIM(n)    +1
#define MW_SCHED(n)    +1
#define MW_PROTOCOL(n) +1
#define MW_COMMAND(n)  +1
#include "registry.def"
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct mw_plugin plugin[PLUGINS]; /* Sync: written once under pthread_once, read after it. */
static size_t n_plugins;                 /* Sync: as plugin. */

static void add(const char *family, const char *name, const char *summary, const char *detail,
	const struct mw_option *options, size_t option_size)
{
	struct mw_plugin *p = &plugin[n_plugins++];
	*p = (struct mw_plugin){ family, name, summary, detail, options, option_size, "", "" };
	snprintf(p->owner, sizeof(p->owner), "%s %s", family, name);
	memcpy(p->title, p->owner, sizeof(p->title));
	p->title[0] = (char)toupper((unsigned char)p->title[0]);
}

static void fill(void)
{
#define MW_PROTOCOL(n)                                                                          \
	add("protocol", mw_protocol_##n.name, mw_protocol_##n.summary, mw_protocol_##n.expands, \
		mw_protocol_##n.options, mw_protocol_##n.option_size);
#include "registry.def"
#define MW_MODEL(n)                                                                       \
	add("model", mw_model_##n.name, mw_model_##n.summary, NULL, mw_model_##n.options, \
		mw_model_##n.option_size);
#include "registry.def"
#define MW_OPTIM(n)                                                                           \
	add("optimizer", mw_optim_##n.name, mw_optim_##n.summary, NULL, mw_optim_##n.options, \
		mw_optim_##n.option_size);
#include "registry.def"
#define MW_SCHED(n) add("schedule", mw_sched_##n.name, mw_sched_##n.summary, mw_sched_##n.syntax, NULL, 0);
#include "registry.def"
#define MW_FORMAT(n) add("format", mw_format_##n.name, mw_format_##n.summary, NULL, NULL, 0);
#include "registry.def"
#define MW_COMMAND(n)                                                                             \
	add("command", mw_command_##n.name, mw_command_##n.summary, NULL, mw_command_##n.options, \
		mw_command_##n.option_size);
#include "registry.def"
}

const struct mw_plugin *mw_plugins(size_t *n)
{
	pthread_once(&once, fill);
	*n = n_plugins;
	return plugin;
}

const struct mw_plugin *mw_plugin_find(const char *family, const char *name)
{
	size_t n, length = strcspn(name, ":");
	const struct mw_plugin *p = mw_plugins(&n);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].family, family) && strlen(p[i].name) == length &&
			!memcmp(p[i].name, name, length))
			return &p[i];
	return NULL;
}

int mw_plugin_unknown(const char *family, const char *name, struct mw_err *err)
{
	const char *names[PLUGINS], *nearest;
	char list[600] = "", bare[64];
	size_t n, n_names = 0, used = 0;
	const struct mw_plugin *p = mw_plugins(&n);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(p[i].family, family))
			continue;
		names[n_names++] = p[i].name;
		if (used < sizeof(list))
			used += (size_t)snprintf(
				list + used, sizeof(list) - used, "%s%s", used ? ", " : "", p[i].name);
	}
	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(name, ":"), name);
	nearest = mw_nearest(bare, names, n_names);
	MW_FAIL(err, USAGE, "there is no %s '%s' (there are: %s)%s%s%s", family, bare, list,
		nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}
