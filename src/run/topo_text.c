/*
 * topo_text.c: the machine as a tree of text: packages, nodes, L3 groups, cores and PUs with L# and P#, and the workers on
 * them. What is alike is one line with ranges, so that 256 PUs fit on a screen.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranges.h"
#include "comm/replica.h"
#include "run/topo_view.h"

enum { COLUMNS = 80, LIST = 160 };

/* Consecutive PUs of one unit. */
struct span {
	uint32_t from, to;
};

/* A line that goes on in the next ones, indented as `more`, where it would be too long. Breaks after a comma or a space. */
static void print_wrapped(FILE *f, int indent, int more, const char *line)
{
	size_t n = strlen(line), width = COLUMNS - (size_t)indent;
	while (n > width) {
		size_t take = width;
		while (take > 20 && line[take - 1] != ',' && line[take - 1] != ' ')
			take--;
		if (take == 20)
			take = width;
		fprintf(f, "%*s%.*s\n", indent, "", (int)(take - (line[take - 1] == ' ')), line);
		line += take;
		n -= take;
		indent = more;
		width = COLUMNS - (size_t)more;
	}
	fprintf(f, "%*s%s\n", indent, "", line);
}

/* --- cores ---------------------------------------------------------------------------------------------------------- */

/* Workers that may run on a PU, at most max; returns how many there are. */
static uint32_t workers_on(
	const struct mw_topo_view *v, const struct mw_pu_info *pu, uint32_t *w, uint32_t max)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < v->layout->n_workers; i++)
		if (mw_layout_runs_on(v->layout, i, pu->os) && n++ < max)
			w[n - 1] = i;
	return n;
}

static uint32_t core_end(const struct mw_topo_view *v, uint32_t i, uint32_t end)
{
	uint32_t k = i + 1;
	while (k < end && v->pu[k].smt > 0)
		k++;
	return k;
}

