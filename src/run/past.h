/* past.h: runs that are over, as their folders tell: what `mixwild report` and `mixwild plot` read. */
#ifndef MW_RUN_PAST_H
#define MW_RUN_PAST_H

#include <jansson.h>

#include "base/err.h"
#include "run/figure.h"

struct mw_past {
	char *folder, *name; /* name: the folder without what all have in common */
	json_t *run;         /* run.json */
	json_t *metrics;     /* array: the evaluations of metrics.jsonl */
};

struct mw_pasts {
	struct mw_past *past;
	size_t n;
};

/*
 * Read run folders; a folder that is no run's is searched for run folders below it (a sweep's). DATA: there is no run, or a
 * damaged one. On error too mw_pasts_free works.
 */
int mw_pasts_load(const char *const *folder, size_t n, struct mw_pasts *out, struct mw_err *err);
void mw_pasts_free(struct mw_pasts *p);

/* What is at "summary/t_mix/exact/value" of an object, borrowed; NULL: nothing. */
json_t *mw_past_at(const json_t *j, const char *path);
/* A number there; NAN if there is none. */
double mw_past_number(const json_t *j, const char *path);
/* A text there, or NULL. */
const char *mw_past_text(const json_t *j, const char *path);
/* Mixing time in gradient steps: exact, else the best estimate; NAN: unknown. */
double mw_past_tmix(const struct mw_past *p);
/* Gradient steps after which the (validation or) training loss was at most target for the first time; NAN: never. */
double mw_past_steps_to(const struct mw_past *p, double target);

/* The figures of runs by name: "loss-steps" and so on, in the report's order; NULL after the last. */
extern const char *const mw_past_figures[];
/*
 * One of them; *out is NULL where the runs have nothing to show in it. target: the loss of tmix-target; NAN: one that
 * three runs in four reach. USAGE: no such figure.
 */
int mw_past_figure(const struct mw_pasts *p, const char *name, double target, struct mw_figure **out,
	struct mw_err *err);

#endif
