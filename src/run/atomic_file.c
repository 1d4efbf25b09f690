/* atomic_file.c: see atomic_file.h. */
#include "run/atomic_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

int mw_atomic_file_open(struct mw_atomic_file *f, const char *path, struct mw_err *err)
{
	*f = (struct mw_atomic_file){ .path = mw_strdup(path), .temporary = mw_strprintf("%s.tmp", path) };
	if (f->path && f->temporary)
		f->file = fopen(f->temporary, "wb");
	if (!f->file) {
		mw_err_set(err, MW_ERESOURCE, "%s.tmp: %s", path, strerror(errno));
		mw_atomic_file_abort(f);
		return err ? err->code : MW_ERESOURCE;
	}
	return 0;
}

int mw_atomic_file_commit(struct mw_atomic_file *f, struct mw_err *err)
{
	int bad = ferror(f->file) || fflush(f->file) || fsync(fileno(f->file));
	bad |= fclose(f->file);
	f->file = NULL;
	if (!bad)
		bad = rename(f->temporary, f->path);
	if (bad) {
		mw_err_set(err, MW_ERESOURCE, "%s can't be written: %s", f->path, strerror(errno));
		mw_atomic_file_abort(f);
		return MW_ERESOURCE;
	}
	free(f->path);
	free(f->temporary);
	*f = (struct mw_atomic_file){ 0 };
	return 0;
}

void mw_atomic_file_abort(struct mw_atomic_file *f)
{
	if (f->file)
		fclose(f->file);
	if (f->temporary)
		unlink(f->temporary);
	free(f->path);
	free(f->temporary);
	*f = (struct mw_atomic_file){ 0 };
}
