/*
 * gen_rcv1.c: writes the benchmark's data set, LIBSVM text whose statistics are like RCV1's: 47,236 features of
 * Zipf-Mandelbrot popularity, log-normal row lengths of mean 75, tf-idf like values in rows of length 1,
 * labels from a sparse linear model with 5 % of them flipped. The same arguments give the same file
 * everywhere.
 *
 * Usage: gen_rcv1 OUT ROWS SEED [SKIP]; SKIP rows are made and not written, so that a test set continues the
 * stream.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FEATURES     47236
#define MEAN_LENGTH  75
#define LENGTH_MIN   4
#define LENGTH_MAX   1000
#define FLIPPED      0.05
#define SIGNAL_SHARE 0.10

static uint64_t state[4]; /* xoshiro256**, seeded by splitmix64 */

/* By popularity rank: cumulative probability, inverse document frequency, weight in the true model, feature
 * number. */
static double cdf[FEATURES], idf[FEATURES], weight[FEATURES];
static int feature[FEATURES];
/* By rank: drawn already in this row. By feature: its value in this row. */
static unsigned char drawn[FEATURES];
static double value[FEATURES];

static void seed(uint64_t x)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (x += 0x9e3779b97f4a7c15ULL);
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		state[i] = z ^ (z >> 31);
	}
}

static uint64_t rotate(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t bits(void)
{
	uint64_t r = rotate(state[1] * 5, 7) * 9, t = state[1] << 17;
	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= t;
	state[3] = rotate(state[3], 45);
	return r;
}

static double uniform(void)
{
	return (double)(bits() >> 11) * 0x1p-53;
}

static double normal(void)
{
	double u = 1 - uniform(), v = uniform();
	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static uint64_t below(uint64_t n)
{
	return (uint64_t)(((unsigned __int128)bits() * n) >> 64);
}

static void make_features(void)
{
	double total = 0;
	for (int r = 0; r < FEATURES; r++) {
		total += 1.0 / (r + 1 + 10.0);
		cdf[r] = total;
	}
	for (int r = 0; r < FEATURES; r++) {
		double p = 1.0 / (r + 11.0) / total;
		cdf[r] /= total;
		idf[r] = log(1.0 + 1.0 / (MEAN_LENGTH * p));
		feature[r] = r;
	}
	for (int r = FEATURES - 1; r > 0; r--) {
		int j = (int)below((uint64_t)r + 1), t = feature[r];
		feature[r] = feature[j];
		feature[j] = t;
	}
	for (int r = 0; r < FEATURES; r++)
		weight[r] = uniform() < SIGNAL_SHARE ? normal() : 0;
}

static int draw_rank(void)
{
	double u = uniform();
	int low = 0, high = FEATURES - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (cdf[middle] < u)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

/* One row: its features in increasing order, their values in value[], their number; *label is -1 or 1. */
static int make_row(int *row, int *label)
{
	static int rank[LENGTH_MAX];
	int length = (int)(exp(0.5 * normal() - 0.125) * MEAN_LENGTH + 0.5), n = 0;
	double square = 0, margin = 0;
	length = length < LENGTH_MIN ? LENGTH_MIN : length > LENGTH_MAX ? LENGTH_MAX : length;
	while (n < length) {
		int r = draw_rank();
		if (!drawn[r]) {
			drawn[r] = 1;
			rank[n++] = r;
		}
	}
	for (int j = 0; j < n; j++) {
		int r = rank[j];
		double x = idf[r] * (1 + 0.5 * -log(1 - uniform()));
		drawn[r] = 0;
		value[feature[r]] = x;
		square += x * x;
		margin += x * weight[r];
		row[j] = feature[r];
	}
	*label = margin > 0 ? 1 : margin < 0 ? -1 : bits() >> 63 ? 1 : -1;
	if (uniform() < FLIPPED)
		*label = -*label;
	qsort(row, (size_t)n, sizeof(*row), by_number);
	double scale = 1 / sqrt(square);
	for (int j = 0; j < n; j++)
		value[row[j]] *= scale;
	return n;
}

int main(int argc, char **argv)
{
	static int row[LENGTH_MAX];
	if (argc < 4) {
		fprintf(stderr, "usage: gen_rcv1 OUT ROWS SEED [SKIP]\n");
		return 2;
	}
	long rows = atol(argv[2]), skip = argc > 4 ? atol(argv[4]) : 0;
	FILE *f = fopen(argv[1], "w");
	if (!f) {
		perror(argv[1]);
		return 3;
	}
	seed(strtoull(argv[3], NULL, 10));
	make_features();
	for (long i = 0; i < rows + skip; i++) {
		int label, n = make_row(row, &label);
		if (i < skip)
			continue;
		fprintf(f, "%+d", label);
		for (int j = 0; j < n; j++)
			fprintf(f, " %d:%.6g", row[j] + 1, value[row[j]]);
		fputc('\n', f);
	}
	if (fclose(f)) {
		perror(argv[1]);
		return 3;
	}
	return 0;
}
