/* cmd_scaling.c: `mixwild scaling`: what the model of scaling.h predicts, beside what runs of one and two workers do. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/help.h"
#include "run/output.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/scaling_calibrate.h"
#include "run/train.h"

enum { ROUNDS_MAX = 99, RUNS = 4, CURVE_MAX = 12 };

struct scaling_options {
	double seconds, remote, bandwidth;
	int64_t rounds, cores_per_node, most, mix_every, hot_columns;
	int format;
	struct mw_train_options train;
};

#define F(field) offsetof(struct scaling_options, field)

static const struct mw_option scaling_table[] = {
	{ "seconds", MW_OPT_FLOAT, F(seconds), "0.5", 0.01, 1000, NULL, "S", "Length of each measurement." },
	{ "rounds", MW_OPT_INT, F(rounds), "5", 1, ROUNDS_MAX, NULL, "N",
		"Rounds: in each a calibration, then all runs, then a calibration." },
	{ "mix-every", MW_OPT_INT, F(mix_every), "2048", 1, 1e9, NULL, "K", "Own steps between exchanges." },
	{ "max", MW_OPT_INT, F(most), "256", 2, 65536, NULL, "N",
		"Draw the curve up to this number of workers." },
	{ "hot-columns", MW_OPT_INT, F(hot_columns), "4096", 0, 4e9, NULL, "N",
		"The curve \"hot private\": the N most popular columns are private to each worker." },
	{ "cores-per-node", MW_OPT_INT, F(cores_per_node), "32", 1, 65536, NULL, "N",
		"Assumed: cores of a NUMA node of the large machine." },
	{ "remote", MW_OPT_FLOAT, F(remote), "2.5", 1, 100, NULL, "FACTOR",
		"Assumed: how much longer a cache line takes from another node." },
	{ "bandwidth", MW_OPT_FLOAT, F(bandwidth), "100e9", 0, DBL_MAX, NULL, "BYTES/S",
		"Assumed: memory bandwidth of a node; 0: without limit." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json|csv", NULL,
		"Form of the result; csv: the curve alone." },
	{ 0 },
};

/* What is run and predicted: one worker, and two with each kind of replicas. */
static const struct {
	const char *name, *protocol, *workers, *groups;
	uint32_t n, nodes;
	enum mw_scaling_kind kind;
} runs[RUNS] = { { "1 worker", "sequential", "1", NULL, 1, 0, MW_SCALING_SHARED },
	{ "2, one replica (hogwild)", "hogwild", "2", NULL, 2, 0, MW_SCALING_SHARED },
	{ "2, one a node (numa, 2 groups)", "numa", "2", "2", 2, 2, MW_SCALING_NODE },
	{ "2, one a worker (cached)", "cached", "2", NULL, 2, 0, MW_SCALING_WORKER } };

struct scaling {
	struct mw_job *job;
	const struct scaling_options *opt;
	struct mw_dataset *train, *test;
	FILE *null;
	struct mw_job *prepared_job[2];
	struct mw_run *prepared[2];
	struct mw_train_hooks borrow;
	struct mw_scaling calibration; /* medians */
	double predicted[RUNS][ROUNDS_MAX], measured[RUNS][ROUNDS_MAX], ratio[RUNS][ROUNDS_MAX];
	uint32_t rounds; /* that were finished */
	double rate;     /* of the last run */
};

/* --- runs ----------------------------------------------------------------------------------------------------------- */

static int set_all(const struct scaling *s, struct mw_job *job, uint32_t k, struct mw_err *err)
{
	json_t *config = mw_job_config(s->job), *value;
	const char *name;
	char number[40];
	int code = config ? 0 : MW_ERESOURCE;
	json_object_foreach(config, name, value)
	{
		static const char own[] =
			"seconds rounds mix-every max hot-columns cores-per-node remote bandwidth format ";
		char word[64], *text;
		snprintf(word, sizeof(word), "%s ", name);
		if (code || strstr(own, word) || !mw_options_is_set(&s->job->set, name))
			continue;
		text = json_is_string(value) ? mw_strdup(json_string_value(value))
					     : json_dumps(value, JSON_ENCODE_ANY);
		code = text ? mw_job_set(job, name, text, err) : MW_ERESOURCE;
		free(text);
	}
	json_decref(config);
	MW_TRY(code);
	mw_job_set_msg(job, NULL);
	mw_job_set_out(job, s->null);
	mw_job_set_interrupt(job, s->job->interrupt);
	MW_TRY(mw_job_set(job, "protocol", runs[k].protocol, err));
	MW_TRY(mw_job_set(job, "workers", runs[k].workers, err));
	MW_TRY(mw_job_set(job, "epochs", "1000000", err));
	MW_TRY(mw_job_set(job, "eval-every", "0", err));
	MW_TRY(mw_job_set(job, "eval-rows", "1000", err));
	snprintf(number, sizeof(number), "%lld", (long long)s->opt->mix_every);
	if (runs[k].kind != MW_SCALING_SHARED)
		MW_TRY(mw_job_set(job, "mix-every", number, err));
	return runs[k].groups ? mw_job_set(job, "groups", runs[k].groups, err) : 0;
}

