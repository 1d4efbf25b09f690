"""Time to a loss of the candidates for --protocol auto, in turn, next to what auto picks: the measuring half of `run`.

default.py MIXWILD FOLDER OUT ROUNDS [SET...|spam-rates|sim]: FOLDER has the files that the sets name; OUT gets, for each set, SET.csv (every
evaluation) and SET.txt (the table). A candidate's time is its training clock, the same for all: loading and evaluations are not in it.
"""
import csv
import json
import math
import os
import subprocess
import sys

MIXWILD, FOLDER, OUT, ROUNDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
CLOSE = 1.005  # of one worker's last loss: what has to be reached
CPUS = len(os.sched_getaffinity(0))
WORKERS = int(os.environ.get("WORKERS", str(min(2, CPUS))))
ONE = "one worker"
CACHED = {f"cached {k}": ["cached", "--mix-every", str(k)] for k in (1, 2, 4, 16, 64, 256, 1024, 2048, 4096, 8192)}
BLOCKS = {"cached 2048, 8 blocks": ["cached", "--mix-every", "256", "--mix-fraction", "0.125"]}
ROUND = {"sync-ps": ["sync-ps"], "local-sgd 16": ["local-sgd", "--mix-every", "16"]}


def cached(*periods):
    return {f"cached {k}": CACHED[f"cached {k}"] for k in periods}


# --hot: copies of the popular columns, the others shared at once. numa: a replica for each group, as for each L3 or node.
HOT = {f"cached 2048, hot {h}": ["cached", "--mix-every", "2048", "--hot", str(h)] for h in (1024, 16384, 131072)}
GROUPS = {"numa, 2 groups": ["numa", "--groups", "2", "--mix-every", "256"]}
LINEAR = {"hogwild": ["hogwild"], **cached(64, 256, 1024, 2048, 4096, 8192), **BLOCKS,
          "cached, steered": ["cached", "--estimate", "probe", "--target-tmix", "8400"], "local-sgd 256": ["local-sgd", "--mix-every", "256"]}
RCV1 = {**LINEAR, **HOT, **GROUPS}
DENSE = {"hogwild": ["hogwild"], **cached(2, 4, 16, 64, 256, 1024), **ROUND}
NET = {"hogwild": ["hogwild"], **cached(1, 4, 16), **ROUND}
SETS = {
    "rcv1": (["--data", f"{FOLDER}/rcv1-like-200000.svm", "--cache", "on", "--model", "logistic", "--no-bias", "--rate", "0.5",
              "--epochs", "8", "--eval-every", "0.5"], RCV1),
    "wide": (["--data", "synth:sparse,rows=200000,features=10000000,seed=1", "--model", "logistic", "--no-bias", "--rate", "0.5", "--epochs", "20",
              "--eval-every", "2"], {"hogwild": ["hogwild"], **cached(2048, 8192), **HOT}),
    "rcv1-bias": (["--data", f"{FOLDER}/rcv1-like-200000.svm", "--cache", "on", "--model", "logistic", "--rate", "0.5", "--epochs", "8",
                   "--eval-every", "0.5"],
                  {"hogwild": ["hogwild"], "cached 8": ["cached", "--mix-every", "8"], **cached(16, 64, 256, 2048)}),
    "rcv1-amsgrad": (["--data", f"{FOLDER}/rcv1-like-200000.svm", "--cache", "on", "--model", "logistic", "--no-bias",
                      "--optimizer", "amsgrad", "--rate", "0.001", "--epochs", "6", "--eval-every", "0.5"], LINEAR),
    "spam": (["--data", f"{FOLDER}/spam-train.svm.gz", "--model", "logistic", "--no-bias", "--rate", "4", "--epochs", "20"], LINEAR),
    "mnist": (["--data", f"{FOLDER}/mnist/train-images-idx3-ubyte", "--model", "softmax", "--rate", "cosine:0.02", "--epochs", "5",
               "--eval-every", "0.5"], DENSE),
    "mnist-batch": (["--data", f"{FOLDER}/mnist/train-images-idx3-ubyte", "--model", "softmax", "--batch", "16", "--rate",
                     "cosine:0.2", "--epochs", "5", "--eval-every", "0.5"], DENSE),
    "dense": (["--data", "synth:dense,rows=20000,features=784", "--rate", "0.001", "--epochs", "20"], DENSE),
    # a rate that falls: at a constant one the last losses of equal runs lie up to 6 % apart
    "mlp": (["--data", f"{FOLDER}/mnist/train-images-idx3-ubyte", "--model", "mlp:128,128", "--batch", "32", "--rate", "cosine:0.1",
             "--epochs", "4", "--eval-every", "0.5", "--eval-rows", "10000"], NET),
}
# Where a larger step is always better the protocols are compared each at its own best rate: of these.
RATES = [4, 8, 16, 32, 64]
TUNED = {ONE: ["sequential"], "hogwild": ["hogwild"], **cached(64, 256, 1024, 2048, 4096, 8192), "auto": ["auto"]}
points = []


