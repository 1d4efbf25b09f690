/* burst_body.h: the fused update path; the file that includes it defines BURST, the function's name. */
#include "base/kernel_inline.h"
#include "model/link.h"
#include "run/burst.h"

/* Of a row whose lines are in the second-level cache, so many are brought into the first. */
enum { FETCH_NEXT_LINES = 3 };
/* Longer rows than so are read twice, not kept. */
enum { KEPT = 1024 };

static inline __attribute__((always_inline)) void fetch_row(const struct mw_dataset *d, uint64_t row)
{
	uint64_t o = d->row_ptr[row], e = d->row_ptr[row + 1];
	for (; o < e; o += 16) {
		__builtin_prefetch(&d->col[o]);
		__builtin_prefetch(&d->val[o]);
	}
}

/* Lines of columns and values from element o on. */
static inline __attribute__((always_inline)) void fetch_lines(
	const struct mw_dataset *d, uint64_t o, uint32_t lines)
{
	for (const uint32_t *col = d->col + o, *end = col + lines * 16; col < end; col += 16) {
		__builtin_prefetch(col);
		__builtin_prefetch(d->val + (col - d->col));
	}
}

/*
 * Where a row begins is asked for long before, or asking for the row would wait for it. In a block the rest is in the
 * second-level cache already, and the next row's first lines are brought nearer.
 */
static inline __attribute__((always_inline)) void fetch_ahead(const struct mw_burst *b, uint32_t i)
{
	const struct mw_dataset *d = b->data;
	if (i + MW_BURST_AHEAD < b->ahead) {
		__builtin_prefetch(&d->row_ptr[b->row[i + MW_BURST_AHEAD]]);
		__builtin_prefetch(&d->y[b->row[i + MW_BURST_AHEAD]]);
	}
	if (b->fetch_lines) {
		fetch_lines(d, b->fetch + (uint64_t)i * b->fetch_lines * 16, b->fetch_lines);
		fetch_lines(d, d->row_ptr[b->row[i + 1 < b->ahead ? i + 1 : i]], FETCH_NEXT_LINES);
	} else if (i + MW_BURST_FETCH < b->ahead) {
		fetch_row(d, b->row[i + MW_BURST_FETCH]);
	}
}

static inline void add_row(const struct mw_burst *b, uint64_t o, size_t n, float a)
{
	if (b->atomic) {
		for (size_t i = 0; i < n; i++)
			mw_add_atomic(&b->x[b->data->col[o + i]], a * b->data->val[o + i]);
	} else {
		mwk_axpy_sparse(a, b->data->col + o, b->data->val + o, b->x, n);
	}
}

static inline void add_bias(const struct mw_burst *b, float a)
{
	float *bias = &b->x[b->data->features];
	if (b->atomic)
		mw_add_atomic(bias, a);
	else
		mw_st(bias, mw_ld(bias) + a);
}

static inline void count_push(const struct mw_burst *b)
{
	if (b->atomic)
		__atomic_add_fetch(b->tally, 1, __ATOMIC_RELAXED);
	else
		__atomic_store_n(b->tally, __atomic_load_n(b->tally, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline)) float margin(
	const struct mw_burst *b, uint64_t o, size_t n, bool has_bias, float *keep)
{
	const uint32_t *col = b->data->col + o;
	const float *val = b->data->val + o;
	float z = keep ? mwk_dot_keep(b->x, col, val, n, keep) : mwk_dot_sparse(b->x, col, val, n);
	return has_bias ? z + mw_ld(&b->x[b->data->features]) : z;
}

/* All is done; z: the last row's margin. */
static inline void count_burst(const struct mw_burst *b, float z)
{
	if (b->margin)
		*b->margin = z;
	__atomic_store_n(b->examples, *b->examples + b->n, __ATOMIC_RELAXED);
	__atomic_store_n(b->steps, *b->steps + b->n, __ATOMIC_RELAXED);
}

/* link, has_bias and own are constants in each caller, so that the loop has no branch on them. */
static inline __attribute__((always_inline)) void run_sparse(
	const struct mw_burst *b, enum mw_link link, bool has_bias, bool own)
{
	float keep[KEPT] __attribute__((aligned(64)));
	const struct mw_dataset *d = b->data;
	float scale = (float)(-(double)b->rate * b->weight);
	uint64_t done = *b->pushes;
	float z = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t row = b->row[i], o = d->row_ptr[row];
		size_t n = d->row_ptr[row + 1] - o;
		fetch_ahead(b, i);
		bool kept = own && n <= KEPT;
		z = margin(b, o, n, has_bias, kept ? keep : NULL);
		float a = mw_link_dloss(link, z, d->y[row]) * scale;
		if (kept)
			mwk_axpy_kept(a, d->col + o, d->val + o, keep, b->x, n);
		else
			add_row(b, o, n, a);
		if (has_bias)
			add_bias(b, a);
		if (b->tally)
			count_push(b);
		__atomic_store_n(b->pushes, done + i + 1, __ATOMIC_RELAXED);
	}
	count_burst(b, z);
}

