"""Measures the nets in turn, round after round, and prints medians and the ratios that are asked about."""
import argparse
import json
import os
import shutil
import resource
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = {
    "resnet20": "synth:images,rows=2560,channels=3,size=32,classes=10",
    "mlp": "synth:images,rows=12800,channels=1,size=28,classes=10",
    "lenet5": "synth:images,rows=12800,channels=1,size=28,classes=10",
}
MODEL = {"resnet20": "resnet20", "mlp": "mlp:128,128,128", "lenet5": "lenet5"}
# Rough speeds, to choose the length of a measurement by.
SPEED = {"resnet20": 400, "mlp": 60000, "lenet5": 15000}

# Two workers with copies of their own, whose changes are merged into a shared one: so many steps apart.
OWN_COPIES = {"mlp": 64, "lenet5": 8}


def options():
    p = argparse.ArgumentParser()
    for name in ("mixwild", "out", "nets"):
        p.add_argument("--" + name, required=True)
    p.add_argument("--rounds", type=int, required=True)
    p.add_argument("--seconds", type=float, required=True)
    p.add_argument("--add", action="store_true")
    return p.parse_args()


def busy_s():
    """CPU time of all programs, and that which a hypervisor took, since the machine started."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return (sum(t) - t[3] - t[4]) / os.sysconf("SC_CLK_TCK")


def own_s():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def quiet(measure):
    """The value of a measurement beside which others used less than 6 % of a processor; of up to three, the quietest."""
    tried = []
    for _ in range(3):
        t, others = time.monotonic(), busy_s() - own_s()
        value = measure()
        tried.append(((busy_s() - own_s() - others) / (time.monotonic() - t), value))
        if tried[-1][0] < 0.06:
            break
        print("      others used %.0f %% of a processor meanwhile" % (100 * tried[-1][0]), flush=True)
    return min(tried)[1]


def train_command(o, net, batch, workers, folder, extra):
    rows = int(DATA[net].split("rows=")[1].split(",")[0])
    epochs = max(0.1, SPEED[net] * o.seconds * workers / rows)
    return [o.mixwild, "train", "--data", DATA[net], "--model", MODEL[net], "--workers", str(workers), "--batch", str(batch),
            "--epochs", "%.3g" % epochs, "--rate", "0.001", "--momentum", "0.9", "--eval-every", "0", "--eval-rows", "64",
            "--out", folder, "--force"] + (extra if "--protocol" in extra else ["--protocol", "hogwild", *extra])


def rate_of(folder):
    with open(os.path.join(folder, "run.json")) as f:
        run = json.load(f)
    return run["summary"]["examples_per_s"], run["math"]


def mixwild(o, net, batch, workers=1, extra=()):
    folder = os.path.join(o.out, "run")
    subprocess.run(train_command(o, net, batch, workers, folder, list(extra)), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    rate, math = rate_of(folder)
    print("    mixwild %s batch %d, %d worker(s) %s [%s]: %.0f" % (net, batch, workers, " ".join(extra), math, rate), flush=True)
    return rate


def independent(o, net, batch):
    """Two processes of one worker each, side by side; the sum of their speeds."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    folders = [os.path.join(o.out, "run%d" % i) for i in range(2)]
    started = [subprocess.Popen(["taskset", "-c", str(c)] + train_command(o, net, batch, 1, f, []), stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL) for c, f in zip(cpus, folders)]
    if any(p.wait() for p in started):
        sys.exit("nets.py: a run failed")
    rate = sum(rate_of(f)[0] for f in folders)
    print("    mixwild %s batch %d, two independent processes: %.0f" % (net, batch, rate), flush=True)
    return rate


def torch(o, net, batch, processes, layout):
    command = [sys.executable, os.path.join(HERE, "peer_torch.py"), net, str(batch), str(o.seconds), str(processes), layout]
    # Without these glibc gives large tensors back and takes them anew every step, and page faults on a virtual machine made
    # ResNet-20's speed anything from 205 to 536 images/s.
    keep_memory = dict(os.environ, MALLOC_MMAP_THRESHOLD_=str(1 << 30), MALLOC_TRIM_THRESHOLD_=str(1 << 33),
                       MALLOC_TOP_PAD_=str(1 << 26))
    got = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=keep_memory).stdout)
    print("    PyTorch %s %s batch %d, %d process(es), %s: %.0f" % (got["torch"], net, batch, processes, layout,
                                                                    got["examples_per_s"]), flush=True)
    return got["examples_per_s"]


