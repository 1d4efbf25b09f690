/* figure_gnuplot.c: figures by gnuplot, with the script and the data kept beside them; see figure.h. */
#include <errno.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/figure.h"

/* One block of lines a series: x, y and the ends of the error bar. */
static int write_data(const struct mw_figure *f, const char *path, struct mw_err *err)
{
	FILE *out = fopen(path, "w");
	if (!out)
		MW_FAIL(err, RESOURCE, "%s can't be written: %s", path, strerror(errno));
	fprintf(out, "# %s\n# x: %s\n# y: %s\n", f->title, f->xlabel, f->ylabel);
	for (size_t i = 0; i < f->n; i++) {
		const struct mw_series *s = &f->series[i];
		fprintf(out, "%s# %s\n# x y low high\n", i ? "\n\n" : "", s->name);
		for (size_t k = 0; k < s->n; k++)
			if (mw_figure_shows(f, s->x[k], s->y[k]))
				fprintf(out, "%.10g %.10g %.10g %.10g\n", s->x[k], s->y[k], s->low[k],
					s->high[k]);
	}
	bool bad = ferror(out);
	if (fclose(out) || bad)
		MW_FAIL(err, RESOURCE, "%s can't be written: %s", path, strerror(errno));
	return MW_OK;
}

/* A string of gnuplot; no escapes are looked for in '...', a quotation mark is doubled. */
static void quote(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		fputs(*text == '\'' ? "'" : "", out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void write_series(const struct mw_figure *f, const char *data, FILE *out)
{
	const char *comma = "plot ";
	for (size_t i = 0; i < f->n; i++) {
		const struct mw_series *s = &f->series[i];
		bool bars = false;
		for (size_t k = 0; k < s->n; k++)
			bars = bars || s->low[k] < s->high[k];
		const char *with = s->mark == MW_MARK_BARS    ? "boxes fill solid 0.7"
				   : s->mark == MW_MARK_LINES ? "lines"
				   : s->mark == MW_MARK_BOTH  ? "linespoints"
							      : "points";
		fprintf(out, "%s'%s' index %zu using 1:2 with %s linestyle %zu title ", comma, data, i, with,
			i + 1);
		quote(s->name, out);
		comma = ", \\\n     ";
		if (bars && s->mark != MW_MARK_BARS)
			fprintf(out, "%s'%s' index %zu using 1:2:3:4 with yerrorbars linestyle %zu notitle",
				comma, data, i, i + 1);
	}
	fputc('\n', out);
}

static const char *terminal(const char *ending)
{
	if (!strcmp(ending, ".svg"))
		return "svg size 720,480 background 'white' font 'sans,13' linewidth 1.3";
	if (!strcmp(ending, ".png"))
		return "pngcairo size 1440,960 font 'sans,22' linewidth 2.6";
	return "pdfcairo size 16cm,10.7cm font 'sans,11' linewidth 1.3";
}

static int write_script(const struct mw_figure *f, const char *path, const char *data, const char *picture,
	struct mw_err *err)
{
	FILE *out = fopen(path, "w");
	if (!out)
		MW_FAIL(err, RESOURCE, "%s can't be written: %s", path, strerror(errno));
	fprintf(out,
		"# made by mixwild plot; in this folder: gnuplot %s\nset terminal %s noenhanced\nset output "
		"'%s'\n",
		base_name(path), terminal(strrchr(picture, '.')), base_name(picture));
	for (size_t i = 0; i < f->n;
		i++) /* the ninth series has the first one's colour, not its mark and dashes */
		fprintf(out, "set style line %zu linecolor rgb '%s' dashtype %zu pointtype %zu\n", i + 1,
			mw_figure_colour(i), (i + i / 8) % 5 + 1, (i + 3 * (i / 8)) % 8 + 4);
	fputs("set title ", out);
	quote(f->title, out);
	fputs("\nset xlabel ", out);
	quote(f->xlabel, out);
	fputs("\nset ylabel ", out);
	quote(f->ylabel, out);
	fprintf(out,
		"\nset grid\nset rmargin 4\nset format xy '%%g'\nset key below spacing 1.2 height 1\n%s%s",
		f->xlog ? "set logscale x\n" : "", f->ylog ? "set logscale y\n" : "");
	write_series(f, base_name(data), out);
	bool bad = ferror(out);
	if (fclose(out) || bad)
		MW_FAIL(err, RESOURCE, "%s can't be written: %s", path, strerror(errno));
	return MW_OK;
}

/* Run gnuplot on the script in the script's folder, since the names in it are relative to that. */
static int run_gnuplot(const char *script, struct mw_err *err)
{
	char *folder = mw_strdup(script), *name = mw_strdup(base_name(script));
	char *change = NULL, shell[] = "sh", flag[] = "-c", exec[] = "cd -- \"$1\" && exec gnuplot \"$2\"";
	int status = -1, problem = ENOMEM;
	pid_t pid;
	if (folder && name) {
		char *slash = strrchr(folder, '/');
		if (slash)
			slash[slash == folder] = 0;
		change = slash ? folder : (char[]){ "." };
		char *argv[] = { shell, flag, exec, shell, change, name, NULL };
		problem = posix_spawnp(&pid, "sh", NULL, NULL, argv, environ);
		while (!problem && waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	free(folder);
	free(name);
	if (problem)
		MW_FAIL(err, RESOURCE, "gnuplot can't be started: %s", strerror(problem));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		MW_FAIL(err, RESOURCE,
			"there is no gnuplot on this machine: apt-get install gnuplot-nox (script and data "
			"are "
			"written: %s)",
			script);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		MW_FAIL(err, RESOURCE, "gnuplot failed on %s", script);
	return MW_OK;
}

int mw_figure_gnuplot(const struct mw_figure *f, const char *path, struct mw_err *err)
{
	const char *dot = strrchr(path, '.');
	if (!dot || dot < base_name(path) ||
		(strcmp(dot, ".svg") && strcmp(dot, ".png") && strcmp(dot, ".pdf")))
		MW_FAIL(err, USAGE, "%s: a figure is an .svg, .png or .pdf file", path);
	if (f->failed)
		MW_FAIL(err, RESOURCE, "out of memory for the figure");
	if (strpbrk(path, "'\n"))
		MW_FAIL(err, USAGE, "%s: gnuplot can't write to a name with this character", path);
	if (!mw_figure_has_points(f))
		MW_FAIL(err, DATA, "%s: there is nothing to draw%s", f->title,
			f->xlog || f->ylog ? " (logarithmic axes show positive numbers only)" : "");
	char *data = mw_strprintf("%.*s.dat", (int)(dot - path), path);
	char *script = mw_strprintf("%.*s.gp", (int)(dot - path), path);
	int ret = data && script ? 0 : mw_err_set(err, MW_ERESOURCE, "out of memory for the figure");
	if (ret == 0)
		ret = write_data(f, data, err);
	if (ret == 0)
		ret = write_script(f, script, data, path, err);
	if (ret == 0)
		ret = run_gnuplot(script, err);
	free(data);
	free(script);
	return ret;
}
