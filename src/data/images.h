/*
 * images.h: images as bytes: a batch of them as a dense block of floats, the form in which nets take their input; and
 * what the readers of image files share.
 */
#ifndef MW_DATA_IMAGES_H
#define MW_DATA_IMAGES_H

#include "data/dataset.h"

enum mw_image_layout { MW_NCHW, MW_NHWC };

/*
 * The batch's examples in row order, features floats each, into out[n * features]. IMAGE data: normalised
 * per channel and, where b->augment is not 0, shifted by up to 4 pixels (what comes in from outside is the channel's
 * mean, that is 0) and mirrored with probability 1/2, as a pure function of (b->augment, place in the batch); in the
 * layout asked for. DENSE and CSR rows are copied as they are and have no layout; QUADRATIC has no examples. Thread-safe.
 */
void mw_batch_floats(const struct mw_batch *b, enum mw_image_layout layout, float *out);

/*
 * For readers. A set of channels * image_rows * image_cols bytes a row becomes IMAGE (req->keep_bytes) or DENSE rows of
 * byte/255. prepare: checks the shape against req->like and req->features; from rows, channels, image_rows and image_cols it
 * sets kind, features, ld and nnz and allocates. put: n rows of bytes from `row` on; several threads may put different rows.
 * finish: the channels' mean and scale (1 / standard deviation, over all rows), or those of req->like if that is IMAGE.
 */
int mw_images_prepare(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err);
void mw_images_put(struct mw_dataset *d, uint64_t row, uint64_t n, const uint8_t *bytes);
void mw_images_finish(const struct mw_data_request *req, struct mw_dataset *d);

#endif
