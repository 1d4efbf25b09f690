/* unit_base_option.c: option tables: numbers, parsing, several owners, JSON, help. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <unistd.h>

#include "base/option.h"

struct own {
	bool verbose, no_smt;
	int64_t batch, seed;
	double rate;
	char *data, *workers;
	int order;
};

static const struct mw_option own_table[] = {
	{ "data", MW_OPT_STRING, offsetof(struct own, data), NULL, 0, 0, NULL, "FILE", "Training set." },
	{ "workers", MW_OPT_STRING, offsetof(struct own, workers), "auto", 0, 0, NULL, NULL,
		"Number of workers." },
	{ "batch", MW_OPT_INT, offsetof(struct own, batch), "1", 1, 1000, NULL, NULL, "Rows of a gradient." },
	{ "seed", MW_OPT_INT, offsetof(struct own, seed), NULL, 0, 0, NULL, NULL, "Seed." },
	MW_HEADING("Steps"),
	{ "rate", MW_OPT_FLOAT, offsetof(struct own, rate), "0.1", DBL_MIN, INFINITY, NULL, "A",
		"Learning rate." },
	{ "order", MW_OPT_CHOICE, offsetof(struct own, order), "block", 0, 0, "block|random|file", NULL,
		"Order of rows in an epoch, which is long enough to be wrapped." },
	{ "verbose", MW_OPT_BOOL, offsetof(struct own, verbose), "yes", 0, 0, NULL, NULL, "Say more." },
	{ "no-smt", MW_OPT_BOOL, offsetof(struct own, no_smt), NULL, 0, 0, NULL, NULL, "One thread a core." },
	{ 0 },
};

struct plug {
	double beta1, momentum;
	char *note;
};

static const struct mw_option sgd_table[] = {
	{ "momentum", MW_OPT_FLOAT, offsetof(struct plug, momentum), "0", 0, 1, NULL, NULL, "Momentum." },
	{ 0 },
};
static const struct mw_option adam_table[] = {
	{ "beta1", MW_OPT_FLOAT, offsetof(struct plug, beta1), "0.9", 0, 1, NULL, NULL, "Decay." },
	{ "note", MW_OPT_STRING, offsetof(struct plug, note), "x", 0, 0, NULL, NULL, "A note." },
	{ 0 },
};
static const struct mw_option amsgrad_table[] = {
	{ "beta1", MW_OPT_FLOAT, offsetof(struct plug, beta1), "0.8", 0, 0.85, NULL, NULL, "Decay." },
	{ 0 },
};

struct fixture {
	struct own own;
	struct plug sgd, adam, amsgrad;
	struct mw_options set;
	struct mw_err err;
	const char *positional[3];
	bool help;
};

static int setup(void **state)
{
	struct fixture *t = calloc(1, sizeof(*t));
	const struct mw_option_group groups[] = {
		{ "Options", NULL, own_table, &t->own },
		{ "Optimizer sgd", "optimizer sgd", sgd_table, &t->sgd },
		{ "Optimizer adam", "optimizer adam", adam_table, &t->adam },
		{ "Optimizer amsgrad", "optimizer amsgrad", amsgrad_table, &t->amsgrad },
		{ "Optimizer none", "optimizer none", NULL, NULL },
	};
	*state = t;
	return mw_options_init(&t->set, groups, 5, &t->err);
}

static int teardown(void **state)
{
	struct fixture *t = *state;
	mw_options_fini(&t->set);
	assert_null(t->own.workers);
	free(t);
	return 0;
}

static int parse(struct fixture *t, const char **argv)
{
	int argc = 0;
	while (argv[argc])
		argc++;
	t->err = (struct mw_err){ 0 };
	return mw_options_parse(&t->set, argc, (char **)argv, 0, t->positional, 3, &t->help, &t->err);
}
#define PARSE(t, ...) parse((t), (const char *[]){ __VA_ARGS__, NULL })

static void numbers(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} good[] = { { "0", 0 }, { "-7", -7 }, { "+7", 7 }, { "10k", 10000 }, { "10K", 10000 },
		{ "2M", 2000000 }, { "3G", 3000000000 }, { "1e6", 1000000 }, { "1.5k", 1500 },
		{ "1.001k", 1001 }, { "2.50e1", 25 }, { "1000e-3", 1 }, { "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN }, { "0e99", 0 } };
	static const char *const bad[] = { "", "-", "x", "1x", "1 ", " 1", "0x10", "1.5", "1e-1",
		"9223372036854775808", "1e19", "10kk", "k", ".", "1.2.3", "1e", "1e+", "--1",
		"1e999999999999", "1m", "nan" };
	int64_t v;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(mw_parse_int(good[i].text, "n", &v, NULL), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mw_err err = { 0 };
		assert_int_equal(mw_parse_int(bad[i], "the number", &v, &err), MW_EUSAGE);
		assert_memory_equal(err.msg, "the number: '", 13);
	}
}

static void reals(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = { { "0.1", 0.1 }, { "-1e-3", -1e-3 }, { "2k", 2000 }, { "1.5M", 1.5e6 }, { "1G", 1e9 },
		{ ".5", 0.5 }, { "1e-400", 0 }, { "17", 17 } };
	static const char *const bad[] = { "", "x", "inf", "nan", "0x1p3", " 1", "1 ", "1e999", "1kk", "e5",
		"1e308G" };
	double v;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(mw_parse_float(good[i].text, "x", &v, NULL), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(mw_parse_float(bad[i], "x", &v, NULL), MW_EUSAGE);
}

static void nearest(void **state)
{
	static const char *const names[] = { "workers", "epochs", "train", "topo" };
	(void)state;
	assert_string_equal(mw_nearest("worker", names, 4), "workers");
	assert_string_equal(mw_nearest("trian", names, 4), "train");
	assert_string_equal(mw_nearest("epocs", names, 4), "epochs");
	assert_string_equal(mw_nearest("tpoo", names, 4), "topo");
	assert_null(mw_nearest("tmix", names, 4));
	assert_null(mw_nearest("zzzzzz", names, 4));
	assert_null(mw_nearest("", names, 4));
	assert_null(mw_nearest(
		"a-name-that-is-far-longer-than-any-option-that-anybody-would-ever-like-to-type", names, 4));
}

static void defaults(void **state)
{
	struct fixture *t = *state;
	assert_null(t->own.data);
	assert_string_equal(t->own.workers, "auto");
	assert_int_equal(t->own.batch, 1);
	assert_true(t->own.rate == 0.1);
	assert_int_equal(t->own.order, 0);
	assert_true(t->own.verbose);
	assert_false(t->own.no_smt);
	assert_true(t->adam.beta1 == 0.9 && t->amsgrad.beta1 == 0.8);
	assert_false(mw_options_is_set(&t->set, "batch"));
}

static void forms(void **state)
{
	struct fixture *t = *state;
	int n = PARSE(t, "a", "--batch", "1k", "--rate=-0", "--", "--rate");
	assert_int_equal(n, MW_EUSAGE); /* above 0 */
	n = PARSE(t, "a", "--batch", "1k", "--rate=1e-3", "--no-verbose", "--no-smt", "--order=file", "-",
		"--data", "-x", "--", "--rate");
	assert_int_equal(n, 3);
	assert_string_equal(t->positional[0], "a");
	assert_string_equal(t->positional[1], "-");
	assert_string_equal(t->positional[2], "--rate");
	assert_int_equal(t->own.batch, 1000);
	assert_true(t->own.rate == 1e-3);
	assert_false(t->own.verbose);
	assert_true(t->own.no_smt);
	assert_int_equal(t->own.order, 2);
	assert_string_equal(t->own.data, "-x");
	assert_true(mw_options_is_set(&t->set, "batch"));
	assert_false(mw_options_is_set(&t->set, "seed"));
	assert_int_equal(PARSE(t, "--verbose=on", "--data=", "--no-no-smt"), 0);
	assert_true(t->own.verbose);
	assert_int_equal(PARSE(t, "--verbose", "off", "x"), 1);
	assert_false(t->own.verbose);
	assert_int_equal(PARSE(t, "--verbose", "on"), 0);
	assert_true(t->own.verbose);
	assert_false(t->own.no_smt);
	assert_string_equal(t->own.data, "");
}

