/*
 * linalg.h: the dense linear algebra of the mixing time, by OpenBLAS and LAPACKE where configure found them, else by own
 * loops. Matrices are n x n, row-major; all calls are thread-safe on distinct arguments.
 */
#ifndef MW_MIXING_LINALG_H
#define MW_MIXING_LINALG_H

#include <stdint.h>
#include <stdbool.h>

void mix_multiply(uint32_t n, const double *a, const double *b, double *c); /* c := a b; c aliases neither */
void mix_gram(uint32_t n, const double *a, double *g);                      /* upper triangle of g := a^T a */
/* Is the symmetric matrix (upper triangle) positive definite? Destroys it. */
bool mix_positive(uint32_t n, double *a);
/*
 * Eigenvalues of the symmetric a (upper triangle), ascending, into w; with `vectors`, row k of a becomes the k-th
 * eigenvector, else a is destroyed. False when the iteration does not converge.
 */
bool mix_eigen(uint32_t n, double *a, double *w, bool vectors);

#endif
