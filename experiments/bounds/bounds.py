"""Runs `mixwild train --bound` for many settings and prints measured/bound; see run."""
import json
import subprocess
import sys
import tempfile

MIXWILD, QUICK = sys.argv[1], sys.argv[2] != "0"

# data, options, rows, rates relative to the settings' own
PROBLEMS = [
    ("nonconvex", "--data synth:dense,rows=400,features=12,classes=2 --model sigmoid-squared"),
    ("convex", "--data synth:quadratic,dim=16,noise=1,rows=400"),
]
# title, options; the step is half of what the theorem admits
SETTINGS = [
    ("sync-ps, 8 workers", "--protocol sync-ps --workers 8"),
    ("sync-ring, 8 workers", "--protocol sync-ring --workers 8"),
    ("sync-ring, 8 workers, slack 0.3", "--protocol sync-ring --workers 8 --slack 0.3"),
    ("sync-ring, 8 workers, a quarter at a time", "--protocol sync-ring --workers 8 --mix-fraction 0.25"),
    ("sync-ring, 8 workers, each its own data", "--protocol sync-ring --workers 8 --data-place shard"),
    ("local-sgd, 8 workers, period 8", "--protocol local-sgd --period 8 --workers 8"),
    ("async-ps, 8 workers in turn", "--protocol async-ps --workers 8 --activation rr"),
    ("async-ps, 8 workers at random", "--protocol async-ps --workers 8 --activation random"),
    ("ssp, bound 2, 4 workers at random", "--protocol ssp --ssp-bound 2 --workers 4 --activation random"),
    ("hogwild, 4 workers, delay of 2 own steps", "--protocol hogwild --workers 4 --staleness constant:2"),
    ("async-ring, 4 workers at random", "--protocol async-ring --workers 4 --activation random"),
    ("async-ring, 4 workers, exchange before gradient",
     "--protocol async-ring --workers 4 --activation random --mix-order before"),
    ("async-ring, 4 workers, each its own data, before",
     "--protocol async-ring --workers 4 --activation random --mix-order before --data-place shard"),
    ("numa, 2 nodes, 4 workers in turn", "--protocol numa --groups 2 --average-every 4 --workers 4 --activation rr"),
    ("cached, 2 workers in turn", "--protocol cached --merge-every 2 --workers 2 --activation rr"),
    ("token-ring, 3 groups in turn", "--protocol token-ring --hop-every 3 --workers 3 --activation rr"),
]
ADAPTIVE = [
    ("amsgrad, sync-ring, 8 workers",
     "--protocol sync-ring --workers 8 --optimizer amsgrad --no-bias-correction --eps 0.1 --beta2 0.99 --rate 0.001"),
    ("amsgrad, async-ps, 8 workers, one state",
     "--protocol async-ps --workers 8 --state shared --optimizer amsgrad --no-bias-correction --eps 0.1 --beta2 0.99 "
     "--rate 0.001"),
    ("rmsprop, sync-ring, 8 workers",
     "--protocol sync-ring --workers 8 --optimizer rmsprop --eps 1 --beta2 0.999 --rate 0.001"),
]


def bound(problem, options, rate, epochs):
    with tempfile.TemporaryDirectory() as folder:
        command = [MIXWILD, "train", *problem.split(), *options.split(), "--engine", "sim", "--bound", "--epochs",
                   str(epochs), "--eval-every", str(epochs / 200), "--out", folder + "/run"]
        if rate:
            command += ["--rate", repr(rate)]
        r = subprocess.run(command, capture_output=True, text=True)
        if r.returncode:
            sys.exit("%s\n%s" % (" ".join(command), r.stderr))
        return json.load(open(folder + "/run/run.json"))["summary"]["bound"]


worst, count = 0, 0
for name, problem in PROBLEMS:
    print("%s: %s" % (name, problem))
    for title, options in SETTINGS + (ADAPTIVE if name == "nonconvex" else []):
        own = "--rate" in options
        rate = None if own else bound(problem, options, 1e-4, 2)["step_max"] / 2
        b = bound(problem, options, rate, (8 if QUICK else 40))
        if b["ratio"] is None:
            sys.exit("%s, %s: no bound: %s" % (name, title, b["reason"]))
        print("  %-50s theorem %-2s step %-10.3g measured %-10.4g bound %-10.4g ratio %.3f"
              % (title, b["theorem"], b["step"], b["measured"], b["bound"], b["ratio"]), flush=True)
        worst, count = max(worst, b["ratio"]), count + 1
print("%d settings, largest ratio %.3f" % (count, worst))
sys.exit(worst > 1)
