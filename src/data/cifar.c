/*
 * cifar.c: CIFAR-10 and CIFAR-100 in the binary version: records of a label (CIFAR-100: coarse, then fine) and three planes
 * of 32 x 32 bytes, red, green, blue, in a file, in a folder, or in the .tar.gz as it is published.
 *
 * A folder or archive stands for its training set, and where req->like says that a test set is wanted, for its test set.
 */
#include "data/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/images.h"
#include "data/input.h"
#include "data/labels.h"

#define SIDE        32
#define PIXELS      (3 * SIDE * SIDE)
#define BATCHES_MAX 5
#define GROW_BYTES  ((size_t)1 << 16)
#define TAR_BLOCK   512

static const struct variant {
	const char *name;
	uint32_t label_bytes, classes;
	int n_train;
	const char *train[BATCHES_MAX], *test; /* names without .bin */
} variants[] = {
	{ "CIFAR-10", 1, 10, 5,
		{ "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5" },
		"test_batch" },
	{ "CIFAR-100", 2, 100, 1, { "train" }, "test" },
};
#define N_VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* The content of one file; all owned. */
struct batch {
	char *name; /* for messages: a path, or ARCHIVE: MEMBER */
	uint8_t *bytes;
	size_t n;
};

struct cifar {
	const struct mw_data_request *req;
	const struct variant *v;
	struct batch batch[BATCHES_MAX];
	int n; /* batches wanted */
};

static void fini(struct cifar *c)
{
	for (int i = 0; i < BATCHES_MAX; i++) {
		free(c->batch[i].name);
		free(c->batch[i].bytes);
	}
}

static bool wants_test(const struct mw_data_request *req)
{
	return req->like != NULL;
}

/* The i-th file of the part that is wanted, NULL behind the last. */
static const char *wanted(const struct mw_data_request *req, const struct variant *v, int i)
{
	if (wants_test(req))
		return i == 0 ? v->test : NULL;
	return i < v->n_train ? v->train[i] : NULL;
}

static size_t record_bytes(const struct variant *v)
{
	return v->label_bytes + PIXELS;
}

/* ---- reading */

/* At most `limit` bytes (a tar member: exactly as many), into memory that grows as they come. b->name is set. */
static int read_bytes(struct mw_input *in, uint64_t limit, bool exact, struct batch *b, struct mw_err *err)
{
	size_t room = 0;
	while (b->n < limit) {
		if (b->n == room) {
			room = room ? 2 * room : GROW_BYTES;
			uint8_t *more = realloc(b->bytes, room);
			if (!more)
				MW_FAIL(err, RESOURCE, "out of memory: %s", b->name);
			b->bytes = more;
		}
		size_t want = room - b->n < limit - b->n ? room - b->n : (size_t)(limit - b->n);
		int64_t got = mw_input_read(in, b->bytes + b->n, want, err);
		if (got < 0)
			return (int)got;
		b->n += (size_t)got;
		if ((size_t)got < want)
			break;
	}
	if (exact && b->n < limit)
		MW_FAIL(err, DATA, "%s: the archive ends within this file; it is cut off: fetch it again",
			b->name);
	return 0;
}

