/* unit_data_memory.c: what loading takes at its peak: at most 1.3 times the CSR that comes of it. */
#include <sys/wait.h>

#include "data_util.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define ROWS 100000
#define NNZ  60 /* a row; pairs of 4 and 5 bytes, so that the CSR is larger than the text */

/* A line of /proc/self/status, in bytes. */
static double status_bytes(const char *name)
{
	char line[256];
	double kb = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = strtod(line + strlen(name), NULL);
	if (f)
		fclose(f);
	return kb * 1024;
}

/* In a process of its own, whose peak begins with what it is born with. Exit status 0: within bounds. */
static int peak_in_child(const char *path, int threads)
{
	const double csr_bytes = ROWS * (NNZ * 8.0 + 12);
	int status = -1;
	pid_t child = fork();
	if (child == 0) {
		struct mw_data_request req = { .path = path, .index_base = MW_BASE_AUTO, .threads = threads };
		struct mw_dataset *d = NULL;
		struct mw_err err = { 0 };
		double before = status_bytes("VmRSS:"), peak;
		if (mw_dataset_load(&req, &d, &err) < 0 || d->nnz != ROWS * NNZ)
			_exit(2);
		peak = status_bytes("VmHWM:") - before;
		fprintf(stderr, "# %s, %d threads: peak %.1f MB, %.3f of the CSR\n", path, threads,
			peak / 1e6, peak / csr_bytes);
		_exit(before > 0 && peak > csr_bytes * 0.95 && peak <= csr_bytes * 1.3 ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void peak(void **state)
{
	const char *plain, *gz;
	(void)state;
	if (SANITIZED)
		skip();
	char *text = malloc((size_t)ROWS * (NNZ * 5 + 3)), *p = text;
	for (int r = 0; r < ROWS; r++) {
		p += sprintf(p, "%d", r % 2);
		for (int i = 1; i <= NNZ; i++)
			p += sprintf(p, " %d:%d", i, r % 9 + 1);
		*p++ = '\n';
	}
	plain = write_bytes("peak.svm", text, (size_t)(p - text));
	gz = write_gzip("peak.svm.gz", text, (size_t)(p - text));
	free(text);
	for (int threads = 1; threads <= 2; threads++) {
		assert_int_equal(peak_in_child(plain, threads), 0);
		assert_int_equal(peak_in_child(gz, threads), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peak),
	};
	return cmocka_run_group_tests_name("data memory", tests, make_dir, remove_dir);
}
