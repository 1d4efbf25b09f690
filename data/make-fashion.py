#!/usr/bin/env python3
"""Cut Fashion-MNIST's 10,000 test images into 8,500 for training and 1,500 for testing.

usage: make-fashion.py DIR [OUTDIR]

DIR holds t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, as in Debian's package dataset-fashion-mnist. The
first 8,500 are for training; they are in random order already.
"""
import gzip
import os
import struct
import sys

TRAIN = 8500


def write(path, head, body):
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
        f.write(head + body)


def cut(source, out, kind, item):
    with gzip.open(os.path.join(source, f"t10k-{kind}-ubyte.gz")) as f:
        data = f.read()
    n = struct.unpack(">I", data[4:8])[0]
    head = 8 if item == 1 else 16
    if n != 10000 or len(data) != head + n * item:
        sys.exit(f"{source}: t10k-{kind}-ubyte.gz is not Fashion-MNIST's")
    for name, first, last in (("train", 0, TRAIN), ("test", TRAIN, n)):
        body = data[head + first * item : head + last * item]
        write(
            os.path.join(out, f"fashion-{name}-{kind}-ubyte.gz"),
            data[:4] + struct.pack(">I", last - first) + data[8:head],
            body,
        )


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = sys.argv[2] if len(sys.argv) == 3 else "."
    cut(sys.argv[1], out, "images-idx3", 28 * 28)
    cut(sys.argv[1], out, "labels-idx1", 1)


if __name__ == "__main__":
    main()