static int prepare_run(struct scaling *s, int i, uint32_t k, struct mw_err *err)
{
	MW_TRY(mw_job_new("train", &s->prepared_job[i], err));
	MW_TRY(set_all(s, s->prepared_job[i], k, err));
	MW_TRY(mw_run_new_with(s->prepared_job[i], &s->borrow, &s->prepared[i], err));
	if (!s->prepared[i]->bursts || s->prepared[i]->form != MW_FORM_ROW)
		MW_FAIL(err, USAGE,
			"the model is for sparse linear models with plain SGD, batch 1 and nothing injected: "
			"these options "
			"are something else");
	return 0;
}

static void note_rate(struct mw_run *run, void *arg)
{
	struct scaling *s = arg;
	s->rate = run->last.seconds > 0 ? (double)run->last.examples / run->last.seconds : NAN;
}

static int measure(struct scaling *s, uint32_t k, double *rate, struct mw_err *err)
{
	struct mw_job *job = NULL;
	struct mw_train_hooks hooks = s->borrow;
	hooks.limit_s = s->opt->seconds;
	hooks.done = note_rate;
	hooks.arg = s;
	MW_TRY(mw_job_new("train", &job, err));
	int code = set_all(s, job, k, err);
	if (!code)
		code = mw_train(job, &hooks, err);
	mw_job_free(job);
	*rate = s->rate;
	return code;
}

/* --- rounds --------------------------------------------------------------------------------------------------------- */

static bool stopped(const struct scaling *s)
{
	return __atomic_load_n(s->job->interrupt, __ATOMIC_RELAXED);
}

static void average(struct mw_scaling *a, const struct mw_scaling *b)
{
	double *x[] = { &a->t1, &a->t2, &a->s2, &a->merge, &a->mean, &a->latency };
	const double *y[] = { &b->t1, &b->t2, &b->s2, &b->merge, &b->mean, &b->latency };
	for (int i = 0; i < 6; i++)
		*x[i] = (*x[i] + *y[i]) / 2;
}

static int calibrate(struct scaling *s, struct mw_scaling *c, struct mw_err *err)
{
	return mw_scaling_calibrate(s->prepared[0], s->prepared[1], s->opt->seconds / 2, c, err);
}

