/* timeline.c: see timeline.h. */
#include "run/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"

static char *trim(char *s)
{
	while (*s == ' ' || *s == '\t' || *s == '\n')
		s++;
	size_t n = strlen(s);
	while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\n'))
		s[--n] = 0;
	return s;
}

static int parse_unit(const char *word, enum mw_timeline_unit *unit, struct mw_err *err)
{
	static const char *const words[][3] = { { "epochs", "epoch" }, { "steps", "step" },
		{ "seconds", "second", "s" } };
	for (int u = 0; u < 3; u++)
		for (int i = 0; i < 3; i++)
			if (words[u][i] && !strcmp(word, words[u][i])) {
				*unit = (enum mw_timeline_unit)u;
				return 0;
			}
	MW_FAIL(err, USAGE,
		"--timeline: '%s' is no unit of time; use epochs, steps (own steps of a worker) or seconds",
		word);
}

static int parse_change(struct mw_timeline_entry *e, char *text, struct mw_err *err)
{
	static const char *const keys[] = { "staleness", "straggler", "mix-every", "slack", "rate" };
	char *value = strchr(text, '=');
	if (!value)
		MW_FAIL(err, USAGE,
			"--timeline: '%s' changes nothing; write name=value, for example mix-every=16", text);
	*value++ = 0;
	text = trim(text);
	value = trim(value);
	int code = 0;
	if (!strcmp(text, "staleness") || !strcmp(text, "straggler")) {
		struct mw_sched *s;
		MW_TRY(mw_sched_parse(value, &s, err));
		e->owned_sched = s;
		*(strcmp(text, "staleness") ? &e->knobs.straggler : &e->knobs.staleness) = s;
	} else if (!strcmp(text, "mix-every")) {
		code = mw_parse_int(value, "--timeline mix-every", &e->knobs.mix_every, err);
		if (!code && e->knobs.mix_every < 1)
			MW_FAIL(err, USAGE, "--timeline: mix-every=%s: at least 1", value);
	} else if (!strcmp(text, "slack")) {
		code = mw_parse_float(value, "--timeline slack", &e->knobs.slack, err);
		if (!code && !(e->knobs.slack > 0 && e->knobs.slack <= 1))
			MW_FAIL(err, USAGE, "--timeline: slack=%s: more than 0, at most 1", value);
	} else if (!strcmp(text, "rate")) {
		struct mw_rate *r;
		MW_TRY(mw_rate_parse(value, &r, err));
		e->owned_rate = r;
		e->knobs.rate = r;
	} else {
		const char *near = mw_nearest(text, keys, sizeof(keys) / sizeof(*keys));
		MW_FAIL(err, USAGE,
			"--timeline: '%s' can't change during a run%s%s%s; staleness, straggler, mix-every, "
			"slack and rate can",
			text, near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
	}
	return code;
}

/* "at 2 epochs: mix-every=16" */
static int parse_entry(struct mw_timeline_entry *e, char *text, struct mw_err *err)
{
	char *colon = strchr(text, ':'), unit[20], end;
	e->applied_s = NAN;
	e->step = UINT64_MAX;
	if (colon)
		*colon = 0;
	if (!colon || sscanf(text, "at %lf %19s%c", &e->at, unit, &end) != 2 || !(e->at >= 0 && e->at < 1e15))
		MW_FAIL(err, USAGE,
			"--timeline: '%s': expected 'at TIME epochs|steps|seconds: name=value; ...'", text);
	MW_TRY(parse_unit(unit, &e->unit, err));
	char *change = trim(colon + 1);
	e->change = mw_strdup(change);
	return parse_change(e, change, err);
}

int mw_timeline_parse(
	const char *spec, const struct mw_knobs *first, struct mw_timeline **out, struct mw_err *err)
{
	struct mw_timeline *t = *out = mw_alloc(sizeof(*t), "the timeline", err);
	char *copy = mw_strdup(spec), *save = NULL;
	uint32_t n = 1;
	int code = t && copy ? 0 : MW_ERESOURCE;
	for (const char *c = spec; *c; c++)
		n += *c == ';';
	if (!code) {
		t->entry = mw_alloc_array(n, sizeof(*t->entry), "the timeline", err);
		code = t->entry ? 0 : MW_ERESOURCE;
	}
	for (char *s = code ? NULL : strtok_r(copy, ";", &save); s && !code; s = strtok_r(NULL, ";", &save)) {
		s = trim(s);
		if (!*s)
			continue;
		struct mw_timeline_entry *e = &t->entry[t->n++];
		e->knobs = t->n > 1 ? e[-1].knobs : *first;
		code = parse_entry(e, s, err);
		if (!code && t->n > 1 && e->unit == e[-1].unit && e->at < e[-1].at)
			code = mw_err_set(err, MW_EUSAGE,
				"--timeline: entry %u comes before the one in front of it; order them by "
				"time",
				t->n);
	}
	if (!code && !t->n)
		code = mw_err_set(err, MW_EUSAGE, "--timeline: no entry in '%s'", spec);
	free(copy);
	return code;
}

void mw_timeline_free(struct mw_timeline *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; t->entry && i < t->n; i++) {
		free(t->entry[i].change);
		mw_sched_free(t->entry[i].owned_sched);
		mw_rate_free(t->entry[i].owned_rate);
	}
	mw_free(t->entry);
	mw_free(t);
}

int mw_timeline_resolve(struct mw_timeline *t, uint64_t steps_per_epoch, struct mw_err *err)
{
	uint64_t last = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		struct mw_timeline_entry *e = &t->entry[i];
		if (e->unit == MW_AT_SECONDS)
			continue;
		e->step =
			(uint64_t)llround(e->unit == MW_AT_EPOCHS ? e->at * (double)steps_per_epoch : e->at);
		if (e->step < last)
			MW_FAIL(err, USAGE,
				"--timeline: entry %u (%s) comes before the one in front of it; order them "
				"by time",
				i + 1, e->change);
		last = e->step;
	}
	return 0;
}

void mw_timeline_tick(struct mw_timeline *t, double seconds, uint64_t step)
{
	for (uint32_t i = 0; t && i < t->n; i++) {
		struct mw_timeline_entry *e = &t->entry[i];
		if (e->unit == MW_AT_SECONDS && e->step == UINT64_MAX && seconds >= e->at)
			__atomic_store_n(&e->step, step, __ATOMIC_RELEASE);
	}
}

const struct mw_timeline_entry *mw_timeline_report(
	struct mw_timeline *t, uint32_t *next, uint64_t step, double seconds)
{
	if (mw_timeline_next(t, *next) > step)
		return NULL;
	struct mw_timeline_entry *e = &t->entry[(*next)++];
	e->applied_s = seconds;
	return e;
}
