/* unit_optim_reference.c: 20-step trajectories against PyTorch 1.13.1 (tests/reference/optim_torch.py). */
#include "plugin_util.h"

#include "optim/optim.h"

enum { N = 5, STEPS = 20, COPIES = 29 };
#define RATE 0.05f

static float grad[STEPS][N], start[N];

static void numbers(const char *text, double *out)
{
	char *end;
	for (int i = 0; i < N; i++, text = end)
		out[i] = strtod(text, &end);
}

static void check(const char *run, int t, const float *x, const double *want)
{
	for (int i = 0; i < N; i++)
		if (!(fabs((double)x[i] - want[i]) <= 1e-5 * fabs(want[i]) + 1e-6))
			fail_msg("%s, step %d, parameter %d: %.9g, PyTorch has %.9g", run, t, i, (double)x[i],
				want[i]);
}

/* A trajectory by one of the two functions; check() after every step. */
struct walk {
	struct mw_optim *o;
	float x[N * COPIES], state[3 * 64 * N * COPIES];
};

/* Many copies side by side, the delta in place of the gradient. */
static void step_dense(struct walk *w, int t)
{
	float g[N * COPIES];
	struct mw_step s = { .rate = RATE, .t = (uint64_t)t };
	for (int i = 0; i < N * COPIES; i++)
		g[i] = grad[t][i % N];
	mw_optim_dense(w->o, &s, w->state, 1000, w->o->needs_x ? w->x : NULL, g, g, N * COPIES);
	for (int i = 0; i < N * COPIES; i++)
		w->x[i] += g[i];
}

/* The same parameters as `width` floats a group, groups scattered over the state. */
static void step_sparse(struct walk *w, int t, uint32_t width)
{
	float g[N * COPIES];
	uint32_t group[N * COPIES];
	size_t n = N * COPIES / width;
	struct mw_step s = { .rate = RATE, .t = (uint64_t)t };
	for (size_t i = 0; i < n; i++)
		group[i] = (uint32_t)(i * 37 % n);
	for (int i = 0; i < N * COPIES; i++)
		g[i] = grad[t][i % N];
	mw_optim_sparse(w->o, &s, w->state, group, n, width, w->o->needs_x ? w->x : NULL, g, g);
	for (int i = 0; i < N * COPIES; i++)
		w->x[i] += g[i];
}

static void walk_start(struct walk *w)
{
	memset(w->state, 0, sizeof(w->state));
	for (int i = 0; i < N * COPIES; i++)
		w->x[i] = start[i % N];
}

/* Every run of the file, by layout 0: dense, else sparse groups of that width. */
static void follow(uint32_t layout)
{
	static struct walk w;
	char path[1000], line[1000], run[200] = "";
	const char *root = getenv("MW_SRCDIR");
	double v[N];
	int runs = 0, t = 0, name_end = 0;
	snprintf(path, sizeof(path), "%s/tests/data/optim_reference.txt", root ? root : ".");
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		int at = 0;
		if (sscanf(line, "grad %d %n", &t, &at) == 1 && at) {
			numbers(line + at, v);
			for (int i = 0; i < N; i++)
				grad[t][i] = (float)v[i];
		} else if (!strncmp(line, "init ", 5)) {
			numbers(line + 5, v);
			for (int i = 0; i < N; i++)
				start[i] = (float)v[i];
		} else if (!strncmp(line, "run ", 4)) {
			snprintf(run, sizeof(run), "%.*s", (int)strcspn(line, "\n"), line);
			char name[50];
			sscanf(line, "run %49s%n", name, &name_end);
			const struct mw_optim_ops *ops = mw_optim_find(name);
			assert_non_null(ops);
			void *options = plugin_options(ops->options, ops->option_size, line + name_end);
			mw_optim_free(w.o);
			assert_int_equal(mw_optim_new(ops, options, &w.o, NULL), 0);
			free(options);
			walk_start(&w);
			runs++;
		} else if (sscanf(line, "x %d %n", &t, &at) == 1 && at) {
			numbers(line + at, v);
			if (layout)
				step_sparse(&w, t, layout);
			else
				step_dense(&w, t);
			for (int c = 0; c < COPIES; c++)
				check(run, t, w.x + c * N, v);
		}
	}
	fclose(f);
	mw_optim_free(w.o);
	w.o = NULL;
	assert_int_equal(runs, 23);
}

static void dense(void **state)
{
	(void)state;
	follow(0);
}

static void sparse_single(void **state)
{
	(void)state;
	follow(1);
}

static void sparse_groups(void **state)
{
	(void)state;
	follow(N);
}

