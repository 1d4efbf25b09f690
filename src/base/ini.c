/* ini.c: see ini.h. */
#include "base/ini.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int no_memory(const char *path, struct mw_err *err)
{
	MW_FAIL(err, RESOURCE, "out of memory for %s", path);
}

/* Cut space off both ends, in place. */
static char *strip(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	size_t n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
	return s;
}

static int add_section(struct mw_ini *ini, char *text, int line, struct mw_err *err)
{
	char *end = strchr(text, ']');
	if (!end || end[1])
		MW_FAIL(err, USAGE, "%s:%d: a section is written [name], and nothing follows it", ini->path,
			line);
	*end = 0;
	char *name = strip(text + 1);
	if (!*name)
		MW_FAIL(err, USAGE, "%s:%d: a section needs a name", ini->path, line);
	for (size_t i = 0; i < ini->n; i++)
		if (!strcmp(ini->section[i].name, name))
			MW_FAIL(err, USAGE, "%s:%d: section [%s] is there already, in line %d", ini->path,
				line, name, ini->section[i].line);
	struct mw_ini_section *grown = realloc(ini->section, (ini->n + 1) * sizeof(*grown));
	if (!grown)
		return no_memory(ini->path, err);
	ini->section = grown;
	grown[ini->n] = (struct mw_ini_section){ .name = mw_strdup(name), .line = line };
	return grown[ini->n++].name ? MW_OK : no_memory(ini->path, err);
}

/* Cut off a comment: # after space, outside of quotation marks. */
static void cut_comment(char *value)
{
	char quote = 0;
	for (char *s = value; *s; s++) {
		if (!quote && *s == '#' && s > value && isspace((unsigned char)s[-1])) {
			*s = 0;
			return;
		}
		if (quote ? *s == quote : *s == '"' || *s == '\'')
			quote = quote ? 0 : *s;
	}
}

static int add_entry(struct mw_ini *ini, char *text, int line, struct mw_err *err)
{
	char *equals = strchr(text, '=');
	if (!equals)
		MW_FAIL(err, USAGE, "%s:%d: neither [section] nor key = value: '%.60s'", ini->path, line,
			text);
	*equals = 0;
	cut_comment(equals + 1);
	char *key = strip(text);
	if (!*key)
		MW_FAIL(err, USAGE, "%s:%d: there is no key before '='", ini->path, line);
	if (!ini->n)
		MW_FAIL(err, USAGE, "%s:%d: %s stands before the first [section]", ini->path, line, key);
	struct mw_ini_section *s = &ini->section[ini->n - 1];
	struct mw_ini_entry *grown = realloc(s->entry, (s->n + 1) * sizeof(*grown));
	if (!grown)
		return no_memory(ini->path, err);
	s->entry = grown;
	struct mw_ini_entry *e = &grown[s->n++];
	*e = (struct mw_ini_entry){ mw_strdup(key), mw_strdup(strip(equals + 1)), line };
	return e->key && e->value ? MW_OK : no_memory(ini->path, err);
}

static int add_line(struct mw_ini *ini, char *text, int line, struct mw_err *err)
{
	text = strip(text);
	if (!*text || *text == '#' || *text == ';')
		return MW_OK;
	return *text == '[' ? add_section(ini, text, line, err) : add_entry(ini, text, line, err);
}

/* Take the backslash (and the line end) off a line that goes on. */
static bool goes_on(char *text)
{
	size_t n = strlen(text);
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (!n || text[n - 1] != '\\')
		return false;
	text[n - 1] = ' ';
	text[n] = 0;
	return true;
}

static int read_lines(struct mw_ini *ini, FILE *f, struct mw_err *err)
{
	char *part = NULL, *whole = NULL;
	size_t size = 0;
	int ret = 0, first = 1;
	ssize_t got;
	for (int line = 1; ret == 0 && (got = getline(&part, &size, f)) >= 0; line++) {
		if (strlen(part) != (size_t)got) {
			ret = mw_err_set(
				err, MW_EUSAGE, "%s:%d: a zero byte: this is no text", ini->path, line);
			break;
		}
		bool more = goes_on(part);
		char *joined = mw_strprintf("%s%s", whole ? whole : "", part);
		first = whole ? first : line;
		free(whole);
		whole = joined;
		if (!whole)
			ret = no_memory(ini->path, err);
		else if (!more) {
			ret = add_line(ini, whole, first, err);
			free(whole);
			whole = NULL;
		}
	}
	if (ret == 0 && whole)
		ret = add_line(ini, whole, first, err);
	if (ret == 0 && ferror(f))
		ret = mw_err_set(err, MW_EDATA, "%s: can't be read: %s", ini->path, strerror(errno));
	free(whole);
	free(part);
	return ret;
}

int mw_ini_load(const char *path, struct mw_ini *ini, struct mw_err *err)
{
	*ini = (struct mw_ini){ .path = mw_strdup(path) };
	if (!ini->path)
		return no_memory(path, err);
	FILE *f = fopen(path, "r");
	if (!f)
		MW_FAIL(err, DATA, "%s: can't be opened: %s", path, strerror(errno));
	int ret = read_lines(ini, f, err);
	fclose(f);
	return ret;
}

void mw_ini_free(struct mw_ini *ini)
{
	for (size_t i = 0; i < ini->n; i++) {
		struct mw_ini_section *s = &ini->section[i];
		for (size_t k = 0; k < s->n; k++) {
			free(s->entry[k].key);
			free(s->entry[k].value);
		}
		free(s->entry);
		free(s->name);
	}
	free(ini->section);
	free(ini->path);
	*ini = (struct mw_ini){ 0 };
}

/* Copy one word to `to`; returns what follows it, NULL if a quotation ends nowhere. */
static const char *copy_word(const char *s, char *to)
{
	char quote = 0;
	for (; *s && (quote || !isspace((unsigned char)*s)); s++)
		if (quote ? *s == quote : *s == '"' || *s == '\'')
			quote = quote ? 0 : *s;
		else
			*to++ = *s;
	*to = 0;
	return quote ? NULL : s;
}

int mw_ini_words(const char *value, const char *where, char ***words, struct mw_err *err)
{
	size_t n = 0, longest = strlen(value) + 1;
	char **list = calloc(longest / 2 + 2, sizeof(*list));
	const char *s = value;
	for (*words = list; list;) {
		while (isspace((unsigned char)*s))
			s++;
		if (!*s)
			return (int)n;
		list[n] = malloc(longest);
		if (!list[n])
			break;
		s = copy_word(s, list[n++]);
		if (!s) {
			mw_ini_words_free(list);
			*words = NULL;
			MW_FAIL(err, USAGE, "%s: a quotation mark has no partner", where);
		}
	}
	mw_ini_words_free(list);
	*words = NULL;
	MW_FAIL(err, RESOURCE, "out of memory for %s", where);
}

void mw_ini_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
