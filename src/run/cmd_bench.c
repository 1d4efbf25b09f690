/* cmd_bench.c: `mixwild bench`: the ceilings of this machine and the kernels under them, in a second or two. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/bench.h"
#include "run/command.h"
#include "run/output.h"

#define REPEATS_MAX 101
#define ITEMS_MAX   64
/* A repeat takes at least this long. */
#define REPEAT_S 0.004

struct bench_options {
	int64_t repeats, memory;
	char *isa;
	int format;
};

#define F(field) offsetof(struct bench_options, field)

static const struct mw_option bench_table[] = {
	{ "repeats", MW_OPT_INT, F(repeats), "7", 1, REPEATS_MAX, NULL, NULL,
		"Measurements of each, in turn; the median is reported, with least and largest." },
	{ "memory", MW_OPT_INT, F(memory), "0", 0, 1e6, NULL, "MB",
		"Memory to measure on; 0: four times the last-level cache, at least 64 and at most 512 MB." },
	{ "isa", MW_OPT_STRING, F(isa), "auto", 0, 0, NULL, "auto|portable|avx2|avx512",
		"Instruction set of the kernels." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL, "Form of the result." },
	{ 0 },
};

struct result {
	const struct mw_gauge_item *item;
	double value[REPEATS_MAX]; /* sorted at the end */
	int n;
	double median;
};

/* Of this thread on its CPU: what other programs take from it doesn't count. */
static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double measure(const struct mw_gauge_item *item, struct mw_gauge *b)
{
	double start = cpu_s(), seconds = 0, done = 0;
	if (item->scale == 0)
		return item->work(b);
	while (seconds < REPEAT_S) {
		done += item->work(b);
		seconds = cpu_s() - start;
	}
	return done / seconds * item->scale;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* All items in turn, again and again, so that a disturbance hits all alike. The first turn only warms up. */
static int measure_all(struct mw_gauge *b, int repeats, struct result *r)
{
	int n = 0;
	for (; mw_gauge_items[n].name; n++)
		r[n] = (struct result){ .item = &mw_gauge_items[n] };
	for (int turn = -1; turn < repeats; turn++)
		for (int i = 0; i < n; i++) {
			double v = measure(r[i].item, b);
			if (turn >= 0 && v >= 0)
				r[i].value[r[i].n++] = v;
		}
	for (int i = 0; i < n; i++) {
		qsort(r[i].value, (size_t)r[i].n, sizeof(double), by_value);
		if (r[i].n)
			r[i].median = (r[i].value[(r[i].n - 1) / 2] + r[i].value[r[i].n / 2]) / 2;
	}
	return n;
}

/* ---- the roofline: what limits a kernel, and how near it comes */

static double ceiling(const struct result *r, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(r[i].item->name, name))
			return r[i].median / r[i].item->scale;
	return 0;
}

/* Units a second that the machine allows at most: by memory, by reads at an index, by arithmetic. *what: which of them. */
static double bound(const struct result *all, int n, const struct mw_gauge_item *item, const char **what)
{
	const struct {
		const char *name;
		double needs;
	} by[] = { { "read", item->cached ? 0 : item->bytes }, { "gather-near", item->gathers },
		{ "fma", item->flops } };
	double least = INFINITY;
	*what = NULL;
	for (int i = 0; i < 3; i++) {
		double most = by[i].needs > 0 ? ceiling(all, n, by[i].name) / by[i].needs : INFINITY;
		if (most < least) {
			least = most;
			*what = by[i].name;
		}
	}
	return least;
}

/* The share of that bound that was reached, or 0 for what has none. */
static double reached(const struct result *all, int n, const struct result *r, const char **what)
{
	double most = bound(all, n, r->item, what);
	return r->item->kernel && *what && r->item->scale > 0 ? r->median / r->item->scale / most : 0;
}

static double per_s(const struct result *r, double a_unit)
{
	return r->item->scale > 0 ? r->median / r->item->scale * a_unit : 0;
}

