#!/usr/bin/env python3
"""Writes tests/data/optim_reference.txt: 20 steps of PyTorch's optimizers in float64 (made with Debian's python3-torch
1.13.1). Gradients do not depend on the parameters, so that every number follows from the table alone.

Lines: "grad STEP g...", "init x...", then for each optimizer "run NAME key=value...", and "x STEP x..." after every step.
"""
import sys
import torch

N, STEPS, RATE = 5, 20, 0.05
torch.manual_seed(20201)
grads = torch.randn(STEPS, N, dtype=torch.float32) * torch.tensor([1.0, 0.1, 3.0, 1e-3, 1.0])
grads[:, 4] *= (torch.arange(STEPS) % 3 == 0).float()  # mostly zero
grads[8:, 2] *= 0.01  # the second moment falls: AMSGrad and Adam part
init = torch.randn(N, dtype=torch.float32)

RUNS = [
    ("sgd", {}, torch.optim.SGD, {}),
    ("sgd", {"momentum": 0.9}, torch.optim.SGD, {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "nesterov": 1}, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    ("sgd", {"momentum": 0.8, "weight-decay": 0.1}, torch.optim.SGD, {"momentum": 0.8, "weight_decay": 0.1}),
    ("sgd", {"weight-decay": 0.1}, torch.optim.SGD, {"weight_decay": 0.1}),
    ("sgd", {"momentum": 0.8, "nesterov": 1, "weight-decay": 0.1}, torch.optim.SGD,
     {"momentum": 0.8, "nesterov": True, "weight_decay": 0.1}),
    ("sgd", {"momentum": 0.8, "weight-decay": 0.1, "decay-form": "decoupled"}, torch.optim.SGD, {"momentum": 0.8}),
    ("amsgrad", {}, torch.optim.Adam, {"amsgrad": True}),
    ("amsgrad", {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3}, torch.optim.Adam,
     {"amsgrad": True, "betas": (0.8, 0.95), "eps": 1e-3}),
    ("amsgrad", {"weight-decay": 0.1}, torch.optim.AdamW, {"amsgrad": True, "weight_decay": 0.1}),
    ("amsgrad", {"weight-decay": 0.1, "decay-form": "coupled"}, torch.optim.Adam, {"amsgrad": True, "weight_decay": 0.1}),
    ("adam", {}, torch.optim.Adam, {}),
    ("adam", {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3}, torch.optim.Adam, {"betas": (0.8, 0.95), "eps": 1e-3}),
    ("adam", {"weight-decay": 0.1}, torch.optim.AdamW, {"weight_decay": 0.1}),
    ("adam", {"weight-decay": 0.1, "decay-form": "coupled"}, torch.optim.Adam, {"weight_decay": 0.1}),
    ("rmsprop", {}, torch.optim.RMSprop, {}),
    ("rmsprop", {"beta2": 0.9, "eps": 1e-3}, torch.optim.RMSprop, {"alpha": 0.9, "eps": 1e-3}),
    ("rmsprop", {"weight-decay": 0.1}, torch.optim.RMSprop, {"weight_decay": 0.1}),
    ("rmsprop", {"momentum": 0.9}, torch.optim.RMSprop, {"momentum": 0.9}),
    ("rmsprop", {"momentum": 0.5, "beta2": 0.9, "weight-decay": 0.1}, torch.optim.RMSprop,
     {"momentum": 0.5, "alpha": 0.9, "weight_decay": 0.1}),
    ("adagrad", {}, torch.optim.Adagrad, {}),
    ("adagrad", {"eps": 1e-3}, torch.optim.Adagrad, {"eps": 1e-3}),
    ("adagrad", {"weight-decay": 0.1}, torch.optim.Adagrad, {"weight_decay": 0.1}),
]


def row(values):
    return " ".join("%.17g" % v for v in values.tolist())


out = sys.stdout
print("# made by tests/reference/optim_torch.py with PyTorch %s, float64; rate %g" % (torch.__version__, RATE), file=out)
for t in range(STEPS):
    print("grad %d %s" % (t, row(grads[t])), file=out)
print("init %s" % row(init), file=out)
for name, ours, make, theirs in RUNS:
    x = torch.nn.Parameter(init.double())
    opt = make([x], lr=RATE, **theirs)
    print("run %s %s" % (name, " ".join("%s=%s" % kv for kv in ours.items())), file=out)
    for t in range(STEPS):
        x.grad = grads[t].double()
        if ours.get("decay-form") == "decoupled" and make is torch.optim.SGD:  # PyTorch has no SGDW: as its AdamW does it
            x.data.mul_(1 - RATE * ours["weight-decay"])
        opt.step()
        print("x %d %s" % (t, row(x.detach())), file=out)
