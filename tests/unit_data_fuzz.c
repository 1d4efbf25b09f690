/* unit_data_fuzz.c: valid files with seeded random damage load or fail with a message, but never crash. */
#include "base/rng.h"
#include "data_util.h"

#define ROUNDS 2000

static const char pieces[][12] = { ":", " ", "\n", "#", "qid:1", "1e400", "nan", "\t", "\r\n", "0", "-", "+",
	".", "e", "4294967294", "99999999999", "1:1", "-1", "\x00\x01", "0:" };

/* Replace, cut out, insert or truncate, one to four times. Returns the new length, below room. */
static size_t damage(struct mw_rng *rng, unsigned char *b, size_t n, size_t room)
{
	for (uint64_t k = 1 + mw_rng_below(rng, 4); k--;) {
		size_t at = (size_t)mw_rng_below(rng, n + 1), m = (size_t)mw_rng_below(rng, 9);
		const char *piece = pieces[mw_rng_below(rng, sizeof(pieces) / sizeof(pieces[0]))];
		size_t length = piece[0] ? strlen(piece) : 2;
		switch (mw_rng_below(rng, 5)) {
		case 0:
			if (at < n)
				b[at] = (unsigned char)mw_rng_next(rng);
			break;
		case 1:
			m = m > n - at ? n - at : m;
			memmove(b + at, b + at + m, n - at - m);
			n -= m;
			break;
		case 2: n = mw_rng_below(rng, 20) ? n : at; break;
		default:
			if (n + length > room)
				break;
			memmove(b + at + length, b + at, n - at);
			memcpy(b + at, piece, length);
			n += length;
		}
	}
	return n;
}

/* What the header promises of any data set that was loaded. */
static void check_invariants(const struct mw_dataset *d)
{
	assert_true(d->rows > 0 && d->features > 0);
	for (uint64_t r = 0; d->kind == MW_X_CSR && r < d->rows; r++)
		for (uint64_t i = d->row_ptr[r]; i < d->row_ptr[r + 1]; i++)
			assert_true(d->col[i] < d->features &&
				    (i == d->row_ptr[r] || d->col[i] > d->col[i - 1]) &&
				    __builtin_isfinite(d->val[i]));
	for (uint64_t r = 0; r < d->rows; r++)
		assert_true(d->classes == 2 ? d->y[r] == -1 || d->y[r] == 1
					    : !d->classes || (d->y[r] >= 0 && d->y[r] < (float)d->classes));
}

static int load_any(const char *path, struct mw_rng *rng)
{
	struct mw_data_request req = { .path = path, .threads = 1 + (int)mw_rng_below(rng, 3) };
	struct mw_dataset *d = NULL;
	struct mw_err err = { 0 };
	int ret;
	req.index_base = (enum mw_index_base)mw_rng_below(rng, 3);
	req.label_kind = (enum mw_label_kind)mw_rng_below(rng, 3);
	req.features = mw_rng_below(rng, 4) ? 0 : 30;
	ret = mw_dataset_load(&req, &d, &err);
	if (ret == 0)
		check_invariants(d);
	else
		assert_true(ret < 0 && ret == err.code && err.msg[0] && !d);
	mw_dataset_free(d);
	return ret == 0;
}

static size_t valid_text(struct mw_rng *rng, char *text)
{
	size_t n = 0;
	for (int r = 0; r < 30; r++) {
		n += (size_t)sprintf(text + n, "%s", r % 3 ? "+1" : "-1");
		for (int i = 1 + (int)mw_rng_below(rng, 3); i < 30; i += 1 + (int)mw_rng_below(rng, 9))
			n += (size_t)sprintf(text + n, " %d:%.6g", i, mw_rng_uniform(rng));
		n += (size_t)sprintf(text + n, r % 7 ? "\n" : " # c\r\n");
	}
	return n;
}

static void libsvm(void **state)
{
	static unsigned char text[16384], bad[16384];
	struct mw_rng rng;
	size_t n, m;
	int loaded = 0;
	(void)state;
	mw_rng_init(&rng, 20260930, 3);
	n = valid_text(&rng, (char *)text);
	for (int i = 0; i < ROUNDS; i++) {
		memcpy(bad, text, n);
		m = damage(&rng, bad, n, sizeof(bad));
		loaded += load_any(i % 4 ? write_bytes("f", bad, m) : write_gzip("f", bad, m), &rng);
	}
	assert_in_range(loaded, ROUNDS / 50, ROUNDS - 1); /* both ways are taken */
}

