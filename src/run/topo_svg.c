/*
 * topo_svg.c: the machine as a picture: a box a node, a cell a PU with its worker, replicas and data below, and lines from
 * workers to the replicas that they view and push to. With many workers a line stands for all workers of a node.
 */
#include <string.h>

#include "base/mem.h"
#include "base/ranges.h"
#include "comm/replica.h"
#include "run/topo_view.h"

enum {
	NODES_MAX = 256,
	REPLICAS_SHOWN = 10, /* of a node; the others share one box */
	LINES_MAX = 24,      /* workers with lines of their own */
	CELL_W = 34,
	CELL_H = 32,
	GAP = 6,
	MARGIN = 16,
	TITLE_H = 24,
	REPLICA_W = 46,
	REPLICA_H = 24,
	BETWEEN_H = 56, /* between cores and replicas, for the lines */
};

struct box {
	double x, y, w, h;
};

/* One node of the machine: a run of PUs. */
struct node {
	uint32_t from, to; /* PUs */
	int index;         /* in the layout, -1: no worker uses it */
	uint32_t columns, rows, smts;
	uint32_t n_replicas;
	double x, y, w, h, cores_h;
};

struct picture {
	struct mw_topo_view *v;
	FILE *f;
	struct node node[NODES_MAX];
	uint32_t n_nodes;
	double width, height;
	struct box *pu;      /* per PU */
	struct box *replica; /* per row */
	uint32_t *replica_slot;
};

static const char *const colours[] = { "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2",
	"#edc948", "#9c755f" };

static const char *colour_of(const struct picture *p, uint32_t row)
{
	(void)p;
	return colours[row % (sizeof(colours) / sizeof(*colours))];
}

static void text(FILE *f, double x, double y, int size, const char *anchor, const char *s, const char *more)
{
	fprintf(f, "<text x=\"%.0f\" y=\"%.0f\" font-size=\"%d\" text-anchor=\"%s\" %s>", x, y, size, anchor,
		more);
	for (; *s; s++)
		fprintf(f, *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : "%c", *s);
	fprintf(f, "</text>\n");
}

/* --- geometry ------------------------------------------------------------------------------------------------------- */

static uint32_t count_cores(const struct mw_topo_view *v, struct node *n)
{
	uint32_t cores = 0;
	n->smts = 1;
	for (uint32_t i = n->from; i < n->to; i++) {
		cores += v->pu[i].smt == 0;
		n->smts = v->pu[i].smt + 1 > n->smts ? v->pu[i].smt + 1 : n->smts;
	}
	return cores;
}

static int find_node(const struct mw_layout *l, int os)
{
	for (uint32_t i = 0; i < l->n_nodes; i++)
		if (l->node_os[i] == os)
			return (int)i;
	return -1;
}

static void size_node(struct picture *p, struct node *n)
{
	uint32_t cores = count_cores(p->v, n), shown;
	n->index = find_node(p->v->layout, p->v->pu[n->from].node_os);
	n->columns = cores > 32 ? 16 : cores > 4 ? 8 : cores;
	while (n->columns > 1 && n->columns * n->smts * CELL_W > 560)
		n->columns /= 2;
	n->rows = (cores + n->columns - 1) / n->columns;
	n->cores_h = n->rows * (CELL_H + GAP);
	for (uint32_t r = 0; r < p->v->protocol->rows; r++)
		n->n_replicas += (int)mw_replica_node(p->v->protocol, p->v->layout, r) == n->index;
	shown = n->n_replicas > REPLICAS_SHOWN ? REPLICAS_SHOWN + 1 : n->n_replicas;
	double cores_w = n->columns * (n->smts * CELL_W + GAP), replicas_w = shown * (REPLICA_W + GAP);
	n->w = (cores_w > replicas_w ? cores_w : replicas_w) + 2 * MARGIN;
	n->w = n->w < 250 ? 250 : n->w;
	n->h = TITLE_H + n->cores_h + BETWEEN_H + REPLICA_H + 44;
}

static void find_nodes(struct picture *p)
{
	const struct mw_topo_view *v = p->v;
	for (uint32_t i = 0, end; i < v->n_pus && p->n_nodes < NODES_MAX; i = end) {
		for (end = i + 1; end < v->n_pus && v->pu[end].numa == v->pu[i].numa &&
				  v->pu[end].node_os == v->pu[i].node_os;)
			end++;
		struct node *n = &p->node[p->n_nodes++];
		*n = (struct node){ .from = i, .to = end };
		size_node(p, n);
	}
}

