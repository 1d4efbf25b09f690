/*
 * conv_onednn.c: convolutions by oneDNN. Images stay NHWC; weights are put into the order that its kernels ask for,
 * once a step. Each worker has primitives of its own: one set for full batches and one for single images (the rest of
 * an evaluation).
 *
 * The library is loaded when it is first wanted, since it brings OpenCL, a C++ library and an OpenMP runtime with it.
 * That runtime may bind the calling thread when it is loaded (OMP_PROC_BIND): the mask is put back.
 */
#include "model/conv.h"

#ifdef HAVE_ONEDNN
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/kernel.h"
#include "base/mem.h"

#define FUNCTIONS(X)                              \
	X(convolution_backward_data_desc_init)    \
	X(convolution_backward_weights_desc_init) \
	X(convolution_forward_desc_init)          \
	X(engine_create)                          \
	X(memory_create)                          \
	X(memory_desc_equal)                      \
	X(memory_desc_get_size)                   \
	X(memory_desc_init_by_tag)                \
	X(memory_destroy)                         \
	X(memory_set_data_handle)                 \
	X(primitive_attr_create)                  \
	X(primitive_attr_destroy)                 \
	X(primitive_attr_set_scratchpad_mode)     \
	X(primitive_create)                       \
	X(primitive_desc_create)                  \
	X(primitive_desc_destroy)                 \
	X(primitive_desc_query)                   \
	X(primitive_desc_query_md)                \
	X(primitive_destroy)                      \
	X(primitive_execute)                      \
	X(reorder_primitive_desc_create)          \
	X(set_max_cpu_isa)                        \
	X(stream_create)                          \
	X(stream_destroy)                         \
	X(version)

/* Sync: all of this is written once under pthread_once and read after it. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
#define X(f) __typeof__(&dnnl_##f) f;
	FUNCTIONS(X)
#undef X
	void (*set_threads)(int);
	int (*max_threads)(void);
	dnnl_engine_t engine;
	const char *why_not;
	char name[32];
} dn;

/* --- the library --------------------------------------------------------------------------------------------------- */

static void *open_library(void)
{
	cpu_set_t mask;
	bool known = sched_getaffinity(0, sizeof(mask), &mask) == 0;
	void *lib = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (known)
		sched_setaffinity(0, sizeof(mask), &mask);
	return lib;
}

static bool find_functions(void *lib)
{
	bool all = true;
#define X(f) all = (dn.f = (__typeof__(dn.f))dlsym(lib, "dnnl_" #f)) && all;
	FUNCTIONS(X)
#undef X
	dn.set_threads = (__typeof__(dn.set_threads))dlsym(lib, "omp_set_num_threads");
	dn.max_threads = (__typeof__(dn.max_threads))dlsym(lib, "omp_get_max_threads");
	return all;
}

static void load(void)
{
	void *lib = open_library();
	if (!lib) {
		dn.why_not = "libdnnl.so.2 is not on this machine: apt-get install libdnnl2";
		return;
	}
	if (!find_functions(lib) || dn.version()->major != 2) {
		dn.why_not = "the libdnnl.so.2 of this machine lacks functions of oneDNN 2.6";
		return;
	}
	/* No OpenMP runtime: a library built for one thread. */
	if (dn.set_threads && dn.max_threads) {
		dn.set_threads(1);
		if (dn.max_threads() != 1) {
			dn.why_not = "its OpenMP runtime does not keep to one thread";
			return;
		}
	}
	if (mw_kernels()->isa == MW_ISA_AVX2)
		dn.set_max_cpu_isa(dnnl_cpu_isa_avx2);
	if (dn.engine_create(&dn.engine, dnnl_cpu, 0) != dnnl_success) {
		dn.why_not = "oneDNN can't use this CPU";
		return;
	}
	snprintf(dn.name, sizeof(dn.name), "oneDNN %d.%d.%d", dn.version()->major, dn.version()->minor,
		dn.version()->patch);
}

bool mw_onednn_usable(const char **why)
{
	pthread_once(&once, load);
	*why = dn.why_not;
	return !dn.why_not;
}

const char *mw_onednn_name(void)
{
	return dn.name;
}

/* The number of threads is each thread's own variable in OpenMP. */
void mw_onednn_enter(void)
{
	if (dn.set_threads)
		dn.set_threads(1);
}

/* --- primitives ---------------------------------------------------------------------------------------------------- */

enum pass { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, PASSES };

