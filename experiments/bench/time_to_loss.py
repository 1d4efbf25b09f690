"""Wall seconds, loading included, to reach given test losses: mixwild, liblinear and scikit-learn on the spam set and on MNIST.

time_to_loss.py MIXWILD DATA-FOLDER MNIST-FOLDER OUT [--add]. Writes OUT/time_to_loss.csv (every point), .txt (the table) and .svg.
--add: to the rounds that OUT holds, so that quiet minutes can be used one by one.
Environment: ROUNDS (3), SETS ("spam mnist").
A point is (loading + training until then, loss on the test part); evaluating it isn't counted, nor is starting Python.
mixwild gives a point an epoch of one run; liblinear a run per tolerance; scikit-learn's SGDClassifier an epoch,
its LogisticRegression a fit per number of iterations. Classes one against the rest are normalised (SGDClassifier, liblinear).
"""
import csv
import gzip
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")  # that a fit of few iterations has not converged is the point
mixwild, data, mnist, out = sys.argv[1:5]
ADD = sys.argv[5:] == ["--add"]
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SPAM = [f"{data}/spam-train.svm.gz", f"{data}/spam-test.svm.gz"]
MNIST = [f"{mnist}/train-images-idx3-ubyte", f"{mnist}/t10k-images-idx3-ubyte"]
SETS = {
    "spam": dict(files=SPAM, targets=[0.1, 0.05, 0.04, 0.03, 0.025],
                 flags=["--model", "logistic", "--no-bias", "--rate", "4", "--epochs", "20"]),
    "mnist": dict(files=MNIST, targets=[0.4, 0.35, 0.32, 0.3, 0.28],
                  flags=["--model", "softmax", "--batch", "16", "--rate", "cosine:0.2", "--epochs", "10"]),
}
SETS = {name: s for name, s in SETS.items() if name in os.environ.get("SETS", "spam mnist").split()}
points = []


def add(name, who, turn, seconds, loss):
    points.append(dict(set=name, who=who, round=turn, seconds=seconds, test_loss=loss))


def log_loss(y, classes, p):
    """Mean of -log of the right class's probability."""
    at = {c: i for i, c in enumerate(classes)}
    return -sum(math.log(max(row[at[label]], 1e-15)) for label, row in zip(y, p)) / len(y)


