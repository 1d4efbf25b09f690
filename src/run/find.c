/* find.c: see find.h. */
#include "run/find.h"

#include <string.h>

#define MW_PROTOCOL(name) extern const struct mw_protocol_ops mw_protocol_##name;
#include "registry.def"

#define MW_PROTOCOL(name) &mw_protocol_##name,
const struct mw_protocol_ops *const mw_protocols[] = {
#include "registry.def"
	NULL
};

const struct mw_protocol_ops *mw_protocol_find(const char *name)
{
	for (size_t i = 0; mw_protocols[i]; i++)
		if (!strcmp(mw_protocols[i]->name, name))
			return mw_protocols[i];
	return NULL;
}
