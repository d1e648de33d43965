#!/usr/bin/python3
"""The LeNet of the comparison on Fashion-MNIST (Debian's dataset-fashion-mnist) by a fixed recipe:
batches of 64, SGD 0.02 with momentum 0.9, three passes, pixels from 0 to 1. dais and PyTorch start
from the same weights; the order of the batches is each one's own. Without a falling rate the share
of right answers swings with seed and last batches, so several seeds are taken.

usage: lenet.py DAIS SEEDS [dais|torch]...     prints a line for each run, then means and deviations
"""
import gzip
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tests/golden"))

import numpy as np
import torch
import torch.nn.functional as F

import make_curves

DATA = "/usr/share/datasets/fashion-mnist"
SETTINGS = {"same": "true", "filters": "32,64", "hidden": "512"}
EPOCHS, BATCH, RATE = 3, 64, 0.02


def by_dais(dais, seed, folder):
    def run(*words):
        return subprocess.run([dais, *words], check=True, text=True, stdout=subprocess.PIPE,
                              cwd=folder).stdout
    run("new", "lenet5", *(f"--{k}={v}" for k, v in SETTINGS.items()), "--seed", str(seed), "-o",
        "net.onnx")
    run("train", "net.onnx", "--data", DATA, "--batch", str(BATCH), "--lr", str(RATE),
        "--momentum", "0.9", "--epochs", str(EPOCHS), "--seed", str(seed), "--out", "run", "--json")
    out = run("eval", "run", "--data", DATA, "--part", "test", "--json")
    return float(out.split('"accuracy":')[1].split(",")[0].split("}")[0])


def load(part):
    def read(name, skip):
        with gzip.open(f"{DATA}/{part}-{name}-ubyte.gz") as from_:
            return np.frombuffer(from_.read(), np.uint8)[skip:].copy()
    return (torch.from_numpy(read("images-idx3", 16).reshape(-1, 1, 28, 28)),
            torch.from_numpy(read("labels-idx1", 8)).long())


def by_torch(dais, seed):
    make_curves.SEED = seed
    net = make_curves.LeNet([32, 64], 512, 10)
    net.load(make_curves.initial_weights(dais, "lenet5", SETTINGS))
    net = net.to(memory_format=torch.channels_last)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    update = torch.optim.SGD(net.parameters(), RATE, 0.9)
    (x, y), (test_x, test_y) = load("train"), load("t10k")
    order = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for at in torch.randperm(len(x), generator=order).split(BATCH):
            update.zero_grad(set_to_none=True)
            F.cross_entropy(net(x[at].float() / 255), y[at]).backward()
            update.step()
    with torch.no_grad():
        right = sum((net(a.float() / 255).argmax(1) == b).sum().item()
                    for a, b in zip(test_x.split(500), test_y.split(500)))
    return right / len(test_y)


def main():
    dais, seeds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    shares = {}
    for seed in range(1, seeds + 1):
        for side in sys.argv[3:] or ["dais", "torch"]:
            with tempfile.TemporaryDirectory() as folder:
                share = by_dais(dais, seed, folder) if side == "dais" else by_torch(dais, seed)
            shares.setdefault(side, []).append(share)
            print(f"seed {seed} {side}: {100 * share:.2f} %", flush=True)
    for side, values in shares.items():
        spread = 100 * statistics.stdev(values) if len(values) > 1 else 0
        print(f"{side}: mean {100 * statistics.mean(values):.2f} %, deviation {spread:.2f}")


main()
