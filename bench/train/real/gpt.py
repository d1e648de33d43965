#!/usr/bin/python3
"""A byte GPT on the King James text (Debian's bible-kjv): dais and PyTorch from the same initial
weights under the same settings. The last twentieth of the text is held out.

usage: gpt.py DAIS [UPDATES]     prints the loss of each on the held-out text
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tests/golden"))

import numpy as np
import torch
import torch.nn.functional as F

import make_curves

WINDOW, BATCH, RATE, HELD_OUT = 128, 16, 1e-3, 0.05
SETTINGS = {"vocab": "256", "context": str(WINDOW), "width": "128", "layers": "3", "heads": "4"}


def by_dais(dais, folder, updates):
    def run(*words):
        return subprocess.run([dais, *words], check=True, text=True, stdout=subprocess.PIPE,
                              cwd=folder).stdout
    run("new", "gpt-tiny", *(f"--{k}={v}" for k, v in SETTINGS.items()), "--seed",
        str(make_curves.SEED), "-o", "net.onnx")
    out = run("train", "net.onnx", "--data", "text", "--tokens", "byte", "--window", str(WINDOW),
              "--held-out", str(HELD_OUT), "--batch", str(BATCH), "--optimiser", "adamw", "--lr",
              str(RATE), "--decay-all", "--updates", str(updates), "--out", "run", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    return next(row["loss"] for row in reversed(rows) if row["event"] == "validated")


def windows(text):
    count = (len(text) - 1) // WINDOW
    return (torch.from_numpy(text[:count * WINDOW].reshape(count, WINDOW)),
            torch.from_numpy(text[1:count * WINDOW + 1].reshape(count, WINDOW)))


def loss_of(net, x, y):
    return F.cross_entropy(net(x).reshape(-1, 256), y.reshape(-1))


def by_torch(dais, text, updates):
    torch.manual_seed(0)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    weights = make_curves.initial_weights(dais, "gpt-tiny", SETTINGS)
    net = make_curves.Gpt(256, WINDOW, 128, 3, 4)
    net.load(weights)
    update = torch.optim.AdamW(net.parameters(), RATE, weight_decay=0.01)
    cut = len(text) - int(len(text) * HELD_OUT)
    x, y = windows(text[:cut])
    order = torch.randperm(len(x))
    for step in range(updates):
        at = order[torch.arange(step * BATCH, (step + 1) * BATCH) % len(x)]
        update.zero_grad(set_to_none=True)
        loss_of(net, x[at], y[at]).backward()
        update.step()
    x, y = windows(text[cut:])
    with torch.no_grad():
        parts = [(len(p), loss_of(net, p, q).item()) for p, q in zip(x.split(64), y.split(64))]
    return sum(n * loss for n, loss in parts) / len(x)


def main():
    dais = os.path.abspath(sys.argv[1])
    updates = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    text = subprocess.run(["bible", "-f"], input=b"gen1:1-rev22:21\n", stdout=subprocess.PIPE,
                          check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text"), "wb") as to:
            to.write(text)
        ours = by_dais(dais, folder, updates)
    theirs = by_torch(dais, np.frombuffer(text, np.uint8).astype(np.int64), updates)
    print(f"{updates} updates: PyTorch {theirs:.4f}, dais {ours:.4f}, apart {ours - theirs:+.4f}")


main()
