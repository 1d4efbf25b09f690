/* remote.c: see remote.h. */
#include "run/remote.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(uint64_t result)
{
	struct perf_event_attr a = { .type = PERF_TYPE_HW_CACHE,
		.size = sizeof(a),
		.config = PERF_COUNT_HW_CACHE_NODE | PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.inherit = 1 };
	return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

void mw_remote_open(struct mw_remote *r)
{
	static const uint64_t result[2] = { PERF_COUNT_HW_CACHE_RESULT_ACCESS,
		PERF_COUNT_HW_CACHE_RESULT_MISS };
	r->refused = 0;
	for (int i = 0; i < 2; i++) {
		r->fd[i] = open_counter(result[i]);
		if (r->fd[i] < 0 && !r->refused)
			r->refused = errno;
	}
}

double mw_remote_share(struct mw_remote *r)
{
	uint64_t count[2];
	for (int i = 0; i < 2; i++)
		if (r->fd[i] < 0 || read(r->fd[i], &count[i], sizeof(count[i])) != sizeof(count[i]))
			return NAN;
	return count[0] ? (double)count[1] / (double)count[0] : NAN;
}

void mw_remote_close(struct mw_remote *r)
{
	for (int i = 0; i < 2; i++)
		if (r->fd[i] >= 0)
			close(r->fd[i]);
	r->fd[0] = r->fd[1] = -1;
}

const char *mw_remote_why(int refused)
{
	switch (refused) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP: return ": this processor, or the virtual machine, has no such counters";
	case EACCES:
	case EPERM: return ": /proc/sys/kernel/perf_event_paranoid, or the container, forbids it";
	case ENOSYS: return ": this kernel has no performance counters";
	default: return "";
	}
}