static void help_stops(void **state)
{
	struct fixture *t = *state;
	assert_int_equal(PARSE(t, "--batch", "3", "--help", "--nonsense"), 0);
	assert_true(t->help);
	assert_int_equal(PARSE(t, "-h"), 0);
	assert_true(t->help);
	assert_int_equal(PARSE(t, "--batch", "3"), 0);
	assert_false(t->help);
}

static void refused(struct fixture *t, const char *a, const char *b, const char *message)
{
	assert_int_equal(PARSE(t, a, b), MW_EUSAGE);
	assert_string_equal(t->err.msg, message);
}

static void messages(void **state)
{
	struct fixture *t = *state;
	refused(t, "--worker", "3", "unknown option --worker; did you mean --workers?");
	refused(t, "--zzzz", NULL, "unknown option --zzzz");
	refused(t, "--batch", NULL, "option --batch needs a value");
	refused(t, "--data", "--batch",
		"option --data needs a value, but '--batch' follows (write --data=--batch if that is the "
		"value)");
	refused(t, "--batch=0", NULL, "option --batch: 0 is out of range (1..1000)");
	refused(t, "--rate=0", NULL, "option --rate: 0 is out of range (above 0)");
	refused(t, "--batch=x", NULL,
		"option --batch: 'x' is not a whole number in the 64-bit range (like 12, 10k, 2M or 1e6)");
	refused(t, "--rate=x", NULL, "option --rate: 'x' is not a finite number (like 0.1, 1e-3 or 2k)");
	refused(t, "--order=fiel", NULL,
		"option --order: there is no 'fiel' (choose from block|random|file); did you mean 'file'?");
	refused(t, "--order=fi", NULL, "option --order: there is no 'fi' (choose from block|random|file)");
	refused(t, "--verbose=maybe", NULL, "option --verbose: 'maybe' is neither yes nor no");
	refused(t, "--no-verbose=yes", NULL, "option --no-verbose takes no value (write --verbose=yes)");
	refused(t, "--no-batch", NULL, "unknown option --no-batch");
	refused(t, "-b", "3", "unknown option -b (names of options begin with two dashes)");
	assert_int_equal(PARSE(t, "a", "b", "c", "d"), MW_EUSAGE);
	assert_string_equal(t->err.msg, "argument 'd' is one too many");
}

