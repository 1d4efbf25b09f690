/*
 * model.h: pure gradients. A model maps (parameters, batch) to (loss, gradient) and knows nothing of threads,
 * replicas or optimizers. Parameters are one flat float array with named slices.
 *
 * A sparse model's gradient touches a few groups of `width` consecutive floats (width = outputs of a linear
 * model, the parameters being feature-major); the caller gathers just these, in the order that touch() gives,
 * and the gradient comes in the same compact order. A dense model reads and fills the whole array.
 */
#ifndef MW_MODEL_MODEL_H
#define MW_MODEL_MODEL_H

#include "base/err.h"
#include "base/option.h"
#include "data/dataset.h"

enum mw_link { MW_LINK_LOGISTIC, MW_LINK_HINGE, MW_LINK_SQUARED, MW_LINK_SIGMOID_SQUARED };

struct mw_slice {
	char name[48];
	size_t offset;
	size_t shape[4]; /* row-major; ndim used */
	int ndim;
	bool no_decay; /* an optimizer's weight decay leaves it alone */
};

/* What a fused update path may know of a one-output linear model on CSR data: margin z = w.x + w[bias]. */
struct mw_linear {
	enum mw_link link;
	bool bias;                      /* parameter `features` is the bias */
	float l2;                       /* lambda of (lambda/2)|w|^2 (bias excluded) */
	const float *l2_inv_popularity; /* l2 > 0: rows / (rows that have the feature): unbiased share (see
					   linear.c) */
};

struct mw_model {
	const struct mw_model_ops *ops;
	size_t dim;     /* floats */
	uint32_t width; /* floats a group */
	bool sparse;
	uint32_t outputs; /* floats that predict() writes per example */
	size_t touch_max; /* sparse: the most groups one example touches */
	struct mw_slice *slices;
	size_t n_slices;
	const struct mw_linear *linear;       /* NULL unless one-output linear on CSR data */
	const struct mw_linear *linear_dense; /* NULL unless one-output linear on dense rows */
	char *spec;                           /* as asked for: "softmax", "mlp:256,128" */
	/*
	 * Parameters [0, trained) are the optimizer's. The rest (running averages of a net) are coordinates like others to
	 * protocols, but their delta is -g, whatever the optimizer and its rate.
	 */
	size_t trained;
	/*
	 * Statistics that scoring uses beside the parameters, measured on stat_batches batches of training rows whenever
	 * parameters are evaluated (measure, combine, use_stats). n_stats 0: none.
	 */
	size_t n_stats, n_stat_slices;
	struct mw_slice *stat_slices; /* what they are called in model files */
	uint32_t stat_batches;
	uint32_t callers_max; /* threads that may use it at the same time; 0: any number */
	bool heavy;           /* scratch grows by much with batch_max: ask for no more rows than needed */
	const char *math;     /* NULL, or the libraries that compute it, for run.json */
	void *priv;
};

/* What follows the ':' of the model's spec; "" if nothing does. */
const char *mw_model_text(const struct mw_model *m);

/* Sums over examples, so that parts can be added up. */
struct mw_score {
	double loss;      /* without the penalty */
	uint64_t correct; /* classification only */
	uint64_t n;
};

struct mw_model_ops {
	const char *name, *summary;
	const struct mw_option *options; /* table for a struct of option_size bytes; may be NULL */
	size_t option_size;
	bool classifies; /* has an accuracy */
	bool images;     /* takes images as bytes (mw_data_request.keep_bytes) */
	bool text;       /* NAME:TEXT describes it further; without, a text is refused */

	/* Shapes from the data. Data that the model can't use is a DATA error that says what would do. */
	int (*setup)(
		struct mw_model *m, const void *options, const struct mw_dataset *train, struct mw_err *err);
	void (*fini)(struct mw_model *m);
	/* Initial parameters; a pure function of seed. */
	void (*init)(const struct mw_model *m, uint64_t seed, float *x);

	/* Scratch for one thread and gradients of at most batch_max rows; score and predict take any number. */
	void *(*work_new)(const struct mw_model *m, uint32_t batch_max, struct mw_err *err);
	void (*work_free)(void *work);

	/* Sparse only: the distinct groups that the batch touches; *groups is valid until the next call on
	 * this work. */
	size_t (*touch)(
		const struct mw_model *m, void *work, const struct mw_batch *b, const uint32_t **groups);
	/*
	 * Mean loss over the batch (without the penalty) and the gradient of the mean loss plus penalty.
	 * Dense: x, g of dim floats. Sparse: compact, after touch() on the same batch.
	 */
	float (*grad)(
		const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *g);

	/* On the whole parameter array. */
	void (*score)(const struct mw_model *m, void *work, const struct mw_batch *b, const float *x,
		struct mw_score *s);
	double (*penalty)(const struct mw_model *m, const float *x); /* NULL: none */
	/* out[i*outputs + k]: margins (one output), class probabilities (softmax), or values (squared). */
	void (*predict)(
		const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *out);

	/* n_stats > 0: statistics of one batch (at most batch_max rows), those of n batches together, and those that this
	   work's scores and predictions use from now on (borrowed; NULL: of the rows at hand). */
	void (*measure)(
		const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *stats);
	void (*combine)(const struct mw_model *m, const float *part, uint32_t n, float *stats);
	void (*use_stats)(const struct mw_model *m, void *work, const float *stats);
};

/* Allocate and set up; options: the struct its table fills (NULL: defaults). *out is owned by the caller. */
int mw_model_new(const struct mw_model_ops *ops, const void *options, const struct mw_dataset *train,
	struct mw_model **out, struct mw_err *err);
/* The same by "NAME" or "NAME:TEXT"; options are those of mw_model_find(spec). */
int mw_model_new_spec(const char *spec, const void *options, const struct mw_dataset *train,
	struct mw_model **out, struct mw_err *err);
void mw_model_free(struct mw_model *m);

/* All models of registry.def, NULL-terminated; and the one of this name (up to a ':'), or NULL. */
extern const struct mw_model_ops *const mw_models[];
const struct mw_model_ops *mw_model_find(const char *name);

#endif
