/*
 * topo_view.h: a machine as a run would use it, for `mixwild topo`: who runs where, which replica lives on which node, who
 * views it and pushes to it, and where data are.
 */
#ifndef MW_RUN_TOPO_VIEW_H
#define MW_RUN_TOPO_VIEW_H

#include <jansson.h>
#include <stdio.h>

#include "comm/protocol.h"
#include "run/train_options.h"
#include "topo/layout.h"

struct mw_topo_view {
	const struct mw_layout *layout;
	const struct mw_protocol *protocol;
	int64_t mix_every; /* as it would be used; 0: nothing is exchanged */
	enum mw_data_place data_place;
	struct mw_pu_info *pu; /* usable PUs in logical order */
	uint32_t n_pus;
	uint32_t *list; /* room for as many numbers as there are workers, replicas or PUs */
};

int mw_topo_view_init(struct mw_topo_view *v, const struct mw_layout *l, const struct mw_protocol *p,
	int64_t mix_every, enum mw_data_place data_place, struct mw_err *err);
void mw_topo_view_fini(struct mw_topo_view *v);

/* What the node of this index of the layout has of the data: "a copy of its own", ... */
const char *mw_topo_data_text(const struct mw_topo_view *v, uint32_t node, char *buf, size_t size);
/* "every round", "every 64 own steps". */
const char *mw_topo_period_text(const struct mw_topo_view *v, char *buf, size_t size);
/* The first plan of a slot in words: "r0 += r1 - r2; r1, r2 <- r0"; buf is returned. */
const char *mw_topo_plan_text(const struct mw_topo_view *v, uint32_t slot, char *buf, size_t size);

/* topo_text.c: a tree of at most 80 columns; topo_svg.c: a picture; topo_view.c: an object. */
void mw_topo_text(struct mw_topo_view *v, FILE *f);
int mw_topo_svg(struct mw_topo_view *v, FILE *f, struct mw_err *err);
json_t *mw_topo_json(struct mw_topo_view *v);

#endif
