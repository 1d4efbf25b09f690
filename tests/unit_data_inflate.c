/*
 * unit_data_inflate.c: both engines of data/inflate.h give what was packed, whole and in pieces; what they say of files that
 * are damaged, cut off or followed by something; and on files with random damage they agree.
 */
#include "base/rng.h"
#include "data/input.h"
#include "data_util.h"

static const struct mw_inflate_ops *const engines[] = {
	&mw_inflate_zlib,
#ifdef HAVE_ISAL
	&mw_inflate_isal,
#endif
};
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

#define CONTENT ((size_t)3 << 20)
#define ROOM    (CONTENT + (CONTENT >> 2))
/* What inflate_isal.c reads at once, a multiple of what zlib does. */
#define CHUNK ((size_t)1 << 17)

static unsigned char content[CONTENT], file[ROOM], bad[ROOM], got[CONTENT + 1], other[CONTENT + 1];

/* Text like LIBSVM's: it has matches near and far, and literals. */
static int make_content(void **state)
{
	struct mw_rng rng;
	mw_rng_init(&rng, 20261001, 1);
	for (size_t n = 0; n < CONTENT;) {
		char line[64];
		int m = snprintf(line, sizeof(line), mw_rng_below(&rng, 12) ? " %u:%.5g" : "\n%u %.2g",
			(unsigned)mw_rng_below(&rng, 47236), mw_rng_uniform(&rng));
		size_t k = CONTENT - n < (size_t)m ? CONTENT - n : (size_t)m;
		memcpy(content + n, line, k);
		n += k;
	}
	return make_dir(state);
}

/* A member of n bytes of content from `from` on, appended to `file` behind `at` bytes. Returns the bytes there are now. */
static size_t pack(size_t at, size_t from, size_t n, int level, int strategy, gz_header *head)
{
	z_stream z = { .next_in = content + from, .avail_in = (uInt)n };
	z.next_out = file + at;
	z.avail_out = (uInt)(ROOM - at);
	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, strategy), Z_OK);
	if (head)
		assert_int_equal(deflateSetHeader(&z, head), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(deflateEnd(&z), Z_OK);
	return ROOM - z.avail_out;
}

/* All that an engine makes of a file, asked for `piece` bytes at a time: the count, or a negative code. */
static int64_t inflate_path(const struct mw_inflate_ops *e, const char *path, size_t piece,
	unsigned char *out, struct mw_err *err)
{
	struct mw_input in;
	int64_t n = 0, r = 1;
	double progress = 0;
	if (mw_input_open(&in, path, err) < 0)
		return err->code;
	in.inflate = e;
	while (r > 0) {
		size_t room = CONTENT + 1 - (size_t)n;
		r = mw_input_read(&in, out + n, piece < room ? piece : room, err);
		n += r > 0 ? r : 0;
		assert_true(mw_input_progress(&in) >= progress && mw_input_progress(&in) <= 1);
		progress = mw_input_progress(&in);
	}
	assert_true(r < 0 || in.ended);
	mw_input_close(&in);
	return r < 0 ? r : n;
}

static void gives(const char *path, const unsigned char *want, size_t n)
{
	static const size_t pieces[] = { 1 << 20, 4096, 70001, CONTENT };
	for (size_t e = 0; e < ENGINES; e++)
		for (size_t p = 0; p < (n < 65536 ? 1 : sizeof(pieces) / sizeof(pieces[0])); p++) {
			struct mw_err err = { 0 };
			int64_t m = inflate_path(engines[e], path, pieces[p], got, &err);
			if (m != (int64_t)n || memcmp(got, want, n))
				fail_msg("%s, %s in pieces of %zu: %lld of %zu bytes, %s", path,
					engines[e]->name, pieces[p], (long long)m, n, err.msg);
		}
}

static void refuses(size_t n, const char *why)
{
	char want[700];
	const char *path = write_bytes("bad", bad, n);
	snprintf(want, sizeof(want), "%s: the gzip file %s", path, why);
	for (size_t e = 0; e < ENGINES; e++) {
		struct mw_err err = { 0 };
		assert_int_equal(inflate_path(engines[e], path, CONTENT, got, &err), MW_EDATA);
		assert_string_equal(err.msg, want);
	}
}

