/*
 * net_conv_body.h: convolutions for one instruction set, part of net_kernel_body.h. The image has its border of zeros
 * around it, so the pixels under one row of the kernel are one run of kernel * in floats, wherever it stands: the
 * inner loops are those of a matrix product whose A is the image itself, and nothing is copied into columns. Output
 * channels are taken 16 or 32 at a time (one or two vectors); what lies beyond them in a vector is thrown away.
 */
#if MWK_LANES == 16
#define CONV_SUMS 16 /* vectors of sums in a tile */
#else
#define CONV_SUMS 8
#endif

static void pad_image(const struct mw_conv_shape *s, const float *x, float *padded)
{
	size_t line = (size_t)s->cols * s->in, side = (size_t)s->pad * s->in, wide = line + 2 * side;
	run_zero(padded, s->pad * wide);
	float *p = padded + s->pad * wide;
	for (uint32_t r = 0; r < s->rows; r++, p += wide, x += line) {
		run_zero(p, side);
		run_copy(p + side, x, line);
		run_zero(p + side + line, side);
	}
	run_zero(p, s->pad * wide);
}

/* A tile of output pixels side by side: pixels x vectors <= CONV_SUMS, constants at every call. */
MWK_INLINE void conv_tile(int pixels, int vectors, const struct mw_conv_shape *s, const float *x, size_t wide,
	const float *panel, size_t n, float *y)
{
	size_t step = (size_t)s->stride * s->in, run = (size_t)s->kernel * s->in;
	mwk_v sum[CONV_SUMS], b[2];
	for (int i = 0; i < pixels * vectors; i++)
		sum[i] = mwk_set1(0);
	for (uint32_t k = 0; k < s->kernel; k++, x += wide) {
		const float *a = x;
		for (size_t j = 0; j < run; j++, a++, panel += vectors * MWK_LANES) {
			for (int v = 0; v < vectors; v++)
				b[v] = mwk_load(panel + v * MWK_LANES);
			for (int i = 0; i < pixels; i++) {
				mwk_v f = mwk_set1(a[(size_t)i * step]);
				for (int v = 0; v < vectors; v++)
					sum[i * vectors + v] = mwk_fma_v(f, b[v], sum[i * vectors + v]);
			}
		}
	}
	for (int i = 0; i < pixels; i++)
		gemm_store(&sum[i * vectors], vectors, n, false, y + (size_t)i * s->out);
}

MWK_INLINE void conv_line(int vectors, const struct mw_conv_shape *s, const float *x, size_t wide,
	const float *panel, size_t n, float *y)
{
	const int most = CONV_SUMS / vectors;
	size_t step = (size_t)s->stride * s->in;
	int left = (int)s->out_cols;
/* k <= most is known when compiling: larger tiles, which never run, would not fit. */
#define CONV_TILES(k)                                                                                   \
	for (; (k) <= most && left >= (k); left -= (k), x += (size_t)(k)*step, y += (size_t)(k)*s->out) \
	conv_tile(k, vectors, s, x, wide, panel, n, y)
	CONV_TILES(most);
	CONV_TILES(8);
	CONV_TILES(4);
	CONV_TILES(2);
	CONV_TILES(1);
#undef CONV_TILES
}

/* panel: for each vector or two of output channels kernel^2 in rows, see pack_panels. */
static void convolve(const struct mw_conv_shape *s, const float *padded, const float *panel, float *y)
{
	size_t wide = ((size_t)s->cols + 2 * s->pad) * s->in, depth = (size_t)s->kernel * s->kernel * s->in,
	       width;
	for (size_t o = 0; o < s->out; o += width, panel += depth * width) {
		size_t left = s->out - o, n;
		width = left > MWK_LANES ? 2 * MWK_LANES : MWK_LANES;
		n = left < width ? left : width;
		for (uint32_t r = 0; r < s->out_rows; r++) {
			const float *x = padded + (size_t)r * s->stride * wide;
			float *to = y + (size_t)r * s->out_cols * s->out + o;
			if (width > MWK_LANES)
				conv_line(2, s, x, wide, panel, n, to);
			else
				conv_line(1, s, x, wide, panel, n, to);
		}
	}
}

/* weight: depth x out, row-major */
static void pack_panels(const float *weight, size_t depth, size_t out, float *panel)
{
	size_t width;
	for (size_t o = 0; o < out; o += width, panel += depth * width) {
		width = out - o > MWK_LANES ? 2 * MWK_LANES : MWK_LANES;
		gemm_pack(weight + o, out, 1, depth, out - o < width ? out - o : width, width, panel);
	}
}

/* Rows i.. of dweight, taps x vectors <= CONV_SUMS, constants at every call. Reads past the last channel of dy. */
MWK_INLINE void conv_weight_tile(int taps, int vectors, const struct mw_conv_shape *s, const float *x,
	size_t wide, const float *dy, size_t n, float *dweight)
{
	size_t step = (size_t)s->stride * s->in;
	mwk_v sum[CONV_SUMS], b[2];
	for (int i = 0; i < taps * vectors; i++)
		sum[i] = mwk_set1(0);
	for (uint32_t r = 0; r < s->out_rows; r++, x += s->stride * wide) {
		const float *a = x;
		for (uint32_t c = 0; c < s->out_cols; c++, a += step, dy += s->out) {
			for (int v = 0; v < vectors; v++)
				b[v] = mwk_load(dy + v * MWK_LANES);
			for (int i = 0; i < taps; i++) {
				mwk_v f = mwk_set1(a[i]);
				for (int v = 0; v < vectors; v++)
					sum[i * vectors + v] = mwk_fma_v(f, b[v], sum[i * vectors + v]);
			}
		}
	}
	for (int i = 0; i < taps; i++)
		gemm_store(&sum[i * vectors], vectors, n, true, dweight + (size_t)i * s->out);
}

/* All taps of one kernel row. */
MWK_INLINE void conv_weight_rows(int vectors, const struct mw_conv_shape *s, const float *x, size_t wide,
	const float *dy, size_t n, float *dweight)
{
	const int most = CONV_SUMS / vectors;
	int left = (int)(s->kernel * s->in);
#define CONV_TILES(k)                                                                            \
	for (; (k) <= most && left >= (k); left -= (k), x += (k), dweight += (size_t)(k)*s->out) \
	conv_weight_tile(k, vectors, s, x, wide, dy, n, dweight)
	CONV_TILES(most);
	CONV_TILES(8);
	CONV_TILES(4);
	CONV_TILES(1);
#undef CONV_TILES
}

static void convolve_weights(
	const struct mw_conv_shape *s, const float *padded, const float *dy, float *dweight)
{
	size_t wide = ((size_t)s->cols + 2 * s->pad) * s->in, run = (size_t)s->kernel * s->in, width;
	for (uint32_t k = 0; k < s->kernel; k++, padded += wide, dweight += run * s->out)
		for (size_t o = 0; o < s->out; o += width) {
			size_t left = s->out - o;
			width = left > MWK_LANES ? 2 * MWK_LANES : MWK_LANES;
			if (width > MWK_LANES)
				conv_weight_rows(
					2, s, padded, wide, dy + o, left < width ? left : width, dweight + o);
			else
				conv_weight_rows(
					1, s, padded, wide, dy + o, left < width ? left : width, dweight + o);
		}
}
