/*
 * mlp.c: a multi-layer perceptron: dense layers with ReLU between them, on rows of any kind (images as their bytes'
 * values, sparse rows as dense ones). Text: the widths of the hidden layers, mlp:256,128.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/net.h"

#define HIDDEN_MAX  64
#define WIDTH_MAX   65536
#define HIDDEN_TEXT "256,128"

static const struct mw_option options[] = {
	MW_NET_OPTIONS,
	{ 0 },
};

/* Widths from "256,128"; their number, or a USAGE error. */
static int widths(const struct mw_model *m, const char *text, uint32_t *width, struct mw_err *err)
{
	int n = 0;
	for (const char *s = text;; s++) {
		char *end;
		long v = *s >= '0' && *s <= '9' ? strtol(s, &end, 10) : 0;
		if (v < 1 || v > WIDTH_MAX || (*end && *end != ',') || n == HIDDEN_MAX)
			MW_FAIL(err, USAGE,
				"--model %s: expected the widths of hidden layers, mlp:256,128 (1 to %d "
				"each, at most %d layers)",
				m->spec, WIDTH_MAX, HIDDEN_MAX);
		width[n++] = (uint32_t)v;
		s = end;
		if (!*s)
			return n;
	}
}

static int setup(struct mw_model *m, const void *o, const struct mw_dataset *train, struct mw_err *err)
{
	uint32_t width[HIDDEN_MAX], value = 0;
	char name[32];
	const char *text = mw_model_text(m);
	int n = widths(m, *text ? text : HIDDEN_TEXT, width, err);
	MW_TRY(n);
	MW_TRY(mw_net_begin(m, o, train, false, (uint32_t)n + 1, err));
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "fc%d", i + 1);
		value = mw_net_dense(m->priv, value, name, width[i], true);
	}
	snprintf(name, sizeof(name), "fc%d", n + 1);
	mw_net_dense(m->priv, value, name, train->classes, false);
	return mw_net_end(m->priv);
}

const struct mw_model_ops mw_model_mlp = {
	.name = "mlp",
	.summary = "multi-layer perceptron; mlp:256,128 names the widths of its hidden layers",
	.options = options,
	.option_size = sizeof(struct mw_net_options),
	.text = true,
	.setup = setup,
	MW_NET_OPS,
};
