/* cmd_train.c: `mixwild train`: set a run up, train in segments with an evaluation after each, record it. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/kernel.h"
#include "base/mem.h"
#include "run/checkpoint.h"
#include "run/command.h"
#include "run/control.h"
#include "run/metrics.h"
#include "run/progress.h"
#include "run/record.h"
#include "run/run.h"
#include "run/theory.h"
#include "run/tmix_of_run.h"
#include "run/train.h"

/* A loss beyond this multiple of the first one is taken for divergence. */
#define DIVERGED_FACTOR 1e6

/* --- what people see before -------------------------------------------------------------------------------------- */

static void print_data(struct mw_run *run)
{
	const struct mw_dataset *d = run->train;
	mw_say(run, "data      %s: %llu rows, %u features", d->name, (unsigned long long)d->rows,
		d->features);
	if (d->kind == MW_X_CSR)
		mw_say(run, ", %llu non-zeros (%.1f a row)", (unsigned long long)d->nnz,
			(double)d->nnz / (double)d->rows);
	mw_say(run, ", read in %.2f s", d->load_s);
	if (d->file_bytes && !d->map)
		mw_say(run, " (%.0f MB/s)", (double)d->file_bytes / 1e6 / (d->load_s > 0 ? d->load_s : 1e-9));
	mw_say(run, "\n");
	if (d->cache_note)
		mw_say(run, "cache     %s\n", d->cache_note);
	if (d->classes && d->label_value) {
		mw_say(run, "labels   ");
		for (uint32_t c = 0; c < d->classes && c < 12; c++)
			mw_say(run, " %g (%llu)", d->label_value[c],
				(unsigned long long)(d->label_count ? d->label_count[c] : 0));
		mw_say(run, "%s\n", d->classes > 12 ? " ..." : "");
	}
	if (d->kind == MW_X_IMAGE)
		mw_say(run, "images    %u x %u, %u channel%s, as bytes%s\n", d->image_rows, d->image_cols,
			d->channels, d->channels == 1 ? "" : "s",
			run->opt->augment == MW_AUGMENT_CROP_FLIP ? ", shifted and mirrored at random" : "");
	if (run->shards.row) {
		double distance = mw_shards_distance(&run->shards, d);
		mw_say(run, "shards    %s", run->opt->shards);
		if (isfinite(distance))
			mw_say(run, ", labels of a worker %.3f from those of all (total variation)",
				distance);
		mw_say(run, "\n");
	}
	if (run->val.n)
		mw_say(run, "split     %llu training rows, %llu validation rows\n",
			(unsigned long long)run->rows.n, (unsigned long long)run->val.n);
}

static void print_plan(struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	static const char *const accesses[] = { "racy", "atomic", "locked", "seqlock" };
	double c = mw_effective_share(run), alpha = (double)mw_rate_begin(run->rate, run->opt->epochs);
	char *rate = mw_rate_describe(run->rate);
	mw_say(run, "model     %s, %zu parameters; %s; rate %s; batch %u\n", run->model->spec,
		run->model->dim, run->optim->ops->name, rate ? rate : run->opt->rate, run->batch);
	free(rate);
	if (run->model->math)
		mw_say(run, "math      %s\n", run->model->math);
	mw_say(run, "protocol  %s", p->ops->name);
	if (p->ops->expands)
		mw_say(run, " (%s)", p->ops->expands);
	mw_say(run, ": %u worker%s, %u replica%s, %s access", p->workers, p->workers == 1 ? "" : "s", p->rows,
		p->rows == 1 ? "" : "s", p->versioned ? "versioned" : accesses[run->access]);
	if (p->n_slots)
		mw_say(run, ", mixes every %lld %s", (long long)run->knobs.mix_every,
			p->clock == MW_CLOCK_ROUND ? "rounds" : "own steps");
	if (run->hot_columns)
		mw_say(run,
			"\n          copies of the %u most popular of %u columns, %.1f %% of all non-zeros",
			run->hot_columns, run->train->features, 100 * run->hot_share);
	mw_say(run, "\n          effective step alpha c = %g x %g = %g a %s\n", alpha, c, alpha * c,
		p->clock == MW_CLOCK_ROUND ? "round" : "push");
	if (*run->why)
		mw_say(run, "auto      chose %s: %s\n", p->ops->name, run->why);
	if (run->steer)
		mw_say(run, "control   t_mix to be kept at %g %s by %s; %s\n", mw_steer_target(run->steer),
			mw_steer_unit(run->steer), mw_steer_actuator(run->steer), mw_steer_start(run->steer));
	mw_say(run, "engine    %s, %s kernels%s\n", run->ops->name, mw_kernels()->name,
		run->bursts ? ", fused update path" : "");
	if (run->dealer)
		mw_say(run, "deal      dynamic: who is through with its rows takes more\n");
}

