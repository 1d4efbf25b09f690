/* atomic_file.h: a file that is there whole or not at all: written beside its place, synced, renamed. */
#ifndef MW_RUN_ATOMIC_FILE_H
#define MW_RUN_ATOMIC_FILE_H

#include <stdio.h>

#include "base/err.h"

struct mw_atomic_file {
	FILE *file;
	char *path, *temporary;
};

int mw_atomic_file_open(struct mw_atomic_file *f, const char *path, struct mw_err *err);
/* Sync, close, rename; on error the earlier file is still there. Ends f either way. */
int mw_atomic_file_commit(struct mw_atomic_file *f, struct mw_err *err);
/* Give up: remove the temporary file. */
void mw_atomic_file_abort(struct mw_atomic_file *f);

#endif
