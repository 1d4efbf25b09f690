/* unit_data_cifar.c: CIFAR's binary version from files, folders and archives made here: values, parts, every fault. */
#include "data_util.h"

#include <sys/stat.h>

#define REQ(...) (&(struct mw_data_request){ __VA_ARGS__ })

enum { PIXELS = 3072, TEN = 1 + PIXELS, HUNDRED = 2 + PIXELS };

static uint8_t pixel_of(int file, size_t record, size_t i)
{
	return (uint8_t)(file * 50 + (int)record * 7 + (int)i);
}

/* Records of file number `file`; CIFAR-10's labels are (file + record) % 10, CIFAR-100's fine ones 30 + record. */
static uint8_t *records(size_t label_bytes, int file, size_t n)
{
	uint8_t *bytes = malloc(n * (label_bytes + PIXELS)), *p = bytes;
	for (size_t r = 0; r < n; r++) {
		if (label_bytes == 2)
			*p++ = (uint8_t)(r % 20);
		*p++ = label_bytes == 2 ? (uint8_t)(30 + r) : (uint8_t)((size_t)file + r) % 10;
		for (size_t i = 0; i < PIXELS; i++)
			*p++ = pixel_of(file, r, i);
	}
	return bytes;
}

static void write_records(const char *name, size_t label_bytes, int file, size_t n)
{
	uint8_t *bytes = records(label_bytes, file, n);
	write_bytes(name, bytes, n * (label_bytes + PIXELS));
	free(bytes);
}

static const char *folder(const char *name)
{
	const char *path = test_path(name);
	mkdir(path, 0777);
	return path;
}

static void ten_folder(const char *name)
{
	char file[100];
	folder(name);
	for (int k = 1; k <= 5; k++) {
		snprintf(file, sizeof(file), "%s/data_batch_%d.bin", name, k);
		write_records(file, 1, k, 2);
	}
	snprintf(file, sizeof(file), "%s/test_batch.bin", name);
	write_records(file, 1, 6, 3);
}

static void check_train(const struct mw_dataset *d)
{
	assert_string_equal(d->format, "cifar");
	assert_true(d->rows == 10 && d->features == PIXELS && d->channels == 3);
	assert_true(d->image_rows == 32 && d->image_cols == 32 && d->classes == 10);
	assert_int_equal(d->file_bytes, 10 * TEN);
	for (uint64_t r = 0; r < 10; r++) {
		int file = (int)r / 2 + 1;
		assert_true(d->y[r] == (float)((file + (int)r % 2) % 10));
		for (size_t i = 0; i < PIXELS; i++)
			if (d->kind == MW_X_IMAGE)
				assert_int_equal(d->pixel[r * PIXELS + i], pixel_of(file, r % 2, i));
			else
				assert_true(d->x[r * d->ld + i] == (float)pixel_of(file, r % 2, i) / 255.0f);
	}
	for (int c = 0; c < 10; c++)
		assert_true(d->label_value[c] == c);
	assert_true(d->label_count[1] == 1 && d->label_count[2] == 2 && d->label_count[9] == 0);
}

static void folders(void **state)
{
	char path[600];
	(void)state;
	ten_folder("ten");
	strcpy(path, test_path("ten"));
	struct mw_dataset *d = load_ok(REQ(.path = path)),
			  *bytes = load_ok(REQ(.path = path, .keep_bytes = true));
	assert_int_equal(d->kind, MW_X_DENSE);
	assert_int_equal(bytes->kind, MW_X_IMAGE);
	check_train(d);
	check_train(bytes);
	/* the test part, scaled as the training set */
	struct mw_dataset *test = load_ok(REQ(.path = path, .keep_bytes = true, .like = bytes));
	assert_true(
		test->rows == 3 && test->y[0] == 6 && test->y[2] == 8 && test->pixel[0] == pixel_of(6, 0, 0));
	assert_true(
		test->pixel_mean[2] == bytes->pixel_mean[2] && test->pixel_scale[0] == bytes->pixel_scale[0]);
	mw_dataset_free(test);
	mw_dataset_free(bytes);
	remove(test_path("ten/data_batch_3.bin"));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": data_batch_3.bin is missing; without it this is no whole CIFAR-10 training set");
	remove(test_path("ten/test_batch.bin"));
	load_fails(REQ(.path = path, .like = d), MW_EDATA, path,
		": test_batch.bin is missing; without it this is no whole CIFAR-10 test set");
	load_fails(REQ(.path = folder("empty")), MW_EDATA, test_path("empty"),
		": is a directory; give a data file in it (CIFAR's folder is one with data_batch_1.bin or "
		"train.bin in "
		"it)");
	mw_dataset_free(d);
}

