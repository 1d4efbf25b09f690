/* report_page.h: what the page of `mixwild report` is made of. Write errors are left in the stream. */
#ifndef MW_RUN_REPORT_PAGE_H
#define MW_RUN_REPORT_PAGE_H

#include <stdio.h>

#include "run/past.h"

/* The page up to its first section, with all of its style: nothing comes from the network. */
void mw_report_head(const char *title, FILE *out);
void mw_report_foot(FILE *out);
/* A table of the runs: what they were and what came out. */
void mw_report_runs(const struct mw_pasts *p, FILE *out);
/* Who ran where: nodes, cores and hardware threads with their workers, one drawing for each different layout. */
void mw_report_layouts(const struct mw_pasts *p, FILE *out);
/* Every option: those that all runs have in common, and those that differ, run by run. */
void mw_report_options(const struct mw_pasts *p, FILE *out);
/* Machine, version, seed and command line of each run. */
void mw_report_origins(const struct mw_pasts *p, FILE *out);

#endif