static void print_evaluation(struct mw_run *run, const struct mw_evaluation *e)
{
	char speed[32];
	mw_say(run, "epoch %-6.4g train loss %.5f", e->epoch, e->train_loss);
	if (isfinite(e->train_accuracy))
		mw_say(run, " acc %.4f", e->train_accuracy);
	if (isfinite(e->val_loss))
		mw_say(run, " | val loss %.5f", e->val_loss);
	if (isfinite(e->val_accuracy))
		mw_say(run, " acc %.4f", e->val_accuracy);
	if (isfinite(e->test_loss))
		mw_say(run, " | test loss %.5f", e->test_loss);
	if (isfinite(e->test_accuracy))
		mw_say(run, " acc %.4f", e->test_accuracy);
	if (isfinite(e->grad_norm))
		mw_say(run, " | grad %.3g", e->grad_norm);
	if (e->seconds > 0) {
		mw_format_count((double)e->examples / e->seconds, speed, sizeof(speed));
		mw_say(run, " | %s ex/s", speed);
	}
	mw_say(run, "\n");
}

/* --- training ------------------------------------------------------------------------------------------------------ */

static bool reached_target(const struct mw_run *run)
{
	const struct mw_train_options *o = run->opt;
	const struct mw_evaluation *e = &run->last;
	double loss = run->val.n ? e->val_loss : e->train_loss;
	double accuracy = run->val.n ? e->val_accuracy : e->train_accuracy;
	bool want_loss = mw_options_is_set(&run->job->set, "target-loss");
	bool want_accuracy = mw_options_is_set(&run->job->set, "target-accuracy");
	return (want_loss && loss <= o->target_loss) || (want_accuracy && accuracy >= o->target_accuracy);
}

static int evaluate(struct mw_run *run, struct mw_err *err)
{
	struct mw_evaluation *e = &run->last;
	MW_TRY(mw_evaluate(run, e, err));
	struct mw_hist *h = mw_record_staleness(run, err);
	if (!h)
		return err->code;
	run->staleness_p50 = mw_hist_quantile(h, 0.5);
	run->staleness_p99 = mw_hist_quantile(h, 0.99);
	mw_free(h);
	print_evaluation(run, e);
	MW_TRY(mw_theory_evaluated(run, e, err));
	MW_TRY(mw_metrics_events(run, err));
	MW_TRY(mw_metrics_evaluation(run, e, err));
	if (run->hooks && run->hooks->evaluated)
		run->hooks->evaluated(run, e, run->hooks->arg);
	mw_control_window(run);
	if (!run->n_evaluations++)
		run->first_loss = e->train_loss;
	if (!isfinite(e->train_loss) || e->train_loss > DIVERGED_FACTOR * (fabs(run->first_loss) + 1))
		run->diverged = 1;
	return 0;
}

static bool stopping(const struct mw_run *run)
{
	return __atomic_load_n(&run->stop, __ATOMIC_RELAXED);
}

/* Own steps at which the k-th evaluation happens. */
static uint64_t evaluation_step(const struct mw_run *run, uint64_t k)
{
	double every = run->opt->eval_every;
	if (every <= 0 || run->replay)
		return run->total_steps;
	double step = every * (double)k * (double)run->steps_per_epoch;
	if (!(step < (double)run->total_steps))
		return run->total_steps;
	return step < 1 ? 1 : (uint64_t)llround(step);
}

