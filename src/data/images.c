/* images.c: see images.h. */
#include "data/images.h"

#include <string.h>

static void image(const struct mw_dataset *d, uint64_t row, enum mw_image_layout layout, float *out)
{
	size_t pixels = (size_t)d->image_rows * d->image_cols, channels = d->channels;
	const uint8_t *from = d->pixel + row * d->features;
	for (size_t c = 0; c < channels; c++)
		for (size_t p = 0; p < pixels; p++) {
			size_t at = layout == MW_NHWC ? p * channels + c : c * pixels + p;
			out[at] = ((float)from[c * pixels + p] - d->pixel_mean[c]) * d->pixel_scale[c];
		}
}

static void sparse(const struct mw_dataset *d, uint64_t row, float *out)
{
	memset(out, 0, d->features * sizeof(*out));
	for (uint64_t i = d->row_ptr[row]; i < d->row_ptr[row + 1]; i++)
		out[d->col[i]] = d->val[i];
}

void mw_batch_floats(const struct mw_batch *b, enum mw_image_layout layout, float *out)
{
	const struct mw_dataset *d = b->data;
	for (uint32_t i = 0; i < b->n; i++, out += d->features)
		if (d->kind == MW_X_IMAGE)
			image(d, b->row[i], layout, out);
		else if (d->kind == MW_X_CSR)
			sparse(d, b->row[i], out);
		else
			memcpy(out, d->x + b->row[i] * d->ld, d->features * sizeof(*out));
}
