/* rate.c: learning-rate schedules; see rate.h. Values come from IEEE arithmetic and approx.h alone: the same
 * bits everywhere. */
#include "optim/rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/approx.h"
#include "base/mem.h"
#include "base/option.h"

enum kind { CONSTANT, STEP, COSINE, INVSQRT };

static const char *const kind_name[] = { "constant", "step", "cosine", "invsqrt", NULL };
static const char *const kind_keys[][5] = {
	[CONSTANT] = { "warmup" },
	[STEP] = { "factor", "every", "at", "warmup" },
	[COSINE] = { "min", "warmup" },
	[INVSQRT] = { "after", "warmup" },
};

struct mw_rate {
	enum kind kind;
	double a;      /* the rate before any change */
	double factor; /* step */
	double every;  /* step: epochs; 0: `at` is used */
	double *at;    /* step: epochs of the changes */
	size_t n_at;
	double min;    /* cosine */
	double after;  /* invsqrt */
	double warmup; /* epochs */
};

static int number(const char *spec, const char *text, double low, bool open, const char *what, double *out,
	struct mw_err *err)
{
	char label[200];
	snprintf(label, sizeof(label), "learning rate '%.100s': %s", spec, what);
	MW_TRY(mw_parse_float(text, label, out, err));
	if (!isfinite(*out) || *out < low || (open && *out == low))
		MW_FAIL(err, USAGE, "%s must be %s %g, not %s", label, open ? "greater than" : "at least",
			low, text);
	return 0;
}

/* "E1/E2/..." */
static int parse_at(struct mw_rate *r, const char *spec, char *list, struct mw_err *err)
{
	size_t n = 1;
	for (const char *p = list; *p; p++)
		n += *p == '/';
	free(r->at);
	r->n_at = 0;
	r->at = calloc(n, sizeof(*r->at));
	if (!r->at)
		MW_FAIL(err, RESOURCE, "out of memory: learning rate");
	for (char *save, *e = strtok_r(list, "/", &save); e; e = strtok_r(NULL, "/", &save))
		MW_TRY(number(spec, e, 0, false, "at", &r->at[r->n_at++], err));
	if (!r->n_at)
		MW_FAIL(err, USAGE, "learning rate '%s': at needs epochs, for example at=30/60", spec);
	return 0;
}

