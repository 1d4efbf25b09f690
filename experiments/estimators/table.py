"""Runs `mixwild train --engine sim --estimate` for many protocols and knobs, and renews the two tables of doc/estimators.md."""
import json
import subprocess
import sys
import tempfile

MIXWILD, OUT = sys.argv[1], sys.argv[2]
DATA = "synth:quadratic,dim=24,noise=1,rows=400"
SEEDS = range(7001, 7021)  # nothing was tuned on these
RUNS_HEAD = "| run | unit | trace | probe | passive |\n|---|---|---|---|---|"
SEEDS_HEAD = "| run | t_1 | mean value | mean error | values | within 1 | within 2 |\n|---|---|---|---|---|---|---|"

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


def measure(steps, both, extra, seed=1, what="all"):
    workers = int(both.split("--workers ")[1].split()[0])
    own = steps if both.startswith("--protocol sync") else steps / workers
    epochs = own * workers / 400
    with tempfile.TemporaryDirectory() as folder:
        call("train", "--data", DATA, "--rate", "0.01", "--engine", "sim", "--epochs", str(epochs), "--eval-every", "0",
             "--estimate", what, "--seed", str(seed), *both.split(), *extra.split(), "--out", folder + "/run")
        return json.load(open(folder + "/run/run.json"))["summary"]["t_mix"]


def number(v):
    return "–" if v is None else f"{v:.4g}"


def exact_of(e, target):
    """The exact value of what this estimate aims at, None: there is none."""
    return target and (target["t_mix"] if e["target"] in ("t_ann", "t_sup") else target["targets"][e["target"]])


def cell(e, target):
    """Value, error, and what it is to be compared with."""
    if not e or e.get("value") is None:
        return "–"
    return f"{number(e['value'])} ± {e['error']:.2g} ({e['target']} {number(exact_of(e, target))})"


def errors_off(e, target):
    """How many errors the value is off by, None where there is nothing to compare."""
    if not e or e.get("value") is None or exact_of(e, target) is None:
        return None
    off = abs(e["value"] - exact_of(e, target))
    return 0 if off < 1e-9 else off / max(e["error"], 1e-9)


def main():
    lines, scores, off = [], [], []
    for title, steps, both, train, tmix in CASES:
        target, got = exact(both, tmix), measure(steps, both, train)
        cells = [cell(got.get(k), target) for k in ("trace", "probe", "passive")]
        lines.append(f"| {title} | {(got['trace'] or got['probe'])['unit']} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
        off += [z for z in (errors_off(got.get(k), target) for k in ("trace", "probe")) if z is not None]
        if errors_off(got.get("passive"), target) is None:
            continue
        seen = [measure(steps, both, train, s, "passive")["passive"] for s in SEEDS]
        known = [e for e in seen if e["value"] is not None]
        z, t_1 = [errors_off(e, target) for e in known], exact_of(known[0], target)
        scores.append(f"| {title} | {number(t_1)} | {sum(e['value'] for e in known) / len(known):.4g} | "
                      f"{sum(e['error'] for e in known) / len(known):.2g} | {len(known)} | {sum(x <= 1 for x in z)} | "
                      f"{sum(x <= 2 for x in z)} |")
        print(scores[-1], flush=True)
    summary = (f"Of the {len(off)} values by trace and probe that have an exact one, {sum(z <= 1 for z in off)} are within one "
               f"error of it and {sum(z <= 2 for z in off)} within two.")
    print(summary)
    text = open(OUT).read()
    for name, made in (("runs", [RUNS_HEAD, *lines, "", summary]), ("seeds", [SEEDS_HEAD, *scores])):
        begin, end = f"<!-- {name}: made by experiments/estimators/run -->\n", f"<!-- {name}: end -->\n"
        before, rest = text.split(begin)
        text = before + begin + "\n".join(made) + "\n" + end + rest.split(end)[1]
    with open(OUT, "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
