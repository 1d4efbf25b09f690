/*
 * net_kernel_body.h: the kernels of nets for one instruction set. The including file defines MW_NET_KERNEL_TABLE (the
 * table's name) and MW_NET_KERNEL_NAME.
 *
 * Channels lie side by side, so a run of pixels is one run of floats whose channel repeats with period c. Where c
 * divides TILE, the loops go over tiles of TILE floats with coefficients and sums for every place of a tile: registers
 * hold them, and no loop is shorter than a vector. Other widths take the plain loops.
 */
#include "base/kernel_inline.h"
#include "model/conv.h"
#include "model/net_kernel.h"

#include "model/net_gemm_body.h"

#define TILE       64
#define PARTS      (TILE / MWK_LANES)
#define FLUSH_ROWS 1024 /* rows a float sum runs over before it is added to the double */

struct tile {
	mwk_v v[PARTS];
};

/* Coefficients of c channels repeated over a tile; NULL: zeros. */
MWK_INLINE struct tile tile_of(const float *coef, size_t c)
{
	struct tile t;
	float lane[TILE];
	for (size_t j = 0; j < TILE; j++)
		lane[j] = coef ? coef[j % c] : 0;
	memcpy(&t, lane, sizeof(t));
	return t;
}

/* Add the sums of a tile's places to their channels. */
MWK_INLINE void tile_flush(struct tile *t, size_t c, double *sum)
{
	float lane[TILE];
	memcpy(lane, t, sizeof(lane));
	for (size_t j = 0; j < TILE; j++)
		sum[j % c] += (double)lane[j];
	memset(t, 0, sizeof(*t));
}

MWK_INLINE bool tiles(size_t rows, size_t c)
{
	return TILE % c == 0 && rows * c % TILE == 0;
}

/* A NaN stays one, so that a diverged net is seen: max gives its second operand then. */
MWK_INLINE mwk_v relu_v(mwk_v v)
{
#if defined(MW_KERNEL_PORTABLE)
	return (mwk_v)(~(v < 0) & (__typeof__(v < 0))v);
#elif MWK_LANES == 16
	return _mm512_max_ps(_mm512_setzero_ps(), v);
#else
	return _mm256_max_ps(_mm256_setzero_ps(), v);
#endif
}

/* v where y > 0, else 0 */
MWK_INLINE mwk_v where_positive(mwk_v y, mwk_v v)
{
#if MWK_LANES == 16
	return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ), v);
#else
	return (mwk_v)((y > 0) & (__typeof__(y > 0))v);
#endif
}

/* ---- bias and ReLU ---- */

/*
 * Rows of c floats as one run whose pattern repeats after c vectors: for widths that no vector divides, the bias (and
 * its gradient) is laid out over a whole period.
 */
#define PERIOD_MAX 64 /* channels */

static void bias_act_rows(float *x, const float *bias, size_t rows, size_t c, bool relu)
{
	for (size_t r = 0; r < rows; r++, x += c) {
		size_t j = 0;
		for (; j + MWK_LANES <= c; j += MWK_LANES) {
			mwk_v v = mwk_load(x + j) + mwk_load(bias + j);
			mwk_store(x + j, relu ? relu_v(v) : v);
		}
		for (; j < c; j++) {
			float v = x[j] + bias[j];
			x[j] = relu && v < 0 ? 0 : v;
		}
	}
}

static void bias_act(float *x, const float *bias, size_t rows, size_t c, bool relu)
{
	float period[PERIOD_MAX * MWK_LANES];
	size_t periods = rows / MWK_LANES;
	if (c % MWK_LANES == 0 || c > PERIOD_MAX || !periods) {
		bias_act_rows(x, bias, rows, c, relu);
		return;
	}
	for (size_t j = 0; j < c * MWK_LANES; j++)
		period[j] = bias[j % c];
	for (size_t i = 0; i < periods; i++)
		for (size_t j = 0; j < c * MWK_LANES; j += MWK_LANES, x += MWK_LANES) {
			mwk_v v = mwk_load(x) + mwk_load(period + j);
			mwk_store(x, relu ? relu_v(v) : v);
		}
	bias_act_rows(x, bias, rows % MWK_LANES, c, relu);
}

static void bias_act_back_rows(const float *y, float *dy, size_t rows, size_t c, bool relu, float *db)
{
	for (size_t r = 0; r < rows; r++, y += c, dy += c) {
		size_t j = 0;
		for (; j + MWK_LANES <= c; j += MWK_LANES) {
			mwk_v v = mwk_load(dy + j);
			if (relu)
				mwk_store(dy + j, v = where_positive(mwk_load(y + j), v));
			mwk_store(db + j, mwk_load(db + j) + v);
		}
		for (; j < c; j++) {
			dy[j] = !relu || y[j] > 0 ? dy[j] : 0;
			db[j] += dy[j];
		}
	}
}