static void damaged_gzip(void **state)
{
	static unsigned char text[16384], gz[16384], bad[16384];
	struct mw_rng rng;
	size_t n, m;
	FILE *f;
	(void)state;
	mw_rng_init(&rng, 20260930, 4);
	n = valid_text(&rng, (char *)text);
	f = fopen(write_gzip("f", text, n), "rb");
	assert_non_null(f);
	n = fread(gz, 1, sizeof(gz), f);
	fclose(f);
	for (int i = 0; i < ROUNDS / 10; i++) {
		memcpy(bad, gz, n);
		m = damage(&rng, bad, n, sizeof(bad));
		load_any(write_bytes("f", bad, m), &rng);
	}
}

static void idx(void **state)
{
	static unsigned char images[4096], labels[256], bad[4096];
	static const unsigned char image_head[16] = { 0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 5, 0, 0, 0, 6 };
	static const unsigned char label_head[8] = { 0, 0, 8, 1, 0, 0, 0, 20 };
	struct mw_rng rng;
	(void)state;
	mw_rng_init(&rng, 20260930, 5);
	memcpy(images, image_head, 16);
	memcpy(labels, label_head, 8);
	for (int i = 0; i < 600; i++)
		images[16 + i] = (unsigned char)mw_rng_next(&rng);
	for (int i = 0; i < 20; i++)
		labels[8 + i] = (unsigned char)(i % 4);
	for (int i = 0; i < ROUNDS / 4; i++) {
		size_t m = 28;
		memcpy(bad, labels, m);
		if (i % 3 == 0)
			m = damage(&rng, bad, m, sizeof(bad));
		write_bytes("g-labels-idx1", bad, m);
		m = 616;
		memcpy(bad, images, m);
		/* most of the damage to the header */
		if (i % 3)
			bad[mw_rng_below(&rng, 16)] = (unsigned char)mw_rng_next(&rng);
		if (i % 3 == 2)
			m = damage(&rng, bad, m, sizeof(bad));
		load_any(i % 4 ? write_bytes("g-images-idx3", bad, m) : write_gzip("g-images-idx3", bad, m),
			&rng);
	}
}

/* CIFAR files and archives of them: damage anywhere in a few records, or in the headers of the archive. */
static void cifar(void **state)
{
	enum { RECORDS = 2, BYTES = RECORDS * 3073, TAR = 512 + 6656 + 1024, ROOM = TAR + 100 };
	static unsigned char tar[ROOM], bad[ROOM];
	struct mw_rng rng;
	unsigned sum = 0;
	(void)state;
	mw_rng_init(&rng, 20260930, 6);
	strcpy((char *)tar, "x/train.bin");
	sprintf((char *)tar + 124, "%011o", BYTES + RECORDS);
	tar[156] = '0';
	memcpy(tar + 257, "ustar", 6);
	memset(tar + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += tar[i];
	sprintf((char *)tar + 148, "%06o", sum);
	for (int i = 0; i < BYTES + RECORDS; i++)
		tar[512 + i] = i % 3074 < 2 ? (unsigned char)(i % 7) : (unsigned char)mw_rng_next(&rng);
	for (int i = 0; i < ROUNDS / 8; i++) {
		size_t m = TAR;
		memcpy(bad, tar, m);
		if (i % 3)
			bad[mw_rng_below(&rng, i % 3 == 1 ? 512 : m)] = (unsigned char)mw_rng_next(&rng);
		if (i % 5 == 0)
			m = damage(&rng, bad, m, sizeof(bad));
		load_any(i % 4 ? write_bytes("c.tar", bad, m) : write_gzip("c.tar", bad, m), &rng);
		load_any(write_bytes("train.bin", bad + 512, m > 600 ? m - 600 + i % 2 * 88 : m), &rng);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libsvm),
		cmocka_unit_test(damaged_gzip),
		cmocka_unit_test(idx),
		cmocka_unit_test(cifar),
	};
	return cmocka_run_group_tests_name("data fuzz", tests, make_dir, remove_dir);
}