/* Are two cores alike: as many PUs, as many workers on each? */
static bool alike(const struct mw_topo_view *v, struct span a, struct span b)
{
	uint32_t w;
	if (a.to - a.from != b.to - b.from)
		return false;
	for (uint32_t i = 0; i < a.to - a.from; i++)
		if (workers_on(v, &v->pu[a.from + i], &w, 1) != workers_on(v, &v->pu[b.from + i], &w, 1))
			return false;
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static uint32_t unique(uint32_t *list, uint32_t n)
{
	uint32_t k = 0;
	qsort(list, n, sizeof(*list), by_number);
	for (uint32_t i = 0; i < n; i++)
		if (!k || list[i] != list[k - 1])
			list[k++] = list[i];
	return k;
}

/* Workers of the smt-th PUs of cores [s.from, s.to): "w0-31", "idle". */
static void workers_text(const struct mw_topo_view *v, struct span s, unsigned smt, char *buf, size_t size)
{
	uint32_t n = 0, room = v->layout->n_workers;
	char list[LIST];
	int controller = -1;
	for (uint32_t i = s.from; i < s.to; i++) {
		if (v->pu[i].smt != smt)
			continue;
		uint32_t more = workers_on(v, &v->pu[i], v->list + n, room - n);
		n += more < room - n ? more : room - n;
		if (mw_layout_runs_on(v->layout, MW_CONTROLLER, v->pu[i].os))
			controller = v->pu[i].os;
		if (n == room) /* the list may be full of the same ones again */
			n = unique(v->list, n);
	}
	n = unique(v->list, n);
	snprintf(
		buf, size, "%s%s", n ? "w" : "idle", n ? mw_ranges_text(v->list, n, list, sizeof(list)) : "");
	if (controller >= 0)
		snprintf(buf + strlen(buf), size - strlen(buf), "; controller on P#%d", controller);
}

/* The L# (or P#) of the smt-th PUs of a span. */
static void pus_text(
	const struct mw_topo_view *v, struct span s, unsigned smt, bool os, char *buf, size_t size)
{
	uint32_t n = 0;
	for (uint32_t i = s.from; i < s.to; i++)
		if (v->pu[i].smt == smt)
			v->list[n++] = (uint32_t)(os ? v->pu[i].os : v->pu[i].logical);
	if (os)
		n = unique(v->list, n);
	mw_ranges_text(v->list, n, buf, size);
}

static void print_cores(const struct mw_topo_view *v, FILE *f, int indent, struct span s)
{
	char head[64] = "PUs", cores[40], logical[LIST], os[LIST], workers[LIST], line[4 * LIST];
	unsigned smts = 0;
	uint32_t n = 0;
	for (uint32_t i = s.from; i < s.to; i++) {
		smts = v->pu[i].smt + 1 > smts ? v->pu[i].smt + 1 : smts;
		if (!v->pu[i].smt && v->pu[i].core >= 0)
			v->list[n++] = (uint32_t)v->pu[i].core;
	}
	if (n)
		snprintf(head, sizeof(head), "%s L#%s", n == 1 ? "core" : "cores",
			mw_ranges_text(v->list, n, cores, sizeof(cores)));
	for (unsigned smt = 0; smt < smts; smt++) {
		workers_text(v, s, smt, workers, sizeof(workers));
		pus_text(v, s, smt, false, logical, sizeof(logical));
		pus_text(v, s, smt, true, os, sizeof(os));
		snprintf(line, sizeof(line), "%-15s PU L#%-10s P#%-14s %s", smt ? "" : head, logical, os,
			workers);
		print_wrapped(f, indent, indent + 16, line);
	}
}

/* Runs of cores that are alike. */
static void print_core_runs(const struct mw_topo_view *v, FILE *f, int indent, struct span s)
{
	for (uint32_t i = s.from, end; i < s.to; i = end) {
		struct span first = { i, core_end(v, i, s.to) }, next;
		for (end = first.to; end < s.to; end = next.to) {
			next = (struct span){ end, core_end(v, end, s.to) };
			if (!alike(v, first, next))
				break;
		}
		print_cores(v, f, indent, (struct span){ i, end });
	}
}

/* --- units ---------------------------------------------------------------------------------------------------------- */

/* "L3 L#0-3, 8 cores each" where there are L3 groups. */
static void print_l3(const struct mw_topo_view *v, FILE *f, int indent, struct span s)
{
	uint32_t n = 0, cores = 0, first = 0;
	bool equal = true;
	char list[LIST], line[2 * LIST];
	for (uint32_t i = s.from; i < s.to; i++) {
		if (v->pu[i].l3 < 0)
			return;
		if (i == s.from || v->pu[i].l3 != v->pu[i - 1].l3) {
			equal &= n < 2 || cores == first;
			first = n == 1 ? cores : first;
			cores = 0;
			v->list[n++] = (uint32_t)v->pu[i].l3;
		}
		cores += v->pu[i].smt == 0;
	}
	equal &= n < 2 || cores == first;
	n = unique(v->list, n);
	snprintf(line, sizeof(line), "L3 L#%s", mw_ranges_text(v->list, n, list, sizeof(list)));
	if (n > 1 && equal)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), ", %u core%s each", cores,
			cores == 1 ? "" : "s");
	print_wrapped(f, indent, indent + 8, line);
}

static int layout_node(const struct mw_layout *l, int os)
{
	for (uint32_t i = 0; i < l->n_nodes; i++)
		if (l->node_os[i] == os)
			return (int)i;
	return -1;
}

static void print_contents(const struct mw_topo_view *v, FILE *f, int indent, int os)
{
	const struct mw_protocol *p = v->protocol;
	int node = layout_node(v->layout, os);
	uint32_t n = 0;
	char list[LIST], line[2 * LIST];
	if (node < 0) {
		fprintf(f, "%*sno worker: nothing is kept here\n", indent, "");
		return;
	}
	for (uint32_t r = 0; r < p->rows; r++)
		if (mw_replica_node(p, v->layout, r) == (uint32_t)node)
			v->list[n++] = r;
	if (n) {
		snprintf(line, sizeof(line), "%s r%s", n == 1 ? "replica" : "replicas",
			mw_ranges_text(v->list, n, list, sizeof(list)));
		print_wrapped(f, indent, indent + 8, line);
	}
	snprintf(line, sizeof(line), "data: %s", mw_topo_data_text(v, (uint32_t)node, list, sizeof(list)));
	print_wrapped(f, indent, indent + 8, line);
}