struct primitive {
	dnnl_primitive_t run, reorder;
	dnnl_memory_t image, result; /* x and y, dy and dx, or x and dy */
	dnnl_memory_t weight;        /* in the kernel's order; the caller's own when that is OIHW */
	dnnl_memory_t plain;         /* OIHW; with reorder */
	dnnl_memory_t scratch;
	float *packed; /* memory of weight; NULL: OIHW */
};

struct set {
	uint32_t batch;
	struct primitive pass[PASSES];
};

struct work {
	struct mw_conv_shape s;
	struct mw_conv_space *space;
	dnnl_stream_t stream;
	struct set full, single;
	float *dweight; /* of one image, added up where a batch is not full */
};

struct descs {
	dnnl_memory_desc_t x, y, weight, plain;
	dnnl_dims_t stride, pad;
};

static void describe(const struct mw_conv_shape *s, uint32_t batch, struct descs *d)
{
	dnnl_dims_t x = { batch, s->in, s->rows, s->cols }, y = { batch, s->out, s->out_rows, s->out_cols };
	dnnl_dims_t w = { s->out, s->in, s->kernel, s->kernel };
	dn.memory_desc_init_by_tag(&d->x, 4, x, dnnl_f32, dnnl_nhwc);
	dn.memory_desc_init_by_tag(&d->y, 4, y, dnnl_f32, dnnl_nhwc);
	dn.memory_desc_init_by_tag(&d->weight, 4, w, dnnl_f32, dnnl_format_tag_any);
	dn.memory_desc_init_by_tag(&d->plain, 4, w, dnnl_f32, dnnl_oihw);
	for (int i = 0; i < 2; i++) {
		d->stride[i] = s->stride;
		d->pad[i] = s->pad;
	}
}

static dnnl_primitive_desc_t desc_new(const struct mw_conv_shape *s, uint32_t batch, enum pass pass,
	struct descs *d, dnnl_primitive_desc_t hint)
{
	dnnl_convolution_desc_t c;
	dnnl_primitive_attr_t attr = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_alg_kind_t direct = dnnl_convolution_direct;
	describe(s, batch, d);
	dnnl_status_t st =
		pass == FORWARD ? dn.convolution_forward_desc_init(&c, dnnl_forward_training, direct, &d->x,
					  &d->weight, NULL, &d->y, d->stride, d->pad, d->pad)
		: pass == BACKWARD_DATA ? dn.convolution_backward_data_desc_init(&c, direct, &d->x,
						  &d->weight, &d->y, d->stride, d->pad, d->pad)
					: dn.convolution_backward_weights_desc_init(&c, direct, &d->x,
						  &d->weight, NULL, &d->y, d->stride, d->pad, d->pad);
	if (st == dnnl_success && dn.primitive_attr_create(&attr) == dnnl_success) {
		dn.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
		if (dn.primitive_desc_create(&pd, &c, attr, dn.engine, hint) != dnnl_success)
			pd = NULL;
		dn.primitive_attr_destroy(attr);
	}
	return pd;
}

static bool only_reference(dnnl_primitive_desc_t pd)
{
	const char *name = "";
	dn.primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
	return strstr(name, "ref") || strstr(name, "gemm:");
}

bool mw_onednn_suits(const struct mw_conv_shape *s)
{
	struct descs d;
	const char *why;
	if (!mw_onednn_usable(&why))
		return false;
	mw_onednn_enter();
	dnnl_primitive_desc_t fwd = desc_new(s, 16, FORWARD, &d, NULL);
	bool good = fwd && !only_reference(fwd);
	for (int p = BACKWARD_DATA; p < PASSES && good; p++) {
		dnnl_primitive_desc_t pd = desc_new(s, 16, (enum pass)p, &d, fwd);
		good = pd && !only_reference(pd);
		if (pd)
			dn.primitive_desc_destroy(pd);
	}
	if (fwd)
		dn.primitive_desc_destroy(fwd);
	return good;
}

static int check(dnnl_status_t st, const struct mw_conv_shape *s, struct mw_err *err)
{
	if (st != dnnl_success)
		MW_FAIL(err, RESOURCE,
			"oneDNN has no convolution %ux%u of %u to %u channels with stride %u on %ux%u pixels "
			"(status %d); "
			"use --conv blas",
			s->kernel, s->kernel, s->in, s->out, s->stride, s->rows, s->cols, (int)st);
	return 0;
}

static int reorder_new(struct primitive *p, const struct mw_conv_shape *s, const dnnl_memory_desc_t *from,
	const dnnl_memory_desc_t *to, struct mw_err *err)
{
	dnnl_primitive_desc_t pd;
	MW_TRY(check(dn.reorder_primitive_desc_create(&pd, from, dn.engine, to, dn.engine, NULL), s, err));
	dnnl_status_t st = dn.primitive_create(&p->reorder, pd);
	dn.primitive_desc_destroy(pd);
	return check(st, s, err);
}

