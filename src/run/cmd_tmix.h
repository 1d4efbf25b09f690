/* cmd_tmix.h: what `mixwild tmix` shares between its parts; not for others. */
#ifndef MW_RUN_CMD_TMIX_H
#define MW_RUN_CMD_TMIX_H

#include <jansson.h>

#include "mixing/exact.h"
#include "run/command.h"
#include "run/output.h"

/* A protocol and what it was made from. */
struct tmix_subject {
	struct mw_graph *graph;
	struct mw_protocol *p;
};

int tmix_subject_init(struct tmix_subject *s, const char *protocol, const void *options, const char *graph,
	uint32_t workers, enum mw_activation activation, struct mw_err *err);
void tmix_subject_fini(struct tmix_subject *s);

/* Table 1 of the theory: t_mix as l2 / tv for n = 2 .. 64. */
int tmix_table(FILE *f, enum mw_output format, uint64_t seed, uint32_t replicas, struct mw_err *err);

/* NULL for NAN; an integer where it is one. */
json_t *tmix_number(double x);

#endif
