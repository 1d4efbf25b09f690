/* synth.c: data without a file, synth:KIND,key=value,...: reads the spec and calls the kind's generator. */
#include "data/synth.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option.h"

#define PREFIX  "synth:"
#define ANY     ((1u << MW_SYNTH_KINDS) - 1)
#define SPARSE  (1u << MW_SYNTH_SPARSE)
#define DENSE   (1u << MW_SYNTH_DENSE)
#define IMAGES  (1u << MW_SYNTH_IMAGES)
#define REGRESS (1u << MW_SYNTH_REGRESSION)
#define QUAD    (1u << MW_SYNTH_QUADRATIC)

static const struct {
	const char *name, *example;
	int (*make)(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err);
	struct mw_synth def; /* 0: must be given */
} kinds[MW_SYNTH_KINDS] = {
	[MW_SYNTH_SPARSE] = { "sparse", "synth:sparse,rows=20000,features=5000,nnz=50", mw_synth_sparse,
		{ .classes = 2, .noise = 0.05 } },
	[MW_SYNTH_DENSE] = { "dense", "synth:dense,rows=10000,features=100,classes=2", mw_synth_dense,
		{ .classes = 2 } },
	[MW_SYNTH_IMAGES] = { "images", "synth:images,rows=5000,channels=3,size=32,classes=10",
		mw_synth_images, { .channels = 3, .size = 32, .classes = 10 } },
	[MW_SYNTH_REGRESSION] = { "regression", "synth:regression,rows=10000,features=100,noise=0.1",
		mw_synth_regression, { .noise = 0.1 } },
	[MW_SYNTH_QUADRATIC] = { "quadratic", "synth:quadratic,dim=100,cond=10,noise=0.1", mw_synth_quadratic,
		{ .rows = 1000, .cond = 10 } },
};