#include "run/burst_state.h"

/* --- dense rows --------------------------------------------------------------------------------------------------- */

/*
 * The gradient of a coordinate, then its delta as it is pushed: rounded as where these are apart. l2 and weight are
 * constants where they are 0 and 1.
 */
#define DENSE_GRADIENT(x, v) (l2 > 0 ? l2 * (x) + coef * (v) : coef * (v))
#define DENSE_DELTA(x, v)    (weight * (-rate * DENSE_GRADIENT(x, v)))

static void add_dense(const struct mw_burst *b, const float *v, float coef, size_t i)
{
	float rate = b->rate, weight = (float)b->weight, l2 = b->linear->l2, *x = b->x;
	size_t n = b->data->features;
	for (; b->atomic && i < n; i++) {
		float d = DENSE_DELTA(mw_ld(x + i), v[i]);
		if (d != 0)
			mw_add_atomic(x + i, d);
	}
	for (; i < n; i++)
		mwk_add(x + i, DENSE_DELTA(mw_ld(x + i), v[i]));
}

/*
 * What is asked for during a pass: a quarter of each of four rows further on, the first quarter of the farthest. Four runs of
 * addresses side by side keep more of memory busy than one.
 */
enum { QUARTERS = 4, LINE = 16 };
struct fetch {
	const float *at[QUARTERS];
};

static inline __attribute__((always_inline)) struct fetch fetch_of(const struct mw_burst *b, uint32_t i)
{
	const struct mw_dataset *d = b->data;
	size_t lines = (d->features + LINE - 1) / LINE;
	struct fetch f;
	for (uint32_t q = 0; q < QUARTERS; q++) {
		uint32_t ahead = i + MW_BURST_AHEAD_DENSE - q;
		size_t rest = lines % QUARTERS, begin = q * (lines / QUARTERS) + (q < rest ? q : rest);
		f.at[q] = d->x + b->row[ahead < b->ahead ? ahead : i] * d->ld + begin * LINE;
	}
	return f;
}

/* One line, while the pass is at this float: in turn from each quarter. */
static inline __attribute__((always_inline)) void fetch_line(const struct fetch *f, size_t at)
{
	size_t line = at / LINE;
	__builtin_prefetch(f->at[line % QUARTERS] + line / QUARTERS * LINE, 0, 0);
}

#if defined(MW_KERNEL_PORTABLE)
static float add_and_dot(
	const struct mw_burst *b, const float *v, float coef, const float *next, const struct fetch *fetch)
{
	(void)fetch;
	add_dense(b, v, coef, 0);
	return mwk_dot(b->x, next, b->data->features);
}
#else
/* One vector of the pass below. */
#define ADD_AND_DOT(sum, at)                                            \
	do {                                                            \
		mwk_v old = mwk_load(x + (at));                         \
		mwk_v new = old + DENSE_DELTA(old, mwk_load(v + (at))); \
		mwk_store(x + (at), new);                               \
		sum = mwk_fma_v(new, mwk_load(next + (at)), sum);       \
	} while (0)

/* Summed in the order of mwk_dot. */
static inline __attribute__((always_inline)) float pass(const struct mw_burst *b, const float *v, float coef,
	const float *next, const struct fetch *fetch, float l2, float weight)
{
	enum { L = MWK_LANES };
	float rate = b->rate, *x = b->x;
	mwk_v s[4] = { mwk_set1(0), mwk_set1(0), mwk_set1(0), mwk_set1(0) };
	size_t n = b->data->features, i = 0;
	for (; i + 4 * L <= n; i += 4 * L) {
		for (size_t at = i; at < i + 4 * L; at += LINE)
			fetch_line(fetch, at);
		for (size_t k = 0; k < 4; k++)
			ADD_AND_DOT(s[k], i + k * L);
	}
	for (; i + L <= n; i += L) {
		fetch_line(fetch, i);
		ADD_AND_DOT(s[0], i);
	}
	if (i < n) {
		fetch_line(fetch, i);
		add_dense(b, v, coef, i);
		s[1] = mwk_fma_v(mwk_load_part(x + i, n - i), mwk_load_part(next + i, n - i), s[1]);
	}
	return mwk_sum((s[0] + s[1]) + (s[2] + s[3]));
}

