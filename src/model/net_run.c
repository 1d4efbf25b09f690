/* net_run.c: the functions that make a model of a net: forward, loss, backward. See net.h and model.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/kernel.h"
#include "model/net.h"

static const struct mw_net *net_of(const struct mw_model *m)
{
	return m->priv;
}

static uint32_t class_of(const struct mw_dataset *d, uint64_t row)
{
	return d->classes == 2 ? d->y[row] > 0 : (uint32_t)d->y[row];
}

/* --- passes -------------------------------------------------------------------------------------------------------- */

/* Rows that are no IMAGE have their planes one after another: put channels side by side. */
static void load_planes(struct mw_net_work *w, const struct mw_batch *b)
{
	const struct mw_value *v = &w->net->value[0];
	size_t pixels = (size_t)v->rows * v->cols;
	float *to = w->act[0];
	for (uint32_t i = 0; i < b->n; i++, to += v->size) {
		struct mw_batch one = { .data = b->data, .row = b->row + i, .n = 1 };
		mw_batch_floats(&one, w->net->layout, w->plane);
		for (size_t c = 0; c < v->channels; c++)
			for (size_t p = 0; p < pixels; p++)
				to[p * v->channels + c] = w->plane[c * pixels + p];
	}
}

static void load(struct mw_net_work *w, const struct mw_batch *b)
{
	if (b->data->kind != MW_X_IMAGE && w->net->layout == MW_NHWC && w->net->value[0].channels > 1)
		load_planes(w, b);
	else
		mw_batch_floats(b, w->net->layout, w->act[0]);
}

static void forward(struct mw_net_work *w, const struct mw_batch *b, const float *x, bool train)
{
	mw_conv_enter();
	load(w, b);
	for (uint32_t i = 0; i < w->net->n_layers; i++)
		w->net->layer[i].ops->forward(w, &w->net->layer[i], b->n, x, train);
}

static float *logits(struct mw_net_work *w)
{
	return w->act[w->net->n_values - 1];
}

/* Mean loss of the batch; the logits become class probabilities. */
static double losses(struct mw_net_work *w, const struct mw_batch *b)
{
	const struct mw_kernels *k = mw_kernels();
	uint32_t classes = w->net->classes;
	double loss = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		float *z = logits(w) + (size_t)i * classes, right = z[class_of(b->data, b->row[i])];
		loss += (double)(k->softmax(z, classes) - right);
	}
	return loss;
}

/* The gradient of the mean loss in the logits: (probability - [right class]) / n. */
static void begin_backward(struct mw_net_work *w, const struct mw_batch *b)
{
	uint32_t classes = w->net->classes;
	float scale = 1.0f / (float)b->n, *d = w->grad[w->net->n_values - 1][0];
	for (uint32_t i = 0; i < b->n; i++) {
		const float *p = logits(w) + (size_t)i * classes;
		uint32_t right = class_of(b->data, b->row[i]);
		for (uint32_t k = 0; k < classes; k++)
			d[(size_t)i * classes + k] = (p[k] - (k == right ? 1.0f : 0.0f)) * scale;
	}
}

float *mw_net_grad_of(struct mw_net_work *w, const struct mw_layer *l, uint32_t n)
{
	float **part = w->grad[l->out];
	if (part[1])
		w->k->add(part[1], part[0], n * w->net->value[l->out].size);
	return part[0];
}

float mw_net_grad(const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *g)
{
	struct mw_net_work *w = work;
	assert(b->n <= w->batch);
	(void)m;
	forward(w, b, x, true);
	double loss = losses(w, b);
	begin_backward(w, b);
	for (uint32_t i = w->net->n_layers; i-- > 0;)
		w->net->layer[i].ops->backward(w, &w->net->layer[i], b->n, x, g);
	return (float)(loss / b->n);
}

/* --- scores -------------------------------------------------------------------------------------------------------- */

/* The next rows of a batch that fit into the worker's memory. */
static bool next(const struct mw_net_work *w, const struct mw_batch *b, uint32_t *at, struct mw_batch *part)
{
	*part = *b;
	part->row += *at;
	part->n = b->n - *at < w->batch ? b->n - *at : w->batch;
	*at += part->n;
	return part->n;
}

void mw_net_score(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, struct mw_score *s)
{
	struct mw_net_work *w = work;
	struct mw_batch part;
	uint32_t classes = net_of(m)->classes;
	for (uint32_t at = 0; next(w, b, &at, &part);) {
		forward(w, &part, x, false);
		for (uint32_t i = 0; i < part.n; i++) {
			const float *z = logits(w) + (size_t)i * classes;
			uint32_t best = 0;
			for (uint32_t k = 1; k < classes; k++)
				best = z[k] > z[best] ? k : best;
			s->correct += best == class_of(b->data, part.row[i]);
		}
		s->loss += losses(w, &part);
	}
	s->n += b->n;
}

void mw_net_predict(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *out)
{
	struct mw_net_work *w = work;
	struct mw_batch part;
	size_t classes = net_of(m)->classes;
	for (uint32_t at = 0; next(w, b, &at, &part); out += part.n * classes) {
		forward(w, &part, x, false);
		for (uint32_t i = 0; i < part.n; i++)
			mw_kernels()->softmax(logits(w) + i * classes, classes);
		memcpy(out, logits(w), part.n * classes * sizeof(*out));
	}
}

/* --- statistics ---------------------------------------------------------------------------------------------------- */

void mw_net_measure(
	const struct mw_model *m, void *work, const struct mw_batch *b, const float *x, float *stats)
{
	struct mw_net_work *w = work;
	assert(b->n <= w->batch);
	forward(w, b, x, true);
	memcpy(stats, w->moments, m->n_stats * sizeof(*stats));
}

/* Of n batches of one size: the mean of the means, and the variance within plus that between. */
void mw_net_combine(const struct mw_model *m, const float *part, uint32_t n, float *stats)
{
	for (size_t s = 0; s < m->n_stat_slices; s += 2) {
		size_t mean_at = m->stat_slices[s].offset, var_at = m->stat_slices[s + 1].offset;
		for (size_t j = 0; j < m->stat_slices[s].shape[0]; j++) {
			double mean = 0, var = 0;
			for (uint32_t i = 0; i < n; i++)
				mean += (double)part[i * m->n_stats + mean_at + j] / n;
			for (uint32_t i = 0; i < n; i++) {
				double d = (double)part[i * m->n_stats + mean_at + j] - mean;
				var += ((double)part[i * m->n_stats + var_at + j] + d * d) / n;
			}
			stats[mean_at + j] = (float)mean;
			stats[var_at + j] = (float)var;
		}
	}
}

void mw_net_use_stats(const struct mw_model *m, void *work, const float *stats)
{
	(void)m;
	((struct mw_net_work *)work)->stats = stats;
}
