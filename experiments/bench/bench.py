"""The measuring half of experiments/bench/run: who is measured, how, in which order, and the table that comes of it."""
import argparse
import csv
import datetime
import importlib.util
import json
import mmap
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

from goals import Goals, print_goals

RATE = 0.5
WARM_BYTES = 512 << 20
HERE = os.path.dirname(os.path.abspath(__file__))
FIELDS = ["round", "who", "workers", "what", "value", "unit", "latency_ns"]


def warm_memory():
    """
    Touch memory and give it back: a virtual machine's host takes back what has been free for seconds, and gives it again page
    by page, to whoever touches it first. That took 0.3 s for the 123 MB of the CSR, longer than reading and parsing.
    """
    with mmap.mmap(-1, WARM_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as m:
        m.madvise(mmap.MADV_HUGEPAGE)
        m[::4096] = bytes(WARM_BYTES // 4096)


class Bench:
    def __init__(self, args):
        self.args = args
        self.samples = []
        self.round = 0
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.mb = os.path.getsize(args.data) / 1e6
        self.rows = self.nonzeros = 0
        self.picked = None

    def path(self, name):
        return os.path.join(self.args.out, name)

    def record(self, who, workers, what, value, unit, latency=None):
        self.samples.append(dict(round=self.round, who=who, workers=workers, what=what, value=value, unit=unit,
                                 latency_ns=latency))

    def record_epoch(self, who, workers, seconds, latency=None):
        self.record(who, workers, "train", self.rows / seconds / 1e6, "M examples/s", latency)
        self.record(who, workers, "epoch", seconds, "s", latency)

    def latency(self):
        out = subprocess.run([self.path("latency"), *map(str, self.cpus)], check=True, capture_output=True, text=True)
        return float(out.stdout)

    def value(self, who, what, workers=2):
        """This round's."""
        return [s["value"] for s in self.samples
                if (s["round"], s["who"], s["what"], s["workers"]) == (self.round, who, what, workers)][-1]

    def resume(self):
        """Go on with the rounds that are there (--add)."""
        with open(self.path("results.csv")) as f:
            for s in csv.DictReader(line for line in f if not line.startswith("#")):
                self.samples.append({**s, "round": int(s["round"]), "workers": int(s["workers"]), "value": float(s["value"]),
                                     "latency_ns": float(s["latency_ns"]) if s["latency_ns"] else None})
        self.round = max(s["round"] for s in self.samples)
        about = json.loads(call([self.args.mixwild, "data", self.args.data, "--cache", "on", "--format", "json"]).stdout)
        self.rows, self.nonzeros = about["rows"], about["nnz"]

    # --- mixwild

    def train_command(self, name, workers, protocol, *more):
        return [self.args.mixwild, "train", "--data", self.args.data, "--model", "logistic", "--no-bias", "--rate", str(RATE),
                "--epochs", str(self.args.epochs), "--eval-every", "0", "--seed", "1", "--cache", "on", "--workers", str(workers),
                "--protocol", protocol, "--out", self.path(name), "--force", *more]

    def summary(self, name):
        with open(self.path(name) + "/run.json") as f:
            return json.load(f)["summary"]

    def mixwild_load(self):
        for threads in range(1, len(self.cpus) + 1):
            warm_memory()
            run = call([self.args.mixwild, "data", self.args.data, "--threads", str(threads), "--cache", "off", "--format", "json"])
            about = json.loads(run.stdout)
            self.rows, self.nonzeros = about["rows"], about["nnz"]
            self.record("mixwild", threads, "load", self.mb / about["load_s"], "MB/s")

    def mixwild_train(self, who, workers, protocol):
        before = self.latency() if workers > 1 else None
        call(self.train_command("run", workers, protocol))
        latency = (before + self.latency()) / 2 if workers > 1 else None
        s = self.summary("run")
        self.record_epoch(who, workers, s["seconds"] / s["epochs"], latency)
        self.record(who, workers, "loss", s["train_loss"], "nats")
        self.record(who, workers, "accuracy", s["train_accuracy"], "")
        if self.round == 1:
            out = call([self.args.mixwild, "eval", self.path("run/model.safetensors"), self.args.test, "--format", "json"])
            self.record(who, workers, "test accuracy", json.loads(out.stdout)["accuracy"], "")

    def mixwild_simulated(self):
        """1,024 virtual hogwild workers, one thread. A rate that such delays allow: it changes no speed."""
        call([*self.train_command("run-sim", 1024, "hogwild", "--engine", "sim"), "--rate", "0.001"])
        s = self.summary("run-sim")
        self.record_epoch("mixwild sim, hogwild", 1024, s["seconds"] / s["epochs"])

    def mixwild_twice(self):
        """Two processes of one worker side by side: what two cores could give if sharing cost nothing."""
        latency = self.latency()
        self.record_epoch("mixwild, 2 processes", 2, self.rows / self.rate_of_two(), latency)

    def rate_of_two(self):
        """Examples a second of both together."""
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        runs = [subprocess.Popen(["taskset", "-c", str(cpu), *self.train_command(f"run-{cpu}", 1, "sequential")], **quiet)
                for cpu in self.cpus]
        if any(run.wait() for run in runs):
            sys.exit("bench: one of two mixwild processes failed")
        return sum(self.summary(f"run-{cpu}")["examples_per_s"] for cpu in self.cpus)

    # --- peers

    def scikit(self):
        warm_memory()
        run = call([sys.executable, os.path.join(HERE, "peer_sklearn.py"), self.args.data, self.args.test,
                    str(self.args.epochs), str(RATE)])
        r = json.loads(run.stdout)
        self.record("scikit-learn SGD", 1, "load", self.mb / r["load_s"], "MB/s")
        self.record_epoch("scikit-learn SGD", 1, r["epoch_s"])
        for what, unit in (("loss", "nats"), ("accuracy", ""), ("test accuracy", "")):
            self.record("scikit-learn SGD", 1, what, r[what], unit)

    def liblinear(self):
        """Its program times nothing: many iterations less one give the time of one; one run less one iteration, loading."""
        model = self.path("liblinear.model")
        warm_memory()
        t0 = time.perf_counter()
        call(["liblinear-train", "-s", "7", "-e", "1e9", self.args.data, model])
        t1 = time.perf_counter()
        out = call(["liblinear-train", "-s", "7", "-e", "0.001", self.args.data, model]).stdout
        t2 = time.perf_counter()
        n = int(re.findall(r"#iter = (\d+)", out)[-1])
        each = ((t2 - t1) - (t1 - t0)) / (n - 1)
        if 0 < each < t1 - t0:
            self.record("liblinear -s 7", 1, "load", self.mb / ((t1 - t0) - each), "MB/s")
            self.record_epoch("liblinear -s 7", 1, each)
        else:
            print(f"round {self.round}: no time of liblinear: too noisy ({t1 - t0:.2f} s with 1 iteration, {t2 - t1:.2f} s "
                  f"with {n})", file=sys.stderr)
        if self.round > 1:
            return
        for data, what in ((self.args.data, "accuracy"), (self.args.test, "test accuracy")):
            out = call(["liblinear-predict", data, model, self.path("predicted")]).stdout
            self.record("liblinear -s 7", 1, what, float(re.findall(r"Accuracy = ([0-9.]+)%", out)[0]) / 100, "")

    def measure(self):
        peers = []
        if shutil.which("liblinear-train"):
            peers.append(self.liblinear)
        if importlib.util.find_spec("sklearn"):
            peers.append(self.scikit)
        two = len(self.cpus) > 1
        goals = Goals(self, call, warm_memory)
        done = self.round
        for self.round in range(done + 1, done + self.args.rounds + 1):
            print(f"round {self.round} of {done + self.args.rounds}", file=sys.stderr)
            self.mixwild_load()
            self.mixwild_train("mixwild", 1, "sequential")
            self.mixwild_simulated()
            for peer in peers:
                peer()
            if two:
                self.mixwild_train("mixwild hogwild", 2, "hogwild")
                self.mixwild_train("mixwild cached", 2, "cached")
                self.mixwild_twice()
            goals.measure(two)

    # --- results

    def medians(self):
        """[(what, unit, [(who, workers, min, median, max, latency)])] in the order of measurement."""
        tables = {}
        for s in self.samples:
            if s["who"] == "goal":
                continue
            rows = tables.setdefault((s["what"], s["unit"]), {})
            rows.setdefault((s["who"], s["workers"]), []).append(s)
        for (what, unit), rows in tables.items():
            table = []
            for (who, workers), got in rows.items():
                v = [s["value"] for s in got]
                latency = [s["latency_ns"] for s in got if s["latency_ns"]]
                table.append((who, workers, min(v), statistics.median(v), max(v),
                              statistics.median(latency) if latency else None))
            yield what, unit, table

    def ratios(self, what, who, workers):
        """mixwild with one thread over this, round by round."""
        def of(name, n):
            return {s["round"]: s["value"] for s in self.samples if (s["what"], s["who"], s["workers"]) == (what, name, n)}
        ours, theirs = of("mixwild", 1), of(who, workers)
        return sorted(ours[r] / theirs[r] for r in theirs)

    def write_csv(self, path):
        with open(path, "w", newline="") as f:
            for key, value in self.about().items():
                f.write(f"# {key}: {value}\n")
            out = csv.DictWriter(f, FIELDS, lineterminator="\n")
            out.writeheader()
            out.writerows({**s, "value": f"{s['value']:.6g}", "latency_ns": s["latency_ns"] or ""} for s in self.samples)

    def about(self):
        with open("/proc/cpuinfo") as f:
            cpu = re.findall(r"model name\s*: (.*)", f.read())
        versions = call([self.args.mixwild, "--version"]).stdout.splitlines()[0]
        return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "command": self.args.command,
                "machine": f"{cpu[0] if cpu else platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, "
                           f"{platform.platform()}",
                "load average at the end": " ".join(f"{x:.1f}" for x in os.getloadavg()),
                "version": versions,
                "data": f"{self.rows} rows, {self.nonzeros} non-zeros, {self.mb:.0f} MB; {self.args.epochs} epochs, "
                        f"rate {RATE}"}

    def print_tables(self, file):
        for key, value in self.about().items():
            print(f"{key}: {value}", file=file)
        for what, unit, table in self.medians():
            print(f"\n{what}{f' ({unit})' if unit else '':20s}", file=file)
            for who, workers, low, middle, high, latency in table:
                line = f"  {who:22s} {workers} {low:11.5g} {middle:11.5g} {high:11.5g}"
                if what == "train":
                    line += f"  {middle * self.nonzeros / self.rows:6.0f} M non-zeros/s"
                if what in ("train", "load") and (who, workers) != ("mixwild", 1):
                    r = self.ratios(what, who, workers)
                    line += f"  mixwild 1 / this: {statistics.median(r):5.2f} ({r[0]:.2f} to {r[-1]:.2f})"
                if latency:
                    line += f"  core to core {latency:.0f} ns"
                print(line, file=file)

        goals = {}
        for s in self.samples:
            if s["who"] == "goal":
                goals.setdefault(s["what"], (s["unit"], []))[1].append(s["value"])
        print_goals({what: (unit, min(v), statistics.median(v), max(v)) for what, (unit, v) in goals.items()}, self.picked, file)

    def plot(self):
        if not shutil.which("gnuplot"):
            return
        script = ["set terminal svg size 900,520 font 'sans,12'", f"set output '{self.path('bench.svg')}'", "unset key",
                  "set style fill solid 0.7", "set boxwidth 0.6", "set yrange [0:*]", "set xtics rotate by 40 right",
                  "set bars 0.5", "set bmargin 11", "set lmargin 12", "set multiplot layout 1,2"]
        for what, unit, table in self.medians():
            if what not in ("train", "load"):
                continue
            script += [f"set title '{what}: {unit} (median, min to max)'", "$d << END"]
            script += [f'"{label(who, workers)}" {low} {middle} {high}' for who, workers, low, middle, high, _ in table]
            script += ["END", "plot $d using 0:3:xtic(1) with boxes lc rgb '#4477aa', "
                       "'' using 0:3:2:4 with yerrorbars lc rgb '#222222' ps 0"]
        subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def label(who, workers):
    return who if "processes" in who or "sim" in who else f"{who}, {workers} thread{'s' if workers > 1 else ''}"


def call(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"bench: this failed: {' '.join(command)}\n{run.stderr}")
    return run


def main():
    p = argparse.ArgumentParser()
    for name in ("mixwild", "data", "test", "out", "command"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--rounds", type=int, required=True)
    p.add_argument("--epochs", type=int, required=True)
    p.add_argument("--add", action="store_true")
    bench = Bench(p.parse_args())
    if bench.args.add and os.path.exists(bench.path("results.csv")):
        bench.resume()
    bench.measure()
    bench.write_csv(bench.path("results.csv"))
    bench.plot()
    with open(bench.path("results.txt"), "w") as f:
        bench.print_tables(f)
    bench.print_tables(sys.stdout)
    print(f"\nevery measurement: {bench.path('results.csv')}; drawn: {bench.path('bench.svg')}")


main()
