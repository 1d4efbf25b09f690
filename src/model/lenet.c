/*
 * lenet.c: LeNet-5 (LeCun, Bottou, Bengio, Haffner 1998) as it is used today: ReLU, max pooling, a full second
 * convolution. Images of 28 x 28 are padded to 32 x 32 by the first convolution, larger ones are not.
 */
#include "model/net.h"

static const struct mw_option options[] = {
	MW_NET_OPTION_CONV,
	MW_NET_OPTIONS,
	{ 0 },
};

static int setup(struct mw_model *m, const void *o, const struct mw_dataset *train, struct mw_err *err)
{
	MW_TRY(mw_net_begin(m, o, train, true, 8, err));
	struct mw_net *net = m->priv;
	struct mw_conv_spec first = {
		.out = 6, .kernel = 5, .stride = 1, .pad = 2, .bias = true, .relu = true
	};
	struct mw_conv_spec second = {
		.out = 16, .kernel = 5, .stride = 1, .pad = 0, .bias = true, .relu = true
	};
	first.pad = train->image_rows >= 32 && train->image_cols >= 32 ? 0 : 2;
	uint32_t v = mw_net_conv(net, 0, "conv1", &first);
	v = mw_net_max_pool(net, v, 2, 2);
	v = mw_net_conv(net, v, "conv2", &second);
	v = mw_net_max_pool(net, v, 2, 2);
	v = mw_net_flatten(net, v);
	v = mw_net_dense(net, v, "fc1", 120, true);
	v = mw_net_dense(net, v, "fc2", 84, true);
	mw_net_dense(net, v, "fc3", train->classes, false);
	return mw_net_end(net);
}

const struct mw_model_ops mw_model_lenet5 = {
	.name = "lenet5",
	.summary = "LeNet-5 for small images: two convolutions and three dense layers",
	.options = options,
	.option_size = sizeof(struct mw_net_options),
	.setup = setup,
	MW_NET_OPS,
};