/* path: owned by the batch from here on. */
static int read_file(char *path, struct batch *b, struct mw_err *err)
{
	struct mw_input in;
	if (!path)
		MW_FAIL(err, RESOURCE, "out of memory: name of a file");
	b->name = path;
	MW_TRY(mw_input_open(&in, path, err));
	int ret = read_bytes(&in, UINT64_MAX, false, b, err);
	mw_input_close(&in);
	return ret;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* Is it `stem` followed by `end`? */
static bool is_name(const char *name, const char *stem, const char *end)
{
	size_t n = strlen(stem);
	return !strncmp(name, stem, n) && !strcmp(name + n, end);
}

#define ADVICE                                                                                            \
	"mixwild reads the binary version: fetch cifar-10-binary.tar.gz or cifar-100-binary.tar.gz (or: " \
	"mixwild-data cifar10)"

static int refuse_other_version(const char *path, bool matlab, struct mw_err *err)
{
	MW_FAIL(err, DATA, "%s: this is CIFAR's %s version; " ADVICE, path,
		matlab ? "Matlab" : "Python (pickle)");
}

/* ---- a folder */

static bool in_folder(const char *folder, const char *stem, const char *end)
{
	char *path = mw_strprintf("%s/%s%s", folder, stem, end);
	struct stat st;
	bool there = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
	free(path);
	return there;
}

static bool any_in_folder(const char *folder, const struct variant *v, const char *end)
{
	bool any = in_folder(folder, v->test, end);
	for (int i = 0; i < v->n_train; i++)
		any = any || in_folder(folder, v->train[i], end);
	return any;
}

static int load_folder(struct cifar *c, struct mw_err *err)
{
	const char *path = c->req->path, *name;
	for (size_t k = 0; k < N_VARIANTS && !c->v; k++)
		if (any_in_folder(path, &variants[k], ".bin"))
			c->v = &variants[k];
	for (size_t k = 0; k < N_VARIANTS && !c->v; k++) {
		bool matlab = any_in_folder(path, &variants[k], ".mat");
		if (matlab || (any_in_folder(path, &variants[k], "") &&
				      (in_folder(path, "batches.meta", "") || in_folder(path, "meta", ""))))
			return refuse_other_version(path, matlab, err);
	}
	if (!c->v)
		MW_FAIL(err, DATA,
			"%s: is a directory; give a data file in it (CIFAR's folder is one with "
			"data_batch_1.bin or "
			"train.bin in it)",
			path);
	for (; (name = wanted(c->req, c->v, c->n)); c->n++)
		if (!in_folder(path, name, ".bin"))
			MW_FAIL(err, DATA, "%s: %s.bin is missing; without it this is no whole %s %s set",
				path, name, c->v->name, wants_test(c->req) ? "test" : "training");
	for (int i = 0; i < c->n; i++)
		MW_TRY(read_file(
			mw_strprintf("%s/%s.bin", path, wanted(c->req, c->v, i)), &c->batch[i], err));
	return 0;
}

/* ---- an archive: ustar as POSIX defines it; of the extensions, long names are passed over */

struct tar {
	struct mw_input in;
	const char *path;
	char name[TAR_BLOCK]; /* of the current member, without its folder */
	uint64_t size;
	bool regular;
};

/* Octal digits, spaces and zero bytes around them. */
static uint64_t octal(const unsigned char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++)
		if (p[i] >= '0' && p[i] <= '7')
			v = v * 8 + (uint64_t)(p[i] - '0');
		else if (p[i] != ' ' || v)
			break;
	return v;
}

static bool sum_is_right(const unsigned char *block)
{
	uint64_t sum = 0;
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : block[i];
	return sum == octal(block + 148, 8);
}

/* The next member's header; 1: there is one, 0: the end. */
static int tar_next(struct tar *t, struct mw_err *err)
{
	unsigned char block[TAR_BLOCK];
	char name[101] = "";
	int64_t got = mw_input_read(&t->in, block, sizeof(block), err);
	if (got < 0)
		return (int)got;
	if (got < TAR_BLOCK || !block[0])
		return 0;
	if (!sum_is_right(block))
		MW_FAIL(err, DATA, "%s: the archive is damaged (checksum of a header); fetch it again",
			t->path);
	memcpy(name, block, 100);
	strcpy(t->name, base_of(name));
	t->size = octal(block + 124, 12);
	t->regular = block[156] == '0' || !block[156];
	return 1;
}

static int tar_skip(struct tar *t, uint64_t n, struct mw_err *err)
{
	char junk[16384];
	while (n > 0) {
		size_t want = n < sizeof(junk) ? (size_t)n : sizeof(junk);
		int64_t got = mw_input_read(&t->in, junk, want, err);
		if (got < 0)
			return (int)got;
		if ((size_t)got < want)
			MW_FAIL(err, DATA, "%s: the archive ends too early; it is cut off: fetch it again",
				t->path);
		n -= want;
	}
	return 0;
}

/* Which variant's and which wanted file is this member? -1: none. */
static int find_member(const struct cifar *c, const char *name, const char *end, const struct variant **v)
{
	for (size_t k = 0; k < N_VARIANTS; k++)
		for (int i = 0; wanted(c->req, &variants[k], i); i++)
			if (is_name(name, wanted(c->req, &variants[k], i), end)) {
				*v = &variants[k];
				return i;
			}
	return -1;
}

