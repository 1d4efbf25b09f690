/* err.h: one error a user can act on; the first one set wins. */
#ifndef MW_BASE_ERR_H
#define MW_BASE_ERR_H

#include "../include/mixwild.h" /* struct mw_err, the codes, mw_err_name, mw_err_exit_code: part of the public API */

/* name, process exit code, what it is */
#define MW_ERRORS(X)                             \
	X(USAGE, 2, "usage error")               \
	X(DATA, 3, "data error")                 \
	X(RESOURCE, 4, "machine resource error") \
	X(DIVERGED, 5, "training diverged")      \
	X(INTERNAL, 70, "internal error")

/* Record an error unless one is recorded already. err may be NULL. Returns code. Thread-safe for distinct
 * err. */
int mw_err_set(struct mw_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define MW_FAIL(err, CODE, ...) return mw_err_set((err), MW_E##CODE, __VA_ARGS__)
#define MW_TRY(call)                     \
	do {                             \
		int try_ret_ = (call);   \
		if (try_ret_ < 0)        \
			return try_ret_; \
	} while (0)

#endif
