/* sched.c: schedules from their specs; see sched.h. */
#include "sched/sched.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"
#include "sched/sched_make.h"

#define MW_SCHED(name) extern const struct mw_sched_ops mw_sched_##name;
#include "registry.def"

const struct mw_sched_ops *const mw_scheds[] = {
#define MW_SCHED(name) &mw_sched_##name,
#include "registry.def"
	NULL,
};
#define N_SCHEDS (sizeof(mw_scheds) / sizeof(mw_scheds[0]) - 1)

struct mw_sched {
	const struct mw_sched_ops *ops;
	char *spec;
	void *priv;
};

int mw_sched_number(const char **at, char sep, const char *what, double *out, struct mw_err *err)
{
	if (!*at || !**at)
		MW_FAIL(err, USAGE, "%s is missing", what);
	const char *end = sep ? strchr(*at, sep) : NULL;
	char *text = strndup(*at, end ? (size_t)(end - *at) : strlen(*at));
	if (!text)
		MW_FAIL(err, RESOURCE, "out of memory: schedule");
	int rc = mw_parse_float(text, what, out, err);
	if (rc == MW_OK && (!isfinite(*out) || *out < 0))
		rc = mw_err_set(err, MW_EUSAGE, "%s must be finite and at least 0, not %s", what, text);
	free(text);
	*at = end ? end + 1 : NULL;
	return rc;
}

int mw_sched_keyed(
	const char **at, char sep, const char *key, const char *what, double *out, struct mw_err *err)
{
	size_t len = strlen(key);
	if (!*at || strncmp(*at, key, len) || (*at)[len] != '=')
		MW_FAIL(err, USAGE, "%s: expected %s=NUMBER%s%s", what, key, *at && **at ? ", not " : "",
			*at ? *at : "");
	*at += len + 1;
	return mw_sched_number(at, sep, what, out, err);
}

int mw_sched_whole(double v, const char *what, uint64_t *out, struct mw_err *err)
{
	if (v < 1 || v > 0x1p53 || v != floor(v))
		MW_FAIL(err, USAGE, "%s must be a whole number of at least 1, not %g", what, v);
	*out = (uint64_t)v;
	return MW_OK;
}

static bool is_number(const char *spec)
{
	return strchr("0123456789.+-", *spec) != NULL;
}

static const struct mw_sched_ops *find(const char *spec, const char **args, struct mw_err *err)
{
	const char *names[N_SCHEDS], *colon = strchr(spec, ':');
	size_t len = colon ? (size_t)(colon - spec) : strlen(spec);
	*args = colon ? colon + 1 : "";
	if (is_number(spec)) {
		*args = spec;
		return &mw_sched_constant;
	}
	for (size_t i = 0; i < N_SCHEDS; i++) {
		names[i] = mw_scheds[i]->name;
		if (strlen(names[i]) == len && !memcmp(names[i], spec, len))
			return mw_scheds[i];
	}
	char *name = strndup(spec, len);
	const char *near = name ? mw_nearest(name, names, N_SCHEDS) : NULL;
	mw_err_set(err, MW_EUSAGE, "unknown schedule \"%.*s\"%s%s%s; `mixwild list schedules` names all",
		(int)len, spec, near ? ": did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	free(name);
	return NULL;
}

int mw_sched_parse(const char *spec, struct mw_sched **out, struct mw_err *err)
{
	const char *args;
	const struct mw_sched_ops *ops = find(spec, &args, err);
	*out = NULL;
	if (!ops)
		return MW_EUSAGE;
	struct mw_sched *s = mw_alloc(sizeof(*s), "schedule", err);
	if (!s)
		return MW_ERESOURCE;
	s->ops = ops;
	s->spec = mw_strdup(spec);
	s->priv = mw_alloc(ops->priv_size, "schedule", err);
	int rc = s->priv ? ops->parse(s->priv, args, err) : MW_ERESOURCE;
	if (rc == MW_OK && !s->spec)
		rc = mw_err_set(err, MW_ERESOURCE, "out of memory: schedule");
	if (rc == MW_OK)
		*out = s;
	else
		mw_sched_free(s);
	return rc;
}

void mw_sched_free(struct mw_sched *s)
{
	if (!s)
		return;
	if (s->priv && s->ops->fini)
		s->ops->fini(s->priv);
	mw_free(s->priv);
	free(s->spec);
	mw_free(s);
}

double mw_sched_value(const struct mw_sched *s, uint64_t seed, uint32_t worker, uint64_t step)
{
	return s->ops->value(s->priv, seed, worker, step);
}

double mw_sched_max(const struct mw_sched *s)
{
	return s->ops->max(s->priv);
}

bool mw_sched_is_zero(const struct mw_sched *s)
{
	return !s || s->ops->max(s->priv) == 0;
}

double mw_sched_fixed(const struct mw_sched *s)
{
	double max = s->ops->max(s->priv);
	return s->ops->min(s->priv) == max ? max : NAN;
}

const char *mw_sched_spec(const struct mw_sched *s)
{
	return s->spec;
}
