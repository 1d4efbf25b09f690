/*
 * layout.h: what this process may use, and who runs where. Made by machine.c (hwloc topology cut down to the affinity
 * mask, cgroup cpuset and CPU quota) and place.c (workers to PUs).
 *
 * Words: PU = hardware thread; L# = hwloc's logical index, P# = the OS's index; node = NUMA node that has memory.
 */
#ifndef MW_TOPO_LAYOUT_H
#define MW_TOPO_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>

#include "base/err.h"

enum mw_bind { MW_BIND_NONE, MW_BIND_CLOSE, MW_BIND_SPREAD, MW_BIND_LIST };
/* AUTO: what OpenMP's or Slurm's variables ask for, else PU */
enum mw_places {
	MW_PLACES_PU,
	MW_PLACES_CORE,
	MW_PLACES_L3,
	MW_PLACES_PACKAGE,
	MW_PLACES_NUMA,
	MW_PLACES_AUTO
};

/* Where memory that belongs to a node goes. */
enum mw_mem {
	MW_MEM_NODE,        /* on that node */
	MW_MEM_INTERLEAVE,  /* its pages in turn on all nodes that workers are on */
	MW_MEM_FIRST_TOUCH, /* not bound, but touched by a thread that runs there */
};
#define MW_MEM_CHOICES "node|interleave|first-touch"

struct mw_layout_request {
	const char *
		workers; /* "auto" (one per usable core, at most the CPU quota), "cores", "pus", or a number */
	/*
	 * "none", "close"/"compact" (fill cores in order, hyperthreads last), "spread"/"scatter" (in turn over packages,
	 * nodes, L3 groups, cores), "list:0,2,4-7,8-14:2" (P#), NULL or "auto" (OpenMP's or Slurm's variables, else close)
	 */
	const char *bind;
	enum mw_places places;  /* the unit a worker is bound to */
	bool no_smt;            /* use one PU per core */
	int64_t controller_cpu; /* P#, or -1: a PU that no worker has, if there is one */
	bool oversubscribe;     /* allow more workers than PUs */
	bool virtual_workers;   /* sim: `workers` may be any number and nothing is bound */
	const char *
		topology; /* NULL: this machine; "FILE.xml" or "synthetic:..." : plan only, nothing is bound */
	enum mw_mem mem;
	bool mem_strict; /* memory that can't be had where it belongs is an error */
};

struct mw_slot {
	int pu_os, pu_logical;                         /* first PU of the place; -1 when not bound */
	int core_logical, package_logical, l3_logical; /* -1 where there is none */
	int node; /* 0..n_nodes-1: index into layout->node_os; -1: a controller that floats or has no worker's node */
};

struct mw_layout {
	uint32_t n_workers;
	bool allotted; /* their number is not the machine's cores, but what a list, OpenMP, Slurm or a CPU quota allots */
	struct mw_slot *slot;      /* one per worker */
	struct mw_slot controller; /* pu_os -1: floats */
	uint32_t n_nodes; /* nodes that workers are on (at least 1); replicas per node are indexed by this */
	int *node_os;     /* P# of each */
	uint32_t usable_pus, usable_cores, machine_pus;
	uint32_t machine_nodes; /* nodes whose memory this process may use */
	bool applied;           /* binding is for this machine and will be carried out */
	bool mem_applied;       /* several nodes: memory is placed as `mem` says; else it is plain */
	enum mw_mem mem;        /* in effect: FIRST_TOUCH too where the kernel refuses to bind memory */
	bool mem_strict;
	char *notes; /* lines for people: why this many workers, what was restricted, by whom */
	void *priv;  /* hwloc topology and cpusets */
};

/*
 * Wrong words and numbers are USAGE errors, what the machine lacks is RESOURCE, an unreadable topology file DATA. Call
 * it before threads are bound: the calling thread's mask is what the process may use. On several nodes, memory arenas are
 * made here; they belong to the process and outlive the layout. Thread-safe.
 */
int mw_layout_new(const struct mw_layout_request *req, struct mw_layout **out, struct mw_err *err);
/* In the thread that mw_layout_bind_controller bound, the mask it had before is restored. NULL is fine. */
void mw_layout_free(struct mw_layout *l);

/*
 * Bind the calling thread to worker's place and read the mask back; a mask that differs is a RESOURCE error. Where nothing
 * is bound (applied is false) these do nothing, and verify says 1.
 */
