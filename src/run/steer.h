/*
 * steer.h: the closed loop of --target-tmix: an actuator (the period of exchanges, or the slack) is steered so that the
 * mixing time measured in the running system stays at a target. Feed-forward: the exact value sets the actuator before
 * the first step. Feedback: after every full estimate window of the probe columns the logarithm of the actuator moves by
 * a share of the logarithm of measured over target (an integral controller; the share damps it, since the window behind
 * the estimate is all that is known of the present).
 *
 * A period need not be whole: see mix_part of struct mw_knobs. So any target that is not too small can be met.
 *
 * Free workers exchange once a period, at a step of it that is drawn (mw_knobs_next_scattered). Under even periods the
 * exchanges of different workers would drift in and out of phase, and t_mix with that, by a factor of up to 2 for two nodes.
 */
#ifndef MW_RUN_STEER_H
#define MW_RUN_STEER_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "base/err.h"

struct mw_run;
struct mw_steer;

enum mw_actuator { MW_ACTUATE_PERIOD, MW_ACTUATE_SLACK };

/* One full estimate. Times in native steps. */
struct mw_steer_window {
	double measured, error;
	double value, next; /* the actuator in this window, and in the one that follows */
	uint64_t begin, end;
};

/*
 * With --target-tmix: find where the actuator starts (run->knobs), and make the timeline through which it will move. Before
 * workers exist, after the run's knobs have been resolved. USAGE: a target that no value of the actuator reaches (the
 * message says which can be), or options that exclude it. run->steer stays NULL without --target-tmix.
 */
int mw_steer_new(struct mw_run *run, struct mw_err *err);
void mw_steer_free(struct mw_steer *s);

/* Does every exchange follow a step of its period that is drawn? Else always the last one. Any thread. */
bool mw_steer_scatters(const struct mw_steer *s);
/* The target, in native steps. */
double mw_steer_target(const struct mw_steer *s);
/* A full estimate has come in at native step `step`. Called by who looks at the probes. */
void mw_steer_window(struct mw_steer *s, double measured, double error, uint64_t step);
/* Has a change been asked for that is not in effect yet? Until then no probe segment should begin. Same caller. */
bool mw_steer_pending(const struct mw_steer *s);
/* Under a barrier: let what was asked for take effect at own step `step`. Called by one worker while all wait. */
void mw_steer_publish(struct mw_steer *s, uint64_t step);

/* The i-th window, or NULL while it has not ended. Any thread. */
const struct mw_steer_window *mw_steer_at(const struct mw_steer *s, uint32_t i);
/* Of a line of metrics: {target, unit, measured, error, actuator, value, next, steps: [begin, end]}. */
json_t *mw_steer_window_json(const struct mw_steer *s, const struct mw_steer_window *w);
/* Of the summary: the same for the mean from the second window on, and all windows. */
json_t *mw_steer_json(const struct mw_steer *s);
const char *mw_steer_actuator(const struct mw_steer *s); /* "mix-every" or "slack" */
const char *mw_steer_unit(const struct mw_steer *s);     /* of all times: "events" or "rounds" */
/* How the start was found, for people. */
const char *mw_steer_start(const struct mw_steer *s);

#endif
