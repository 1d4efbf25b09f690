/* trace.c: see trace.h. */
#include "run/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/atomic_file.h"

#define MAGIC       "MWTRACE1"
#define CHUNK_BYTES ((uint64_t)1 << 20)
#define EVENT_BYTES 20
#define TOUCH_BYTES 8

struct mw_trace_chunk {
	struct mw_trace_chunk *next;
	uint64_t used;
	unsigned char data[];
};

void mw_recorder_init(struct mw_recorder *r, uint64_t every, uint64_t window)
{
	*r = (struct mw_recorder){ .every = every, .window = window };
}

void mw_recorder_fini(struct mw_recorder *r)
{
	for (struct mw_trace_chunk *c = r->first, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	*r = (struct mw_recorder){ 0 };
}

static unsigned char *reserve(struct mw_recorder *r, uint64_t bytes)
{
	if (!r->last || r->last->used + bytes > CHUNK_BYTES) {
		struct mw_trace_chunk *c = malloc(sizeof(*c) + CHUNK_BYTES);
		if (!c) {
			r->full = true;
			return NULL;
		}
		c->next = NULL;
		c->used = 0;
		if (r->last)
			r->last->next = c;
		else
			r->first = c;
		r->last = c;
	}
	unsigned char *p = r->last->data + r->last->used;
	r->last->used += bytes;
	r->bytes += bytes;
	return p;
}

static unsigned char *put(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*p++ = (unsigned char)(v >> (8 * i));
	return p;
}

static uint64_t get(const unsigned char **p, int bytes)
{
	uint64_t v = 0;
	for (int i = 0; i < bytes; i++)
		v |= (uint64_t) * (*p)++ << (8 * i);
	return v;
}

void mw_recorder_add(struct mw_recorder *r, const struct mw_event *e, const struct mw_touch *touch)
{
	if (r->full)
		return;
	unsigned char *p = reserve(r, EVENT_BYTES + (uint64_t)e->n_touch * TOUCH_BYTES);
	if (!p)
		return;
	p = put(p, e->begin, 8);
	p = put(p, e->duration, 4);
	p = put(p, e->step, 4);
	p = put(p, e->kind, 1);
	p = put(p, e->n_touch, 1);
	p = put(p, e->flags, 2);
	for (int i = 0; i < e->n_touch; i++) {
		p = put(p, touch[i].row, 4);
		p = put(p, touch[i].version, 4);
	}
	r->events++;
	r->last_end = e->begin + e->duration;
	r->full = r->limit && r->events >= r->limit;
}

void mw_recorder_read(struct mw_recorder_reader *rd, const struct mw_recorder *r)
{
	*rd = (struct mw_recorder_reader){ r->first, 0 };
}

/* An event's fixed part; returns where what it touched begins. */
static const unsigned char *get_event(const unsigned char *p, struct mw_event *e)
{
	e->begin = get(&p, 8);
	e->duration = (uint32_t)get(&p, 4);
	e->step = (uint32_t)get(&p, 4);
	e->kind = (uint8_t)get(&p, 1);
	e->n_touch = (uint8_t)get(&p, 1);
	e->flags = (uint16_t)get(&p, 2);
	return p;
}

bool mw_recorder_next(struct mw_recorder_reader *rd, struct mw_event *e)
{
	while (rd->chunk && rd->at >= rd->chunk->used)
		*rd = (struct mw_recorder_reader){ rd->chunk->next, 0 };
	if (!rd->chunk)
		return false;
	get_event(rd->chunk->data + rd->at, e);
	rd->at += EVENT_BYTES + (uint64_t)e->n_touch * TOUCH_BYTES;
	return true;
}

int mw_trace_save(const char *path, const json_t *header, struct mw_recorder *const *recorder,
	uint32_t n_workers, struct mw_err *err)
{
	struct mw_atomic_file f;
	unsigned char word[16];
	char *head = json_dumps(header, JSON_COMPACT);
	if (!head)
		MW_FAIL(err, RESOURCE, "out of memory writing %s", path);
	int code = mw_atomic_file_open(&f, path, err);
	if (code == 0) {
		fwrite(MAGIC, 1, 8, f.file);
		put(word, strlen(head), 8);
		fwrite(word, 1, 8, f.file);
		fwrite(head, 1, strlen(head), f.file);
		for (uint32_t w = 0; w < n_workers; w++) {
			put(put(put(word, w, 4), 0, 4), recorder[w]->bytes, 8);
			fwrite(word, 1, 16, f.file);
			for (struct mw_trace_chunk *c = recorder[w]->first; c; c = c->next)
				fwrite(c->data, 1, c->used, f.file);
		}
		code = mw_atomic_file_commit(&f, err);
	}
	free(head);
	return code;
}

static int read_all(const char *path, unsigned char **out, uint64_t *n, struct mw_err *err)
{
	FILE *f = fopen(path, "rb");
	long size = -1;
	*out = NULL;
	if (!f)
		MW_FAIL(err, DATA, "%s: %s", path, strerror(errno));
	if (fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	rewind(f);
	*out = size >= 0 ? malloc((size_t)size + 1) : NULL;
	bool ok = *out && fread(*out, 1, (size_t)size, f) == (size_t)size;
	fclose(f);
	if (!ok)
		MW_FAIL(err, DATA, "%s: can't be read (%ld bytes)", path, size);
	*n = (uint64_t)size;
	return 0;
}

/* Are these bytes whole records? Everything after this check may trust them. */
static bool records_fit(const unsigned char *p, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes;) {
		if (bytes - at < EVENT_BYTES || p[at + 16] >= MW_EVENT_KINDS)
			return false;
		uint64_t n = EVENT_BYTES + (uint64_t)p[at + 17] * TOUCH_BYTES;
		if (bytes - at < n)
			return false;
		at += n;
	}
	return true;
}

static int parse(struct mw_trace *t, const char *path, uint64_t n, struct mw_err *err)
{
	const unsigned char *p = t->buffer, *end = p + n;
	json_error_t je;
	if (n < 16 || memcmp(p, MAGIC, 8))
		MW_FAIL(err, DATA, "%s: not a mixwild trace (it does not begin with %s)", path, MAGIC);
	p += 8;
	uint64_t head = get(&p, 8);
	if (head > (uint64_t)(end - p))
		MW_FAIL(err, DATA, "%s: ends inside its header", path);
	t->header = json_loadb((const char *)p, head, 0, &je);
	json_int_t workers = json_integer_value(json_object_get(t->header, "workers"));
	if (!t->header || workers < 1 || workers > 1000000)
		MW_FAIL(err, DATA, "%s: its header is damaged", path);
	p += head;
	t->n_workers = (uint32_t)workers;
	t->worker = calloc(t->n_workers, sizeof(*t->worker));
	if (!t->worker)
		MW_FAIL(err, RESOURCE, "out of memory reading %s", path);
	for (uint32_t w = 0; w < t->n_workers; w++) {
		if (end - p < 16 || get(&p, 4) != w)
			MW_FAIL(err, DATA, "%s: ends before worker %u, or is damaged there", path, w);
		p += 4;
		uint64_t bytes = get(&p, 8);
		if (bytes > (uint64_t)(end - p) || !records_fit(p, bytes))
			MW_FAIL(err, DATA, "%s: the events of worker %u are cut off or damaged", path, w);
		t->worker[w] = (struct mw_trace_worker){ p, bytes };
		p += bytes;
	}
	return 0;
}

int mw_trace_load(const char *path, struct mw_trace **out, struct mw_err *err)
{
	struct mw_trace *t = *out = calloc(1, sizeof(*t));
	uint64_t n = 0;
	if (!t)
		MW_FAIL(err, RESOURCE, "out of memory reading %s", path);
	MW_TRY(read_all(path, &t->buffer, &n, err));
	return parse(t, path, n, err);
}

void mw_trace_free(struct mw_trace *t)
{
	if (!t)
		return;
	json_decref(t->header);
	free(t->worker);
	free(t->buffer);
	free(t);
}

bool mw_trace_next(
	const struct mw_trace *t, uint32_t worker, uint64_t *at, struct mw_event *e, struct mw_touch *touch)
{
	const struct mw_trace_worker *w = &t->worker[worker];
	if (*at >= w->bytes)
		return false;
	const unsigned char *p = get_event(w->data + *at, e);
	for (int i = 0; i < e->n_touch; i++) {
		touch[i].row = (uint32_t)get(&p, 4);
		touch[i].version = (uint32_t)get(&p, 4);
	}
	*at = (uint64_t)(p - w->data);
	return true;
}
