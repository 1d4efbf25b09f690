/* conv.c: see conv.h. */
#include "model/conv.h"

#include "base/kernel.h"

static int need(bool usable, const char *name, const char *why, struct mw_err *err)
{
	if (!usable)
		MW_FAIL(err, RESOURCE, "--conv %s: %s; --conv auto takes what there is", name, why);
	return 0;
}

int mw_conv_resolve(enum mw_conv_kind want, enum mw_conv_kind *kind, struct mw_err *err)
{
	const char *why = "";
	bool portable = mw_kernels()->isa == MW_ISA_PORTABLE;
	*kind = want;
	if (portable && (want == MW_CONV_ONEDNN || want == MW_CONV_BLAS))
		MW_FAIL(err, USAGE,
			"--conv %s: with the portable kernels nothing may depend on the machine; leave out "
			"--conv or "
			"--isa portable",
			want == MW_CONV_ONEDNN ? "onednn" : "blas");
	if (want == MW_CONV_ONEDNN)
		MW_TRY(need(mw_onednn_usable(&why), "onednn", why, err));
	if (want == MW_CONV_BLAS)
		MW_TRY(need(mw_gemm_blas(&why), "blas", why, err));
	if (want == MW_CONV_AUTO) /* own kernels are faster than products on columns: see HACKING.md */
		*kind = !portable && MW_CONV_DEFAULT == MW_CONV_ONEDNN && mw_onednn_usable(&why)
				? MW_CONV_ONEDNN
			: !portable && MW_CONV_DEFAULT == MW_CONV_BLAS && mw_gemm_blas(&why)
				? MW_CONV_BLAS
				: MW_CONV_PORTABLE;
	return 0;
}

const struct mw_conv_ops *mw_conv_for(enum mw_conv_kind kind, const struct mw_conv_shape *s)
{
	if (kind == MW_CONV_BLAS)
		return &mw_conv_columns;
	return kind == MW_CONV_ONEDNN && mw_onednn_suits(s) ? &mw_conv_onednn : &mw_conv_own;
}

const struct mw_gemm *mw_conv_product(enum mw_conv_kind kind)
{
	const char *why;
	const struct mw_gemm *blas = kind == MW_CONV_BLAS ? mw_gemm_blas(&why) : NULL;
	return blas ? blas : mw_gemm_own();
}

void mw_conv_enter(void)
{
	mw_onednn_enter();
}