static void print_node(const struct mw_topo_view *v, FILE *f, int indent, struct span s)
{
	const struct mw_pu_info *u = &v->pu[s.from];
	uint64_t bytes = mw_layout_node_bytes(v->layout, u->numa_os);
	if (u->numa < 0)
		fprintf(f, "%*sno node of its own: memory of node P#%d\n", indent, "", u->node_os);
	else
		fprintf(f, "%*snode L#%d P#%d", indent, "", u->numa, u->numa_os);
	if (u->numa >= 0 && bytes)
		fprintf(f, ", %.3g GB", (double)bytes / 1e9);
	if (u->numa >= 0)
		fprintf(f, u->node_os == u->numa_os ? "\n" : ": uses the memory of node P#%d\n", u->node_os);
	print_l3(v, f, indent + 2, s);
	print_core_runs(v, f, indent + 2, s);
	if (u->numa < 0 || u->node_os == u->numa_os)
		print_contents(v, f, indent + 2, u->node_os);
}

static uint32_t unit_end(const struct mw_topo_view *v, uint32_t i, uint32_t end, bool node)
{
	uint32_t k = i + 1;
	while (k < end && (node ? v->pu[k].numa == v->pu[i].numa && v->pu[k].node_os == v->pu[i].node_os
				: v->pu[k].package == v->pu[i].package))
		k++;
	return k;
}

/* Packages in one node: the node is the outer unit, and packages are not drawn. */
static void print_tree(const struct mw_topo_view *v, FILE *f)
{
	bool outer_nodes = false;
	for (uint32_t i = 1; i < v->n_pus; i++)
		outer_nodes |= v->pu[i].numa == v->pu[i - 1].numa && v->pu[i].package != v->pu[i - 1].package;
	for (uint32_t i = 0, end; i < v->n_pus; i = end) {
		bool package = !outer_nodes && v->pu[i].package >= 0;
		end = unit_end(v, i, v->n_pus, !package);
		if (package)
			fprintf(f, "  package L#%d\n", v->pu[i].package);
		for (uint32_t k = i, to; k < end; k = to) {
			to = unit_end(v, k, end, true);
			print_node(v, f, package ? 4 : 2, (struct span){ k, to });
		}
	}
}

/* --- who views and pushes where ------------------------------------------------------------------------------------- */

/* "r3", or "r1-63:2" for rows from row on, `step` apart. */
static const char *rows_text(uint32_t row, int64_t step, uint32_t n, char *buf, size_t size)
{
	if (step == 0 || n == 1)
		snprintf(buf, size, "r%u", row);
	else if (step == 1 || step == -1)
		snprintf(buf, size, "r%u-%u", row, (uint32_t)(row + step * (n - 1)));
	else
		snprintf(buf, size, "r%u-%u:%" PRId64, row, (uint32_t)(row + step * (n - 1)), step);
	return buf;
}

static int64_t step_of(const uint32_t *row, uint32_t w, uint32_t n)
{
	return w + 1 < n ? (int64_t)row[w + 1] - (int64_t)row[w] : 0;
}

/* Each worker has rows of its own: runs of workers whose rows are equally far apart. */
static void print_by_worker(const struct mw_topo_view *v, FILE *f)
{
	const struct mw_protocol *p = v->protocol;
	char a[64], b[64], line[256], workers[32];
	for (uint32_t w = 0, end; w < p->workers; w = end) {
		int64_t dv = step_of(p->view_row, w, p->workers), dp = step_of(p->push_row, w, p->workers);
		for (end = w + 1; end < p->workers &&
				  (int64_t)p->view_row[end] - p->view_row[end - 1] == dv &&
				  (int64_t)p->push_row[end] - p->push_row[end - 1] == dp;)
			end++;
		if (end == w + 1)
			snprintf(workers, sizeof(workers), "w%u", w);
		else
			snprintf(workers, sizeof(workers), "w%u-%u", w, end - 1);
		snprintf(line, sizeof(line), "%-10s view %s, push to %s%s", workers,
			rows_text(p->view_row[w], dv, end - w, a, sizeof(a)),
			rows_text(p->push_row[w], dp, end - w, b, sizeof(b)),
			end > w + 1 && dv ? ", one each" : "");
		print_wrapped(f, 2, 13, line);
	}
}

