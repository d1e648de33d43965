#!/usr/bin/python3
"""Makes the golden loss curves: PyTorch trains the networks of `dais new` from the same initial
weights on the same batches.

usage: make_curves.py DAIS [NAME...]     writes curves/NAME.json beside this file

Needs Debian's python3-torch and python3-onnx. DAIS is the program; it makes the initial weights.
Each curve is trained again in float64: the script prints how far the two are apart at most, which
bounds what rounding alone may do; it refuses curves where that is above 3e-4 and curves that do not
at least halve their loss. Residual networks with batch norm amplify rounding from step to step: they
start with blocks that are their shortcuts, see little noise, and learn slowly.

Batches are drawn by Philox4x32-10 with key 2024: uniform(stream, i) = (word 0 of block i >> 8) /
2^24, so that every element is exact in float32. Streams: 2^32 + c for the template of class c,
2 s for the labels and 2 s + 1 for the noise of step s. golden_test.h draws the same in C++.
"""
import json
import os
import subprocess
import sys
import tempfile

# Two pools of threads hinder one another, and one thread gives the same bits each time.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
KEY, STEPS = 2024, 100
TEMPLATE = 1 << 32


def philox(stream, count):
    """Word 0 of blocks 0 to count - 1."""
    x = [np.arange(count, dtype=np.uint64), np.zeros(count, np.uint64),
         np.full(count, stream & 0xFFFFFFFF, np.uint64), np.full(count, stream >> 32, np.uint64)]
    k0, k1, low = KEY, 0, np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [(b >> np.uint64(32)) ^ x[1] ^ np.uint64(k0), b & low,
             (a >> np.uint64(32)) ^ x[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x[0]


def uniform(stream, count):
    return (philox(stream, count) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


def centred(stream, shape):
    return uniform(stream, int(np.prod(shape))).reshape(shape) - np.float32(0.5)


def image_batch(golden, step):
    """Twice the template of a random class plus as much noise, or the share that is given; a tenth
    of the labels is wrong, so that the loss stays away from zero, where its relative error means
    nothing."""
    batch, size, classes = golden["batch"], golden["input"], golden["classes"]
    draws = philox(2 * step, 2 * batch).astype(np.int64).reshape(batch, 2)
    shown = draws[:, 0] % classes
    wrong = 1 + draws[:, 1] // 10 % (classes - 1)
    labels = np.where(draws[:, 1] % 10 == 0, (shown + wrong) % classes, shown)
    noise = centred(2 * step + 1, [batch] + size) * np.float32(golden.get("noise", 1))
    templates = np.stack([centred(TEMPLATE + c, size) for c in range(classes)])
    return (templates[shown] + noise) * np.float32(2), labels


def token_batch(golden, step):
    """Arithmetic sequences modulo the vocabulary: a random start and a step of 1 to 3."""
    batch, length, vocab = golden["batch"], golden["length"], golden["classes"]
    draws = philox(2 * step, 2 * batch).astype(np.int64).reshape(batch, 2)
    start, stride = draws[:, :1] % vocab, 1 + draws[:, 1:] % 3
    tokens = (start + stride * np.arange(length + 1)) % vocab
    return tokens[:, :-1], tokens[:, 1:]


def speech_batch(golden, step):
    """A row of labels (never 0, never the same twice running), each drawn as its template over
    `frames` columns, plus noise."""
    batch, labels, frames = golden["batch"], golden["labels"], golden["frames"]
    bands, classes = golden["bands"], golden["classes"]
    draws = philox(2 * step, batch * labels).astype(np.int64).reshape(batch, labels)
    targets = np.zeros((batch, labels), np.int64)
    for i in range(labels):
        if i == 0:
            targets[:, 0] = 1 + draws[:, 0] % (classes - 1)
        else:  # one of the other labels
            shift = 1 + draws[:, i] % (classes - 2)
            targets[:, i] = 1 + (targets[:, i - 1] - 1 + shift) % (classes - 1)
    noise = centred(2 * step + 1, [batch, 1, bands, labels * frames])
    templates = np.stack([centred(TEMPLATE + c, [bands]) for c in range(classes)])
    columns = np.repeat(templates[targets], frames, axis=1)  # [batch, time, bands]
    return columns.transpose(0, 2, 1)[:, None] + noise, targets


class Mlp(nn.Sequential):
    def __init__(self, sizes):
        layers = []
        for i in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ReLU()]
        super().__init__(nn.Flatten(), *layers[:-1])

    def load(self, w):
        for i, layer in enumerate(m for m in self if isinstance(m, nn.Linear)):
            copy(layer, w, f"linear{i + 1}")


class LeNet(nn.Module):
    def __init__(self, filters, hidden, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, filters[0], 5, padding=2)
        self.conv2 = nn.Conv2d(filters[0], filters[1], 5, padding=2)
        self.linear1 = nn.Linear(filters[1] * 49, hidden)
        self.linear2 = nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.linear2(F.relu(self.linear1(x)))

    def load(self, w):
        for name in ("conv1", "conv2", "linear1", "linear2"):
            copy(getattr(self, name), w, name)


class Basic(nn.Module):
    expand = 1

    def __init__(self, inner, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(inner, width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class Bottleneck(nn.Module):
    expand = 4

    def __init__(self, inner, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(inner, 4 * width, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x))


def shortcut(inner, outer, stride):
    if stride == 1 and inner == outer:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))


class ResNet(nn.Module):
    def __init__(self, block, repeats, width, classes, small):
        super().__init__()
        self.small = small
        self.conv1 = nn.Conv2d(3, width, 3 if small else 7, 1 if small else 2, 1 if small else 3,
                               bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inner = width
        for stage, count in enumerate(repeats):
            blocks = []
            for i in range(count):
                blocks.append(block(inner, width << stage, 2 if stage and i == 0 else 1))
                inner = block.expand * (width << stage)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inner, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = F.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))

    def load(self, w):
        state = self.state_dict()
        self.load_state_dict({k: torch.from_numpy(w[k]) if k in w else v for k, v in state.items()})


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).split(c, -1))
        scores = q @ k.transpose(-1, -2) * (c // self.heads)**-0.5
        hidden = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.outer(F.gelu(self.inner(self.norm2(x))))

    def load(self, w, name):
        for layer, part in ((self.norm1, "norm1"), (self.norm2, "norm2"),
                            (self.qkv, "attention.qkv"), (self.out, "attention.out"),
                            (self.inner, "feed.in"), (self.outer, "feed.out")):
            copy(layer, w, f"{name}.{part}")


class Gpt(nn.Module):
    def __init__(self, vocab, context, width, layers, heads):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def load(self, w):
        copy(self.tokens, w, "embedding")
        copy(self.places, w, "positions")
        for i, block in enumerate(self.blocks):
            block.load(w, f"blocks.{i}")
        copy(self.norm, w, "norm")
        copy(self.head, w, "head")


class LstmLm(nn.Module):
    def __init__(self, vocab, width, hidden, layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.recurrent = nn.LSTM(width, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0])

    def load(self, w):
        copy(self.embedding, w, "embedding")
        copy_recurrent(self.recurrent, w, [0, 2, 3, 1])  # i o f c to i f c o
        copy(self.head, w, "head")


class DeepSpeech(nn.Module):
    def __init__(self, bands, channels, hidden, layers, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, (41, 11), (2, 2), (20, 5), bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, (21, 11), (2, 1), (10, 5), bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        rows = ((bands + 1) // 2 + 1) // 2
        self.recurrent = nn.GRU(channels * rows, hidden, layers, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        x = x.permute(3, 0, 1, 2).flatten(2)
        return self.head(self.recurrent(x)[0])  # [time, batch, classes]

    def load(self, w):
        for name in ("conv1", "norm1", "conv2", "norm2", "head"):
            copy(getattr(self, name), w, name)
        copy_recurrent(self.recurrent, w, [1, 0, 2])  # z r h to r z h


def copy(layer, w, name):
    """A layer's parameters; matrices that multiply from the right are stored transposed."""
    with torch.no_grad():
        for part in ("weight", "bias"):
            target = getattr(layer, part, None)
            if target is None:
                continue
            value = torch.from_numpy(w[f"{name}.{part}"])
            is_product = isinstance(layer, nn.Linear) and f"{name}.{part}" in w["products"]
            target.copy_(value.t() if is_product else value)


def copy_recurrent(layer, w, order):
    with torch.no_grad():
        for number in range(layer.num_layers):
            for direction in range(2 if layer.bidirectional else 1):
                suffix = f"_l{number}" + ("_reverse" if direction else "")

                def gates(value):
                    parts = np.split(value, len(order))
                    return torch.from_numpy(np.concatenate([parts[i] for i in order]))
                prefix = f"recurrent.{number}"
                first, second = np.split(w[f"{prefix}.bias"][direction], 2)
                for name, value in (("weight_ih", w[f"{prefix}.weight_input"][direction]),
                                    ("weight_hh", w[f"{prefix}.weight_state"][direction]),
                                    ("bias_ih", first), ("bias_hh", second)):
                    getattr(layer, name + suffix).copy_(gates(value))


def cross_entropy(logits, targets, _):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def ctc(logits, targets, golden):
    time, batch = logits.shape[:2]
    return F.ctc_loss(logits.log_softmax(-1), targets, torch.full((batch,), time, dtype=torch.long),
                      torch.full((batch,), golden["labels"], dtype=torch.long))


def sgd(rate):
    return {"optimizer": "sgd", "rate": rate, "momentum": 0.9}


def adamw(rate):
    """Decay on all parameters."""
    return {"optimizer": "adamw", "rate": rate, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
            "weight_decay": 0.01}


# Per network: settings of `dais new`, the batches, the curves, and the module of PyTorch.
GOLDEN = {
    "mlp": (dict(settings={"hidden": "64,64"}, data="images", batch=32, input=[1, 28, 28],
                 classes=10, curves=[sgd(0.01), adamw(1e-3)]),
            lambda: Mlp([784, 64, 64, 10])),
    "lenet5": (dict(settings={"filters": "8,16", "hidden": "64", "same": "true"}, data="images",
                    batch=16, input=[1, 28, 28], classes=10, curves=[sgd(0.01), adamw(8e-4)]),
               lambda: LeNet([8, 16], 64, 10)),
    "resnet18": (dict(settings={"input": "3x16x16", "width": "8", "classes": "10",
                                "zero-residual": "true"},
                      data="images", noise=0.1, batch=32, input=[3, 16, 16], classes=10,
                      curves=[sgd(0.004), adamw(5e-4)]),
                 lambda: ResNet(Basic, [2, 2, 2, 2], 8, 10, True)),
    "resnet50": (dict(settings={"input": "3x16x16", "width": "4", "classes": "10",
                                "zero-residual": "true"},
                      data="images", noise=0.1, batch=64, input=[3, 16, 16], classes=10,
                      curves=[sgd(0.002), adamw(2e-4)]),
                 lambda: ResNet(Bottleneck, [3, 4, 6, 3], 4, 10, True)),
    "gpt-tiny": (dict(settings={"vocab": "32", "context": "32", "width": "64", "layers": "2",
                                "heads": "2"},
                      data="tokens", batch=8, length=16, classes=32,
                      curves=[sgd(0.1), adamw(2e-3)]),
                 lambda: Gpt(32, 32, 64, 2, 2)),
    "lstm-lm": (dict(settings={"vocab": "32", "width": "32", "hidden": "64"}, data="tokens",
                     batch=16, length=16, classes=32, curves=[sgd(0.5), adamw(5e-3)]),
                lambda: LstmLm(32, 32, 64, 2)),
    "deepspeech2": (dict(settings={"features": "32", "channels": "4", "hidden": "32",
                                   "layers": "2", "classes": "9"},
                         data="speech", batch=8, bands=32, labels=6, frames=8, classes=9,
                         curves=[sgd(0.02), adamw(3e-3)]),
                    lambda: DeepSpeech(32, 4, 32, 2, 9)),
}
BATCHES = {"images": image_batch, "tokens": token_batch, "speech": speech_batch}
SEED = 1


def initial_weights(dais, name, settings):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.onnx")
        flags = [part for k, v in settings.items() for part in (f"--{k}={v}",)]
        subprocess.run([dais, "new", name, *flags, "--seed", str(SEED), "-o", path], check=True,
                       stdout=subprocess.DEVNULL)
        graph = onnx.load(path).graph
    w = {i.name: numpy_helper.to_array(i).copy() for i in graph.initializer}
    w["products"] = {n.input[1] for n in graph.node if n.op_type == "MatMul"}
    return w


def train(golden, module, weights, curve, dtype):
    net = module()
    net.load(weights)
    net = net.to(dtype).train()
    if curve["optimizer"] == "sgd":
        update = torch.optim.SGD(net.parameters(), curve["rate"], momentum=curve["momentum"])
    else:
        update = torch.optim.AdamW(net.parameters(), curve["rate"],
                                   (curve["beta1"], curve["beta2"]), curve["epsilon"],
                                   curve["weight_decay"])
    loss_of = ctc if golden["data"] == "speech" else cross_entropy
    losses = []
    for step in range(STEPS):
        x, y = (torch.from_numpy(part) for part in BATCHES[golden["data"]](golden, step))
        update.zero_grad(set_to_none=True)
        loss = loss_of(net(x.to(dtype) if x.is_floating_point() else x), y, golden)
        loss.backward()
        update.step()
        losses.append(loss.item())
    return losses


def make(dais, name):
    golden, module = GOLDEN[name]
    golden = json.loads(json.dumps(golden))
    weights = initial_weights(dais, name, golden["settings"])
    for curve in golden["curves"]:
        losses = train(golden, module, weights, curve, torch.float32)
        exact = train(golden, module, weights, curve, torch.float64)
        apart = max(abs(a - b) / abs(b) for a, b in zip(losses, exact))
        end = float(np.mean(losses[-5:]))
        print(f"{name:12} {curve['optimizer']:6} {losses[0]:.4f} -> {end:.4f}, "
              f"float64 within {apart:.1e}", flush=True)
        if apart > 3e-4:
            sys.exit(f"{name}: rounding alone moves the curve by {apart:.1e}")
        if end > losses[0] / 2:
            sys.exit(f"{name}: the loss does not halve")
        curve["losses"] = [float(f"{loss:.8g}") for loss in losses]
    out = {"network": name, "seed": SEED, "made_by": f"PyTorch {torch.__version__}, one thread",
           **golden}
    os.makedirs(os.path.join(HERE, "curves"), exist_ok=True)
    with open(os.path.join(HERE, "curves", name + ".json"), "w") as to:
        json.dump(out, to, indent=1)
        to.write("\n")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    for name in sys.argv[2:] or GOLDEN:
        make(sys.argv[1], name)


if __name__ == "__main__":
    main()
