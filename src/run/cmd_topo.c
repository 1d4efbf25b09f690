/* cmd_topo.c: `mixwild topo`: the machine as a run would use it, and who would run where. */
#include <stddef.h>

#include "run/command.h"
#include "run/output.h"
#include "topo/layout.h"

struct topo_options {
	char *workers, *bind, *topology;
	int places, format;
	bool no_smt, oversubscribe;
	int64_t controller_cpu;
};

#define F(field) offsetof(struct topo_options, field)

/* Named and meant as in `mixwild train`. */
static const struct mw_option topo_table[] = {
	{ "workers", MW_OPT_STRING, F(workers), "auto", 0, 0, NULL, "N|WORD",
		"Number of workers, or auto: one for each core this process may use, at most its CPU quota; "
		"cores, pus: one "
		"for each core or hardware thread." },
	{ "bind", MW_OPT_STRING, F(bind), "close", 0, 0, NULL, "HOW",
		"Where workers go: close (neighbours first; also called compact), spread (far apart; also "
		"scatter), "
		"list:0,2,4-7 (CPUs by P# number) or none." },
	{ "places", MW_OPT_CHOICE, F(places), "pu", 0, 0, "pu|core|l3|package|numa", "UNIT",
		"What one worker is bound to." },
	{ "no-smt", MW_OPT_BOOL, F(no_smt), "no", 0, 0, NULL, NULL, "Use one hardware thread of each core." },
	{ "controller-cpu", MW_OPT_INT, F(controller_cpu), "-1", -1, 1e6, NULL, "P#",
		"CPU of the thread that measures and prints; -1: one that no worker has, if there is one." },
	{ "oversubscribe", MW_OPT_BOOL, F(oversubscribe), "no", 0, 0, NULL, NULL,
		"Allow more workers than hardware threads; preemption then makes most of the staleness." },
	{ "topology", MW_OPT_STRING, F(topology), NULL, 0, 0, NULL, "SPEC",
		"Plan for another machine, FILE.xml (as lstopo writes it) or synthetic:DESCRIPTION; nothing "
		"is bound." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|json", NULL, "Form of the result." },
	{ 0 },
};

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct topo_options *o = job->options;
	struct mw_layout_request request = {
		.workers = o->workers,
		.bind = o->bind,
		.places = (enum mw_places)o->places,
		.no_smt = o->no_smt,
		.controller_cpu = o->controller_cpu,
		.oversubscribe = o->oversubscribe,
		.topology = o->topology,
	};
	struct mw_layout *layout = NULL;
	MW_TRY(mw_layout_new(&request, &layout, err));
	if (o->format == MW_OUT_JSON)
		mw_output_json(job->out, mw_layout_json(layout));
	else
		mw_layout_print(layout, job->out);
	mw_layout_free(layout);
	return MW_OK;
}

const struct mw_command mw_command_topo = {
	.name = "topo",
	.summary = "Show what this process may use of the machine, and where a run's workers would be",
	.uses = MW_NO_INTERRUPT,
	.options = topo_table,
	.option_size = sizeof(struct topo_options),
	.examples = "mixwild topo\nmixwild topo --workers 4 --bind spread\n"
		    "mixwild topo --topology \"synthetic:pack:2 numa:1 core:8 pu:2\" --workers cores\n",
	.run = run,
};
