/* unit_data_cache.c: the binary cache: gives the same data, or isn't used: when stale, damaged, forged or foreign. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/cache_file.h"
#include "data_util.h"

#define REQ(...) (&(struct mw_data_request){ .index_base = MW_BASE_AUTO, __VA_ARGS__ })
#define ON       .cache = MW_CACHE_ON
#define AUTO     .cache = MW_CACHE_AUTO

static const char text[] = "+1 1:0.5 3:2\n-1\n+1 2:-1e-3 9:7\n-1 4:1 5:2 6:3\n";

/* A test's cache folder is its own. */
static int setup(void **state)
{
	int ret = make_dir(state);
	return ret ? ret : setenv("XDG_CACHE_HOME", test_dir, 1);
}

/* The cache file of a request, in place 0 (beside) or 1 (the user's folder). */
static const char *cache_path(const struct mw_data_request *req, int place)
{
	static char buf[600];
	struct mw_cache_key key;
	char *path[MW_CACHE_PLACES];
	mw_cache_make_key(req, &key);
	mw_cache_paths(req->path, &key, path);
	snprintf(buf, sizeof(buf), "%s", path[place]);
	for (int i = 0; i < MW_CACHE_PLACES; i++)
		free(path[i]);
	return buf;
}

static bool note_begins(const struct mw_dataset *d, const char *want)
{
	return d->cache_note && !strncmp(d->cache_note, want, strlen(want));
}

/* Load, and the note must begin so; returns the data set. */
static struct mw_dataset *load_noting(const struct mw_data_request *req, const char *want)
{
	struct mw_dataset *d = load_ok(req);
	if (!note_begins(d, want))
		fail_msg("note '%s', expected '%s'", d->cache_note ? d->cache_note : "(none)", want);
	return d;
}

static void same_with_and_without(void **state)
{
	static const char *const texts[] = { text, "0 0:1 5:2\n1\n2 3:-4\n0 1:1\n",
		"0.5 1:1\n2.25 7:3\n-1\n" };
	(void)state;
	for (int i = 0; i < 6; i++) {
		size_t n = strlen(texts[i / 2]);
		const char *path =
			i % 2 ? write_gzip("same", texts[i / 2], n) : write_text("same", texts[i / 2]);
		struct mw_dataset *off = load_ok(REQ(.path = path)), *on, *used;
		assert_null(off->cache_note);
		assert_int_equal(access(cache_path(REQ(.path = path), 0), F_OK), -1);
		on = load_noting(REQ(.path = path, ON), "written: ");
		used = load_noting(REQ(.path = path, AUTO), "used: ");
		assert_same_data(off, on);
		assert_same_data(off, used);
		assert_non_null(used->map);
		assert_int_equal(used->file_bytes, n);
		assert_true(
			((uintptr_t)used->col | (uintptr_t)used->val | (uintptr_t)used->row_ptr) % 64 == 0);
		for (int k = 0; k < 16; k++)
			assert_true(used->col[used->nnz + k] == 0 && used->val[used->nnz + k] == 0);
		mw_dataset_free(off);
		mw_dataset_free(on);
		mw_dataset_free(used);
		assert_int_equal(unlink(cache_path(REQ(.path = path), 0)), 0);
	}
}

/* An array of a mapped set may be replaced by one of the program's own: each is freed in its way. */
static void replaced_array(void **state)
{
	const char *path = write_text("replaced", text);
	struct mw_dataset *d;
	uint32_t *fresh;
	(void)state;
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	d = load_noting(REQ(.path = path, AUTO), "used: ");
	fresh = mw_alloc_array(d->nnz + 16, sizeof(*fresh), "columns", NULL);
	assert_non_null(fresh);
	memcpy(fresh, d->col, d->nnz * sizeof(*fresh));
	mw_dataset_free_array(d, d->col);
	d->col = fresh;
	mw_dataset_free(d);
}

