/* tune_report.c: the ranked list with what explains it, the winner's command line and job file; see tune.h. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/atomic_file.h"
#include "run/output.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/tune.h"

/* What a score is for people: seconds to the loss, or examples a second. */
static double shown(const struct mw_tune *t, const struct mw_trial_score *s)
{
	return t->to_loss ? s->first : 1e6 / s->first;
}

static double mean(const struct mw_tune_facts *f, double sum)
{
	return f->n ? sum / f->n : NAN;
}

/* Has a candidate a place in the list? */
static bool ran(const struct mw_tune *t, uint32_t c)
{
	return t->result[c].n && !t->facts[c].failed[0];
}

static const char *value_text(const struct mw_tune *t, double v, char *buf, size_t size)
{
	if (!isfinite(v))
		snprintf(buf, size, "-");
	else if (t->to_loss)
		snprintf(buf, size, "%.3g s", v);
	else
		mw_format_count(v, buf, size);
	return buf;
}

static const char *interval_text(
	const struct mw_tune *t, const struct mw_halving_result *r, char *buf, size_t size)
{
	char a[32], b[32];
	double low = shown(t, t->to_loss ? &r->best : &r->worst),
	       high = shown(t, t->to_loss ? &r->worst : &r->best);
	if (r->n < 2)
		snprintf(buf, size, "one run");
	else
		snprintf(buf, size, "%s .. %s", value_text(t, low, a, sizeof(a)),
			value_text(t, high, b, sizeof(b)));
	return buf;
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

static void print_ranking(const struct mw_tune *t, FILE *f)
{
	fprintf(f, "%-4s%-8s%-13s%-11s%-8s%-10s%-10s%s\n", "", "workers", "protocol", "mix-every", "bind",
		"data", t->to_loss ? "to loss" : "ex/s", "lowest .. highest");
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t c = t->rank[i];
		const struct mw_tune_candidate *x = &t->candidate[c];
		char period[24] = "-", value[32], interval[80];
		if (!ran(t, c))
			continue;
		if (t->facts[c].mix_every)
			snprintf(period, sizeof(period), "%" PRId64, t->facts[c].mix_every);
		value_text(t, shown(t, &t->result[c].median), value, sizeof(value));
		if (t->to_loss && !isfinite(t->result[c].median.first))
			snprintf(value, sizeof(value), "not yet");
		fprintf(f, "%-4u%-8u%-13s%-11s%-8s%-10s%-10s%s\n", i + 1, x->workers, x->protocol, period,
			x->bind, x->data_place, value,
			interval_text(t, &t->result[c], interval, sizeof(interval)));
	}
}

/* Why the list has no mixing times: each reason once, with the places that it holds for. */
static void print_no_tmix(const struct mw_tune *t, FILE *f)
{
	for (uint32_t i = 0; i < t->n; i++) {
		const char *reason = t->facts[t->rank[i]].t_mix_reason;
		bool told = !ran(t, t->rank[i]) || !reason[0];
		for (uint32_t j = 0; j < i && !told; j++)
			told = ran(t, t->rank[j]) && !strcmp(t->facts[t->rank[j]].t_mix_reason, reason);
		if (told)
			continue;
		fprintf(f, "No t_mix for %u", i + 1);
		for (uint32_t j = i + 1; j < t->n; j++)
			if (ran(t, t->rank[j]) && !strcmp(t->facts[t->rank[j]].t_mix_reason, reason))
				fprintf(f, ", %u", j + 1);
		fprintf(f, ": %s\n", reason);
	}
}

static void print_no_remote(const struct mw_tune *t, FILE *f)
{
	bool counted = false;
	for (uint32_t c = 0; c < t->n; c++)
		counted |= ran(t, c) && isfinite(t->facts[c].remote);
	if (t->remote_refused)
		fprintf(f, "Remote reads: not available here (perf_event_open: %s%s).\n",
			strerror(t->remote_refused), mw_remote_why(t->remote_refused));
	else if (!counted)
		fprintf(f, "Remote reads: the processor's counters of reads from memory stayed at 0.\n");
}

static void print_reasons(const struct mw_tune *t, FILE *f)
{
	fprintf(f, "\n%-4s%-6s%-9s%-16s%-11s%-10s%-11s%s\n", "", "rung", "ex/s", "staleness mean", "p99",
		"t_mix", "loss", "remote reads");
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t c = t->rank[i];
		const struct mw_tune_facts *x = &t->facts[c];
		char speed[32], mixing[32] = "-", remote[32] = "-";
		if (!ran(t, c))
			continue;
		mw_format_count(mean(x, x->examples_per_s), speed, sizeof(speed));
		if (isfinite(x->t_mix))
			snprintf(mixing, sizeof(mixing), "%.4g", x->t_mix);
		if (isfinite(x->remote))
			snprintf(remote, sizeof(remote), "%.1f%%", 100 * mean(x, x->remote));
		fprintf(f, "%-4u%-6u%-9s%-16.2f%-11.4g%-10s%-11.4g%s\n", i + 1, t->result[c].rung + 1, speed,
			mean(x, x->staleness_mean), mean(x, x->staleness_p99), mixing, mean(x, x->loss),
			remote);
	}
	fprintf(f, "Staleness in updates of others; t_mix in gradient steps; all of the last rung.\n");
	print_no_tmix(t, f);
	print_no_remote(t, f);
}