static int tar_member(struct cifar *c, struct tar *t, bool *other, bool *matlab, struct mw_err *err)
{
	const struct variant *v = NULL, *unused;
	int i = find_member(c, t->name, ".bin", &v);
	*matlab = *matlab || find_member(c, t->name, ".mat", &unused) >= 0;
	*other = *other || *matlab || find_member(c, t->name, "", &unused) >= 0;
	if (i < 0)
		return tar_skip(t, (t->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK, err);
	if ((c->v && c->v != v) || c->batch[i].name)
		MW_FAIL(err, DATA, "%s: the archive holds more than one %s.bin", t->path,
			wanted(c->req, v, i));
	c->v = v;
	c->batch[i].name = mw_strprintf("%s: %s", t->path, t->name);
	if (!c->batch[i].name)
		MW_FAIL(err, RESOURCE, "out of memory: name of a file");
	MW_TRY(read_bytes(&t->in, t->size, true, &c->batch[i], err));
	return tar_skip(t, (TAR_BLOCK - t->size % TAR_BLOCK) % TAR_BLOCK, err);
}

static int load_tar(struct cifar *c, struct mw_err *err)
{
	struct tar t = { .path = c->req->path };
	bool other = false, matlab = false;
	const char *name;
	int ret;
	MW_TRY(mw_input_open(&t.in, t.path, err));
	while ((ret = tar_next(&t, err)) > 0) {
		ret = t.regular ? tar_member(c, &t, &other, &matlab, err)
				: tar_skip(&t, (t.size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK, err);
		if (ret < 0)
			break;
	}
	mw_input_close(&t.in);
	if (ret < 0)
		return ret;
	if (!c->v && other)
		return refuse_other_version(t.path, matlab, err);
	if (!c->v)
		MW_FAIL(err, DATA,
			"%s: no CIFAR in this archive (data_batch_1.bin and so on, or train.bin); unpack it "
			"and give the "
			"data file",
			t.path);
	for (; (name = wanted(c->req, c->v, c->n)); c->n++)
		if (!c->batch[c->n].name)
			MW_FAIL(err, DATA, "%s: %s.bin is missing in the archive; fetch it again", t.path,
				name);
	return 0;
}

/* ---- one file */

static bool labels_fit(const struct batch *b, const struct variant *v)
{
	bool fit = b->n % record_bytes(v) == 0;
	for (size_t i = v->label_bytes - 1; fit && i < b->n; i += record_bytes(v))
		fit = b->bytes[i] < v->classes;
	return fit;
}

static const struct variant *variant_of_name(const char *path)
{
	const char *name = base_of(path);
	if (!strncmp(name, "data_batch", 10) || !strncmp(name, "test_batch", 10))
		return &variants[0];
	if (!strncmp(name, "train.bin", 9) || !strncmp(name, "test.bin", 8))
		return &variants[1];
	return NULL;
}

static int load_file(struct cifar *c, struct mw_err *err)
{
	struct batch *b = &c->batch[0];
	MW_TRY(read_file(mw_strdup(c->req->path), b, err));
	c->n = 1;
	c->v = variant_of_name(b->name);
	for (size_t k = 0; k < N_VARIANTS && !c->v; k++)
		if (labels_fit(b, &variants[k]))
			c->v = &variants[k];
	for (size_t k = 0; k < N_VARIANTS && !c->v; k++)
		if (b->n % record_bytes(&variants[k]) == 0)
			c->v = &variants[k];
	if (!c->v)
		MW_FAIL(err, DATA,
			"%s: %zu bytes are neither whole CIFAR-10 records (3073 bytes) nor CIFAR-100 records "
			"(3074); it is "
			"cut off, or other data",
			b->name, b->n);
	return 0;
}

/* ---- from bytes to examples */

static int check_batch(const struct batch *b, const struct variant *v, struct mw_err *err)
{
	size_t bytes = record_bytes(v);
	if (!b->n || b->n % bytes)
		MW_FAIL(err, DATA,
			"%s: %zu bytes are no whole number of %s records (%zu bytes each); it is cut off or "
			"damaged: fetch "
			"it again",
			b->name, b->n, v->name, bytes);
	for (size_t i = 0; i < b->n; i += bytes)
		for (uint32_t k = 0; k < v->label_bytes; k++) {
			uint32_t classes = k + 1 < v->label_bytes ? 20 : v->classes;
			if (b->bytes[i + k] >= classes)
				MW_FAIL(err, DATA,
					"%s: record %zu has the %slabel %u, but %s's go from 0 to %u; the "
					"file is damaged or "
					"of another form",
					b->name, i / bytes + 1, k + 1 < v->label_bytes ? "coarse " : "",
					b->bytes[i + k], v->name, classes - 1);
		}
	return 0;
}

static int check_request(const struct cifar *c, uint32_t classes, struct mw_err *err)
{
	const struct mw_data_request *req = c->req;
	if (req->coarse && c->v->label_bytes == 1)
		MW_FAIL(err, USAGE, "%s: this is CIFAR-10; only CIFAR-100 has coarse labels", req->path);
	if (req->label_kind == MW_LABEL_REAL)
		MW_FAIL(err, USAGE, "%s: the labels are classes; leave --label-kind out", req->path);
	if (req->like && req->like->classes != classes)
		MW_FAIL(err, DATA, "%s: %s has %u classes, but the training set has %u", req->path,
			c->v->name, classes, req->like->classes);
	return 0;
}

static int convert(const struct cifar *c, struct mw_dataset *d, struct mw_err *err)
{
	const struct mw_data_request *req = c->req;
	size_t bytes = record_bytes(c->v);
	bool coarse = c->v->label_bytes == 2 && (req->like ? req->like->classes == 20 : req->coarse);
	uint32_t classes = coarse ? 20 : c->v->classes, label = coarse ? 0 : c->v->label_bytes - 1;
	uint64_t row = 0;
	MW_TRY(check_request(c, classes, err));
	for (int i = 0; i < c->n; i++) {
		MW_TRY(check_batch(&c->batch[i], c->v, err));
		d->rows += c->batch[i].n / bytes;
		d->file_bytes += c->batch[i].n;
	}
	d->channels = 3;
	d->image_rows = d->image_cols = SIDE;
	MW_TRY(mw_images_prepare(req, d, err));
	d->y = mw_alloc_array(d->rows, sizeof(*d->y), "labels", err);
	if (!d->y)
		return err->code;
	for (int i = 0; i < c->n; i++)
		for (size_t at = 0; at < c->batch[i].n; at += bytes, row++) {
			d->y[row] = c->batch[i].bytes[at + label];
			mw_images_put(d, row, 1, c->batch[i].bytes + at + c->v->label_bytes);
		}
	mw_images_finish(req, d);
	return mw_labels_set(d, classes, err);
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_tar(const unsigned char *head, size_t n)
{
	return n >= TAR_BLOCK && !memcmp(head + 257, "ustar", 5);
}

static int load(const struct mw_data_request *req, struct mw_dataset *d, struct mw_err *err)
{
	struct cifar c = { .req = req };
	unsigned char head[TAR_BLOCK];
	bool gzip;
	int ret;
	if (is_folder(req->path)) {
		ret = load_folder(&c, err);
	} else {
		int64_t n = mw_input_head(req->path, head, sizeof(head), &gzip, err);
		ret = n < 0 ? (int)n : is_tar(head, (size_t)n) ? load_tar(&c, err) : load_file(&c, err);
	}
	if (ret == 0)
		ret = convert(&c, d, err);
	fini(&c);
	return ret;
}

static bool has_ending(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);
	return n > m && !strcasecmp(path + n - m, end);
}

/* No text: a byte that no text has, in the first few. IDX has two zero bytes, a type and a number of dimensions in front. */
static bool is_binary(const unsigned char *head, size_t n)
{
	bool idx = n >= 4 && !head[0] && !head[1] && head[2] >= 8 && head[2] <= 0x0e && head[3] >= 1 &&
		   head[3] <= 3;
	for (size_t i = 0; i < n && !idx; i++)
		if (head[i] < 9 || head[i] >= 0x80)
			return true;
	return false;
}

static bool probe(const char *path, const unsigned char *head, size_t n)
{
	if (!n)
		return strncmp(path, "synth:", 6) && is_folder(path);
	if (is_tar(head, n))
		return true;
	return (has_ending(path, ".bin") || has_ending(path, ".bin.gz")) &&
	       (variant_of_name(path) || is_binary(head, n));
}

const struct mw_format_ops mw_format_cifar = {
	.name = "cifar",
	.summary = "CIFAR-10 and CIFAR-100, binary version: a .bin file, their folder, or the .tar.gz",
	.probe = probe,
	.load = load,
};