static int weights_new(struct primitive *p, const struct mw_conv_shape *s, enum pass pass,
	dnnl_primitive_desc_t pd, const dnnl_memory_desc_t *plain, struct mw_err *err)
{
	const dnnl_memory_desc_t *md = dn.primitive_desc_query_md(
		pd, pass == BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
	MW_TRY(check(dn.memory_create(&p->weight, md, dn.engine, DNNL_MEMORY_NONE), s, err));
	if (dn.memory_desc_equal(md, plain))
		return 0;
	p->packed = mw_alloc(dn.memory_desc_get_size(md), "a convolution", err);
	if (!p->packed)
		return MW_ERESOURCE;
	dn.memory_set_data_handle(p->weight, p->packed);
	MW_TRY(check(dn.memory_create(&p->plain, plain, dn.engine, DNNL_MEMORY_NONE), s, err));
	return pass == BACKWARD_WEIGHTS ? reorder_new(p, s, md, plain, err)
					: reorder_new(p, s, plain, md, err);
}

static int primitive_new(struct primitive *p, struct work *w, uint32_t batch, enum pass pass,
	dnnl_primitive_desc_t fwd, dnnl_primitive_desc_t *keep, struct mw_err *err)
{
	struct descs d;
	dnnl_primitive_desc_t pd = desc_new(&w->s, batch, pass, &d, fwd);
	if (!pd)
		return check(dnnl_unimplemented, &w->s, err);
	const dnnl_memory_desc_t *scratch = dn.primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	size_t bytes = dn.memory_desc_get_size(scratch);
	int code = check(dn.primitive_create(&p->run, pd), &w->s, err);
	if (code == 0)
		code = weights_new(p, &w->s, pass, pd, &d.plain, err);
	if (code == 0)
		code = check(dn.memory_create(&p->image, &d.x, dn.engine, DNNL_MEMORY_NONE), &w->s, err);
	if (code == 0)
		code = check(dn.memory_create(&p->result, &d.y, dn.engine, DNNL_MEMORY_NONE), &w->s, err);
	if (code == 0)
		code = check(dn.memory_create(&p->scratch, scratch, dn.engine, DNNL_MEMORY_NONE), &w->s, err);
	w->space->want = bytes > w->space->want ? bytes : w->space->want;
	if (keep)
		*keep = pd;
	else
		dn.primitive_desc_destroy(pd);
	return code;
}

static int set_new(struct set *s, struct work *w, uint32_t batch, struct mw_err *err)
{
	dnnl_primitive_desc_t fwd = NULL;
	s->batch = batch;
	int code = primitive_new(&s->pass[FORWARD], w, batch, FORWARD, NULL, &fwd, err);
	for (int p = BACKWARD_DATA; p < PASSES && code == 0; p++)
		code = primitive_new(&s->pass[p], w, batch, (enum pass)p, fwd, NULL, err);
	if (fwd)
		dn.primitive_desc_destroy(fwd);
	return code;
}

static void set_free(struct set *s)
{
	for (int i = 0; i < PASSES; i++) {
		struct primitive *p = &s->pass[i];
		dnnl_memory_t all[] = { p->image, p->result, p->weight, p->plain, p->scratch };
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			if (all[k])
				dn.memory_destroy(all[k]);
		if (p->run)
			dn.primitive_destroy(p->run);
		if (p->reorder)
			dn.primitive_destroy(p->reorder);
		mw_free(p->packed);
	}
}

static void work_free(void *work)
{
	struct work *w = work;
	if (w) {
		set_free(&w->full);
		set_free(&w->single);
		if (w->stream)
			dn.stream_destroy(w->stream);
		mw_free(w->dweight);
	}
	mw_free(w);
}

static void *work_new(const struct mw_conv_shape *s, uint32_t batch, const struct mw_gemm *gemm,
	struct mw_conv_space *space, struct mw_err *err)
{
	struct work *w = mw_alloc(sizeof(*w), "a convolution", err);
	(void)gemm;
	if (!w)
		return NULL;
	w->s = *s;
	w->space = space;
	w->full.batch = w->single.batch = 1;
	mw_onednn_enter();
	int code = check(dn.stream_create(&w->stream, dn.engine, dnnl_stream_default_flags), s, err);
	if (code == 0 && batch > 1)
		code = set_new(&w->full, w, batch, err);
	if (code == 0)
		code = set_new(&w->single, w, 1, err);
	if (code == 0) {
		size_t n = (size_t)s->out * s->in * s->kernel * s->kernel;
		w->dweight = mw_alloc_array(n, sizeof(float), "a convolution", err);
		code = w->dweight ? 0 : MW_ERESOURCE;
	}
	if (code == 0)
		return w;
	work_free(w);
	return NULL;
}

/* --- execution ----------------------------------------------------------------------------------------------------- */

/* The caller's weights in the kernel's order. */
static void pack(struct work *w, struct primitive *p, const float *weight)
{
	if (!p->packed) {
		dn.memory_set_data_handle(p->weight, (void *)(uintptr_t)weight);
		return;
	}
	dn.memory_set_data_handle(p->plain, (void *)(uintptr_t)weight);
	dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, p->plain }, { DNNL_ARG_TO, p->weight } };
	dn.primitive_execute(p->reorder, w->stream, 2, args);
}

