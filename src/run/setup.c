/* setup.c: puts a run together from its options, and refuses combinations that mean nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel.h"
#include "base/mem.h"
#include "run/control.h"
#include "run/find.h"
#include "run/model_file.h"
#include "run/optimize.h"
#include "run/run.h"
#include "run/setup.h"
#include "run/setup_impl.h"
#include "run/train.h"
#include "run/theory.h"

/* More virtual workers than this share one staleness histogram: 36 KB each would not stay in cache. */
#define HISTOGRAMS_MAX 64

enum { STREAM_TURN = 0x7042 };

uint32_t mw_turn_of(const struct mw_run *run, uint64_t t)
{
	if (run->activation == MW_ACT_RR)
		return (uint32_t)(t % run->n_workers);
	return (uint32_t)(((unsigned __int128)mw_hash3(run->seed, STREAM_TURN, t) * run->n_workers) >> 64);
}

bool mw_run_interrupted(const struct mw_run *run)
{
	return run->job->interrupt && __atomic_load_n(run->job->interrupt, __ATOMIC_RELAXED);
}

/* --- schedules -------------------------------------------------------------------------------------- */

/* Every delta on its way is kept: room for the longest delay of this schedule. */
static int grow_pool(struct mw_run *run, const struct mw_sched *s, struct mw_err *err)
{
	double max = mw_sched_max(s);
	if (!(max < 1e7))
		MW_FAIL(err, USAGE,
			"staleness %s: every delta on its way is kept in memory, so the schedule needs a "
			"largest value; add max=N",
			mw_sched_spec(s));
	if ((uint32_t)max + 1 > run->pool_n)
		run->pool_n = (uint32_t)max + 1;
	return 0;
}

static int make_schedules(struct mw_run *run, struct mw_err *err)
{
	MW_TRY(mw_sched_parse(run->opt->staleness, &run->staleness, err));
	MW_TRY(mw_sched_parse(run->opt->straggler, &run->straggler, err));
	MW_TRY(mw_sched_parse(run->opt->compute_time, &run->compute_time, err));
	MW_TRY(mw_sched_parse(run->opt->push_time, &run->push_time, err));
	MW_TRY(mw_sched_parse(run->opt->mix_time, &run->mix_time, err));
	MW_TRY(mw_rate_parse(run->opt->rate, &run->rate, err));
	run->knobs = (struct mw_knobs){ .staleness = run->staleness,
		.straggler = run->straggler,
		.rate = run->rate,
		.mix_every = run->opt->mix_every,
		.slack = run->opt->slack };
	if (run->opt->timeline)
		MW_TRY(mw_timeline_parse(run->opt->timeline, &run->knobs, &run->timeline, err));
	MW_TRY(grow_pool(run, run->staleness, err));
	for (uint32_t i = 0; run->timeline && i < run->timeline->n; i++)
		MW_TRY(grow_pool(run, run->timeline->entry[i].knobs.staleness, err));
	return 0;
}

/* --- workers and protocol ---------------------------------------------------------------------------------------- */

static int make_protocol(struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	const struct mw_protocol_ops *ops = mw_protocol_find(o->protocol);
	if (!ops)
		MW_FAIL(err, USAGE, "no protocol '%s'; see mixwild list protocols", o->protocol);
	if (o->graph && !ops->default_graph)
		MW_FAIL(err, USAGE, "--graph: protocol %s takes no graph; sync-gossip and async-gossip do",
			ops->name);
	if (ops->default_graph)
		MW_TRY(mw_graph_new(
			o->graph ? o->graph : ops->default_graph, run->n_workers, &run->graph, err));
	uint32_t *node = mw_alloc_array(run->n_workers, sizeof(*node), "the node table", err);
	if (!node)
		return err->code;
	for (uint32_t w = 0; w < run->n_workers; w++)
		node[w] = run->layout->slot[w].node > 0 ? (uint32_t)run->layout->slot[w].node : 0;
	run->activation = (enum mw_activation)o->activation;
	struct mw_protocol_config c = { .workers = run->n_workers,
		.nodes = run->layout->n_nodes,
		.worker_node = node,
		.graph = run->graph,
		.random_edges = run->activation != MW_ACT_RR };
	int code = mw_protocol_new(
		ops, mw_job_plugin_options(run->job, "protocol", ops->name), &c, &run->protocol, err);
	mw_free(node);
	return code;
}