static int one_round(struct scaling *s, uint32_t r, struct mw_scaling *c, struct mw_err *err)
{
	struct mw_scaling after = *c;
	MW_TRY(calibrate(s, c, err));
	for (uint32_t k = 0; k < RUNS && !stopped(s); k++)
		MW_TRY(measure(s, k, &s->measured[k][r], err));
	MW_TRY(calibrate(s, &after, err));
	average(c, &after);
	for (uint32_t k = 0; k < RUNS; k++) {
		s->predicted[k][r] =
			mw_scaling_rate(c, runs[k].kind, runs[k].n, runs[k].nodes, (double)s->opt->mix_every);
		s->ratio[k][r] = s->predicted[k][r] / s->measured[k][r];
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(const double *v, uint32_t n)
{
	double sorted[ROUNDS_MAX];
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static int all_rounds(struct scaling *s, struct mw_err *err)
{
	static const size_t at[] = { offsetof(struct mw_scaling, t1), offsetof(struct mw_scaling, t2),
		offsetof(struct mw_scaling, s2), offsetof(struct mw_scaling, merge),
		offsetof(struct mw_scaling, mean), offsetof(struct mw_scaling, latency) };
	double seen[6][ROUNDS_MAX];
	struct mw_scaling c = s->calibration;
	for (uint32_t r = 0; r < (uint32_t)s->opt->rounds; r++) {
		if (s->job->live)
			fprintf(s->job->msg, "\r\033[Kscaling: round %u of %u", r + 1,
				(uint32_t)s->opt->rounds);
		MW_TRY(one_round(s, r, &c, err));
		if (stopped(s))
			break;
		for (int i = 0; i < 6; i++)
			seen[i][r] = *(double *)(void *)((char *)&c + at[i]);
		s->rounds = r + 1;
	}
	if (s->job->live)
		fprintf(s->job->msg, "\r\033[K");
	for (int i = 0; i < 6 && s->rounds; i++)
		*(double *)(void *)((char *)&s->calibration + at[i]) = median(seen[i], s->rounds);
	return 0;
}

/* --- results -------------------------------------------------------------------------------------------------------- */

static uint32_t curve_workers(const struct scaling *s, uint32_t *n)
{
	uint32_t k = 0;
	for (uint64_t w = 1; w <= (uint64_t)s->opt->most && k < CURVE_MAX + 6; w *= 2)
		n[k++] = (uint32_t)w;
	return k;
}

static double curve(const struct scaling *s, enum mw_scaling_kind kind, uint32_t n)
{
	return mw_scaling_rate(&s->calibration, kind, n, 0, (double)s->opt->mix_every);
}

static void print_text(const struct scaling *s, FILE *f)
{
	const struct mw_scaling *c = &s->calibration;
	uint32_t n[CURVE_MAX + 6], points = curve_workers(s, n);
	char a[32], b[32], d[32], h[32];
	fprintf(f, "calibrated: %.4g ns an example alone, %.4g beside another, %.4g on one replica;\n",
		c->t1 * 1e9, c->t2 * 1e9, c->s2 * 1e9);
	fprintf(f,
		"  core to core %.3g ns one way; finding one of the %.3g lines of a row elsewhere %.3g ns;\n",
		c->latency * 1e9, c->lines, mw_scaling_conflict_s(c) * 1e9);
	fprintf(f, "  merge %.4g us, mean of two %.4g us; medians of %u round%s\n\n", c->merge * 1e6,
		c->mean * 1e6, s->rounds, s->rounds == 1 ? "" : "s");
	fprintf(f, "%-34s%-12s%-12s%s\n", "examples a second", "predicted", "measured",
		"ratio, lowest .. highest");
	for (uint32_t k = 0; k < RUNS; k++) {
		double low = INFINITY, high = 0;
		for (uint32_t r = 0; r < s->rounds; r++) {
			low = fmin(low, s->ratio[k][r]);
			high = fmax(high, s->ratio[k][r]);
		}
		mw_format_count(median(s->predicted[k], s->rounds), a, sizeof(a));
		mw_format_count(median(s->measured[k], s->rounds), b, sizeof(b));
		fprintf(f, "%-34s%-12s%-12s%.3f, %.3f .. %.3f\n", runs[k].name, a, b,
			median(s->ratio[k], s->rounds), low, high);
	}
	fprintf(f, "\nexpected on nodes of %u cores, lines from another node %.3g times as slow%s:\n",
		c->cores_per_node, c->remote, c->bandwidth > 0 ? "" : ", memory without limit");
	fprintf(f, "%-10s%-14s%-14s%-14s%s\n", "workers", "one replica", "hot private", "one a node",
		"one a worker");
	for (uint32_t i = 0; i < points; i++) {
		mw_format_count(curve(s, MW_SCALING_SHARED, n[i]), a, sizeof(a));
		mw_format_count(curve(s, MW_SCALING_NODE, n[i]), b, sizeof(b));
		mw_format_count(curve(s, MW_SCALING_WORKER, n[i]), d, sizeof(d));
		mw_format_count(curve(s, MW_SCALING_HOT, n[i]), h, sizeof(h));
		fprintf(f, "%-10u%-14s%-14s%-14s%s\n", n[i], a, h, b, d);
	}
	fprintf(f,
		"hot private: %u columns are each worker's own, merged every %lld steps; the others' lines "
		"in a row: "
		"%.3g\n",
		c->hot_columns, (long long)s->opt->mix_every, c->cold_lines);
}

static void print_csv(const struct scaling *s, FILE *f)
{
	uint32_t n[CURVE_MAX + 6], points = curve_workers(s, n);
	fprintf(f, "workers,one_replica,hot_private,one_a_node,one_a_worker\n");
	for (uint32_t i = 0; i < points; i++)
		fprintf(f, "%u,%.6g,%.6g,%.6g,%.6g\n", n[i], curve(s, MW_SCALING_SHARED, n[i]),
			curve(s, MW_SCALING_HOT, n[i]), curve(s, MW_SCALING_NODE, n[i]),
			curve(s, MW_SCALING_WORKER, n[i]));
}

static json_t *run_json(const struct scaling *s, uint32_t k)
{
	json_t *ratios = json_array();
	for (uint32_t r = 0; r < s->rounds; r++)
		json_array_append_new(ratios, mw_json_number(s->ratio[k][r]));
	return json_pack("{ss si ss sf sf sf so}", "name", runs[k].name, "workers", (int)runs[k].n,
		"protocol", runs[k].protocol, "predicted", median(s->predicted[k], s->rounds), "measured",
		median(s->measured[k], s->rounds), "ratio", median(s->ratio[k], s->rounds), "ratios", ratios);
}

static json_t *result_json(const struct scaling *s)
{
	const struct mw_scaling *c = &s->calibration;
	json_t *list = json_array(), *points = json_array();
	uint32_t n[CURVE_MAX + 6], k = curve_workers(s, n);
	for (uint32_t i = 0; i < RUNS; i++)
		json_array_append_new(list, run_json(s, i));
	for (uint32_t i = 0; i < k; i++)
		json_array_append_new(points,
			json_pack("{si sf sf sf sf}", "workers", (int)n[i], "one_replica",
				curve(s, MW_SCALING_SHARED, n[i]), "hot_private",
				curve(s, MW_SCALING_HOT, n[i]), "one_a_node", curve(s, MW_SCALING_NODE, n[i]),
				"one_a_worker", curve(s, MW_SCALING_WORKER, n[i])));
	json_t *calibration = json_pack("{sf sf sf sf sf sf sf sf sf sf sf sf}", "alone_s", c->t1, "beside_s",
		c->t2, "shared_s", c->s2, "merge_s", c->merge, "mean_s", c->mean, "latency_s", c->latency,
		"conflict_s", mw_scaling_conflict_s(c), "lines", c->lines, "hottest", c->q, "period_lines",
		c->period_lines, "cold_lines", c->cold_lines, "cold_hottest", c->cold_q);
	json_t *assumed = json_pack("{si sf sf si si}", "cores_per_node", (int)c->cores_per_node, "remote",
		c->remote, "bandwidth", c->bandwidth, "mix_every", (int)s->opt->mix_every, "hot_columns",
		(int)c->hot_columns);
	return json_pack("{si so so so so}", "rounds", (int)s->rounds, "calibration", calibration, "assumed",
		assumed, "runs", list, "curve", points);
}

/* --- the command ---------------------------------------------------------------------------------------------------- */

static int prepare(struct scaling *s, struct mw_err *err)
{
	s->null = fopen("/dev/null", "we");
	if (!s->null)
		MW_FAIL(err, RESOURCE, "/dev/null can't be opened");
	MW_TRY(mw_train_load(&s->opt->train, &s->train, &s->test, err));
	s->borrow = (struct mw_train_hooks){ .train = s->train, .test = s->test };
	MW_TRY(prepare_run(s, 0, 3, err));
	MW_TRY(prepare_run(s, 1, 2, err));
	s->calibration = (struct mw_scaling){ .cores_per_node = (uint32_t)s->opt->cores_per_node,
		.stripes = s->prepared[0]->executor.n_stripes,
		.remote = s->opt->remote,
		.bandwidth = s->opt->bandwidth,
		.hot_columns = (uint32_t)s->opt->hot_columns };
	return mw_scaling_look(s->prepared[0], (double)s->opt->mix_every, &s->calibration, err);
}

static int run(struct mw_job *job, struct mw_err *err)
{
	struct scaling *s = mw_alloc(sizeof(*s), "the measurements", err);
	if (!s)
		return MW_ERESOURCE;
	s->job = job;
	s->opt = job->options;
	int code = prepare(s, err);
	if (!code)
		code = all_rounds(s, err);
	if (!code && s->rounds && s->opt->format == MW_OUT_JSON)
		mw_output_json(job->out, result_json(s));
	else if (!code && s->rounds)
		(s->opt->format == MW_OUT_CSV ? print_csv : print_text)(s, job->out);
	for (int i = 0; i < 2; i++) {
		mw_run_free(s->prepared[i]);
		mw_job_free(s->prepared_job[i]);
	}
	mw_dataset_free(s->train);
	mw_dataset_free(s->test);
	if (s->null)
		fclose(s->null);
	mw_free(s);
	return code;
}

const struct mw_command mw_command_scaling = {
	.name = "scaling",
	.summary = "Predict the throughput of up to 256 workers from measurements with two, and check the "
		   "prediction",
	.uses = MW_USES_MODEL,
	.options = scaling_table,
	.option_size = sizeof(struct scaling_options),
	.inherits = mw_train_option_table,
	.inherits_at = F(train),
	.inherits_not =
		"engine|threads|compute-time|push-time|mix-time|out|config|force|resume|trace|trace-every|"
		"trace-window|replay|bound|metrics-every|target-tmix|target-unit|target-actuator|target-loss|"
		"target-accuracy|estimate|estimate-rate|tally|graph|timeline|"
		"protocol|workers|epochs|eval-every|eval-rows|topology|optimizer|batch|staleness|straggler|"
		"gate|"
		"activation|access|state|slack|mix-fraction|mix-blocks|mix-order|mix-form|mix-precision|"
		"stale-policy|shards|augment|clip|coarse",
	.examples = "mixwild scaling --data synth:sparse,rows=100000,features=47236 --rate 0.5\n"
		    "mixwild scaling --data data/spam-train.svm.gz --cores-per-node 64 --format csv\n",
	.run = run,
};
