/* unit_data_set.c: what is no data at all, and the split into training and validation rows. */
#include <sys/stat.h>

#include "data_util.h"

#define REQ(...) (&(struct mw_data_request){ __VA_ARGS__ })

static void refuses(const char *path, const char *message)
{
	load_fails(REQ(.path = path), MW_EDATA, path, message);
}

static void what_is_no_data(void **state)
{
	static const char html[] = "\n <!DOCTYPE html><html><body>404</body></html>";
	static const char page[] =
		": this is a web page, not data; the download has failed: fetch the file again";
	unsigned char gz[300], twice[400];
	uLongf n = sizeof(gz);
	const char *path;
	FILE *f;
	(void)state;
	refuses(test_path("nowhere"), ": cannot open: No such file or directory");
	refuses(test_dir, ": is a directory; give a data file in it (CIFAR's folder is one with "
			  "data_batch_1.bin or train.bin in it)");
	refuses(write_text("e", ""), ": the file is empty");
	refuses(write_gzip("e", "", 0), ": the gzip file holds an empty file");
	refuses(write_text("h.gz", html), page);
	refuses(write_text("h", "<HTML>x"), page);
	refuses(write_gzip("h", html, strlen(html)),
		": this is a web page, not data (compressed); the download has failed: fetch the file again");
	refuses(write_bytes("b",
			"\x7f"
			"ELF\0\1",
			6),
		": the file is neither LIBSVM text nor IDX nor CIFAR (first bytes: 7f 45 4c 46); convert it "
		"to one of "
		"them");
	refuses(write_bytes("z", "\x28\xb5\x2f\xfd\0", 5),
		": the file is compressed by zstd; run zstd -d on it first");
	refuses(write_bytes("z", "PK\3\4", 4),
		": the file is a zip archive; unpack it and give the data file in it");
	/* gzip of gzip, cut off gzip, damaged gzip */
	path = write_gzip("g", "1 1:1\n2 1:1\n", 12);
	f = fopen(path, "rb");
	n = fread(gz, 1, sizeof(gz), f);
	fclose(f);
	refuses(write_gzip("gg", gz, n), ": the file is compressed by gzip twice; run gunzip on it once");
	refuses(write_bytes("g", gz, n - 9), ": the gzip file ends too early; it is cut off: fetch it again");
	memcpy(twice, gz, n);
	twice[n - 8] ^= 1; /* the checksum */
	refuses(write_bytes("g", twice, n),
		": the gzip file is damaged (incorrect data check); fetch it again");
	assert_int_equal(mkfifo(test_path("fifo"), 0600), 0);
	refuses(test_path("fifo"),
		": is not a regular file; save the data to a file first (it is read more than once)");
}

/* Two gzip files joined are one, as gunzip has it. */
static void joined_gzip(void **state)
{
	unsigned char bytes[600];
	size_t n = 0;
	struct mw_dataset *d;
	(void)state;
	for (int i = 0; i < 2; i++) {
		FILE *f = fopen(write_gzip("part", i ? "3 2:1\n" : "1 1:1\n2 1:1\n", i ? 6 : 12), "rb");
		n += fread(bytes + n, 1, sizeof(bytes) - n, f);
		fclose(f);
	}
	d = load_ok(REQ(.path = write_bytes("joined", bytes, n)));
	assert_int_equal(d->rows, 3);
	mw_dataset_free(d);
}

static void check_split(uint64_t rows, double fraction, uint64_t n_val)
{
	struct mw_dataset d = { .rows = rows };
	struct mw_rows train, val;
	struct mw_err err = { 0 };
	uint64_t t = 0, v = 0;
	assert_int_equal(mw_rows_split(&d, fraction, 5, &train, &val, &err), 0);
	assert_int_equal(val.n, n_val);
	assert_int_equal(train.n, rows - n_val);
	for (uint64_t r = 0; r < rows; r++) { /* each row is the next of exactly one of the two */
		bool in_train = t < train.n && mw_rows_at(&train, t) == r,
		     in_val = v < val.n && mw_rows_at(&val, v) == r;
		assert_true(in_train != in_val);
		t += in_train;
		v += in_val;
	}
	mw_rows_fini(&train);
	mw_rows_fini(&val);
}

static void splits(void **state)
{
	(void)state;
	check_split(10, 0.3, 3);
	check_split(10, 0.25, 3); /* round half up */
	check_split(10, 0, 0);
	check_split(1, 0, 0);
	check_split(2, 0.5, 1);
	check_split(100003, 0.1, 10000);
	check_split(100003, 0.999, 99903);
}

static void split_is_seeded(void **state)
{
	struct mw_dataset d = { .rows = 1000 };
	struct mw_rows train[3], val[3];
	static const uint64_t seed[] = { 1, 1, 2 };
	uint64_t sum = 0;
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(mw_rows_split(&d, 0.2, seed[i], &train[i], &val[i], NULL), 0);
	assert_memory_equal(val[0].idx, val[1].idx, 200 * sizeof(uint64_t));
	assert_memory_not_equal(val[0].idx, val[2].idx, 200 * sizeof(uint64_t));
	for (uint64_t i = 0; i < 200; i++)
		sum += val[0].idx[i];
	/* spread over the rows: the mean of 200 of 1000 has a standard deviation of 18 */
	assert_in_range(sum / 200, 410, 590);
	for (int i = 0; i < 3; i++) {
		mw_rows_fini(&train[i]);
		mw_rows_fini(&val[i]);
	}
}

static void wrong_fractions(void **state)
{
	static const double fraction[] = { -0.1, 1, 2, 0.01, 0.99, 0.0 / 1.0 - 1e9 };
	struct mw_dataset d = { .rows = 10 };
	struct mw_rows train, val;
	(void)state;
	for (size_t i = 0; i < sizeof(fraction) / sizeof(fraction[0]); i++) {
		struct mw_err err = { 0 };
		assert_int_equal(mw_rows_split(&d, fraction[i], 1, &train, &val, &err), MW_EUSAGE);
		assert_true(err.msg[0] != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_data),
		cmocka_unit_test(joined_gzip),
		cmocka_unit_test(splits),
		cmocka_unit_test(split_is_seeded),
		cmocka_unit_test(wrong_fractions),
	};
	return cmocka_run_group_tests_name("data set", tests, make_dir, remove_dir);
}
