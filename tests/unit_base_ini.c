/* unit_base_ini.c: INI files: sections, repeated keys, lines of everything, words, and what is refused where. */
#include "run_util.h"

#include "base/ini.h"

static void load(struct mw_ini *ini, const char *text)
{
	struct mw_err err = { 0 };
	assert_int_equal(mw_ini_load(temporary_file(text), ini, &err), 0);
}

static void refuses(const char *text, const char *part)
{
	struct mw_ini ini;
	struct mw_err err = { 0 };
	assert_int_equal(mw_ini_load(temporary_file(text), &ini, &err), MW_EUSAGE);
	if (!strstr(err.msg, part))
		fail_msg("'%s' lacks '%s'", err.msg, part);
	mw_ini_free(&ini);
}

static void keeps_order_lines_and_repeated_keys(void **state)
{
	struct mw_ini ini;
	(void)state;
	load(&ini, "# about\n[global]\r\n a = 1 # one\n\n; more\n[ two ]\nb=x = '#' \"a # b\" c#d # y\nb "
		   "=\na = long \\\n  line\nc=3");
	assert_int_equal(ini.n, 2);
	assert_string_equal(ini.section[0].name, "global");
	assert_int_equal(ini.section[0].line, 2);
	assert_int_equal(ini.section[0].n, 1);
	assert_string_equal(ini.section[0].entry[0].key, "a");
	assert_string_equal(ini.section[0].entry[0].value, "1");
	const struct mw_ini_section *two = &ini.section[1];
	assert_string_equal(two->name, "two");
	assert_int_equal(two->n, 4);
	assert_string_equal(two->entry[0].value, "x = '#' \"a # b\" c#d");
	assert_string_equal(two->entry[1].key, "b");
	assert_string_equal(two->entry[1].value, "");
	assert_string_equal(two->entry[2].value, "long    line");
	assert_int_equal(two->entry[2].line, 9);
	assert_int_equal(two->entry[3].line, 11);
	mw_ini_free(&ini);
}

static void says_where_it_is_wrong(void **state)
{
	(void)state;
	refuses("a = 1\n", ":1: a stands before");
	refuses("[x]\n[x\n", ":2: a section is written");
	refuses("[x]\n[]\n", ":2: a section needs a name");
	refuses("[x]\n\n[y]\n[x]\n", ":4: section [x] is there already, in line 1");
	refuses("[x]\nword\n", ":2: neither");
	refuses("[x]\n = 3\n", ":2: there is no key");
	refuses("[x] tail\n", ":1: a section is written");
}

static void reads_an_empty_file_and_none(void **state)
{
	struct mw_ini ini;
	struct mw_err err = { 0 };
	(void)state;
	load(&ini, "");
	assert_int_equal(ini.n, 0);
	mw_ini_free(&ini);
	assert_int_equal(mw_ini_load("/nowhere/at.all", &ini, &err), MW_EDATA);
	mw_ini_free(&ini);
}

static void cuts_words(void **state)
{
	struct mw_err err = { 0 };
	char **w;
	(void)state;
	assert_int_equal(mw_ini_words(" 1  2\t\"at 3: x=1; y\" a'b c'd '' ", "f:1", &w, &err), 5);
	assert_string_equal(w[0], "1");
	assert_string_equal(w[2], "at 3: x=1; y");
	assert_string_equal(w[3], "ab cd");
	assert_string_equal(w[4], "");
	assert_null(w[5]);
	mw_ini_words_free(w);
	assert_int_equal(mw_ini_words("", "f:1", &w, &err), 0);
	mw_ini_words_free(w);
	assert_int_equal(mw_ini_words("a \"b", "f:7", &w, &err), MW_EUSAGE);
	assert_non_null(strstr(err.msg, "f:7"));
}

/* Whatever the bytes: an answer or an error, never a crash. */
static void survives_noise(void **state)
{
	static const char alphabet[] = "[]=#;\\\n\n ab\"'";
	uint64_t x = 88172645463325252u;
	(void)state;
	for (int i = 0; i < 300; i++) {
		char text[65] = "";
		struct mw_ini ini;
		struct mw_err err = { 0 };
		for (int k = 0; k < 64; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			text[k] = alphabet[x % (sizeof(alphabet) - 1)];
		}
		int ret = mw_ini_load(temporary_file(text), &ini, &err);
		assert_true(ret == 0 || (ret == MW_EUSAGE && *err.msg));
		for (size_t s = 0; ret == 0 && s < ini.n; s++)
			for (size_t e = 0; e < ini.section[s].n; e++) {
				char **w;
				if (mw_ini_words(ini.section[s].entry[e].value, "f:1", &w, &err) >= 0)
					mw_ini_words_free(w);
			}
		mw_ini_free(&ini);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order_lines_and_repeated_keys),
		cmocka_unit_test(says_where_it_is_wrong),
		cmocka_unit_test(reads_an_empty_file_and_none),
		cmocka_unit_test(cuts_words),
		cmocka_unit_test(survives_noise),
	};
	return cmocka_run_group_tests_name("unit_base_ini", tests, NULL, NULL);
}
