/* sync_ring.c: SyncDR, synchronous gossip on the ring: a preset. */
#include "comm/protocol_make.h"

#include <string.h>

int mw_make_require_ring(const struct mw_protocol *p, const char *general, struct mw_err *err)
{
	if (strcmp(p->graph->spec, "ring"))
		MW_FAIL(err, USAGE, "protocol %s is for the ring: use --protocol %s --graph %s", p->ops->name,
			general, p->graph->spec);
	return MW_OK;
}

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	(void)options;
	(void)c;
	MW_TRY(mw_make_require_ring(p, "sync-gossip", err));
	return mw_make_sync_gossip(p, err);
}

const struct mw_protocol_ops mw_protocol_sync_ring = {
	.name = "sync-ring",
	.summary = "SyncDR: synchronous gossip on the ring",
	.expands = "sync-gossip --graph ring",
	.default_graph = "ring",
	.default_access = "racy",
	.setup = setup,
};
