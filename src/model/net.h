/*
 * net.h: feed-forward nets as a list of layers over values. A value is what one layer makes for others: per example
 * rows x cols x channels floats, channels side by side (NHWC); value 0 is the input. A layer reads one or two values
 * and writes one. Nets are put together at set-up by the functions below (mlp.c, lenet.c, resnet.c), and net_run.c
 * makes a model of them: loss and gradient by back-propagation on a private copy of the parameters.
 *
 * Parameters have PyTorch's names, shapes and order of elements, so that a model file is a state_dict: dense weights
 * [out][in], convolutions [out][in][kernel row][kernel column], batch norms weight and bias, and behind the parameters
 * running_mean and running_var. A flattened image has its planes one after another.
 *
 * The loss is softmax cross-entropy. Nets of one class more or less than the data's are not made: the last layer has one
 * output a class.
 */
#ifndef MW_MODEL_NET_H
#define MW_MODEL_NET_H

#include "data/images.h"
#include "model/conv.h"
#include "model/model.h"
#include "model/net_kernel.h"

#define MW_NET_NONE SIZE_MAX

struct mw_net;
struct mw_net_work;
struct mw_layer;

struct mw_value {
	uint32_t rows, cols, channels;
	size_t size;        /* floats an example */
	uint32_t producer;  /* layer; UINT32_MAX: the input */
	uint32_t consumers; /* layers that read it: at most two */
};

struct mw_layer_ops {
	const char *kind;
	/* Memory of one worker for batches of `batch` or fewer, beside the values (NULL: needs none). */
	void *(*work_new)(const struct mw_net *net, struct mw_net_work *w, const struct mw_layer *l,
		uint32_t batch, struct mw_err *err);
	void (*work_free)(const struct mw_layer *l, void *work);
	/* The first n examples of w's values. train: as in a step, where batch norms use the batch. */
	void (*forward)(
		struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, bool train);
	/*
	 * From the gradient of the output (mw_net_grad_of) those of the input (mw_net_grad_for) and of the parameters:
	 * written, not added. x and the values are those of the forward pass before.
	 */
	void (*backward)(
		struct mw_net_work *w, const struct mw_layer *l, uint32_t n, const float *x, float *g);
};

struct mw_layer {
	const struct mw_layer_ops *ops;
	uint32_t index;
	uint32_t in, add, out; /* values; add: the second summand of a batch norm, UINT32_MAX: none */
	uint32_t in_reader, add_reader; /* which of a value's two readers this is */
	uint32_t kernel, stride;
	size_t weight, bias; /* offsets among the parameters, MW_NET_NONE: it has none */
	size_t stat;         /* offset among the statistics: mean, then variance */
	bool relu;
	struct mw_conv_plan conv;
};

enum { MW_NORM_BATCHES, MW_NORM_EXCHANGE };

/* Options of nets; a model's table names those that it has. */
struct mw_net_options {
	int conv;  /* enum mw_conv_kind */
	int dense; /* enum mw_gemm_kind */
	bool decay_all;
	int norm_stats; /* MW_NORM_* */
	int64_t norm_batches;
	double norm_momentum;
};
/* --decay-all and --dense of any net, --conv, and what batch norms add. */
#define MW_NET_OPTIONS                                                                                   \
	{ "decay-all", MW_OPT_BOOL, offsetof(struct mw_net_options, decay_all), "yes", 0, 0, NULL, NULL, \
		"Weight decay on biases and batch norms too, not on weights alone." },                   \
	{                                                                                                \
		"dense", MW_OPT_CHOICE, offsetof(struct mw_net_options, dense), "auto", 0, 0,            \
			MW_GEMM_CHOICES, NULL,                                                           \
			"Who computes dense layers: own kernels or OpenBLAS; auto: the faster, by the "  \
			"instruction set."                                                               \
	}
#define MW_NET_OPTION_CONV                                                                                   \
	{                                                                                                    \
		"conv", MW_OPT_CHOICE, offsetof(struct mw_net_options, conv), "auto", 0, 0, MW_CONV_CHOICES, \
			NULL,                                                                                \
			"Who computes convolutions: oneDNN, OpenBLAS on columns (im2col), or own kernels; "  \
			"auto: "                                                                             \
			"oneDNN where it is there, else own kernels, always so with --isa portable."         \
	}
#define MW_NET_OPTIONS_NORM                                                                                  \
	{ "bn-stats", MW_OPT_CHOICE, offsetof(struct mw_net_options, norm_stats), "batches", 0, 0,           \
		"batches|exchange", NULL,                                                                    \
		"Statistics of batch norms at evaluation: measured anew with the evaluated parameters on "   \
		"--bn-batches "                                                                              \
		"batches of training rows, or running averages that workers exchange like parameters." },    \
		{ "bn-batches", MW_OPT_INT, offsetof(struct mw_net_options, norm_batches), "16", 1, 64,      \
			NULL, "N",                                                                           \
			"Batches of training rows (always the same ones) that the statistics are measured "  \
			"on." },                                                                             \
	{                                                                                                    \
		"bn-momentum", MW_OPT_FLOAT, offsetof(struct mw_net_options, norm_momentum), "0.1", 1e-6, 1, \
			NULL, "M", "--bn-stats exchange: share of the batch in a running average."           \
	}

