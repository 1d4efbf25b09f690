/* gemm.c: see gemm.h. */
#include "model/gemm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alone.h"
#include "base/kernel.h"
#include "model/net_kernel.h"

#ifdef HAVE_CBLAS
#include <cblas.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Sync: written once under pthread_once, read after it. */
static const char *why_not;
static char blas_name[80] = "BLAS";

static void blas_multiply(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda,
	const float *b, size_t ldb, bool accumulate, float *c, size_t ldc)
{
	mw_stay_alone();
	cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m,
		(int)n, (int)k, 1, a, (int)lda, b, (int)ldb, accumulate ? 1 : 0, c, (int)ldc);
}

/* Sync: as why_not. */
static struct mw_gemm openblas = { blas_name, blas_multiply, 0 };

#ifdef HAVE_OPENBLAS_SET_NUM_THREADS
static void look_at_openblas(void)
{
	const char *config = openblas_get_config(), *max = strstr(config, "MAX_THREADS=");
	size_t name = strcspn(config, " ");
	if (config[name]) /* "OpenBLAS 0.3.21 ..." */
		name += 1 + strcspn(config + name + 1, " ");
	if (name < sizeof(blas_name)) {
		memcpy(blas_name, config, name);
		blas_name[name] = '\0';
	}
	mw_stay_alone();
	if (strstr(config, "SINGLE_THREADED"))
		why_not = "this OpenBLAS is built without threads, and gives wrong numbers when several "
			  "threads call it; "
			  "install libopenblas0-pthread";
	else if (openblas_get_parallel() == 2 && openblas_get_num_threads() != 1)
		why_not = "this OpenBLAS (OpenMP) does not keep to one thread; install libopenblas0-pthread";
	/* Its buffers are for twice as many callers as the threads it was built for. */
	openblas.callers_max = max ? 2 * (uint32_t)strtoul(max + strlen("MAX_THREADS="), NULL, 10) : 0;
}
#endif

static void look(void)
{
#ifdef HAVE_OPENBLAS_SET_NUM_THREADS
	look_at_openblas();
#endif
}

const struct mw_gemm *mw_gemm_blas(const char **why)
{
	pthread_once(&once, look);
	*why = why_not;
	return why_not ? NULL : &openblas;
}
#else
const struct mw_gemm *mw_gemm_blas(const char **why)
{
	*why = "this build has no BLAS (configure found no OpenBLAS, or was told --disable-blas)";
	return NULL;
}
#endif

static void own_multiply(bool ta, bool tb, size_t m, size_t n, size_t k, const float *a, size_t lda,
	const float *b, size_t ldb, bool accumulate, float *c, size_t ldc)
{
	mw_net_kernels()->gemm(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
}

const struct mw_gemm *mw_gemm_own(void)
{
	static const struct mw_gemm own = { "own kernels", own_multiply, 0 };
	return &own;
}

int mw_gemm_resolve(enum mw_gemm_kind kind, const struct mw_gemm **out, struct mw_err *err)
{
	const char *why = "";
	enum mw_isa isa = mw_kernels()->isa;
	const struct mw_gemm *found = NULL;
	if (kind == MW_GEMM_BLAS || (kind == MW_GEMM_AUTO && isa == MW_ISA_AVX2))
		found = mw_gemm_blas(&why);
	*out = found ? found : mw_gemm_own();
	if (kind == MW_GEMM_BLAS && isa == MW_ISA_PORTABLE)
		MW_FAIL(err, USAGE,
			"--dense blas: with the portable kernels nothing may depend on the machine; leave "
			"out --dense or --isa "
			"portable");
	if (kind == MW_GEMM_BLAS && !found)
		MW_FAIL(err, RESOURCE, "--dense blas: %s; --dense auto does without", why);
	return 0;
}