/*
 * Push the row v and compute the next row's margin in one pass over the parameters; meanwhile ask for rows further on,
 * line by line: all at once the requests would wait for each other.
 */
static float add_and_dot(
	const struct mw_burst *b, const float *v, float coef, const float *next, const struct fetch *fetch)
{
	float l2 = b->linear->l2, weight = (float)b->weight;
	if (b->atomic) {
		add_dense(b, v, coef, 0);
		return mwk_dot(b->x, next, b->data->features);
	}
	if (weight == 1)
		return l2 > 0 ? pass(b, v, coef, next, fetch, l2, 1) : pass(b, v, coef, next, fetch, 0, 1);
	return l2 > 0 ? pass(b, v, coef, next, fetch, l2, weight) : pass(b, v, coef, next, fetch, 0, weight);
}
#endif

static void add_last(const struct mw_burst *b, const float *v, float coef, const struct fetch *fetch)
{
	for (size_t at = 0; at < b->data->features; at += LINE)
		fetch_line(fetch, at);
	add_dense(b, v, coef, 0);
}

static void run_dense(const struct mw_burst *b)
{
	const struct mw_dataset *d = b->data;
	enum mw_link link = b->linear->link;
	float rate = b->rate, weight = (float)b->weight;
	uint64_t done = *b->pushes;
#define ROW(i) (d->x + b->row[i] * d->ld)
	float z = mwk_dot(b->x, ROW(0), d->features);
	for (uint32_t i = 0; i < b->n; i++) {
		struct fetch fetch = fetch_of(b, i);
		if (i + MW_BURST_AHEAD_DENSE < b->ahead)
			__builtin_prefetch(&d->y[b->row[i + MW_BURST_AHEAD_DENSE]]);
		if (b->linear->bias)
			z += mw_ld(&b->x[d->features]);
		float coef = mw_link_dloss(link, z, d->y[b->row[i]]);
		if (b->linear->bias)
			add_bias(b, weight * (-rate * coef));
		if (i + 1 < b->n)
			z = add_and_dot(b, ROW(i), coef, ROW(i + 1), &fetch);
		else
			add_last(b, ROW(i), coef, &fetch);
		if (b->tally)
			count_push(b);
		__atomic_store_n(b->pushes, done + i + 1, __ATOMIC_RELAXED);
	}
#undef ROW
	count_burst(b, z);
}

/* A function each: together they would spill each other's registers. */
#define RUN_SPARSE(name, link)                                                                          \
	static __attribute__((noinline)) void name##_own(const struct mw_burst *b)                      \
	{                                                                                               \
		run_sparse(b, link, false, true);                                                       \
	}                                                                                               \
	static __attribute__((noinline)) void name##_own_bias(const struct mw_burst *b)                 \
	{                                                                                               \
		run_sparse(b, link, true, true);                                                        \
	}                                                                                               \
	static __attribute__((noinline)) void name##_shared(const struct mw_burst *b)                   \
	{                                                                                               \
		b->linear->bias ? run_sparse(b, link, true, false) : run_sparse(b, link, false, false); \
	}                                                                                               \
	static void name(const struct mw_burst *b)                                                      \
	{                                                                                               \
		if (!b->own || b->atomic)                                                               \
			name##_shared(b);                                                               \
		else                                                                                    \
			b->linear->bias ? name##_own_bias(b) : name##_own(b);                           \
	}
RUN_SPARSE(run_logistic, MW_LINK_LOGISTIC)
RUN_SPARSE(run_hinge, MW_LINK_HINGE)
RUN_SPARSE(run_sigmoid_squared, MW_LINK_SIGMOID_SQUARED)
RUN_SPARSE(run_squared, MW_LINK_SQUARED)
#undef RUN_SPARSE

void BURST(const struct mw_burst *b)
{
	if (b->optim || b->data->kind == MW_X_DENSE) {
		b->optim ? run_state(b) : run_dense(b);
		return;
	}
	switch (b->linear->link) {
	case MW_LINK_LOGISTIC: run_logistic(b); break;
	case MW_LINK_HINGE: run_hinge(b); break;
	case MW_LINK_SIGMOID_SQUARED: run_sigmoid_squared(b); break;
	case MW_LINK_SQUARED: run_squared(b); break;
	}
}