/* Nodes in rows of about 1200 units. */
static void arrange(struct picture *p)
{
	double x = MARGIN, y = 2 * MARGIN + TITLE_H, row_h = 0;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct node *n = &p->node[i];
		if (x > MARGIN && x + n->w > 1240) {
			x = MARGIN;
			y += row_h + MARGIN;
			row_h = 0;
		}
		n->x = x;
		n->y = y;
		x += n->w + MARGIN;
		row_h = n->h > row_h ? n->h : row_h;
		p->width = x > p->width ? x : p->width;
	}
	p->width = p->width < 760 ? 760 : p->width; /* the title */
	p->height = y + row_h + MARGIN;
}

static void place_pus(struct picture *p, const struct node *n)
{
	uint32_t core = 0;
	for (uint32_t i = n->from; i < n->to; i++) {
		const struct mw_pu_info *u = &p->v->pu[i];
		core += i > n->from && u->smt == 0;
		p->pu[i] = (struct box){ n->x + MARGIN + core % n->columns * (n->smts * CELL_W + GAP) +
						 u->smt * CELL_W,
			n->y + TITLE_H + 4 + core / n->columns * (CELL_H + GAP), CELL_W, CELL_H };
	}
}

static void place_replicas(struct picture *p, const struct node *n)
{
	uint32_t k = 0;
	double y = n->y + TITLE_H + n->cores_h + BETWEEN_H;
	for (uint32_t r = 0; r < p->v->protocol->rows && n->index >= 0; r++) {
		if ((int)mw_replica_node(p->v->protocol, p->v->layout, r) != n->index || p->replica[r].w > 0)
			continue;
		uint32_t slot = k++ < REPLICAS_SHOWN ? k - 1 : REPLICAS_SHOWN;
		p->replica[r] =
			(struct box){ n->x + MARGIN + slot * (REPLICA_W + GAP), y, REPLICA_W, REPLICA_H };
		p->replica_slot[r] = slot;
	}
}

/* --- drawing -------------------------------------------------------------------------------------------------------- */

static void draw_pu(struct picture *p, uint32_t i)
{
	const struct mw_topo_view *v = p->v;
	const struct box *b = &p->pu[i];
	uint32_t n = 0, first = 0;
	char label[32] = "", cpu[16];
	for (uint32_t w = 0; w < v->layout->n_workers; w++)
		if (mw_layout_runs_on(v->layout, w, v->pu[i].os) && !n++)
			first = w;
	bool controller = mw_layout_runs_on(v->layout, MW_CONTROLLER, v->pu[i].os);
	if (n)
		snprintf(label, sizeof(label), n > 1 ? "w%u+" : "w%u", first);
	else if (controller)
		snprintf(label, sizeof(label), "ctl");
	fprintf(p->f,
		"<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"3\" fill=\"%s\" "
		"stroke=\"#555\" "
		"stroke-width=\"0.7\"/>\n",
		b->x, b->y, b->w - 1, b->h,
		n            ? colour_of(p, v->protocol->view_row[first])
		: controller ? "#ddd"
			     : "#fff");
	text(p->f, b->x + b->w / 2, b->y + 14, strlen(label) > 3 ? 10 : 11, "middle", label,
		n ? "fill=\"#fff\" font-weight=\"bold\"" : "");
	snprintf(cpu, sizeof(cpu), "P#%d", v->pu[i].os);
	text(p->f, b->x + b->w / 2, b->y + 26, 8, "middle", cpu, n ? "fill=\"#fff\"" : "fill=\"#777\"");
}

static void draw_replicas(struct picture *p, const struct node *n)
{
	char label[32];
	uint32_t more = n->n_replicas > REPLICAS_SHOWN ? n->n_replicas - REPLICAS_SHOWN : 0;
	bool folded = false;
	for (uint32_t r = 0; r < p->v->protocol->rows; r++) {
		const struct box *b = &p->replica[r];
		bool last = p->replica_slot[r] == REPLICAS_SHOWN;
		if ((int)mw_replica_node(p->v->protocol, p->v->layout, r) != n->index || (last && folded))
			continue;
		folded |= last;
		if (last)
			snprintf(label, sizeof(label), "+%u", more);
		else
			snprintf(label, sizeof(label), "r%u", r);
		fprintf(p->f,
			"<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"%s\" "
			"fill-opacity=\"0.25\" "
			"stroke=\"%s\"/>\n",
			b->x, b->y, b->w, b->h, last ? "#999" : colour_of(p, r),
			last ? "#999" : colour_of(p, r));
		text(p->f, b->x + b->w / 2, b->y + 16, 12, "middle", label, "");
	}
}

