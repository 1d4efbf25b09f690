/* ranges.c: see ranges.h. */
#include "base/ranges.h"

#include <stdio.h>
#include <string.h>

/* How many numbers from v on are equally far apart. */
static size_t run_length(const uint32_t *v, size_t n)
{
	size_t k = n < 2 ? n : 2;
	while (k < n && v[k] - v[k - 1] == v[1] - v[0])
		k++;
	return k;
}

/* One range at v; returns how many numbers it took. */
static size_t one_range(const uint32_t *v, size_t n, char *buf, size_t size)
{
	size_t k = run_length(v, n);
	uint32_t stride = k > 1 ? v[1] - v[0] : 1;
	/* 1,3,4,5: the 3 belongs to what follows */
	if (k == 2 && stride > 1)
		k = 1;
	if (k == 1)
		snprintf(buf, size, "%u", v[0]);
	else if (stride == 1)
		snprintf(buf, size, "%u-%u", v[0], v[k - 1]);
	else
		snprintf(buf, size, "%u-%u:%u", v[0], v[k - 1], stride);
	return k;
}

const char *mw_ranges_text(const uint32_t *number, size_t n, char *buf, size_t size)
{
	char text[48];
	size_t at = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < n;) {
		size_t k = one_range(number + i, n - i, text, sizeof(text)), length = strlen(text) + (at > 0);
		size_t need = at + length + (i + k < n ? 5 : 1); /* room for ",..." */
		if (need > size) {
			snprintf(buf + at, size - at, "%s...", at ? "," : "");
			return buf;
		}
		at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? "," : "", text);
		i += k;
	}
	return buf;
}