static void print_text(const struct mw_gauge *b, const struct result *r, int n, FILE *f)
{
	fprintf(f, "kernels %s, %.0f MB of memory; median, least and largest of %d\n\n", b->k->name,
		(double)b->n_large * 4e-6, r[0].n);
	for (int i = 0; i < n; i++) {
		const char *what;
		double share = reached(r, n, &r[i], &what);
		if (i && r[i].item->kernel && !r[i - 1].item->kernel)
			fputc('\n', f);
		if (!r[i].n) {
			fprintf(f, "%-18s %10s  (takes two CPUs)\n", r[i].item->name, "-");
			continue;
		}
		fprintf(f, "%-18s %10.4g %-8s %9.4g %9.4g  ", r[i].item->name, r[i].median, r[i].item->unit,
			r[i].value[0], r[i].value[r[i].n - 1]);
		if (share > 0)
			fprintf(f, "%4.0f %% of %-12s", 100 * share, what);
		else
			fprintf(f, "%21s", "");
		fprintf(f, " %s\n", r[i].item->about);
	}
}

static void print_csv(const struct result *r, int n, FILE *f)
{
	fprintf(f, "name,kernel,unit,median,min,max,repeats,flops_per_s,bytes_per_s,gathers_per_s,bound,"
		   "reached\n");
	for (int i = 0; i < n; i++) {
		const struct mw_gauge_item *item = r[i].item;
		const char *what;
		double share = reached(r, n, &r[i], &what);
		if (!r[i].n)
			continue;
		fprintf(f, "%s,%d,%s,%.6g,%.6g,%.6g,%d,%.6g,%.6g,%.6g,%s,%.4g\n", item->name, item->kernel,
			item->unit, r[i].median, r[i].value[0], r[i].value[r[i].n - 1], r[i].n,
			per_s(&r[i], item->flops), per_s(&r[i], item->bytes), per_s(&r[i], item->gathers),
			share > 0 ? what : "", share);
	}
}

static void print_json(const struct mw_gauge *b, const struct result *r, int n, FILE *f)
{
	json_t *list = json_array();
	for (int i = 0; i < n; i++) {
		const struct mw_gauge_item *item = r[i].item;
		const char *what;
		double share = reached(r, n, &r[i], &what);
		if (r[i].n)
			json_array_append_new(list,
				json_pack("{ss sb ss ss sf sf sf si sf sf sf ss? sf}", "name", item->name,
					"kernel", item->kernel, "about", item->about, "unit", item->unit,
					"median", r[i].median, "min", r[i].value[0], "max",
					r[i].value[r[i].n - 1], "repeats", r[i].n, "flops_per_s",
					per_s(&r[i], item->flops), "bytes_per_s", per_s(&r[i], item->bytes),
					"gathers_per_s", per_s(&r[i], item->gathers), "bound",
					share > 0 ? what : NULL, "reached", share));
	}
	mw_output_json(f, json_pack("{ss sf so}", "isa", b->k->name, "memory_mb", (double)b->n_large * 4e-6,
				  "results", list));
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct bench_options *o = job->options;
	struct result *r = calloc(ITEMS_MAX, sizeof(*r));
	struct mw_gauge b;
	int ret, n;
	if (!r)
		MW_FAIL(err, RESOURCE, "out of memory: results");
	ret = mw_isa_select(o->isa, err);
	if (ret == 0) {
		ret = mw_gauge_init(&b, (uint64_t)o->memory << 20, err);
		if (ret == 0) {
			n = measure_all(&b, (int)o->repeats, r);
			if (o->format == MW_OUT_JSON)
				print_json(&b, r, n, job->out);
			else if (o->format == MW_OUT_CSV)
				print_csv(r, n, job->out);
			else
				print_text(&b, r, n, job->out);
		}
		mw_gauge_fini(&b);
	}
	free(r);
	return ret;
}

const struct mw_command mw_command_bench = {
	.name = "bench",
	.summary = "Measure this machine's memory, arithmetic and core-to-core latency, and our kernels "
		   "under them",
	.uses = MW_NO_INTERRUPT,
	.options = bench_table,
	.option_size = sizeof(struct bench_options),
	.examples = "mixwild bench\nmixwild bench --isa portable\nmixwild bench --format csv >bench.csv\n",
	.run = run,
};
