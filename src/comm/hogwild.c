/* hogwild.c: one replica that all workers read and write at will (Recht, Re, Wright, Niu 2011). */
#include "comm/protocol_make.h"

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	(void)options;
	(void)c;
	MW_TRY(mw_make_rows(p, 1, err));
	mw_make_uniform_pi(p);
	return MW_OK;
}

const struct mw_protocol_ops mw_protocol_hogwild = {
	.name = "hogwild",
	.summary = "one shared replica, no waiting",
	.default_access = "racy",
	.setup = setup,
};