static void hundred(void **state)
{
	char path[600];
	(void)state;
	folder("hundred");
	write_records("hundred/train.bin", 2, 0, 30);
	write_records("hundred/test.bin", 2, 1, 2);
	strcpy(path, test_path("hundred"));
	struct mw_dataset *fine = load_ok(REQ(.path = path, .keep_bytes = true));
	struct mw_dataset *coarse = load_ok(REQ(.path = path, .keep_bytes = true, .coarse = true));
	struct mw_dataset *test = load_ok(REQ(.path = path, .keep_bytes = true, .like = coarse));
	assert_true(
		fine->rows == 30 && fine->classes == 100 && fine->y[29] == 59 && fine->label_count[59] == 1);
	assert_true(coarse->classes == 20 && coarse->y[29] == 9 && coarse->label_count[9] == 2);
	assert_true(coarse->pixel[PIXELS + 5] == pixel_of(0, 1, 5));
	assert_true(test->classes == 20 && test->rows == 2 && test->y[1] == 1);
	mw_dataset_free(test);
	ten_folder("again");
	load_fails(REQ(.path = test_path("again"), .like = fine), MW_EDATA, test_path("again"),
		": CIFAR-10 has 10 classes, but the training set has 100");
	load_fails(REQ(.path = test_path("again"), .coarse = true), MW_EUSAGE, test_path("again"),
		": this is CIFAR-10; only CIFAR-100 has coarse labels");
	load_fails(REQ(.path = "synth:images,rows=4,size=4", .coarse = true), MW_EUSAGE,
		"synth:images,rows=4,size=4", ": only CIFAR-100 has coarse labels");
	mw_dataset_free(coarse);
	mw_dataset_free(fine);
}

/* ---- archives */

struct archive {
	uint8_t *bytes;
	size_t n;
};

static void append(struct archive *a, const void *bytes, size_t n)
{
	a->bytes = realloc(a->bytes, a->n + n + 512);
	memcpy(a->bytes + a->n, bytes, n);
	a->n += n;
}

/* One member as tar writes it: header, content, zeros up to a whole block. */
static void member(struct archive *a, const char *name, char type, const void *bytes, size_t n)
{
	uint8_t head[512] = { 0 }, zero[512] = { 0 };
	unsigned sum = 0;
	snprintf((char *)head, 100, "%s", name);
	snprintf((char *)head + 100, 8, "0000644");
	snprintf((char *)head + 124, 12, "%011o", (unsigned)n);
	head[156] = (uint8_t)type;
	memcpy(head + 257, "ustar\00000", 8);
	memset(head + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += head[i];
	snprintf((char *)head + 148, 8, "%06o", sum);
	append(a, head, 512);
	append(a, bytes, n);
	append(a, zero, (512 - n % 512) % 512);
}

static struct archive ten_archive(const char *skip)
{
	struct archive a = { 0 };
	uint8_t zero[1024] = { 0 };
	char name[100];
	member(&a, "cifar-10-batches-bin/", '5', "", 0);
	member(&a, "cifar-10-batches-bin/readme.html", '0', "see there", 9);
	for (int k = 6; k >= 1; k--) { /* in any order */
		snprintf(name, sizeof(name), "data_batch_%d.bin", k);
		if (k == 6)
			strcpy(name, "test_batch.bin");
		if (!strcmp(name, skip))
			continue;
		char path[200];
		snprintf(path, sizeof(path), "cifar-10-batches-bin/%s", name);
		uint8_t *bytes = records(1, k, k == 6 ? 3 : 2);
		member(&a, path, '0', bytes, (size_t)TEN * (k == 6 ? 3 : 2));
		free(bytes);
	}
	append(&a, zero, sizeof(zero));
	return a;
}

static void archives(void **state)
{
	char path[600];
	(void)state;
	struct archive a = ten_archive("");
	for (int gz = 0; gz < 2; gz++) {
		strcpy(path, gz ? write_gzip("c.tar.gz", a.bytes, a.n) : write_bytes("c.tar", a.bytes, a.n));
		struct mw_dataset *d = load_ok(REQ(.path = path, .keep_bytes = true));
		check_train(d);
		struct mw_dataset *test = load_ok(REQ(.path = path, .keep_bytes = true, .like = d));
		assert_true(test->rows == 3 && test->y[1] == 7);
		mw_dataset_free(test);
		mw_dataset_free(d);
	}
	/* cut off within a member, and between header and padding */
	strcpy(path, write_gzip("c.tar.gz", a.bytes, a.n - 1024 - 3000));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": data_batch_1.bin: the archive ends within this file; it is cut off: fetch it again");
	strcpy(path, write_gzip("c.tar.gz", a.bytes, 3 * 512 + 40 * 512));
	struct mw_err err = { 0 };
	struct mw_dataset *none = NULL;
	assert_int_equal(mw_dataset_load(REQ(.path = path), &none, &err), MW_EDATA);
	assert_null(none);
	a.bytes[512 + 3] ^= 1; /* in a name */
	strcpy(path, write_gzip("c.tar.gz", a.bytes, a.n));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": the archive is damaged (checksum of a header); fetch it again");
	free(a.bytes);
	a = ten_archive("data_batch_4.bin");
	strcpy(path, write_gzip("c.tar.gz", a.bytes, a.n));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": data_batch_4.bin is missing in the archive; fetch it again");
	free(a.bytes);
	a = (struct archive){ 0 };
	member(&a, "x/data_batch_1.bin", '0', "", 0);
	member(&a, "y/data_batch_1.bin", '0', "", 0);
	strcpy(path, write_bytes("c.tar", a.bytes, a.n));
	load_fails(REQ(.path = path), MW_EDATA, path, ": the archive holds more than one data_batch_1.bin");
	free(a.bytes);
	a = (struct archive){ 0 };
	member(&a, "pictures/1.png", '0', "PNG", 3);
	strcpy(path, write_bytes("c.tar", a.bytes, a.n));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": no CIFAR in this archive (data_batch_1.bin and so on, or train.bin); unpack it and give "
		"the data file");
	free(a.bytes);
}

