"""Throughput with and without counting, sampling and estimating, in palindromic blocks; see run."""
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

MIXWILD, ROUNDS, SECONDS, WANTED = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
SPARSE = "--data synth:sparse,rows=40000,features=47236 --no-bias"
DENSE = "--data synth:dense,rows=8000,features=2000,classes=2"
RUNS = {"sparse": ("sparse, cached", SPARSE + " --protocol cached --workers auto"),
        "dense": ("dense, async-ring", DENSE + " --protocol async-ring --mix-every 8 --workers auto"),
        "rare": ("rare, async-ring", DENSE + " --protocol async-ring --mix-every 1024 --workers auto")}
# the staleness of every 1,024th step is sampled by default; "plain" leaves that out too
WAYS = {"plain": "--sample-every 0", "plain again": "--sample-every 0",
        "staleness": "--metrics-every 0.5", "probe": "--sample-every 0 --estimate probe",
        "passive": "--sample-every 0 --estimate passive", "trace": "--sample-every 0 --estimate trace"}
ONLY = os.environ.get("WAYS")
WAYS = {w: o for w, o in WAYS.items() if not ONLY or w in ("plain", "plain again", *ONLY.split(","))}
ADD = os.environ.get("ADD")


def wait_for_training(run):
    """The first line that only a run under way prints."""
    said = []
    for line in run.stderr:
        if line.startswith("epoch"):
            return
        said.append(line)
    sys.exit("overhead: " + "".join(said))


def speed(options):
    """One run: what it gave in SECONDS of training."""
    with tempfile.TemporaryDirectory() as folder:
        command = [MIXWILD, "train", *options.split(), *os.environ.get("OPTIONS", "").split(), "--epochs", "1000000",
                   "--eval-every", "0", "--eval-rows", "1000", "--out", folder + "/run"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for_training(run)
        time.sleep(SECONDS)
        run.send_signal(signal.SIGINT)
        run.communicate()
        summary = json.load(open(folder + "/run/run.json"))["summary"]
    t = summary["t_mix"]
    found = next((t[w] for w in ("trace", "probe", "passive") if t.get(w)), {})
    return {"speed": summary["examples_per_s"], "value": found.get("value"), "unit": found.get("unit"),
            "segments": t.get("segments"), "missed": t.get("segments_missed"), "share": t.get("sampler_share")}


def block(options):
    """Each way twice: there and back."""
    got = {way: [] for way in WAYS}
    for way in [*WAYS, *reversed(WAYS)]:
        got[way].append(speed(options + " " + WAYS[way]))
    return got


def middle(x):
    """Median of all means of two, and the 95 % interval of the signed-rank test around it."""
    n, pairs = len(x), sorted((a + b) / 2 for i, a in enumerate(x) for b in x[i:])
    m = len(pairs)
    low = max(0, int(m / 2 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)))
    return (pairs[m // 2] + pairs[(m - 1) // 2]) / 2, pairs[low], pairs[m - 1 - low]


def median(x):
    x = sorted(x)
    return (x[len(x) // 2] + x[(len(x) - 1) // 2]) / 2


def log_speed(runs):
    return sum(math.log(r["speed"]) for r in runs) / len(runs)


def watched(runs):
    """What sampling did in these runs."""
    values = [r["value"] for r in runs if r["value"] is not None]
    text = "; %d of %d runs have a value" % (len(values), len(runs))
    if values:
        text += ", median %.4g %s" % (median(values), runs[0]["unit"])
    if runs[0]["segments"] is not None:
        text += "; segments a run %d to %d, missed %d of %d" % (min(r["segments"] for r in runs), max(
            r["segments"] for r in runs), sum(r["missed"] for r in runs), sum(r["segments"] for r in runs))
    if runs[0]["share"] is not None:
        text += "; by its own clocks %.2f %% of the CPU time" % (100 * median([r["share"] for r in runs]))
    return text


def tell(name, blocks):
    plain = [r["speed"] for b in blocks for r in b["plain"]]
    print("%s, %d blocks: plain %.3g examples/s (%.3g to %.3g)" % (name, len(blocks), median(plain), min(plain), max(plain)))
    for way in WAYS:
        ratios = [log_speed(b[way]) - log_speed(b["plain"]) for b in blocks if way in b]
        if way == "plain" or not ratios:
            continue
        percent = [100 * math.expm1(v) for v in middle(ratios)]
        runs = [r for b in blocks if way in b for r in b[way]]
        print("  %-12s %+.2f %%, 95 %% within %+.2f to %+.2f (median %+.2f, blocks %+.1f to %+.1f)%s" %
              (way, *percent, *(100 * math.expm1(v) for v in (median(ratios), min(ratios), max(ratios))),
               watched(runs) if way in ("probe", "passive", "trace") else ""), flush=True)


def kept(name):
    if not ADD or not os.path.exists(ADD):
        return []
    with open(ADD) as f:
        return [b for n, b in map(json.loads, f) if n == name]


for key, (name, options) in RUNS.items():
    if WANTED and key not in WANTED:
        continue
    blocks = kept(key)
    for _ in range(ROUNDS):
        blocks.append(block(options))
        if ADD:
            with open(ADD, "a") as f:
                f.write(json.dumps([key, blocks[-1]]) + "\n")
    if blocks:
        tell(name, blocks)
