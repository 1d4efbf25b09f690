/* async_ring.c: AsyncDR, pairwise gossip on the ring: a preset. */
#include "comm/protocol_make.h"

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	MW_TRY(mw_make_require_ring(p, "async-gossip", err));
	return mw_make_async_gossip(p, options, c->random_edges, err);
}

const struct mw_protocol_ops mw_protocol_async_ring = {
	.name = "async-ring",
	.summary = "AsyncDR: pairwise gossip on the ring",
	.expands = "async-gossip --graph ring",
	.default_graph = "ring",
	.default_access = "locked",
	.options = mw_pair_option_table,
	.option_size = sizeof(struct mw_pair_options),
	.setup = setup,
};
