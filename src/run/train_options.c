/* train_options.c: see train_options.h. */
#include "run/train_options.h"

#include "base/mem.h"
#include "comm/executor.h"
#include "comm/replica.h"
#include "run/order.h"
#include "topo/layout.h"

#define F(field) offsetof(struct mw_train_options, field)

const struct mw_option mw_train_option_table[] = {
	MW_HEADING("Data"),
	{ "data", MW_OPT_STRING, F(data), NULL, 0, 0, NULL, "FILE",
		"Training set: LIBSVM text or MNIST IDX (plain or .gz), CIFAR (binary version: file, folder "
		"or "
		".tar.gz, whose training part is taken), or synth:KIND,key=value,..." },
	{ "test", MW_OPT_STRING, F(test), NULL, 0, 0, NULL, "FILE",
		"Test set, in the format of the training set; of a CIFAR folder or .tar.gz the test part." },
	{ "val", MW_OPT_FLOAT, F(val), "0", 0, 0.9, NULL, "FRACTION",
		"Share of the training rows that is held back for validation." },
	{ "labels", MW_OPT_STRING, F(labels), NULL, 0, 0, NULL, "FILE",
		"IDX label file of --data, where its name does not follow from the image file's." },
	{ "index-base", MW_OPT_CHOICE, F(index_base), "auto", 0, 0, "0|1|auto", NULL,
		"First feature index of LIBSVM text." },
	{ "features", MW_OPT_INT, F(features), "0", 0, 4294967294.0, NULL, "N",
		"Number of features; 0: as found in the training set." },
	{ "label-kind", MW_OPT_CHOICE, F(label_kind), "auto", 0, 0, "auto|class|real", NULL,
		"Are labels classes or real targets?" },
	{ "cache", MW_OPT_CHOICE, F(cache), "auto", 0, 0, "off|auto|on", NULL,
		"Binary cache of LIBSVM text: use the one that is there (auto), and write one if there is "
		"none (on)." },
	{ "order", MW_OPT_CHOICE, F(order), "block", 0, 0, MW_ORDER_CHOICES, NULL,
		"Row order of an epoch: shuffled blocks of 64 rows, true random, or as in the file." },
	{ "deal", MW_OPT_CHOICE, F(deal), "auto", 0, 0, MW_DEAL_CHOICES, NULL,
		"Who gets which rows of an epoch: equal parts (static), or whoever is through takes more "
		"(dynamic), so that a slow "
		"core keeps nobody waiting; auto: dynamic for several threads without a barrier or gate, "
		"unless options pace "
		"or prescribe what each worker does (--straggler, --shards, --timeline, --target-tmix, "
		"--trace, ...)." },
	{ "coarse", MW_OPT_BOOL, F(coarse), "no", 0, 0, NULL, NULL,
		"CIFAR-100: learn the 20 coarse labels, not the 100 fine ones." },
	{ "augment", MW_OPT_CHOICE, F(augment), "none", 0, 0, "none|crop-flip", NULL,
		"Images of a net's training batches: as they are, or shifted by up to 4 pixels and mirrored "
		"at "
		"random, anew in every step." },
	{ "shards", MW_OPT_STRING, F(shards), "none", 0, 0, NULL, "none|iid|label|dirichlet:ALPHA",
		"Each worker keeps rows of its own: a random part, as few labels as can be, or shares of the "
		"labels "
		"drawn from a Dirichlet law (small ALPHA: few labels a worker); none: see --data-place." },
	{ "data-place", MW_OPT_CHOICE, F(data_place), "shared", 0, 0, "shared|shard|replicate", NULL,
		"Workers take new parts of the data every epoch (shared), or each keeps its own part, on its "
		"own NUMA node "
		"(shard); replicate: as shared, but every NUMA node has a copy of all data." },

	MW_HEADING("Model and optimizer"),
	{ "model", MW_OPT_STRING, F(model), "auto", 0, 0, NULL, "NAME",
		"Model; auto: logistic for two classes, softmax for more, squared for real targets, quad for "
		"synth:quadratic." },
	{ "optimizer", MW_OPT_STRING, F(optimizer), "sgd", 0, 0, NULL, "NAME", "Optimizer." },
	{ "rate", MW_OPT_STRING, F(rate), "0.1", 0, 0, NULL, "SPEC",
		"Learning rate: A, constant:A, step:A,factor=F,every=E, cosine:A,min=B, invsqrt:A,after=T; "
		"each takes "
		"warmup=E (epochs)." },
	{ "init", MW_OPT_STRING, F(init), NULL, 0, 0, NULL, "FILE",
		"Start from the parameters of this safetensors file." },
	{ "batch", MW_OPT_INT, F(batch), "1", 1, 1e6, NULL, "N", "Rows a gradient." },
	{ "clip", MW_OPT_FLOAT, F(clip), "0", 0, 1e30, NULL, "NORM",
		"Shorten a gradient whose norm over all parameters is larger than this; 0: never." },
	{ "epochs", MW_OPT_FLOAT, F(epochs), "10", 0, 1e9, NULL, "E", "Passes over the training rows." },
	{ "seed", MW_OPT_INT, F(seed), "1", 0, 9e15, NULL, "N", "Fixes all that can be fixed." },
	{ "state", MW_OPT_CHOICE, F(state), "worker", 0, 0, "worker|shared", NULL,
		"Optimizer state (momentum, AMSGrad's moments): one a worker, whose deltas are pushed; or "
		"one for all beside "
		"the pushed replica, so that gradients are averaged (under a barrier) or applied (without "
		"one) there." },

	MW_HEADING("Protocol and knobs"),
	{ "protocol", MW_OPT_STRING, F(protocol), "auto", 0, 0, NULL, "NAME",
		"How workers share the model; see mixwild list protocols. auto: by the data, the model and "
		"the "
		"number of "
		"workers, hogwild, or cached with a --mix-every that keeps the loss; sequential for one "
		"worker, "
		"hogwild with "
		"--engine sim. The run says which, and why." },
	{ "graph", MW_OPT_STRING, F(graph), NULL, 0, 0, NULL, "SPEC",
		"Who talks to whom, for gossip; see mixwild list graphs." },
	{ "workers", MW_OPT_STRING, F(workers), "auto", 0, 0, NULL, "N|auto|cores|pus",
		"Number of workers; auto: one a core that this process may use, as many as Slurm, "
		"OpenMP or a CPU quota allots, or with --protocol auto a single one where several would wait "
		"for each other longer than a step takes. The run says so." },
	{ "access", MW_OPT_CHOICE, F(access), "auto", 0, 0, "auto|" MW_ACCESS_CHOICES, NULL,
		"How threads read and write one replica; auto: what suits the protocol." },
	{ "activation", MW_OPT_CHOICE, F(activation), "free", 0, 0, "rr|random|free", NULL,
		"Order of the workers' pushes: in turn, uniformly at random, or as they come." },
	{ "gate", MW_OPT_STRING, F(gate), "auto", 0, 0, NULL, "none|ssp:S|barrier",
		"How far a worker may lead the slowest: without limit, by S steps, or not at all; auto: the "
		"protocol's own." },
	{ "mix-every", MW_OPT_INT, F(mix_every), "0", 0, 1e12, NULL, "K",
		"Mix every K own steps (rounds under a barrier): frequency reduction; 0: the protocol's "
		"own." },
	{ "slack", MW_OPT_FLOAT, F(slack), "1", 1e-12, 1, NULL, "G",
		"Mix with (1-G) I + G W: slack matrix." },
	{ "mix-fraction", MW_OPT_FLOAT, F(mix_fraction), "1", 1e-6, 1, NULL, "F",
		"Exchange this share of the coordinates at a time: partial consistency, in round(1/F) "
		"blocks." },
	{ "mix-blocks", MW_OPT_CHOICE, F(mix_blocks), "cyclic", 0, 0, "cyclic|random", NULL,
		"Which block is exchanged next." },
	{ "mix-order", MW_OPT_CHOICE, F(mix_order), "after", 0, 0, "after|before", NULL,
		"Exchange after the gradient is applied, or before (as AD-PSGD does)." },
	{ "mix-form", MW_OPT_CHOICE, F(mix_form), "fused", 0, 0, MW_MIX_FORM_CHOICES, NULL,
		"Rounding of an exchange: with the worker's own delta in one rounding, on its own, or as the "
		"convex "
		"combination (biased in float32)." },
	{ "mix-precision", MW_OPT_CHOICE, F(mix_precision), "float", 0, 0, MW_PRECISION_CHOICES, NULL,
		"Precision of exchanges; kahan and double repair the stall of a small slack." },
	{ "staleness", MW_OPT_STRING, F(staleness), "0", 0, 0, NULL, "SCHEDULE",
		"Push each delta this many own steps after it was computed; see mixwild list schedules." },
	{ "straggler", MW_OPT_STRING, F(straggler), "0", 0, 0, NULL, "SCHEDULE",
		"Seconds that a worker's step takes longer." },
	{ "stale-policy", MW_OPT_STRING, F(stale_policy), "none", 0, 0, NULL, "none|scale|drop:T",
		"Protocols without a barrier: what is done about stale updates: nothing; the step size of an "
		"update "
		"is divided by 1 + its staleness; or updates that miss more than T writes are not applied. "
		"Costs two "
		"looks at every worker's counters a step." },
	{ "timeline", MW_OPT_STRING, F(timeline), NULL, 0, 0, NULL, "'at T UNIT: NAME=VALUE; ...'",
		"Change staleness, straggler, mix-every, slack or rate during the run, at epochs, own steps "
		"or seconds." },

	MW_HEADING("Engine and placement"),
	{ "engine", MW_OPT_CHOICE, F(engine), "threads", 0, 0, "threads|sim", NULL,
		"Real pinned threads that race, or virtual workers in virtual time: exact and "
		"reproducible." },
	{ "threads", MW_OPT_INT, F(threads), "1", 1, 1024, NULL, "N",
		"Real threads that the sim engine computes gradients with; the result does not depend on "
		"it." },
	{ "compute-time", MW_OPT_STRING, F(compute_time), "uniform:0.0005,0.0015", 0, 0, NULL, "SCHEDULE",
		"Virtual seconds of a gradient (sim engine, --activation free)." },
	{ "push-time", MW_OPT_STRING, F(push_time), "0", 0, 0, NULL, "SCHEDULE",
		"Virtual seconds from the end of a gradient to its push's landing (sim engine, --activation "
		"free)." },
	{ "mix-time", MW_OPT_STRING, F(mix_time), "0", 0, 0, NULL, "SCHEDULE",
		"Virtual seconds of an exchange (sim engine, --activation free)." },
	{ "bind", MW_OPT_STRING, F(bind), "auto", 0, 0, NULL, "auto|none|close|spread|list:P#,...",
		"Workers to places; compact and scatter mean the same as close and spread; auto: what "
		"OpenMP's variables say, "
		"else close." },
	{ "places", MW_OPT_CHOICE, F(places), "auto", 0, 0, "pu|core|l3|package|numa|auto", NULL,
		"What one worker is bound to; auto: what OpenMP's variables say, else a PU." },
	{ "no-smt", MW_OPT_BOOL, F(no_smt), "no", 0, 0, NULL, NULL, "Use one PU a core." },
	{ "controller-cpu", MW_OPT_INT, F(controller_cpu), "-1", -1, 1e6, NULL, "P#",
		"PU of the controller thread; -1: one that no worker has, if there is one." },
	{ "oversubscribe", MW_OPT_BOOL, F(oversubscribe), "no", 0, 0, NULL, NULL,
		"Allow more workers than PUs." },
	{ "mem", MW_OPT_CHOICE, F(mem), "node", 0, 0, MW_MEM_CHOICES, NULL,
		"Several NUMA nodes: bind replicas, worker state and data to the node they belong to, spread "
		"their pages over "
		"the nodes that workers are on, or bind nothing and have them touched first by a thread on "
		"their node." },
	{ "mem-strict", MW_OPT_BOOL, F(mem_strict), "no", 0, 0, NULL, NULL,
		"Memory that the kernel doesn't put where it belongs is an error, not a note." },
	{ "thp", MW_OPT_CHOICE, F(thp), "madvise", 0, 0, MW_THP_CHOICES, NULL,
		"Huge pages for big blocks: asked for, made at once whatever the system's setting is, or "
		"none." },
	{ "topology", MW_OPT_STRING, F(topology), NULL, 0, 0, NULL, "FILE.xml|synthetic:...",
		"Plan the layout for another machine; nothing is bound then." },
	{ "isa", MW_OPT_STRING, F(isa), "auto", 0, 0, NULL, "auto|portable|avx2|avx512",
		"Vector kernels; portable: the same bits on every machine." },

	MW_HEADING("Evaluation"),
	{ "eval-every", MW_OPT_FLOAT, F(eval_every), "1", 0, 1e9, NULL, "E",
		"Epochs between evaluations, outside the training clock; 0: only at the end." },
	{ "eval-rows", MW_OPT_INT, F(eval_rows), "0", 0, 1e15, NULL, "N",
		"Evaluate the training loss on at most N rows; 0: all." },
	{ "grad-norm", MW_OPT_BOOL, F(grad_norm), "no", 0, 0, NULL, NULL,
		"Compute the norm of the full gradient at every evaluation." },
	{ "bound", MW_OPT_BOOL, F(bound), "no", 0, 0, NULL, NULL,
		"At every evaluation, the convergence theorem that covers this run, its bound with constants "
		"estimated "
		"from the data, and the measured mean of |grad f|^2 beside it." },
	{ "target-loss", MW_OPT_FLOAT, F(target_loss), "0", 0, 0, NULL, "LOSS",
		"Stop once the validation loss (without --val: the training loss) is at most this; 0: no "
		"target." },
	{ "target-accuracy", MW_OPT_FLOAT, F(target_accuracy), "0", 0, 1, NULL, "SHARE",
		"Stop once the validation accuracy (without --val: the training accuracy) is at least this; "
		"0: no target." },
	{ "sample-every", MW_OPT_INT, F(sample_every), "1024", 0, 1e12, NULL, "STEPS",
		"Own steps between two staleness samples of a worker (sim: every step is seen); 0: none." },
	{ "metrics-every", MW_OPT_FLOAT, F(metrics_every), "0", 0, 1e9, NULL, "SECONDS",
		"Also write a line of metrics every so many seconds of training: loss, consensus distance, "
		"staleness, "
		"throughput, and t_mix as measured; 0: at evaluations only." },
	{ "estimate", MW_OPT_CHOICE, F(estimate), "none", 0, 0, "none|trace|probe|passive|all", NULL,
		"Measure the mixing time of the run: by the order of its events, by probe columns that are "
		"exchanged with the "
		"parameters, or by the parameters' own noise." },
	{ "estimate-rate", MW_OPT_FLOAT, F(sample_rate), "10000", 1, 1e6, NULL, "HZ",
		"Most times a second that the threads engine's sampler wakes up (--estimate probe and "
		"passive)." },
	{ "probe-columns", MW_OPT_CHOICE, F(probe_columns), "auto", 0, 0, "auto|one-hot|signs", NULL,
		"Probe columns of a block: one for each pushed replica, or 8 of random signs (less exact); "
		"auto: one-hot "
		"for up to 128 replicas, but no more than 1 % of the block's parameters where signs keep "
		"within that." },
	{ "estimate-share", MW_OPT_FLOAT, F(sampler_share), "0.01", 0.0001, 1, NULL, "SHARE",
		"Duty cycle of --estimate probe and passive (threads): most of this process's CPU time that "
		"sampling takes, the sampler's, the workers' for it and what waking up costs them; it rests "
		"between probe segments. More gives values sooner. Not where workers sleep (--straggler)." },
	{ "target-tmix", MW_OPT_FLOAT, F(target_tmix), "0", 0, 1e12, NULL, "T",
		"Closed loop: keep the measured mixing time at T, by moving --target-actuator during the run "
		"(--estimate probe); free workers exchange at a step of each period that is drawn; 0: "
		"none." },
	{ "target-unit", MW_OPT_CHOICE, F(target_unit), "native", 0, 0, "native|gradients", NULL,
		"What --target-tmix counts: native steps (pushes; rounds under a barrier), or gradients "
		"(rounds times workers)." },
	{ "target-actuator", MW_OPT_CHOICE, F(target_actuator), "mix-every", 0, 0, "mix-every|slack", NULL,
		"What --target-tmix moves: the period of exchanges, on average any real number from 1 on, or "
		"the slack." },
	{ "tally", MW_OPT_BOOL, F(tally), "no", 0, 0, NULL, NULL,
		"Count pushes in the replica under its access mode, to see how many updates racy access "
		"loses on a coordinate "
		"that every push touches." },

	MW_HEADING("Files"),
	{ "trace", MW_OPT_STRING, F(trace), NULL, 0, 0, NULL, "FILE",
		"Record every view, push and mix of the workers in this file; see mixwild trace and "
		"--replay." },
	{ "trace-every", MW_OPT_INT, F(trace_every), "0", 0, 1e12, NULL, "STEPS",
		"Record windows only: the first --trace-window of every so many own steps; 0: the whole "
		"run." },
	{ "trace-window", MW_OPT_INT, F(trace_window), "64", 1, 1e12, NULL, "STEPS",
		"Own steps a recorded window." },
	{ "replay", MW_OPT_STRING, F(replay), NULL, 0, 0, NULL, "FILE",
		"Perform the events of this trace in their recorded order (--engine sim, the options of the "
		"recorded run)." },
	{ "out", MW_OPT_STRING, F(out), NULL, 0, 0, NULL, "DIR",
		"Run folder: run.json, metrics.jsonl, model, layout." },
	{ "config", MW_OPT_STRING, F(config), NULL, 0, 0, NULL, "FILE",
		"Take options from this JSON file, or from the run.json of an earlier run, but for --out, "
		"--trace, "
		"--force and --resume; the command line comes second." },
	{ "resume", MW_OPT_BOOL, F(resume), "no", 0, 0, NULL, NULL,
		"Go on from the checkpoint in --out, where an interrupted run left it, or with more "
		"--epochs." },
	{ "force", MW_OPT_BOOL, F(force), "no", 0, 0, NULL, NULL,
		"Replace the files of an earlier run in --out." },
	{ 0 },
};