static int run_segment(struct mw_run *run, uint64_t until, struct mw_err *err)
{
	bool turns = run->protocol->clock == MW_CLOCK_EVENT && run->activation != MW_ACT_FREE;
	run->segment_end = turns ? until * run->n_workers : until;
	MW_TRY(mw_control_begin(run, err));
	run->segment_s = mw_now_s();
	run->in_segment = true;
	run->ops->segment(run);
	run->in_segment = false;
	run->train_s += mw_now_s() - run->segment_s;
	mw_control_end(run);
	return 0;
}

#define CHECKPOINT_S 60

/* So that a killed run loses a minute at most; runs with delayed updates are saved only where these are pushed. */
static int checkpoint_sometimes(struct mw_run *run, struct mw_err *err)
{
	if (run->pool_n > 1 || run->train_s - run->saved_s < CHECKPOINT_S)
		return 0;
	run->saved_s = run->train_s;
	return mw_checkpoint_save(run, err);
}

/* Own steps that every worker has done (a resumed run: before). */
static uint64_t steps_done(const struct mw_run *run)
{
	uint64_t done = UINT64_MAX;
	if (run->protocol->clock == MW_CLOCK_EVENT && run->activation != MW_ACT_FREE)
		return run->turn / run->n_workers;
	if (run->dealer)
		return run->done;
	for (uint32_t w = 0; w < run->n_workers; w++)
		done = run->worker[w]->step < done ? run->worker[w]->step : done;
	return done;
}

static const char *train(struct mw_run *run, struct mw_err *err)
{
	uint64_t done = steps_done(run);
	if (evaluate(run, err))
		return NULL;
	for (uint64_t k = 1; done < run->total_steps && !run->diverged; k++) {
		uint64_t until = evaluation_step(run, k);
		if (until <= done)
			continue;
		if (run_segment(run, until, err))
			return NULL;
		done = until;
		if (!stopping(run))
			run->done = done;
		if (done == run->total_steps || stopping(run))
			run->ops->flush(run);
		if (evaluate(run, err) || checkpoint_sometimes(run, err))
			return NULL;
		if (reached_target(run))
			return "target";
		if (stopping(run) && !run->diverged)
			return mw_run_interrupted(run) ? "signal" : "time";
	}
	return run->diverged ? "diverged" : "epochs";
}

/* --- what people see after ----------------------------------------------------------------------------------------- */

static void print_staleness(struct mw_run *run, const struct mw_hist *h)
{
	/* Octaves are coarse enough for a terminal: 0, 1, 2-3, 4-7, ... */
	uint64_t octave[66] = { 0 }, most = 1;
	int last = 0;
	for (uint32_t b = 0; b < MW_HIST_BUCKETS; b++) {
		uint64_t v = mw_hist_value(b);
		int o = v ? 64 - __builtin_clzll(v) : 0;
		octave[o] += h->count[b];
		if (h->count[b])
			last = o;
	}
	for (int o = 0; o <= last; o++)
		most = octave[o] > most ? octave[o] : most;
	mw_say(run,
		"staleness %s: missing writes at use, %llu samples; mean %.2f p50 %llu p99 %llu max %llu\n",
		run->exclusive ? "(exact)" : "(sampled)", (unsigned long long)h->n,
		h->n ? h->sum / (double)h->n : 0.0, (unsigned long long)mw_hist_quantile(h, 0.5),
		(unsigned long long)mw_hist_quantile(h, 0.99), (unsigned long long)h->max);
	for (int o = 0; o <= last && h->n; o++) {
		char range[40];
		uint64_t low = o ? 1ULL << (o - 1) : 0, high = o > 1 ? (1ULL << o) - 1 : low;
		snprintf(range, sizeof(range), low == high ? "%llu" : "%llu-%llu", (unsigned long long)low,
			(unsigned long long)high);
		mw_say(run, "  %12s %5.1f%% %.*s\n", range, 100.0 * (double)octave[o] / (double)h->n,
			(int)(40.0 * (double)octave[o] / (double)most + 0.5),
			"########################################");
	}
}