static void one_name_in_several_groups(void **state)
{
	static const char *const sgd[] = { "model x", "optimizer sgd" }, *const adam[] = { "optimizer adam" };
	struct fixture *t = *state;
	assert_int_equal(PARSE(t, "--beta1=0.25"), 0);
	assert_true(t->adam.beta1 == 0.25 && t->amsgrad.beta1 == 0.25);
	assert_int_equal(mw_options_check(&t->set, adam, 1, &t->err), 0);
	assert_int_equal(mw_options_check(&t->set, sgd, 2, &t->err), MW_EUSAGE);
	assert_string_equal(t->err.msg,
		"option --beta1 belongs to optimizer adam, optimizer amsgrad, but optimizer sgd is chosen");
	t->err = (struct mw_err){ 0 };
	assert_int_equal(mw_options_check(&t->set, NULL, 0, &t->err), MW_EUSAGE);
	assert_string_equal(t->err.msg,
		"option --beta1 belongs to optimizer adam, optimizer amsgrad, but none of these is chosen");
	mw_options_settle(&t->set);
	assert_true(mw_options_is_set(&t->set, "beta1"));
	assert_int_equal(mw_options_check(&t->set, sgd, 2, &t->err), 0);
	refused(t, "--beta1=0.9", NULL, "option --beta1 (optimizer amsgrad): 0.9 is out of range (0..0.85)");
}

static void json_out(void **state)
{
	static const char *const owners[] = { "optimizer adam" };
	struct fixture *t = *state;
	assert_int_equal(PARSE(t, "--seed=-3", "--rate=0.25", "--order=random"), 0);
	json_t *root = mw_options_json(&t->set, owners, 1);
	char *text = json_dumps(root, 0);
	assert_string_equal(text,
		"{\"data\": null, \"workers\": \"auto\", \"batch\": 1, \"seed\": -3, \"rate\": 0.25, "
		"\"order\": \"random\", \"verbose\": true, \"no-smt\": false, \"beta1\": "
		"0.90000000000000002, "
		"\"note\": \"x\"}");
	free(text);
	json_decref(root);
}

static const char *const of_one_run[] = { "note", "data", NULL }; /* what a run's record doesn't pass on */

/* Load a text as a file; the name of the file is replaced by "F" in the message. */
static int load(struct fixture *t, const char *text)
{
	char path[] = "/tmp/mixwild-option-XXXXXX", rest[1000];
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	t->err = (struct mw_err){ 0 };
	int ret = mw_options_load_json(&t->set, path, of_one_run, &t->err);
	unlink(path);
	if (!strncmp(t->err.msg, path, strlen(path))) {
		snprintf(rest, sizeof(rest), "F%s", t->err.msg + strlen(path));
		memcpy(t->err.msg, rest, sizeof(rest));
	}
	return ret;
}