def measurements(o, net, two):
    """Name and function of what is measured for a net; names that end in a batch size are made ratios of below."""
    layouts = ["channels_last", "nchw"] if net == "resnet20" else ["nchw"]
    for batch in {"resnet20": [64], "mlp": [16, 128], "lenet5": [16, 64]}[net]:
        at = "%s %d" % (net, batch)
        yield "mixwild " + at, lambda b=batch: mixwild(o, net, b)
        for layout in layouts:
            yield "torch %s %s" % (layout, at), lambda b=batch, l=layout: torch(o, net, b, 1, l)
        if net != "mlp":
            yield "mixwild portable " + at, lambda b=batch: mixwild(o, net, b, 1, ["--conv", "portable"])
        if net == "resnet20":
            yield "mixwild blas " + at, lambda b=batch: mixwild(o, net, b, 1, ["--conv", "blas"])
        if two:
            yield "mixwild two " + at, lambda b=batch: mixwild(o, net, b, 2)
            if net in OWN_COPIES:
                own = ["--protocol", "cached", "--mix-every", str(OWN_COPIES[net])]
                yield "mixwild own " + at, lambda b=batch: mixwild(o, net, b, 2, own)
            yield "mixwild independent " + at, lambda b=batch: independent(o, net, b)
            for layout in layouts:
                yield "torch two %s %s" % (layout, at), lambda b=batch, l=layout: torch(o, net, b, 2, l)


def ratios(median, net, two):
    """(what, ratio, wanted) as the medians give them."""
    def best(kind, at):
        return max(v for k, v in median.items() if k.startswith(kind) and k.endswith(at) and ("two" in kind) == ("two" in k))

    wanted = {"resnet20 64": 1.15, "mlp 16": 1.5, "mlp 128": 1.2, "lenet5 16": 1.5, "lenet5 64": 1.5}
    for at, want in ((a, w) for a, w in wanted.items() if a.startswith(net)):
        yield "one worker / PyTorch's best, " + at, median["mixwild " + at] / best("torch ", at), want
        if net == "resnet20":
            nchw = median["torch nchw " + at]
            yield "own kernels, no oneDNN / PyTorch NCHW, " + at, median["mixwild portable " + at] / nchw, 1.1
            yield "OpenBLAS on columns / PyTorch NCHW, " + at, median["mixwild blas " + at] / nchw, None
        if two:
            pair = median["mixwild two " + at]
            yield "two workers / PyTorch's best with two, " + at, pair / best("torch two ", at), 1.1 if net == "resnet20" else None
            yield "two workers / two independent processes, " + at, pair / median["mixwild independent " + at], 0.95
            if "mixwild own " + at in median:
                yield ("two workers, own copies / two independent processes, " + at,
                       median["mixwild own " + at] / median["mixwild independent " + at], 0.95)


def core_to_core(o):
    """How long a line takes from one CPU to another: a virtual machine's may be near each other or not, and that changes."""
    got = subprocess.run([o.mixwild, "bench", "--repeats", "1", "--memory", "64"], capture_output=True, text=True).stdout
    return " ".join(next((l for l in got.splitlines() if l.startswith("core-to-core")), "core-to-core ?").split()[:3])


def earlier(o):
    path = os.path.join(o.out, "results.json")
    if not o.add or not os.path.exists(path):
        return {}
    with open(path) as f:
        return json.load(f)["examples_per_s"]


def keep(o, got, two):
    """Writes what is there: after every round, so that one that is stopped leaves those before it."""
    median = {k: statistics.median(v) for k, v in got.items()}
    lines = ["%-50s %10.0f   (%s)" % (k, median[k], ", ".join("%.0f" % x for x in v)) for k, v in got.items()]
    lines.append("")
    for net in (n for n in DATA if any(k.split()[-2] == n for k in median)):
        for what, ratio, want in ratios(median, net, two):
            lines.append("%-62s %6.2f%s" % (what, ratio, "   (wanted: %.2f)" % want if want else ""))
    with open(os.path.join(o.out, "results.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")
    with open(os.path.join(o.out, "results.json"), "w") as f:
        json.dump({"examples_per_s": got}, f, indent=1)
    return "\n".join(lines)


def main():
    o = options()
    two = len(os.sched_getaffinity(0)) > 1
    got, text = earlier(o), ""
    for r in range(o.rounds):
        print("round %d of %d, load %.2f, %s" % (r + 1, o.rounds, os.getloadavg()[0], core_to_core(o)), flush=True)
        for net in o.nets.split(","):
            for name, measure in measurements(o, net, two):
                got.setdefault(name, []).append(quiet(measure))
        text = keep(o, got, two)
    print("\n" + text)
    for name in ("run", "run0", "run1"):
        shutil.rmtree(os.path.join(o.out, name), ignore_errors=True)


if __name__ == "__main__":
    main()
