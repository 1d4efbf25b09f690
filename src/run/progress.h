/* progress.h: the one line that a terminal shows while a run goes on. */
#ifndef MW_RUN_PROGRESS_H
#define MW_RUN_PROGRESS_H

#include "run/run.h"

/* Redraw, at most five times a second, if messages go to a terminal. Called by the controller alone. */
void mw_progress_draw(struct mw_run *run);
/* Take the line away, so that something else can be printed. */
void mw_progress_clear(struct mw_run *run);
/* A message for people, on lines of its own; nothing where none are wanted. */
void mw_say(struct mw_run *run, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Moving average of the workers' mini-batch losses. */
double mw_running_loss(const struct mw_run *run);
/* "1m03s", "2h05m" */
void mw_format_duration(double seconds, char *out, size_t size);
/* "12.3M", "456k" */
void mw_format_count(double value, char *out, size_t size);

#endif
