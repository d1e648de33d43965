#!/usr/bin/python3
"""The peer's side of the comparison: the training step of one net on random data in PyTorch.

usage: torch_peer.py NET fp32|bf16|fp16 THREADS [cpu|cuda [eager|compiled]]

Speaks as train_runner does: reads seconds line by line, runs steps for so long and prints their times
as one line of JSON; at the end of its input it prints its peak memory. compare.py starts it with the
environment that made PyTorch fastest here. Convolutional nets are channels-last; 16-bit types are
autocast (fp16 with a gradient scaler).
"""
import json
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


def norm_conv(inner, outer, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False),
                         nn.BatchNorm2d(outer))


class Residual(nn.Module):
    """What the branch gives and a shortcut, added."""

    def __init__(self, inner, outer, stride, *branch):
        super().__init__()
        self.branch = nn.Sequential(*branch)
        same = stride == 1 and inner == outer
        self.shortcut = nn.Identity() if same else norm_conv(inner, outer, 1, stride)

    def forward(self, x):
        return F.relu(self.branch(x) + self.shortcut(x))


def basic(inner, width, stride):
    return Residual(inner, width, stride, norm_conv(inner, width, 3, stride), nn.ReLU(),
                    norm_conv(width, width, 3))


def bottleneck(inner, width, stride):
    return Residual(inner, 4 * width, stride, norm_conv(inner, width, 1), nn.ReLU(),
                    norm_conv(width, width, 3, stride), nn.ReLU(), norm_conv(width, 4 * width, 1))


def resnet(block, expand, counts, stem, classes):
    layers, inner = list(stem), 64
    for stage, count in enumerate(counts):
        for i in range(count):
            layers.append(block(inner, 64 << stage, 2 if stage and not i else 1))
            inner = expand * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, classes))


def resnet18():
    return resnet(basic, 1, (2, 2, 2, 2), (norm_conv(3, 64, 3), nn.ReLU()), 10)


def resnet50():
    stem = norm_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    return resnet(bottleneck, 4, (3, 4, 6, 3), stem, 1000)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        parts = self.qkv(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(width), Attention(width, heads))
        self.feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                  nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.feed(x)


class Gpt(nn.Module):
    def __init__(self, vocab=256, context=256, width=384, layers=6, heads=6):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, x):
        x = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(x)))


class LstmLm(nn.Module):
    def __init__(self, vocab=256, width=256, hidden=512):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.recurrent = nn.LSTM(width, hidden, 2, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x):
        return self.head(self.recurrent(self.embed(x))[0])


class DeepSpeech(nn.Module):
    def __init__(self, hidden=512, classes=29):
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 32, (41, 11), (2, 2), (20, 5), bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 32, (21, 11), (2, 1), (10, 5), bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.recurrent = nn.GRU(32 * 41, hidden, 3, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        x = self.convs(x)
        x = x.permute(3, 0, 1, 2).reshape(x.shape[3], x.shape[0], -1)
        return self.head(self.recurrent(x)[0])


def cross_entropy(scores, target):
    return F.cross_entropy(scores.float().reshape(-1, scores.shape[-1]), target.reshape(-1))


def ctc(scores, target):
    time, batch = scores.shape[:2]
    return F.ctc_loss(scores.float().log_softmax(-1), target, torch.full((batch,), time),
                      torch.full((batch,), target.shape[1]))


def sgd(momentum):
    return lambda weights: torch.optim.SGD(weights, 0.001, momentum)


def images(batch, *shape, classes):
    return torch.randn(batch, *shape), torch.randint(classes, (batch,))


def tokens(batch, length):
    return torch.randint(256, (batch, length)), torch.randint(256, (batch, length))


NETS = {  # net, batch, loss, optimiser
    "mlp": (mlp, lambda: images(128, 784, classes=10), cross_entropy, sgd(0)),
    "lenet": (lenet, lambda: images(64, 1, 28, 28, classes=10), cross_entropy, sgd(0.9)),
    "resnet18_32": (resnet18, lambda: images(64, 3, 32, 32, classes=10), cross_entropy, sgd(0.9)),
    "resnet50_224": (resnet50, lambda: images(16, 3, 224, 224, classes=1000), cross_entropy,
                     sgd(0.9)),
    "gpt6x384": (Gpt, lambda: tokens(8, 256), cross_entropy,
                 lambda weights: torch.optim.AdamW(weights, 0.001)),
    # For GPUs.
    "resnet50_224x128": (resnet50, lambda: images(128, 3, 224, 224, classes=1000), cross_entropy,
                         sgd(0.9)),
    "gpt12x768": (lambda: Gpt(256, 1024, 768, 12, 12), lambda: tokens(8, 1024), cross_entropy,
                  lambda weights: torch.optim.AdamW(weights, 0.001)),
    "lstm2x512": (LstmLm, lambda: tokens(32, 64), cross_entropy,
                  lambda weights: torch.optim.Adam(weights, 0.001)),
    "ds2": (DeepSpeech,
            lambda: (torch.randn(8, 1, 161, 300), torch.randint(1, 29, (8, 40))), ctc, sgd(0.9)),
}


def peak_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def main():
    name, precision, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    device = sys.argv[4] if len(sys.argv) > 4 else "cpu"
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    make, batch, loss_of, optimiser = NETS[name]
    net = make().to(device)
    x, y = batch()
    # In host memory that the device reads, as a loader gives them.
    if device == "cuda":
        x, y = x.pin_memory(), y.pin_memory()
    if x.dim() == 4:
        net = net.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    update = optimiser(net.parameters())
    if sys.argv[5:] == ["compiled"]:
        net = torch.compile(net, mode="max-autotune")
    scaler = torch.amp.GradScaler(device, enabled=precision == "fp16")
    narrow = torch.float16 if precision == "fp16" else torch.bfloat16

    def step():
        update.zero_grad(set_to_none=True)
        there, wanted = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device, dtype=narrow, enabled=precision != "fp32"):
            loss = loss_of(net(there), wanted)
        scaler.scale(loss).backward()
        scaler.step(update)
        scaler.update()
        return loss.item()

    for _ in range(2):
        step()
    for line in sys.stdin:
        seconds, times = float(line), []
        start = time.perf_counter()
        while len(times) < 2 or time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            loss = step()
            times.append((time.perf_counter() - begin) * 1e3)
        times.sort()
        print(json.dumps({"steps": len(times), "median_ms": times[len(times) // 2],
                          "best_ms": times[0], "loss": loss}), flush=True)
    print(json.dumps({"peak_mib": peak_mib(), "version": torch.__version__,
                      "parameters": sum(p.numel() for p in net.parameters())}))


main()
