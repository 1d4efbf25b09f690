/* option_impl.h: what the option*.c files share. */
#ifndef MW_BASE_OPTION_IMPL_H
#define MW_BASE_OPTION_IMPL_H

#include "base/option.h"

/* A walk over all options of all groups in order: start zeroed, then call mw_option_next until it is false.
 */
struct mw_option_walk {
	const struct mw_option_group *group;
	const struct mw_option *opt;
	void *field;
	char *was_set;
	size_t next_group, next_entry, next_flat;
};
bool mw_option_next(const struct mw_options *o, struct mw_option_walk *walk);

/* Is the group without owner, or is its owner one of these? */
bool mw_option_owned(const struct mw_option_group *group, const char *const *owners, size_t n);

/* "1..10", "at least 1", "at most 3", "above 0"; empty when any number will do. Brief: limits of 1e9 and more
 * are none. */
void mw_option_range(const struct mw_option *opt, bool brief, char *text, size_t size);

/* If the option has its default everywhere, it counts as not set. */
void mw_option_forget_default(struct mw_options *o, const char *name);

/* Choice number i of "a|b|c": its length, 0 after the last; *first is its first character. */
size_t mw_option_choice(const char *choices, int i, const char **first);

#endif
