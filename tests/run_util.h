/*
 * run_util.h: training runs inside a test. A test tells a run its options as on the command line ("workers=4 rate=0.1"),
 * drives it segment by segment, and looks at its replicas, counters and histograms.
 */
#ifndef MW_TESTS_RUN_UTIL_H
#define MW_TESTS_RUN_UTIL_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/find.h"
#include "run/record.h"
#include "run/run.h"
#include "run/worker.h"

struct test_run {
	struct mw_job *job;
	struct mw_run *run;
};

/* Make and start a run; options: "name=value name=value ..."; a ~ in a value stands for a space. A failure fails the test. */
void run_open(struct test_run *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same without starting the engine: the replicas are there, the workers are not. */
void run_prepare(struct test_run *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_start(struct test_run *t);
/* The code that making the run fails with, 0 if it doesn't; err has the message. */
int run_error(struct mw_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_close(struct test_run *t);

/* Go on until every worker has done this many own steps (under turns: this many events in all have happened). */
void run_until(struct test_run *t, uint64_t end);
/* All steps that the options ask for, then what is on its way. */
void run_whole(struct test_run *t);
/* Evaluate; returns the training loss. run->average is the virtual average after it. */
double run_loss(struct test_run *t);

uint64_t run_pushes(const struct test_run *t);
bool run_in_turns(const struct test_run *t);
/* Staleness of all workers; the caller frees it (mw_free). */
struct mw_hist *run_staleness(const struct test_run *t);

/* Has MW_LONG been set: full products, longer runs? */
bool run_long(void);

/* Protocols by what they do, from their own data: with a period of their own that is longer than one step? */
bool protocol_has_period(const struct mw_protocol_ops *ops);
bool protocol_takes_access(const struct mw_protocol_ops *ops);
bool protocol_has_plans(const struct mw_protocol_ops *ops);
bool protocol_takes_knobs(const struct mw_protocol_ops *ops, const char *knobs);
enum mw_clock protocol_clock(const struct mw_protocol_ops *ops);

#define FOR_EACH_PROTOCOL(p) for (size_t i_##p = 0; ((p) = mw_protocols[i_##p]); i_##p++)

/* fn(arg, i) on n threads at once; returns when all are done. */
void on_threads(uint32_t n, void (*fn)(void *arg, uint32_t i), void *arg);

/* A temporary file with this text; the path is valid until the next call but seven, files go at exit. */
const char *temporary_file(const char *text);
/* A path in the test's temporary folder, which is removed at exit; valid as long. */
const char *temporary_path(const char *name);

#endif