def run_mixwild(name, s, turn, workers):
    folder = f"{out}/time-run"
    subprocess.run([mixwild, "train", "--data", s["files"][0], "--test", s["files"][1], *s["flags"], "--workers", str(workers),
                    "--protocol", "auto", "--eval-every", "1", "--seed", str(turn), "--cache",
                    "off", "--out", folder, "--force"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(f"{folder}/run.json") as f:
        load_s = json.load(f)["data"]["load_s"]
    with open(f"{folder}/metrics.jsonl") as f:
        for line in map(json.loads, f):
            if "test_loss" in line:
                add(name, f"mixwild, {workers} worker{'s' * (workers > 1)}", turn, load_s + line["seconds"], line["test_loss"])


def read_idx(path):
    import numpy as np
    with open(path, "rb") as f:
        head = np.frombuffer(f.read(4), ">u1")
        shape = np.frombuffer(f.read(4 * int(head[3])), ">i4")
        return np.frombuffer(f.read(), np.uint8).reshape(shape[0], -1)


def labels_of(images):
    return read_idx(images.replace("images-idx3", "labels-idx1")).ravel()


def text_files(name, s):
    """What liblinear reads: plain text; of MNIST, made here."""
    made = [f"{out}/{name}-{part}.svm" for part in ("train", "test")]
    for source, target in zip(s["files"], made):
        if os.path.exists(target):
            continue
        with open(target, "w") as f:
            if source.endswith(".gz"):
                with gzip.open(source, "rt") as g:
                    shutil.copyfileobj(g, f)
                continue
            for label, row in zip(labels_of(source), read_idx(source)):
                at = row.nonzero()[0]
                f.write(f"{label} " + " ".join(f"{i + 1}:{v / 255:.6g}" for i, v in zip(at, row[at])) + "\n")
    return made


def run_liblinear(name, s, turn):
    train, test = text_files(name, s)
    with open(test) as f:
        y = [int(float(line.split()[0])) for line in f]
    for tolerance in ("1", "0.1", "0.01", "0.001") if name == "spam" else ("1", "0.1"):
        start = time.perf_counter()
        subprocess.run(["liblinear-train", "-q", "-s", "0", "-c", "100" if name == "spam" else "1", "-e", tolerance, train,
                        f"{out}/time.model"], check=True)
        seconds = time.perf_counter() - start
        subprocess.run(["liblinear-predict", "-q", "-b", "1", test, f"{out}/time.model", f"{out}/time.predicted"], check=True,
                       stdout=subprocess.DEVNULL)
        with open(f"{out}/time.predicted") as f:
            classes = [int(c) for c in f.readline().split()[1:]]
            p = [[float(x) for x in line.split()[1:]] for line in f]
        add(name, "liblinear -s 0", turn, seconds, log_loss(y, classes, p))


def load_scikit(name, s):
    from sklearn.datasets import load_svmlight_file
    if name == "spam":
        x, y = load_svmlight_file(s["files"][0])
        return (x, y), load_svmlight_file(s["files"][1], n_features=x.shape[1])
    return tuple((read_idx(f).astype("float32") / 255, labels_of(f)) for f in s["files"])


def run_scikit(name, s, turn):
    import numpy as np
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.metrics import log_loss as loss_of
    start = time.perf_counter()
    (x, y), (test_x, test_y) = load_scikit(name, s)
    load_s = seconds = time.perf_counter() - start  # with the test part, which is small
    model = SGDClassifier(loss="log_loss", alpha=1e-7 if name == "spam" else 1e-5, learning_rate="constant",
                          eta0=4 if name == "spam" else 0.01, random_state=turn)
    for _ in range(10 if name == "spam" else 5):
        start = time.perf_counter()
        model.partial_fit(x, y, classes=np.unique(y))
        seconds += time.perf_counter() - start
        add(name, "scikit-learn SGD", turn, seconds, loss_of(test_y, model.predict_proba(test_x)))
    for n in (5, 10, 20, 40, 80) if name == "spam" else (10, 20, 40):
        start = time.perf_counter()
        model = LogisticRegression(C=100 if name == "spam" else 1, max_iter=n, tol=1e-9).fit(x, y)
        add(name, "scikit-learn LogisticRegression", turn, load_s + time.perf_counter() - start,
            loss_of(test_y, model.predict_proba(test_x)))


def median(v):
    v = sorted(v)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2


def reached(name, who, target):
    """Seconds until the loss was first at most that, a round each; infinite where it never was."""
    rounds = {}
    for p in points:
        if (p["set"], p["who"]) == (name, who):
            t = p["seconds"] if p["test_loss"] <= target else math.inf
            rounds[p["round"]] = min(t, rounds.get(p["round"], math.inf))
    return list(rounds.values())


def print_table(f):
    for name, s in SETS.items():
        whos = list(dict.fromkeys(p["who"] for p in points if p["set"] == name))
        rounds = len({p["round"] for p in points if p["set"] == name})
        print(f"{name}: seconds (loading + training, median of {rounds}) to a test loss of", file=f)
        print(f"{'':34s}" + "".join(f"{t:>9g}" for t in s["targets"]) + "     least loss", file=f)
        for who in whos:
            cells = [median(reached(name, who, t)) for t in s["targets"]]
            least = min(p["test_loss"] for p in points if (p["set"], p["who"]) == (name, who))
            print(f"  {who:32s}" + "".join(f"{'never':>9s}" if math.isinf(c) else f"{c:9.3f}" for c in cells) +
                  f"{least:15.4f}", file=f)
        print(file=f)


def plot():
    if not shutil.which("gnuplot"):
        return
    script = ["set terminal svg size 900,420 font 'sans,12'", f"set output '{out}/time_to_loss.svg'", "set logscale x",
              "set xlabel 'seconds, loading included'", "set ylabel 'test loss'", "set grid", "set multiplot layout 1,2"]
    for name in SETS:
        whos = list(dict.fromkeys(p["who"] for p in points if p["set"] == name))
        top = 2 * SETS[name]["targets"][0]
        for i, who in enumerate(whos):
            script += [f"$d{i} << END"] + [f"{p['seconds']} {p['test_loss']}" for p in points
                                          if (p["set"], p["who"], p["round"]) == (name, who, 1)] + ["END"]
        script += [f"set title '{name}'", f"set yrange [0:{top}]",
                   "plot " + ", ".join(f"$d{i} with linespoints pt 7 ps 0.4 title '{who}'" for i, who in enumerate(whos))]
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def main():
    os.makedirs(out, exist_ok=True)
    if ADD and os.path.exists(f"{out}/time_to_loss.csv"):
        with open(f"{out}/time_to_loss.csv", newline="") as f:
            points.extend({**p, "round": int(p["round"]), "seconds": float(p["seconds"]), "test_loss": float(p["test_loss"])}
                          for p in csv.DictReader(f))
    for _ in range(ROUNDS):
        for name, s in SETS.items():
            turn = 1 + max((p["round"] for p in points if p["set"] == name), default=0)
            print(f"round {turn}: {name}", file=sys.stderr)
            for workers in (1, 2)[:len(os.sched_getaffinity(0))]:
                run_mixwild(name, s, turn, workers)
            if shutil.which("liblinear-train"):
                run_liblinear(name, s, turn)
            if importlib.util.find_spec("sklearn"):
                run_scikit(name, s, turn)
    with open(f"{out}/time_to_loss.csv", "w", newline="") as f:
        w = csv.DictWriter(f, list(points[0]), lineterminator="\n")
        w.writeheader()
        w.writerows({**p, "seconds": f"{p['seconds']:.5g}", "test_loss": f"{p['test_loss']:.6g}"} for p in points)
    with open(f"{out}/time_to_loss.txt", "w") as f:
        print_table(f)
    print_table(sys.stdout)
    plot()


main()
