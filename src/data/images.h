/*
 * images.h: a batch of examples as a dense block of floats, the form in which nets take their input.
 */
#ifndef MW_DATA_IMAGES_H
#define MW_DATA_IMAGES_H

#include "data/dataset.h"

enum mw_image_layout { MW_NCHW, MW_NHWC };

/*
 * The batch's examples in row order, features floats each, into out[n * features]. IMAGE data: normalised
 * per channel and, where b->augment is not 0, shifted by up to 4 pixels (zero padding before normalisation would
 * be grey: the padding is the channel's mean, that is 0) and mirrored with probability 1/2, as a pure function of
 * (b->augment, place in the batch); in the layout asked for. DENSE and CSR rows are copied as they are and
 * have no layout. Thread-safe.
 */
void mw_batch_floats(const struct mw_batch *b, enum mw_image_layout layout, float *out);

#endif