/* Auto writes nothing; on writes once. */
static void who_writes(void **state)
{
	const char *path = write_text("who", text);
	struct mw_dataset *d = load_ok(REQ(.path = path, AUTO));
	(void)state;
	assert_null(d->cache_note);
	mw_dataset_free(d);
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	mw_dataset_free(load_noting(REQ(.path = path, ON), "used: "));
}

static void copy_times(const char *path, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void stale_source(void **state)
{
	char path[512], other[sizeof(text)];
	struct stat st;
	struct mw_dataset *d;
	(void)state;
	strcpy(path, write_text("stale", text));
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	assert_int_equal(stat(path, &st), 0);
	/* as long as before, and the modification time put back */
	strcpy(other, text);
	other[5] = '7';
	write_text("stale", other);
	copy_times(path, &st);
	d = load_noting(REQ(.path = path, AUTO), "not used: ");
	assert_non_null(strstr(d->cache_note, "is of an earlier state of the data file"));
	assert_true(d->val[0] == 7.5f);
	mw_dataset_free(d);
	/* longer */
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	write_text("stale", "+1 1:1\n-1 2:1\n+1 1:1\n-1 2:1\n+1 1:1\n-1 2:1\n+1 1:1\n-1 2:1\n");
	d = load_noting(REQ(.path = path, ON), "written: ");
	assert_int_equal(d->rows, 8);
	mw_dataset_free(d);
	/* the same bytes written anew are the same source */
	write_text("stale", "+1 1:1\n-1 2:1\n+1 1:1\n-1 2:1\n+1 1:1\n-1 2:1\n+1 1:1\n-1 2:1\n");
	mw_dataset_free(load_noting(REQ(.path = path, AUTO), "used: "));
}

static struct mw_cache_head read_head(const char *path)
{
	struct mw_cache_head h;
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(&h, sizeof(h), 1, f), 1);
	fclose(f);
	return h;
}

/* Written at once after its source, a cache is checked in full until the source's times are old; then they are noted. */
static void settles(void **state)
{
	struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char path[512], cache[600];
	struct mw_cache_head h;
	(void)state;
	strcpy(path, write_text("settles", text));
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	strcpy(cache, cache_path(REQ(.path = path), 0));
	assert_int_equal(read_head(cache).source.settled, 0);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0); /* the change time is now */
	mw_dataset_free(load_noting(REQ(.path = path, ON), "used: "));
	h = read_head(cache);
	assert_true(h.source.settled == 0 && h.source.mtime_s != 1000000000);
	if (!getenv("MW_LONG"))
		return;
	sleep(4);
	mw_dataset_free(load_noting(REQ(.path = path, AUTO), "used: "));
	assert_int_equal(read_head(cache).source.settled, 0);
	mw_dataset_free(load_noting(REQ(.path = path, ON), "used: "));
	h = read_head(cache);
	assert_true(h.source.settled == 1 && h.source.mtime_s == 1000000000);
	mw_dataset_free(load_noting(REQ(.path = path, AUTO), "used: "));
}

/* ---- files that must not be used */

struct image {
	unsigned char *b;
	size_t n;
};

static struct image read_all(const char *path)
{
	struct image m = { malloc(1 << 20), 0 };
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	m.n = fread(m.b, 1, 1 << 20, f);
	fclose(f);
	return m;
}

static void write_all(const char *path, const unsigned char *b, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(b, 1, n, f), n);
	fclose(f);
}

static struct mw_cache_head *head_of(struct image *m)
{
	return (struct mw_cache_head *)(void *)m->b;
}

/* Make the checksums right again. The test's files have one block. */
static void seal(struct image *m)
{
	struct mw_cache_head *h = head_of(m);
	uint64_t sum = mw_checksum(0, m->b + MW_CACHE_HEAD_BYTES, m->n - MW_CACHE_HEAD_BYTES);
	assert_true(m->n < MW_CACHE_BLOCK_BYTES);
	h->content = mw_checksum(m->n, &sum, sizeof(sum));
	h->head = mw_cache_head_sum(h);
}

static void *array_of(struct image *m, int array)
{
	return m->b + head_of(m)->at[array];
}

