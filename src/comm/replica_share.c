/*
 * replica_share.c: rows whose cold coordinates are one memory. Each row is a run of addresses of its own, as for everybody
 * else, but the pages of its middle are those of one file in memory, mapped once a row. So a step reads and writes its row
 * through one base pointer, and no kernel asks which coordinates are private.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/replica.h"

#ifndef MADV_POPULATE_WRITE /* glibc before 2.35 */
#define MADV_POPULATE_WRITE 23
#endif

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

static size_t row_bytes(const struct mw_replicas *r)
{
	return whole_pages(r->stride * sizeof(float) + MW_READABLE_BYTES);
}

static int failed(const char *what, struct mw_err *err)
{
	MW_FAIL(err, RESOURCE,
		"the cold columns can't be mapped into each worker's copy (%s: %s): fewer workers, or --hot "
		"0, which "
		"copies all columns",
		what, strerror(errno));
}

struct piece {
	float *at;
	size_t n; /* floats */
};

/* All at once: a fault a page would take longer than to clear it. Kernels before 5.14 don't know how, and get the faults. */
static void make_pages(void *arg)
{
	const struct piece *p = arg;
	if (madvise(p->at, p->n * sizeof(float), MADV_POPULATE_WRITE))
		memset(p->at, 0, p->n * sizeof(float));
}

/* Fresh pages on their node. */
static int place(
	const struct mw_replicas *r, uint32_t node, float *x, size_t from, size_t to, struct mw_err *err)
{
	struct piece p = { x + from, to - from };
	mw_thp_advise(p.at, p.n * sizeof(float));
	MW_TRY(mw_node_bind(r->layout, node, p.at, p.n * sizeof(float), err));
	mw_layout_on_node(r->layout, node, make_pages, &p);
	return 0;
}

/* Another memory for a row: private but for the cold pages, which are the file's; row 0 comes first, and makes these. */
static int map_row(struct mw_replicas *r, uint32_t i, uint32_t node, int file, struct mw_err *err)
{
	size_t from = r->cold_from, to = r->cold_to, bytes = row_bytes(r);
	float *x = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (x == MAP_FAILED)
		return failed("mmap", err);
	mw_node_free(r->layout, r->row[i].x);
	r->row[i].x = x;
	r->n_mapped = i + 1;
	if (mmap(x + from, (to - from) * sizeof(float), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED | (i ? MAP_POPULATE : 0), file, 0) == MAP_FAILED)
		return failed("mmap", err);
	MW_TRY(place(r, node, x, 0, from, err));
	if (i == 0)
		MW_TRY(place(r, node, x, from, to, err));
	return place(r, node, x, to, bytes / sizeof(float), err);
}

int mw_replicas_share(
	struct mw_replicas *r, const struct mw_protocol *p, size_t from, size_t to, struct mw_err *err)
{
	size_t page = page_bytes() / sizeof(float);
	from = (from + page - 1) / page * page;
	to = to / page * page;
	if (from >= to || r->n < 2)
		return 0;
	int file = memfd_create("mixwild-cold-columns", MFD_CLOEXEC), code = 0;
	if (file < 0)
		return failed("memfd_create", err);
	if (ftruncate(file, (off_t)((to - from) * sizeof(float))))
		code = failed("ftruncate", err);
	r->cold_from = from;
	r->cold_to = to;
	for (uint32_t i = 0; i < r->n && !code; i++) {
		code = map_row(r, i, mw_replica_node(p, r->layout, i), file, err);
		r->row[i].owned = false; /* all write its cold coordinates */
	}
	close(file);
	return code;
}

void mw_replicas_unmap(struct mw_replicas *r)
{
	for (uint32_t i = 0; i < r->n_mapped; i++) {
		munmap(r->row[i].x, row_bytes(r));
		r->row[i].x = NULL;
	}
	r->n_mapped = 0;
}
