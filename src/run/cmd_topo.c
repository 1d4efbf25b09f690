/* cmd_topo.c: `mixwild topo`: the machine as a run would use it: who would run where, on which replicas and data. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "comm/graph.h"
#include "run/command.h"
#include "run/find.h"
#include "run/output.h"
#include "run/topo_view.h"

enum { FORMAT_TEXT, FORMAT_SVG, FORMAT_JSON };

struct topo_options {
	char *workers, *bind, *topology, *protocol, *graph;
	int places, format, mem, data_place;
	bool no_smt, oversubscribe;
	int64_t controller_cpu, mix_every;
};

#define F(field) offsetof(struct topo_options, field)

/* Named and meant as in `mixwild train`. */
static const struct mw_option topo_table[] = {
	{ "workers", MW_OPT_STRING, F(workers), "auto", 0, 0, NULL, "N|WORD",
		"Number of workers, or auto: one for each core this process may use, at most its CPU quota; "
		"cores, pus: one "
		"for each core or hardware thread." },
	{ "bind", MW_OPT_STRING, F(bind), "auto", 0, 0, NULL, "HOW",
		"Where workers go: close (neighbours first; also called compact), spread (far apart; also "
		"scatter), "
		"list:0,2,4-7 (CPUs by P# number) or none; auto: what OpenMP's variables say, else close." },
	{ "places", MW_OPT_CHOICE, F(places), "auto", 0, 0, "pu|core|l3|package|numa|auto", "UNIT",
		"What one worker is bound to; auto: what OpenMP's variables say, else a PU." },
	{ "no-smt", MW_OPT_BOOL, F(no_smt), "no", 0, 0, NULL, NULL, "Use one hardware thread of each core." },
	{ "controller-cpu", MW_OPT_INT, F(controller_cpu), "-1", -1, 1e6, NULL, "P#",
		"CPU of the thread that measures and prints; -1: one that no worker has, if there is one." },
	{ "oversubscribe", MW_OPT_BOOL, F(oversubscribe), "no", 0, 0, NULL, NULL,
		"Allow more workers than hardware threads; preemption then makes most of the staleness." },
	{ "topology", MW_OPT_STRING, F(topology), NULL, 0, 0, NULL, "SPEC",
		"Plan for another machine, FILE.xml (as lstopo writes it) or synthetic:DESCRIPTION; nothing "
		"is bound." },
	{ "protocol", MW_OPT_STRING, F(protocol), "hogwild", 0, 0, NULL, "NAME",
		"Draw the replicas of this protocol, and who views and pushes where." },
	{ "graph", MW_OPT_STRING, F(graph), NULL, 0, 0, NULL, "SPEC", "Who talks to whom, for gossip." },
	{ "mix-every", MW_OPT_INT, F(mix_every), "0", 0, 1e12, NULL, "K",
		"Own steps (rounds) between exchanges; 0: the protocol's own." },
	{ "mem", MW_OPT_CHOICE, F(mem), "node", 0, 0, MW_MEM_CHOICES, NULL, "Where memory goes." },
	{ "data-place", MW_OPT_CHOICE, F(data_place), "shared", 0, 0, "shared|shard|replicate", NULL,
		"How the training data are spread over the nodes." },
	{ "format", MW_OPT_CHOICE, F(format), "text", 0, 0, "text|svg|json", NULL, "Form of the result." },
	{ 0 },
};

static int show(struct mw_job *job, struct mw_topo_view *v, int format, struct mw_err *err)
{
	if (format == FORMAT_JSON)
		mw_output_json(job->out, mw_topo_json(v));
	else if (format == FORMAT_SVG)
		return mw_topo_svg(v, job->out, err);
	else
		mw_topo_text(v, job->out);
	return 0;
}

static int make_graph(const struct topo_options *o, const struct mw_protocol_ops *ops, uint32_t n,
	struct mw_graph **graph, struct mw_err *err)
{
	if (o->graph && !ops->default_graph)
		MW_FAIL(err, USAGE, "--graph: protocol %s takes no graph; sync-gossip and async-gossip do",
			ops->name);
	return ops->default_graph ? mw_graph_new(o->graph ? o->graph : ops->default_graph, n, graph, err) : 0;
}

static int draw(struct mw_job *job, const struct mw_layout *l, struct mw_err *err)
{
	const struct topo_options *o = job->options;
	const struct mw_protocol_ops *ops = mw_protocol_find(o->protocol);
	struct mw_protocol *protocol = NULL;
	struct mw_graph *graph = NULL;
	struct mw_topo_view view = { 0 };
	uint32_t *node = mw_alloc_array(l->n_workers, sizeof(*node), "the node table", err);
	int code = node ? make_graph(o, ops, l->n_workers, &graph, err) : MW_ERESOURCE;
	for (uint32_t w = 0; node && w < l->n_workers; w++)
		node[w] = l->slot[w].node > 0 ? (uint32_t)l->slot[w].node : 0;
	struct mw_protocol_config c = {
		.workers = l->n_workers, .nodes = l->n_nodes, .worker_node = node, .graph = graph
	};
	if (!code)
		code = mw_protocol_new(
			ops, mw_job_plugin_options(job, "protocol", ops->name), &c, &protocol, err);
	if (!code && o->mix_every && !protocol->n_slots)
		code = mw_err_set(err, MW_EUSAGE, "--mix-every: protocol %s exchanges nothing", ops->name);
	if (!code)
		code = mw_topo_view_init(
			&view, l, protocol, o->mix_every, (enum mw_data_place)o->data_place, err);
	if (!code)
		code = show(job, &view, o->format, err);
	mw_topo_view_fini(&view);
	mw_protocol_free(protocol);
	mw_graph_free(graph);
	mw_free(node);
	return code;
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct topo_options *o = job->options;
	struct mw_layout_request request = {
		.workers = strcmp(o->protocol, "sequential") ? o->workers : "1",
		.bind = o->bind,
		.places = (enum mw_places)o->places,
		.no_smt = o->no_smt,
		.controller_cpu = o->controller_cpu,
		.oversubscribe = o->oversubscribe,
		.topology = o->topology,
		.mem = (enum mw_mem)o->mem,
	};
	struct mw_layout *layout = NULL;
	MW_TRY(mw_layout_new(&request, &layout, err));
	int code = draw(job, layout, err);
	mw_layout_free(layout);
	return code;
}

const struct mw_command mw_command_topo = {
	.name = "topo",
	.summary = "Draw the machine as a run would use it: workers, replicas, data",
	.uses = MW_NO_INTERRUPT | MW_USES_PROTOCOL,
	.options = topo_table,
	.option_size = sizeof(struct topo_options),
	.examples = "mixwild topo\nmixwild topo --protocol numa --workers 4 --bind spread\n"
		    "mixwild topo --topology \"synthetic:pack:2 numa:1 core:8 pu:2\" --protocol cached\n"
		    "mixwild topo --protocol numa --data-place replicate --format svg >layout.svg\n",
	.run = run,
};
