"""Test accuracy of scikit-learn's LogisticRegression, its penalty chosen by cross-validation on the training part."""
import sys

from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

x, y = load_svmlight_file(sys.argv[1])
test_x, test_y = load_svmlight_file(sys.argv[2], n_features=x.shape[1])
search = GridSearchCV(LogisticRegression(solver="liblinear", max_iter=1000), {"C": [1, 10, 100, 1000]}, cv=3)
print(f"{search.fit(x, y).score(test_x, test_y):.5f}")
