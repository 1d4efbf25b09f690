/*
 * cache.h: a sparse set that was read once, kept as the arrays it became, so that the next start maps them instead of
 * reading text.
 *
 * A cache file belongs to one source file and to what the request says about reading it. It is used only if the source
 * is the same: by size and, if its times and inode are those of then, by samples of its bytes, otherwise by a checksum of
 * all of them; and only if its own content is whole: version, byte order, length, checksum, and every index within its
 * bounds. What isn't so is passed over. doc/files.md says where the files lie and what that promises.
 */
#ifndef MW_DATA_CACHE_H
#define MW_DATA_CACHE_H

#include "data/dataset.h"

/*
 * Fill d from the request's cache. Returns whether that was possible; if not, d is unchanged but for its cache_note,
 * which says what was wrong with a file that was there.
 */
bool mw_cache_load(const struct mw_data_request *req, struct mw_dataset *d);

/* The source as it was before it was read; see mw_cache_store. */
struct mw_cache_source;
struct mw_cache_source *mw_cache_source_new(const struct mw_data_request *req);
void mw_cache_source_free(struct mw_cache_source *s);
/*
 * Write d's cache, unless the source has changed since. There is no error: a data set without a cache is as good; d's
 * cache_note says what came of it. `before` may be NULL, which is out of memory.
 */
void mw_cache_store(
	const struct mw_data_request *req, const struct mw_cache_source *before, struct mw_dataset *d);

#endif
