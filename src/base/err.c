/* err.c: see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int mw_err_set(struct mw_err *err, int code, const char *fmt, ...)
{
	if (err && err->code == MW_OK) {
		va_list ap;
		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
	}
	return code;
}

int mw_err_exit_code(int code)
{
	switch (code) {
	case MW_OK: return 0;
#define X(name, exit_code, text) \
	case MW_E##name: return exit_code;
		MW_ERRORS(X)
#undef X
	default: return 70;
	}
}

const char *mw_err_name(int code)
{
	switch (code) {
#define X(name, exit_code, text) \
	case MW_E##name: return text;
		MW_ERRORS(X)
#undef X
	default: return "ok";
	}
}
