/* progress.c: see progress.h. */
#include "run/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "run/control.h"

#define REDRAW_S 0.2

void mw_format_duration(double s, char *out, size_t size)
{
	if (!(s < 360000))
		snprintf(out, size, "long");
	else if (s >= 3600)
		snprintf(out, size, "%dh%02dm", (int)s / 3600, (int)s / 60 % 60);
	else if (s >= 60)
		snprintf(out, size, "%dm%02ds", (int)s / 60, (int)s % 60);
	else
		snprintf(out, size, "%.1fs", s);
}

void mw_format_count(double v, char *out, size_t size)
{
	const char *unit = v >= 1e9 ? "G" : v >= 1e6 ? "M" : v >= 1e3 ? "k" : "";
	double scaled = v >= 1e9 ? v / 1e9 : v >= 1e6 ? v / 1e6 : v >= 1e3 ? v / 1e3 : v;
	snprintf(out, size, scaled >= 100 ? "%.0f%s" : "%.1f%s", scaled, unit);
}

double mw_running_loss(const struct mw_run *run)
{
	double sum = 0;
	for (uint32_t w = 0; w < run->n_workers; w++)
		sum += (double)mw_ld(&run->counters[w].loss);
	return sum / run->n_workers;
}

void mw_progress_draw(struct mw_run *run)
{
	double now = mw_now_s();
	if (!run->job->live || now - run->drawn_s < REDRAW_S)
		return;
	uint64_t examples = 0;
	for (uint32_t w = 0; w < run->n_workers; w++)
		examples += __atomic_load_n(&run->counters[w].examples, __ATOMIC_RELAXED);
	double total = (double)run->total_steps * run->batch * run->n_workers;
	double clock = run->train_s + (now - run->segment_s), rate = clock > 0 ? (double)examples / clock : 0;
	char speed[32], eta[32];
	mw_format_count(rate, speed, sizeof(speed));
	mw_format_duration(rate > 0 ? (total - (double)examples) / rate : INFINITY, eta, sizeof(eta));
	fprintf(run->job->msg,
		"\r\033[Kepoch %.2f/%g  loss %.4f (running)  %s examples/s  staleness p50 %llu p99 %llu  ETA "
		"%s",
		(double)examples / (double)run->rows.n, run->opt->epochs, mw_running_loss(run), speed,
		(unsigned long long)run->staleness_p50, (unsigned long long)run->staleness_p99, eta);
	if (run->control && mw_ld(&run->control->live) > 0)
		fprintf(run->job->msg, "  t_mix ~%.3g", (double)mw_ld(&run->control->live));
	if (run->steer)
		fprintf(run->job->msg, " (target %.3g)", mw_steer_target(run->steer));
	fflush(run->job->msg);
	run->drawn_s = now;
	run->line_drawn = true;
}

void mw_progress_clear(struct mw_run *run)
{
	if (!run->line_drawn)
		return;
	fprintf(run->job->msg, "\r\033[K");
	fflush(run->job->msg);
	run->line_drawn = false;
}

void mw_say(struct mw_run *run, const char *fmt, ...)
{
	va_list ap;
	if (!run->job->msg)
		return;
	mw_progress_clear(run);
	va_start(ap, fmt);
	vfprintf(run->job->msg, fmt, ap);
	va_end(ap);
}