/* --gate auto|none|ssp:S|barrier */
static int resolve_gate(struct mw_run *run, struct mw_err *err)
{
	const char *gate = run->opt->gate;
	bool round = run->protocol->clock == MW_CLOCK_ROUND;
	run->ssp_bound = run->protocol->ssp_bound;
	if (!strcmp(gate, "auto"))
		return 0;
	if (round && strcmp(gate, "barrier"))
		MW_FAIL(err, USAGE, "--gate %s: protocol %s works in rounds, its gate is a barrier", gate,
			run->protocol->ops->name);
	if (!strcmp(gate, "barrier")) {
		run->ssp_bound = round ? -1 : 0;
		return 0;
	}
	if (!strcmp(gate, "none")) {
		if (run->protocol->due == MW_DUE_SSP)
			MW_FAIL(err, USAGE,
				"--gate none: protocol ssp is its gate; async-ps is the same without one");
		run->ssp_bound = -1;
		return 0;
	}
	if (strncmp(gate, "ssp:", 4))
		MW_FAIL(err, USAGE, "--gate %s: expected none, barrier or ssp:S with S the bound in steps",
			gate);
	MW_TRY(mw_parse_int(gate + 4, "--gate ssp:S", &run->ssp_bound, err));
	if (run->ssp_bound < 0)
		MW_FAIL(err, USAGE, "--gate %s: the bound can't be negative", gate);
	return 0;
}

static bool has_plans(const struct mw_protocol *p)
{
	return p->n_slots > 0;
}

