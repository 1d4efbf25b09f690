/* alone.c: see alone.h. */
#include "base/alone.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#ifdef HAVE_OPENBLAS_SET_NUM_THREADS
#include <cblas.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Sync: written once under pthread_once, read after it. NULL: no OpenMP runtime was loaded. */
static void (*set_threads)(int);

static void stay_alone(void)
{
	openblas_set_num_threads(1);
	set_threads = (__typeof__(set_threads))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
}

void mw_stay_alone(void)
{
	static _Thread_local bool done;
	if (done)
		return;
	done = true;
	pthread_once(&once, stay_alone);
	if (set_threads)
		set_threads(1);
}
#else
void mw_stay_alone(void)
{
}
#endif
