/*
 * link.h: the scalar losses of one-output linear models and their derivatives in the margin z; labels y are
 * -1 or +1 (logistic, hinge) or real (squared). Inline, so that a fused update path computes the same bits.
 */
#ifndef MW_MODEL_LINK_H
#define MW_MODEL_LINK_H

#include "base/approx.h"
#include "model/model.h"

/* logistic: log(1 + exp(-y z)); hinge: max(0, 1 - y z); squared: (z - y)^2 / 2 */
static inline float mw_link_loss(enum mw_link link, float z, float y)
{
	switch (link) {
	case MW_LINK_LOGISTIC: return mw_softplus(-y * z);
	case MW_LINK_HINGE: return y * z < 1.0f ? 1.0f - y * z : 0.0f;
	default: return 0.5f * (z - y) * (z - y);
	}
}

/* d loss / d z; hinge: 0 at the kink y z = 1, a subgradient. */
static inline float mw_link_dloss(enum mw_link link, float z, float y)
{
	switch (link) {
	case MW_LINK_LOGISTIC: return -y * mw_sigmoid(-y * z);
	case MW_LINK_HINGE: return y * z < 1.0f ? -y : 0.0f;
	default: return z - y;
	}
}

#endif
