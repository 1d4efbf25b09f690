/* public_api.c: built and run by `make installcheck` against the installed header and library only. */
#include <mixwild.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what)
{
	fprintf(stderr, "public_api: %s\n", what);
	return 1;
}

int main(void)
{
	struct mw_err err = { 0 };
	struct mw_job *job = NULL;
	size_t n = 0;
	char *text = NULL;

	if (strcmp(mw_version(), MW_VERSION) != 0)
		return fail("header and library have different versions");
	if (mw_job_new("tmxi", &job, &err) != MW_EUSAGE || job || !strstr(err.msg, "tmix"))
		return fail("a command that does not exist is not refused with the nearest name");
	err = (struct mw_err){ 0 };
	FILE *out = open_memstream(&text, &n);
	if (!out || mw_job_new("list", &job, &err) < 0)
		return fail(err.msg);
	mw_job_set_out(job, out);
	if (mw_job_set(job, "format", "json", &err) < 0 || mw_job_run(job, &err) < 0)
		return fail(err.msg);
	mw_job_free(job);
	fclose(out);
	int missing = !strstr(text, "logistic");
	free(text);
	return missing ? fail("the list lacks the model logistic") : 0;
}
