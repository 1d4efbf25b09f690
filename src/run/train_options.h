/* train_options.h: everything `mixwild train` can be told, besides the plug-ins' own options. */
#ifndef MW_RUN_TRAIN_OPTIONS_H
#define MW_RUN_TRAIN_OPTIONS_H

#include "base/option.h"

enum mw_engine { MW_ENGINE_THREADS, MW_ENGINE_SIM };
enum mw_data_place { MW_DATA_SHARED, MW_DATA_SHARD, MW_DATA_REPLICATE };
enum mw_state { MW_STATE_WORKER, MW_STATE_SHARED };
enum mw_mix_blocks { MW_BLOCKS_CYCLIC, MW_BLOCKS_RANDOM };
enum mw_mix_order { MW_MIX_AFTER, MW_MIX_BEFORE };
enum mw_estimate_choice {
	MW_ESTIMATE_NONE,
	MW_ESTIMATE_TRACE,
	MW_ESTIMATE_PROBE,
	MW_ESTIMATE_PASSIVE,
	MW_ESTIMATE_ALL
};
enum mw_probe_choice { MW_PROBE_AUTO, MW_PROBE_ONE_HOT, MW_PROBE_SIGNS };
enum mw_target_unit { MW_TARGET_NATIVE, MW_TARGET_GRADIENTS };
enum mw_augment { MW_AUGMENT_NONE, MW_AUGMENT_CROP_FLIP };
enum mw_access_choice { MW_ACCESS_AUTO }; /* then 1 + enum mw_access */

struct mw_train_options {
	/* data */
	char *data, *test, *labels, *shards;
	double val;
	bool coarse;
	int index_base, label_kind, cache, order, deal, data_place, augment;
	int64_t features;
	/* model and optimizer */
	char *model, *optimizer, *rate, *init;
	int64_t batch;
	double epochs, clip;
	int64_t seed;
	int state;
	/* protocol */
	char *protocol, *graph, *workers, *gate;
	int access, activation;
	int64_t mix_every;
	double slack, mix_fraction;
	int mix_blocks, mix_order, mix_form, mix_precision;
	char *staleness, *straggler, *stale_policy, *timeline;
	/* engine and placement */
	int engine;
	int64_t threads;
	char *compute_time, *push_time, *mix_time;
	char *bind, *topology;
	int places;
	bool no_smt, oversubscribe;
	int mem, thp;
	bool mem_strict;
	int64_t controller_cpu;
	char *isa;
	/* evaluation */
	double eval_every;
	int64_t eval_rows;
	bool grad_norm, bound;
	double target_loss, target_accuracy;
	int64_t sample_every;
	int estimate;
	double metrics_every, sample_rate, sampler_share;
	int probe_columns; /* enum mw_probe_choice */
	double target_tmix;
	int target_unit, target_actuator; /* enum mw_target_unit, enum mw_actuator */
	bool tally;
	/* files */
	char *trace, *replay;
	int64_t trace_every, trace_window;
	char *out, *config;
	bool force, resume;
};

extern const struct mw_option mw_train_option_table[];

#endif
