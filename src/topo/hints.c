/* hints.c: defaults that OpenMP's and Slurm's environment variables give, each told to people when it is
 * used. */
#include "topo/machine.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of a variable, NULL when unset or empty. */
static const char *variable(const struct mw_machine *m, const char *name)
{
	size_t n = strlen(name);
	for (char *const *v = m->environ; v && *v; v++)
		if (!strncmp(*v, name, n) && (*v)[n] == '=' && (*v)[n + 1])
			return *v + n + 1;
	return NULL;
}

/* The first number of a variable ("8", "8,2"), 0 when unset or no number, which is said. */
static uint32_t number(struct mw_machine *m, const char *name)
{
	const char *text = variable(m, name);
	char *end;
	if (!text)
		return 0;
	long v = strtol(text, &end, 10);
	if (end != text && (!*end || *end == ',') && v >= 1 && v <= INT32_MAX)
		return (uint32_t)v;
	fprintf(m->notes, "%s=%s is ignored: it is no number from 1.\n", name, text);
	return 0;
}

uint32_t mw_hint_workers(struct mw_machine *m, uint32_t n_default, uint32_t n_max, bool *said)
{
	uint32_t omp = number(m, "OMP_NUM_THREADS"), slurm = number(m, "SLURM_CPUS_PER_TASK");
	*said = omp || slurm;
	if (omp) {
		uint32_t n = omp < n_max ? omp : n_max;
		fprintf(m->notes, "OMP_NUM_THREADS=%s sets the number of workers to %u%s.\n",
			variable(m, "OMP_NUM_THREADS"), n, n < omp ? ", all PUs this process may use" : "");
		return n;
	}
	if (!slurm)
		return n_default;
	if (slurm >= n_default) {
		fprintf(m->notes, "SLURM_CPUS_PER_TASK=%u allows the %u workers.\n", slurm, n_default);
		return n_default;
	}
	fprintf(m->notes, "SLURM_CPUS_PER_TASK=%u limits the workers to %u.\n", slurm, slurm);
	if (slurm < m->n_pus)
		fprintf(m->notes,
			"Slurm left this task %u PUs: other tasks on this machine may bind to the same "
			"ones.\n",
			m->n_pus);
	return slurm;
}

struct word {
	const char *text;
	int value;
};

/* Look up the first word of text (it ends at one of stop); -1 if the table doesn't have it. */
static int lookup(const struct word *table, const char *text, const char *stop)
{
	size_t n = strcspn(text, stop);
	for (; table->text; table++)
		if (strlen(table->text) == n && !strncasecmp(table->text, text, n))
			return table->value;
	return -1;
}

/* What SLURM_CPU_BIND says after "quiet," or "verbose,"; NULL when unset. */
static const char *slurm_bind(const struct mw_machine *m)
{
	const char *text = variable(m, "SLURM_CPU_BIND");
	while (text && (!strncmp(text, "quiet,", 6) || !strncmp(text, "verbose,", 8)))
		text = strchr(text, ',') + 1;
	return text;
}

static const char *bind_name(int bind)
{
	return bind == MW_BIND_NONE ? "none" : bind == MW_BIND_SPREAD ? "spread" : "close";
}

enum mw_bind mw_hint_bind(struct mw_machine *m, enum mw_bind fallback)
{
	static const struct word omp_words[] = { { "false", MW_BIND_NONE }, { "true", MW_BIND_CLOSE },
		{ "close", MW_BIND_CLOSE }, { "spread", MW_BIND_SPREAD }, { NULL, 0 } };
	const char *omp = variable(m, "OMP_PROC_BIND"), *slurm = slurm_bind(m);
	if (omp) {
		int bind = lookup(omp_words, omp, ", ");
		if (bind >= 0) {
			fprintf(m->notes, "OMP_PROC_BIND=%s sets --bind %s.\n", omp, bind_name(bind));
			return (enum mw_bind)bind;
		}
		fprintf(m->notes, "OMP_PROC_BIND=%s is ignored: workers don't share one place.\n", omp);
	}
	if (slurm && !strcmp(slurm, "none")) {
		fprintf(m->notes,
			"SLURM_CPU_BIND=none: workers aren't bound, since other tasks may share the CPUs.\n");
		return MW_BIND_NONE;
	}
	return fallback;
}

static const char *const places_name[] = { "pu", "core", "l3", "package", "numa" };

enum mw_places mw_hint_places(struct mw_machine *m, enum mw_places fallback)
{
	static const struct word omp_words[] = { { "threads", MW_PLACES_PU }, { "cores", MW_PLACES_CORE },
		{ "ll_caches", MW_PLACES_L3 }, { "sockets", MW_PLACES_PACKAGE },
		{ "numa_domains", MW_PLACES_NUMA }, { NULL, 0 } };
	static const struct word slurm_words[] = { { "threads", MW_PLACES_PU }, { "cores", MW_PLACES_CORE },
		{ "sockets", MW_PLACES_PACKAGE }, { "ldoms", MW_PLACES_NUMA }, { NULL, 0 } };
	const char *omp = variable(m, "OMP_PLACES"), *slurm = slurm_bind(m);
	if (omp) {
		int places = lookup(omp_words, omp, "(, ");
		if (places >= 0) {
			fprintf(m->notes, "OMP_PLACES=%s sets --places %s.\n", omp, places_name[places]);
			return (enum mw_places)places;
		}
		fprintf(m->notes, "OMP_PLACES=%.60s is ignored: to name CPUs, use --bind list:...\n", omp);
	}
	int places = slurm ? lookup(slurm_words, slurm, ":,") : -1;
	if (places < 0)
		return fallback;
	fprintf(m->notes, "SLURM_CPU_BIND=%s sets --places %s.\n", slurm, places_name[places]);
	return (enum mw_places)places;
}