static void json_in(void **state)
{
	struct fixture *t = *state;
	assert_int_equal(
		load(t, "{\"batch\": 7, \"rate\": 1, \"seed\": \"10k\", \"workers\": 4, \"verbose\": false, "
			"\"order\": \"file\", \"note\": null, \"data\": \"a b\"}"),
		0);
	assert_int_equal(t->own.batch, 7);
	assert_true(t->own.rate == 1);
	assert_int_equal(t->own.seed, 10000);
	assert_string_equal(t->own.workers, "4");
	assert_false(t->own.verbose);
	assert_int_equal(t->own.order, 2);
	assert_string_equal(t->own.data, "a b");
	assert_null(t->adam.note);
	assert_true(mw_options_is_set(&t->set, "batch"));
	assert_int_equal(
		load(t, "{\"version\": {\"batch\": 1}, \"config\": {\"batch\": 9}, \"summary\": 1}"), 0);
	assert_int_equal(t->own.batch, 9);
	assert_int_equal(
		load(t, "{\"config\": {\"data\": \"other\", \"nota\": 1, \"batch\": 3}}"), MW_EUSAGE);
	assert_int_equal(load(t, "{\"config\": {\"data\": \"other\", \"batch\": 3}}"), 0);
	assert_int_equal(t->own.batch, 3);
	assert_string_equal(t->own.data, "a b");
}

static void json_round_trip(void **state)
{
	struct fixture *t = *state;
	assert_int_equal(
		PARSE(t, "--rate=0.30000000000000004", "--seed=-9223372036854775808", "--data", "\"\\\n"), 0);
	json_t *root = mw_options_json(&t->set, NULL, 0);
	char *text = json_dumps(root, JSON_INDENT(1));
	assert_int_equal(PARSE(t, "--rate=1", "--seed=1", "--data=1"), 0);
	assert_int_equal(load(t, text), 0);
	assert_true(t->own.rate == 0.30000000000000004);
	assert_true(t->own.seed == INT64_MIN);
	assert_string_equal(t->own.data, "\"\\\n");
	free(text);
	json_decref(root);
}

static void json_refused(struct fixture *t, const char *text, int code, const char *message)
{
	assert_int_equal(load(t, text), code);
	assert_string_equal(t->err.msg, message);
}

static void json_messages(void **state)
{
	struct fixture *t = *state;
	json_refused(t, "{\n  \"data\": \"batch: {\",\n  \"batch\": 0\n}", MW_EUSAGE,
		"F:3:3: option batch: 0 is out of range (1..1000)");
	json_refused(
		t, "{ \"worker\": 3 }", MW_EUSAGE, "F:1:3: unknown option worker; did you mean workers?");
	json_refused(t, "{\"batch\": {\"rate\": 1}}", MW_EUSAGE,
		"F:1:2: option batch can't be null, an array or an object");
	json_refused(t, "{\"batch\": null}", MW_EUSAGE,
		"F:1:2: option batch can't be null, an array or an object");
	json_refused(t,
		"{\"x\": [{\"rate\": 0}],\n \"config\": {\"data\": \"\\\"rate\\\":\",\n  \"rate\": 0}}",
		MW_EUSAGE, "F:3:3: option rate: 0 is out of range (above 0)");
	json_refused(t, "[1]", MW_EUSAGE, "F:1:1: must be an object {\"option\": value, ...}");
	assert_int_equal(load(t, "{\n \"batch\": 1,\n}"), MW_EDATA);
	assert_memory_equal(t->err.msg, "F:3:1: not valid JSON: ", 23);
	assert_int_equal(load(t, ""), MW_EDATA);
	t->err = (struct mw_err){ 0 };
	assert_int_equal(mw_options_load_json(&t->set, "/nonexistent/x.json", of_one_run, &t->err), MW_EDATA);
	assert_string_equal(t->err.msg, "/nonexistent/x.json: can't be opened: No such file or directory");
	t->err = (struct mw_err){ 0 };
	assert_int_equal(mw_options_load_json(&t->set, "/", of_one_run, &t->err), MW_EDATA);
}

