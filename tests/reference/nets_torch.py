#!/usr/bin/env python3
"""Writes tests/data/nets_reference.txt: MLP, LeNet-5 and ResNet-20 by PyTorch in float64: probabilities and loss of a batch,
its gradient, the first step of SGD with momentum and of AMSGrad, and the losses of 20 steps with the spread of PyTorch's own
float32 around them (made with Debian's python3-torch 1.13.1;
both layouts, without oneDNN, and with the rows of a batch in other orders, which only changes roundings).

Inputs, labels and parameters come from the hash that mixwild has too (mw_hash3 of src/base/rng.h), so they need no file.

  net NAME BATCH
  prob P...                      class probabilities of the first examples of the first batch
  loss0 L                        of the first batch
  grad SLICE NAME N NORM DOT E E E
  run OPTIMIZER RATE key=value...
  step SLICE NORM DOT E E E      of the first step, x_1 - x_0
  losses T LOSS SPREAD           before step T; largest difference of float32 runs up to here
"""
import math
import sys

import numpy
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
STEPS, CLASSES, SHOWN = 20, 10, 3
M = numpy.uint64
IMAGES, LABELS, WEIGHTS, DOT, ENTRY = 1, 2, 3, 4, 5  # what a hash is for


def mix64(z):
    z = (z ^ (z >> M(30))) * M(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> M(27))) * M(0x94d049bb133111eb)
    return z ^ (z >> M(31))


def hash3(seed, stream, counter):
    with numpy.errstate(over="ignore"):
        h = mix64(M(seed) + M(0x9e3779b97f4a7c15))
        h = mix64(h ^ (M(stream) * M(0xd1342543de82ef95) + M(0x2545f4914f6cdd1d)))
        return mix64(h ^ (counter.astype(M) * M(0x9e3779b97f4a7c15) + M(0x632be59bd9b4e019)))


def uniform(seed, stream, n):
    """n numbers in [-1, 1), whole multiples of 2^-23: exact in float32."""
    return (hash3(seed, stream, numpy.arange(n)) >> M(40)).astype(numpy.float64) / 2**23 - 1


class MLP(nn.Module):
    shape, batch = (1, 28, 28), 32

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, CLASSES)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class LeNet5(nn.Module):
    shape, batch = (1, 28, 28), 16

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class Block(nn.Module):
    def __init__(self, fan_in, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.stride, self.more = stride, out - fan_in

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.more:  # option A: every second pixel, zeros in the new channels
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.more))
        return F.relu(x + y)


class ResNet20(nn.Module):
    shape, batch = (3, 32, 32), 4

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.layer2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.layer3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.fc = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        return self.fc(x.mean((2, 3)))


# Rates of SGD and AMSGrad: small enough that float32 stays near float64 for 20 steps.
NETS = [("mlp:256,128", MLP, 0.05, 0.001), ("lenet5", LeNet5, 0.01, 0.001), ("resnet20", ResNet20, 0.0005, 0.0001)]
RUNS = [
    ("sgd", {"momentum": 0.9}, lambda p, rate: torch.optim.SGD(p, lr=rate, momentum=0.9)),
    ("amsgrad", {}, lambda p, rate: torch.optim.Adam(p, lr=rate, amsgrad=True)),
]


def make(kind, dtype):
    net = kind().to(dtype)
    for i, (slice_name, p) in enumerate(net.named_parameters()):
        u = uniform(WEIGHTS, i, p.numel()).astype(numpy.float32)
        if p.dim() > 1:  # He's variance, 2 / fan-in
            u = u * numpy.float32(math.sqrt(6 / (p.numel() / p.shape[0])))
        elif slice_name.endswith("weight"):  # of a batch norm
            u = numpy.float32(1) + u * numpy.float32(0.25)
        else:
            u = u * numpy.float32(0.125)
        p.data = torch.from_numpy(u.reshape(p.shape)).to(dtype)
    return net


def batches(kind, dtype):
    n, size = kind.batch * STEPS, int(numpy.prod(kind.shape))
    x = torch.from_numpy(uniform(IMAGES, 0, n * size).astype(numpy.float32).reshape(n, *kind.shape)).to(dtype)
    y = torch.from_numpy((hash3(LABELS, 0, numpy.arange(n)) % M(CLASSES)).astype(numpy.int64))
    return [(x[i:i + kind.batch], y[i:i + kind.batch]) for i in range(0, n, kind.batch)]


def digest(stream, v):
    """Norm, product with a random vector, three entries."""
    v = v.detach().double().flatten().numpy()
    at = hash3(ENTRY, stream, numpy.arange(3)) % M(len(v))
    return " ".join("%.12g" % d for d in [numpy.linalg.norm(v), v @ uniform(DOT, stream, len(v)), *v[at.astype(numpy.int64)]])


def train(kind, dtype, optimizer, rate, like=None, turn=0):
    """Losses; the net after the first step (float64 only)."""
    net, losses, first = make(kind, dtype), [], None
    if like:
        net = net.to(memory_format=like)
    opt = optimizer(list(net.parameters()), rate)
    before = [p.detach().clone() for p in net.parameters()]
    for x, y in batches(kind, dtype):
        x = x.to(memory_format=like) if like else x
        x, y = x.roll(turn, 0), y.roll(turn, 0)
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        losses.append(loss.item())
        opt.step()
        first = first or [p.detach() - b for p, b in zip([q.clone() for q in net.parameters()], before)]
    return losses, first


print("# made by tests/reference/nets_torch.py with PyTorch %s" % torch.__version__)
for name, kind, *rates in NETS:
    net = make(kind, torch.float64)
    x, y = batches(kind, torch.float64)[0]
    z = net(x)
    loss = F.cross_entropy(z, y)
    loss.backward()
    print("net", name, kind.batch)
    print("prob", " ".join("%.12g" % p for p in z.softmax(1)[:SHOWN].flatten().tolist()))
    print("loss0 %.12g" % loss.item())
    for i, (slice_name, p) in enumerate(net.named_parameters()):
        print("grad", i, slice_name, p.numel(), digest(i, p.grad))
    for rate, (optimizer, options, new) in zip(rates, RUNS):
        exact, first = train(kind, torch.float64, new, rate)
        floats = [train(kind, torch.float32, new, rate)[0], train(kind, torch.float32, new, rate, torch.channels_last)[0]]
        floats += [train(kind, torch.float32, new, rate, None, turn)[0] for turn in (1, 2, 3)]
        floats += [train(kind, torch.float32, new, rate, torch.channels_last, turn)[0] for turn in (1, 2, 3)]
        with torch.backends.mkldnn.flags(enabled=False):
            floats.append(train(kind, torch.float32, new, rate)[0])
        print(" ".join(["run", optimizer, "%g" % rate] + ["%s=%s" % kv for kv in options.items()]))
        for i, d in enumerate(first):
            print("step", i, digest(i, d))
        spread = 0
        for t in range(STEPS):
            spread = max([spread] + [abs(f[t] - exact[t]) for f in floats])
            print("losses %d %.12g %.3g" % (t, exact[t], spread))
    sys.stdout.flush()
