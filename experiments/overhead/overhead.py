"""Throughput with and without counting, sampling and estimating, interleaved; see run."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

MIXWILD, ROUNDS, SECONDS, WANTED = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
SPARSE = "--data synth:sparse,rows=100000,features=47236 --no-bias"
DENSE = "--data synth:dense,rows=20000,features=2000,classes=2"
RUNS = [("sparse, cached", SPARSE + " --protocol cached --workers auto"),
        ("dense, async-ring", DENSE + " --protocol async-ring --mix-every 8 --workers auto"),
        ("rare, async-ring", DENSE + " --protocol async-ring --mix-every 1024 --workers auto")]
# the staleness of every 1,024th step is sampled by default; "plain" leaves that out too
WAYS = [("plain", "--sample-every 0"), ("plain again", "--sample-every 0"),
        ("staleness sampled, metrics every 0.5 s", "--metrics-every 0.5"),
        ("probe", "--estimate probe"), ("passive", "--estimate passive"), ("trace", "--estimate trace")]
ONLY = os.environ.get("WAYS")
WAYS = [w for w in WAYS if not ONLY or w[0] in ("plain", "plain again", *ONLY.split(","))]


def speed(options, epochs):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([MIXWILD, "train", *options.split(), "--epochs", str(epochs), "--eval-every", "0", "--eval-rows",
                        "1000", "--out", folder + "/run"], check=True, capture_output=True)
        run = json.load(open(folder + "/run/run.json"))
        return {**run["summary"], "workers": len(run["workers"])}


def found(summary, way):
    """What the last run's estimator had to say."""
    e = summary["t_mix"].get(way)
    if not e:
        return ""
    share = summary["t_mix"].get("sampler_share")
    value = "%.4g +- %.2g %s" % (e["value"], e["error"], e["unit"]) if e["value"] is not None else "no value: " + e["reason"]
    return "; " + value + (", sampler %.1f %% of the CPU time" % (100 * share) if share is not None else "")


for name, options in RUNS:
    if WANTED and name.split(",")[0] not in WANTED:
        continue
    rows = 100000 if "sparse" in options else 20000
    epochs = max(1, speed(options, 1)["examples_per_s"] * SECONDS / rows)
    got, last = {way: [] for way, _ in WAYS}, {}
    for _ in range(ROUNDS):
        for way, extra in WAYS:
            last[way] = speed(options + " " + extra, epochs)
            got[way].append(last[way]["examples_per_s"])
    base = statistics.median(got["plain"])
    print("%s, %d workers: %.3g examples/s" % (name, last["plain"]["workers"], base))
    for way, _ in WAYS:
        m = statistics.median(got[way])
        ratio = [100 * (a / b - 1) for a, b in zip(got[way], got["plain"])]
        best = [sum(sorted(got[w])[-max(1, ROUNDS // 4):]) for w in (way, "plain")]
        print("  %-40s %.3g examples/s, %+.1f %% (%+.1f to %+.1f), fastest quarter of the runs %+.1f %%%s" %
              (way, m, statistics.median(ratio), min(ratio), max(ratio), 100 * (best[0] / best[1] - 1), found(last[way], way)),
              flush=True)