static void bias_act_back(const float *y, float *dy, size_t rows, size_t c, bool relu, float *db)
{
	float period[PERIOD_MAX * MWK_LANES];
	size_t periods = rows / MWK_LANES;
	memset(db, 0, c * sizeof(*db));
	if (c % MWK_LANES == 0 || c > PERIOD_MAX || !periods) {
		bias_act_back_rows(y, dy, rows, c, relu, db);
		return;
	}
	memset(period, 0, c * MWK_LANES * sizeof(*period));
	for (size_t i = 0; i < periods; i++)
		for (size_t j = 0; j < c * MWK_LANES; j += MWK_LANES, y += MWK_LANES, dy += MWK_LANES) {
			mwk_v v = mwk_load(dy);
			if (relu)
				mwk_store(dy, v = where_positive(mwk_load(y), v));
			mwk_store(period + j, mwk_load(period + j) + v);
		}
	for (size_t j = 0; j < c * MWK_LANES; j++)
		db[j % c] += period[j];
	bias_act_back_rows(y, dy, rows % MWK_LANES, c, relu, db);
}

/* ---- batch norm ---- */

static void norm_sums_plain(
	const float *x, const float *shift, size_t rows, size_t c, double *sum, double *square)
{
	for (size_t r = 0; r < rows; r++, x += c)
		for (size_t j = 0; j < c; j++) {
			double v = (double)(x[j] - shift[j]);
			sum[j] += v;
			square[j] += v * v;
		}
}

static void norm_sums(const float *x, const float *shift, size_t rows, size_t c, double *sum, double *square)
{
	if (!tiles(rows, c)) {
		norm_sums_plain(x, shift, rows, c, sum, square);
		return;
	}
	struct tile s = tile_of(shift, c), a = tile_of(NULL, c), b = a;
	size_t n = rows * c / TILE, flush = FLUSH_ROWS * c / TILE;
	for (size_t i = 0, next = flush; i < n; i++, x += TILE) {
		for (int p = 0; p < PARTS; p++) {
			mwk_v v = mwk_load(x + p * MWK_LANES) - s.v[p];
			a.v[p] += v;
			b.v[p] = mwk_fma_v(v, v, b.v[p]);
		}
		if (i + 1 == next || i + 1 == n) {
			tile_flush(&a, c, sum);
			tile_flush(&b, c, square);
			next += flush;
		}
	}
}

static void norm_apply_plain(const float *x, const float *add, const float *mean, const float *scale,
	const float *offset, size_t rows, size_t c, bool relu, float *y)
{
	for (size_t r = 0; r < rows; r++, x += c, y += c, add = add ? add + c : NULL)
		for (size_t j = 0; j < c; j++) {
			float v = mwk_fma_1(x[j] - mean[j], scale[j], offset[j]) + (add ? add[j] : 0);
			y[j] = relu && v < 0 ? 0 : v;
		}
}

/* with_add, relu: constants at every call */
MWK_INLINE void norm_apply_tiles(const float *x, const float *add, struct tile m, struct tile s,
	struct tile o, size_t n, bool with_add, bool relu, float *y)
{
	for (size_t i = 0; i < n; i++, x += TILE, y += TILE, add += with_add ? TILE : 0)
		for (int p = 0; p < PARTS; p++) {
			mwk_v v = mwk_fma_v(mwk_load(x + p * MWK_LANES) - m.v[p], s.v[p], o.v[p]);
			if (with_add)
				v += mwk_load(add + p * MWK_LANES);
			mwk_store(y + p * MWK_LANES, relu ? relu_v(v) : v);
		}
}

static void norm_apply(const float *x, const float *add, const float *mean, const float *scale,
	const float *offset, size_t rows, size_t c, bool relu, float *y)
{
	if (!tiles(rows, c)) {
		norm_apply_plain(x, add, mean, scale, offset, rows, c, relu, y);
		return;
	}
	struct tile m = tile_of(mean, c), s = tile_of(scale, c), o = tile_of(offset, c);
	size_t n = rows * c / TILE;
	if (add && relu)
		norm_apply_tiles(x, add, m, s, o, n, true, true, y);
	else if (add)
		norm_apply_tiles(x, add, m, s, o, n, true, false, y);
	else if (relu)
		norm_apply_tiles(x, x, m, s, o, n, false, true, y);
	else
		norm_apply_tiles(x, x, m, s, o, n, false, false, y);
}

static void norm_back_sums_plain(const float *x, const float *y, const float *dy, const float *dy2,
	const float *mean, size_t rows, size_t c, bool relu, float *dz, double *sum, double *cross)
{
	for (size_t r = 0; r < rows; r++, x += c, y += c, dy += c, dz += c, dy2 = dy2 ? dy2 + c : NULL)
		for (size_t j = 0; j < c; j++) {
			float g = dy[j] + (dy2 ? dy2[j] : 0);
			dz[j] = g = !relu || y[j] > 0 ? g : 0;
			sum[j] += (double)g;
			cross[j] += (double)g * (double)(x[j] - mean[j]);
		}
}

