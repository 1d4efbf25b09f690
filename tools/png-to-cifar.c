/*
 * png-to-cifar.c: one PNG of many pictures, a row of 1024 pixels each (32 x 32, row-major), and a JSON array of labels, to a
 * file in CIFAR-10's binary form: a label and three planes of 1024 bytes. scripts/mixwild-data makes the set with it.
 *
 *   png-to-cifar PICTURES.png LABELS.json FIRST OUT.bin
 *
 * Picture i has label number FIRST + i. Exit status 0, 2 (usage) or 3 (what was read is not what is expected).
 */
#include <png.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PIXELS  1024
#define CLASSES 10
/* More pictures than this in one file are a damaged header. */
#define PICTURES_MAX 1000000

static void die(int status, const char *fmt, ...) __attribute__((noreturn, format(printf, 2, 3)));
static void die(int status, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("png-to-cifar: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(status);
}

static void png_fault(png_structp png, png_const_charp message)
{
	die(3, "%s: %s", (const char *)png_get_error_ptr(png), message);
}

/* Only silence: what matters is an error. */
static void png_notice(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static json_t *read_labels(const char *path)
{
	json_error_t error;
	json_t *labels = json_load_file(path, 0, &error);
	if (!labels)
		die(3, "%s: line %d: %s", path, error.line, error.text);
	if (!json_is_array(labels))
		die(3, "%s: this is no array of labels", path);
	return labels;
}

static unsigned char label_at(const json_t *labels, const char *path, size_t i)
{
	const json_t *label = json_array_get(labels, i);
	json_int_t value = json_integer_value(label);
	if (!json_is_integer(label) || value < 0 || value >= CLASSES)
		die(3, "%s: label %zu is missing or none of 0 to %d", path, i, CLASSES - 1);
	return (unsigned char)value;
}

/* The header; returns the number of pictures. */
static png_uint_32 open_pictures(const char *path, FILE *f, png_structp *png, png_infop *info)
{
	*png = png_create_read_struct(PNG_LIBPNG_VER_STRING, (void *)(size_t)path, png_fault, png_notice);
	*info = *png ? png_create_info_struct(*png) : NULL;
	if (!*info)
		die(4, "out of memory");
	png_init_io(*png, f);
	png_read_info(*png, *info);
	png_uint_32 rows = png_get_image_height(*png, *info);
	if (png_get_image_width(*png, *info) != PIXELS || rows > PICTURES_MAX ||
		png_get_bit_depth(*png, *info) != 8 ||
		png_get_color_type(*png, *info) != PNG_COLOR_TYPE_RGB ||
		png_get_interlace_type(*png, *info) != PNG_INTERLACE_NONE)
		die(3, "%s: expected RGB of 8 bits, %d pixels wide, not interlaced", path, PIXELS);
	return rows;
}

static void write_record(FILE *f, unsigned char label, const unsigned char *rgb)
{
	static unsigned char record[1 + 3 * PIXELS];
	record[0] = label;
	for (int i = 0; i < PIXELS; i++)
		for (int c = 0; c < 3; c++)
			record[1 + c * PIXELS + i] = rgb[3 * i + c];
	fwrite(record, 1, sizeof(record), f);
}

static void convert(const char *pictures, const char *label_file, size_t first, const char *out)
{
	static unsigned char rgb[3 * PIXELS];
	json_t *labels = read_labels(label_file);
	FILE *from = fopen(pictures, "rb"), *to = from ? fopen(out, "wb") : NULL;
	png_structp png;
	png_infop info;
	if (!from || !to)
		die(3, "%s: cannot open", from ? out : pictures);
	png_uint_32 n = open_pictures(pictures, from, &png, &info);
	for (png_uint_32 i = 0; i < n; i++) {
		png_read_row(png, rgb, NULL);
		write_record(to, label_at(labels, label_file, first + i), rgb);
	}
	png_read_end(png, NULL);
	png_destroy_read_struct(&png, &info, NULL);
	fclose(from);
	if (ferror(to) | fclose(to))
		die(3, "%s: cannot write", out);
	json_decref(labels);
}

int main(int argc, char **argv)
{
	char *end;
	if (argc != 5)
		die(2, "usage: png-to-cifar PICTURES.png LABELS.json FIRST OUT.bin");
	unsigned long first = strtoul(argv[3], &end, 10);
	if (!*argv[3] || *end)
		die(2, "%s is no number", argv[3]);
	convert(argv[1], argv[2], first, argv[4]);
	return 0;
}