static void forge_magic(struct image *m)
{
	m->b[0] ^= 1;
}

static void forge_order(struct image *m)
{
	head_of(m)->byte_order = __builtin_bswap32(head_of(m)->byte_order);
}

static void forge_version(struct image *m)
{
	head_of(m)->version++;
}

static void forge_program(struct image *m)
{
	head_of(m)->program[0]++;
}

static void forge_rows(struct image *m)
{
	head_of(m)->rows += (uint64_t)1 << 40;
}

static void forge_place(struct image *m)
{
	head_of(m)->at[MW_CACHE_COL] += 64;
}

static void forge_key(struct image *m)
{
	head_of(m)->key.features = 12;
}

static void forge_column(struct image *m)
{
	((uint32_t *)array_of(m, MW_CACHE_COL))[3] = 9; /* there are 9 features */
}

static void forge_column_far(struct image *m)
{
	((uint32_t *)array_of(m, MW_CACHE_COL))[3] = 0xffffffffU;
}

static void forge_row(struct image *m)
{
	((uint64_t *)array_of(m, MW_CACHE_ROW_PTR))[1] = 5;
}

static void forge_first_row(struct image *m)
{
	((uint64_t *)array_of(m, MW_CACHE_ROW_PTR))[0] = 1;
}

static void forge_last_row(struct image *m)
{
	((uint64_t *)array_of(m, MW_CACHE_ROW_PTR))[4] = 8;
}

static void forge_value(struct image *m)
{
	((uint32_t *)array_of(m, MW_CACHE_VAL))[6] = 0x7fc00000;
}

static void forge_label(struct image *m)
{
	((float *)array_of(m, MW_CACHE_Y))[3] = 2;
}

static void forge_length(struct image *m)
{
	m->n -= 64;
}

static const struct {
	void (*forge)(struct image *m);
	const char *what;
} forgeries[] = {
	{ forge_magic, "is no cache file" },
	{ forge_order, "is of a machine with another byte order" },
	{ forge_version, "was written by another version of mixwild" },
	{ forge_program, "was written by another version of mixwild" },
	{ forge_rows, "is damaged (its length)" },
	{ forge_place, "is damaged (its length)" },
	{ forge_length, "is damaged (its length)" },
	{ forge_key, "was made with other options" },
	{ forge_column, "is damaged (an index out of bounds)" },
	{ forge_column_far, "is damaged (an index out of bounds)" },
	{ forge_row, "is damaged (an index out of bounds)" },
	{ forge_first_row, "is damaged (an index out of bounds)" },
	{ forge_last_row, "is damaged (an index out of bounds)" },
	{ forge_value, "is damaged (an index out of bounds)" },
	{ forge_label, "is damaged (an index out of bounds)" },
};

/* All checksums right, and still nothing that would lead out of an array is believed. */
static void forged(void **state)
{
	char path[512], cache[600];
	struct image good;
	(void)state;
	strcpy(path, write_text("forged", text));
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	strcpy(cache, cache_path(REQ(.path = path), 0));
	good = read_all(cache);
	for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		struct image m = { malloc(good.n), good.n };
		struct mw_dataset *d;
		memcpy(m.b, good.b, good.n);
		forgeries[i].forge(&m);
		seal(&m);
		write_all(cache, m.b, m.n);
		d = load_noting(REQ(.path = path, AUTO), "not used: ");
		assert_string_equal(
			d->cache_note + strlen(d->cache_note) - strlen(forgeries[i].what), forgeries[i].what);
		mw_dataset_free(d);
		free(m.b);
	}
	/* and it is replaced */
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	mw_dataset_free(load_noting(REQ(.path = path, AUTO), "used: "));
	free(good.b);
}

