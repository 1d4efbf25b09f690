/* unit_data_idx.c: IDX images and labels from small files made here: values, names of label files, every fault. */
#include "data_util.h"

#define REQ(...) (&(struct mw_data_request){ __VA_ARGS__ })

/* Three images of 2 x 3 and their labels. */
static const unsigned char images[] = { 0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 2, 3, 4, 5, 255,
	254, 253, 128, 127, 64, 10, 20, 30, 40, 50, 60 };
static const unsigned char labels[] = { 0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 7 };

static void check_images(const struct mw_dataset *d)
{
	assert_string_equal(d->format, "idx");
	assert_int_equal(d->kind, MW_X_DENSE);
	assert_int_equal(d->rows, 3);
	assert_int_equal(d->features, 6);
	assert_int_equal(d->ld, 16);
	assert_int_equal((uintptr_t)d->x % 64, 0);
	assert_int_equal(d->image_rows, 2);
	assert_int_equal(d->image_cols, 3);
	for (size_t r = 0; r < 3; r++)
		for (size_t j = 0; j < 16; j++)
			assert_true(d->x[r * 16 + j] == (j < 6 ? (float)images[16 + r * 6 + j] / 255.0f : 0));
	assert_int_equal(d->classes, 2);
	assert_true(d->y[0] == 1 && d->y[1] == -1 && d->y[2] == 1);
	assert_true(d->label_value[0] == 0 && d->label_value[1] == 7 && d->label_count[0] == 1 &&
		    d->label_count[1] == 2);
}

