/*
 * machine.h: inside of src/topo: the machine as this process may use it, and the way tests give it another
 * one.
 */
#ifndef MW_TOPO_MACHINE_H
#define MW_TOPO_MACHINE_H

#include <hwloc.h>

#include "topo/arena.h"
#include "topo/layout.h"

/* What surrounds the process. Zeroed: nothing, as for a topology that is only planned with. */
struct mw_world {
	const char *root;     /* put before /proc and the cgroup mounts; "": the real ones; NULL: no quota is
				 looked for */
	const char *affinity; /* a list of P#; NULL: the calling thread's mask if the topology is this
				 machine's */
	char *const *environ; /* "NAME=value", NULL at the end; NULL: no variables */
	bool always_arenas;   /* node arenas also where the machine has one node */
};

/* A PU that this process may use. */
struct mw_pu {
	hwloc_obj_t obj;
	int core, package, l3; /* logical indices, -1 where hwloc shows none */
	int numa;              /* logical index of the node it belongs to, -1 if none */
	int node;              /* logical index of the node its memory comes from */
	int core_key;          /* the core, or a number of its own for a PU without core */
	unsigned smt;          /* 0 for the first usable PU of its core, then 1, 2... */
};

struct mw_machine {
	hwloc_topology_t topo;
	bool here;              /* the topology is this machine's */
	hwloc_bitmap_t allowed; /* PUs this process may use */
	struct mw_pu *pu;       /* the same in logical order */
	uint32_t n_pus, n_cores;
	uint32_t all_pus, all_nodes; /* PUs of the whole machine; nodes whose memory may be used */
	int n_numa;                  /* all nodes that hwloc shows */
	double quota;                /* CPUs' worth of time a second; 0: no limit */
	char *const *environ;
	FILE *notes; /* sentences for people go here, one a line */
	char *notes_text;
	size_t notes_bytes;
};

/* topology as in struct mw_layout_request. On error too, m is left so that mw_machine_fini works. */
int mw_machine_init(
	struct mw_machine *m, const char *topology, const struct mw_world *world, struct mw_err *err);
void mw_machine_fini(struct mw_machine *m);
/* The record of a usable PU by P#, or NULL. */
const struct mw_pu *mw_machine_pu(const struct mw_machine *m, int64_t os);
/* A list of P# as text; buf is returned. */
const char *mw_cpus_text(hwloc_const_bitmap_t set, char *buf, size_t size);

/*
 * quota.c: the smallest CPU quota on the way from this process's cgroup up to the mount (v2 cpu.max, v1
 * cfs_quota_us), in CPUs; 0 if there is none. file gets the path that says so.
 */
double mw_quota_cpus(const char *root, char *file, size_t size);

/*
 * hints.c: what OpenMP's and Slurm's variables ask for, each said in the notes when it is used. *said: whether one speaks of the
 * number of workers.
 */
uint32_t mw_hint_workers(struct mw_machine *m, uint32_t n_default, uint32_t n_max, bool *said);
enum mw_bind mw_hint_bind(struct mw_machine *m, enum mw_bind fallback);
enum mw_places mw_hint_places(struct mw_machine *m, enum mw_places fallback);

/* What a layout owns beyond its public fields. */
struct mw_layout_priv {
	struct mw_machine m;
	enum mw_bind bind;
	enum mw_places places;
	hwloc_bitmap_t *place;     /* one per worker; NULL when nothing is bound */
	hwloc_bitmap_t controller; /* NULL: floats */
	struct mw_arena **arena;   /* one per node of the layout; NULL: plain memory */
	/* Sync: written by bind_controller and read by free, both in the controller's thread; controller_tid
	 * 0: not bound. */
	hwloc_bitmap_t mask_before;
	int controller_tid;
};

/* mw_layout_new in a given world. */
int mw_layout_new_in(const struct mw_layout_request *req, const struct mw_world *world,
	struct mw_layout **out, struct mw_err *err);

/* bind.c: the calling thread's mask, exactly. 0 or -1 with errno set. */
int mw_mask_get(hwloc_bitmap_t set);
int mw_mask_set(hwloc_const_bitmap_t set);

/* memory.c: arenas for the layout's nodes, if they are needed; what the kernel refuses is noted. */
int mw_layout_open_arenas(struct mw_layout *l, bool always, struct mw_err *err);

#endif