/* What a net is; immutable after set-up. */
struct mw_net {
	struct mw_value *value;
	struct mw_layer *layer;
	uint32_t n_values, n_layers, capacity;
	uint32_t classes;
	enum mw_image_layout layout; /* of value 0 */
	enum mw_conv_kind conv;
	const struct mw_gemm *gemm, *conv_gemm; /* of dense layers, and of convolutions that take one */
	float norm_eps, norm_momentum;
	bool exchange; /* running averages are coordinates behind the trained ones */
	bool decay_all;
	char math[80];
	struct mw_model *model;
	/* set-up only */
	struct mw_err *err;
	int error; /* the first; the functions below do nothing then */
	size_t n_stats, n_slices, n_stat_slices;
	struct mw_slice *slice, *stat_slice;
};

/* One worker's memory. */
struct mw_net_work {
	const struct mw_net *net;
	const struct mw_net_kernels *k;
	const struct mw_gemm *gemm;
	uint32_t batch; /* most examples at a time */
	float **act;    /* per value: batch * size floats */
	float *(*grad)
		[2]; /* per value and reader: the same; shared by values that don't need it at the same time */
	void **scratch;            /* per layer */
	float *values, *gradients; /* the memory of act and grad */
	const float *stats;        /* of batch norms when scoring; NULL: the batch's own. Borrowed. */
	float *moments;            /* n_stats: mean and variance of the last batch */
	float *plane;              /* one example with its planes one after another */
	struct mw_conv_space space;
};

/* --- building ---------------------------------------------------------------------------------------------------- */

/*
 * Begin a net for these data in m->priv; images: they must have a shape, else any rows of features do. DATA: they don't
 * suit. Room for `layers` layers.
 */
int mw_net_begin(struct mw_model *m, const struct mw_net_options *o, const struct mw_dataset *train,
	bool images, uint32_t layers, struct mw_err *err);

/* Each returns the value that the layer makes. `name` begins the names of its slices. Errors wait for mw_net_end. */
uint32_t mw_net_dense(struct mw_net *net, uint32_t in, const char *name, uint32_t out, bool relu);
struct mw_conv_spec {
	uint32_t out, kernel, stride, pad; /* out: channels */
	bool bias, relu;                   /* relu only with a bias */
};
uint32_t mw_net_conv(struct mw_net *net, uint32_t in, const char *name, const struct mw_conv_spec *c);
/* Batch norm over examples and pixels, plus a second value of the same shape (UINT32_MAX: none), then ReLU if asked. */
uint32_t mw_net_norm(struct mw_net *net, uint32_t in, const char *name, uint32_t add, bool relu);
uint32_t mw_net_max_pool(struct mw_net *net, uint32_t in, uint32_t kernel, uint32_t stride);
/* The mean over all pixels. */
uint32_t mw_net_mean_pool(struct mw_net *net, uint32_t in);
/* Planes one after another. */
uint32_t mw_net_flatten(struct mw_net *net, uint32_t in);
/* Option A of He et al. 2015: every stride-th pixel; channels beyond the input's are zero. */
uint32_t mw_net_shrink(struct mw_net *net, uint32_t in, uint32_t channels, uint32_t stride);

/* The last value has one float a class; fills the model. Returns the first error there was. */
int mw_net_end(struct mw_net *net);

/* --- for layers --------------------------------------------------------------------------------------------------- */

/* A layer and its output value. NULL after an error. */
struct mw_layer *mw_net_layer(struct mw_net *net, const struct mw_layer_ops *ops, uint32_t in, uint32_t add,
	uint32_t rows, uint32_t cols, uint32_t channels);
/* A slice NAME.what of the parameters; its offset. decay: weight decay applies to it even without --decay-all. */
size_t mw_net_parameter(
	struct mw_net *net, const char *name, const char *what, const size_t *shape, int ndim, bool decay);
/* running_mean and running_var of a batch norm; the offset of the first. */
size_t mw_net_statistic(struct mw_net *net, const char *name, size_t channels);

/* Gradient of a layer's output, all readers' parts added up; the layer may change it. */
float *mw_net_grad_of(struct mw_net_work *w, const struct mw_layer *l, uint32_t n);
/* Where a layer writes the gradient of its input; NULL: not wanted. */
static inline float *mw_net_grad_for(struct mw_net_work *w, const struct mw_layer *l)
{
	return w->grad[l->in][l->in_reader];
}

extern const struct mw_layer_ops mw_layer_conv, mw_layer_dense, mw_layer_flatten, mw_layer_max_pool,
	mw_layer_mean_pool, mw_layer_norm, mw_layer_shrink;

/* --- a worker's memory (net_work.c) ------------------------------------------------------------------------------- */

void *mw_net_work_new(const struct mw_model *m, uint32_t batch_max, struct mw_err *err);
void mw_net_work_free(void *work);

/* --- the model's functions (net_run.c, net.c); see model.h --------------------------------------------------------- */

void mw_net_fini(struct mw_model *m);
void mw_net_init(const struct mw_model *m, uint64_t seed, float *x);
float mw_net_grad(const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *g);
void mw_net_score(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, struct mw_score *s);
void mw_net_predict(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *out);
void mw_net_measure(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *stats);
void mw_net_combine(const struct mw_model *m, const float *part, uint32_t n, float *stats);
void mw_net_use_stats(const struct mw_model *m, void *work, const float *stats);

#define MW_NET_OPS                                                                       \
	.classifies = true, .images = true, .fini = mw_net_fini, .init = mw_net_init,    \
	.work_new = mw_net_work_new, .work_free = mw_net_work_free, .grad = mw_net_grad, \
	.score = mw_net_score, .predict = mw_net_predict, .measure = mw_net_measure,     \
	.combine = mw_net_combine, .use_stats = mw_net_use_stats

#endif