#define ADVICE                                                                                            \
	"mixwild reads the binary version: fetch cifar-10-binary.tar.gz or cifar-100-binary.tar.gz (or: " \
	"mixwild-data "                                                                                   \
	"cifar10)"

/* What people have who work in Python or Matlab. */
static void other_versions(void **state)
{
	char path[600];
	(void)state;
	strcpy(path, write_bytes("data_batch_1", "\200\2}q\1(U\13batch_label", 17));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": this is a Python pickle; if it is CIFAR, take its binary version (cifar-10-binary.tar.gz, "
		"or: "
		"mixwild-data cifar10)");
	folder("py");
	write_bytes("py/data_batch_1", "\200\2}q\1", 5);
	write_bytes("py/batches.meta", "\200\2}q\1", 5);
	load_fails(REQ(.path = test_path("py")), MW_EDATA, test_path("py"),
		": this is CIFAR's Python (pickle) version; " ADVICE);
	folder("mat");
	write_bytes("mat/train.mat", "MATLAB 5.0", 10);
	load_fails(REQ(.path = test_path("mat")), MW_EDATA, test_path("mat"),
		": this is CIFAR's Matlab version; " ADVICE);
	struct archive a = { 0 };
	member(&a, "cifar-10-batches-py/data_batch_1", '0', "\200\2}q\1", 5);
	strcpy(path, write_gzip("py.tar.gz", a.bytes, a.n));
	load_fails(REQ(.path = path), MW_EDATA, path, ": this is CIFAR's Python (pickle) version; " ADVICE);
	free(a.bytes);
}

static void single_files(void **state)
{
	char path[600];
	(void)state;
	uint8_t *ten = records(1, 1, 4), *hundred_bytes = records(2, 1, 4);
	struct mw_dataset *d = load_ok(REQ(.path = write_bytes("mine.bin", ten, 4 * TEN)));
	assert_true(d->rows == 4 && d->classes == 10 && d->y[3] == 4);
	mw_dataset_free(d);
	d = load_ok(REQ(.path = write_gzip("mine.bin.gz", hundred_bytes, 4 * HUNDRED)));
	assert_true(d->rows == 4 && d->classes == 100 && d->y[3] == 33);
	mw_dataset_free(d);
	strcpy(path, write_bytes("mine.bin", ten, 4 * TEN - 1));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": 12291 bytes are neither whole CIFAR-10 records (3073 bytes) nor CIFAR-100 records (3074); "
		"it is cut off, "
		"or other data");
	strcpy(path, write_bytes("data_batch_2.bin", ten, 2 * TEN + 5));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": 6151 bytes are no whole number of CIFAR-10 records (3073 bytes each); it is cut off or "
		"damaged: fetch it "
		"again");
	ten[2 * TEN] = 10;
	strcpy(path, write_bytes("test_batch.bin", ten, 4 * TEN));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": record 3 has the label 10, but CIFAR-10's go from 0 to 9; the file is damaged or of "
		"another form");
	hundred_bytes[HUNDRED] = 20;
	strcpy(path, write_bytes("train.bin", hundred_bytes, 4 * HUNDRED));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": record 2 has the coarse label 20, but CIFAR-100's go from 0 to 19; the file is damaged or "
		"of another "
		"form");
	strcpy(path, write_bytes("mine.bin", ten, TEN));
	load_fails(REQ(.path = path, .label_kind = MW_LABEL_REAL), MW_EUSAGE, path,
		": the labels are classes; leave --label-kind out");
	load_fails(REQ(.path = path, .features = 100), MW_EDATA, path,
		": images of 3072 pixels, but --features has 100 features");
	free(ten);
	free(hundred_bytes);
}

/* Text and IDX in a file named .bin stay what they are. */
static void not_cifar(void **state)
{
	(void)state;
	struct mw_dataset *d = load_ok(REQ(.path = write_text("text.bin", "1 1:2\n-1 2:1\n")));
	assert_string_equal(d->format, "libsvm");
	mw_dataset_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders),
		cmocka_unit_test(hundred),
		cmocka_unit_test(archives),
		cmocka_unit_test(other_versions),
		cmocka_unit_test(single_files),
		cmocka_unit_test(not_cifar),
	};
	return cmocka_run_group_tests_name("CIFAR", tests, make_dir, remove_dir);
}
