/*
 * place.h: the training data by NUMA node (--data-place), and where the memory of a run really is: replicas, workers' own
 * state and data are looked up page by page once the workers have started.
 */
#ifndef MW_RUN_PLACE_H
#define MW_RUN_PLACE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "topo/layout.h"

struct mw_run;
struct mw_dataset;

/* One kind of memory on one node. */
struct mw_place_item {
	char what[64]; /* "replicas 0,2", "workers 0-3", "data of workers 0-3" */
	int node;      /* index of the layout's node that it belongs on; -1: several, or any */
	struct mw_pages pages;
};

struct mw_place_list {
	struct mw_place_item *item;
	uint32_t n, room;
};

/* Before data are loaded: combinations that mean nothing (USAGE). */
int mw_place_check(const struct mw_run *run, struct mw_err *err);
/* After data are loaded and knobs resolved: move them, or make the copies, as --data-place and --mem say. */
int mw_place_data(struct mw_run *run, struct mw_err *err);
/* The training data that a worker on this node of the layout reads. */
const struct mw_dataset *mw_place_data_of(const struct mw_run *run, uint32_t node);
/*
 * After the engine has started, while workers rest: fill run->places. Memory on a node where it doesn't belong is an error
 * (RESOURCE) with --mem-strict.
 */
int mw_place_look(struct mw_run *run, struct mw_err *err);
/* Look at the part of the data that is a worker's own (--data-place shard). */
void mw_place_look_at_shard(const struct mw_run *run, uint32_t worker, struct mw_pages *pages);
/* A few lines for people (80 columns); an object for run.json. */
void mw_place_print(const struct mw_run *run, FILE *f);
json_t *mw_place_json(const struct mw_run *run);
void mw_place_fini(struct mw_run *run);

#endif