static int unknown_key(enum kind kind, const char *spec, const char *key, struct mw_err *err)
{
	const char *const *keys = kind_keys[kind];
	size_t n = 0, used = 0;
	char list[100] = "";
	for (; keys[n]; n++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", n ? ", " : "", keys[n]);
	const char *near = mw_nearest(key, keys, n);
	MW_FAIL(err, USAGE, "learning rate '%s': %s has no '%s'%s%s%s (it takes %s)", spec, kind_name[kind],
		key, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

static int parse_key(struct mw_rate *r, const char *spec, char *item, struct mw_err *err)
{
	char *value = strchr(item, '=');
	if (!value)
		MW_FAIL(err, USAGE, "learning rate '%s': '%s' is no KEY=VALUE", spec, item);
	*value++ = '\0';
	for (size_t i = 0; kind_keys[r->kind][i]; i++) {
		if (strcmp(kind_keys[r->kind][i], item))
			continue;
		if (!strcmp(item, "warmup"))
			return number(spec, value, 0, false, item, &r->warmup, err);
		if (!strcmp(item, "factor"))
			return number(spec, value, 0, true, item, &r->factor, err);
		if (!strcmp(item, "every"))
			return number(spec, value, 0, true, item, &r->every, err);
		if (!strcmp(item, "after"))
			return number(spec, value, 0, true, item, &r->after, err);
		if (!strcmp(item, "min"))
			return number(spec, value, 0, false, item, &r->min, err);
		return parse_at(r, spec, value, err);
	}
	return unknown_key(r->kind, spec, item, err);
}

static int check(const struct mw_rate *r, const char *spec, struct mw_err *err)
{
	if (r->kind == STEP && (r->every > 0) == (r->n_at > 0))
		MW_FAIL(err, USAGE, "learning rate '%s': step needs every=E or at=E1/E2/... (one of them)",
			spec);
	if (r->kind == COSINE && r->min > r->a)
		MW_FAIL(err, USAGE, "learning rate '%s': min is above the rate it starts from", spec);
	return 0;
}

static int parse_kind(struct mw_rate *r, const char *spec, const char *name, struct mw_err *err)
{
	for (int k = CONSTANT; kind_name[k]; k++) {
		if (!strcmp(kind_name[k], name)) {
			r->kind = (enum kind)k;
			return 0;
		}
	}
	const char *near = mw_nearest(name, kind_name, 4);
	MW_FAIL(err, USAGE,
		"learning rate '%s': there is no schedule '%s'%s%s%s (there are constant:A, "
		"step:A,factor=F,every=E, "
		"step:A,factor=F,at=E1/E2, cosine:A,min=B, invsqrt:A,after=T; each takes warmup=E)",
		spec, name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* text is a copy of spec that may be cut up. */
static int parse(struct mw_rate *r, const char *spec, char *text, struct mw_err *err)
{
	char *colon = strchr(text, ':'), *save = NULL;
	if (colon) {
		*colon = '\0';
		MW_TRY(parse_kind(r, spec, text, err));
		text = colon + 1;
	}
	char *item = strtok_r(text, ",", &save);
	if (!item)
		MW_FAIL(err, USAGE, "learning rate '%s': the rate is missing, for example %s:0.1", spec,
			kind_name[r->kind]);
	MW_TRY(number(spec, item, 0, false, "the rate", &r->a, err));
	while ((item = strtok_r(NULL, ",", &save)))
		MW_TRY(parse_key(r, spec, item, err));
	return check(r, spec, err);
}

int mw_rate_parse(const char *spec, struct mw_rate **out, struct mw_err *err)
{
	struct mw_rate *r = calloc(1, sizeof(*r));
	char *text = mw_strdup(spec);
	int ret = MW_ERESOURCE;
	if (!r || !text) {
		mw_err_set(err, ret, "out of memory: learning rate");
		goto out;
	}
	r->factor = 0.1;
	r->after = 1;
	ret = parse(r, spec, text, err);
out:
	free(text);
	if (ret < 0)
		mw_rate_free(r);
	else
		*out = r;
	return ret;
}

void mw_rate_free(struct mw_rate *r)
{
	if (r)
		free(r->at);
	free(r);
}

static double power(double base, uint64_t n)
{
	double p = 1;
	for (; n; n >>= 1, base *= base)
		if (n & 1)
			p *= base;
	return p;
}

static uint64_t changes(const struct mw_rate *r, double epoch)
{
	uint64_t n = 0;
	if (r->every > 0)
		return (uint64_t)(epoch / r->every);
	for (size_t i = 0; i < r->n_at; i++)
		n += r->at[i] <= epoch;
	return n;
}

/* (1 + cos(pi x)) / 2 = sin^2 of (1 - x) / 4 turns, which keeps its relative accuracy at the end. */
static double half_cosine(double x)
{
	double turns = x < 1 ? (1 - x) / 4 : 0;
	double s = (double)(turns <= 0.125 ? mw_sin_turn((float)turns) : mw_cos_turn((float)(0.25 - turns)));
	return s * s;
}

float mw_rate_at(const struct mw_rate *r, double epoch, double epochs, uint64_t step)
{
	double a = r->a;
	switch (r->kind) {
	case CONSTANT: break;
	case STEP: a *= power(r->factor, changes(r, epoch)); break;
	case COSINE: a = r->min + (a - r->min) * half_cosine(epochs > 0 ? epoch / epochs : 1); break;
	case INVSQRT: a /= sqrt(1 + (double)step / r->after); break;
	}
	if (epoch < r->warmup)
		a *= epoch / r->warmup;
	return (float)a;
}

float mw_rate_begin(const struct mw_rate *r, double epochs)
{
	return mw_rate_at(r, r->warmup, epochs, 0);
}

bool mw_rate_is_constant(const struct mw_rate *r)
{
	return r->kind == CONSTANT && r->warmup == 0;
}

char *mw_rate_describe(const struct mw_rate *r)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	fprintf(f, "%s:%.9g", kind_name[r->kind], r->a);
	if (r->kind == STEP)
		fprintf(f, ",factor=%.9g", r->factor);
	if (r->kind == STEP && r->every > 0)
		fprintf(f, ",every=%.9g", r->every);
	for (size_t i = 0; i < r->n_at; i++)
		fprintf(f, "%s%.9g", i ? "/" : ",at=", r->at[i]);
	if (r->kind == COSINE)
		fprintf(f, ",min=%.9g", r->min);
	if (r->kind == INVSQRT)
		fprintf(f, ",after=%.9g", r->after);
	fprintf(f, ",warmup=%.9g", r->warmup);
	fclose(f);
	return text;
}
