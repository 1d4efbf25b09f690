/*
 * mask.c: the CPUs that the program was started with. An OpenMP runtime (of an OpenBLAS that is made with one) binds the main
 * thread when it is loaded, where OMP_PROC_BIND or OMP_PLACES is set: main() would find a single CPU. Functions of the
 * program's preinit array run before those of any library.
 */
#include "cli/mask.h"

#include <sys/syscall.h>
#include <unistd.h>

/* Sync: written before there are threads. */
static unsigned long mask[128];
static long mask_bytes;

/* Sanitizers aren't ready yet. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void keep_mask(void)
{
	mask_bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_libraries)(void) = keep_mask;

void cli_restore_mask(void)
{
	if (mask_bytes > 0)
		syscall(SYS_sched_setaffinity, 0, (size_t)mask_bytes, mask);
}
