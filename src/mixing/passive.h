/*
 * passive.h: the mixing time from nothing but snapshots of the parameters (theory.md 4c): noise that gradients put into
 * one replica spreads to the others at the speed of mixing. VAR(1) (DMD) of the disagreement z = x - 1 pi^T x between
 * snapshots h steps apart: A = C1 C0^-1, and t_1 = h ln 2 / -ln(radius of A / lambda_y).
 *
 * Curvature makes z fall faster (each step multiplies it by 1 - alpha h): lambda_y, the AR(1) coefficient of the average
 * y on the same coordinates, measures that and is divided out, on the flatter half of the coordinates. It is a
 * cross-check, not the first choice: it sees first moments only, needs stationary noise and snapshots of one moment.
 */
#ifndef MW_MIXING_PASSIVE_H
#define MW_MIXING_PASSIVE_H

#include "base/err.h"
#include "mixing/estimate.h"

enum { MW_PASSIVE_ROWS_MAX = 128, MW_PASSIVE_COORDINATES = 64, MW_PASSIVE_SNAPSHOTS = 1024 };

struct mw_passive;

/*
 * Snapshots of rows x coords floats; the last MW_PASSIVE_SNAPSHOTS are kept. stride: native steps between two. epoch: native
 * steps in which every row of the data comes once (0: never, noise is independent).
 */
int mw_passive_new(uint32_t rows, const double *pi, uint32_t coords, uint64_t stride, uint64_t epoch,
	struct mw_passive **out, struct mw_err *err);
void mw_passive_free(struct mw_passive *s);
uint64_t mw_passive_stride(const struct mw_passive *s);
void mw_passive_add(struct mw_passive *s, const float *x);
/* Forget all snapshots. */
void mw_passive_restart(struct mw_passive *s);
void mw_passive_estimate(struct mw_passive *s, struct mw_estimate *out);
/*
 * The sum over modes S2F = (1/n) sum_k |Phi_k - J|_F^2 per step in which `gradients` updates enter (rounds: n, events: 1):
 * mean disagreement over the noise that the average shows from snapshot to snapshot. NAN if pi is not uniform.
 */
double mw_passive_s2f(struct mw_passive *s, uint32_t gradients);

#endif