static void print_workers(struct mw_run *run)
{
	uint64_t total = 0;
	for (uint32_t w = 0; w < run->n_workers; w++)
		total += run->counters[w].pushes;
	if (run->n_workers < 2 || !total)
		return;
	mw_say(run, "share    ");
	for (uint32_t w = 0; w < run->n_workers && w < 16; w++)
		mw_say(run, " w%u %.1f%%", w, 100.0 * (double)run->counters[w].pushes / (double)total);
	mw_say(run, "%s\n", run->n_workers > 16 ? " ... (all in run.json)" : "");
}

static void print_replay(struct mw_run *run)
{
	const struct mw_replay_report *r = &run->replayed;
	mw_say(run,
		"replay    %llu events; %llu of them in an order that only overlapping time-stamps tell%s\n",
		(unsigned long long)r->events, (unsigned long long)r->ambiguous,
		r->ambiguous ? ": the result may differ from the recorded run's" : "");
}

static void print_result(struct mw_run *run)
{
	const struct mw_evaluation *e = &run->last;
	FILE *out = run->job->out;
	char speed[32], time[32];
	mw_progress_clear(run);
	mw_format_count(run->train_s > 0 ? (double)e->examples / run->train_s : 0, speed, sizeof(speed));
	mw_format_duration(run->train_s, time, sizeof(time));
	fprintf(out, "train loss %.6f", e->train_loss);
	if (isfinite(e->train_accuracy))
		fprintf(out, "  accuracy %.4f", e->train_accuracy);
	if (isfinite(e->val_loss))
		fprintf(out, "  val loss %.6f", e->val_loss);
	if (isfinite(e->val_accuracy))
		fprintf(out, "  accuracy %.4f", e->val_accuracy);
	if (isfinite(e->test_loss))
		fprintf(out, "  test loss %.6f", e->test_loss);
	if (isfinite(e->test_accuracy))
		fprintf(out, "  accuracy %.4f", e->test_accuracy);
	fprintf(out, "\n%llu examples in %s (%s examples/s), %.4g epochs, stopped by %s\n",
		(unsigned long long)e->examples, time, speed, e->epoch, run->stopped_by);
}

static void print_stale(struct mw_run *run)
{
	json_t *j = mw_stale_json(run);
	if (run->stale.kind == MW_STALE_DROP)
		mw_say(run, "policy    %lld updates dropped, %.4g%% of all\n",
			(long long)json_integer_value(json_object_get(j, "dropped")),
			100 * json_number_value(json_object_get(j, "dropped_share")));
	if (run->stale.kind == MW_STALE_SCALE)
		mw_say(run, "policy    step sizes were scaled by %.4g on average\n",
			json_number_value(json_object_get(j, "mean_factor")));
	json_decref(j);
}

static int report(struct mw_run *run, struct mw_err *err)
{
	struct mw_hist *h = mw_record_staleness(run, err);
	uint64_t flushed = 0;
	if (!h)
		return err->code;
	for (uint32_t w = 0; w < run->n_workers; w++)
		flushed += run->worker[w]->flushed;
	for (uint32_t w = 0; w < run->n_workers; w++)
		if (run->worker[w]->strayed)
			mw_say(run,
				"moved     worker %u was found off its place after training: a library or "
				"another process changed its mask\n",
				w);
	if (run->job->msg) {
		print_workers(run);
		if (h->n)
			print_staleness(run, h);
		if (flushed)
			mw_say(run, "flushed   %llu delayed updates were pushed early at the end\n",
				(unsigned long long)flushed);
		print_stale(run);
		if (isfinite(mw_lost_share(run)))
			mw_say(run,
				"lost      %.4g%% of the updates on a coordinate that every push touches\n",
				100 * mw_lost_share(run));
		mw_tmix_print(run);
		mw_control_print(run);
		mw_theory_print(run);
		if (run->replay)
			print_replay(run);
	}
	mw_free(h);
	print_result(run);
	if (run->run_dir)
		mw_say(run,
			"files     %s/: run.json, metrics.jsonl, layout.txt, model.safetensors, "
			"checkpoint.safetensors\n",
			run->run_dir);
	if (run->run_dir && !strcmp(run->stopped_by, "signal"))
		mw_say(run, "resume    with the same command and --resume\n");
	return 0;
}

