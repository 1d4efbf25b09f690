/*
 * ini.h: a small reader of INI files: [section], key = value, comments after # or ; at a line's
 * beginning, or after # behind space. It keeps the
 * order, repeated keys and the line of everything, so that a message can name FILE:LINE.
 */
#ifndef MW_BASE_INI_H
#define MW_BASE_INI_H

#include <stddef.h>

#include "base/err.h"

struct mw_ini_entry {
	char *key, *value; /* without the space around them; the value may be empty */
	int line;
};

struct mw_ini_section {
	char *name;
	int line;
	struct mw_ini_entry *entry;
	size_t n;
};

struct mw_ini {
	char *path;
	struct mw_ini_section *section; /* in the file's order; names are unique */
	size_t n;
};

/*
 * Read a file. A line that ends with a backslash goes on in the next one. DATA: it can't be read; USAGE (with FILE:LINE):
 * a line that is neither of these, a key before the first section, a section that is there already. On error too
 * mw_ini_free works. Thread-safe for distinct ini.
 */
int mw_ini_load(const char *path, struct mw_ini *ini, struct mw_err *err);
/* Free what load has made; a zeroed ini is fine. */
void mw_ini_free(struct mw_ini *ini);

/*
 * Cut a value into words: parted by space, "..." or '...' keep space together (and need not be a word's whole).
 * *words is a NULL-terminated array; mw_ini_words_free it. The number of words, or a negative code (USAGE: a quotation
 * mark without its partner; `where` is put before the message).
 */
int mw_ini_words(const char *value, const char *where, char ***words, struct mw_err *err);
void mw_ini_words_free(char **words);

#endif
