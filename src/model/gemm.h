/*
 * gemm.h: who multiplies matrices: OpenBLAS in the calling thread alone, or the kernels of net_kernel.h.
 *
 * Not every OpenBLAS does: the build without threads is not safe when several threads call it, an OpenMP build has to
 * keep to one thread when told so, and each build has a number of callers that it can't serve beyond (its buffers
 * overrun). What is not safe is not used.
 */
#ifndef MW_MODEL_GEMM_H
#define MW_MODEL_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef void mw_gemm_fn(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda,
	const float *b, size_t ldb, bool accumulate, float *c, size_t ldc);

struct mw_gemm {
	const char *name;     /* "OpenBLAS 0.3.21", "own kernels" */
	mw_gemm_fn *multiply; /* as gemm of net_kernel.h; private memory */
	uint32_t callers_max; /* threads that may call it at the same time; 0: any number */
};

/* OpenBLAS if it is there and safe; else *why (static) says why not, and NULL. Thread-safe. */
const struct mw_gemm *mw_gemm_blas(const char **why);
/* The kernels of the selected instruction set. */
const struct mw_gemm *mw_gemm_own(void);

enum mw_gemm_kind { MW_GEMM_AUTO, MW_GEMM_BLAS, MW_GEMM_OWN };
#define MW_GEMM_CHOICES "auto|blas|own"
/* The product asked for (--dense); auto: own kernels, but OpenBLAS on AVX2 (see HACKING.md). USAGE or RESOURCE if it can't be had here. */
int mw_gemm_resolve(enum mw_gemm_kind kind, const struct mw_gemm **out, struct mw_err *err);

#endif
