/* print.c: a layout as people see it (80 columns) and as JSON. */
#include "topo/machine.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80 };

static const char *const bind_names[] = { "none", "close", "spread", "list" };
static const char *const places_names[] = { "pu", "core", "l3", "package", "numa" };

/* "L#3", or "-" where there is none. */
static const char *index_text(char *buf, size_t size, char kind, int index)
{
	if (index < 0)
		snprintf(buf, size, "-");
	else
		snprintf(buf, size, "%c#%d", kind, index);
	return buf;
}

static void print_slot(const struct mw_layout *l, FILE *f, const char *who, const struct mw_slot *s,
	hwloc_const_bitmap_t place)
{
	char text[6][16], cpus[18];
	fprintf(f, "%-13s", who);
	if (s->pu_os < 0)
		fprintf(f, "%-44s", "not bound");
	else
		fprintf(f, "%-7s%-7s%-7s%-9s%-14s", index_text(text[0], 16, 'L', s->pu_logical),
			index_text(text[1], 16, 'L', s->core_logical),
			index_text(text[2], 16, 'L', s->l3_logical),
			index_text(text[3], 16, 'L', s->package_logical),
			place ? mw_cpus_text(place, cpus, 14) : index_text(text[4], 16, 'P', s->pu_os));
	fprintf(f, "%s\n", index_text(text[5], 16, 'P', s->node < 0 ? -1 : l->node_os[s->node]));
}

/* Unbound workers differ at most by their node: one line for each run of them that is alike. */
static uint32_t run_end(const struct mw_layout *l, uint32_t w)
{
	uint32_t end = w + 1;
	while (l->slot[w].pu_os < 0 && end < l->n_workers && l->slot[end].node == l->slot[w].node)
		end++;
	return end;
}

static void print_wrapped(FILE *f, const char *line, size_t n)
{
	const size_t width = COLUMNS - 2;
	const char *lead = "- ";
	while (n) {
		size_t take = n;
		if (n > width) {
			for (take = width; take && line[take] != ' ';)
				take--;
			if (!take)
				take = width; /* one long word, such as a path */
		}
		fprintf(f, "%s%.*s\n", lead, (int)take, line);
		take += take < n && line[take] == ' ';
		line += take;
		n -= take;
		lead = "  ";
	}
}

void mw_layout_print(const struct mw_layout *l, FILE *f)
{
	const struct mw_layout_priv *p = l->priv;
	char who[32];
	fprintf(f, "%u worker%s on %u of %u NUMA node%s, bind %s, places %s\n", l->n_workers,
		l->n_workers == 1 ? "" : "s", l->n_nodes, l->machine_nodes, l->machine_nodes == 1 ? "" : "s",
		bind_names[p->bind], places_names[p->places]);
	fprintf(f, "usable: %u of %u PU%s, %u core%s\n", l->usable_pus, l->machine_pus,
		l->machine_pus == 1 ? "" : "s", l->usable_cores, l->usable_cores == 1 ? "" : "s");
	fprintf(f, "%-13s%-7s%-7s%-7s%-9s%-14s%s\n", "worker", "PU", "core", "L3", "package", "runs on P#",
		"node");
	for (uint32_t w = 0, end; w < l->n_workers; w = end) {
		end = run_end(l, w);
		if (end - w == 1)
			snprintf(who, sizeof(who), "w%u", w);
		else
			snprintf(who, sizeof(who), "w%u-%u", w, end - 1);
		print_slot(l, f, who, &l->slot[w], p->place[w]);
	}
	print_slot(l, f, "controller", &l->controller, p->controller);
	for (const char *s = l->notes; s && *s;) {
		size_t n = strcspn(s, "\n");
		print_wrapped(f, s, n);
		s += n + (s[n] == '\n');
	}
}

static json_t *index_json(int index)
{
	return index < 0 ? json_null() : json_integer(index);
}

static json_t *slot_json(const struct mw_layout *l, const struct mw_slot *s, hwloc_const_bitmap_t place)
{
	char *cpus = NULL;
	if (place)
		hwloc_bitmap_list_asprintf(&cpus, place);
	json_t *json = json_pack("{so so so so so so so so}", "pu_os", index_json(s->pu_os), "pu_logical",
		index_json(s->pu_logical), "core_logical", index_json(s->core_logical), "l3_logical",
		index_json(s->l3_logical), "package_logical", index_json(s->package_logical), "node",
		index_json(s->node), "node_os", index_json(s->node < 0 ? -1 : l->node_os[s->node]), "cpus_os",
		cpus ? json_string(cpus) : json_null());
	free(cpus);
	return json;
}

static json_t *notes_json(const struct mw_layout *l)
{
	json_t *notes = json_array();
	for (const char *s = l->notes; s && *s;) {
		size_t n = strcspn(s, "\n");
		json_array_append_new(notes, json_stringn(s, n));
		s += n + (s[n] == '\n');
	}
	return notes;
}

json_t *mw_layout_json(const struct mw_layout *l)
{
	const struct mw_layout_priv *p = l->priv;
	json_t *workers = json_array(), *nodes = json_array();
	for (uint32_t w = 0; w < l->n_workers; w++)
		json_array_append_new(workers, slot_json(l, &l->slot[w], p->place[w]));
	for (uint32_t i = 0; i < l->n_nodes; i++)
		json_array_append_new(nodes, json_integer(l->node_os[i]));
	return json_pack("{si ss ss sb si si si si so so so so}", "n_workers", (int)l->n_workers, "bind",
		bind_names[p->bind], "places", places_names[p->places], "applied", l->applied, "usable_pus",
		(int)l->usable_pus, "usable_cores", (int)l->usable_cores, "machine_pus", (int)l->machine_pus,
		"machine_nodes", (int)l->machine_nodes, "nodes_os", nodes, "workers", workers, "controller",
		slot_json(l, &l->controller, p->controller), "notes", notes_json(l));
}
