"""The goals of speed that bench.py's own rounds don't measure, and the table of them all: see README.md."""
import json
import os
import re
import subprocess
import threading
import time

DENSE = "synth:dense,rows=20000,features=784"
QUADRATIC = "synth:quadratic,dim=16,rows=200000"


class Goals:
    """Measures into a Bench's samples; who is "goal", what the goal's key."""

    def __init__(self, bench, call, warm_memory):
        self.bench, self.call, self.warm_memory = bench, call, warm_memory

    def put(self, key, value, unit):
        self.bench.record("goal", 1, key, value, unit)

    def train(self, *flags):
        """The summary and the whole record of a run."""
        folder = self.bench.path("run-goal")
        self.call([self.bench.args.mixwild, "train", "--eval-every", "0", "--seed", "1", "--out", folder, "--force", *flags])
        with open(folder + "/run.json") as f:
            run = json.load(f)
        return run["summary"], run

    def sparse(self, *flags):
        return self.train("--data", self.bench.args.data, "--cache", "on", "--model", "logistic", "--no-bias", *flags)

    def orders(self):
        a_row = self.bench.nonzeros / self.bench.rows
        rates = {}
        for order in ("block", "random"):
            s, _ = self.sparse("--rate", "0.5", "--epochs", "10", "--workers", "1", "--protocol", "sequential", "--order", order)
            rates[order] = s["examples_per_s"]
            self.put(f"one thread, {order} order", s["examples_per_s"] * a_row / 1e6, "M non-zeros/s")
        s, _ = self.sparse("--rate", "0.001", "--optimizer", "amsgrad", "--epochs", "6", "--workers", "1", "--protocol", "sequential")
        self.put("AMSGrad over SGD", s["examples_per_s"] / rates["block"], "")

    def two(self):
        """Two workers as the default has them, between two runs of two processes, and one worker's loss."""
        one, _ = self.sparse("--rate", "0.5", "--epochs", "10", "--workers", "1", "--protocol", "sequential")
        before = self.bench.rate_of_two()
        s, run = self.sparse("--rate", "0.5", "--epochs", "10", "--workers", "2", "--protocol", "auto")
        rate = (before + self.bench.rate_of_two()) / 2
        self.put("two workers, auto", s["examples_per_s"] * self.bench.nonzeros / self.bench.rows / 1e6, "M non-zeros/s")
        self.put("two workers over two processes", s["examples_per_s"] / rate, "")
        self.put("loss of two over one", s["train_loss"] / one["train_loss"], "")
        self.bench.picked = f"{run['protocol']['name']}, every {run['protocol']['mix_every']} steps"

    def loading(self):
        b = self.bench
        self.put("load, one thread", b.value("mixwild", "load", 1), "MB/s")
        packed = b.args.data + ".gz"
        if not os.path.exists(packed):
            with open(packed + ".tmp", "wb") as f:
                subprocess.run(["gzip", "-1", "-c", b.args.data], stdout=f, check=True)
            os.rename(packed + ".tmp", packed)
        load_s = self.load_s(packed, "--threads", "2", "--cache", "off")
        alone_s = float(self.call([b.path("inflate"), packed]).stdout)
        self.put("load of .gz over zlib alone", alone_s / load_s, "")
        self.load_s(b.args.data, "--cache", "on")
        self.put("cache mapped and checked", 1000 * self.load_s(b.args.data, "--cache", "auto"), "ms")
        self.put("peak RssAnon over CSR", self.peak([b.args.mixwild, "data", b.args.data, "--threads", "1", "--cache", "off"]) /
                 (8 * b.nonzeros + 12 * b.rows), "")

    def load_s(self, path, *flags):
        self.warm_memory()
        out = self.call([self.bench.args.mixwild, "data", path, *flags, "--format", "json"]).stdout
        return json.loads(out)["load_s"]

    def peak(self, command):
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        most = [0]

        def watch():
            while run.poll() is None:
                try:
                    with open(f"/proc/{run.pid}/status") as f:
                        most[0] = max([most[0]] + [int(kb) * 1024 for kb in re.findall(r"RssAnon:\s*(\d+)", f.read())])
                except OSError:
                    pass
                time.sleep(0.001)
        watcher = threading.Thread(target=watch)
        watcher.start()
        run.wait()
        watcher.join()
        return most[0]

    def dense(self):
        out = self.call([self.bench.args.mixwild, "bench", "--repeats", "3", "--format", "csv"]).stdout
        read = float(re.findall(r"^read,0,GB/s,([0-9.]+)", out, re.M)[0])
        s, _ = self.train("--data", DENSE, "--rate", "0.001", "--epochs", "60", "--workers", "1", "--protocol", "sequential")
        self.put("dense rows, of memory's rate", s["examples_per_s"] * 784 * 4 / 1e9 / read, "")

    def watching(self):
        """Throughput with what is on by default, and more, over that without, turn by turn (off on on off)."""
        def ratio(flags, off, on):
            speed = {"off": [], "on": []}
            for name, extra in (("off", off), ("on", on), ("on", on), ("off", off)):
                speed[name].append(self.train(*flags, *extra)[0]["examples_per_s"])
            return sum(speed["on"]) / sum(speed["off"])
        sparse = ["--data", self.bench.args.data, "--cache", "on", "--model", "logistic", "--no-bias", "--rate", "0.5", "--epochs", "20",
                  "--workers", "2", "--protocol", "cached", "--eval-rows", "1000"]
        dense = ["--data", "synth:dense,rows=20000,features=2000", "--rate", "0.0001", "--epochs", "100", "--workers", "2", "--protocol",
                 "async-ring", "--mix-every", "8", "--eval-rows", "1000"]
        off, on = ["--sample-every", "0"], ["--metrics-every", "0.25"]
        self.put("speed with counting and sampling, sparse", ratio(sparse, off, on), "")
        self.put("speed with probes as well, dense", ratio(dense, off, on + ["--estimate", "probe"]), "")

    def simulator(self):
        s, _ = self.train("--engine", "sim", "--workers", "64", "--data", QUADRATIC, "--rate", "0.001", "--epochs", "10")
        self.put("sim, n = 64", s["examples_per_s"] / 1e6, "M events/s")
        start = time.perf_counter()
        self.call([self.bench.args.mixwild, "tmix", "--protocol", "async-ring", "--workers", "1024"])
        self.put("exact t_mix of a ring of 1,024", time.perf_counter() - start, "s")

    def measure(self, two):
        self.orders()
        self.loading()
        self.dense()
        self.simulator()
        if two:
            self.two()
            self.watching()