static void unpack(struct work *w, struct primitive *p, float *dweight)
{
	if (!p->packed)
		return;
	dn.memory_set_data_handle(p->plain, dweight);
	dnnl_exec_arg_t args[] = { { DNNL_ARG_FROM, p->weight }, { DNNL_ARG_TO, p->plain } };
	dn.primitive_execute(p->reorder, w->stream, 2, args);
}

static void run(struct work *w, struct primitive *p, enum pass pass, const float *image, const float *result)
{
	static const int names[PASSES][3] = { { DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WEIGHTS },
		{ DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS },
		{ DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS } };
	dn.memory_set_data_handle(p->image, (void *)(uintptr_t)image);
	dn.memory_set_data_handle(p->result, (void *)(uintptr_t)result);
	dn.memory_set_data_handle(p->scratch, w->space->p);
	dnnl_exec_arg_t args[] = { { names[pass][0], p->image }, { names[pass][1], p->result },
		{ names[pass][2], p->weight }, { DNNL_ARG_SCRATCHPAD, p->scratch } };
	dn.primitive_execute(p->run, w->stream, 4, args);
}

static size_t image_size(const struct work *w)
{
	return (size_t)w->s.rows * w->s.cols * w->s.in;
}

static size_t result_size(const struct work *w)
{
	return (size_t)w->s.out_rows * w->s.out_cols * w->s.out;
}

static void forward(void *work, uint32_t n, const float *x, const float *weight, float *y)
{
	struct work *w = work;
	struct set *s = n > 1 && n == w->full.batch ? &w->full : &w->single;
	pack(w, &s->pass[FORWARD], weight);
	for (uint32_t i = 0; i < n; i += s->batch)
		run(w, &s->pass[FORWARD], FORWARD, x + i * image_size(w), y + i * result_size(w));
}

static void weights_backward(struct work *w, struct set *s, const float *x, const float *dy, float *dweight)
{
	struct primitive *p = &s->pass[BACKWARD_WEIGHTS];
	if (!p->packed)
		dn.memory_set_data_handle(p->weight, dweight);
	run(w, p, BACKWARD_WEIGHTS, x, dy);
	unpack(w, p, dweight);
}

static void backward(void *work, uint32_t n, const float *x, const float *dy, const float *weight, float *dx,
	float *dweight)
{
	struct work *w = work;
	struct set *s = n == w->full.batch && n > 1 ? &w->full : &w->single;
	size_t size = (size_t)w->s.out * w->s.in * w->s.kernel * w->s.kernel;
	for (uint32_t i = 0; i < n; i += s->batch) {
		const float *d = dy + i * result_size(w);
		weights_backward(w, s, x + i * image_size(w), d, i ? w->dweight : dweight);
		for (size_t k = 0; i && k < size; k++)
			dweight[k] += w->dweight[k];
		if (!dx)
			continue;
		if (!i)
			pack(w, &s->pass[BACKWARD_DATA], weight);
		run(w, &s->pass[BACKWARD_DATA], BACKWARD_DATA, dx + i * image_size(w), d);
	}
}

const struct mw_conv_ops mw_conv_onednn = { "onednn", work_new, work_free, forward, backward };

#else

bool mw_onednn_usable(const char **why)
{
	*why = "this build is without it (configure found no oneDNN 2: apt-get install libdnnl-dev)";
	return false;
}

const char *mw_onednn_name(void)
{
	return "";
}

bool mw_onednn_suits(const struct mw_conv_shape *s)
{
	(void)s;
	return false;
}

void mw_onednn_enter(void)
{
}

const struct mw_conv_ops mw_conv_onednn = { 0 };

#endif
