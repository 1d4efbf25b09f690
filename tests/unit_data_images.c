/* unit_data_images.c: images as bytes: normalisation, both layouts, crops and flips, and where the bytes come from. */
#include "data_util.h"

#include <math.h>

#include "base/mem.h"
#include "data/images.h"

#define REQ(...) (&(struct mw_data_request){ __VA_ARGS__ })

enum { ROWS = 5, COLS = 7, CHANNELS = 3, PLANE = ROWS * COLS, FEATURES = CHANNELS * PLANE, IMAGES = 4 };

/* Two sets of different bytes, mean and scale per channel set by hand. */
static struct mw_dataset hand_made(uint8_t *pixel)
{
	struct mw_dataset d = { .kind = MW_X_IMAGE,
		.rows = IMAGES,
		.features = FEATURES,
		.channels = CHANNELS,
		.image_rows = ROWS,
		.image_cols = COLS,
		.pixel = pixel,
		.pixel_mean = { 100, 50.5f, 7 },
		.pixel_scale = { 0.5f, 0.01f, 3 } };
	for (int i = 0; i < IMAGES * FEATURES; i++)
		pixel[i] = (uint8_t)(i * 37 + i / 256);
	return d;
}

/* What the definition says, a pixel at a time. */
static float pixel_of(const struct mw_dataset *d, uint64_t row, int c, int y, int x)
{
	if (y < 0 || y >= ROWS || x < 0 || x >= COLS)
		return 0;
	return ((float)d->pixel[row * FEATURES + (uint64_t)(c * PLANE + y * COLS + x)] - d->pixel_mean[c]) *
	       d->pixel_scale[c];
}

static size_t place(enum mw_image_layout layout, int c, int y, int x)
{
	return (size_t)(layout == MW_NCHW ? c * PLANE + y * COLS + x : (y * COLS + x) * CHANNELS + c);
}

/* Is `out` the row, shifted by (down, right) and perhaps mirrored? */
static bool is_view(const struct mw_dataset *d, uint64_t row, enum mw_image_layout layout, const float *out,
	int down, int right, bool mirrored)
{
	for (int c = 0; c < CHANNELS; c++)
		for (int y = 0; y < ROWS; y++)
			for (int x = 0; x < COLS; x++)
				if (out[place(layout, c, y, mirrored ? COLS - 1 - x : x)] !=
					pixel_of(d, row, c, y + down, x + right))
					return false;
	return true;
}

static void as_they_are(void **state)
{
	static uint8_t pixel[IMAGES * FEATURES];
	static float out[3 * FEATURES];
	struct mw_dataset d = hand_made(pixel);
	const uint64_t row[] = { 2, 0, 2 };
	struct mw_batch b = { .data = &d, .row = row, .n = 3 };
	(void)state;
	for (int layout = MW_NCHW; layout <= MW_NHWC; layout++) {
		mw_batch_floats(&b, (enum mw_image_layout)layout, out);
		for (int i = 0; i < 3; i++)
			assert_true(is_view(
				&d, row[i], (enum mw_image_layout)layout, out + i * FEATURES, 0, 0, false));
	}
}

/*
 * Every image of an augmented batch is one of the 9 x 9 x 2 views, the same in both layouts and whenever asked; over many
 * keys each view comes up about as often (chi-square with 161 degrees of freedom: mean 161, standard deviation 18).
 */
static void crops_and_flips(void **state)
{
	static uint8_t pixel[IMAGES * FEATURES];
	static float a[IMAGES * FEATURES], b[IMAGES * FEATURES], again[IMAGES * FEATURES];
	static int count[9][9][2];
	enum { KEYS = 4000 };
	struct mw_dataset d = hand_made(pixel);
	const uint64_t row[IMAGES] = { 3, 1, 0, 2 };
	double chi = 0, expected = (double)KEYS * IMAGES / 162;
	(void)state;
	for (uint64_t key = 1; key <= KEYS; key++) {
		struct mw_batch batch = { .data = &d, .row = row, .n = IMAGES, .augment = key };
		mw_batch_floats(&batch, MW_NCHW, a);
		mw_batch_floats(&batch, MW_NHWC, b);
		mw_batch_floats(&batch, MW_NCHW, again);
		assert_memory_equal(a, again, sizeof(a));
		for (int i = 0; i < IMAGES; i++) {
			int found = 0;
			for (int v = 0; v < 162; v++) {
				int down = v / 18 - 4, right = v / 2 % 9 - 4;
				if (!is_view(&d, row[i], MW_NCHW, a + i * FEATURES, down, right, v & 1))
					continue;
				found++;
				assert_true(
					is_view(&d, row[i], MW_NHWC, b + i * FEATURES, down, right, v & 1));
				count[down + 4][right + 4][v & 1]++;
			}
			assert_int_equal(found, 1);
		}
	}
	for (int v = 0; v < 162; v++) {
		double off = count[v / 18][v / 2 % 9][v & 1] - expected;
		chi += off * off / expected;
	}
	assert_true(chi > 161 - 5 * 18 && chi < 161 + 5 * 18);
}

static void other_kinds(void **state)
{
	float x[2 * 16] = { 1, 2, 3 }, val[] = { 5, 6, 7 }, out[6];
	uint64_t row_ptr[] = { 0, 1, 3 };
	uint32_t col[] = { 2, 0, 1 };
	const uint64_t row[] = { 1, 0 };
	struct mw_dataset d = { .kind = MW_X_DENSE, .rows = 2, .features = 3, .x = x, .ld = 16 };
	struct mw_batch b = { .data = &d, .row = row, .n = 2, .augment = 9 };
	(void)state;
	x[16] = 4;
	mw_batch_floats(&b, MW_NHWC, out);
	assert_floats(out, (const float[]){ 4, 0, 0, 1, 2, 3 }, 6);
	d = (struct mw_dataset){
		.kind = MW_X_CSR, .rows = 2, .features = 3, .row_ptr = row_ptr, .col = col, .val = val
	};
	mw_batch_floats(&b, MW_NCHW, out);
	assert_floats(out, (const float[]){ 6, 7, 0, 0, 0, 5 }, 6);
}