static void print_failures(const struct mw_tune *t, FILE *f)
{
	char name[100];
	for (uint32_t c = 0; c < t->n; c++)
		if (t->facts[c].failed[0])
			fprintf(f, "not run: %s: %s\n", mw_tune_name(t, c, name, sizeof(name)),
				t->facts[c].failed);
}

static void put_word(void *arg, const char *name, const char *value)
{
	FILE *f = arg;
	bool flag = !strcmp(value, "yes") || !strcmp(value, "no"); /* takes no word of its own */
	fprintf(f, flag ? " --%s=" : " --%s ", name);
	mw_shell_quote(f, value);
}

/* Epochs that the winner is given where people gave none: twice what it needed. */
static uint64_t epochs_for(const struct mw_tune *t, uint32_t c)
{
	double e = mean(&t->facts[c], t->facts[c].epochs);
	return !isfinite(e) || mw_options_is_set(&t->job->set, "epochs") ? 0 : (uint64_t)(2 * e) + 1;
}

static void print_command(const struct mw_tune *t, uint32_t c, FILE *f)
{
	fprintf(f, "mixwild train");
	mw_tune_common_options(t, put_word, f);
	mw_tune_own_options(t, c, put_word, f);
	if (epochs_for(t, c))
		fprintf(f, " --epochs %" PRIu64, epochs_for(t, c));
}

static void print_text(const struct mw_tune *t, FILE *f)
{
	uint32_t repeats = t->result[t->rank[0]].n; /* fewer than planned where it was stopped */
	print_ranking(t, f);
	if (repeats > 1)
		fprintf(f,
			"Medians; the lowest and highest of n runs hold the median of such runs with "
			"probability\n"
			"1 - 2^(1-n), here %.0f%% for the last ones (n = %u).\n",
			100 * (1 - pow(2, 1 - (int)repeats)), repeats);
	print_reasons(t, f);
	print_failures(t, f);
	if (t->to_loss && ran(t, t->rank[0]) && !isfinite(t->result[t->rank[0]].median.first))
		fprintf(f,
			"None reached the loss %g: they are ranked by the loss that they came to. Give a "
			"larger --budget.\n",
			t->opt->train.target_loss);
	if (t->stopped)
		fprintf(f, "Stopped after %u runs: what was found until then.\n", t->n_trials - 1);
	if (ran(t, t->rank[0])) {
		fprintf(f, "\nThe first one:\n  ");
		print_command(t, t->rank[0], f);
		fprintf(f, "\n");
	}
}

/* --- JSON and CSV --------------------------------------------------------------------------------------------------- */

static char *command_of(const struct mw_tune *t, uint32_t c)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return NULL;
	print_command(t, c, f);
	return fclose(f) ? NULL : text;
}

static json_t *scores_json(const struct mw_tune *t, const struct mw_halving_result *r)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < r->n; i++)
		json_array_append_new(list, mw_json_number(shown(t, &r->score[i])));
	return list;
}

static json_t *candidate_json(const struct mw_tune *t, uint32_t c)
{
	const struct mw_tune_candidate *x = &t->candidate[c];
	const struct mw_tune_facts *f = &t->facts[c];
	const struct mw_halving_result *r = &t->result[c];
	bool good = ran(t, c);
	char *command = good ? command_of(t, c) : NULL;
	json_t *j = json_pack("{sI ss ss ss si so}", "workers", (json_int_t)x->workers, "protocol",
		x->protocol, "bind", x->bind, "data_place", x->data_place, "rung", (int)r->rung + 1, "runs",
		scores_json(t, r));
	json_object_set_new(j, "mix_every", f->mix_every ? json_integer(f->mix_every) : json_null());
	json_object_set_new(j, t->to_loss ? "seconds" : "median_examples_per_s",
		mw_json_number(good ? shown(t, &r->median) : NAN));
	json_object_set_new(j, "examples_per_s", mw_json_number(mean(f, f->examples_per_s)));
	json_object_set_new(j, "staleness_mean", mw_json_number(mean(f, f->staleness_mean)));
	json_object_set_new(j, "staleness_p99", mw_json_number(mean(f, f->staleness_p99)));
	json_object_set_new(j, "t_mix_gradient_steps", mw_json_number(good ? f->t_mix : NAN));
	json_object_set_new(
		j, "t_mix_reason", f->t_mix_reason[0] ? json_string(f->t_mix_reason) : json_null());
	json_object_set_new(j, "loss", mw_json_number(mean(f, f->loss)));
	json_object_set_new(j, "remote_share", mw_json_number(mean(f, f->remote)));
	json_object_set_new(j, "failed", f->failed[0] ? json_string(f->failed) : json_null());
	json_object_set_new(j, "command", command ? json_string(command) : json_null());
	free(command);
	return j;
}

