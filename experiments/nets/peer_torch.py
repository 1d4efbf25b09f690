"""One PyTorch measurement: examples a second of SGD with momentum on random images, by one process or by several that
share the parameters (the Hogwild example of PyTorch's documentation: share_memory, one optimizer a process).

usage: peer_torch.py NET BATCH SECONDS PROCESSES nchw|channels_last      NET: resnet20, mlp, lenet5
"""
import json
import os
import sys
import time

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.more, self.stride = o - i, stride

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.stride != 1:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.more))
        return F.relu(y + x, inplace=True)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        blocks, i = [], 16
        for o, stride in ((16, 1), (32, 2), (64, 2)):
            for k in range(3):
                blocks.append(Block(i, o, stride if k == 0 else 1))
                i = o
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x)), inplace=True))
        return self.fc(x.mean((2, 3)))


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc2(F.relu(self.fc1(x.flatten(1)))))
        return self.fc3(x)


def mlp():
    layers, i = [nn.Flatten()], 784
    for o in (128, 128, 128):
        layers += [nn.Linear(i, o), nn.ReLU()]
        i = o
    return nn.Sequential(*layers, nn.Linear(i, 10))


def train(rank, net, images, batch, seconds, barrier, out):
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})
    n = images.shape[0]
    labels = torch.randint(10, (n,))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def step(k):
        at = k * batch % (n - batch + 1)
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(images[at:at + batch]), labels[at:at + batch]).backward()
        optimizer.step()

    for k in range(3):
        step(k)
    if barrier:
        barrier.wait()
    steps, t0 = 0, time.monotonic()
    while time.monotonic() - t0 < seconds:
        step(steps)
        steps += 1
    out[rank] = steps * batch / (time.monotonic() - t0)


def main():
    name, batch, seconds, processes, layout = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = {"resnet20": ResNet20, "lenet5": LeNet5, "mlp": mlp}[name]()
    images = torch.randn(max(512, batch), *((3, 32, 32) if name == "resnet20" else (1, 28, 28)))
    if layout == "channels_last":
        net, images = net.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    if processes == 1:
        out = [0.0]
        train(0, net, images, batch, seconds, None, out)
    else:
        context = mp.get_context("fork")
        net.share_memory()
        out, barrier = context.Array("d", processes), context.Barrier(processes)
        workers = [context.Process(target=train, args=(r, net, images, batch, seconds, barrier, out)) for r in range(processes)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    print(json.dumps({"examples_per_s": sum(out), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
