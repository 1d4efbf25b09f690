/* sequential.c: one worker, one replica: what every protocol is compared with. */
#include <inttypes.h>

#include "comm/protocol_make.h"

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	(void)options;
	if (c->workers != 1)
		MW_FAIL(err, USAGE,
			"protocol sequential has one worker, not %" PRIu32 ": use --workers 1, or hogwild",
			c->workers);
	MW_TRY(mw_make_rows(p, 1, err));
	mw_make_own_rows(p, 0, 1);
	mw_make_uniform_pi(p);
	return MW_OK;
}

const struct mw_protocol_ops mw_protocol_sequential = {
	.name = "sequential",
	.summary = "one worker, one replica: plain SGD",
	.default_access = "racy",
	.setup = setup,
};