static json_t *report_json(const struct mw_tune *t)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < t->n; i++)
		json_array_append_new(list, candidate_json(t, t->rank[i]));
	char *refused = t->remote_refused ? mw_strprintf("%s%s", strerror(t->remote_refused),
						    mw_remote_why(t->remote_refused))
					  : NULL;
	json_t *j = json_pack("{ss so sb so so}", "goal", t->to_loss ? "loss" : "throughput", "target_loss",
		t->to_loss ? json_real(t->opt->train.target_loss) : json_null(), "stopped", t->stopped,
		"remote_reads_unavailable", refused ? json_string(refused) : json_null(), "candidates", list);
	free(refused);
	return j;
}

static void csv_number(FILE *f, double v)
{
	if (isfinite(v))
		fprintf(f, ",%.10g", v);
	else
		fprintf(f, ",");
}

static void print_csv(const struct mw_tune *t, FILE *f)
{
	fprintf(f,
		"rank,workers,protocol,mix_every,bind,data_place,rung,runs,%s,lowest,highest,examples_per_s,"
		"staleness_mean,staleness_p99,t_mix_gradient_steps,loss,remote_share,failed\n",
		t->to_loss ? "seconds" : "median_examples_per_s");
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t c = t->rank[i];
		const struct mw_tune_candidate *x = &t->candidate[c];
		const struct mw_tune_facts *a = &t->facts[c];
		const struct mw_halving_result *r = &t->result[c];
		bool good = ran(t, c);
		fprintf(f, "%u,%u,%s,%" PRId64 ",%s,%s,%u,%u", i + 1, x->workers, x->protocol, a->mix_every,
			x->bind, x->data_place, r->rung + 1, r->n);
		csv_number(f, good ? shown(t, &r->median) : NAN);
		csv_number(f, good ? shown(t, t->to_loss ? &r->best : &r->worst) : NAN);
		csv_number(f, good ? shown(t, t->to_loss ? &r->worst : &r->best) : NAN);
		csv_number(f, mean(a, a->examples_per_s));
		csv_number(f, mean(a, a->staleness_mean));
		csv_number(f, mean(a, a->staleness_p99));
		csv_number(f, good ? a->t_mix : NAN);
		csv_number(f, mean(a, a->loss));
		csv_number(f, mean(a, a->remote));
		fputc(',', f);
		mw_output_csv(f, a->failed);
		fputc('\n', f);
	}
}

void mw_tune_report(struct mw_tune *t)
{
	FILE *f = t->job->out;
	if (t->job->live)
		fprintf(t->job->msg, "\r\033[K");
	if (t->opt->format == MW_OUT_JSON)
		mw_output_json(f, report_json(t));
	else if (t->opt->format == MW_OUT_CSV)
		print_csv(t, f);
	else
		print_text(t, f);
}

/* --- the job file --------------------------------------------------------------------------------------------------- */

/* Words are parted by space in a job file, so that a value with one is quoted. */
static void put_line(void *arg, const char *name, const char *value)
{
	FILE *f = arg;
	const char *mark = !*value || strpbrk(value, " \t\"") ? strchr(value, '"') ? "'" : "\"" : "";
	fprintf(f, "%s = %s%s%s\n", name, mark, value, mark);
}

int mw_tune_write_job(const struct mw_tune *t, const char *path, struct mw_err *err)
{
	struct mw_atomic_file file;
	uint32_t c = t->rank[0];
	char name[100];
	if (!ran(t, c))
		return 0;
	MW_TRY(mw_atomic_file_open(&file, path, err));
	fprintf(file.file, "# What mixwild tune found best: %s.\n", mw_tune_name(t, c, name, sizeof(name)));
	fprintf(file.file, "# %s\n\n[global]\n",
		t->job->command_line ? t->job->command_line : "mixwild tune");
	mw_tune_common_options(t, put_line, file.file);
	if (epochs_for(t, c))
		fprintf(file.file, "epochs = %" PRIu64 "\n", epochs_for(t, c));
	fprintf(file.file, "\n[tuned]\n");
	mw_tune_own_options(t, c, put_line, file.file);
	return mw_atomic_file_commit(&file, err);
}
