/*
 * resnet.c: residual nets for small images (He, Zhang, Ren, Sun, "Deep residual learning", 2015, section 4.2): a 3x3
 * convolution, three stages of n blocks of two 3x3 convolutions each with width, 2 width and 4 width channels, the
 * first block of a later stage halving the image, the mean over pixels, and a dense layer: 6n + 2 layers. Shortcuts
 * where the shape changes: A (every second pixel, zero channels; no parameters) or conv (a 1x1 convolution and a batch
 * norm, the paper's option B).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/net.h"

#define BLOCKS_MAX 50
#define WIDTH_MAX  1024

static const struct mw_option options[] = {
	MW_NET_OPTION_CONV,
	MW_NET_OPTIONS,
	MW_NET_OPTIONS_NORM,
	{ 0 },
};

struct shape {
	uint32_t n, width;
	bool conv;
};

static int number(const struct mw_model *m, const char *key, const char *text, uint32_t max, uint32_t *out,
	struct mw_err *err)
{
	char *end;
	long v = strtol(text, &end, 10);
	if (end == text || (*end && *end != ',') || v < 1 || v > (long)max)
		MW_FAIL(err, USAGE, "--model %s: %s is a number from 1 to %u", m->spec, key, max);
	*out = (uint32_t)v;
	return 0;
}

/* "n=3,width=16,shortcut=A" */
static int parse(const struct mw_model *m, struct shape *s, struct mw_err *err)
{
	for (const char *t = mw_model_text(m); *t;) {
		size_t key = strcspn(t, "=,"), length = strcspn(t, ",");
		const char *value = t + key + (t[key] == '=');
		if (key == 1 && *t == 'n') {
			MW_TRY(number(m, "n", value, BLOCKS_MAX, &s->n, err));
		} else if (key == 5 && !memcmp(t, "width", 5)) {
			MW_TRY(number(m, "width", value, WIDTH_MAX, &s->width, err));
		} else if (length == 10 && !memcmp(t, "shortcut=A", 10)) {
			s->conv = false;
		} else if (length == 13 && !memcmp(t, "shortcut=conv", 13)) {
			s->conv = true;
		} else {
			MW_FAIL(err, USAGE,
				"--model %s: expected n=BLOCKS, width=CHANNELS, shortcut=A or shortcut=conv",
				m->spec);
		}
		t += length + (t[length] == ',');
	}
	return 0;
}

static uint32_t shortcut(
	struct mw_net *net, uint32_t in, const char *block, uint32_t out, uint32_t stride, bool conv)
{
	char name[64];
	if (net->error || (stride == 1 && net->value[in].channels == out))
		return in;
	if (!conv)
		return mw_net_shrink(net, in, out, stride);
	struct mw_conv_spec c = { .out = out, .kernel = 1, .stride = stride };
	snprintf(name, sizeof(name), "%s.downsample.0", block);
	uint32_t v = mw_net_conv(net, in, name, &c);
	snprintf(name, sizeof(name), "%s.downsample.1", block);
	return mw_net_norm(net, v, name, UINT32_MAX, false);
}

static uint32_t block(
	struct mw_net *net, uint32_t in, const char *block, uint32_t out, uint32_t stride, bool conv)
{
	char name[64];
	struct mw_conv_spec c = { .out = out, .kernel = 3, .stride = stride, .pad = 1 };
	snprintf(name, sizeof(name), "%s.conv1", block);
	uint32_t v = mw_net_conv(net, in, name, &c);
	snprintf(name, sizeof(name), "%s.bn1", block);
	v = mw_net_norm(net, v, name, UINT32_MAX, true);
	c.stride = 1;
	snprintf(name, sizeof(name), "%s.conv2", block);
	v = mw_net_conv(net, v, name, &c);
	uint32_t side = shortcut(net, in, block, out, stride, conv);
	snprintf(name, sizeof(name), "%s.bn2", block);
	return mw_net_norm(net, v, name, side, true);
}

static int build(struct mw_model *m, const struct mw_net_options *o, const struct mw_dataset *train,
	struct shape s, struct mw_err *err)
{
	char name[32];
	MW_TRY(parse(m, &s, err));
	MW_TRY(mw_net_begin(m, o, train, true, 4 + 3 * (4 * s.n + 2), err));
	struct mw_net *net = m->priv;
	struct mw_conv_spec first = { .out = s.width, .kernel = 3, .stride = 1, .pad = 1 };
	uint32_t v = mw_net_norm(net, mw_net_conv(net, 0, "conv1", &first), "bn1", UINT32_MAX, true);
	for (uint32_t stage = 0; stage < 3; stage++)
		for (uint32_t i = 0; i < s.n; i++) {
			snprintf(name, sizeof(name), "layer%u.%u", stage + 1, i);
			v = block(net, v, name, s.width << stage, stage && !i ? 2 : 1, s.conv);
		}
	mw_net_dense(net, mw_net_mean_pool(net, v), "fc", train->classes, false);
	return mw_net_end(net);
}

#define RESNET(id, blocks, says)                                                                       \
	static int setup_##id(                                                                         \
		struct mw_model *m, const void *o, const struct mw_dataset *train, struct mw_err *err) \
	{                                                                                              \
		return build(m, o, train, (struct shape){ blocks, 16, false }, err);                   \
	}                                                                                              \
	const struct mw_model_ops mw_model_##id = {                                                    \
		.name = #id,                                                                           \
		.summary = says,                                                                       \
		.options = options,                                                                    \
		.option_size = sizeof(struct mw_net_options),                                          \
		.text = true,                                                                          \
		.setup = setup_##id,                                                                   \
		MW_NET_OPS,                                                                            \
	}

RESNET(resnet, 3,
	"residual net for small images; resnet:n=3,width=16,shortcut=A has 6n+2 layers (shortcut=conv: 1x1)");
RESNET(resnet20, 3, "ResNet-20 of He et al. 2015 for CIFAR-10: resnet:n=3,width=16,shortcut=A");
RESNET(resnet8, 1, "the smallest residual net: resnet:n=1,width=16,shortcut=A");