/* Any damage to a byte, or a cut anywhere, is noticed or of no consequence. */
static void damaged(void **state)
{
	char path[512], cache[600];
	struct mw_dataset *want, *d;
	struct mw_rng rng;
	struct image m;
	int used = 0;
	(void)state;
	strcpy(path, write_text("damaged", text));
	want = load_noting(REQ(.path = path, ON), "written: ");
	strcpy(cache, cache_path(REQ(.path = path), 0));
	m = read_all(cache);
	mw_rng_init(&rng, 20260930, 1);
	for (int i = 0; i < 600; i++) {
		size_t n = i % 3 ? m.n : (size_t)mw_rng_below(&rng, m.n);
		size_t at = i % 3 == 1 ? (size_t)mw_rng_below(&rng, sizeof(struct mw_cache_head))
				       : MW_CACHE_HEAD_BYTES +
						 (size_t)mw_rng_below(&rng, m.n - MW_CACHE_HEAD_BYTES);
		unsigned char flip = (unsigned char)(1 + mw_rng_below(&rng, 255));
		m.b[at] ^= flip;
		write_all(cache, m.b, n);
		m.b[at] ^= flip;
		d = load_ok(REQ(.path = path, AUTO));
		used += d->map != NULL;
		assert_same_data(want, d);
		mw_dataset_free(d);
	}
	assert_int_equal(used, 0);
	mw_dataset_free(want);
	free(m.b);
}

/* Each way of reading has a cache of its own. */
static void other_options(void **state)
{
	char path[512];
	struct mw_dataset *train, *d;
	(void)state;
	strcpy(path, write_text("options", text));
	train = load_noting(REQ(.path = path, ON), "written: ");
	d = load_noting(REQ(.path = path, ON, .features = 20), "written: ");
	assert_int_equal(d->features, 20);
	mw_dataset_free(d);
	d = load_noting(
		&(struct mw_data_request){ .path = path, ON, .index_base = MW_BASE_ZERO }, "written: ");
	assert_int_equal(d->features, 10);
	mw_dataset_free(d);
	d = load_noting(REQ(.path = path, ON, .label_kind = MW_LABEL_REAL), "written: ");
	assert_int_equal(d->classes, 0);
	mw_dataset_free(d);
	d = load_noting(REQ(.path = path, ON, .like = train), "written: ");
	mw_dataset_free(d);
	d = load_noting(REQ(.path = path, AUTO, .like = train), "used: ");
	assert_int_equal(d->classes, 2);
	mw_dataset_free(d);
	mw_dataset_free(train);
	d = load_noting(REQ(.path = path, AUTO, .features = 20), "used: ");
	assert_int_equal(d->features, 20);
	mw_dataset_free(d);
}

/* Beside the file something is in the way: a folder of the cache's name. */
static void users_folder(void **state)
{
	char path[512], beside[600];
	(void)state;
	strcpy(path, write_text("elsewhere", text));
	strcpy(beside, cache_path(REQ(.path = path), 0));
	assert_int_equal(mkdir(beside, 0700), 0);
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	assert_int_equal(access(cache_path(REQ(.path = path), 1), R_OK), 0);
	mw_dataset_free(load_noting(REQ(.path = path, AUTO), "used: "));
}

static int files_named(const char *part)
{
	DIR *dir = opendir(test_dir);
	int n = 0;
	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		n += strstr(e->d_name, part) != NULL;
	closedir(dir);
	return n;
}

static void *load_one(void *path)
{
	struct mw_err err = { 0 };
	struct mw_dataset *d = NULL;
	mw_dataset_load(REQ(.path = path, ON, .threads = 1), &d, &err);
	return d;
}

/* Several writers at once: each has the data, one file stays, and nothing else. */
static void writers_at_once(void **state)
{
	char path[512];
	struct mw_dataset *want;
	(void)state;
	strcpy(path, write_text("crowd", text));
	want = load_ok(REQ(.path = path));
	for (int turn = 0; turn < 10; turn++) {
		pthread_t thread[8];
		void *d;
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, load_one, path), 0);
		for (int i = 0; i < 8; i++) {
			assert_int_equal(pthread_join(thread[i], &d), 0);
			assert_non_null(d);
			assert_same_data(want, d);
			mw_dataset_free(d);
		}
		mw_dataset_free(load_noting(REQ(.path = path, AUTO), "used: "));
		assert_int_equal(files_named("crowd"), 2);
		assert_int_equal(unlink(cache_path(REQ(.path = path), 0)), 0);
	}
	mw_dataset_free(want);
}

