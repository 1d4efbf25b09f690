"""Runs `mixwild train --engine sim --estimate` for many protocols and knobs, and writes the table of doc/estimators.md."""
import json
import subprocess
import sys
import tempfile

MIXWILD, OUT = sys.argv[1], sys.argv[2]
DATA = "synth:quadratic,dim=24,noise=1,rows=400"

# title, native steps, options of both train and tmix, options of train, options of tmix
CASES = [
    ("hogwild, 4 workers in turn, delay of 2 own steps", 4000, "--protocol hogwild --workers 4 --activation rr",
     "--staleness constant:2", "--staleness 11"),
    ("async-ps, 8 workers in turn", 12000, "--protocol async-ps --workers 8 --activation rr", "", ""),
    ("async-ps, 8 workers at random", 60000, "--protocol async-ps --workers 8 --activation random", "", ""),
    ("async-ps, 8 workers, free", 20000, "--protocol async-ps --workers 8 --activation free", "", None),
    ("sync-ring, 8 workers", 4000, "--protocol sync-ring --workers 8", "", ""),
    ("sync-ring, 16 workers", 8000, "--protocol sync-ring --workers 16", "", ""),
    ("async-ring, 8 workers in turn", 16000, "--protocol async-ring --workers 8 --activation rr", "", ""),
    ("async-ring, 8 workers at random", 60000, "--protocol async-ring --workers 8 --activation random", "", ""),
    ("async-gossip, complete graph of 16, at random", 60000,
     "--protocol async-gossip --graph complete --workers 16 --activation random", "", ""),
    ("numa, 2 nodes, 4 workers in turn, every 8", 24000,
     "--protocol numa --groups 2 --average-every 8 --workers 4 --activation rr", "", ""),
    ("token-ring, 3 groups in turn, hop every 4", 24000,
     "--protocol token-ring --hop-every 4 --workers 3 --activation rr", "", ""),
    ("cached, 4 workers in turn, merge every 4", 24000,
     "--protocol cached --merge-every 4 --workers 4 --activation rr", "", ""),
    ("ssp, bound 2, 4 workers at random", 30000, "--protocol ssp --ssp-bound 2 --workers 4 --activation random", "", ""),
    ("sync-ring, 8 workers, slack 0.1", 24000, "--protocol sync-ring --workers 8 --slack 0.1", "", ""),
    ("sync-ring, 8 workers, every 10", 24000, "--protocol sync-ring --workers 8 --mix-every 10", "", ""),
    ("sync-ring, 8 workers, a quarter at a time", 12000, "--protocol sync-ring --workers 8 --mix-fraction 0.25", "", ""),
    ("async-ps, 8 workers at random, slack 0.1", 120000,
     "--protocol async-ps --workers 8 --activation random --slack 0.1", "", ""),
    ("async-ring, 8 workers in turn, every 10", 90000,
     "--protocol async-ring --workers 8 --activation rr --mix-every 10", "", ""),
    ("async-ring, 8 workers in turn, a quarter at a time", 60000,
     "--protocol async-ring --workers 8 --activation rr --mix-fraction 0.25", "", ""),
    ("sync-gossip, hypercube of 256 (probe with 8 columns of signs)", 1500,
     "--protocol sync-gossip --graph hypercube --workers 256", "--estimate probe", ""),
]


def call(*args):
    return subprocess.run([MIXWILD, *args], check=True, capture_output=True, text=True).stdout


def exact(both, extra):
    if extra is None:
        return None
    norm = "tv" if "token" in both or "cached" in both else "l2"
    return json.loads(call("tmix", *both.split(), *extra.split(), "--norm", norm, "--format", "json"))


def measure(steps, both, extra):
    workers = int(both.split("--workers ")[1].split()[0])
    own = steps if both.startswith("--protocol sync") else steps / workers
    epochs = own * workers / 400
    with tempfile.TemporaryDirectory() as folder:
        call("train", "--data", DATA, "--rate", "0.01", "--engine", "sim", "--epochs", str(epochs), "--eval-every", "0",
             "--estimate", "all", "--seed", "1", *both.split(), *extra.split(), "--out", folder + "/run")
        return json.load(open(folder + "/run/run.json"))["summary"]["t_mix"]