static void draw_node(struct picture *p, const struct node *n)
{
	const struct mw_pu_info *u = &p->v->pu[n->from];
	char title[128] = "", data[160], line[200];
	if (u->package >= 0)
		snprintf(title, sizeof(title), "package L#%d, ", u->package);
	snprintf(title + strlen(title), sizeof(title) - strlen(title),
		u->numa < 0                ? "no node, memory of P#%d"
		: u->node_os != u->numa_os ? "node P#%d: memory of P#%d"
					   : "node P#%d",
		u->numa < 0 ? u->node_os : u->numa_os, u->node_os);
	fprintf(p->f,
		"<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"6\" fill=\"#f7f7f5\" "
		"stroke=\"#888\"/>\n",
		n->x, n->y, n->w, n->h);
	text(p->f, n->x + MARGIN, n->y + 17, 13, "start", title, "font-weight=\"bold\"");
	for (uint32_t i = n->from; i < n->to; i++)
		draw_pu(p, i);
	draw_replicas(p, n);
	if (n->index < 0)
		snprintf(line, sizeof(line), "no worker here");
	else
		snprintf(line, sizeof(line), "data: %s",
			mw_topo_data_text(p->v, (uint32_t)n->index, data, sizeof(data)));
	text(p->f, n->x + MARGIN, n->y + n->h - 12, 12, "start", line, "fill=\"#333\"");
}

/* From the top of `a` down or up to `b`; views end at the worker, pushes at the replica. */
static void draw_line(struct picture *p, double x, double y, const struct box *b, bool push, double width)
{
	double bx = b->x + b->w / 2 + (push ? 7 : -7), by = y < b->y ? b->y : b->y + b->h;
	double mid = (y + by) / 2;
	fprintf(p->f,
		"<path d=\"M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f\" fill=\"none\" stroke=\"%s\" "
		"stroke-width=\"%.1f\" "
		"stroke-opacity=\"0.75\" %s/>\n",
		x, y, x, mid, bx, mid, bx, by, push ? "#c0392b" : "#2471a3", width,
		push ? "marker-end=\"url(#push)\"" : "marker-start=\"url(#view)\" stroke-dasharray=\"4 3\"");
}

static void draw_own_lines(struct picture *p)
{
	const struct mw_protocol *q = p->v->protocol;
	for (uint32_t w = 0; w < q->workers; w++)
		for (uint32_t i = 0; i < p->v->n_pus; i++) {
			if (!mw_layout_runs_on(p->v->layout, w, p->v->pu[i].os))
				continue;
			const struct box *b = &p->pu[i];
			draw_line(
				p, b->x + b->w / 2 - 5, b->y + b->h, &p->replica[q->view_row[w]], false, 1.2);
			draw_line(
				p, b->x + b->w / 2 + 5, b->y + b->h, &p->replica[q->push_row[w]], true, 1.2);
			break; /* a wide place: from its first PU */
		}
}

/* How many workers of a node view (push to) a row: one line, thicker for more. */
static void draw_node_lines(struct picture *p, const struct node *n, const uint32_t *row_of, bool push)
{
	const struct mw_protocol *q = p->v->protocol;
	bool folded = false;
	for (uint32_t r = 0; r < q->rows; r++) {
		uint32_t k = 0;
		for (uint32_t w = 0; w < q->workers; w++)
			k += row_of[w] == r && p->v->layout->slot[w].node == n->index;
		bool last = p->replica_slot[r] == REPLICAS_SHOWN;
		if (!k || (last && folded))
			continue;
		folded |= last;
		draw_line(p, n->x + n->w / 2 + (push ? 12 : -12), n->y + TITLE_H + n->cores_h + 2,
			&p->replica[r], push, k > 1 ? 3 : 1.2);
	}
}

static void draw_lines(struct picture *p)
{
	const struct mw_protocol *q = p->v->protocol;
	if (q->workers <= LINES_MAX && p->v->layout->slot[0].pu_os >= 0) {
		draw_own_lines(p);
		return;
	}
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		if (p->node[i].index < 0)
			continue;
		draw_node_lines(p, &p->node[i], q->view_row, false);
		draw_node_lines(p, &p->node[i], q->push_row, true);
	}
}