/* Two images of 1 x 2, labels 3 and 5: bytes 10 20 30 40 have mean 25 and standard deviation sqrt(125). */
static void from_idx(void **state)
{
	static const unsigned char images[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 10, 20, 30,
		40 };
	static const unsigned char others[] = { 0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 200, 255 };
	static const unsigned char shape[] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 10, 20, 30,
		40 };
	static const unsigned char labels[] = { 0, 0, 8, 1, 0, 0, 0, 2, 3, 5 };
	char path[600];
	const uint64_t row[] = { 1, 0 };
	float out[4], s = (float)(1 / sqrt(125.0));
	(void)state;
	write_bytes("labels", labels, sizeof(labels));
	strcpy(path, write_bytes("images", images, sizeof(images)));
	struct mw_dataset *d = load_ok(REQ(.path = path, .keep_bytes = true));
	assert_int_equal(d->kind, MW_X_IMAGE);
	assert_null(d->x);
	assert_true(d->channels == 1 && d->image_rows == 1 && d->image_cols == 2 && d->features == 2);
	assert_true(d->pixel_mean[0] == 25 && d->pixel_scale[0] == s);
	struct mw_batch b = { .data = d, .row = row, .n = 2 };
	mw_batch_floats(&b, MW_NCHW, out);
	assert_floats(out, (const float[]){ 5 * s, 15 * s, -15 * s, -5 * s }, 4);
	/* the test set is scaled as the training set */
	write_bytes("t-labels", "\0\0\10\1\0\0\0\1\5", 9);
	strcpy(path, write_bytes("t-images", others, sizeof(others)));
	struct mw_dataset *test = load_ok(REQ(.path = path, .keep_bytes = true, .like = d));
	assert_true(test->pixel_mean[0] == 25 && test->pixel_scale[0] == s && test->pixel[1] == 255);
	mw_dataset_free(test);
	strcpy(path, write_bytes("images", shape, sizeof(shape)));
	load_fails(REQ(.path = path, .keep_bytes = true, .like = d), MW_EDATA, path,
		": images of 2 x 1 with 1 channels, but the training set's are 1 x 2 with 1");
	mw_dataset_free(d);
}

/* The bytes of synth:images are those of the same set as rows of floats, rounded. */
static void from_synth(void **state)
{
	const char *spec = "synth:images,rows=40,channels=2,size=9,classes=3,seed=5";
	struct mw_dataset *bytes = load_ok(REQ(.path = spec, .keep_bytes = true)),
			  *floats = load_ok(REQ(.path = spec));
	(void)state;
	assert_true(bytes->kind == MW_X_IMAGE && floats->kind == MW_X_DENSE && bytes->channels == 2);
	double sum = 0, square = 0;
	for (uint64_t r = 0; r < 40; r++) {
		assert_true(bytes->y[r] == floats->y[r]);
		for (uint32_t j = 0; j < bytes->features; j++)
			assert_int_equal(bytes->pixel[r * bytes->features + j],
				(int)floor(255 * (double)floats->x[r * floats->ld + j] + 0.5));
		for (uint32_t j = 81; j < 162; j++)
			sum += bytes->pixel[r * 162 + j];
	}
	double mean = sum / (40 * 81);
	for (uint64_t r = 0; r < 40; r++)
		for (uint32_t j = 81; j < 162; j++)
			square += (bytes->pixel[r * 162 + j] - mean) * (bytes->pixel[r * 162 + j] - mean);
	assert_float_equal(bytes->pixel_mean[1], mean, 1e-4);
	assert_float_equal(bytes->pixel_scale[1], 1 / sqrt(square / (40 * 81)), 1e-7);
	mw_dataset_free(bytes);
	mw_dataset_free(floats);
	load_fails(REQ(.path = "synth:images,rows=4,channels=5,size=9", .keep_bytes = true), MW_EDATA,
		"synth:images,rows=4,channels=5,size=9",
		": images of 5 channels; this model takes at most 4");
}

/* One colour only: nothing to divide by. */
static void flat(void **state)
{
	struct mw_dataset d = { .rows = 3, .channels = 1, .image_rows = 2, .image_cols = 2 };
	struct mw_err err;
	const uint64_t row[] = { 2 };
	float out[4];
	(void)state;
	assert_int_equal(mw_images_prepare(REQ(.path = "x", .keep_bytes = true), &d, &err), 0);
	mw_images_put(&d, 0, 3, (const uint8_t[12]){ 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9 });
	mw_images_finish(REQ(.path = "x"), &d);
	struct mw_batch b = { .data = &d, .row = row, .n = 1 };
	mw_batch_floats(&b, MW_NCHW, out);
	assert_floats(out, (const float[]){ 0, 0, 0, 0 }, 4);
	mw_free(d.pixel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_they_are),
		cmocka_unit_test(crops_and_flips),
		cmocka_unit_test(other_kinds),
		cmocka_unit_test(from_idx),
		cmocka_unit_test(from_synth),
		cmocka_unit_test(flat),
	};
	return cmocka_run_group_tests_name("images", tests, make_dir, remove_dir);
}