def train(name, turn, who, workers, protocol, *more):
    folder = f"{OUT}/run"
    command = [MIXWILD, "train", *SETS[name][0], "--protocol", *protocol, "--seed", str(turn), "--out", folder, "--force", *more]
    if protocol == ["auto"]:  # it may leave one of the workers that the CPUs suggest
        command = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:WORKERS])), *command]
    else:
        command += ["--workers", str(workers)]
    got = subprocess.run(command, capture_output=True, text=True)
    if got.returncode not in (0, 4):  # 4: diverged, which is an answer
        sys.exit(f"default: this failed: {' '.join(command)}\n{got.stderr}")
    with open(f"{folder}/run.json") as f:
        run = json.load(f)
    with open(f"{folder}/metrics.jsonl") as f:
        lines = [line for line in map(json.loads, f) if line.get("train_loss") is not None]
    tmix = (run["summary"].get("t_mix") or {}).get("exact") or {}
    for line in lines:
        points.append(dict(set=name, who=who, round=turn, rate=more[1] if more else "", epoch=line["epoch"], seconds=line["seconds"],
                           train_loss=line["train_loss"], test_loss=line.get("test_loss"), examples_per_s=run["summary"]["examples_per_s"],
                           staleness=run["summary"]["staleness"]["mean"], t_mix=tmix.get("value"),
                           picked=f"{run['protocol']['name']} {run['protocol']['mix_every']}"))


