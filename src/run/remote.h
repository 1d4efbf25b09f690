/*
 * remote.h: reads that went to the memory of another NUMA node, by the CPU's counters (perf_event_open), of the calling
 * thread and of all threads that it makes afterwards. Virtual machines and containers often don't have them.
 */
#ifndef MW_RUN_REMOTE_H
#define MW_RUN_REMOTE_H

#include <stdint.h>

struct mw_remote {
	int fd[2];   /* reads from memory, and those of them from another node; -1: not there */
	int refused; /* errno of the first that could not be opened */
};

void mw_remote_open(struct mw_remote *r);
/* The share of reads that were remote; NAN where it isn't counted. Threads that were counted have to have ended. */
double mw_remote_share(struct mw_remote *r);
void mw_remote_close(struct mw_remote *r);
/* What that errno means here, to be put behind its text; "" where nothing is known. */
const char *mw_remote_why(int refused);

#endif
