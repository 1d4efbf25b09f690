/* replay.h: what a replay found out about its trace. */
#ifndef MW_RUN_REPLAY_H
#define MW_RUN_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

struct mw_replay_report {
	uint64_t events;
	uint64_t
		ambiguous; /* events without versions that overlapped one of another worker: their order is a guess */
	uint64_t left; /* workers whose events could not all be performed */
	bool misfit;   /* an event did not fit the run: other options, or a damaged trace */
};

#endif