/* Every way in which the two files are named. */
static void names(void **state)
{
	static const char *const pair[][2] = {
		{ "a-images-idx3-ubyte", "a-labels-idx1-ubyte" },
		{ "b-images-idx3-ubyte.gz", "b-labels-idx1-ubyte.gz" },
		{ "c-images-idx3-ubyte.gz", "c-labels-idx1-ubyte" },
		{ "d-images-idx3-ubyte", "d-labels-idx1-ubyte.gz" },
		{ "e-images.idx3-ubyte", "e-labels.idx1-ubyte" },
		{ "f-images.idx3-ubyte", "f-labels-idx1-ubyte" },
		{ "g-images-idx3-ubyte.gz", "g-labels.idx1-ubyte" },
		{ "images.bin", "labels.bin" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
		for (int gz = 0; gz < 4; gz++) {
			char path[512];
			struct mw_dataset *d;
			if (gz & 1)
				write_gzip(pair[i][1], labels, sizeof(labels));
			else
				write_bytes(pair[i][1], labels, sizeof(labels));
			strcpy(path, gz & 2 ? write_gzip(pair[i][0], images, sizeof(images))
					    : write_bytes(pair[i][0], images, sizeof(images)));
			d = load_ok(REQ(.path = path));
			check_images(d);
			mw_dataset_free(d);
		}
}

static void given_labels(void **state)
{
	char path[512];
	struct mw_dataset *d, *test;
	(void)state;
	strcpy(path, write_bytes("x.bin", images, sizeof(images)));
	d = load_ok(REQ(.path = path, .labels = write_bytes("y.bin", labels, sizeof(labels))));
	check_images(d);
	load_fails(REQ(.path = path), MW_EDATA, path,
		": no 'images' in the name to derive the label file's from; give --labels FILE");
	/* a test set with one class, mapped as in training */
	test = load_ok(REQ(.path = path, .like = d,
		.labels = write_bytes("y.bin", "\0\0\10\1\0\0\0\3\7\7\7", sizeof(labels))));
	assert_true(test->y[0] == 1 && test->label_count[0] == 0 && test->label_count[1] == 3);
	mw_dataset_free(test);
	mw_dataset_free(d);
}

/* A fault in the image file or the label file, as bytes replaced at a place or a length cut. */
static const struct {
	const char *message; /* %s: the other file */
	int in_labels;
	int at; /* byte that is replaced, or -1 */
	unsigned char byte;
	int length; /* of the file, 0: as it is */
} faults[] = {
	{ ": IDX elements of type 0d; only unsigned bytes (08) are supported", 0, 2, 0x0d, 0 },
	{ ": IDX with 4 dimensions; supported are 1 (labels), 2 and 3 (images)", 0, 3, 4, 0 },
	{ ": this IDX file holds labels; give the file of the images (...images-idx3-ubyte)", 0, 3, 1, 0 },
	{ ": the file ends within the IDX header; it is cut off: fetch it again", 0, -1, 0, 9 },
	{ ": the header says 3 images of 0 pixels; the file is damaged", 0, 15, 0, 0 },
	{ ": the file is longer than its header says; it is damaged: fetch it again", 0, 15, 2, 0 },
	{ ": 3 labels for the 2 images of %s; they don't belong together", 1, 1000 + 7, 2, 0 },
	{ ": not an IDX file: it begins with 01 00 08 01 instead of 00 00 08 and the number of dimensions", 1,
		0, 1, 0 },
	{ ": this IDX file has 3 dimensions, so it holds no labels", 1, 3, 3, 0 },
	{ ": the file ends within the labels; it is cut off: fetch it again", 1, -1, 0, 10 },
};

static void faulty_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		for (int gz = 0; gz < 2; gz++) {
			unsigned char x[sizeof(images)], y[64] = { 0 };
			char image_path[512], label_path[512], want[1000];
			int nx = sizeof(images), ny = sizeof(labels);
			memcpy(x, images, sizeof(images));
			memcpy(y, labels, sizeof(labels));
			ny = faults[i].in_labels && faults[i].at == 3 ? 24
								      : ny; /* room for a larger header */
			if (faults[i].at >= 1000)
				x[faults[i].at - 1000] = faults[i].byte;
			else if (faults[i].at >= 0)
				(faults[i].in_labels ? y : x)[faults[i].at] = faults[i].byte;
			if (faults[i].length)
				*(faults[i].in_labels ? &ny : &nx) = faults[i].length;
			strcpy(image_path, gz ? write_gzip("p-images-idx3", x, (size_t)nx)
					      : write_bytes("p-images-idx3", x, (size_t)nx));
			strcpy(label_path, gz ? write_gzip("p-labels-idx1", y, (size_t)ny)
					      : write_bytes("p-labels-idx1", y, (size_t)ny));
			if (strstr(faults[i].message, "%s")) {
				const char *at = strstr(faults[i].message, "%s");
				snprintf(want, sizeof(want), "%.*s%s%s", (int)(at - faults[i].message),
					faults[i].message, image_path, at + 2);
			} else {
				snprintf(want, sizeof(want), "%s", faults[i].message);
			}
			load_fails(REQ(.path = image_path), MW_EDATA,
				faults[i].in_labels ? label_path : image_path, want);
		}
}

static void cut_off_images(void **state)
{
	char path[512];
	(void)state;
	write_bytes("q-labels-idx1", labels, sizeof(labels));
	strcpy(path, write_bytes("q-images-idx3", images, sizeof(images) - 1));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": the file ends within the images; it is cut off: fetch it again");
	strcpy(path, write_bytes("q-images-idx3", images, 17));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": 17 bytes are too few for the 3 images of 6 pixels in its header; it is cut off: fetch it "
		"again");
	strcpy(path, write_gzip("q-images-idx3", images, sizeof(images) - 1));
	load_fails(REQ(.path = path), MW_EDATA, path,
		": the file ends within the images; it is cut off: fetch it again");
	unlink(test_path("q-labels-idx1"));
	{
		char want[700];
		snprintf(want, sizeof(want),
			": there is no label file %s/q-labels-idx1 (nor with .gz or '.' for '-'); give "
			"--labels FILE",
			test_dir);
		load_fails(REQ(.path = path), MW_EDATA, path, want);
	}
}

static void other_width(void **state)
{
	char path[512];
	(void)state;
	write_bytes("r-labels-idx1", labels, sizeof(labels));
	strcpy(path, write_bytes("r-images-idx3", images, sizeof(images)));
	load_fails(REQ(.path = path, .features = 7), MW_EDATA, path,
		": images of 6 pixels, but --features has 7 features");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(given_labels),
		cmocka_unit_test(faulty_files),
		cmocka_unit_test(cut_off_images),
		cmocka_unit_test(other_width),
	};
	return cmocka_run_group_tests_name("data idx", tests, make_dir, remove_dir);
}