/* Without correction, by hand: m = .1 g, v = top = .001 g^2, so delta = -rate .1 g / (sqrt(.001) |g| + eps). */
static void no_correction(void **state)
{
	(void)state;
	struct mw_optim *o;
	const struct mw_optim_ops *ops = mw_optim_find("amsgrad");
	void *options = plugin_options(ops->options, ops->option_size, "bias-correction=no");
	float s[3] = { 0 }, g = 2, d;
	struct mw_step step = { .rate = 0.5f, .t = 0 };
	assert_int_equal(mw_optim_new(ops, options, &o, NULL), 0);
	mw_optim_dense(o, &step, s, 1, NULL, &g, &d, 1);
	assert_float_equal(d, -0.5f * 0.2f / (sqrtf(0.004f) + 1e-8f), 1e-6f);
	assert_float_equal(s[0], 0.2f, 1e-7f);
	assert_float_equal(s[1], 0.004f, 1e-8f);
	assert_float_equal(s[2], 0.004f, 1e-8f);
	mw_optim_free(o);
	free(options);
}

/* After very many steps the correction is gone, and costs nothing. */
static void late_steps(void **state)
{
	(void)state;
	struct mw_optim *o;
	assert_int_equal(mw_optim_new(mw_optim_find("adam"), NULL, &o, NULL), 0);
	float s[2] = { 1, 4 }, g = 1, d;
	struct mw_step step = { .rate = 1, .t = UINT64_MAX - 1 };
	mw_optim_dense(o, &step, s, 1, NULL, &g, &d, 1);
	assert_float_equal(d, -1 / sqrtf(0.999f * 4 + 0.001f), 1e-6f);
	mw_optim_free(o);
}

static void plain_sgd(void **state)
{
	(void)state;
	struct mw_optim *o;
	struct mw_err err = { 0 };
	const struct mw_optim_ops *ops = mw_optim_find("sgd");
	assert_int_equal(mw_optim_new(ops, NULL, &o, NULL), 0);
	assert_true(o->plain && !o->needs_x && o->fields == 0);
	float g[3] = { 0.1f, -3.7f, 1e-30f }, d[3];
	struct mw_step step = { .rate = 0.3f, .t = 5 };
	mw_optim_dense(o, &step, NULL, 0, NULL, g, d, 3);
	for (int i = 0; i < 3; i++)
		assert_true(d[i] == -0.3f * g[i]);
	mw_optim_free(o);
	void *options = plugin_options(ops->options, ops->option_size, "nesterov=yes");
	assert_int_equal(mw_optim_new(ops, options, &o, &err), MW_EUSAGE);
	assert_string_equal(err.msg, "--nesterov needs a momentum: add --momentum 0.9, for example");
	free(options);
	assert_null(mw_optim_find("sdg"));
}

/* Without x a step is that of a run without weight decay, to the bit: so parameters are spared from it. */
static void no_x_no_decay(void **state)
{
	enum { DIM = 70 };
	static const char *const set[] = { "weight-decay=0.3 decay-form=coupled",
		"weight-decay=0.3 decay-form=decoupled", "weight-decay=0" };
	(void)state;
	for (size_t k = 0; mw_optims[k]; k++)
		for (int form = 0; form < 2; form++) {
			const struct mw_optim_ops *ops = mw_optims[k];
			static float s[3][3 * DIM], g[DIM], x[DIM], d[3][DIM];
			struct mw_optim *o[3];
			for (int i = 0; i < 3; i++) { /* with x, without, without decay */
				void *options = plugin_options(
					ops->options, ops->option_size, set[i == 2 ? 2 : form]);
				assert_int_equal(mw_optim_new(ops, options, &o[i], NULL), 0);
				assert_int_equal(o[i]->needs_x, i < 2);
				free(options);
				memset(s[i], 0, sizeof(s[i]));
			}
			for (uint64_t t = 0; t < 4; t++) {
				struct mw_step step = { .rate = RATE, .t = t };
				for (int j = 0; j < DIM; j++) {
					g[j] = sinf((float)(j + 31 * (int)t));
					x[j] = (float)(j % 7) - 3.5f;
				}
				for (int i = 0; i < 3; i++)
					mw_optim_dense(o[i], &step, s[i], DIM, i ? NULL : x, g, d[i], DIM);
				for (int j = 0; j < DIM; j++)
					assert_true(d[1][j] == d[2][j]);
			}
			assert_true(d[0][5] !=
				    d[1][5]); /* a first step may be the same: Adam's has only a sign */
			for (int i = 0; i < 3; i++)
				mw_optim_free(o[i]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dense),
		cmocka_unit_test(sparse_single),
		cmocka_unit_test(sparse_groups),
		cmocka_unit_test(no_correction),
		cmocka_unit_test(late_steps),
		cmocka_unit_test(plain_sgd),
		cmocka_unit_test(no_x_no_decay),
	};
	return cmocka_run_group_tests_name("optimizers", tests, NULL, NULL);
}
