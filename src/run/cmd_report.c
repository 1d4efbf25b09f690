/* cmd_report.c: `mixwild report RUN... -o FILE.html`: runs as one page that needs nothing else. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/atomic_file.h"
#include "run/command.h"
#include "run/report_page.h"

struct options {
	char *out, *title;
	double target_loss;
};

#define F(field) offsetof(struct options, field)

static const struct mw_option table[] = {
	{ "out", MW_OPT_STRING, F(out), "report.html", 0, 0, NULL, "FILE", "The page; also -o." },
	{ "title", MW_OPT_STRING, F(title), "mixwild report", 0, 0, NULL, "TEXT", "Title of the page." },
	{ "target-loss", MW_OPT_FLOAT, F(target_loss), "0", 0, 0, NULL, "LOSS",
		"The loss to which steps are counted in t_mix against steps-to-target; 0: one that three "
		"runs in four reach." },
	{ 0 },
};

static int write_figures(const struct mw_pasts *p, double target, FILE *out, struct mw_err *err)
{
	for (size_t i = 0; mw_past_figures[i]; i++) {
		struct mw_figure *f = NULL;
		MW_TRY(mw_past_figure(p, mw_past_figures[i], target, &f, err));
		if (!f)
			continue;
		fprintf(out, "<section id=\"%s\">\n<h2>", f->name);
		mw_html_text(f->title, out);
		fputs("</h2>\n", out);
		mw_figure_html(f, out);
		fputs("</section>\n", out);
		mw_figure_free(f);
	}
	return MW_OK;
}

static int write_page(const struct mw_job *job, const struct mw_pasts *p, FILE *out, struct mw_err *err)
{
	const struct options *o = job->options;
	bool given = mw_options_is_set(&job->set, "target-loss");
	mw_report_head(o->title, out);
	fprintf(out,
		"<p>%zu run%s, shown by mixwild %s. t_mix is the effective mixing time: steps until an "
		"update of one "
		"worker is spread evenly over all. A native step is an event (one update), or under a "
		"barrier a "
		"round; a gradient step is one gradient of any worker.</p>\n",
		p->n, p->n == 1 ? "" : "s", mw_version());
	MW_TRY(write_figures(p, given ? o->target_loss : NAN, out, err));
	mw_report_runs(p, out);
	mw_report_layouts(p, out);
	mw_report_options(p, out);
	mw_report_origins(p, out);
	mw_report_foot(out);
	return MW_OK;
}

static int run(struct mw_job *job, struct mw_err *err)
{
	const struct options *o = job->options;
	struct mw_pasts p = { 0 };
	struct mw_atomic_file file;
	int ret = mw_pasts_load(job->positional, (size_t)job->n_positional, &p, err);
	if (ret == 0 && (!o->out || !*o->out))
		ret = mw_err_set(err, MW_EUSAGE, "--out needs the name of a file");
	if (ret == 0)
		ret = mw_atomic_file_open(&file, o->out, err);
	if (ret == 0) {
		ret = write_page(job, &p, file.file, err);
		if (ret == 0)
			ret = mw_atomic_file_commit(&file, err);
		else
			mw_atomic_file_abort(&file);
	}
	if (ret == 0 && job->msg)
		fprintf(job->msg, "%zu run%s in %s\n", p.n, p.n == 1 ? "" : "s", o->out);
	mw_pasts_free(&p);
	return ret;
}

const struct mw_command mw_command_report = {
	.name = "report",
	.summary = "Runs as one page with figures and tables that needs nothing else: for screen, phone and "
		   "print",
	.positionals = "RUN...",
	.min_positionals = 1,
	.max_positionals = MW_POSITIONALS_MAX,
	.uses = MW_NO_INTERRUPT,
	.options = table,
	.option_size = sizeof(struct options),
	.examples = "mixwild report runs/first -o first.html\n"
		    "mixwild report runs/frequency -o frequency.html --title 'Frequency reduction'\n",
	.run = run,
};