/* two, relu: constants at every call; in: y, dy, dy2 */
MWK_INLINE void norm_back_sums_tiles(const float *x, const float *const in[3], const float *mean, size_t rows,
	size_t c, bool two, bool relu, float *dz, double *sum, double *cross)
{
	struct tile m = tile_of(mean, c), a = tile_of(NULL, c), b = a;
	size_t n = rows * c / TILE, flush = FLUSH_ROWS * c / TILE;
	for (size_t i = 0, next = flush; i < n; i++) {
		for (int p = 0; p < PARTS; p++) {
			size_t at = i * TILE + (size_t)p * MWK_LANES;
			mwk_v g = mwk_load(in[1] + at);
			if (two)
				g += mwk_load(in[2] + at);
			if (relu)
				g = where_positive(mwk_load(in[0] + at), g);
			mwk_store(dz + at, g);
			a.v[p] += g;
			b.v[p] = mwk_fma_v(g, mwk_load(x + at) - m.v[p], b.v[p]);
		}
		if (i + 1 == next || i + 1 == n) {
			tile_flush(&a, c, sum);
			tile_flush(&b, c, cross);
			next += flush;
		}
	}
}

static void norm_back_sums(const float *x, const float *y, const float *dy, const float *dy2,
	const float *mean, size_t rows, size_t c, bool relu, float *dz, double *sum, double *cross)
{
	const float *const in[3] = { y, dy, dy2 };
	if (!tiles(rows, c))
		norm_back_sums_plain(x, y, dy, dy2, mean, rows, c, relu, dz, sum, cross);
	else if (dy2 && relu)
		norm_back_sums_tiles(x, in, mean, rows, c, true, true, dz, sum, cross);
	else if (dy2)
		norm_back_sums_tiles(x, in, mean, rows, c, true, false, dz, sum, cross);
	else if (relu)
		norm_back_sums_tiles(x, in, mean, rows, c, false, true, dz, sum, cross);
	else
		norm_back_sums_tiles(x, in, mean, rows, c, false, false, dz, sum, cross);
}

static void norm_back_apply(const float *x, const float *dz, const float *mean, const float *a,
	const float *b, const float *d, size_t rows, size_t c, float *dx)
{
	if (!tiles(rows, c)) {
		for (size_t r = 0; r < rows; r++, x += c, dz += c, dx += c)
			for (size_t j = 0; j < c; j++)
				dx[j] = mwk_fma_1(a[j], dz[j], mwk_fma_1(b[j], x[j] - mean[j], d[j]));
		return;
	}
	struct tile tm = tile_of(mean, c), ta = tile_of(a, c), tb = tile_of(b, c), td = tile_of(d, c);
	for (size_t i = 0, n = rows * c / TILE; i < n; i++, x += TILE, dz += TILE, dx += TILE)
		for (int p = 0; p < PARTS; p++) {
			size_t at = (size_t)p * MWK_LANES;
			mwk_v v = mwk_fma_v(tb.v[p], mwk_load(x + at) - tm.v[p], td.v[p]);
			mwk_store(dx + at, mwk_fma_v(ta.v[p], mwk_load(dz + at), v));
		}
}

/* ---- the rest ---- */

static void add(const float *x, float *y, size_t n)
{
	size_t i = 0;
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		mwk_store(y + i, mwk_load(y + i) + mwk_load(x + i));
	for (; i < n; i++)
		y[i] += x[i];
}

#include "model/net_columns_body.h"
#include "model/net_conv_body.h"

typedef int32_t place_v __attribute__((vector_size(4 * MWK_LANES)));
typedef uint8_t place_bytes __attribute__((vector_size(MWK_LANES), aligned(1), may_alias));

/* Whole vectors of channels: what is written beyond the last channel belongs to the next pixel and is written again. */
static void max_pool(const float *x, size_t cols, size_t c, size_t out_rows, size_t out_cols, size_t k,
	size_t s, float *y, uint8_t *place)
{
	for (size_t r = 0; r < out_rows; r++)
		for (size_t q = 0; q < out_cols; q++, y += c, place += c)
			for (size_t j = 0; j < c; j += MWK_LANES) {
				const float *window = x + (r * s * cols + q * s) * c + j;
				mwk_v most = mwk_load(window);
				place_v at = { 0 };
				int32_t t = 0;
				for (size_t a = 0; a < k; a++)
					for (size_t b = 0; b < k; b++, t++) {
						mwk_v v = mwk_load(window + (a * cols + b) * c);
						place_v more = (place_v)(v > most);
						most = (mwk_v)(((place_v)v & more) | ((place_v)most & ~more));
						at = (at & ~more) | (more & t);
					}
				mwk_store(y + j, most);
				*(place_bytes *)(place + j) = __builtin_convertvector(at, place_bytes);
			}
}

const struct mw_net_kernels MW_NET_KERNEL_TABLE = {
	.name = MW_NET_KERNEL_NAME,
	.gemm = gemm,
	.bias_act = bias_act,
	.bias_act_back = bias_act_back,
	.norm_sums = norm_sums,
	.norm_apply = norm_apply,
	.norm_back_sums = norm_back_sums,
	.norm_back_apply = norm_back_apply,
	.add = add,
	.to_columns = to_columns,
	.from_columns = from_columns,
	.pad_image = pad_image,
	.pack_panels = pack_panels,
	.convolve = convolve,
	.convolve_weights = convolve_weights,
	.max_pool = max_pool,
};
