/* quota.c: how much CPU time a second the cgroups of this process allow. */
#include "topo/machine.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct quota {
	double cpus; /* 0: none found yet */
	char *file;
	size_t size;
};

/* Is word one of the comma-separated words of list? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
		if (!strncmp(p, word, n) && (!p[n] || p[n] == ','))
			return true;
	return false;
}

static bool read_line(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(line, (int)size, f) != NULL;
	fclose(f);
	return ok;
}

static void keep_smallest(struct quota *q, double quota_us, double period_us, const char *path)
{
	if (quota_us <= 0 || period_us <= 0)
		return;
	double cpus = quota_us / period_us;
	if (q->cpus > 0 && q->cpus <= cpus)
		return;
	q->cpus = cpus;
	snprintf(q->file, q->size, "%s", path);
}

static void read_v2(struct quota *q, const char *dir)
{
	char path[PATH_MAX + 32], line[128];
	double quota_us, period_us;
	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	if (read_line(path, line, sizeof(line)) && sscanf(line, "%lf %lf", &quota_us, &period_us) == 2)
		keep_smallest(q, quota_us, period_us, path);
}

static void read_v1(struct quota *q, const char *dir)
{
	char path[PATH_MAX + 32], period[128], quota[128];
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
	if (!read_line(path, period, sizeof(period)))
		return;
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
	if (read_line(path, quota, sizeof(quota)))
		keep_smallest(q, atof(quota), atof(period), path); /* no limit is -1 */
}

/* This process's group in the hierarchy: the unified one (v2), or the one that has the cpu controller (v1).
 */
static bool group_path(const char *root, bool v2, char *group, size_t size)
{
	char path[PATH_MAX], line[PATH_MAX + 256];
	bool found = false;
	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':');
		char *name = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!name)
			continue;
		*name++ = '\0';
		name[strcspn(name, "\n")] = '\0';
		found = v2 ? !controllers[1] : has_word(controllers + 1, "cpu");
		if (found)
			snprintf(group, size, "%s", name);
	}
	fclose(f);
	return found;
}

/*
 * From the group up to the mount point. Inside a container the group's name may be one of the host's that
 * isn't seen here: files that don't exist are passed over, and the mount point itself is always looked at.
 */
static void walk_up(struct quota *q, const char *root, const char *mount, const char *group, bool v2)
{
	char dir[PATH_MAX];
	bool outside = strstr(group, "..") != NULL;
	int base = snprintf(dir, sizeof(dir), "%s%s", root, mount);
	if (base < 0 || (size_t)base >= sizeof(dir))
		return;
	snprintf(dir + base, sizeof(dir) - (size_t)base, "%s", outside || !strcmp(group, "/") ? "" : group);
	for (;;) {
		if (v2)
			read_v2(q, dir);
		else
			read_v1(q, dir);
		char *slash = strrchr(dir + base, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
}

/* One line of mountinfo: "id parent major:minor root mount options [tags...] - type source options". */
static void look_at_mount(struct quota *q, const char *root, char *line)
{
	char from[PATH_MAX], mount[PATH_MAX], type[64], options[512], group[PATH_MAX];
	char *tail = strstr(line, " - ");
	if (!tail || sscanf(line, "%*s %*s %*s %4095s %4095s", from, mount) != 2 ||
		sscanf(tail, " - %63s %*s %511s", type, options) != 2)
		return;
	bool v2 = !strcmp(type, "cgroup2");
	if (!v2 && (strcmp(type, "cgroup") || !has_word(options, "cpu")))
		return;
	if (!group_path(root, v2, group, sizeof(group)))
		return;
	size_t n = strcmp(from, "/") ? strlen(from) : 0; /* the mount may show a part of the hierarchy only */
	bool below = !strncmp(group, from, n) && (!group[n] || group[n] == '/');
	walk_up(q, root, mount, below ? group + n : "", v2);
}

double mw_quota_cpus(const char *root, char *file, size_t size)
{
	struct quota q = { 0, file, size };
	char path[PATH_MAX], *line = NULL;
	size_t room = 0;
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (getline(&line, &room, f) > 0)
		look_at_mount(&q, root, line);
	free(line);
	fclose(f);
	return q.cpus;
}
