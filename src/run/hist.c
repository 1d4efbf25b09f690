/* hist.c: see hist.h. */
#include "run/hist.h"

/* Without a branch: with 1,024 workers, half of all values are on either side of where the buckets become wider. */
static uint32_t bucket_of(uint64_t v)
{
	uint64_t wide = v > MW_HIST_EXACT ? v : MW_HIST_EXACT;
	unsigned octave = 63u - (unsigned)__builtin_clzll(wide); /* >= 10 */
	uint32_t bucket = MW_HIST_EXACT + (octave - 10) * MW_HIST_SUB +
			  (uint32_t)((wide >> (octave - 6)) & (MW_HIST_SUB - 1));
	return v < MW_HIST_EXACT ? (uint32_t)v : bucket;
}

uint64_t mw_hist_value(uint32_t bucket)
{
	if (bucket < MW_HIST_EXACT)
		return bucket;
	uint32_t k = bucket - MW_HIST_EXACT, octave = 10 + k / MW_HIST_SUB;
	return (1ULL << octave) + ((uint64_t)(k % MW_HIST_SUB) << (octave - 6));
}

static void add_count(uint64_t *to, uint64_t d)
{
	__atomic_store_n(to, __atomic_load_n(to, __ATOMIC_RELAXED) + d, __ATOMIC_RELAXED);
}

static double get_sum(const double *from)
{
	double v;
	__atomic_load(from, &v, __ATOMIC_RELAXED);
	return v;
}

static void add_sum(double *to, double d)
{
	double v = get_sum(to) + d;
	__atomic_store(to, &v, __ATOMIC_RELAXED);
}

void mw_hist_add_all(struct mw_hist *h, const uint64_t *value, size_t n)
{
	uint64_t max = h->max;
	double sum = 0, sum2 = 0;
	for (size_t i = 0; i < n; i++) {
		add_count(&h->count[bucket_of(value[i])], 1);
		sum += (double)value[i];
		sum2 += (double)value[i] * (double)value[i];
		max = value[i] > max ? value[i] : max;
	}
	add_count(&h->n, n);
	add_sum(&h->sum, sum);
	add_sum(&h->sum2, sum2);
	__atomic_store_n(&h->max, max, __ATOMIC_RELAXED);
}

void mw_hist_add(struct mw_hist *h, uint64_t value)
{
	mw_hist_add_all(h, &value, 1);
}

void mw_hist_merge(struct mw_hist *into, const struct mw_hist *from)
{
	uint64_t max = __atomic_load_n(&from->max, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < MW_HIST_BUCKETS; i++) {
		uint64_t n = __atomic_load_n(&from->count[i], __ATOMIC_RELAXED);
		into->count[i] += n;
		into->n += n; /* what was counted, though more may have come in meanwhile */
	}
	into->sum += get_sum(&from->sum);
	into->sum2 += get_sum(&from->sum2);
	into->max = max > into->max ? max : into->max;
}

uint64_t mw_hist_quantile(const struct mw_hist *h, double q)
{
	double want = q * (double)h->n;
	uint64_t seen = 0;
	for (uint32_t i = 0; i < MW_HIST_BUCKETS; i++) {
		seen += h->count[i];
		if (seen > 0 && (double)seen >= want)
			return mw_hist_value(i);
	}
	return 0;
}

json_t *mw_hist_json(const struct mw_hist *h, int buckets)
{
	double n = h->n ? (double)h->n : 1;
	json_t *j = json_pack("{sI sf sI sI sI sI sI sf}", "n", (json_int_t)h->n, "mean", h->sum / n, "p50",
		(json_int_t)mw_hist_quantile(h, 0.5), "p75", (json_int_t)mw_hist_quantile(h, 0.75), "p90",
		(json_int_t)mw_hist_quantile(h, 0.9), "p99", (json_int_t)mw_hist_quantile(h, 0.99), "max",
		(json_int_t)h->max, "mean_square", h->sum2 / n);
	if (!buckets)
		return j;
	json_t *list = json_array();
	for (uint32_t i = 0; i < MW_HIST_BUCKETS; i++)
		if (h->count[i])
			json_array_append_new(list,
				json_pack("[II]", (json_int_t)mw_hist_value(i), (json_int_t)h->count[i]));
	json_object_set_new(j, "buckets", list);
	return j;
}