static void help_text(void **state)
{
	static const char expected[] = "\n"
				       "Options:\n"
				       "  --data FILE               Training set.\n"
				       "  --workers TEXT            Number of workers. [default auto]\n"
				       "  --batch N                 Rows of a gradient. [1..1000;\n"
				       "                            default 1]\n"
				       "  --seed N                  Seed.\n"
				       "\n"
				       "Steps:\n"
				       "  --rate A                  Learning rate. [above 0; default\n"
				       "                            0.1]\n"
				       "  --order block|random|file\n"
				       "                            Order of rows in an epoch, which is\n"
				       "                            long enough to be wrapped. [default\n"
				       "                            block]\n"
				       "  --[no-]verbose            Say more. [default yes]\n"
				       "  --no-smt                  One thread a core.\n"
				       "\n"
				       "Optimizer sgd:\n"
				       "  --momentum X              Momentum. [0..1; default 0]\n"
				       "\n"
				       "Optimizer adam:\n"
				       "  --beta1 X                 Decay. [0..1; default 0.9]\n"
				       "  --note TEXT               A note. [default x]\n"
				       "\n"
				       "Optimizer amsgrad:\n"
				       "  --beta1 X                 Decay. [0..0.85; default 0.8]\n";
	struct fixture *t = *state;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	mw_options_help(&t->set, f, 64);
	fclose(f);
	assert_string_equal(text, expected);
	free(text);
}

/* No line is longer than asked, down to 40 columns, if no single word is. */
static void help_fits(void **state)
{
	struct fixture *t = *state;
	for (int columns = 1; columns <= 120; columns++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);
		mw_options_help(&t->set, f, columns);
		fclose(f);
		for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= (size_t)(columns < 40 ? 40 : columns));
		free(text);
	}
}

static void same_table_is_shown_once(void **state)
{
	struct plug a = { 0 }, b = { 0 };
	const struct mw_option_group groups[] = { { "Optimizer a", "optimizer a", sgd_table, &a },
		{ "Optimizer b", "optimizer b", sgd_table, &b } };
	struct mw_options set;
	char *text = NULL;
	size_t size;
	(void)state;
	assert_int_equal(mw_options_init(&set, groups, 2, NULL), 0);
	FILE *f = open_memstream(&text, &size);
	mw_options_help(&set, f, 80);
	fclose(f);
	assert_string_equal(
		text, "\nOptimizer a, b:\n  --momentum X              Momentum. [0..1; default 0]\n");
	free(text);
	mw_options_fini(&set);
}

static void man_text(void **state)
{
	static const struct mw_option table[] = {
		{ "data", MW_OPT_STRING, offsetof(struct own, data), NULL, 0, 0, NULL, "FILE",
			".gz or a\\b." },
		{ "verbose", MW_OPT_BOOL, offsetof(struct own, verbose), "no", 0, 0, NULL, NULL,
			"Say more." },
		{ 0 },
	};
	struct own own = { 0 };
	const struct mw_option_group group = { "Options", NULL, table, &own };
	struct mw_options set;
	char *text = NULL;
	size_t size;
	(void)state;
	assert_int_equal(mw_options_init(&set, &group, 1, NULL), 0);
	FILE *f = open_memstream(&text, &size);
	mw_options_man(&set, f);
	fclose(f);
	assert_string_equal(text, ".SH OPTIONS\n.SS \"Options\"\n"
				  ".TP\n\\fB\\-\\-data\\fR \\fIFILE\\fR\n\\&.gz or a\\eb.\n"
				  ".TP\n\\fB\\-\\-[no\\-]verbose\\fR\nSay more.\n[default no]\n");
	free(text);
	mw_options_fini(&set);
}

static void wrong_default_is_an_error(void **state)
{
	static const struct mw_option table[] = {
		{ "batch", MW_OPT_INT, offsetof(struct own, batch), "0", 1, 9, NULL, NULL, "Rows." },
		{ 0 },
	};
	struct own own = { 0 };
	const struct mw_option_group group = { "Options", NULL, table, &own };
	struct mw_options set;
	struct mw_err err = { 0 };
	(void)state;
	assert_int_equal(mw_options_init(&set, &group, 1, &err), MW_EUSAGE);
	assert_string_equal(err.msg, "default of --batch: 0 is out of range (1..9)");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(reals),
		cmocka_unit_test(nearest),
		TEST(defaults),
		TEST(forms),
		TEST(help_stops),
		TEST(messages),
		TEST(one_name_in_several_groups),
		TEST(json_out),
		TEST(json_in),
		TEST(json_round_trip),
		TEST(json_messages),
		TEST(help_text),
		TEST(help_fits),
		cmocka_unit_test(same_table_is_shown_once),
		cmocka_unit_test(man_text),
		cmocka_unit_test(wrong_default_is_an_error),
	};
	return cmocka_run_group_tests_name("base/option", tests, NULL, NULL);
}