static int check_end(struct mw_run *run, struct mw_err *err)
{
	if (run->replayed.misfit || run->replayed.left)
		MW_FAIL(err, DATA,
			"--replay %s: after %llu events the trace does not fit this run (other options or "
			"data?), or it is "
			"damaged",
			run->opt->replay, (unsigned long long)run->replayed.events);
	if (!strcmp(run->stopped_by, "diverged"))
		MW_FAIL(err, DIVERGED,
			"the training loss is %g after %.4g epochs: the rate %s is too large for this "
			"problem and staleness; lower "
			"--rate, or add warmup",
			run->last.train_loss, run->last.epoch, run->opt->rate);
	return 0;
}

static int run_all(struct mw_run *run, struct mw_err *err)
{
	print_data(run);
	print_plan(run);
	if (run->job->msg)
		mw_layout_print(run->layout, run->job->msg);
	MW_TRY(mw_record_start(run, err));
	MW_TRY(run->ops->start(run, err));
	MW_TRY(mw_place_look(run, err));
	if (run->job->msg && run->layout->machine_nodes > 1)
		mw_place_print(run, run->job->msg);
	MW_TRY(mw_record_layout(run, err));
	if (run->opt->resume)
		MW_TRY(mw_checkpoint_load(run, err));
	run->stopped_by = train(run, err);
	if (!run->stopped_by)
		return err->code;
	if (run->hooks && run->hooks->done)
		run->hooks->done(run, run->hooks->arg);
	mw_tmix_of_run(run);
	mw_control_report(run);
	MW_TRY(report(run, err));
	if (!run->diverged && !run->replay)
		MW_TRY(mw_checkpoint_save(run, err));
	MW_TRY(mw_record_end(run, err));
	MW_TRY(mw_record_trace(run, err));
	return check_end(run, err);
}

static int check_options(const struct mw_job *job, struct mw_err *err)
{
	const struct mw_train_options *o = job->options;
	if (o->trace && *o->trace && !mw_ticks_invariant() && job->msg)
		fprintf(job->msg, "mixwild train: this machine's time-stamp counter is not invariant: events "
				  "of different "
				  "workers can be ordered by versions only, not by time\n");
	if (o->resume && !o->out)
		MW_FAIL(err, USAGE, "--resume: name the run's folder by --out");
	if (o->resume && o->force)
		MW_FAIL(err, USAGE, "--resume goes on with the run that --force would replace: choose one");
	return 0;
}

int mw_train(struct mw_job *job, const struct mw_train_hooks *hooks, struct mw_err *err)
{
	MW_TRY(check_options(job, err));
	struct mw_run *run = NULL;
	time_t started = time(NULL);
	int code = mw_run_new_with(job, hooks, &run, err);
	if (code == 0) {
		run->started = started;
		code = run_all(run, err);
	}
	if (run && run->metrics)
		fclose(run->metrics);
	mw_run_free(run);
	return code;
}

static int train_command(struct mw_job *job, struct mw_err *err)
{
	return mw_train(job, NULL, err);
}

const struct mw_command mw_command_train = {
	.name = "train",
	.summary = "Train a model with many workers, and see loss, speed and staleness",
	.positionals = NULL,
	.uses = MW_USES_MODEL | MW_USES_OPTIM | MW_USES_PROTOCOL,
	.options = mw_train_option_table,
	.option_size = sizeof(struct mw_train_options),
	.examples =
		"mixwild train --data data/spam-train.svm.gz --test data/spam-test.svm.gz --rate 0.5 --out "
		"runs/spam\n"
		"mixwild train --data synth:sparse,rows=200000,features=47236 --protocol cached --workers 2\n"
		"mixwild train --data synth:quadratic,dim=16 --engine sim --workers 64 --protocol "
		"async-ring\n"
		"mixwild train --config runs/spam/run.json --seed 2 --out runs/spam-2\n",
	.run = train_command,
};
