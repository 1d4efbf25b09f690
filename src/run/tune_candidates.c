/* tune_candidates.c: what is worth a try: the product of the lists, without those that are the same run; see tune.h. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/find.h"
#include "run/tune.h"

enum { CANDIDATES_MAX = 4096, WORDS_MAX = 64 };

struct words {
	char *text, *word[WORDS_MAX];
	uint32_t n;
};

static int split(struct words *w, const char *option, const char *list, struct mw_err *err)
{
	char *save = NULL;
	*w = (struct words){ .text = mw_strdup(list) };
	if (!w->text)
		MW_FAIL(err, RESOURCE, "out of memory: the list of --%s", option);
	for (char *s = strtok_r(w->text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		if (w->n == WORDS_MAX)
			MW_FAIL(err, USAGE, "--%s: at most %d values", option, WORDS_MAX);
		w->word[w->n++] = s;
	}
	if (!w->n)
		MW_FAIL(err, USAGE, "--%s: name at least one value", option);
	return 0;
}

/* --- defaults that fit the machine ---------------------------------------------------------------------------------- */

/* 1, 2, 4, ... up to the cores (or what variables and quota allow), and all PUs. */
static void default_workers(const struct mw_layout *l, char *buf, size_t size)
{
	size_t n = 0;
	for (uint32_t w = 1; w < l->n_workers && n < size; w *= 2)
		n += (size_t)snprintf(buf + n, size - n, "%u,", w);
	if (n < size)
		n += (size_t)snprintf(buf + n, size - n, "%u", l->n_workers);
	if (l->usable_pus > l->n_workers && l->n_workers == l->usable_cores && n < size)
		snprintf(buf + n, size - n, ",%u", l->usable_pus);
}

static int look_at_machine(
	const struct mw_tune *t, char *workers, size_t size, bool *nodes, bool *cores, struct mw_err *err)
{
	const struct mw_train_options *o = &t->opt->train;
	struct mw_layout_request req = { .workers = "auto",
		.bind = "close",
		.places = MW_PLACES_AUTO,
		.no_smt = o->no_smt,
		.controller_cpu = -1,
		.topology = o->topology };
	struct mw_layout *l = NULL;
	MW_TRY(mw_layout_new(&req, &l, err));
	default_workers(l, workers, size);
	*nodes = l->machine_nodes > 1;
	*cores = l->machine_nodes > 1 || mw_layout_packages(l) > 1;
	mw_layout_free(l);
	return 0;
}

/* --- the product ---------------------------------------------------------------------------------------------------- */

static bool exchanges(const char *protocol)
{
	return strcmp(protocol, "hogwild") && strcmp(protocol, "sequential") && strcmp(protocol, "leashed") &&
	       strcmp(protocol, "ssp");
}

static bool same(const struct mw_tune_candidate *a, const struct mw_tune_candidate *b)
{
	return a->workers == b->workers && a->mix_every == b->mix_every && !strcmp(a->bind, b->bind) &&
	       !strcmp(a->protocol, b->protocol) && !strcmp(a->data_place, b->data_place);
}

static int add(struct mw_tune *t, struct mw_tune_candidate c, struct mw_err *err)
{
	if (c.workers == 1) /* alone: there is nothing to exchange with, and no second place */
		snprintf(c.protocol, sizeof(c.protocol), "sequential");
	if (!exchanges(c.protocol))
		c.mix_every = 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (same(&t->candidate[i], &c) || (c.workers == 1 && t->candidate[i].workers == 1 &&
							  !strcmp(t->candidate[i].bind, c.bind)))
			return 0;
	if (t->n == t->room)
		MW_FAIL(err, USAGE, "more than %d candidates: shorten the lists", CANDIDATES_MAX);
	t->candidate[t->n++] = c;
	return 0;
}

static int number(const char *option, const char *text, int64_t least, int64_t *value, struct mw_err *err)
{
	char what[40];
	snprintf(what, sizeof(what), "--%s", option);
	MW_TRY(mw_parse_int(text, what, value, err));
	if (*value < least || *value > 1000000000000)
		MW_FAIL(err, USAGE, "--%s %s: give numbers from %lld on", option, text, (long long)least);
	return 0;
}

static int product(struct mw_tune *t, struct words *list, struct mw_err *err)
{
	const struct words *w = &list[0], *b = &list[1], *p = &list[2], *m = &list[3], *d = &list[4];
	for (uint32_t i = 0; i < w->n * b->n * p->n * m->n * d->n; i++) {
		struct mw_tune_candidate c = { 0 };
		uint32_t k = i;
		int64_t workers;
		MW_TRY(number("mix-every", m->word[k % m->n], 0, &c.mix_every, err));
		k /= m->n;
		snprintf(c.data_place, sizeof(c.data_place), "%s", d->word[k % d->n]);
		k /= d->n;
		snprintf(c.bind, sizeof(c.bind), "%s", b->word[k % b->n]);
		k /= b->n;
		snprintf(c.protocol, sizeof(c.protocol), "%s", p->word[k % p->n]);
		MW_TRY(number("workers", w->word[k / p->n], 1, &workers, err));
		if (workers > UINT32_MAX / 8)
			MW_FAIL(err, USAGE, "--workers %s: too many", w->word[k / p->n]);
		c.workers = (uint32_t)workers;
		MW_TRY(add(t, c, err));
	}
	return 0;
}

static int check_words(const struct words *list, struct mw_err *err)
{
	for (uint32_t i = 0; i < list[2].n; i++)
		if (!mw_protocol_find(list[2].word[i]))
			MW_FAIL(err, USAGE, "--protocol: there is no '%s'; see mixwild list protocols",
				list[2].word[i]);
	for (uint32_t i = 0; i < list[4].n; i++)
		if (strcmp(list[4].word[i], "shared") && strcmp(list[4].word[i], "shard") &&
			strcmp(list[4].word[i], "replicate"))
			MW_FAIL(err, USAGE, "--data-place: there is no '%s' (shared, shard, replicate)",
				list[4].word[i]);
	for (uint32_t i = 0; i < list[1].n; i++)
		if (strlen(list[1].word[i]) >= sizeof(((struct mw_tune_candidate *)0)->bind) ||
			!strncmp(list[1].word[i], "list", 4))
			MW_FAIL(err, USAGE, "--bind: choose among close, spread and none");
	return 0;
}

int mw_tune_candidates(struct mw_tune *t, struct mw_err *err)
{
	const struct mw_tune_options *o = t->opt;
	static const char *const names[] = { "workers", "bind", "protocol", "mix-every", "data-place" };
	const char *given[] = { o->workers, o->bind, o->protocol, o->mix_every, o->data_place };
	struct words list[5] = { { 0 } };
	char workers[400] = "1";
	bool nodes = false, several = false;
	int code = look_at_machine(t, workers, sizeof(workers), &nodes, &several, err);
	const char *fitting[] = { workers, several ? "close,spread" : "close",
		nodes ? "hogwild,cached,numa" : "hogwild,cached", "256,2048,16384",
		nodes ? "shared,shard,replicate" : "shared" };
	for (int i = 0; i < 5 && !code; i++)
		code = split(&list[i], names[i], strcmp(given[i], "auto") ? given[i] : fitting[i], err);
	if (!code)
		code = check_words(list, err);
	t->room = CANDIDATES_MAX;
	t->candidate = code ? NULL : mw_alloc_array(t->room, sizeof(*t->candidate), "the candidates", err);
	if (!code)
		code = t->candidate ? product(t, list, err) : MW_ERESOURCE;
	for (int i = 0; i < 5; i++)
		free(list[i].text);
	return code;
}
