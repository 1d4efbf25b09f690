/* cmd_tmix_table.c: `mixwild tmix --table`: mixing times of the main protocols for 2 to 64 workers (theory, table 1). */
#include <math.h>
#include <string.h>

#include "run/cmd_tmix.h"

enum { SIZES = 6 };
static const uint32_t sizes[SIZES] = { 2, 4, 8, 16, 32, 64 };

struct row {
	const char *title, *protocol, *graph;
	enum mw_activation activation;
	int64_t every;
	double slack;
	bool in_order; /* ring edges (0,1), (1,2), ... one a step, whoever acts */
};

static const struct row rows[] = {
	{ "sync-ps", "sync-ps", NULL, MW_ACT_RANDOM, 0, 1, false },
	{ "async-ps, in turn", "async-ps", NULL, MW_ACT_RR, 0, 1, false },
	{ "async-ps, random", "async-ps", NULL, MW_ACT_RANDOM, 0, 1, false },
	{ "sync-ring", "sync-ring", NULL, MW_ACT_RANDOM, 0, 1, false },
	{ "async-ring, random", "async-ring", NULL, MW_ACT_RANDOM, 0, 1, false },
	{ "ring edges in order", "async-ring", NULL, MW_ACT_RR, 0, 1, true },
	{ "async-gossip complete", "async-gossip", "complete", MW_ACT_RANDOM, 0, 1, false },
	{ "sync-gossip torus", "sync-gossip", "torus", MW_ACT_RANDOM, 0, 1, false },
	{ "sync-gossip hypercube", "sync-gossip", "hypercube", MW_ACT_RANDOM, 0, 1, false },
	{ "sync-gossip onepeer-exp", "sync-gossip", "onepeer-exp", MW_ACT_RANDOM, 0, 1, false },
	{ "sync-gossip exponential", "sync-gossip", "exponential", MW_ACT_RANDOM, 0, 1, false },
	{ "sync-ring every 10", "sync-ring", NULL, MW_ACT_RANDOM, 10, 1, false },
	{ "sync-ring slack 0.1", "sync-ring", NULL, MW_ACT_RANDOM, 0, .1, false },
};
#define N_ROWS (sizeof(rows) / sizeof(*rows))

/* The plan of edge (w, w + 1) is the first in worker w's list: nearest higher number first. */
static int solve_in_order(const struct mw_protocol *p, const struct mw_mixing_knobs *k,
	struct mw_mixing_result *r, struct mw_err *err)
{
	const struct mw_plan *plan[64];
	uint32_t period = p->workers > 2 ? p->workers : 1;
	for (uint32_t w = 0; w < period; w++)
		plan[w] = p->slot[w].plan[0];
	return mw_mixing_sequence(plan, period, p->rows, p->pi, NULL, NULL, 0, k, r, err);
}

static int solve_cell(const struct row *row, uint32_t n, const struct mw_mixing_knobs *base,
	enum mw_norm norm, struct mw_mixing_result *r, struct mw_err *err)
{
	struct tmix_subject s;
	struct mw_mixing_knobs k = *base;
	k.mix_every = row->every;
	k.slack = row->slack;
	k.activation = row->activation;
	k.norm = norm;
	int ret = tmix_subject_init(&s, row->protocol, NULL, row->graph, n, row->activation, err);
	if (!ret)
		ret = row->in_order ? solve_in_order(s.p, &k, r, err) : mw_mixing_exact(s.p, &k, r, err);
	tmix_subject_fini(&s);
	return ret;
}

typedef struct mw_mixing_result cells[N_ROWS][SIZES][2];

static void print_text(FILE *f, cells c)
{
	char cell[64];
	fprintf(f,
		"t_mix as l2(1/2) / tv(1/4) in native steps: rounds under a barrier, else gradients\n\n%-24s",
		"protocol");
	for (int i = 0; i < SIZES; i++) {
		snprintf(cell, sizeof(cell), "n=%u", sizes[i]);
		fprintf(f, " %-12s", cell);
	}
	for (size_t r = 0; r < N_ROWS; r++) {
		fprintf(f, "\n%-24s", rows[r].title);
		for (int i = 0; i < SIZES; i++) {
			const struct mw_mixing_result *l2 = &c[r][i][0], *tv = &c[r][i][1];
			snprintf(cell, sizeof(cell), "%.0f/%.0f%s", l2->t_mix, tv->t_mix,
				tv->exact ? "" : "~");
			fprintf(f, " %-12s", cell);
		}
	}
	fprintf(f,
		"\n\n~ Monte Carlo, standard error at most %.1f %%. Compare protocols in gradient steps: "
		"rounds times n.\n",
		100 * fmax(c[4][5][1].error / c[4][5][1].t_mix, c[6][5][1].error / c[6][5][1].t_mix) + .05);
}

static void print_csv(FILE *f, cells c)
{
	fprintf(f, "protocol,workers,norm,t_mix,error,unit,gradient_steps\n");
	for (size_t r = 0; r < N_ROWS; r++)
		for (int i = 0; i < SIZES; i++)
			for (int norm = 0; norm < 2; norm++) {
				const struct mw_mixing_result *x = &c[r][i][norm];
				mw_output_csv(f, rows[r].title);
				fprintf(f, ",%u,%s,%.10g,%.3g,%s,%.10g\n", sizes[i], mw_norm_name(x),
					x->t_mix, x->error, mw_unit_name(x->unit), x->gradient_steps);
			}
}

static void print_json(FILE *f, cells c)
{
	json_t *list = json_array();
	for (size_t r = 0; r < N_ROWS; r++)
		for (int i = 0; i < SIZES; i++)
			for (int norm = 0; norm < 2; norm++) {
				const struct mw_mixing_result *x = &c[r][i][norm];
				json_array_append_new(
					list, json_pack("{s:s,s:i,s:s,s:o,s:f,s:s,s:o}", "protocol",
						      rows[r].title, "workers", (int)sizes[i], "norm",
						      mw_norm_name(x), "t_mix", tmix_number(x->t_mix),
						      "error", x->error, "unit", mw_unit_name(x->unit),
						      "gradient_steps", tmix_number(x->gradient_steps)));
			}
	mw_output_json(f, list);
}

int tmix_table(FILE *f, enum mw_output format, uint64_t seed, uint32_t replicas, struct mw_err *err)
{
	static void (*const print[])(FILE *, cells) = { print_text, print_json, print_csv };
	struct mw_mixing_knobs base = { .seed = seed, .replicas = replicas };
	cells c;
	for (size_t r = 0; r < N_ROWS; r++)
		for (int i = 0; i < SIZES; i++)
			for (int norm = 0; norm < 2; norm++)
				MW_TRY(solve_cell(
					&rows[r], sizes[i], &base, (enum mw_norm)norm, &c[r][i][norm], err));
	print[format](f, c);
	return MW_OK;
}
