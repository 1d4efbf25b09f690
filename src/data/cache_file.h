/* cache_file.h: internal to cache*.c: the form of a cache file, the stamp of its source, and where it lies. */
#ifndef MW_DATA_CACHE_FILE_H
#define MW_DATA_CACHE_FILE_H

#include <sys/stat.h>

#include "data/cache.h"

#define MW_CACHE_MAGIC      "MWCACHE\n"
#define MW_CACHE_VERSION    1
#define MW_CACHE_BYTE_ORDER 0x01020304U
#define MW_CACHE_HEAD_BYTES 4096
/* The content's checksum is that of the checksums of its blocks, which threads make at the same time. */
#define MW_CACHE_BLOCK_BYTES ((uint64_t)1 << 20)
/* Behind each array: vectors are read past its end (dataset.h). */
#define MW_CACHE_PAD    64
#define MW_CACHE_PLACES 2

enum mw_cache_array {
	MW_CACHE_ROW_PTR,
	MW_CACHE_COL,
	MW_CACHE_VAL,
	MW_CACHE_Y,
	MW_CACHE_LABEL_VALUE,
	MW_CACHE_LABEL_COUNT,
	MW_CACHE_ARRAYS
};

/* Which source, and when. */
struct mw_cache_stamp {
	uint64_t size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
	uint64_t inode, device;
	/* Were the times old enough that a later write can't have the same? Clocks of file systems are coarse. */
	uint64_t settled;
	uint64_t samples, all; /* checksums */
};

/* What the request says about reading. */
struct mw_cache_key {
	uint64_t index_base, features, label_kind, like, like_libsvm, like_base, like_features, like_classes,
		like_labels;
};

/* The first bytes of the file; zero up to MW_CACHE_HEAD_BYTES. The arrays follow in the order of the enum. */
struct mw_cache_head {
	char magic[8];
	uint32_t byte_order, version;
	char program[32]; /* of mixwild: another may read text differently */
	uint64_t bytes;   /* of the file */
	struct mw_cache_stamp source;
	struct mw_cache_key key;
	uint64_t rows, nnz, features, classes, index_base, text_bytes;
	uint64_t at[MW_CACHE_ARRAYS]; /* where each array begins; 64-byte aligned */
	uint64_t content;             /* checksum of what follows the head */
	uint64_t head;                /* checksum of what stands before it here */
};

/* Offsets and the file's size, from the other fields. Returns false if they are too large for a file. */
bool mw_cache_layout(struct mw_cache_head *h);
uint64_t mw_cache_head_sum(const struct mw_cache_head *h);
void mw_cache_make_key(const struct mw_data_request *req, struct mw_cache_key *key);

/* All but the checksums. Returns false if the file can't be looked at. */
bool mw_cache_stat(const char *path, struct mw_cache_stamp *s);
/* Were these made of the same state of the same file, as far as that can be told without reading it? */
bool mw_cache_same_times(const struct mw_cache_stamp *a, const struct mw_cache_stamp *b);
bool mw_cache_samples(const char *path, uint64_t size, uint64_t *sum);
/* Checksum of the whole file, read in parallel. */
bool mw_cache_whole(const char *path, uint64_t size, int threads, uint64_t *sum);

/*
 * Where the cache may lie, in the order in which they are tried: beside the source, then in the user's cache folder.
 * NULL: there is no such place. Returns malloc'ed strings; the caller frees them.
 */
void mw_cache_paths(const char *source, const struct mw_cache_key *key, char *path[MW_CACHE_PLACES]);

/* Replace d's note by this text. */
void mw_cache_note(struct mw_dataset *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