def median(values):
    v = sorted(values)
    return (v[(len(v) - 1) // 2] + v[len(v) // 2]) / 2 if v else math.nan


def of(name, who):
    """The evaluations of a candidate, a list a round (and rate)."""
    rounds = {}
    for p in points:
        if (p["set"], p["who"]) == (name, who):
            rounds.setdefault((p["round"], p["rate"]), []).append(p)
    return list(rounds.values())


def crossing(run, target):
    """Seconds at which the loss came to the target, on a line between two evaluations; infinite if it never did."""
    for before, p in zip(run, run[1:]):
        if p["train_loss"] <= target:
            share = (before["train_loss"] - target) / (before["train_loss"] - p["train_loss"]) if before["train_loss"] > target else 0
            return before["seconds"] + share * (p["seconds"] - before["seconds"])
    return math.inf


def at_epoch(runs, epoch):
    return median([p["train_loss"] for run in runs for p in run if abs(p["epoch"] - epoch) < 0.05])


def table(name, f):
    whos = list(dict.fromkeys(p["who"] for p in points if p["set"] == name))
    one = of(name, ONE)
    last = median([run[-1]["train_loss"] for run in one])
    epochs = one[0][-1]["epoch"]
    first, quarter = (min((p["epoch"] for p in one[0][1:]), key=lambda e: abs(e - want)) for want in (1, max(1, round(epochs / 4))))
    early, late = at_epoch(one, quarter) * CLOSE, last * CLOSE
    times = {who: [median([crossing(run, t) for run in of(name, who)]) for t in (early, late)] for who in whos}
    print(f"\n{name}: {' '.join(SETS[name][0]).replace(FOLDER + '/', '')}\n  {WORKERS} workers, medians of {ROUNDS} in turn; "
          f"seconds to a train loss of {early:.5f} and {late:.5f} (one worker's after {quarter:g} and {epochs:g} "
          f"epochs, and 0.5 %)", file=f)
    print(f"  {'':24s}{'M ex/s':>8s}{'stale':>9s}{'t_mix':>9s}{f'ep. {first:g}':>9s}{'last':>9s}{'to last':>9s}{'early s':>9s}{'late s':>9s}"
          f"{'x best':>8s}", file=f)
    best = min(t[1] for who, t in times.items() if who != "auto")
    for who in whos:
        runs = of(name, who)
        loss = median([run[-1]["train_loss"] for run in runs])
        tmix = [run[-1]["t_mix"] for run in runs if run[-1]["t_mix"] is not None]
        def cell(t):
            return f"{'never':>9s}" if math.isinf(t) else f"{t:9.4f}"
        print(f"  {who:24s}{median([run[-1]['examples_per_s'] for run in runs]) / 1e6:8.3f}"
              f"{median([run[-1]['staleness'] or 0 for run in runs]):9.4g}{median(tmix):9.4g}{at_epoch(runs, first):9.5f}{loss:9.5f}"
              f"{100 * (loss / last - 1):+8.2f}%{cell(times[who][0])}{cell(times[who][1])}{times[who][1] / best:8.2f}"
              + (f"  is {runs[0][-1]['picked']}" if who == "auto" else ""), file=f)


def simulate():
    """Losses of more workers than there are cores, by virtual ones: exact, and the same on any machine."""
    flags = ["--data", f"{FOLDER}/rcv1-like-60000.svm", "--cache", "on", "--model", "logistic", "--no-bias", "--rate", "0.5",
             "--epochs", "4", "--eval-every", "2"]
    rows = [["workers", "period", "loss after 2 epochs", "after 4"]]
    for workers, periods in ((1, [0]), (2, [64, 1024, 4096]), (8, [16, 64, 128, 512, 2048]), (32, [4, 16, 32, 128, 512])):
        for period in periods:
            how = ["--protocol", "cached", "--mix-every", str(period)] if period else ["--protocol", "sequential"]
            got = subprocess.run([MIXWILD, "train", *flags, *how, "--workers", str(workers), "--engine", "sim", "--out",
                                  f"{OUT}/run", "--force"], capture_output=True, text=True)
            if got.returncode not in (0, 4):
                sys.exit(f"default: a simulated run failed:\n{got.stderr}")
            with open(f"{OUT}/run/metrics.jsonl") as f:
                lines = [line["train_loss"] for line in map(json.loads, f) if line.get("train_loss") is not None]
            rows.append([workers, period, *(f"{x:.5f}" for x in lines[1:3])])
    with open(f"{OUT}/sim.csv", "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows(rows)
    for row in rows:
        print("".join(f"{x!s:>22}" for x in row))


def tuned():
    """spam at several rates: seconds to what one worker has after 20 epochs at the first, and the test part's loss there."""
    name, test = "spam", f"{FOLDER}/spam-test.svm.gz"
    for turn in range(1, ROUNDS + 1):
        for rate in RATES:
            for who, protocol in TUNED.items():
                train(name, turn, who, 1 if who == ONE else WORKERS, protocol, "--rate", str(rate), "--test", test)
    target = at_epoch([r for r in of(name, ONE) if r[0]["rate"] == str(RATES[0])], 20) * CLOSE
    best = {}
    with open(f"{OUT}/spam-rates.txt", "w") as f:
        def say(text):
            print(text)
            print(text, file=f)
        say(f"spam, --no-bias, rates {RATES}: median of {ROUNDS} in turn of the seconds to a train loss of {target:.5f} (one worker's "
            f"at rate {RATES[0]} after 20 epochs, and 0.5 %)\n" + " " * 18 + "".join(f"{'rate ' + str(r):>10s}" for r in RATES) +
            "      best   x best  test loss, least of any evaluation, at the best rate")
        for who in TUNED:
            runs = {rate: [r for r in of(name, who) if r[0]["rate"] == str(rate)] for rate in RATES}
            times = {rate: median([crossing(r, target) for r in runs[rate]]) for rate in RATES}
            at = min(RATES, key=lambda r: times[r])
            best[who] = (times, at, median([min(p["test_loss"] for p in r) for r in runs[at]]))
        least = min(times[at] for who, (times, at, _) in best.items() if who != "auto")
        for who, (times, at, loss) in best.items():
            say(f"  {who:16s}" + "".join(f"{'never':>10s}" if math.isinf(times[r]) else f"{times[r]:10.4f}" for r in RATES) +
                f"{at:10d}{times[at] / least:9.2f}  {loss:.5f}")
    save("spam-rates", [p for p in points if p["set"] == name])
    points.clear()


def save(name, rows):
    with open(f"{OUT}/{name}.csv", "w", newline="") as f:
        w = csv.DictWriter(f, list(rows[0]), lineterminator="\n")
        w.writeheader()
        w.writerows({**p, "seconds": f"{p['seconds']:.5g}", "train_loss": f"{p['train_loss']:.6g}", "test_loss": p["test_loss"] and
                     f"{p['test_loss']:.6g}", "examples_per_s": f"{p['examples_per_s']:.5g}",
                     "staleness": f"{p['staleness'] or 0:.4g}"} for p in rows)


def write(name):
    of_set = [p for p in points if p["set"] == name]
    save(name, of_set)
    with open(f"{OUT}/{name}.txt", "w") as f:
        table(name, f)
    table(name, sys.stdout)


def main():
    os.makedirs(OUT, exist_ok=True)
    for name in sys.argv[5:] or [*SETS, "spam-rates", "sim"]:
        if name in ("sim", "spam-rates"):
            simulate() if name == "sim" else tuned()
            continue
        for turn in range(1, ROUNDS + 1):
            train(name, turn, ONE, 1, ["sequential"])
            for who, protocol in SETS[name][1].items():
                train(name, turn, who, WORKERS, protocol)
            train(name, turn, "auto", WORKERS, ["auto"])
        write(name)


main()