/* Every key; the same struct member may have different names (dim is the features of a quadratic). */
static const struct key {
	const char *name;
	unsigned kinds;
	size_t offset;
	bool is_float;
	double min, max;
} keys[] = {
#define K(field) offsetof(struct mw_synth, field)
	{ "rows", ANY, K(rows), false, 1, 1e12 },
	{ "features", SPARSE | DENSE | REGRESS, K(features), false, 1, 4294967294.0 },
	{ "dim", QUAD, K(features), false, 1, 4294967294.0 },
	{ "nnz", SPARSE, K(nnz), false, 1, 1e6 },
	{ "classes", DENSE | IMAGES, K(classes), false, 2, 10000 },
	{ "channels", IMAGES, K(channels), false, 1, 1024 },
	{ "size", IMAGES, K(size), false, 1, 4096 },
	{ "noise", SPARSE | DENSE | IMAGES, K(noise), true, 0, 1 },
	{ "noise", REGRESS | QUAD, K(noise), true, 0, 1e6 },
	{ "cond", QUAD, K(cond), true, 1, 1e12 },
	{ "seed", ANY, K(seed), false, 0, 9e18 },
	{ "skip", ANY, K(skip), false, 0, 1e15 },
#undef K
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static int unknown_kind(const char *spec, const char *kind, struct mw_err *err)
{
	const char *name[MW_SYNTH_KINDS], *near;
	for (int i = 0; i < MW_SYNTH_KINDS; i++)
		name[i] = kinds[i].name;
	near = mw_nearest(kind, name, MW_SYNTH_KINDS);
	MW_FAIL(err, USAGE,
		"%s: no synthetic data '%s'%s%s%s; the kinds are sparse, dense, images, regression, "
		"quadratic, as in %s",
		spec, kind, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
		kinds[0].example);
}

static int unknown_key(const char *spec, const char *key, enum mw_synth_kind kind, struct mw_err *err)
{
	const char *name[N_KEYS], *near;
	char list[128] = "";
	size_t n = 0;
	for (size_t i = 0; i < N_KEYS; i++)
		if (keys[i].kinds & 1u << kind) {
			strcat(strcat(list, n ? ", " : ""), keys[i].name);
			name[n++] = keys[i].name;
		}
	near = mw_nearest(key, name, n);
	MW_FAIL(err, USAGE, "%s: no key '%s' for synth:%s%s%s%s; it has %s", spec, key, kinds[kind].name,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
}

static int set_key(struct mw_synth *s, const char *spec, const char *name, const char *value, unsigned *set,
	struct mw_err *err)
{
	const struct key *k = NULL;
	char what[64];
	double v = 0;
	for (size_t i = 0; i < N_KEYS && !k; i++)
		if (keys[i].kinds & 1u << s->kind && !strcmp(keys[i].name, name))
			k = &keys[i];
	if (!k)
		return unknown_key(spec, name, s->kind, err);
	if (*set & 1u << (k - keys))
		MW_FAIL(err, USAGE, "%s: the key '%s' stands there twice", spec, name);
	*set |= 1u << (k - keys);
	snprintf(what, sizeof(what), "%s of synth:%s", name, kinds[s->kind].name);
	if (k->is_float) {
		MW_TRY(mw_parse_float(value, what, &v, err));
		memcpy((char *)s + k->offset, &v, sizeof(v));
	} else {
		int64_t i = 0;
		MW_TRY(mw_parse_int(value, what, &i, err));
		memcpy((char *)s + k->offset, &i, sizeof(i));
		v = (double)i;
	}
	if (v < k->min || v > k->max)
		MW_FAIL(err, USAGE, "%s: %s=%s is out of range; it must be from %.12g to %.12g", spec, name,
			value, k->min, k->max);
	return 0;
}

/* The parts of `text` (a copy of the spec, cut up here) after "synth:". */
static int parse(char *text, const char *spec, struct mw_synth *s, struct mw_err *err)
{
	char *rest = NULL, *word = strtok_r(text, ",", &rest);
	const struct mw_data_request *req = s->req;
	int threads = s->threads, kind = 0;
	int64_t seed = s->seed;
	unsigned set = 0;
	while (kind < MW_SYNTH_KINDS && strcmp(word ? word : "", kinds[kind].name))
		kind++;
	if (kind == MW_SYNTH_KINDS)
		return unknown_kind(spec, word ? word : "", err);
	*s = kinds[kind].def;
	s->kind = (enum mw_synth_kind)kind;
	s->threads = threads;
	s->req = req;
	s->seed = seed;
	while ((word = strtok_r(NULL, ",", &rest))) {
		char *equals = strchr(word, '=');
		if (!equals)
			MW_FAIL(err, USAGE, "%s: expected key=value, found '%s'; an example: %s", spec, word,
				kinds[kind].example);
		*equals = 0;
		MW_TRY(set_key(s, spec, word, equals + 1, &set, err));
	}
	if (!s->rows || (!s->features && s->kind != MW_SYNTH_IMAGES))
		MW_FAIL(err, USAGE, "%s: %s= is missing; an example: %s", spec,
			s->rows ? (s->kind == MW_SYNTH_QUADRATIC ? "dim" : "features") : "rows",
			kinds[kind].example);
	if (!s->nnz) /* as in the RCV1 news set, where there is room */
		s->nnz = s->features >= 300 ? 75 : (s->features + 3) / 4;
	return 0;
}

/* Is the set what the request wants: as wide as the training set, with its classes? */
static int check_request(const struct mw_data_request *req, const struct mw_dataset *d, struct mw_err *err)
{
	const struct mw_dataset *like = req->like;
	uint32_t width = like ? like->features : req->features;
	if (width && width != d->features)
		MW_FAIL(err, USAGE, "%s: %u features, but %s has %u; make them equal", req->path, d->features,
			like ? "the training set" : "--features", width);
	if (like && like->kind == MW_X_IMAGE && (d->kind != MW_X_IMAGE || like->channels != d->channels))
		MW_FAIL(err, USAGE,
			"%s: the training set's examples are images with %u channels, these are not",
			req->path, like->channels);
	if (like && like->classes != d->classes)
		MW_FAIL(err, USAGE, "%s: %u classes, but the training set has %u; make them equal", req->path,
			d->classes, like->classes);
	if (req->label_kind != MW_LABEL_AUTO && d->kind != MW_X_QUADRATIC &&
		(req->label_kind == MW_LABEL_CLASS) != (d->classes > 0))
		MW_FAIL(err, USAGE, "%s: the labels are %s; leave --label-kind out", req->path,
			d->classes ? "classes" : "real targets");
	return 0;
}

static int load(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err)
{
	struct mw_synth s = { .seed = (int64_t)req->seed, .threads = req->threads, .req = req };
	char *text = mw_strdup(req->path + strlen(PREFIX));
	int ret;
	if (!text)
		MW_FAIL(err, RESOURCE, "out of memory: spec of synthetic data");
	ret = parse(text, req->path, &s, err);
	free(text);
	MW_TRY(ret);
	MW_TRY(kinds[s.kind].make(&s, d, err));
	return check_request(req, d, err);
}

/*
 * f(x) = 1/2 sum_i curvature[i] (x[i] - optimum[i])^2, curvatures log-spaced from 1/cond to 1, optimum
 * standard normal. skip shifts the rows, which only differ in their noise: another noise seed.
 */
int mw_synth_quadratic(const struct mw_synth *s, struct mw_dataset *d, struct mw_err *err)
{
	struct mw_rng rng;
	d->kind = MW_X_QUADRATIC;
	d->rows = (uint64_t)s->rows;
	d->features = (uint32_t)s->features;
	d->noise = (float)s->noise;
	d->noise_seed = mw_hash3(mw_synth_key(s, MW_SYNTH_GRADIENT), (uint64_t)s->skip, 0);
	d->curvature = mw_alloc_array(d->features, sizeof(float), "curvatures", err);
	d->optimum = mw_alloc_array(d->features, sizeof(float), "optimum", err);
	if (!d->curvature || !d->optimum)
		return MW_ERESOURCE;
	mw_rng_init(&rng, mw_synth_key(s, MW_SYNTH_SIGNAL), 0);
	for (uint32_t i = 0; i < d->features; i++) {
		double at = d->features > 1 ? (double)i / (d->features - 1) : 1;
		d->curvature[i] = (float)pow(s->cond, at - 1);
		d->optimum[i] = (float)mw_rng_normal(&rng);
	}
	return 0;
}

static bool probe(const char *path, const unsigned char *head, size_t n)
{
	(void)head;
	(void)n;
	return !strncmp(path, PREFIX, strlen(PREFIX));
}

const struct mw_format_ops mw_format_synth = {
	.name = "synth",
	.summary = "made up, seeded: synth:sparse|dense|images|regression|quadratic,key=value,...",
	.probe = probe,
	.load = load,
};
