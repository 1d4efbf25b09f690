/*
 * net_columns_body.h: images to columns and back, for one instruction set, part of net_kernel_body.h. A row of columns
 * has the pixels under the kernel of one output pixel, in the order (kernel row, kernel column, channel), in which
 * NHWC has them in runs.
 */
MWK_INLINE void run_copy(float *to, const float *from, size_t n)
{
	size_t i = 0;
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		mwk_store(to + i, mwk_load(from + i));
	for (; i < n; i++)
		to[i] = from[i];
}

MWK_INLINE void run_zero(float *to, size_t n)
{
	size_t i = 0;
	for (; i + MWK_LANES <= n; i += MWK_LANES)
		mwk_store(to + i, mwk_set1(0));
	for (; i < n; i++)
		to[i] = 0;
}

/* The kernel's columns at output column c that lie inside the image: [from, to) of them, from the pixel `left` on. */
MWK_INLINE void inside(const struct mw_conv_shape *s, uint32_t c, int64_t *left, size_t *from, size_t *to)
{
	*left = (int64_t)c * s->stride - s->pad;
	int64_t first = *left < 0 ? -*left : 0, end = (int64_t)s->cols - *left;
	first = first > s->kernel ? s->kernel : first;
	end = end > s->kernel ? s->kernel : end;
	*from = (size_t)first;
	*to = end < first ? *from : (size_t)end;
}

static void to_columns(const struct mw_conv_shape *s, const float *x, float *col)
{
	size_t run = (size_t)s->kernel * s->in, from, to;
	int64_t left;
	for (uint32_t r = 0; r < s->out_rows; r++)
		for (uint32_t c = 0; c < s->out_cols; c++) {
			inside(s, c, &left, &from, &to);
			for (uint32_t k = 0; k < s->kernel; k++, col += run) {
				int64_t row = (int64_t)r * s->stride + k - s->pad;
				if (row < 0 || row >= s->rows || from == to) {
					run_zero(col, run);
					continue;
				}
				const float *pixel = x + (row * s->cols + left + (int64_t)from) * s->in;
				run_zero(col, from * s->in);
				run_copy(col + from * s->in, pixel, (to - from) * s->in);
				run_zero(col + to * s->in, run - to * s->in);
			}
		}
}

/* dx += what each column came from. */
static void from_columns(const struct mw_conv_shape *s, const float *col, float *dx)
{
	size_t run = (size_t)s->kernel * s->in, from, to;
	int64_t left;
	for (uint32_t r = 0; r < s->out_rows; r++)
		for (uint32_t c = 0; c < s->out_cols; c++) {
			inside(s, c, &left, &from, &to);
			for (uint32_t k = 0; k < s->kernel; k++, col += run) {
				int64_t row = (int64_t)r * s->stride + k - s->pad;
				if (row >= 0 && row < s->rows && from < to)
					add(col + from * s->in,
						dx + (row * s->cols + left + (int64_t)from) * s->in,
						(to - from) * s->in);
			}
		}
}
