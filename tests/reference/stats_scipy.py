#!/usr/bin/env python3
"""Prints the values that tests/unit_base_stats.c compares with: scipy.stats' pearsonr and spearmanr, and the percentile
bootstrap interval of scipy.stats.bootstrap with very many resamples (made with Debian's python3-scipy 1.10.1)."""
import numpy as np
import scipy
from scipy import stats

x = np.array([2.0, 5, 11, 23, 38, 154, 216, 9245, 12, 40, 40, 3])
y = np.array([0.231, 0.244, 0.240, 0.262, 0.251, 0.291, 0.3, 0.342, 0.262, 0.257, 0.272, 0.236])
print("scipy", scipy.__version__, "numpy", np.__version__)
print("pearson %.15g" % stats.pearsonr(x, y)[0])
print("pearson of log x %.15g" % stats.pearsonr(np.log(x), y)[0])
print("spearman %.15g" % stats.spearmanr(x, y)[0])
print("quantiles 0.025 0.5 0.975 of sorted y:", ["%.15g" % v for v in np.quantile(y, [0.025, 0.5, 0.975])])
for name, f in (("pearson of log x", lambda a, b: stats.pearsonr(np.log(a), b)[0]),
                ("spearman", lambda a, b: stats.spearmanr(a, b)[0])):
    r = stats.bootstrap((x, y), f, paired=True, vectorized=False, method="percentile", n_resamples=100000,
                        confidence_level=0.9, random_state=1)
    print(name, "90 %%: %.4f %.4f" % (r.confidence_interval.low, r.confidence_interval.high))
