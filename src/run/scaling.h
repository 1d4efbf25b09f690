/*
 * scaling.h: a model of throughput, calibrated on this machine in the same run (core-to-core latency differs from hour to
 * hour on virtual machines): examples a second of n workers that share one replica (hogwild), one a NUMA node (numa), all
 * but the hot columns, or have one each (cached), for sparse linear models. scaling_model.c is the arithmetic, scaling_calibrate.c the clock.
 *
 * The model (times in seconds an example, n workers on G nodes, g = n/G of them on one):
 *
 *   alone          t1
 *   side by side   t(n) = max(t2, g bytes / bandwidth): cores don't slow each other but by their node's memory
 *   shared replica an access to a line that other workers use finds it in another cache with probability (n-1)/n; a row
 *                  touches `lines` lines; each such find costs c, which is calibrated with two workers:
 *                      c = (s2 - t2) / (lines / 2)
 *                  and `remote` times c if the other cache is another node's. The hottest line is handed on at most once in
 *                  `latency`: all workers together make at most 1 / (latency q (n-1)/n), q the share of rows that touch it
 *   per node       shared by g workers; every K own steps the node's first worker exchanges all replicas, which costs
 *                  mean G/2, and all of a node's workers fetch their lines again
 *   per worker     t(n), and a merge every K own steps; merges follow each other through the server row in `stripes` stripes
 *   hot private    the `hot_columns` most popular columns are private to each worker and merged every K own steps, which costs
 *                  their share of a merge; the others are shared at once: columns lie in the order of their popularity, a row
 *                  touches `cold_lines` lines of theirs, the hottest of which handed on like the shared replica's
 *
 * Assumed, not measured here: `remote`, `bandwidth`, equal cores, data that are spread evenly over the nodes, one cache
 * that holds the replica (so that all finds are between caches), no hyperthreads.
 */
#ifndef MW_RUN_SCALING_H
#define MW_RUN_SCALING_H

#include <stdint.h>

#include "base/err.h"

struct mw_scaling {
	double t1, t2; /* private replicas: one worker alone, two side by side */
	double s2;     /* two workers, one replica */
	double merge,
		mean;   /* an exchange of cached, of two replicas of numa, with lines in the other's cache */
	double latency; /* one way, core to core */
	double lines;   /* lines of 64 bytes that a row touches */
	double q;       /* share of rows that touch the hottest line */
	double dim_lines;          /* of a replica */
	double period_lines;       /* different ones that a worker touches between two exchanges */
	double cold_lines, cold_q; /* lines and q of what is left when the hot columns are private */
	double bytes;              /* of data, an example */
	/* assumptions */
	uint32_t cores_per_node, stripes, hot_columns;
	double remote, bandwidth;
};

enum mw_scaling_kind { MW_SCALING_SHARED, MW_SCALING_NODE, MW_SCALING_WORKER, MW_SCALING_HOT };

/* Seconds that finding a line in another cache costs; 0 where sharing costs nothing that can be seen. */
double mw_scaling_conflict_s(const struct mw_scaling *s);
/*
 * Examples a second of n workers; every: own steps between exchanges. nodes 0: as many as n workers need; else that many
 * groups (numa --groups).
 */
double mw_scaling_rate(
	const struct mw_scaling *s, enum mw_scaling_kind kind, uint32_t n, uint32_t nodes, double every);

#endif