/* A mixing knob on a protocol that has no plan would be ignored: refuse it, and name those that have one. */
static int check_knobs(struct mw_run *run, struct mw_err *err)
{
	static const char *const knobs[] = { "mix-every", "slack", "mix-fraction", "mix-blocks", "mix-order",
		"mix-form", "mix-precision", "mix-time" };
	char names[400] = "";
	if (run->protocol->due == MW_DUE_SSP && (mw_options_is_set(&run->job->set, "mix-every") ||
							mw_options_is_set(&run->job->set, "mix-order")))
		MW_FAIL(err, USAGE,
			"--mix-every, --mix-order: protocol ssp fetches a view when its bound says so, "
			"before a step; "
			"change --ssp-bound");
	for (uint32_t i = 0; run->protocol->due == MW_DUE_SSP && run->timeline && i < run->timeline->n; i++)
		if (run->timeline->entry[i].knobs.mix_every != run->opt->mix_every)
			MW_FAIL(err, USAGE,
				"--timeline: %s: protocol ssp fetches a view when its bound says so",
				run->timeline->entry[i].change);
	if (has_plans(run->protocol))
		return 0;
	for (size_t i = 0; mw_protocols[i]; i++)
		if (strcmp(mw_protocols[i]->name, "sequential") && strcmp(mw_protocols[i]->name, "hogwild") &&
			strcmp(mw_protocols[i]->name, "leashed")) {
			strncat(names, *names ? ", " : "", sizeof(names) - strlen(names) - 1);
			strncat(names, mw_protocols[i]->name, sizeof(names) - strlen(names) - 1);
		}
	for (uint32_t i = 0; run->timeline && i < run->timeline->n; i++)
		if (run->timeline->entry[i].knobs.mix_every != run->opt->mix_every ||
			run->timeline->entry[i].knobs.slack != run->opt->slack)
			MW_FAIL(err, USAGE, "--timeline: %s: protocol %s exchanges nothing; these do: %s",
				run->timeline->entry[i].change, run->protocol->ops->name, names);
	for (size_t i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
		if (mw_options_is_set(&run->job->set, knobs[i]))
			MW_FAIL(err, USAGE,
				"--%s: protocol %s exchanges nothing, so there is nothing to change; these "
				"do: %s",
				knobs[i], run->protocol->ops->name, names);
	return 0;
}

static int setup_protocol(struct mw_run *run, struct mw_err *err)
{
	MW_TRY(make_protocol(run, err));
	MW_TRY(check_knobs(run, err));
	MW_TRY(mw_stale_check(run, err));
	return resolve_gate(run, err);
}

/* A recorded run is repeated with its own options only. */
static int load_replay(struct mw_run *run, struct mw_err *err)
{
	static const char *const ignored[] = { "engine", "replay", "trace", "trace-every", "trace-window",
		"out", "config", "force", "estimate", "estimate-rate", "access", "straggler", "bind",
		"places", "oversubscribe", "threads", "isa", "eval-every", "workers" };
	const char *path = run->opt->replay, *name;
	json_t *value;
	if (!path)
		return 0;
	if (run->opt->engine != MW_ENGINE_SIM)
		MW_FAIL(err, USAGE, "--replay performs recorded events one by one: add --engine sim");
	if (run->protocol->clock == MW_CLOCK_ROUND)
		MW_FAIL(err, USAGE,
			"--replay: protocol %s works in rounds; --engine sim with the same options is the "
			"same run",
			run->protocol->ops->name);
	MW_TRY(mw_trace_load(path, &run->replay, err));
	if (run->replay->n_workers != run->n_workers)
		MW_FAIL(err, USAGE, "--replay %s: recorded with %u workers, not %u", path,
			run->replay->n_workers, run->n_workers);
	json_t *now = mw_job_config(run->job);
	int code = 0;
	json_object_foreach(json_object_get(run->replay->header, "config"), name, value)
	{
		bool skip = false;
		for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
			skip |= !strcmp(name, ignored[i]);
		if (!skip && !json_equal(value, json_object_get(now, name)) && !code)
			code = mw_err_set(err, MW_EUSAGE,
				"--replay %s: recorded with another --%s; take the options from its run.json "
				"by --config",
				path, name);
	}
	json_decref(now);
	return code;
}

static bool one_push_row(const struct mw_protocol *p)
{
	for (uint32_t w = 1; w < p->workers; w++)
		if (p->push_row[w] != p->push_row[0])
			return false;
	return true;
}

static int check_state(struct mw_run *run, struct mw_err *err)
{
	const struct mw_protocol *p = run->protocol;
	if (run->state != MW_STATE_SHARED)
		return 0;
	if (!run->optim->fields)
		MW_FAIL(err, USAGE, "--state shared: optimizer %s as configured keeps no state",
			run->optim->ops->name);
	if (!one_push_row(p) || p->versioned || (p->clock == MW_CLOCK_ROUND && p->ops->default_graph))
		MW_FAIL(err, USAGE,
			"--state shared needs one replica that all workers push to (hogwild, sync-ps, "
			"async-ps, ssp); with %s "
			"each worker pushes to its own",
			p->ops->name);
	if (p->clock == MW_CLOCK_ROUND && (run->model->sparse || run->pool_n > 1))
		MW_FAIL(err, USAGE,
			"--state shared under a barrier averages whole gradients: it needs a dense model and "
			"no --staleness");
	return 0;
}

static int check_access(struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	bool merges_lock = run->protocol->hot > 0 && run->access == MW_ACCESS_RACY;
	if (o->mix_precision != MW_PRECISION_FLOAT && !run->exclusive && !merges_lock &&
		run->protocol->clock == MW_CLOCK_EVENT && run->access < MW_ACCESS_LOCKED)
		MW_FAIL(err, USAGE,
			"--mix-precision %s keeps more than the floats that others read, so an exchange must "
			"own its rows: add "
			"--access locked or seqlock (or --engine sim)",
			o->mix_precision == MW_PRECISION_KAHAN ? "kahan" : "double");
	if (o->mix_form == MW_MIX_CONVEX && o->mix_precision == MW_PRECISION_DOUBLE)
		MW_FAIL(err, USAGE,
			"--mix-form convex shows what float32 does to it: it has no double precision");
	if (run->protocol->versioned && mw_options_is_set(&run->job->set, "access"))
		MW_FAIL(err, USAGE, "--access: protocol %s has its own way to read and write whole versions",
			run->protocol->ops->name);
	return 0;
}

static enum mw_access access_of(const char *name)
{
	static const char *const names[] = { "racy", "atomic", "locked", "seqlock" };
	for (int i = 0; i < 4; i++)
		if (name && !strcmp(name, names[i]))
			return (enum mw_access)i;
	return MW_ACCESS_RACY;
}

/* Does a worker's mix write the row that it views? Then its view is as old as that mix. */
static bool mix_writes_view(const struct mw_protocol *p)
{
	for (uint32_t s = 0; s < p->n_slots; s++)
		for (uint32_t c = 0; c < p->slot[s].n; c++)
			for (uint32_t i = 0; i < p->slot[s].plan[c]->n_rows; i++)
				if (p->slot[s].plan[c]->row[i].dst ==
					p->view_row[p->clock == MW_CLOCK_ROUND ? 0 : s])
					return true;
	return false;
}

static void resolve(struct mw_run *run)
{
	const struct mw_train_options *o = run->opt;
	const struct mw_protocol *p = run->protocol;
	run->batch = (uint32_t)o->batch;
	run->state = (enum mw_state)o->state;
	run->exclusive = o->engine == MW_ENGINE_SIM;
	run->access = o->access != MW_ACCESS_AUTO ? (enum mw_access)(o->access - 1)
		      : p->hot                    ? MW_ACCESS_RACY /* that of hogwild, for the cold columns */
						  : access_of(p->ops->default_access);
	if (run->exclusive)
		run->access =
			MW_ACCESS_RACY; /* one thread: all modes are the same, and this is the fastest */
	int64_t own = p->mix_every > 0 ? p->mix_every : 1; /* 0 stands for the protocol's own */
	run->knobs.mix_every = run->knobs.mix_every ? run->knobs.mix_every : own;
	for (uint32_t i = 0; run->timeline && i < run->timeline->n; i++)
		if (!run->timeline->entry[i].knobs.mix_every)
			run->timeline->entry[i].knobs.mix_every = own;
	run->n_blocks = (uint32_t)lround(1 / o->mix_fraction);
	run->optim_at_push = run->state == MW_STATE_SHARED;
	run->seen_at_mix = mix_writes_view(p);
	run->own_in_view =
		p->push_row[0] == p->view_row[0] || (p->push2_row && p->push2_row[0] == p->view_row[0]);
	run->form = !run->model->sparse ? MW_FORM_DENSE
		    : run->model->linear && run->model->linear->l2 == 0 && run->optim->plain &&
				    o->clip == 0 && !run->optim_at_push &&
				    !(run->batch > 1 && (mw_tracing(run) || o->replay))
			    ? MW_FORM_ROW
			    : MW_FORM_SPARSE;
	run->collect = p->clock == MW_CLOCK_ROUND && run->form == MW_FORM_DENSE && run->pool_n == 1;
	uint64_t per_round = (uint64_t)run->batch * run->n_workers;
	run->steps_per_epoch = (run->rows.n + per_round - 1) / per_round;
	run->total_steps = (uint64_t)llround(o->epochs * (double)run->steps_per_epoch);
	if (o->epochs > 0 && !run->total_steps)
		run->total_steps = 1;
}

static bool straggles(const struct mw_run *run)
{
	for (uint32_t i = 0; run->timeline && i < run->timeline->n; i++)
		if (!mw_sched_is_zero(run->timeline->entry[i].knobs.straggler))
			return true;
	return !mw_sched_is_zero(run->straggler);
}

/* Steps that the fused path knows beside row form: its gradients have no other summands than these. */
static bool fuses_dense(const struct mw_run *run)
{
	return run->form == MW_FORM_DENSE && run->model->linear_dense && run->optim->plain;
}

static bool fuses_state(const struct mw_run *run)
{
	return run->form == MW_FORM_SPARSE && run->model->linear && run->model->linear->l2 == 0 &&
	       run->optim->fields && !run->optim->needs_x;
}

static void resolve_bursts(struct mw_run *run)
{
	const struct mw_protocol *p = run->protocol;
	run->bursts = (run->form == MW_FORM_ROW || fuses_dense(run) || fuses_state(run)) &&
		      run->opt->clip == 0 && !run->optim_at_push && run->batch == 1 && run->pool_n == 1 &&
		      !run->exclusive && !straggles(run) && !mw_tracing(run) &&
		      run->activation == MW_ACT_FREE && run->ssp_bound < 0 && !p->versioned &&
		      !p->push2_row && run->stale.kind == MW_STALE_NONE;
	for (uint32_t w = 0; w < run->n_workers; w++)
		run->bursts = run->bursts && p->push_row[w] == p->view_row[w] &&
			      (run->access <= MW_ACCESS_ATOMIC || p->row_owner[p->push_row[w]] == w);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int make_replicas(struct mw_run *run, struct mw_err *err)
{
	const struct mw_train_options *o = run->opt;
	size_t dim = run->model->dim;
	size_t probes = mw_control_columns(run);
	if (probes) {
		if (mw_tracing(run) && run->access >= MW_ACCESS_LOCKED)
			MW_FAIL(err, USAGE,
				"--trace counts the versions of each row, which the probe columns of "
				"--estimate would "
				"change: leave one of them out, or take --access atomic");
		run->probe_columns = mw_control_block_columns(run);
	}
	MW_TRY(mw_replicas_init_wide(&run->replicas, run->protocol, run->layout, dim, probes, run->access,
		(enum mw_precision)o->mix_precision, err));
	MW_TRY(mw_executor_init(&run->executor, &run->replicas, run->protocol, (enum mw_mix_form)o->mix_form,
		(enum mw_precision)o->mix_precision, err));
	MW_TRY(mw_setup_cold(run, err));
	run->average = mw_alloc_array(dim, sizeof(float), "the average model", err);
	if (!run->average)
		return err->code;
	if (o->init)
		MW_TRY(mw_setup_init(run, err));
	else
		run->model->ops->init(run->model, run->seed, run->average);
	mw_replicas_set(&run->replicas, run->average);
	for (uint32_t i = 0; i < run->replicas.n; i++)
		mw_thp_collapse(run->replicas.row[i].x, run->replicas.stride * sizeof(float));
	if (run->protocol->versioned) {
		MW_TRY(mw_leash_init(&run->leash, run->n_workers, dim, err));
		mw_leash_set(&run->leash, run->average);
	}
	MW_TRY(mw_spans_init(run, err));
	if (run->model->n_stats) {
		size_t n = run->model->n_stats;
		run->stats = mw_alloc_array(n, sizeof(float), "the model's statistics", err);
		run->stats_part = mw_alloc_array(
			n * run->model->stat_batches, sizeof(float), "the model's statistics", err);
		if (!run->stats || !run->stats_part)
			return err->code;
	}
	if (run->state == MW_STATE_SHARED) {
		run->shared_state = mw_alloc_array(
			mw_state_floats(run), sizeof(float), "the optimizer's shared state", err);
		if (!run->shared_state)
			return err->code;
	}
	return 0;
}

static int make_tables(struct mw_run *run, struct mw_err *err)
{
	run->executor.whole_rows = mw_tracing(run);
	run->helps = !run->exclusive && !mw_tracing(run) && run->opt->estimate == MW_ESTIMATE_NONE &&
		     mw_help_suits(run->protocol, &run->replicas);
	run->ops = run->opt->replay ? &mw_engine_replay
		   : run->exclusive ? &mw_engine_sim
				    : &mw_engine_threads;
	run->n_benches = run->exclusive ? (uint32_t)run->opt->threads : run->n_workers;
	if (run->model->callers_max && run->n_benches > run->model->callers_max)
		MW_FAIL(err, RESOURCE,
			"%u threads would multiply matrices at the same time, and this OpenBLAS serves %u: "
			"take fewer "
			"workers or --threads, --dense own and no --conv blas, or an OpenBLAS built with a "
			"larger "
			"NUM_THREADS (--with-openblas)",
			run->n_benches, run->model->callers_max);
	run->counters = mw_alloc_array(run->n_workers, sizeof(*run->counters), "the counters", err);
	run->worker = mw_alloc_array(run->n_workers, sizeof(*run->worker), "the worker table", err);
	run->bench = mw_alloc_array(run->n_benches, sizeof(*run->bench), "the worker table", err);
	if (run->exclusive && run->n_workers > HISTOGRAMS_MAX) {
		run->shared_staleness =
			mw_alloc(sizeof(*run->shared_staleness), "the staleness histogram", err);
		if (!run->shared_staleness)
			return err->code;
	}
	run->round_push = mw_alloc_array(run->n_workers, sizeof(*run->round_push), "the worker table", err);
	return run->counters && run->worker && run->bench && run->round_push ? 0 : err->code;
}

int mw_run_new(struct mw_job *job, struct mw_run **out, struct mw_err *err)
{
	return mw_run_new_with(job, NULL, out, err);
}

int mw_run_new_with(
	struct mw_job *job, const struct mw_train_hooks *hooks, struct mw_run **out, struct mw_err *err)
{
	struct mw_run *run = mw_alloc(sizeof(*run), "the run", err);
	*out = run;
	if (!run)
		return err->code;
	run->job = job;
	run->hooks = hooks;
	run->opt = job->options;
	run->seed = (uint64_t)run->opt->seed;
	if (run->opt->replay && run->opt->trace) /* from the recorded run's own options */
		MW_TRY(mw_options_set(&job->set, "trace", "", "option", err));
	MW_TRY(mw_isa_select(run->opt->isa, err));
	/* What can be wrong is found before the data are loaded, as far as it can be. */
	MW_TRY(make_schedules(run, err));
	MW_TRY(mw_stale_parse(run->opt->stale_policy, &run->stale, err));
	MW_TRY(mw_setup_layout(run, err));
	bool known;
	MW_TRY(mw_protocol_of_options(run, &known, err));
	if (known)
		MW_TRY(setup_protocol(run, err));
	MW_TRY(mw_place_check(run, err));
	MW_TRY(mw_setup_data(run, err));
	if (known)
		MW_TRY(mw_setup_hot(run, err));
	MW_TRY(mw_setup_model(run, err));
	if (!known) {
		MW_TRY(mw_default_protocol(run, err));
		MW_TRY(setup_protocol(run, err));
	}
	MW_TRY(load_replay(run, err));
	resolve(run);
	MW_TRY(mw_place_data(run, err));
	if (run->timeline)
		MW_TRY(mw_timeline_resolve(run->timeline, run->steps_per_epoch, err));
	MW_TRY(check_state(run, err));
	MW_TRY(check_access(run, err));
	MW_TRY(mw_steer_new(run, err));
	MW_TRY(mw_theory_new(run, err));
	resolve_bursts(run);
	MW_TRY(mw_deal_new(run, err));
	if (mw_tracing(run) && mw_control_records(run))
		MW_FAIL(err, USAGE,
			"--estimate trace records the events itself, for as long as it needs them: leave out "
			"--trace");
	MW_TRY(make_replicas(run, err));
	MW_TRY(make_tables(run, err));
	return mw_control_new(run, err);
}

void mw_run_free(struct mw_run *run)
{
	if (!run)
		return;
	if (run->ops)
		run->ops->stop(run);
	for (uint32_t i = 0; run->worker && i < run->n_workers; i++)
		mw_worker_free(run->worker[i]);
	for (uint32_t i = 0; run->bench && i < run->n_benches; i++)
		mw_bench_fini(&run->bench[i], run);
	mw_control_free(run->control);
	mw_executor_fini(&run->executor);
	mw_replicas_fini(&run->replicas);
	mw_leash_fini(&run->leash);
	mw_free(run->round_push);
	mw_free(run->shared_staleness);
	mw_free(run->counters);
	mw_free(run->worker);
	mw_free(run->bench);
	mw_free(run->average);
	mw_free(run->stats);
	mw_free(run->stats_part);
	mw_free(run->span);
	mw_free(run->shared_state);
	mw_protocol_free(run->protocol);
	mw_graph_free(run->graph);
	mw_place_fini(run);
	mw_layout_free(run->layout);
	mw_timeline_free(run->timeline);
	mw_steer_free(run->steer);
	mw_theory_free(run->theory);
	mw_sched_free(run->staleness);
	mw_sched_free(run->straggler);
	mw_sched_free(run->compute_time);
	mw_sched_free(run->push_time);
	mw_sched_free(run->mix_time);
	mw_rate_free(run->rate);
	mw_optim_free(run->optim);
	mw_model_free(run->model);
	mw_shards_fini(&run->shards);
	mw_free(run->dealer);
	mw_rows_fini(&run->rows);
	mw_rows_fini(&run->val);
	if (!run->hooks || !run->hooks->train) {
		mw_dataset_free(run->train);
		mw_dataset_free(run->test);
	}
	mw_trace_free(run->replay);
	json_decref(run->t_mix);
	free(run->run_dir);
	mw_free(run);
}