static void what_was_packed(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 257, 32768, 65536, 65537, 300000, CONTENT };
	static const int level[] = { 0, 1, 6, 9, 6, 6, 6 };
	static const int strategy[] = { 0, 0, 0, 0, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE };
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t k = 0; k < sizeof(level) / sizeof(level[0]); k++) {
			size_t n = pack(0, 0, sizes[i], level[k], strategy[k], NULL);
			gives(write_bytes("packed", file, n), content, sizes[i]);
		}
	/* a byte at a time */
	write_bytes("packed", file, pack(0, 0, 100000, 6, 0, NULL));
	for (size_t e = 0; e < ENGINES; e++) {
		struct mw_err err = { 0 };
		assert_int_equal(inflate_path(engines[e], test_path("packed"), 1, got, &err), 100000);
		assert_memory_equal(got, content, 100000);
	}
}

/* The data sets of the repository, that is Python's and gzip's files, beside zlib's own loop. */
static void real_files(void **state)
{
	static const char *const names[] = { "fashion-test-images-idx3-ubyte.gz",
		"fashion-test-labels-idx1-ubyte.gz", "fashion-train-images-idx3-ubyte.gz",
		"fashion-train-labels-idx1-ubyte.gz", "spam-test.svm.gz", "spam-train.svm.gz" };
	const char *top = getenv("MW_SRCDIR");
	(void)state;
	for (size_t i = 0; i < ENGINES * sizeof(names) / sizeof(names[0]); i++) {
		struct mw_input in;
		struct mw_err err = { 0 };
		char path[1024];
		gzFile f;
		int n;
		snprintf(path, sizeof(path), "%s/data/%s", top ? top : ".", names[i / ENGINES]);
		f = gzopen(path, "rb");
		assert_non_null(f);
		assert_int_equal(mw_input_open(&in, path, &err), 0);
		in.inflate = engines[i % ENGINES];
		do {
			n = gzread(f, other, CONTENT);
			assert_int_equal(mw_input_read(&in, got, CONTENT, &err), n);
			assert_memory_equal(got, other, (size_t)n);
		} while (n > 0);
		assert_true(in.ended && mw_input_progress(&in) == 1);
		mw_input_close(&in);
		gzclose(f);
	}
}

static void members(void **state)
{
	Bytef extra[300] = "extra";
	gz_header head = {
		.name = (Bytef *)"name", .comment = (Bytef *)"comment", .extra = extra, .hcrc = 1
	};
	size_t n = 0, bytes = 0;
	(void)state;
	head.extra_len = sizeof(extra);
	for (int i = 0; i < 40; i++) {
		size_t m = i % 5 == 4 ? 0 : (size_t)i * 1700;
		n = pack(n, bytes, m, i % 10, 0, i % 3 ? NULL : &head);
		bytes += m;
	}
	gives(write_bytes("members", file, n), content, bytes);
	/* what gzread takes for the end */
	memset(file + n, 0, 5000);
	gives(write_bytes("zeros", file, n + 5000), content, bytes);
	gives(write_bytes("zeros", file, n + 1), content, bytes);
	memcpy(file + n, "\x1f\x8c", 3);
	gives(write_bytes("garbage", file, n + 1), content, bytes);
	gives(write_bytes("garbage", file, n + 3), content, bytes);
	/* and what it takes for another member */
	memcpy(bad, file, n);
	memcpy(bad + n, "\x1f\x8b\x08\0", 4);
	refuses(n + 2, "ends too early; it is cut off: fetch it again");
	refuses(n + 3, "ends too early; it is cut off: fetch it again");
	refuses(n + 4, "ends too early; it is cut off: fetch it again");
	bad[n + 2] = 7;
	refuses(n + 4, "is damaged (unknown compression method); fetch it again");
}

/* Data, trailers and headers that lie across the end of what is read at once. */
static void across_chunks(void **state)
{
	static Bytef name[CHUNK];
	gz_header head = { .name = name };
	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	for (size_t before = 0; before < 60; before++) {
		size_t n, edge = CHUNK - before;
		/* a header of 10 bytes, the name with its zero, and data and trailer that end at 60 and fewer bytes before the edge */
		name[edge - 100] = 0;
		n = pack(0, 0, 40, 6, 0, &head);
		name[edge - 100] = 'n';
		n = pack(n, 40, 300, 6, 0, NULL);
		gives(write_bytes("edge", file, n), content, 340);
	}
}

