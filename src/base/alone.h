/* alone.h: mathematics libraries compute in the thread that calls them: the other CPUs are other workers'. */
#ifndef MW_BASE_ALONE_H
#define MW_BASE_ALONE_H

/*
 * Before a thread's calls to BLAS or LAPACK; cheap when repeated. Once for the process is not enough: an OpenBLAS that was made
 * with OpenMP goes by the calling thread's own number of threads, and its helpers spin between calls. Thread-safe.
 */
void mw_stay_alone(void);

#endif
