/* async_ps.c: parameter server without waiting: push to the server, then renew the own copy (theory.md 1.2a).
 */
#include "comm/protocol_make.h"

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	(void)options;
	(void)c;
	return mw_make_server_refresh(p, err);
}

const struct mw_protocol_ops mw_protocol_async_ps = {
	.name = "async-ps",
	.summary = "parameter server, every worker at its own pace",
	.default_access = "atomic",
	.setup = setup,
};
