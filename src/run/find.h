/* find.h: protocols of registry.def by name (models and optimizers: model.h, optim.h). */
#ifndef MW_RUN_FIND_H
#define MW_RUN_FIND_H

#include "comm/protocol.h"

/* NULL if there is none of this name. */
const struct mw_protocol_ops *mw_protocol_find(const char *name);
/* All protocols, NULL-terminated. */
extern const struct mw_protocol_ops *const mw_protocols[];

#endif
