/*
 * kernel_body.h: the kernel table of one instruction set. The including file defines MW_KERNEL_TABLE (the
 * table's name), MW_KERNEL_NAME and MW_KERNEL_ISA.
 */
#include "base/kernel.h"
#include "base/kernel_inline.h"

static float dot(const float *a, const float *b, size_t n)
{
	return mwk_dot(a, b, n);
}

static float dot_compact(const float *wc, const float *val, size_t n)
{
	return mwk_dot_compact(wc, val, n);
}

static float dot_sparse(const float *w, const uint32_t *idx, const float *val, size_t n)
{
	return mwk_dot_sparse(w, idx, val, n);
}

static void axpy_sparse(float a, const uint32_t *idx, const float *val, float *w, size_t n)
{
	mwk_axpy_sparse(a, idx, val, w, n);
}

static void axpy(float a, const float *x, float *w, size_t n)
{
	mwk_axpy(a, x, w, n);
}

static void view(const float *w, float *out, size_t n)
{
	mwk_view(w, out, n);
}

static void store(const float *x, float *w, size_t n)
{
	mwk_copy_to(x, w, n);
}

static void gather(const float *w, const uint32_t *group, size_t n, uint32_t width, float *out)
{
	mwk_gather_groups(w, group, n, width, out);
}

static void scatter_add(const float *d, const uint32_t *group, size_t n, uint32_t width, float *w)
{
	mwk_scatter_groups(d, group, n, width, w);
}

static void rows_dot(
	const float *w, const uint32_t *group, const float *val, size_t n, uint32_t width, float *z)
{
	mwk_rows_dot(w, group, val, n, width, z);
}

static void rows_add(
	const float *c, const uint32_t *group, const float *val, size_t n, uint32_t width, float *g)
{
	mwk_rows_add(c, group, val, n, width, g);
}

static size_t nonzeros(const float *x, size_t n, uint32_t *idx, float *val)
{
	return mwk_nonzeros(x, n, idx, val);
}

static float sigmoid(float z)
{
	return mw_sigmoid(z);
}

static float softplus(float z)
{
	return mw_softplus(z);
}

static float softmax(float *z, size_t n)
{
	return mwk_softmax(z, n);
}

const struct mw_kernels MW_KERNEL_TABLE = {
	.name = MW_KERNEL_NAME,
	.isa = MW_KERNEL_ISA,
	.dot = dot,
	.dot_sparse = dot_sparse,
	.dot_compact = dot_compact,
	.axpy_sparse = axpy_sparse,
	.axpy = axpy,
	.view = view,
	.store = store,
	.gather = gather,
	.scatter_add = scatter_add,
	.rows_dot = rows_dot,
	.rows_add = rows_add,
	.nonzeros = nonzeros,
	.sigmoid = sigmoid,
	.softplus = softplus,
	.softmax = softmax,
};
