/* inflate.c: seconds that zlib alone takes for a .gz file, into one buffer that is there already. Usage: inflate FILE */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

#define BUFFER_BYTES (1u << 20)

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	char *buffer = calloc(1, BUFFER_BYTES);
	double start = now_s();
	gzFile f = argc == 2 ? gzopen(argv[1], "rb") : NULL;
	int n, code = 0;
	if (!f || !buffer) {
		fprintf(stderr, "inflate: can't open the file, or no memory\n");
		return 1;
	}
	gzbuffer(f, 1u << 17); /* as mixwild has it */
	while ((n = gzread(f, buffer, BUFFER_BYTES)) > 0)
		;
	gzerror(f, &code);
	if (n < 0 || code != Z_OK) {
		fprintf(stderr, "inflate: the file is damaged\n");
		return 1;
	}
	printf("%.6f\n", now_s() - start);
	gzclose(f);
	free(buffer);
	return 0;
}
