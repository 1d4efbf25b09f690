/* cmd_trace.c: `mixwild trace FILE`: what a recorded trace holds, or its events as CSV. */
#include <stdlib.h>
#include <string.h>

#include "run/command.h"
#include "run/output.h"
#include "run/trace.h"

struct trace_options {
	int format;
};

static const struct mw_option table[] = {
	{ "format", MW_OPT_CHOICE, offsetof(struct trace_options, format), "text", 0, 0, "text|json|csv",
		NULL, "A summary as text or JSON, or every event as a CSV line." },
	{ 0 },
};

static const char *const kinds[] = { "view", "push", "mix" };

struct sums {
	uint64_t n[MW_EVENT_KINDS], bytes, first, last;
	double ticks[MW_EVENT_KINDS];
};

static void add_up(const struct mw_trace *t, uint32_t w, struct sums *s)
{
	struct mw_event e;
	struct mw_touch touch[MW_TOUCH_MAX];
	for (uint64_t at = 0; mw_trace_next(t, w, &at, &e, touch);) {
		s->n[e.kind]++;
		s->ticks[e.kind] += e.duration;
		s->first = !s->first || e.begin < s->first ? e.begin : s->first;
		s->last = e.begin + e.duration > s->last ? e.begin + e.duration : s->last;
	}
	s->bytes += t->worker[w].bytes;
}

static void print_csv(FILE *f, const struct mw_trace *t)
{
	struct mw_event e;
	struct mw_touch touch[MW_TOUCH_MAX];
	fprintf(f, "worker,step,kind,begin_ticks,duration_ticks,flags,touched\n");
	for (uint32_t w = 0; w < t->n_workers; w++)
		for (uint64_t at = 0; mw_trace_next(t, w, &at, &e, touch);) {
			fprintf(f, "%u,%u,%s,%llu,%u,%u,", w, e.step, kinds[e.kind],
				(unsigned long long)e.begin, e.duration, e.flags);
			for (int i = 0; i < e.n_touch; i++)
				fprintf(f, "%s%c%u:%u", i ? " " : "",
					touch[i].row & MW_TOUCH_WRITE ? 'w' : 'r',
					touch[i].row & ~MW_TOUCH_WRITE, touch[i].version);
			fputc('\n', f);
		}
}

static void print_summary(FILE *f, const struct mw_trace *t, const struct sums *s, bool as_json)
{
	double hz = json_number_value(json_object_get(t->header, "ticks_per_s"));
	double seconds = hz > 0 ? (double)(s->last - s->first) / hz : 0;
	const char *protocol = json_string_value(json_object_get(t->header, "protocol"));
	json_t *events = json_object();
	for (int k = 0; k < MW_EVENT_KINDS; k++)
		json_object_set_new(events, kinds[k],
			json_pack("{sI sf}", "n", (json_int_t)s->n[k], "mean_ns",
				s->n[k] && hz > 0 ? s->ticks[k] / (double)s->n[k] / hz * 1e9 : 0.0));
	if (as_json) {
		mw_output_json(f, json_pack("{sO so sf sI}", "header", t->header, "events", events, "seconds",
					  seconds, "bytes", (json_int_t)s->bytes));
		return;
	}
	fprintf(f, "protocol %s, %u workers, %.3f s, %llu bytes; versions %s; %s\n",
		protocol ? protocol : "?", t->n_workers, seconds, (unsigned long long)s->bytes,
		json_is_true(json_object_get(t->header, "versions")) ? "known: the order is exact"
								     : "unknown: ordered by time",
		json_is_true(json_object_get(t->header, "windows")) ? "windows of the run" : "the whole run");
	for (int k = 0; k < MW_EVENT_KINDS; k++)
		fprintf(f, "%-5s %10llu events, %.0f ns each\n", kinds[k], (unsigned long long)s->n[k],
			json_number_value(json_object_get(json_object_get(events, kinds[k]), "mean_ns")));
	json_decref(events);
}

static int trace_command(struct mw_job *job, struct mw_err *err)
{
	struct trace_options *o = job->options;
	struct mw_trace *t = NULL;
	struct sums s = { 0 };
	int code = mw_trace_load(job->positional[0], &t, err);
	if (code == 0) {
		for (uint32_t w = 0; w < t->n_workers; w++)
			add_up(t, w, &s);
		if (o->format == MW_OUT_CSV)
			print_csv(job->out, t);
		else
			print_summary(job->out, t, &s, o->format == MW_OUT_JSON);
	}
	mw_trace_free(t);
	return code;
}

const struct mw_command mw_command_trace = {
	.name = "trace",
	.summary = "What a recorded trace holds",
	.positionals = "FILE",
	.min_positionals = 1,
	.max_positionals = 1,
	.options = table,
	.option_size = sizeof(struct trace_options),
	.examples =
		"mixwild train --data data/spam-train.svm.gz --protocol async-ps --access seqlock --trace "
		"ps.trace\n"
		"mixwild trace ps.trace\n",
	.run = trace_command,
};