static uint32_t collect(const struct mw_topo_view *v, const uint32_t *row_of, uint32_t row)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < v->protocol->workers; w++)
		if (row_of[w] == row)
			v->list[n++] = w;
	return n;
}

static void print_by_row(const struct mw_topo_view *v, FILE *f)
{
	const struct mw_protocol *p = v->protocol;
	char views[LIST], pushes[LIST], line[3 * LIST];
	for (uint32_t r = 0; r < p->rows; r++) {
		uint32_t n = collect(v, p->view_row, r);
		mw_ranges_text(v->list, n, views, sizeof(views));
		uint32_t k = collect(v, p->push_row, r);
		mw_ranges_text(v->list, k, pushes, sizeof(pushes));
		if (!n && !k)
			continue;
		if (!strcmp(views, pushes))
			snprintf(line, sizeof(line), "r%-9u viewed and pushed to by w%s", r, views);
		else
			snprintf(line, sizeof(line), "r%-9u %s%s%s%s%s", r, n ? "viewed by w" : "",
				n ? views : "", n && k ? ", " : "", k ? "pushed to by w" : "",
				k ? pushes : "");
		print_wrapped(f, 2, 13, line);
	}
}

static void print_wiring(const struct mw_topo_view *v, FILE *f)
{
	const struct mw_protocol *p = v->protocol;
	char plan[400], line[500], period[48];
	uint32_t slot = 0;
	bool shared = p->workers > 1 && (p->view_row[0] == p->view_row[1] || p->rows * 2 <= p->workers + 1);
	fprintf(f, "protocol %s: %u replica%s\n", p->ops->name, p->rows, p->rows == 1 ? "" : "s");
	if (shared)
		print_by_row(v, f);
	else
		print_by_worker(v, f);
	while (slot < p->n_slots && !p->slot[slot].n)
		slot++;
	if (slot == p->n_slots)
		return;
	snprintf(line, sizeof(line), "%s, %s: %s",
		p->clock == MW_CLOCK_ROUND ? "all mix"
		: slot == 0                ? "w0 mixes"
					   : "they mix",
		mw_topo_period_text(v, period, sizeof(period)),
		mw_topo_plan_text(v, slot, plan, sizeof(plan)));
	print_wrapped(f, 2, 13, line);
	if (p->clock == MW_CLOCK_EVENT && p->n_slots > 1)
		fprintf(f, "  (the other workers' plans are alike%s)\n",
			p->ops->default_graph ? ", on their edges" : "");
}

/* Notes of the layout, one a line. */
static void print_notes(const struct mw_topo_view *v, FILE *f)
{
	char line[512];
	for (const char *s = v->layout->notes; s && *s;) {
		size_t n = strcspn(s, "\n");
		snprintf(line, sizeof(line), "- %.*s", (int)n, s);
		print_wrapped(f, 0, 2, line);
		s += n + (s[n] == '\n');
	}
}

void mw_topo_text(struct mw_topo_view *v, FILE *f)
{
	const struct mw_layout *l = v->layout;
	uint32_t packages = mw_layout_packages(l);
	fprintf(f, "machine: ");
	if (packages)
		fprintf(f, "%u package%s, ", packages, packages == 1 ? "" : "s");
	fprintf(f, "%u NUMA node%s, %u core%s, %u PU%s", l->machine_nodes, l->machine_nodes == 1 ? "" : "s",
		mw_layout_cores(l), mw_layout_cores(l) == 1 ? "" : "s", l->machine_pus,
		l->machine_pus == 1 ? "" : "s");
	fprintf(f, l->usable_pus == l->machine_pus ? "\n" : "; %u usable\n", l->usable_pus);
	print_tree(v, f);
	fprintf(f, "%u worker%s", l->n_workers, l->n_workers == 1 ? "" : "s");
	if (l->slot[0].pu_os < 0)
		fprintf(f, ", not bound");
	fprintf(f, l->controller.pu_os < 0 ? "; the controller floats\n" : "; the controller is on P#%d\n",
		l->controller.pu_os);
	print_wiring(v, f);
	print_notes(v, f);
}