static void draw_head(struct picture *p, uint32_t n_notes)
{
	const struct mw_protocol *q = p->v->protocol;
	char line[200];
	p->height += 44 + 16.0 * n_notes;
	fprintf(p->f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
		"%.0f\" "
		"font-family=\"sans-serif\">\n<defs>\n",
		p->width, p->height, p->width, p->height);
	fprintf(p->f, "<marker id=\"push\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
		      "markerUnits=\"userSpaceOnUse\" "
		      "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
		      "fill=\"#c0392b\"/></marker>\n"
		      "<marker id=\"view\" viewBox=\"0 0 8 8\" refX=\"1\" refY=\"4\" "
		      "markerUnits=\"userSpaceOnUse\" "
		      "markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M8 0L0 4L8 8z\" "
		      "fill=\"#2471a3\"/></marker>\n"
		      "</defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
	snprintf(line, sizeof(line), "%u worker%s, protocol %s, %u replica%s%s", q->workers,
		q->workers == 1 ? "" : "s", q->ops->name, q->rows, q->rows == 1 ? "" : "s",
		p->v->layout->applied ? "" : " (a plan: nothing is bound)");
	text(p->f, MARGIN, MARGIN + 14, 17, "start", line, "font-weight=\"bold\"");
}

static void draw_foot(struct picture *p, uint32_t n_notes)
{
	double y = p->height - 44 - 16.0 * n_notes + 8;
	char plan[300], line[420], period[48];
	struct box a = { 70, y + 4, 0, 0 }, b = { 280, y + 4, 0, 0 };
	fprintf(p->f,
		"<path d=\"M%.0f %.0fh30\" stroke=\"#2471a3\" stroke-dasharray=\"4 3\" "
		"marker-start=\"url(#view)\"/>\n",
		a.x - 54, a.y);
	text(p->f, a.x - 18, y + 8, 12, "start", "views (reads)", "");
	fprintf(p->f, "<path d=\"M%.0f %.0fh30\" stroke=\"#c0392b\" marker-end=\"url(#push)\"/>\n", b.x - 134,
		b.y);
	text(p->f, b.x - 98, y + 8, 12, "start", "pushes to (adds)", "");
	if (p->v->protocol->n_slots) {
		snprintf(line, sizeof(line), "%s: %s", mw_topo_period_text(p->v, period, sizeof(period)),
			mw_topo_plan_text(p->v, 0, plan, sizeof(plan)));
		text(p->f, 310, y + 8, 12, "start", line, "");
	}
	y += 28;
	for (const char *s = p->v->layout->notes; s && *s; y += 16) {
		size_t n = strcspn(s, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)n, s);
		text(p->f, MARGIN, y, 11, "start", line, "fill=\"#555\"");
		s += n + (s[n] == '\n');
	}
}

static uint32_t count_notes(const struct mw_layout *l)
{
	uint32_t n = 0;
	for (const char *s = l->notes; s && *s; s++)
		n += *s == '\n';
	return n;
}

static void draw(struct picture *p)
{
	uint32_t n_notes = count_notes(p->v->layout);
	find_nodes(p);
	arrange(p);
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		place_pus(p, &p->node[i]);
		place_replicas(p, &p->node[i]);
	}
	draw_head(p, n_notes);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		draw_node(p, &p->node[i]);
	draw_lines(p);
	draw_foot(p, n_notes);
	fprintf(p->f, "</svg>\n");
}

int mw_topo_svg(struct mw_topo_view *v, FILE *f, struct mw_err *err)
{
	struct picture *p = mw_alloc(sizeof(*p), "the picture", err);
	if (!p)
		return err->code;
	*p = (struct picture){ .v = v, .f = f };
	p->pu = mw_alloc_array(v->n_pus, sizeof(*p->pu), "the picture", err);
	p->replica = mw_alloc_array(v->protocol->rows, sizeof(*p->replica), "the picture", err);
	p->replica_slot = mw_alloc_array(v->protocol->rows, sizeof(*p->replica_slot), "the picture", err);
	int code = p->pu && p->replica && p->replica_slot ? 0 : MW_ERESOURCE;
	if (!code)
		draw(p);
	mw_free(p->pu);
	mw_free(p->replica);
	mw_free(p->replica_slot);
	mw_free(p);
	return code;
}