int mw_layout_bind_worker(const struct mw_layout *l, uint32_t worker, struct mw_err *err);
int mw_layout_bind_controller(const struct mw_layout *l, struct mw_err *err);
/* Read back the calling thread's mask: 1 if it still is worker's place, 0 if not. */
int mw_layout_verify_worker(const struct mw_layout *l, uint32_t worker);

/*
 * Call fn with the calling thread bound to the PUs of a node that this process may use; the mask is restored. Where memory
 * isn't placed, fn is only called.
 */
void mw_layout_on_node(const struct mw_layout *l, uint32_t node, void (*fn)(void *), void *arg);

/*
 * Memory on a node: zeroed, aligned to MW_LINE_BYTES, freed by mw_node_free. By jemalloc arena (one a node) where the
 * machine has several nodes, bound or not as layout->mem says; plain otherwise. node < n_nodes. Without mem_strict a node
 * that is full lends from others.
 */
void *mw_node_alloc(
	const struct mw_layout *l, uint32_t node, size_t bytes, const char *what, struct mw_err *err);
void mw_node_free(const struct mw_layout *l, void *p);

/*
 * Pages that nobody has touched yet (mw_alloc_pages): bind them to a node, or (MW_ALL_NODES) in turn to all nodes that workers
 * are on. Whole pages: the one that p points into stays unless p is its beginning, the one at the end goes along. Small
 * pieces get no huge pages, which would lie on one node as a whole (FIRST_TOUCH: that is all). Does nothing on one node. A
 * refusal is an error with mem_strict only. (Pages that exist are not moved: an interleave policy leaves those that are on
 * any of its nodes, and a huge page goes as a whole.)
 */
#define MW_ALL_NODES UINT32_MAX
int mw_node_bind(const struct mw_layout *l, uint32_t node, void *p, size_t bytes, struct mw_err *err);

/* Where pages are, as the kernel tells (move_pages). Zeroed: none was looked at. */
enum { MW_PAGES_NODES = 16 };
struct mw_pages {
	uint64_t seen;      /* looked at: all pages of a small block, some of a big one */
	uint64_t untouched; /* of these: not there yet */
	uint64_t on[MW_PAGES_NODES];
	int os[MW_PAGES_NODES]; /* P#, increasing as found */
	uint32_t n_nodes;
	uint64_t elsewhere; /* on nodes beyond MW_PAGES_NODES */
	int refused;        /* errno where the kernel doesn't tell */
};
/* Look at the pages of a block and add them up. Thread-safe on distinct results. */
void mw_pages_look(struct mw_pages *pages, const void *p, size_t bytes);
/* Pages that were found on other nodes than P#os. */
uint64_t mw_pages_strays(const struct mw_pages *pages, int os);
/* "P#0 75% P#1 25%", "not touched yet", "the kernel doesn't tell (...)"; buf is returned. */
const char *mw_pages_text(const struct mw_pages *pages, char *buf, size_t size);

/* A hardware thread that this process may use. L# unless it ends in _os; -1 where there is none. */
struct mw_pu_info {
	int os, logical, core, package, l3;
	int numa, numa_os; /* the node it belongs to */
	int node_os;       /* the node whose memory it uses */
	unsigned smt;      /* 0 for the first usable PU of its core, then 1, 2... */
};
/* How many, and number i in logical order. */
uint32_t mw_layout_n_pus(const struct mw_layout *l);
struct mw_pu_info mw_layout_pu(const struct mw_layout *l, uint32_t i);
/* May this worker (MW_CONTROLLER: the controller) run on P#os? */
#define MW_CONTROLLER UINT32_MAX
bool mw_layout_runs_on(const struct mw_layout *l, uint32_t worker, int os);
/* Memory of node P#os in bytes, 0: not known. */
uint64_t mw_layout_node_bytes(const struct mw_layout *l, int os);
/* Units of the whole machine. */
uint32_t mw_layout_packages(const struct mw_layout *l);
uint32_t mw_layout_cores(const struct mw_layout *l);

/* The table people see (fits 80 columns): machine line, one line per worker, notes. */
void mw_layout_print(const struct mw_layout *l, FILE *f);
json_t *mw_layout_json(const struct mw_layout *l);

#endif
