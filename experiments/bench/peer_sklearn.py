"""One measurement of scikit-learn: load_svmlight_file, and SGDClassifier on the same loss, rate and epochs. Prints JSON."""
import json
import sys
import time

from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

path, test, epochs, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])


def fit(x, y, n):
    model = SGDClassifier(loss="log_loss", alpha=0, learning_rate="constant", eta0=rate, max_iter=n, tol=None,
                          fit_intercept=False, random_state=1)
    start = time.perf_counter()
    model.fit(x, y)
    return model, time.perf_counter() - start


start = time.perf_counter()
x, y = load_svmlight_file(path)
load_s = time.perf_counter() - start
one_s = fit(x, y, 1)[1]  # what fit() does besides its epochs is not counted
model, all_s = fit(x, y, epochs)
test_x, test_y = load_svmlight_file(test, n_features=x.shape[1])
print(json.dumps({"load_s": load_s, "epoch_s": (all_s - one_s) / (epochs - 1), "loss": log_loss(y, model.predict_proba(x)),
                  "accuracy": model.score(x, y), "test accuracy": model.score(test_x, test_y)}))
