/*
 * net_work.c: one worker's memory. Every value has its activations, since the way back needs them. Gradients of values
 * are needed only from their readers' turn to their producer's, so they share a few blocks that stay in cache.
 */
#include <string.h>

#include "base/mem.h"
#include "model/net.h"

#define ALIGN 16 /* floats in a line */

/* A block of gradient memory; sizes an example. */
struct block {
	size_t size;
	uint32_t until; /* the layer, counted down, after which it is free; UINT32_MAX: free now */
};

struct plan {
	struct block *block;
	uint32_t n;
	uint32_t (*of)[2]; /* per value and reader: block; UINT32_MAX: no gradient wanted */
};

/* The smallest free block that is large enough, else the largest free one made larger, else a new one. */
static uint32_t take(struct plan *p, size_t size, uint32_t until)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->block[i].until != UINT32_MAX)
			continue;
		size_t have = p->block[i].size, found = best == UINT32_MAX ? 0 : p->block[best].size;
		bool fits = have >= size,
		     better = fits ? found < size || have < found : have > found && found < size;
		if (best == UINT32_MAX || better)
			best = i;
	}
	if (best == UINT32_MAX)
		best = p->n++;
	p->block[best].size = p->block[best].size > size ? p->block[best].size : size;
	p->block[best].until = until;
	return best;
}

static void plan_layer(struct plan *p, const struct mw_net *net, const struct mw_layer *l)
{
	const struct mw_value *in = &net->value[l->in];
	/* A sum hands its gradient on: same memory (layer_norm.c). */
	if (l->add != UINT32_MAX && net->value[l->add].producer != UINT32_MAX) {
		uint32_t b = p->of[l->out][0];
		p->of[l->add][l->add_reader] = b;
		p->block[b].until = net->value[l->add].producer;
	}
	if (in->producer != UINT32_MAX)
		p->of[l->in][l->in_reader] = take(p, in->size, in->producer);
	for (uint32_t i = 0; i < p->n; i++)
		if (p->block[i].until == l->index)
			p->block[i].until = UINT32_MAX;
}

static void make_plan(struct plan *p, const struct mw_net *net)
{
	uint32_t last = net->n_values - 1;
	memset(p->of, 0xff, net->n_values * sizeof(*p->of));
	p->of[last][0] = take(p, net->value[last].size, net->n_layers - 1);
	for (uint32_t i = net->n_layers; i-- > 0;)
		plan_layer(p, net, &net->layer[i]);
}

static size_t aligned(size_t floats)
{
	return (floats + ALIGN - 1) / ALIGN * ALIGN;
}

static int alloc_gradients(struct mw_net_work *w, struct mw_err *err)
{
	const struct mw_net *net = w->net;
	struct plan p = { 0 };
	size_t total = 0;
	p.block = mw_alloc_array((size_t)2 * net->n_values, sizeof(*p.block), "a net's gradients", err);
	p.of = mw_alloc_array(net->n_values, sizeof(*p.of), "a net's gradients", err);
	w->grad = mw_alloc_array(net->n_values, sizeof(*w->grad), "a net's gradients", err);
	if (p.block && p.of && w->grad) {
		make_plan(&p, net);
		for (uint32_t i = 0; i < p.n; i++)
			total += aligned(p.block[i].size * w->batch);
		w->gradients = mw_alloc_array(total + MW_NET_SLACK, sizeof(float), "a net's gradients", err);
	}
	for (uint32_t v = 0; w->gradients && v < net->n_values; v++)
		for (int k = 0; k < 2; k++) {
			size_t offset = 0;
			for (uint32_t i = 0; p.of[v][k] != UINT32_MAX && i < p.of[v][k]; i++)
				offset += aligned(p.block[i].size * w->batch);
			w->grad[v][k] = p.of[v][k] == UINT32_MAX ? NULL : w->gradients + offset;
		}
	mw_free(p.block);
	mw_free(p.of);
	return w->gradients ? 0 : MW_ERESOURCE;
}

static int alloc_values(struct mw_net_work *w, struct mw_err *err)
{
	const struct mw_net *net = w->net;
	size_t total = 0;
	for (uint32_t v = 0; v < net->n_values; v++)
		total += aligned(net->value[v].size * w->batch);
	w->act = mw_alloc_array(net->n_values, sizeof(*w->act), "a net's values", err);
	w->values = mw_alloc_array(total + MW_NET_SLACK, sizeof(float), "a net's values", err);
	w->moments = mw_alloc_array(net->n_stats + 1, sizeof(float), "a net's values", err);
	w->plane = mw_alloc_array(net->value[0].size, sizeof(float), "a net's values", err);
	if (!w->act || !w->values || !w->moments || !w->plane)
		return MW_ERESOURCE;
	float *at = w->values;
	for (uint32_t v = 0; v < net->n_values; v++) {
		w->act[v] = at;
		at += aligned(net->value[v].size * w->batch);
	}
	return 0;
}

static int alloc_layers(struct mw_net_work *w, struct mw_err *err)
{
	const struct mw_net *net = w->net;
	w->scratch = mw_alloc_array(net->n_layers, sizeof(*w->scratch), "a net's layers", err);
	for (uint32_t i = 0; w->scratch && i < net->n_layers; i++) {
		const struct mw_layer *l = &net->layer[i];
		if (!l->ops->work_new)
			continue;
		w->scratch[i] = l->ops->work_new(net, w, l, w->batch, err);
		if (!w->scratch[i])
			return MW_ERESOURCE;
	}
	w->space.p = mw_alloc(w->space.want + 1, "a net's layers", err);
	return w->scratch && w->space.p ? 0 : MW_ERESOURCE;
}

void *mw_net_work_new(const struct mw_model *m, uint32_t batch_max, struct mw_err *err)
{
	struct mw_net_work *w = mw_alloc(sizeof(*w), "a net's memory", err);
	if (!w)
		return NULL;
	w->net = m->priv;
	w->k = mw_net_kernels();
	w->gemm = w->net->gemm;
	w->batch = batch_max;
	if (alloc_values(w, err) == 0 && alloc_gradients(w, err) == 0 && alloc_layers(w, err) == 0)
		return w;
	mw_net_work_free(w);
	return NULL;
}

void mw_net_work_free(void *work)
{
	struct mw_net_work *w = work;
	if (!w)
		return;
	for (uint32_t i = 0; w->scratch && i < w->net->n_layers; i++)
		if (w->scratch[i])
			w->net->layer[i].ops->work_free(&w->net->layer[i], w->scratch[i]);
	mw_free(w->scratch);
	mw_free(w->space.p);
	mw_free(w->act);
	mw_free(w->values);
	mw_free(w->moments);
	mw_free(w->plane);
	mw_free(w->grad);
	mw_free(w->gradients);
	mw_free(w);
}
