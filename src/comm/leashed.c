/*
 * leashed.c: one replica as a chain of whole versions: a reader always gets one version, a writer makes the
 * next and retries on the newest when it lost the race (Leashed-SGD: Baeckstroem, Walulya, Papatriantafilou,
 * Tsigas 2021).
 */
#include "comm/protocol_make.h"

static int setup(
	struct mw_protocol *p, const void *options, const struct mw_protocol_config *c, struct mw_err *err)
{
	(void)options;
	(void)c;
	MW_TRY(mw_make_rows(p, 1, err));
	mw_make_uniform_pi(p);
	p->versioned = true;
	return MW_OK;
}

const struct mw_protocol_ops mw_protocol_leashed = {
	.name = "leashed",
	.summary = "one shared replica in whole versions, lock-free",
	.default_access = "racy",
	.setup = setup,
};
