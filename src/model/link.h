/*
 * link.h: the scalar losses of one-output linear models and their derivatives in the margin z; labels y are
 * -1 or +1 (logistic, hinge, sigmoid-squared) or real (squared). Inline, so that a fused update path computes the same bits.
 */
#ifndef MW_MODEL_LINK_H
#define MW_MODEL_LINK_H

#include "base/approx.h"
#include "model/model.h"

/*
 * logistic: log(1 + exp(-y z)); hinge: max(0, 1 - y z); squared: (z - y)^2 / 2; sigmoid-squared: p^2 with p = 1/(1 + exp(y z)),
 * the squared distance of the sigmoid from the label as 0 or 1: smooth and not convex
 */
static inline float mw_link_loss(enum mw_link link, float z, float y)
{
	switch (link) {
	case MW_LINK_LOGISTIC: return mw_softplus(-y * z);
	case MW_LINK_HINGE: return y * z < 1.0f ? 1.0f - y * z : 0.0f;
	case MW_LINK_SIGMOID_SQUARED: {
		float p = mw_sigmoid(-y * z);
		return p * p;
	}
	default: return 0.5f * (z - y) * (z - y);
	}
}

/* d loss / d z; hinge: 0 at the kink y z = 1, a subgradient. */
static inline float mw_link_dloss(enum mw_link link, float z, float y)
{
	switch (link) {
	case MW_LINK_LOGISTIC: return -y * mw_sigmoid(-y * z);
	case MW_LINK_HINGE: return y * z < 1.0f ? -y : 0.0f;
	case MW_LINK_SIGMOID_SQUARED: {
		float p = mw_sigmoid(-y * z);
		return -2.0f * y * p * p * (1.0f - p);
	}
	default: return z - y;
	}
}

/*
 * The largest second derivative in z, in absolute value; 0: there is none (hinge). sigmoid-squared: p' = p (1 - p), so the
 * second derivative is 2 p^2 (2 - 3 p)(1 - p), whose extremes are at 12 p^2 - 15 p + 4 = 0, p = (15 -+ sqrt(33)) / 24.
 */
static inline double mw_link_curvature(enum mw_link link)
{
	switch (link) {
	case MW_LINK_LOGISTIC: return 0.25;
	case MW_LINK_HINGE: return 0;
	case MW_LINK_SIGMOID_SQUARED: return 0.154058570121351;
	default: return 1;
	}
}

/* The largest first derivative, in absolute value; 0: it grows without limit. sigmoid-squared: at p = 2/3. */
static inline double mw_link_slope(enum mw_link link)
{
	switch (link) {
	case MW_LINK_LOGISTIC:
	case MW_LINK_HINGE: return 1;
	case MW_LINK_SIGMOID_SQUARED: return 8.0 / 27;
	default: return 0;
	}
}

#endif