# goal, what, at least (1) or at most (-1), target
TABLE = [(1, "one thread, block order", 1, 700), (1, "one thread, random order", 1, 300), (2, "two workers, auto", 1, 1300),
         (2, "two workers over two processes", 1, 0.85), (2, "loss of two over one", -1, 1.005), (3, "load, one thread", 1, 700),
         (3, "load of .gz over zlib alone", 1, 1), (3, "cache mapped and checked", -1, 0),
         (3, "peak RssAnon over CSR", -1, 1.3), (4, "dense rows, of memory's rate", 1, 0.8), (5, "AMSGrad over SGD", 1, 0.5),
         (6, "speed with counting and sampling, sparse", 1, 0.97), (6, "speed with probes as well, dense", 1, 0.97),
         (7, "sim, n = 64", 1, 5), (7, "exact t_mix of a ring of 1,024", -1, 1)]


def print_goals(medians, picked, file):
    """medians: {what: (unit, least, median, most)}"""
    print("\ngoals (min, median, max; + where the median keeps it)", file=file)
    for goal, what, sign, target in TABLE:
        if what not in medians:
            continue
        unit, low, middle, high = medians[what]
        verdict = "" if not target else f"  {'at least' if sign > 0 else 'at most '} {target:<6g}" \
            f"{'+' if sign * (middle - target) >= 0 else '-'}"
        note = f"  ({picked})" if picked and what == "two workers, auto" else ""
        print(f"  {goal} {what:42s} {low:10.4g} {middle:10.4g} {high:10.4g} {unit:14s}{verdict}{note}", file=file)
    print("  8 a billion non-zeros in 8.7 GB: experiments/billion/run", file=file)
