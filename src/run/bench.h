/*
 * bench.h: the gauge, internal to bench*.c and cmd_bench.c: what this machine can do at most (its roofline), and what the kernels of
 * this program make of it.
 */
#ifndef MW_RUN_BENCH_H
#define MW_RUN_BENCH_H

#include "base/kernel.h"
#include "data/dataset.h"
#include "model/model.h"

/* As in the speed goals: a linear model on rows like RCV1's, and dense rows like MNIST's. */
#define MW_GAUGE_FEATURES 47236
#define MW_GAUGE_DENSE    784

/* Loops that do nothing but what they measure, one table an instruction set. */
struct mw_gauge_raw {
	/* sum of n floats: the memory's rate of reading */
	float (*sum)(const float *x, size_t n);
	/* sum of table[idx[i]]: the rate of independent reads */
	float (*gather)(const float *table, const uint32_t *idx, size_t n);
	/* multiply-adds on registers; *flops: how many operations that were */
	float (*fma)(size_t n, double *flops);
};
extern const struct mw_gauge_raw mw_gauge_portable, mw_gauge_avx2, mw_gauge_avx512;

/* What is measured on. Owned. */
struct mw_gauge {
	const struct mw_kernels *k;
	const struct mw_gauge_raw *raw;
	float *large; /* too large for any cache */
	size_t n_large;
	uint32_t *far; /* random places in large */
	size_t n_far;
	float *w, *copy, *base; /* models of MW_GAUGE_FEATURES floats */
	float *a, *b, *c;       /* matrices of MW_GAUGE_GEMM squared */
	struct mw_dataset rows; /* sparse rows */
	uint64_t *order;
	float sink; /* so that nothing is left out */
};

#define MW_GAUGE_GEMM 256

/* large_bytes 0: four times the last-level cache, at least 64 MB and at most 512. */
int mw_gauge_init(struct mw_gauge *b, uint64_t large_bytes, struct mw_err *err);
void mw_gauge_fini(struct mw_gauge *b);

/* One thing that is measured. */
struct mw_gauge_item {
	const char *name, *about, *unit;
	double scale; /* from units a second to what is reported */
	bool kernel;  /* a kernel of ours; else a ceiling */
	bool cached;  /* its data stay in a cache, so that memory is no limit to it */
	/*
	 * Do it once. Returns the units (bytes, elements, operations) that were done; with scale 0 the value itself, and a
	 * negative one if it can't be measured here.
	 */
	double (*work)(struct mw_gauge *b);
	/* a unit's floating-point operations, bytes from memory, and reads at an index */
	double flops, bytes, gathers;
};
extern const struct mw_gauge_item mw_gauge_items[]; /* ended by a NULL name */

/* One-way latency between two of this process's CPUs in ns; -1: there is one only, or no thread can be made. */
double mw_gauge_latency(struct mw_gauge *b);

#endif