def number(v):
    return "–" if v is None else f"{v:.4g}"


def cell(e, target):
    """Value, error, and which target it is to be compared with."""
    if not e or e.get("value") is None:
        return "–"
    name = e["target"]
    want = target and (target["t_mix"] if name in ("t_ann", "t_sup") else target["targets"][name])
    return f"{number(e['value'])} ± {e['error']:.2g} ({name} {number(want)})"


def main():
    lines = []
    for title, steps, both, train, tmix in CASES:
        target, got = exact(both, tmix), measure(steps, both, train)
        cells = [cell(got.get(k), target) for k in ("trace", "probe", "passive")]
        lines.append(f"| {title} | {(got['trace'] or got['probe'])['unit']} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    with open(OUT, "w") as f:
        f.write(TEXT.replace("@TABLE@", "\n".join(lines)))


TEXT = """# Estimators of the mixing time

`mixwild train --estimate trace|probe|passive|all` measures the mixing time of the run itself:

* **trace** follows products of the exchanges as they were carried out, from many starts (one shared buffer: the
  histogram of delays). In the threads engine the workers together record the first 4 million events after every evaluation.
* **probe** carries extra columns with every replica that gradients never touch, and reads how far an injection has
  spread: one column for each pushed row up to 128, then 8 columns of random signs.
* **passive** looks at the parameters only: how fast gradient noise in one replica reaches the others, with curvature
  divided out by the same autocorrelation of the average.

They aim at different quantities, and each result names its own: `t_ann` takes the mean over starts inside the norm (for
random orders), `t_sup` the largest over the starts seen (fixed orders: nothing is random; both are `t_mix` of `mixwild
tmix`), `t_inf` the rate of the tail, `t_1` the first moment. `run.json` has them under `summary.t_mix` as {value,
target, unit, error, n, reason, ...}; a value that can't be had is null, with the reason.

Where exchanges are counted by own steps under random activation (`--mix-every`, token-ring), `mixwild tmix` gives the
supremum over states of the counters, an estimator the mean over the states that a run is in: smaller.

## In the sim engine, against the exact target

Made by `experiments/estimators/run`; seed 1. In brackets: the exact value of the quantity that the estimator names, – where
there is none (ssp's t_ann is simulated, to 0.1 %). An error is one standard error, so about a third of the values may be off
by more.

| run | unit | trace | probe | passive |
|---|---|---|---|---|
@TABLE@

The passive estimator is a cross-check. The largest of nearly equal eigenvalues is chosen by chance too (async-ps, complete
graphs): it is chosen on one half of the snapshots and valued on the other, and half of what that changes is part of its error,
as is half of its correction for curvature. In an epoch every row comes once, so the average comes back to where it was at the
epoch's end, which looks like curvature: as far as that explains the correction, half of it is taken back. Copies of a server
and node replicas that are renewed in turn have no single matrix, and it gives no value for them.

## The closed loop

`--target-tmix T` holds the value that probe columns measure at T, by `--target-actuator mix-every` (the period, on average any
real number from 1 on) or `slack`. The exact value gives the start; after each full estimate (32 segments of a fixed order, 64
of a random one) the actuator moves. `experiments/closed-loop/run` shows it on real threads. The value of node replicas
scatters from window to window, because their exchanges drift in and out of phase, and so does that of two asynchronous
workers with long periods: there the mean over windows holds, not each window.

## What they cost

Without `--estimate` nothing is recorded, allocated or asked. trace: one record per push and exchange until a recorder is
full (fused bursts are off so long). probe: the columns are exchanged with the parameters (by
default no more than 1 % of a block's parameters in the threads engine, where 8 columns of signs keep within that; see
`--probe-columns`). The sampler thread rests between segments as soon as it has taken more than `--estimate-share` (2 %) of
the process's CPU time: short runs of fast steps then end before they have a value, and a larger share gives one sooner.
`experiments/overhead/run` measures all of it. Snapshots that come too late or are blurred by more than one step are not
used.
"""

if __name__ == "__main__":
    main()