/* No room for the cache: the data are there all the same, and no half of a file. */
static void no_room(void **state)
{
	char path[512];
	pid_t child;
	int status = -1;
	(void)state;
	strcpy(path, write_text("room", text));
	child = fork();
	if (child == 0) {
		struct rlimit limit = { 1000, 1000 };
		struct mw_err err = { 0 };
		struct mw_dataset *d = NULL;
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		mw_dataset_load(REQ(.path = path, ON), &d, &err);
		_exit(!d || d->rows != 4 || !note_begins(d, "not written: "));
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(files_named("room"), 1);
}

static void owner(void **state)
{
	char path[512];
	struct mw_dataset *d;
	(void)state;
	if (geteuid() != 0)
		skip();
	strcpy(path, write_text("owner", text));
	mw_dataset_free(load_noting(REQ(.path = path, ON), "written: "));
	if (chown(cache_path(REQ(.path = path), 0), 12345, 12345) != 0)
		skip();
	d = load_noting(REQ(.path = path, AUTO), "not used: ");
	assert_non_null(strstr(d->cache_note, "belongs to another user"));
	mw_dataset_free(d);
}

/* More than one block, and not a multiple of anything. */
static void many_blocks(void **state)
{
	size_t room = 12 << 20, n = 0;
	char *large = malloc(room), path[512], cache[600];
	struct mw_dataset *want, *d;
	int fd;
	(void)state;
	for (int i = 0; n < room - 100; i++)
		n += (size_t)sprintf(large + n, "%d %d:1 %d:2.5\n", i % 2, i % 1000 + 1, i % 70000 + 2000);
	strcpy(path, write_bytes("many", large, n));
	free(large);
	want = load_noting(REQ(.path = path, ON), "written: ");
	for (int threads = 1; threads <= 3; threads++) {
		d = load_noting(REQ(.path = path, AUTO, .threads = threads), "used: ");
		assert_same_data(want, d);
		mw_dataset_free(d);
	}
	strcpy(cache, cache_path(REQ(.path = path), 0));
	fd = open(cache, O_WRONLY);
	assert_true(fd >= 0 && pwrite(fd, "x", 1, 5000001) == 1);
	close(fd);
	d = load_noting(REQ(.path = path, AUTO), "not used: ");
	assert_non_null(strstr(d->cache_note, "is damaged (its checksum)"));
	assert_same_data(want, d);
	mw_dataset_free(d);
	mw_dataset_free(want);
}

/* Every bit of any word, in any lane and in the rest, changes the sum; so does the length. */
static void checksum_sees_all(void **state)
{
	unsigned char b[200] = { 0 };
	(void)state;
	for (size_t n = 1; n <= sizeof(b); n += 13) {
		uint64_t sum = mw_checksum(0, b, n);
		for (size_t i = 0; i < 8 * n; i++) {
			b[i / 8] ^= (unsigned char)(1 << i % 8);
			assert_true(mw_checksum(0, b, n) != sum);
			b[i / 8] ^= (unsigned char)(1 << i % 8);
		}
		assert_true(mw_checksum(0, b, n - 1) != sum);
		assert_true(mw_checksum(1, b, n) != sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_with_and_without),
		cmocka_unit_test(replaced_array),
		cmocka_unit_test(who_writes),
		cmocka_unit_test(stale_source),
		cmocka_unit_test(settles),
		cmocka_unit_test(forged),
		cmocka_unit_test(damaged),
		cmocka_unit_test(other_options),
		cmocka_unit_test(users_folder),
		cmocka_unit_test(writers_at_once),
		cmocka_unit_test(no_room),
		cmocka_unit_test(owner),
		cmocka_unit_test(many_blocks),
		cmocka_unit_test(checksum_sees_all),
	};
	return cmocka_run_group_tests_name("data cache", tests, setup, remove_dir);
}