static void damage(void **state)
{
	gz_header head = { .name = (Bytef *)"name", .hcrc = 1 };
	size_t n = pack(0, 0, 200000, 6, 0, &head);
	(void)state;
#define BREAK(at, with, why)                                        \
	do {                                                        \
		memcpy(bad, file, n);                               \
		bad[at] ^= (with);                                  \
		refuses(n, "is damaged (" why "); fetch it again"); \
	} while (0)
	BREAK(2, 1, "unknown compression method");
	BREAK(3, 0x20, "unknown header flags set");
	BREAK(4, 1, "header crc mismatch");
	BREAK(n - 8, 1, "incorrect data check");
	BREAK(n - 1, 0x80, "incorrect length check");
	memcpy(bad, file, n);
	for (size_t m = 2; m < n; m += m < 40 || m > n - 20 ? 1 : 4093)
		refuses(m, "ends too early; it is cut off: fetch it again");
	/* a fixed block whose first symbol looks 1 byte back, and a block of the type that there is none of */
	n = pack(0, 0, 0, 6, Z_FIXED, NULL);
	memcpy(file + 10, "\x03\x02\0\0", 4);
	BREAK(0, 0, "invalid distance too far back");
}

/*
 * One or two members, a few of their bits turned, some files cut off. Returns the file's length; `other` has what was
 * packed, *bytes of it.
 */
static size_t random_file(struct mw_rng *rng, int i, size_t *bytes)
{
	size_t length = mw_rng_below(rng, i % 16 ? 3000 : 200000), from = mw_rng_below(rng, CONTENT - length);
	size_t n = pack(0, from, length, (int)mw_rng_below(rng, 10), (int)mw_rng_below(rng, 5), NULL),
	       more = 0;
	memcpy(other, content + from, length);
	if (i % 2) {
		more = mw_rng_below(rng, 500);
		memcpy(other + length, content, more);
		n = pack(n, 0, more, 6, 0, NULL);
	}
	*bytes = length + more;
	for (uint64_t k = mw_rng_below(rng, 4); k--;) {
		/* the heads of blocks are a small part of them, and the most delicate */
		size_t at = mw_rng_below(rng, i % 4 && n > 100 ? 100 : n);
		file[at] ^= (unsigned char)(1u << mw_rng_below(rng, 8));
	}
	memcpy(file, "\x1f\x8b", 2);
	return mw_rng_below(rng, 8) ? n : 2 + mw_rng_below(rng, n - 2);
}

/*
 * Each engine gives what was packed, or the first of two members if the second doesn't begin like one any more, or an
 * error. They differ in one thing: zlib refuses codes that are incomplete or too many also if no symbol of the data uses
 * them, and ISA-L reads on; the content has to be right then by its checksum and length, and is.
 */
static void random_damage(void **state)
{
	int rounds = getenv("MW_LONG") ? 100000 : 3000, whole = 0, faults = 0, lenient = 0;
	struct mw_rng rng;
	(void)state;
	mw_rng_init(&rng, 20261001, 2);
	for (int i = 0; i < rounds; i++) {
		size_t bytes;
		size_t n = random_file(&rng, i, &bytes);
		const char *path = write_bytes("random", file, n);
		int64_t first = 0;
		for (size_t e = 0; e < ENGINES; e++) {
			struct mw_err err = { 0 };
			int64_t m = inflate_path(engines[e], path, i % 3 ? CONTENT : 1000, got, &err);
			if (m > (int64_t)bytes || (m > 0 && memcmp(got, other, (size_t)m)))
				fail_msg("round %d: %s gives other bytes", i, engines[e]->name);
			if (e && m != first && (m != (int64_t)bytes || first >= 0))
				fail_msg("round %d: zlib gives %lld, %s %lld; %s", i, (long long)first,
					engines[e]->name, (long long)m, err.msg);
			lenient += e && m != first;
			whole += m >= 0;
			faults += m < 0;
			first = e ? first : m;
		}
	}
	assert_true(whole > rounds / 8 && faults > rounds / 4);
	assert_true(lenient < rounds / 50);
	if (getenv("MW_LONG"))
		print_message("# %d whole, %d faults, %d that zlib alone refuses\n", whole, faults, lenient);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_packed),
		cmocka_unit_test(real_files),
		cmocka_unit_test(members),
		cmocka_unit_test(across_chunks),
		cmocka_unit_test(damage),
		cmocka_unit_test(random_damage),
	};
	return cmocka_run_group_tests_name("data inflate", tests, make_content, remove_dir);
}
